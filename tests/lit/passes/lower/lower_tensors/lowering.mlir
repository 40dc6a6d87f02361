// RUN: xgpu-opt %s -p lower-tensors --split-input-file | FileCheck %s

// Parameters become pointers; an input is read-only and its loads invariant; the result vanishes.

// CHECK-LABEL: func.func @scalar(
// CHECK-SAME:    %[[A:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.dereferenceable = 32 : i64, llvm.noalias, llvm.readonly},
// CHECK-SAME:    %[[B:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.dereferenceable = 32 : i64, llvm.noalias},
// CHECK-SAME:    %[[I:.*]]: index {xgpu.range = array<i64: 0, 7>})
// CHECK-NEXT:    %[[N:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK-NEXT:    %[[P:.*]] = llvm.getelementptr %[[A]][%[[N]]] {xgpu.flags = "inbounds"} : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
// CHECK-NEXT:    %[[X:.*]] = llvm.load %[[P]] invariant {{.*}}alignment = 4{{.*}} : !llvm.ptr<1> -> f32
// CHECK-NEXT:    %[[M:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK-NEXT:    %[[Q:.*]] = llvm.getelementptr %[[B]][%[[M]]] {xgpu.flags = "inbounds"} : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
// CHECK-NEXT:    llvm.store %[[X]], %[[Q]] {{.*}}alignment = 4{{.*}} : f32, !llvm.ptr<1>
// CHECK-NEXT:    return{{$}}
func.func @scalar(%a: tensor<8xf32>, %b: tensor<8xf32>, %i: index {xgpu.range = array<i64: 0, 7>}) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.index_bits = 32 : i64} {
  %x = tensor.extract %a[%i] : tensor<8xf32>
  %r = tensor.insert %x into %b[%i] : tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Vectors are read and written at their whole size's alignment, 16 bytes at most. An output that is read is not invariant.

// CHECK-LABEL: func.func @vectors
// CHECK:         arith.index_cast {{.*}} : index to i64
// CHECK:         llvm.load %{{[0-9]+}} invariant {{.*}}alignment = 16{{.*}} -> vector<8xf32>
// CHECK:         llvm.load %{{[0-9]+}} {{[^i].*}}alignment = 8{{.*}} -> vector<4xbf16>
// CHECK-NOT:     tensor
// CHECK:         llvm.store {{.*}}alignment = 8{{.*}} : vector<4xbf16>
func.func @vectors(%a: tensor<64xf32>, %b: tensor<64xbf16>, %i: index) -> (tensor<64xbf16>, vector<8xf32>)
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
  %z = arith.constant 0.0 : f32
  %y = arith.constant 0.0 : bf16
  %v = vector.transfer_read %a[%i], %z {in_bounds = [true]} : tensor<64xf32>, vector<8xf32>
  %w = vector.transfer_read %b[%i], %y {in_bounds = [true]} : tensor<64xbf16>, vector<4xbf16>
  %r = vector.transfer_write %w, %b[%i] {in_bounds = [true]} : vector<4xbf16>, tensor<64xbf16>
  return %r, %v : tensor<64xbf16>, vector<8xf32>
}

// -----

// A flag is a byte, and any byte but 0 is true; an 8-bit float is the byte that it is.

// CHECK-LABEL: func.func @bytes
// CHECK:         %[[B:.*]] = llvm.load {{.*}} -> i8
// CHECK:         %[[Z:.*]] = arith.constant 0 : i8
// CHECK:         %[[C:.*]] = arith.cmpi ne, %[[B]], %[[Z]] : i8
// CHECK:         %[[V:.*]] = llvm.load {{.*}}alignment = 4{{.*}} -> vector<4xi8>
// CHECK:         arith.cmpi ne, %[[V]], %{{.*}} : vector<4xi8>
// CHECK:         %[[F:.*]] = llvm.load {{.*}} -> i8
// CHECK-NEXT:    %[[X:.*]] = arith.bitcast %[[F]] : i8 to f8E4M3FN
// CHECK:         %[[E:.*]] = arith.extui %[[C]] : i1 to i8
// CHECK:         llvm.store %[[E]]
// CHECK:         %[[Y:.*]] = arith.bitcast %[[X]] : f8E4M3FN to i8
// CHECK:         llvm.store %[[Y]]
func.func @bytes(%a: tensor<8xi1>, %b: tensor<8xf8E4M3FN>, %c: tensor<8xi1>, %d: tensor<8xf8E4M3FN>, %i: index)
    -> (tensor<8xi1>, tensor<8xf8E4M3FN>) attributes {xgpu.kernel, xgpu.inputs = 2 : i64} {
  %no = arith.constant false
  %x = tensor.extract %a[%i] : tensor<8xi1>
  %v = vector.transfer_read %a[%i], %no {in_bounds = [true]} : tensor<8xi1>, vector<4xi1>
  %y = tensor.extract %b[%i] : tensor<8xf8E4M3FN>
  %r = tensor.insert %x into %c[%i] : tensor<8xi1>
  %s = tensor.insert %y into %d[%i] : tensor<8xf8E4M3FN>
  return %r, %s : tensor<8xi1>, tensor<8xf8E4M3FN>
}

// -----

// Tensors that loops and conditionals hand on vanish; what else they carry stays.

