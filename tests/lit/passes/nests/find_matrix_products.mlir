// RUN: xgpu-opt %s -p 'find-matrix-products{target=sm_90a}' --split-input-file --verify-diagnostics | FileCheck %s --check-prefixes=CHECK,HOPPER
// RUN: xgpu-opt %s -p 'find-matrix-products{target=sm_80}' --split-input-file --verify-diagnostics | FileCheck %s --check-prefixes=CHECK,AMPERE

// Warp groups multiply where there are such instructions, else warps.
// CHECK-LABEL: func.func @product
// HOPPER: }) {emitter = "product", schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, tile_k = 64,
// HOPPER-SAME: split = 1, swapped = false>} : () -> ()
// AMPERE: }) {emitter = "warp_product", schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, tile_k = 64,
func.func @product(%arg0: memref<64x64xbf16> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64x64xbf16> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<64x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "sum"} : () -> memref<64x64xf32>
        "xgpu.par"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
            "xgpu.write"(%cst, %0, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "j", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 64 : i64} : () -> ()
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            "xgpu.par"() ({
            ^bb0(%arg7: index):
              "xgpu.seq"() ({
              ^bb0(%arg8: index):
                %1 = "xgpu.read"(%arg0, %arg6, %arg8) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xbf16>, index, index) -> tensor<bf16>
                %2 = stablehlo.convert %1 : (tensor<bf16>) -> tensor<f32>
                %3 = "xgpu.read"(%arg1, %arg7, %arg8) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xbf16>, index, index) -> tensor<bf16>
                %4 = stablehlo.convert %3 : (tensor<bf16>) -> tensor<f32>
                %5 = stablehlo.multiply %2, %4 : tensor<f32>
                "xgpu.accumulate"(%5, %0, %arg6, %arg7) {atomic = false, combiner = "add", map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
                "xgpu.yield"() : () -> ()
              }) {called = "c", extent = 64 : i64} : () -> ()
              "xgpu.yield"() : () -> ()
            }) {called = "j", extent = 64 : i64} : () -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "i", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 1 : i64} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %1 = "xgpu.read"(%0, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xf32>, index, index) -> tensor<f32>
            "xgpu.write"(%1, %arg2, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "j", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "bn", extent = 1 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "bm", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// CHECK-LABEL: func.func @loops
// CHECK-NOT: emitter
func.func @loops(%arg0: memref<64x64xbf16> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64x64xbf16> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<64x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "sum"} : () -> memref<64x64xf32>
        "xgpu.par"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
            "xgpu.write"(%cst, %0, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "j", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 64 : i64} : () -> ()
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            "xgpu.par"() ({
            ^bb0(%arg7: index):
              "xgpu.seq"() ({
              ^bb0(%arg8: index):
                %1 = "xgpu.read"(%arg0, %arg6, %arg8) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xbf16>, index, index) -> tensor<bf16>
                %2 = stablehlo.convert %1 : (tensor<bf16>) -> tensor<f32>
                %3 = "xgpu.read"(%arg1, %arg7, %arg8) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xbf16>, index, index) -> tensor<bf16>
                %4 = stablehlo.convert %3 : (tensor<bf16>) -> tensor<f32>
                %5 = stablehlo.multiply %2, %4 : tensor<f32>
                "xgpu.accumulate"(%5, %0, %arg6, %arg7) {atomic = false, combiner = "add", map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
                "xgpu.yield"() : () -> ()
              }) {called = "c", extent = 64 : i64} : () -> ()
              "xgpu.yield"() : () -> ()
            }) {called = "j", extent = 64 : i64} : () -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "i", extent = 64 : i64, mma = false} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 1 : i64} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %1 = "xgpu.read"(%0, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xf32>, index, index) -> tensor<f32>
            "xgpu.write"(%1, %arg2, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "j", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "bn", extent = 1 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "bm", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// What follows the sums is not computed element by element: the loops stay.
// CHECK-LABEL: func.func @other
// CHECK-NOT: emitter
func.func @other(%arg0: memref<64x64xbf16> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64x64xbf16> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<64x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "sum"} : () -> memref<64x64xf32>
        "xgpu.par"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
            "xgpu.write"(%cst, %0, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "j", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 64 : i64} : () -> ()
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            "xgpu.par"() ({
            ^bb0(%arg7: index):
              "xgpu.seq"() ({
              ^bb0(%arg8: index):
                %1 = "xgpu.read"(%arg0, %arg6, %arg8) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xbf16>, index, index) -> tensor<bf16>
                %2 = stablehlo.convert %1 : (tensor<bf16>) -> tensor<f32>
                %3 = "xgpu.read"(%arg1, %arg7, %arg8) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xbf16>, index, index) -> tensor<bf16>
                %4 = stablehlo.convert %3 : (tensor<bf16>) -> tensor<f32>
                %5 = stablehlo.multiply %2, %4 : tensor<f32>
                "xgpu.accumulate"(%5, %0, %arg6, %arg7) {atomic = false, combiner = "add", map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
                "xgpu.yield"() : () -> ()
              }) {called = "c", extent = 64 : i64} : () -> ()
              "xgpu.yield"() : () -> ()
            }) {called = "j", extent = 64 : i64} : () -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "i", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 1 : i64} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %1 = "xgpu.read"(%0, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xf32>, index, index) -> tensor<f32>
            %2 = "xgpu.read"(%arg0, %arg5) {map = #xgpu.map<(d0) -> (0, d0), d0 in [0, 63]>} : (memref<64x64xbf16>, index) -> tensor<bf16>
            %3 = stablehlo.convert %2 : (tensor<bf16>) -> tensor<f32>
            %4 = stablehlo.add %1, %3 : tensor<f32>
            "xgpu.write"(%4, %arg2, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "j", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "bn", extent = 1 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "bm", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @asked(%arg0: memref<64x64xbf16> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64x64xbf16> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<64x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "sum"} : () -> memref<64x64xf32>
        "xgpu.par"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
            "xgpu.write"(%cst, %0, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "j", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 64 : i64} : () -> ()
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          // expected-error @+1 {{'#mma': an index is no tile's number times its size, and an index in the tile}}
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            "xgpu.par"() ({
            ^bb0(%arg7: index):
              "xgpu.seq"() ({
              ^bb0(%arg8: index):
                %1 = "xgpu.read"(%arg0, %arg6, %arg8) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xbf16>, index, index) -> tensor<bf16>
                %2 = stablehlo.convert %1 : (tensor<bf16>) -> tensor<f32>
                %3 = "xgpu.read"(%arg1, %arg7, %arg8) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xbf16>, index, index) -> tensor<bf16>
                %4 = stablehlo.convert %3 : (tensor<bf16>) -> tensor<f32>
                %5 = stablehlo.multiply %2, %4 : tensor<f32>
                "xgpu.accumulate"(%5, %0, %arg6, %arg7) {atomic = false, combiner = "add", map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
                "xgpu.yield"() : () -> ()
              }) {called = "c", extent = 64 : i64} : () -> ()
              "xgpu.yield"() : () -> ()
            }) {called = "j", extent = 64 : i64} : () -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "i", extent = 64 : i64, mma = true} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 1 : i64} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %1 = "xgpu.read"(%0, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xf32>, index, index) -> tensor<f32>
            %2 = "xgpu.read"(%arg0, %arg5) {map = #xgpu.map<(d0) -> (0, d0), d0 in [0, 63]>} : (memref<64x64xbf16>, index) -> tensor<bf16>
            %3 = stablehlo.convert %2 : (tensor<bf16>) -> tensor<f32>
            %4 = stablehlo.add %1, %3 : tensor<f32>
            "xgpu.write"(%4, %arg2, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "j", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "bn", extent = 1 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "bm", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

// Steps may run ahead without tensor cores.
// CHECK-LABEL: func.func @staged
// CHECK-NOT: emitter
// CHECK: stages = 2
// CHECK-NOT: emitter
// CHECK: return
func.func @staged(%arg0: memref<64x64xbf16> {xgpu.access = "in", xgpu.called = "A"}, %arg1: memref<64x64xbf16> {xgpu.access = "in", xgpu.called = "B"}, %arg2: memref<64x64xf32> {xgpu.access = "out", xgpu.called = "C"}) {
  "xgpu.launch"() ({
    "xgpu.par"() ({
    ^bb0(%arg3: index):
      "xgpu.par"() ({
      ^bb0(%arg4: index):
        %0 = "xgpu.new"() {called = "sum"} : () -> memref<64x64xf32>
        "xgpu.par"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
            "xgpu.write"(%cst, %0, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "j", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 64 : i64} : () -> ()
        "xgpu.seq"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            "xgpu.par"() ({
            ^bb0(%arg7: index):
              "xgpu.seq"() ({
              ^bb0(%arg8: index):
                %1 = "xgpu.read"(%arg0, %arg6, %arg8) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xbf16>, index, index) -> tensor<bf16>
                %2 = stablehlo.convert %1 : (tensor<bf16>) -> tensor<f32>
                %3 = "xgpu.read"(%arg1, %arg7, %arg8) {map = #xgpu.map<(d0, d1) -> (d1, d0), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xbf16>, index, index) -> tensor<bf16>
                %4 = stablehlo.convert %3 : (tensor<bf16>) -> tensor<f32>
                %5 = stablehlo.multiply %2, %4 : tensor<f32>
                "xgpu.accumulate"(%5, %0, %arg6, %arg7) {atomic = false, combiner = "add", map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
                "xgpu.yield"() : () -> ()
              }) {called = "c", extent = 64 : i64} : () -> ()
              "xgpu.yield"() : () -> ()
            }) {called = "j", extent = 64 : i64} : () -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "i", extent = 64 : i64, mma = false} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "k", extent = 1 : i64, stages = 2 : i64} : () -> ()
        "xgpu.par"() ({
        ^bb0(%arg5: index):
          "xgpu.par"() ({
          ^bb0(%arg6: index):
            %1 = "xgpu.read"(%0, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (memref<64x64xf32>, index, index) -> tensor<f32>
            "xgpu.write"(%1, %arg2, %arg5, %arg6) {map = #xgpu.map<(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]>} : (tensor<f32>, memref<64x64xf32>, index, index) -> ()
            "xgpu.yield"() : () -> ()
          }) {called = "j", extent = 64 : i64} : () -> ()
          "xgpu.yield"() : () -> ()
        }) {called = "i", extent = 64 : i64} : () -> ()
        "xgpu.yield"() : () -> ()
      }) {called = "bn", extent = 1 : i64} : () -> ()
      "xgpu.yield"() : () -> ()
    }) {called = "bm", extent = 1 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) : () -> ()
  return
}
