// RUN: xgpu-opt %s -p split-interiors --split-input-file | FileCheck %s

// The neighbour on the left is there in all steps but one thread's: the others get a loop without conditionals. So it is
// for the branch that most elements take if a condition does not hold.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096xf32>, %arg1: tensor<4096xf32>) -> tensor<4096xf32> attributes {xgpu.emitter = "loop"}
// CHECK-NEXT:    %[[A:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[B:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[C:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[D:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[E:.*]] = gpu.thread_id x upper_bound 128
// CHECK-NEXT:    %[[F:.*]] = gpu.block_id x upper_bound 8
// CHECK-NEXT:    %[[G:.*]] = "xgpu.in_domain"(%[[E]], %[[F]]) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 127], d1 in [0, 7], d0 + d1 * 128 in [1, 1022]>} : (index, index) -> i1
// CHECK-NEXT:    %[[H:.*]] = scf.if %[[G]] -> (tensor<4096xf32>) {
// CHECK-NEXT:      %[[I:.*]] = scf.for %arg2 = %[[A]] to %[[C]] step %[[B]] iter_args(%arg3 = %arg1) -> (tensor<4096xf32>) {
// CHECK-NEXT:        %[[J:.*]] = "xgpu.in_domain"(%[[E]], %[[F]], %arg2) {map = #xgpu.map<(d0, d1, d2) -> (), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3], d0 * 4 + d1 * 512 + d2 in [1, 4095]>} : (index, index, index) -> i1
// CHECK-NEXT:        %[[K:.*]] = "xgpu.apply_indexing"(%[[E]], %[[F]], %arg2) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1 * 512 + d2 - 1), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3]>} : (index, index, index) -> index
// CHECK-NEXT:        %[[L:.*]] = tensor.extract %arg0[%[[K]]] : tensor<4096xf32>
// CHECK-NEXT:        %[[M:.*]] = "xgpu.in_domain"(%[[E]], %[[F]], %arg2) {map = #xgpu.map<(d0, d1, d2) -> (), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3], d0 * 4 + d1 * 512 + d2 in [4095, 4095]>} : (index, index, index) -> i1
// CHECK-NEXT:        %[[N:.*]] = "xgpu.apply_indexing"(%[[E]], %[[F]], %arg2) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1 * 512 + d2 + 1), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3]>} : (index, index, index) -> index
// CHECK-NEXT:        %[[O:.*]] = tensor.extract %arg0[%[[N]]] : tensor<4096xf32>
// CHECK-NEXT:        %[[P:.*]] = arith.addf %[[L]], %[[O]] : f32
// CHECK-NEXT:        %[[Q:.*]] = "xgpu.apply_indexing"(%[[E]], %[[F]], %arg2) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1 * 512 + d2), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3]>} : (index, index, index) -> index
// CHECK-NEXT:        %[[R:.*]] = tensor.insert %[[P]] into %arg3[%[[Q]]] : tensor<4096xf32>
// CHECK-NEXT:        scf.yield %[[R]] : tensor<4096xf32>
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[I]] : tensor<4096xf32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[I]] = scf.for %arg2 = %[[A]] to %[[C]] step %[[B]] iter_args(%arg3 = %arg1) -> (tensor<4096xf32>) {
// CHECK-NEXT:        %[[J]] = "xgpu.in_domain"(%[[E]], %[[F]], %arg2) {map = #xgpu.map<(d0, d1, d2) -> (), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3], d0 * 4 + d1 * 512 + d2 in [1, 4095]>} : (index, index, index) -> i1
// CHECK-NEXT:        %[[K]] = scf.if %[[J]] -> (f32) {
// CHECK-NEXT:          %[[S:.*]] = "xgpu.apply_indexing"(%[[E]], %[[F]], %arg2) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1 * 512 + d2 - 1), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3]>} : (index, index, index) -> index
// CHECK-NEXT:          %[[L]] = tensor.extract %arg0[%[[S]]] : tensor<4096xf32>
// CHECK-NEXT:          scf.yield %[[L]] : f32
// CHECK-NEXT:        } else {
// CHECK-NEXT:          scf.yield %[[D]] : f32
// CHECK-NEXT:        }
// CHECK-NEXT:        %[[M]] = "xgpu.in_domain"(%[[E]], %[[F]], %arg2) {map = #xgpu.map<(d0, d1, d2) -> (), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3], d0 * 4 + d1 * 512 + d2 in [4095, 4095]>} : (index, index, index) -> i1
// CHECK-NEXT:        %[[N]] = scf.if %[[M]] -> (f32) {
// CHECK-NEXT:          scf.yield %[[D]] : f32
// CHECK-NEXT:        } else {
// CHECK-NEXT:          %[[S]] = "xgpu.apply_indexing"(%[[E]], %[[F]], %arg2) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1 * 512 + d2 + 1), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3]>} : (index, index, index) -> index
// CHECK-NEXT:          %[[L]] = tensor.extract %arg0[%[[S]]] : tensor<4096xf32>
// CHECK-NEXT:          scf.yield %[[L]] : f32
// CHECK-NEXT:        }
// CHECK-NEXT:        %[[P]] = arith.addf %[[K]], %[[N]] : f32
// CHECK-NEXT:        %[[Q]] = "xgpu.apply_indexing"(%[[E]], %[[F]], %arg2) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1 * 512 + d2), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3]>} : (index, index, index) -> index
// CHECK-NEXT:        %[[R]] = tensor.insert %[[P]] into %arg3[%[[Q]]] : tensor<4096xf32>
// CHECK-NEXT:        scf.yield %[[R]] : tensor<4096xf32>
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[I]] : tensor<4096xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[H]] : tensor<4096xf32>
func.func @main(%t: tensor<4096xf32>, %out: tensor<4096xf32>) -> tensor<4096xf32> attributes {xgpu.emitter = "loop"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %n = gpu.thread_id x upper_bound 128
  %b = gpu.block_id x upper_bound 8
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%o = %out) -> (tensor<4096xf32>) {
    %in = "xgpu.in_domain"(%n, %b, %s) {map = #xgpu.map<(d0, d1, d2) -> (), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3], d0 * 4 + d1 * 512 + d2 in [1, 4095]>} : (index, index, index) -> i1
    %x = scf.if %in -> (f32) {
      %k = "xgpu.apply_indexing"(%n, %b, %s) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1 * 512 + d2 - 1), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3]>} : (index, index, index) -> index
      %e = tensor.extract %t[%k] : tensor<4096xf32>
      scf.yield %e : f32
    } else {
      scf.yield %zero : f32
    }
    %last = "xgpu.in_domain"(%n, %b, %s) {map = #xgpu.map<(d0, d1, d2) -> (), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3], d0 * 4 + d1 * 512 + d2 in [4095, 4095]>} : (index, index, index) -> i1
    %y = scf.if %last -> (f32) {
      scf.yield %zero : f32
    } else {
      %k = "xgpu.apply_indexing"(%n, %b, %s) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1 * 512 + d2 + 1), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3]>} : (index, index, index) -> index
      %e = tensor.extract %t[%k] : tensor<4096xf32>
      scf.yield %e : f32
    }
    %sum = arith.addf %x, %y : f32
    %l = "xgpu.apply_indexing"(%n, %b, %s) {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1 * 512 + d2), d0 in [0, 127], d1 in [0, 7], d2 in [0, 3]>} : (index, index, index) -> index
    %new = tensor.insert %sum into %o[%l] : tensor<4096xf32>
    scf.yield %new : tensor<4096xf32>
  }
  return %r : tensor<4096xf32>
}

