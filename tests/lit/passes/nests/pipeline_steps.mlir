// RUN: xgpu-opt %s -p 'pipeline-steps' --split-input-file --verify-diagnostics | FileCheck %s

// The tiles of three steps take turns. Those of the first two are filled before the loop, and each step fills that of the
// second step after it, if there is one. What a condition leaves out of the first two steps is left out there.
// CHECK-LABEL: func.func @f
// CHECK: %[[T:[0-9]+]] = "xgpu.new"() {called = "t"} : () -> memref<3x64xf32>
// CHECK: "xgpu.write"(%{{.*}}, %[[T]], %{{.*}}, %{{.*}}) {map = #xgpu.map<(d0, d1) -> (d1 mod 3, d0), d0 in [0, 63], d1 in [0, 1]>}
// CHECK: {called = "k", extent = 2 : i64}
// CHECK: "xgpu.where"
// CHECK: "xgpu.read"(%arg0, {{.*}} {map = #xgpu.map<(d0, d1) -> (d0 + 3, d1), d0 in [0, 4], d1 in [0, 63]>}
// CHECK: "xgpu.write"(%{{.*}}, %[[T]], {{.*}} {map = #xgpu.map<(d0, d1) -> ((d1 + 2) mod 3, d0), d0 in [0, 63], d1 in [0, 5]>}
// CHECK: {map = #xgpu.map<(d0) -> (), d0 in [0, 7], d0 in [0, 5]>}
// CHECK: "xgpu.read"(%[[T]], {{.*}} {map = #xgpu.map<(d0, d1) -> (d1 mod 3, -d0 + 63), d0 in [0, 63], d1 in [0, 7]>}
// CHECK: {called = "k", extent = 8 : i64}
func.func @f(%arg0: memref<8x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "s"} : () -> memref<64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
      "xgpu.seq"() ({
      ^bb0(%arg3: index):
        %1 = "xgpu.new"() {called = "t"} : () -> memref<64xf32>
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          "xgpu.where"(%arg3) ({
            %2 = "xgpu.read"(%arg0, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0 + 1, d1), d0 in [0, 6], d1 in [0, 63]>} : (memref<8x64xf32>, index, index) -> tensor<f32>
            "xgpu.write"(%2, %1, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
            "xgpu.yield"() : () -> ()
          }, {
            %c = stablehlo.constant dense<7> : tensor<i32>
            %2 = stablehlo.convert %c : (tensor<i32>) -> tensor<f32>
            "xgpu.write"(%2, %1, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {map = #xgpu.map<(d0) -> (), d0 in [0, 7], d0 in [0, 6]>} : (index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %2 = "xgpu.read"(%1, %arg4) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
          "xgpu.accumulate"(%2, %0, %arg4) {atomic = false, combiner = "add", map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "k", extent = 8 : i64, stages = 3 : i64} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %1 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%1, %arg1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// A tile of all steps.
func.func @f(%arg0: memref<8x64xf32> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64xf32> {xgpu.access = "out", xgpu.called = "B"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg2: index):
      %0 = "xgpu.new"() {called = "s"} : () -> memref<64xf32>
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        "xgpu.write"(%cst, %0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
      %1 = "xgpu.new"() {called = "t"} : () -> memref<64xf32>
      // expected-error @+1 {{'#stages(3)': expected a tile that is made in each step, and that par loops alone fill, from what the steps do not change}}
      "xgpu.seq"() ({
      ^bb0(%arg3: index):
                "xgpu.par"() ({
        ^bb0(%arg4: index):
          "xgpu.where"(%arg3) ({
            %2 = "xgpu.read"(%arg0, %arg3, %arg4) {map = #xgpu.map<(d0, d1) -> (d0 + 1, d1), d0 in [0, 6], d1 in [0, 63]>} : (memref<8x64xf32>, index, index) -> tensor<f32>
            "xgpu.write"(%2, %1, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
            "xgpu.yield"() : () -> ()
          }, {
            %c = stablehlo.constant dense<7> : tensor<i32>
            %2 = stablehlo.convert %c : (tensor<i32>) -> tensor<f32>
            "xgpu.write"(%2, %1, %arg4) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {map = #xgpu.map<(d0) -> (), d0 in [0, 7], d0 in [0, 6]>} : (index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg4: index):
          %2 = "xgpu.read"(%1, %arg4) {map = #xgpu.map<(d0) -> (-d0 + 63), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
          "xgpu.accumulate"(%2, %0, %arg4) {atomic = false, combiner = "add", map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
          "xgpu.yield"() : () -> ()
        }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "k", extent = 8 : i64, stages = 3 : i64} : () -> ()
      "xgpu.par"() ({
      ^bb0(%arg3: index):
        %9 = "xgpu.read"(%0, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (memref<64xf32>, index) -> tensor<f32>
        "xgpu.write"(%9, %arg1, %arg3) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 63]>} : (tensor<f32>, memref<64xf32>, index) -> ()
        "xgpu.yield"() : () -> ()
      }) {band = "thread", called = "i", extent = 64 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {band = "block", called = "b", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}
