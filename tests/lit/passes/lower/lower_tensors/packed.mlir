// Elements of 2 and 4 bits share bytes: the first is in the lowest bits.

// RUN: xgpu-opt %s -p 'lower-tensors,canonicalize,cse' --split-input-file | FileCheck %s

// A vector of at least a byte is one integer.

// CHECK-LABEL: func.func @vectors
// CHECK-SAME:    %arg0: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.dereferenceable = 32 : i64
// CHECK-DAG:     %[[BYTE:.*]] = arith.shrui {{.*}}, %c1_i32 : i32
// CHECK:         %[[FROM:.*]] = llvm.getelementptr %arg0[%[[BYTE]]] {{.*}} -> !llvm.ptr<1>, i8
// CHECK:         %[[WORD:.*]] = llvm.load %[[FROM]] invariant {{[<{]alignment = 2( : i64)?[>}]}} : !llvm.ptr<1> -> i16
// CHECK:         %[[X0:.*]] = arith.trunci %[[WORD]] : i16 to i4
// CHECK:         %[[W1:.*]] = arith.shrui %[[WORD]], %c4_i16 : i16
// CHECK:         %[[X1:.*]] = arith.trunci %[[W1]] : i16 to i4
// CHECK:         vector.from_elements %[[X0]], %[[X1]], {{.*}} : vector<4xi4>
// CHECK:         %[[Y:.*]]:4 = vector.to_elements {{.*}} : vector<4xi4>
// CHECK:         %[[Y0:.*]] = arith.extui %[[Y]]#0 : i4 to i16
// CHECK:         %[[Y1:.*]] = arith.extui %[[Y]]#1 : i4 to i16
// CHECK:         %[[S1:.*]] = arith.shli %[[Y1]], %c4_i16 : i16
// CHECK:         %[[O1:.*]] = arith.ori %[[Y0]], %[[S1]] : i16
// CHECK:         llvm.store {{.*}}, {{.*}} {{[<{]alignment = 2( : i64)?[>}]}} : i16, !llvm.ptr<1>
func.func @vectors(%a: tensor<64xi4>, %b: tensor<64xi4>, %i: index) -> tensor<64xi4>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.index_bits = 32 : i64} {
  %zero = arith.constant 0 : i4
  %v = vector.transfer_read %a[%i], %zero {in_bounds = [true]} : tensor<64xi4>, vector<4xi4>
  %w = arith.addi %v, %v : vector<4xi4>
  %r = vector.transfer_write %w, %b[%i] {in_bounds = [true]} : vector<4xi4>, tensor<64xi4>
  return %r : tensor<64xi4>
}

// -----

// One element is a part of a byte, which is read before it is written.

// CHECK-LABEL: func.func @elements
// CHECK-SAME:    llvm.dereferenceable = 3 : i64
// CHECK:         %[[BYTE:.*]] = arith.shrui %[[I:.*]], %c2_i32 : i32
// CHECK:         %[[FROM:.*]] = llvm.getelementptr %arg0[%[[BYTE]]]
// CHECK:         %[[READ:.*]] = llvm.load %[[FROM]] invariant {{[<{]alignment = 1( : i64)?[>}]}} : !llvm.ptr<1> -> i8
// CHECK:         %[[PLACE:.*]] = arith.andi %[[I]], %c3_i32 : i32
// CHECK:         %[[PLACE8:.*]] = arith.trunci %[[PLACE]] : i32 to i8
// CHECK:         %[[SHIFT:.*]] = arith.shli %[[PLACE8]], %c1_i8 : i8
// CHECK:         %[[DOWN:.*]] = arith.shrui %[[READ]], %[[SHIFT]] : i8
// CHECK:         %[[X:.*]] = arith.trunci %[[DOWN]] : i8 to i2
// CHECK:         %[[TO:.*]] = llvm.getelementptr %arg1[%[[BYTE]]]
// CHECK:         %[[MASK:.*]] = arith.shli %c3_i8, %[[SHIFT]] : i8
// CHECK:         %[[OLD:.*]] = llvm.load %[[TO]] {{[<{]alignment = 1( : i64)?[>}]}} : !llvm.ptr<1> -> i8
// CHECK:         %[[OTHERS:.*]] = arith.xori %[[MASK]], %c-1_i8 : i8
// CHECK:         %[[KEPT:.*]] = arith.andi %[[OLD]], %[[OTHERS]] : i8
// CHECK:         %[[WIDE:.*]] = arith.extui %[[X]] : i2 to i8
// CHECK:         %[[UP:.*]] = arith.shli %[[WIDE]], %[[SHIFT]] : i8
// CHECK:         %[[NEW:.*]] = arith.ori %[[KEPT]], %[[UP]] : i8
// CHECK:         llvm.store %[[NEW]], %[[TO]] {{[<{]alignment = 1( : i64)?[>}]}} : i8, !llvm.ptr<1>
func.func @elements(%a: tensor<9xi2>, %b: tensor<9xi2>, %i: index) -> tensor<9xi2>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.index_bits = 32 : i64} {
  %x = tensor.extract %a[%i] : tensor<9xi2>
  %r = tensor.insert %x into %b[%i] : tensor<9xi2>
  return %r : tensor<9xi2>
}

// -----

// Floats of 4 bits are read as integers; constants are packed like any other array.

// CHECK:         llvm.mlir.global private constant @{{.*}}(dense<[33, -1, 1]> : tensor<3xi8>)
// CHECK:         llvm.mlir.global private constant @[[TABLE:constant_[0-9a-f]+_global]](dense<[81, 3]> : tensor<2xi8>)
// CHECK-SAME:      : !llvm.array<2 x i8>
// CHECK-LABEL: func.func @floats
// CHECK:         %[[AT:.*]] = llvm.mlir.addressof @[[TABLE]] : !llvm.ptr<1>
// CHECK:         %[[CODE:.*]] = arith.trunci {{.*}} : i8 to i4
// CHECK:         arith.bitcast %[[CODE]] : i4 to f4E2M1FN
func.func @floats(%i: index) -> (f4E2M1FN, i4) {
  %t = arith.constant dense<[0.5, 3.0, 1.5]> : tensor<3xf4E2M1FN>
  %u = arith.constant dense<[1, 2, -1, -1, 1]> : tensor<5xi4>
  %x = tensor.extract %t[%i] : tensor<3xf4E2M1FN>
  %y = tensor.extract %u[%i] : tensor<5xi4>
  return %x, %y : f4E2M1FN, i4
}
