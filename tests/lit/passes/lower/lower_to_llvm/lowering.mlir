// RUN: xgpu-opt %s -p lower-to-llvm --split-input-file | FileCheck %s --check-prefixes=CHECK,NVVM
// RUN: xgpu-opt %s -p 'lower-to-llvm{target=host}' --split-input-file | FileCheck %s --check-prefixes=CHECK,HOST

// A kernel: thread and block numbers are registers with a range, or parameters on the host.

// NVVM-LABEL:  llvm.func @kernel(%arg0: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias})
// HOST-LABEL:  llvm.func @kernel(%arg0: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias}, %arg1: i32, %arg2: i32, %arg3: i32, %arg4: i32, %arg5: i32, %arg6: i32)
// CHECK-SAME:    xgpu.block = array<i64: 128, 1, 1>
// CHECK-SAME:    xgpu.kernel
// NVVM-NEXT:     %[[T:.*]] = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
// NVVM-NEXT:     %[[B:.*]] = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 7> : i32
// CHECK:         %[[ZERO:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK:         %[[SIZE:.*]] = llvm.mlir.constant(128 : i32) : i32
// NVVM:          %[[S:.*]] = llvm.mul %[[B]], %[[SIZE]] {xgpu.flags = "nsw nuw"} : i32
// NVVM:          %[[I:.*]] = llvm.add %[[S]], %[[T]] : i32
// HOST:          %[[S:.*]] = llvm.mul %arg4, %[[SIZE]] {xgpu.flags = "nsw nuw"} : i32
// HOST:          %[[I:.*]] = llvm.add %[[S]], %arg1 : i32
// CHECK:         llvm.getelementptr %arg0[%[[I]]] {xgpu.flags = "inbounds"}
// HOST-SAME:     (!llvm.ptr, i32) -> !llvm.ptr, f32
// CHECK:         llvm.getelementptr %arg0[%[[ZERO]]]
// CHECK:         llvm.return
func.func @kernel(%p: !llvm.ptr<1> {llvm.noalias, llvm.align = 16 : i64}) attributes {xgpu.kernel,
    xgpu.index_bits = 32 : i64, xgpu.block = array<i64: 128, 1, 1>, xgpu.grid = array<i64: 7, 1, 1>} {
  %t = gpu.thread_id x upper_bound 128
  %b = gpu.block_id x
  %z = gpu.block_id y
  %n = gpu.block_dim x
  %s = arith.muli %b, %n overflow<nsw, nuw> : index
  %i = arith.addi %s, %t : index
  %j = arith.index_cast %i : index to i32
  %q = "llvm.getelementptr"(%p, %j) <{elem_type = f32, rawConstantIndices = array<i32: -2147483648>}>
      {xgpu.flags = "inbounds"} : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>
  %k = arith.index_cast %z : index to i32
  %r = "llvm.getelementptr"(%p, %k) <{elem_type = f32, rawConstantIndices = array<i32: -2147483648>}>
      : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>
  return
}

// -----

// Wide indices, and casts that then mean something.

// CHECK-LABEL: llvm.func internal @wide(%arg0: i64, %arg1: i32) -> i64
// CHECK-NEXT:    %[[W:.*]] = llvm.sext %arg1 : i32 to i64
// CHECK-NEXT:    %[[U:.*]] = llvm.zext %arg1 : i32 to i64
// CHECK-NEXT:    %[[N:.*]] = llvm.trunc %arg0 : i64 to i32
// CHECK-NEXT:    %[[C:.*]] = llvm.mlir.constant(8589934592 : i64) : i64
func.func private @wide(%i: index, %x: i32) -> index attributes {xgpu.index_bits = 64 : i64} {
  %w = arith.index_cast %x : i32 to index
  %u = arith.index_castui %x : i32 to index
  %n = arith.index_cast %i : index to i32
  %c = arith.constant 8589934592 : index
  %a = arith.addi %w, %c : index
  return %a : index
}

