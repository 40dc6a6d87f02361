// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @type(%x: bf16) {
  // expected-error @+1 {{'xgpu.ptx' expected values of i16, i32, i64, f32 or f64, got bf16}}
  "xgpu.ptx"(%x) {text = "mov.b16 $0, $0;"} : (bf16) -> ()
  return
}

// -----

func.func @text(%x: i32) {
  // expected-error @+1 {{attribute 'text': expected instructions that end with ';'}}
  "xgpu.ptx"(%x) {text = "mov.b32 $0, $0"} : (i32) -> ()
  return
}