// CHECK-LABEL: func.func @carried
// CHECK-SAME:    %[[A:.*]]: !llvm.ptr<1> {{{[^}]*}}}, %[[B:.*]]: !llvm.ptr<1> {{{[^}]*}}},
// CHECK:         %[[S:.*]] = scf.for %{{.*}} iter_args(%[[X:.*]] = %{{.*}}) -> (f32) {
// CHECK:           scf.if %{{.*}} {
// CHECK:             llvm.getelementptr %[[B]]
// CHECK:             llvm.store
// CHECK:           }
// CHECK:           scf.yield %{{.*}} : f32
// CHECK:         }
// CHECK:         llvm.getelementptr %[[B]]
// CHECK:         llvm.store %[[S]]
// CHECK:         return{{$}}
func.func @carried(%a: tensor<8xf32>, %b: tensor<8xf32>, %n: index, %c: i1) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %b, %x = %zero) -> (tensor<8xf32>, f32) {
    %e = tensor.extract %a[%i] : tensor<8xf32>
    %y = arith.addf %x, %e : f32
    %u = scf.if %c -> (tensor<8xf32>) {
      %v = tensor.insert %y into %t[%i] : tensor<8xf32>
      scf.yield %v : tensor<8xf32>
    } else {
      scf.yield %t : tensor<8xf32>
    }
    scf.yield %u, %y : tensor<8xf32>, f32
  }
  %s = tensor.insert %r#1 into %r#0[%c0] : tensor<8xf32>
  return %s : tensor<8xf32>
}

// -----

// Constants become globals named after what they hold, equal ones one; what a function is given is in global memory, and
// what threads read at different places: constant memory serves one address at a time.

// CHECK-DAG:   llvm.mlir.global private constant @[[GLOBAL:constant_[0-9a-f]*_global]](dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>) {addr_space = 1 : i32, alignment = 16 : i64} : !llvm.array<2 x f32>
// CHECK-DAG:   llvm.mlir.global private constant @[[FLAGS:constant_[0-9a-f]*]](dense<[1, 0]> : tensor<2xi8>) {addr_space = 4 : i32, alignment = 16 : i64} : !llvm.array<2 x i8>
// CHECK-DAG:   llvm.mlir.global private constant @[[TABLE:constant_[0-9a-f]*_global]](dense<[7, 8]> : tensor<2xi8>) {addr_space = 1 : i32, alignment = 16 : i64}
// CHECK-LABEL: func.func @constants
// CHECK:         %[[P:.*]] = llvm.mlir.addressof @[[GLOBAL]] : !llvm.ptr<1>
// CHECK:         %[[Q:.*]] = llvm.mlir.addressof @[[FLAGS]] : !llvm.ptr<4>
// CHECK:         %[[P2:.*]] = llvm.mlir.addressof @[[GLOBAL]] : !llvm.ptr<1>
// CHECK:         llvm.mlir.addressof @[[TABLE]] : !llvm.ptr<1>
// CHECK:         llvm.getelementptr %[[Q]][%{{.*}}] {{.*}} : (!llvm.ptr<4>, i64) -> !llvm.ptr<4>, i8
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<4> -> i8
// CHECK:         %[[R:.*]] = call @function(%[[P]], %arg0) : (!llvm.ptr<1>, index) -> f32
// CHECK:         %[[T:.*]] = call @function(%[[P2]], %arg0) : (!llvm.ptr<1>, index) -> f32
// CHECK-LABEL: func.func private @function(%arg0: !llvm.ptr<1>
// CHECK-SAME:    llvm.readonly
func.func @constants(%i: index) -> (f32, f32, i1, i8) attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[true, false]> : tensor<2xi1>
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %d = arith.constant dense<[7, 8]> : tensor<2xi8>
  %no = arith.constant false
  %block = gpu.block_id x
  %f = scf.for %j = %c0 to %c2 step %c1 iter_args(%all = %no) -> (i1) {
    %place = arith.addi %block, %j : index
    %g = tensor.extract %b[%place] : tensor<2xi1>
    %both = arith.andi %all, %g : i1
    scf.yield %both : i1
  }
  %thread = gpu.thread_id x
  %z = tensor.extract %d[%thread] : tensor<2xi8>
  %x = "xgpu.pure_call"(%a, %i) {callee = @function} : (tensor<2xf32>, index) -> f32
  %y = "xgpu.pure_call"(%c, %i) {callee = @function} : (tensor<2xf32>, index) -> f32
  return %x, %y, %f, %z : f32, f32, i1, i8
}
func.func private @function(%a: tensor<2xf32>, %i: index) -> f32 {
  %x = tensor.extract %a[%i] : tensor<2xf32>
  return %x : f32
}

// -----

// A table larger than constant memory has room for goes to global memory.

// CHECK:       llvm.mlir.global private constant @{{.*}} {addr_space = 1 : i32
// CHECK-LABEL: func.func @large
func.func @large(%i: index) -> f64 attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %a = arith.constant dense<1.0> : tensor<5000xf64>
  %x = tensor.extract %a[%i] : tensor<5000xf64>
  return %x : f64
}

// -----

// Scalar code is left alone.

// CHECK-LABEL: func.func private @scalars(%arg0: f32) -> f32 {
// CHECK-NEXT:    %[[X:.*]] = arith.addf %arg0, %arg0 : f32
// CHECK-NEXT:    return %[[X]] : f32
func.func private @scalars(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  return %y : f32
}
