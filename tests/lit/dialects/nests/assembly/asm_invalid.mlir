// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @type(%x: tensor<i8>) {
  // expected-error @+1 {{'xgpu.asm' expected elements of u16, s16, f16, bf16, u32, s32, f32, u64, s64, f64, got s8}}
  "xgpu.asm"(%x) {text = "mov.b16 $0, $0;"} : (tensor<i8>) -> ()
  return
}

// -----

func.func @operand(%x: tensor<f32>) {
  // expected-error @+1 {{attribute 'text': '$2': expected $0 to $1, results first}}
  %y = "xgpu.asm"(%x) {text = "add.f32 $0, $1, $2;"} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @result(%x: tensor<f32>) {
  // expected-error @+1 {{attribute 'text': nothing is written to '$0', a result}}
  %y = "xgpu.asm"(%x) {text = "mov.f32 $1, $1;"} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @memory(%x: tensor<i64>) {
  // expected-error @+1 {{attribute 'text': it accesses memory, which only statements do: what they access is known}}
  %y = "xgpu.asm"(%x) {text = "ld.global.f32 $0, [$1];"} : (tensor<i64>) -> tensor<f32>
  return
}

// -----

func.func @barrier() {
  // expected-error @+1 {{attribute 'text': 'barrier' waits for threads that may never come; barriers are placed by the compiler}}
  "xgpu.asm"() {text = "barrier.sync.aligned 0;"} : () -> ()
  return
}

// -----

func.func @branch(%x: tensor<i32>) {
  // expected-error @+1 {{attribute 'text': 'exit' goes elsewhere: threads go on behind the text}}
  "xgpu.asm"(%x) {text = "{ .reg .pred p; setp.eq.u32 p, $0, 0; @p exit; }"} : (tensor<i32>) -> ()
  return
}

// -----

func.func @label() {
  // expected-error @+1 {{attribute 'text': it has a label: threads go on behind the text}}
  "xgpu.asm"() {text = "nanosleep.u32 1; again: nanosleep.u32 2;"} : () -> ()
  return
}
