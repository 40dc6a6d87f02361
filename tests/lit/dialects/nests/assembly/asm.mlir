// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK:         %[[R:.*]]:2 = "xgpu.asm"(%arg0, %arg1) {text = "{ add.f32 $0, $2, $3; mov.b32 $1, $2; }"} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<ui32>)
// CHECK-NEXT:    "xgpu.asm"() {text = "nanosleep.u32 100;"} : () -> ()
func.func @f(%x: tensor<f32>, %y: tensor<f32>) {
  "xgpu.par"() ({
  ^bb0(%i: index):
    %r:2 = "xgpu.asm"(%x, %y) {text = "{ add.f32 $0, $2, $3; mov.b32 $1, $2; }"} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<ui32>)
    "xgpu.asm"() {text = "nanosleep.u32 100;"} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {align = 32 : i64, called = "i", extent = 32 : i64} : () -> ()
  return
}
