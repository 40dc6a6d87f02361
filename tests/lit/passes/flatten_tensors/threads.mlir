// RUN: xgpu-opt %s -p flatten-tensors | FileCheck %s

// Tiles, what barriers hand on, and the accesses of threads.

// CHECK-LABEL: func.func @k
// CHECK:         %[[T:.*]] = "xgpu.allocate_shared"() : () -> tensor<12xf32>
// CHECK:         %[[A:.*]] = "xgpu.apply_indexing"(%[[I:.*]], %[[J:.*]]) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 2], d1 in [0, 3]>}
// CHECK-NEXT:    %[[U:.*]] = "xgpu.predicated_insert"(%[[C:.*]], %[[X:.*]], %[[T]], %[[A]]) : (i1, f32, tensor<12xf32>, index) -> tensor<12xf32>
// CHECK-NEXT:    %[[S:.*]] = "xgpu.sync_threads"(%[[U]]) : (tensor<12xf32>) -> tensor<12xf32>
// CHECK-NEXT:    %[[B:.*]] = "xgpu.apply_indexing"(%[[I]], %[[J]])
// CHECK-NEXT:    %[[Y:.*]] = "xgpu.predicated_extract"(%[[C]], %[[X]], %[[S]], %[[B]]) : (i1, f32, tensor<12xf32>, index) -> f32
// CHECK-NEXT:    %[[D:.*]] = "xgpu.apply_indexing"(%[[I]], %[[J]])
// CHECK-NEXT:    "xgpu.atomic_rmw"(%[[S]], %[[D]]) ({
// CHECK-NEXT:    ^bb0(%[[OLD:.*]]: f32):
// CHECK-NEXT:      %[[NEW:.*]] = arith.addf %[[OLD]], %[[Y]]
// CHECK-NEXT:      "xgpu.yield"(%[[NEW]])
// CHECK-NEXT:    }) : (tensor<12xf32>, index) -> tensor<12xf32>
func.func @k(%c: i1, %x: f32, %i: index, %j: index) {
  %t = "xgpu.allocate_shared"() : () -> tensor<3x4xf32>
  %u = "xgpu.predicated_insert"(%c, %x, %t, %i, %j) : (i1, f32, tensor<3x4xf32>, index, index) -> tensor<3x4xf32>
  %s = "xgpu.sync_threads"(%u) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = "xgpu.predicated_extract"(%c, %x, %s, %i, %j) : (i1, f32, tensor<3x4xf32>, index, index) -> f32
  %a = "xgpu.atomic_rmw"(%s, %i, %j) ({
  ^bb0(%old: f32):
    %new = arith.addf %old, %y : f32
    "xgpu.yield"(%new) : (f32) -> ()
  }) : (tensor<3x4xf32>, index, index) -> tensor<3x4xf32>
  return
}