// -----

// Flags and fast-math go along; predicates keep their meaning.

// CHECK-LABEL: llvm.func internal @flags
// CHECK-NEXT:    llvm.fadd %arg0, %arg0 {{.*}}fastmath<nnan, contract>{{.*}} : f32
// CHECK-NEXT:    llvm.fmul %arg0, %arg0 : f32
// CHECK-NEXT:    llvm.udiv exact %arg1, %arg1 : i32
// CHECK-NEXT:    llvm.zext nneg %arg1 : i32 to i64
// CHECK-NEXT:    llvm.icmp "ule" %arg1, %arg1 : i32
// CHECK-NEXT:    llvm.fcmp "une" %arg0, %arg0 : f32
// CHECK-NEXT:    llvm.intr.maximum(%arg0, %arg0) : (f32, f32) -> f32
// CHECK-NEXT:    llvm.intr.maxnum(%arg0, %arg0) : (f32, f32) -> f32
// CHECK-NEXT:    llvm.intr.smax(%arg1, %arg1) : (i32, i32) -> i32
// CHECK-NEXT:    "llvm.intr.ctlz"(%arg1) <{is_zero_poison = false}> : (i32) -> i32
// CHECK-NEXT:    llvm.intr.fma(%arg0, %arg0, %arg0) : (f32, f32, f32) -> f32
func.func private @flags(%x: f32, %i: i32) {
  %a = "arith.addf"(%x, %x) <{fastmath = #arith.fastmath<nnan, contract>}> : (f32, f32) -> f32
  %b = arith.mulf %x, %x : f32
  %c = "arith.divui"(%i, %i) <{isExact}> : (i32, i32) -> i32
  %d = "arith.extui"(%i) <{nonNeg}> : (i32) -> i64
  %e = arith.cmpi ule, %i, %i : i32
  %f = arith.cmpf une, %x, %x : f32
  %g = arith.maximumf %x, %x : f32
  %h = arith.maxnumf %x, %x : f32
  %j = arith.maxsi %i, %i : i32
  %k = math.ctlz %i : i32
  %l = math.fma %x, %x, %x : f32
  return
}

// -----

// Functions are internal; small ones are inlined, but not one that is seldom run; several results are a struct.

// CHECK-LABEL: llvm.func @calls
// CHECK:         %[[S:.*]] = llvm.call @pair(%arg0) : (f32) -> !llvm.struct<(f32, i1)>
// CHECK-NEXT:    %[[X:.*]] = llvm.extractvalue %[[S]][0]
// CHECK-NEXT:    llvm.extractvalue %[[S]][1]
// CHECK-NEXT:    %[[Y:.*]] = llvm.call @one(%[[X]]) : (f32) -> f32
// CHECK-NEXT:    llvm.call @one(%[[Y]])
// CHECK:       llvm.func internal @pair(%arg0: f32) -> !llvm.struct<(f32, i1)> attributes {always_inline} {
// CHECK:         llvm.return %{{.*}} : !llvm.struct<(f32, i1)>
// CHECK:       llvm.func internal @one(%arg0: f32) -> f32 attributes {xgpu.cold, no_inline}
func.func @calls(%x: f32) attributes {xgpu.kernel} {
  %a:2 = func.call @pair(%x) : (f32) -> (f32, i1)
  %b = func.call @one(%a#0) : (f32) -> f32
  %c = func.call @one(%b) : (f32) -> f32
  return
}
func.func private @pair(%x: f32) -> (f32, i1) {
  %c = arith.cmpf ogt, %x, %x : f32
  return %x, %c : f32, i1
}
func.func private @one(%x: f32) -> f32 attributes {xgpu.cold} {
  return %x : f32
}

// -----

// Branches keep the values they pass and their loop annotation.

// CHECK:       #[[LOOP:loop_annotation.*]] = #llvm.loop_annotation<unroll = #{{.*}}>
// CHECK-LABEL: llvm.func internal @branches(%arg0: i32, %arg1: i1)
// CHECK-NEXT:    llvm.br ^[[BODY:.*]](%arg0 : i32)
// CHECK-NEXT:  ^[[BODY]](%[[I:.*]]: i32):
// CHECK-NEXT:    %[[J:.*]] = llvm.add %[[I]], %[[I]] : i32
// CHECK-NEXT:    llvm.cond_br %arg1, ^[[BODY]](%[[J]] : i32), ^{{.*}}#[[LOOP]]
func.func private @branches(%n: index, %c: i1) attributes {xgpu.index_bits = 32 : i64} {
  cf.br ^body(%n : index)
^body(%i: index):
  %j = arith.addi %i, %i : index
  cf.cond_br %c, ^body(%j : index), ^end {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
^end:
  return
}

// -----

// Vectors of one dimension.

// CHECK-LABEL: llvm.func internal @vectors
// CHECK:         llvm.extractelement %arg0[%arg1 : i64] : vector<4xf32>
// CHECK:         %[[TWO:.*]] = llvm.mlir.constant(2 : i32) : i32
// CHECK:         llvm.insertelement %{{.*}}, %arg0[%[[TWO]] : i32] : vector<4xf32>
// CHECK:         %[[S:.*]] = llvm.shufflevector %arg0, %arg0 [2, 3] : vector<4xf32>
// CHECK:         %[[W:.*]] = llvm.shufflevector %[[S]], %[[S]] [0, 1, -1, -1] : vector<2xf32>
// CHECK:         llvm.shufflevector %arg0, %[[W]] [0, 4, 5, 3] : vector<4xf32>
// CHECK:         %[[P:.*]] = llvm.mlir.poison : vector<4xf32>
// CHECK:         llvm.shufflevector %{{.*}}, %{{.*}} [0, 0, 0, 0] : vector<4xf32>
func.func private @vectors(%v: vector<4xf32>, %i: index) -> vector<4xf32> {
  %x = vector.extract %v[%i] : f32 from vector<4xf32>
  %w = vector.insert %x, %v[2] : f32 into vector<4xf32>
  %s = "vector.extract_strided_slice"(%v) <{offsets = [2], sizes = [2], strides = [1]}>
      : (vector<4xf32>) -> vector<2xf32>
  %t = "vector.insert_strided_slice"(%s, %v) <{offsets = [1], strides = [1]}>
      : (vector<2xf32>, vector<4xf32>) -> vector<4xf32>
  %b = vector.broadcast %x : f32 to vector<4xf32>
  return %b : vector<4xf32>
}

// -----

// The host has one address space.

// NVVM:        llvm.mlir.global private constant @table(dense<1.000000e+00> : tensor<2xf32>) {addr_space = 4 : i32
// HOST:        llvm.mlir.global private constant @table(dense<1.000000e+00> : tensor<2xf32>) {addr_space = 0 : i32
// CHECK-LABEL: llvm.func internal @spaces
// NVVM-NEXT:     llvm.mlir.addressof @table : !llvm.ptr<4>
// NVVM-NEXT:     llvm.addrspacecast %{{.*}} : !llvm.ptr<4> to !llvm.ptr
// HOST-NEXT:     %[[P:.*]] = llvm.mlir.addressof @table : !llvm.ptr{{$}}
// HOST-NEXT:     llvm.return %[[P]] : !llvm.ptr
llvm.mlir.global private constant @table(dense<1.0> : tensor<2xf32>) {addr_space = 4 : i32} : !llvm.array<2 x f32>
func.func private @spaces() -> !llvm.ptr {
  %p = llvm.mlir.addressof @table : !llvm.ptr<4>
  %q = llvm.addrspacecast %p : !llvm.ptr<4> to !llvm.ptr
  return %q : !llvm.ptr
}