// -----

// Rows of 16 threads: no warp is inside as a whole, and all would run both versions.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096xf32>, %arg1: tensor<4096xf32>) -> tensor<4096xf32> attributes {xgpu.emitter = "loop"}
// CHECK-NEXT:    %[[A:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[B:.*]] = gpu.thread_id x upper_bound 128
// CHECK-NEXT:    %[[C:.*]] = gpu.block_id x upper_bound 32
// CHECK-NEXT:    %[[D:.*]] = "xgpu.in_domain"(%[[B]], %[[C]]) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 127], d1 in [0, 31], (d0 + d1 * 128) mod 16 in [1, 15]>} : (index, index) -> i1
// CHECK-NEXT:    %[[E:.*]] = scf.if %[[D]] -> (f32) {
// CHECK-NEXT:      %[[F:.*]] = "xgpu.apply_indexing"(%[[B]], %[[C]]) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128 - 1), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
// CHECK-NEXT:      %[[G:.*]] = tensor.extract %arg0[%[[F]]] : tensor<4096xf32>
// CHECK-NEXT:      scf.yield %[[G]] : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[A]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[H:.*]] = "xgpu.apply_indexing"(%[[B]], %[[C]]) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
// CHECK-NEXT:    %[[I:.*]] = tensor.insert %[[E]] into %arg1[%[[H]]] : tensor<4096xf32>
// CHECK-NEXT:    return %[[I]] : tensor<4096xf32>
func.func @main(%t: tensor<4096xf32>, %out: tensor<4096xf32>) -> tensor<4096xf32> attributes {xgpu.emitter = "loop"} {
  %zero = arith.constant 0.0 : f32
  %n = gpu.thread_id x upper_bound 128
  %b = gpu.block_id x upper_bound 32
  %in = "xgpu.in_domain"(%n, %b) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 127], d1 in [0, 31], (d0 + d1 * 128) mod 16 in [1, 15]>} : (index, index) -> i1
  %x = scf.if %in -> (f32) {
    %k = "xgpu.apply_indexing"(%n, %b) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128 - 1), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
    %e = tensor.extract %t[%k] : tensor<4096xf32>
    scf.yield %e : f32
  } else {
    scf.yield %zero : f32
  }
  %l = "xgpu.apply_indexing"(%n, %b) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
  %new = tensor.insert %x into %out[%l] : tensor<4096xf32>
  return %new : tensor<4096xf32>
}

