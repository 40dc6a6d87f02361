// RUN: xgpu-opt %s -p lower-tensors --split-input-file | FileCheck %s

// A tile is a global in shared memory. A barrier stands where the tile was synchronized.

// CHECK-LABEL: llvm.mlir.global internal @k__tile_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<8 x f32>
// CHECK:       func.func @k(%[[A:.*]]: !llvm.ptr<1> {{{.*}}}, %[[B:.*]]: !llvm.ptr<1> {{{.*}}}, %[[I:.*]]: index, %[[J:.*]]: index)
// CHECK-NEXT:    %[[X:.*]] = llvm.mlir.addressof @k__tile_0 : !llvm.ptr<3>
// CHECK:         %[[V:.*]] = llvm.load %{{.*}} invariant
// CHECK:         %[[P:.*]] = llvm.getelementptr %[[X]][%{{.*}}] {xgpu.flags = "inbounds"} : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
// CHECK-NEXT:    llvm.store %[[V]], %[[P]] {{[<{]alignment = 4( : i64)?[>}]}} : f32, !llvm.ptr<3>
// CHECK-NEXT:    gpu.barrier
// CHECK:         %[[Q:.*]] = llvm.getelementptr %[[X]][%{{.*}}]
// CHECK-NEXT:    %[[W:.*]] = llvm.load %[[Q]] {{[<{]alignment = 4( : i64)?[>}]}} : !llvm.ptr<3> -> f32
// CHECK:         llvm.store %[[W]], %{{.*}} : f32, !llvm.ptr<1>
func.func @k(%a: tensor<8xf32>, %b: tensor<8xf32>, %i: index, %j: index) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xf32>
  %x = tensor.extract %a[%i] : tensor<8xf32>
  %u = tensor.insert %x into %t[%i] : tensor<8xf32>
  %s = "xgpu.sync_threads"(%u) : (tensor<8xf32>) -> tensor<8xf32>
  %y = tensor.extract %s[%j] : tensor<8xf32>
  %r = tensor.insert %y into %b[%i] : tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// A tile that loops and conditionals hand on, with barriers inside; a vector access of sixteen bytes.

