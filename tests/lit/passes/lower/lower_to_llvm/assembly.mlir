// Instructions that a person wrote: as they are, each operand in a register of its type.

// RUN: xgpu-opt %s -p lower-to-llvm | FileCheck %s

// CHECK-LABEL: @f(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f,~{memory}" %arg0, %arg1
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "mov.b32 {$0, $1}, $2;", "=h,=h,r,~{memory}"
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "{ .reg .b64 t; mov.b64 t, $0; }", "l,~{memory}" %arg2
func.func @f(%x: f32, %y: f32, %z: i64) -> (i16, i16) {
  %0 = "xgpu.ptx"(%x, %y) {text = "cvt.rn.bf16x2.f32 $0, $1, $2;"} : (f32, f32) -> i32
  %1:2 = "xgpu.ptx"(%0) {text = "mov.b32 {$0, $1}, $2;"} : (i32) -> (i16, i16)
  "xgpu.ptx"(%z) {text = "{ .reg .b64 t; mov.b64 t, $0; }"} : (i64) -> ()
  return %1#0, %1#1 : i16, i16
}