// -----

// Kernels of other families stay as they are.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096xf32>, %arg1: tensor<4096xf32>) -> tensor<4096xf32> attributes {xgpu.emitter = "transpose"}
// CHECK-NEXT:    %[[A:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[B:.*]] = gpu.thread_id x upper_bound 128
// CHECK-NEXT:    %[[C:.*]] = gpu.block_id x upper_bound 32
// CHECK-NEXT:    %[[D:.*]] = "xgpu.in_domain"(%[[B]], %[[C]]) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 127], d1 in [0, 31], d0 + d1 * 128 in [1, 4095]>} : (index, index) -> i1
// CHECK-NEXT:    %[[E:.*]] = scf.if %[[D]] -> (f32) {
// CHECK-NEXT:      %[[F:.*]] = "xgpu.apply_indexing"(%[[B]], %[[C]]) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128 - 1), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
// CHECK-NEXT:      %[[G:.*]] = tensor.extract %arg0[%[[F]]] : tensor<4096xf32>
// CHECK-NEXT:      scf.yield %[[G]] : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[A]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[H:.*]] = "xgpu.apply_indexing"(%[[B]], %[[C]]) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
// CHECK-NEXT:    %[[I:.*]] = tensor.insert %[[E]] into %arg1[%[[H]]] : tensor<4096xf32>
// CHECK-NEXT:    return %[[I]] : tensor<4096xf32>
func.func @main(%t: tensor<4096xf32>, %out: tensor<4096xf32>) -> tensor<4096xf32> attributes {xgpu.emitter = "transpose"} {
  %zero = arith.constant 0.0 : f32
  %n = gpu.thread_id x upper_bound 128
  %b = gpu.block_id x upper_bound 32
  %in = "xgpu.in_domain"(%n, %b) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 127], d1 in [0, 31], d0 + d1 * 128 in [1, 4095]>} : (index, index) -> i1
  %x = scf.if %in -> (f32) {
    %k = "xgpu.apply_indexing"(%n, %b) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128 - 1), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
    %e = tensor.extract %t[%k] : tensor<4096xf32>
    scf.yield %e : f32
  } else {
    scf.yield %zero : f32
  }
  %l = "xgpu.apply_indexing"(%n, %b) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
  %new = tensor.insert %x into %out[%l] : tensor<4096xf32>
  return %new : tensor<4096xf32>
}

