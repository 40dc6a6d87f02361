// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Blocks share scans: each tells those after it what its part comes to, takes the messages since the last anchor, one a
// lane, and an anchor then tells what all up to it come to. The board is the last input and the last output.
// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME: %arg0: tensor<140000xf32>, %arg1: tensor<35xi64>, %arg2: tensor<140000xf32>, %arg3: tensor<35xi64>
// CHECK-SAME: xgpu.aliases = array<i64: -1, 1>
// CHECK-SAME: xgpu.emitter = "scan_row", xgpu.grid = array<i64: 35, 1, 1>, xgpu.inputs = 2 : i64
// CHECK-SAME: xgpu.resident = 4 : i64, xgpu.scratch = 35 : i64
// CHECK: "xgpu.sync_threads"
// CHECK: %[[TOLD:.*]] = "xgpu.loop"(%{{.*}}, %{{.*}}, %arg3) ({
// CHECK: "xgpu.publish"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<35xi64>, index, f32) -> tensor<35xi64>
// CHECK: }) {map = #xgpu.map<(d0, d1) -> (d0 + d1), d0 in [0, 255], d1 in [0, 34], d0 in [0, 0], (d1 mod 35) mod 32 in [1, 31]>}
// CHECK: "xgpu.loop"
// CHECK: "xgpu.await"(%[[TOLD]], %{{.*}}) : (tensor<35xi64>, index) -> f32
// CHECK: "xgpu.shuffle"
// CHECK: "xgpu.sync_threads"
// CHECK: %[[ALL:.*]] = "xgpu.loop"(%{{.*}}, %{{.*}}, %[[TOLD]]) ({
// CHECK: "xgpu.publish"
// CHECK: (d1 mod 35) mod 32 in [0, 0]
// CHECK: tensor.insert
// CHECK: return %{{.*}}, %[[ALL]]

// Columns: a message of two words for each of four columns, of which the two threads of two columns write theirs.
// CHECK-LABEL: func.func @fusion_1
// CHECK-SAME: xgpu.emitter = "scan_column"
// CHECK: "xgpu.publish"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (tensor<{{.*}}xi64>, index, f64, f64)
// CHECK: "xgpu.await"(%{{.*}}, %{{.*}}) : (tensor<{{.*}}xi64>, index) -> f64
func.func @main(%x: tensor<140000xf32>, %y: tensor<60000x4xf64>) -> (tensor<140000xf32>, tensor<60000x4xf64>) {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<140000xf32>) -> tensor<140000xf32>
  %1 = "xgpu.scan"(%y) ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %c = stablehlo.maximum %a, %b : tensor<f64>
    stablehlo.return %c : tensor<f64>
  }) {dimension = 0 : i64, reverse = false} : (tensor<60000x4xf64>) -> tensor<60000x4xf64>
  return %0, %1 : tensor<140000xf32>, tensor<60000x4xf64>
}
