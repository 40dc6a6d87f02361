// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// The body takes the range variables, the map's results and what is carried; it yields what is carried.
// CHECK-LABEL: func.func @sum
func.func @sum(%thread: index, %t: tensor<512xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  // CHECK: "xgpu.loop"(%arg0, %{{.*}}) ({
  // CHECK-NEXT: ^bb0(%[[S:.*]]: index, %[[I:.*]]: index, %[[PARTIAL:.*]]: f32):
  // CHECK: tensor.extract %arg1[%[[I]]]
  // CHECK: "xgpu.yield"(%{{.*}}) : (f32) -> ()
  // CHECK: {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 127], s0 in [0, 3]>} : (index, f32) -> f32
  %sum = "xgpu.loop"(%thread, %zero) ({
  ^bb0(%s0: index, %i: index, %partial: f32):
    %x = tensor.extract %t[%i] : tensor<512xf32>
    %next = arith.addf %partial, %x : f32
    "xgpu.yield"(%next) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 127], s0 in [0, 3]>} : (index, f32) -> f32
  return %sum : f32
}