// -----

// What holds for the first thread of the first block alone holds for no other thread: they are together not at 0.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096xf32>, %arg1: tensor<4096xf32>) -> tensor<4096xf32> attributes {xgpu.emitter = "loop"}
// CHECK-NEXT:    %[[A:.*]] = gpu.thread_id x upper_bound 128
// CHECK-NEXT:    %[[B:.*]] = gpu.block_id x upper_bound 32
// CHECK-NEXT:    %[[C:.*]] = arith.constant 4095 : index
// CHECK-NEXT:    %[[D:.*]] = "xgpu.in_domain"(%[[A]], %[[B]]) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 127], d1 in [0, 31], d0 in [0, 0], d1 in [0, 0]>} : (index, index) -> i1
// CHECK-NEXT:    %[[E:.*]] = "xgpu.in_domain"(%[[A]], %[[B]]) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 127], d1 in [0, 31], d0 + d1 in [1, 158]>} : (index, index) -> i1
// CHECK-NEXT:    %[[F:.*]] = scf.if %[[E]] -> (tensor<4096xf32>) {
// CHECK-NEXT:      %[[G:.*]] = "xgpu.apply_indexing"(%[[A]], %[[B]]) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128 - 1), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
// CHECK-NEXT:      %[[H:.*]] = tensor.extract %arg0[%[[G]]] : tensor<4096xf32>
// CHECK-NEXT:      %[[I:.*]] = "xgpu.apply_indexing"(%[[A]], %[[B]]) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
// CHECK-NEXT:      %[[J:.*]] = tensor.insert %[[H]] into %arg1[%[[I]]] : tensor<4096xf32>
// CHECK-NEXT:      scf.yield %[[J]] : tensor<4096xf32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[G]] = scf.if %[[D]] -> (f32) {
// CHECK-NEXT:        %[[H]] = tensor.extract %arg0[%[[C]]] : tensor<4096xf32>
// CHECK-NEXT:        scf.yield %[[H]] : f32
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %[[K:.*]] = "xgpu.apply_indexing"(%[[A]], %[[B]]) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128 - 1), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
// CHECK-NEXT:        %[[H]] = tensor.extract %arg0[%[[K]]] : tensor<4096xf32>
// CHECK-NEXT:        scf.yield %[[H]] : f32
// CHECK-NEXT:      }
// CHECK-NEXT:      %[[I]] = "xgpu.apply_indexing"(%[[A]], %[[B]]) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
// CHECK-NEXT:      %[[J]] = tensor.insert %[[G]] into %arg1[%[[I]]] : tensor<4096xf32>
// CHECK-NEXT:      scf.yield %[[J]] : tensor<4096xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[F]] : tensor<4096xf32>
func.func @main(%t: tensor<4096xf32>, %out: tensor<4096xf32>) -> tensor<4096xf32> attributes {xgpu.emitter = "loop"} {
  %n = gpu.thread_id x upper_bound 128
  %b = gpu.block_id x upper_bound 32
  %c4095 = arith.constant 4095 : index
  %in = "xgpu.in_domain"(%n, %b) {map = #xgpu.map<(d0, d1) -> (), d0 in [0, 127], d1 in [0, 31], d0 in [0, 0], d1 in [0, 0]>} : (index, index) -> i1
  %x = scf.if %in -> (f32) {
    %e = tensor.extract %t[%c4095] : tensor<4096xf32>
    scf.yield %e : f32
  } else {
    %k = "xgpu.apply_indexing"(%n, %b) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128 - 1), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
    %e = tensor.extract %t[%k] : tensor<4096xf32>
    scf.yield %e : f32
  }
  %l = "xgpu.apply_indexing"(%n, %b) {map = #xgpu.map<(d0, d1) -> (d0 + d1 * 128), d0 in [0, 127], d1 in [0, 31]>} : (index, index) -> index
  %new = tensor.insert %x into %out[%l] : tensor<4096xf32>
  return %new : tensor<4096xf32>
}