// CHECK-LABEL: func.func @loop
// CHECK:         %[[T:.*]] = llvm.mlir.addressof @loop__tile_0 : !llvm.ptr<3>
// CHECK:         scf.for
// CHECK-NEXT:      scf.if
// CHECK:             llvm.store %{{.*}}, %{{.*}} {{[<{]alignment = 16( : i64)?[>}]}} : vector<4xf32>, !llvm.ptr<3>
// CHECK-NEXT:      }
// CHECK:           gpu.barrier
// CHECK-NEXT:    }
// CHECK:         llvm.load %{{.*}} {{[<{]alignment = 16( : i64)?[>}]}} : !llvm.ptr<3> -> vector<4xf32>
func.func @loop(%b: tensor<8xf32>, %n: index, %c: i1, %v: vector<4xf32>) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %l = scf.for %i = %n to %n step %n iter_args(%carried = %t) -> (tensor<64xf32>) {
    %w = scf.if %c -> (tensor<64xf32>) {
      %u = vector.transfer_write %v, %carried[%i] {in_bounds = [true]} : vector<4xf32>, tensor<64xf32>
      scf.yield %u : tensor<64xf32>
    } else {
      scf.yield %carried : tensor<64xf32>
    }
    %s = "xgpu.sync_threads"(%w) : (tensor<64xf32>) -> tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  %x = vector.transfer_read %l[%n], %zero {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>
  %r = vector.transfer_write %x, %b[%n] {in_bounds = [true]} : vector<4xf32>, tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Blocks that take different ways each have a tile for themselves, which they do not hand on.

// CHECK-LABEL: func.func @of_blocks
// CHECK:         %[[T:.*]] = llvm.mlir.addressof @of_blocks__tile_0 : !llvm.ptr<3>
// CHECK:         scf.if
// CHECK:           gpu.barrier
// CHECK:         } else {
// CHECK-NOT:       gpu.barrier
// CHECK:         }
func.func @of_blocks(%b: tensor<8xf32>, %i: index, %j: index, %v: f32) -> tensor<8xf32>
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xf32>
  %block = gpu.block_id x
  %first = arith.constant 3 : index
  %c = arith.cmpi ult, %block, %first : index
  %r = scf.if %c -> (tensor<8xf32>) {
    %u = tensor.insert %v into %t[%i] : tensor<8xf32>
    %s = "xgpu.sync_threads"(%u) : (tensor<8xf32>) -> tensor<8xf32>
    %y = tensor.extract %s[%j] : tensor<8xf32>
    %w = tensor.insert %y into %b[%i] : tensor<8xf32>
    scf.yield %w : tensor<8xf32>
  } else {
    %u = tensor.insert %v into %t[%j] : tensor<8xf32>
    %y = tensor.extract %u[%j] : tensor<8xf32>
    %w = tensor.insert %y into %b[%j] : tensor<8xf32>
    scf.yield %w : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// Elements of less than a byte take one in a tile, so that each thread can write its own.

// CHECK-LABEL: llvm.mlir.global internal @small__tile_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<8 x i8>
// CHECK-NEXT:  llvm.mlir.global internal @small__tile_1() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<8 x i8>
// CHECK-NEXT:  llvm.mlir.global internal @small__tile_2() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<8 x i8>
// CHECK:         %[[X:.*]] = arith.extui %{{.*}} : i4 to i8
// CHECK:         llvm.store %[[X]], %{{.*}} {{[<{]alignment = 1( : i64)?[>}]}} : i8, !llvm.ptr<3>
// CHECK:         %[[F:.*]] = arith.bitcast %{{.*}} : f4E2M1FN to i4
// CHECK-NEXT:    %[[G:.*]] = arith.extui %[[F]] : i4 to i8
// CHECK:         llvm.store %[[G]], %{{.*}} {{[<{]alignment = 1( : i64)?[>}]}} : i8, !llvm.ptr<3>
// CHECK:         %[[B:.*]] = arith.extui %{{.*}} : i1 to i8
// CHECK:         llvm.store %[[B]], %{{.*}} {{[<{]alignment = 1( : i64)?[>}]}} : i8, !llvm.ptr<3>
// CHECK:         gpu.barrier
// CHECK:         %[[Y:.*]] = llvm.load %{{.*}} {{[<{]alignment = 1( : i64)?[>}]}} : !llvm.ptr<3> -> i8
// CHECK-NEXT:    %[[I4:.*]] = arith.trunci %[[Y]] : i8 to i4
// CHECK:         %[[Z:.*]] = llvm.load %{{.*}} {{[<{]alignment = 1( : i64)?[>}]}} : !llvm.ptr<3> -> i8
// CHECK-NEXT:    %[[T:.*]] = arith.trunci %[[Z]] : i8 to i4
// CHECK-NEXT:    %[[F4:.*]] = arith.bitcast %[[T]] : i4 to f4E2M1FN
// CHECK:         return %[[I4]], %[[F4]]
func.func @small(%i: index, %x: i4, %f: f4E2M1FN, %c: i1) -> (i4, f4E2M1FN) attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xi4>
  %u = "xgpu.allocate_shared"() : () -> tensor<8xf4E2M1FN>
  %v = "xgpu.allocate_shared"() : () -> tensor<8xi1>
  %t1 = tensor.insert %x into %t[%i] : tensor<8xi4>
  %u1 = tensor.insert %f into %u[%i] : tensor<8xf4E2M1FN>
  %v1 = tensor.insert %c into %v[%i] : tensor<8xi1>
  %s:3 = "xgpu.sync_threads"(%t1, %u1, %v1) : (tensor<8xi4>, tensor<8xf4E2M1FN>, tensor<8xi1>) -> (tensor<8xi4>, tensor<8xf4E2M1FN>, tensor<8xi1>)
  %y = tensor.extract %s#0[%i] : tensor<8xi4>
  %z = tensor.extract %s#1[%i] : tensor<8xf4E2M1FN>
  return %y, %z : i4, f4E2M1FN
}

// -----

// More than 48 KiB together: one array whose size the launch gives, and offsets in it.

// CHECK-LABEL: llvm.mlir.global external @large__shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK:       func.func @large
// CHECK-SAME:    xgpu.shared_bytes = 49168 : i64
// CHECK:         %[[S:.*]] = llvm.mlir.addressof @large__shared : !llvm.ptr<3>
// CHECK-NEXT:    %[[A:.*]] = llvm.getelementptr %[[S]][0]
// CHECK-NEXT:    %[[R:.*]] = llvm.mlir.addressof @large__shared : !llvm.ptr<3>
// CHECK-NEXT:    %[[B:.*]] = llvm.getelementptr %[[R]][16] {xgpu.flags = "inbounds"} : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK:         llvm.getelementptr %[[A]][%{{.*}}] {{.*}}, i16
// CHECK:         llvm.getelementptr %[[B]][%{{.*}}] {{.*}}, f32
func.func @large(%i: index, %x: i16, %y: f32) attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<3xi16>
  %u = "xgpu.allocate_shared"() : () -> tensor<12288xf32>
  %t1 = tensor.insert %x into %t[%i] : tensor<3xi16>
  %u1 = tensor.insert %y into %u[%i] : tensor<12288xf32>
  return
}

// -----

// Tiles that say where they begin may share memory; one that does not comes after them.

// CHECK-LABEL: llvm.mlir.global internal @placed__tile_0() {{.*}}xgpu.shared_offset = 64 : i64} : !llvm.array<16 x f32>
// CHECK-NEXT:  llvm.mlir.global internal @placed__tile_1() {{.*}}xgpu.shared_offset = 128 : i64} : !llvm.array<3 x i16>
// CHECK-NEXT:  llvm.mlir.global internal @placed__tile_2() {{.*}}xgpu.shared_offset = 0 : i64} : !llvm.array<32 x f32>
// CHECK:         llvm.mlir.addressof @placed__tile_0 : !llvm.ptr<3>
// CHECK:         llvm.mlir.addressof @placed__tile_1 : !llvm.ptr<3>
// CHECK:         llvm.mlir.addressof @placed__tile_2 : !llvm.ptr<3>
func.func @placed(%i: index, %x: i16, %y: f32) attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() {offset = 64 : i64} : () -> tensor<16xf32>
  %u = "xgpu.allocate_shared"() : () -> tensor<3xi16>
  %v = "xgpu.allocate_shared"() {offset = 0 : i64} : () -> tensor<32xf32>
  %t1 = tensor.insert %y into %t[%i] : tensor<16xf32>
  %u1 = tensor.insert %x into %u[%i] : tensor<3xi16>
  %v1 = tensor.insert %y into %v[%i] : tensor<32xf32>
  return
}
