// RUN: xgpu-opt %s -p 'lower-tensors,canonicalize' --split-input-file | FileCheck %s

// What does not depend on the old element leaves the region; a difference is a sum.

// CHECK-LABEL: func.func @sums
// CHECK:         %[[Y:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %[[Y]] syncscope("device") monotonic {{[<{]alignment = 4( : i64)?[>}]}} : !llvm.ptr<1>, f32
// CHECK:         %[[N:.*]] = arith.subi %{{.*}}, %{{.*}} : i64
// CHECK:         llvm.atomicrmw add %{{.*}}, %[[N]] syncscope("device") monotonic {{[<{]alignment = 8( : i64)?[>}]}} : !llvm.ptr<1>, i64
// CHECK:         %[[H:.*]] = arith.negf %{{.*}} : bf16
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %[[H]] syncscope("device") monotonic {{[<{]alignment = 2( : i64)?[>}]}} : !llvm.ptr<1>, bf16
func.func @sums(%a: tensor<8xf32>, %b: tensor<8xi64>, %c: tensor<8xbf16>, %i: index, %x: f32, %n: i64, %h: bf16)
    -> (tensor<8xf32>, tensor<8xi64>, tensor<8xbf16>) attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: f32):
    %y = arith.mulf %x, %x : f32
    %new = arith.addf %y, %old : f32
    "xgpu.yield"(%new) : (f32) -> ()
  }) : (tensor<8xf32>, index) -> tensor<8xf32>
  %1 = "xgpu.atomic_rmw"(%b, %i) ({
  ^bb0(%old: i64):
    %new = arith.subi %old, %n : i64
    "xgpu.yield"(%new) : (i64) -> ()
  }) : (tensor<8xi64>, index) -> tensor<8xi64>
  %2 = "xgpu.atomic_rmw"(%c, %i) ({
  ^bb0(%old: bf16):
    %new = arith.subf %old, %h : bf16
    "xgpu.yield"(%new) : (bf16) -> ()
  }) : (tensor<8xbf16>, index) -> tensor<8xbf16>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xi64>, tensor<8xbf16>
}

// -----

// The difference the other way round is no sum: a loop.

// CHECK-LABEL: func.func @reverse_difference
// CHECK:         %[[P:.*]] = llvm.getelementptr
// CHECK:         %[[FIRST:.*]] = llvm.load %[[P]] atomic syncscope("device") monotonic {{[<{]alignment = 4( : i64)?[>}]}} : !llvm.ptr<1> -> i32
// CHECK-NEXT:    scf.while (%[[OLD:.*]] = %[[FIRST]]) : (i32) -> i32 {
// CHECK-NEXT:      %[[F:.*]] = arith.bitcast %[[OLD]] : i32 to f32
// CHECK-NEXT:      %[[D:.*]] = arith.subf %{{.*}}, %[[F]] : f32
// CHECK-NEXT:      %[[NEW:.*]] = arith.bitcast %[[D]] : f32 to i32
// CHECK-NEXT:      %[[CHANGED:.*]] = arith.cmpi ne, %[[NEW]], %[[OLD]] : i32
// CHECK-NEXT:      %[[R:.*]]:2 = scf.if %[[CHANGED]] -> (i32, i1) {
// CHECK-NEXT:        %[[PAIR:.*]] = llvm.cmpxchg %[[P]], %[[OLD]], %[[NEW]] syncscope("device") monotonic monotonic {{[<{]alignment = 4( : i64)?[>}]}}
// CHECK:           scf.condition(%[[R]]#1) %[[R]]#0 : i32
func.func @reverse_difference(%a: tensor<8xf32>, %i: index, %x: f32) -> tensor<8xf32> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: f32):
    %new = arith.subf %x, %old : f32
    "xgpu.yield"(%new) : (f32) -> ()
  }) : (tensor<8xf32>, index) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @integers
// CHECK:         llvm.atomicrmw max
// CHECK:         llvm.atomicrmw umin
// CHECK:         llvm.atomicrmw _xor
func.func @integers(%a: tensor<8xi32>, %i: index, %x: i32) -> tensor<8xi32> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: i32):
    %new = arith.maxsi %old, %x : i32
    "xgpu.yield"(%new) : (i32) -> ()
  }) : (tensor<8xi32>, index) -> tensor<8xi32>
  %1 = "xgpu.atomic_rmw"(%0, %i) ({
  ^bb0(%old: i32):
    %new = arith.minui %x, %old : i32
    "xgpu.yield"(%new) : (i32) -> ()
  }) : (tensor<8xi32>, index) -> tensor<8xi32>
  %2 = "xgpu.atomic_rmw"(%1, %i) ({
  ^bb0(%old: i32):
    %new = arith.xori %x, %old : i32
    "xgpu.yield"(%new) : (i32) -> ()
  }) : (tensor<8xi32>, index) -> tensor<8xi32>
  return %2 : tensor<8xi32>
}

// -----

// The old element plays no part: an undivided store, of the bits.

// CHECK-LABEL: func.func @overwriting
// CHECK:         %[[X:.*]] = arith.bitcast %{{.*}} : f16 to i16
// CHECK:         llvm.store %[[X]], %{{.*}} atomic syncscope("device") monotonic {{[<{]alignment = 2( : i64)?[>}]}} : i16, !llvm.ptr<1>
// CHECK:         %[[C:.*]] = arith.extui %{{.*}} : i1 to i8
// CHECK:         llvm.store %[[C]], %{{.*}} atomic syncscope("device") monotonic {{[<{]alignment = 1( : i64)?[>}]}} : i8, !llvm.ptr<1>
func.func @overwriting(%a: tensor<8xf16>, %b: tensor<8xi1>, %i: index, %x: f16, %c: i1) -> (tensor<8xf16>, tensor<8xi1>)
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: f16):
    "xgpu.yield"(%x) : (f16) -> ()
  }) : (tensor<8xf16>, index) -> tensor<8xf16>
  %1 = "xgpu.atomic_rmw"(%b, %i) ({
  ^bb0(%old: i1):
    "xgpu.yield"(%c) : (i1) -> ()
  }) : (tensor<8xi1>, index) -> tensor<8xi1>
  return %0, %1 : tensor<8xf16>, tensor<8xi1>
}

// -----

// Bitwise updates of less than a word are those of the word around, with an operand that changes no neighbour.

// CHECK-LABEL: func.func @bits
// CHECK:         %[[ADDRESS:.*]] = llvm.ptrtoint
// CHECK:         %[[IN:.*]] = arith.andi %[[ADDRESS]], %c3_i64
// CHECK:         %[[WORD:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK:         %[[X:.*]] = arith.extui %{{.*}} : i8 to i32
// CHECK:         %[[PLACED:.*]] = arith.shli %[[X]], %[[SHIFT:.*]] : i32
// CHECK:         %[[MASK:.*]] = arith.shli %c255_i32, %[[SHIFT]] : i32
// CHECK:         %[[REST:.*]] = arith.xori %[[MASK]], %c-1_i32 : i32
// CHECK:         %[[OPERAND:.*]] = arith.ori %[[PLACED]], %[[REST]] : i32
// CHECK:         llvm.atomicrmw _and %[[WORD]], %[[OPERAND]] syncscope("device") monotonic {{[<{]alignment = 4( : i64)?[>}]}} : !llvm.ptr<1>, i32
// CHECK:         %[[Y:.*]] = arith.extui %{{.*}} : i1 to i32
// CHECK:         %[[P:.*]] = arith.shli %[[Y]], %{{.*}} : i32
// CHECK:         llvm.atomicrmw _or %{{.*}}, %[[P]] syncscope("device")
func.func @bits(%a: tensor<8xi8>, %b: tensor<8xi1>, %i: index, %x: i8, %c: i1) -> (tensor<8xi8>, tensor<8xi1>)
    attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: i8):
    %new = arith.andi %old, %x : i8
    "xgpu.yield"(%new) : (i8) -> ()
  }) : (tensor<8xi8>, index) -> tensor<8xi8>
  %1 = "xgpu.atomic_rmw"(%b, %i) ({
  ^bb0(%old: i1):
    %new = arith.ori %old, %c : i1
    "xgpu.yield"(%new) : (i1) -> ()
  }) : (tensor<8xi1>, index) -> tensor<8xi1>
  return %0, %1 : tensor<8xi8>, tensor<8xi1>
}

// -----

// Part of a word: the loop is on the word. Of a packed element, the place in its byte counts too.

// CHECK-LABEL: func.func @parts
// CHECK:         %[[BYTE:.*]] = arith.shrui %{{.*}}, %c1_i64
// CHECK:         %[[P:.*]] = llvm.getelementptr %{{.*}}[%[[BYTE]]]
// CHECK:         llvm.ptrtoint %[[P]]
// CHECK:         %[[SHIFT:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK:         scf.while (%[[OLD:.*]] = %{{.*}}) : (i32) -> i32 {
// CHECK-NEXT:      %[[AT:.*]] = arith.shrui %[[OLD]], %[[SHIFT]] : i32
// CHECK-NEXT:      %[[X:.*]] = arith.trunci %[[AT]] : i32 to i4
// CHECK-NEXT:      %[[Y:.*]] = arith.addi %[[X]], %{{.*}} : i4
// CHECK:           %[[MASK:.*]] = arith.shli %c15_i32, %[[SHIFT]] : i32
// CHECK:           %[[NEW:.*]] = arith.ori
// CHECK:           llvm.cmpxchg %{{.*}}, %[[OLD]], %[[NEW]]
func.func @parts(%a: tensor<8xi4>, %i: index, %x: i4) -> tensor<8xi4> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: i4):
    %new = arith.addi %old, %x : i4
    "xgpu.yield"(%new) : (i4) -> ()
  }) : (tensor<8xi4>, index) -> tensor<8xi4>
  return %0 : tensor<8xi4>
}

// -----

// The maximum of floats is one of integers, chosen by the sign. NaN becomes the largest number without a sign; where
// memory holds NaN already, nothing happens.

// CHECK-LABEL: func.func @maximum
// CHECK:         %[[CODE:.*]] = llvm.load %[[P:.*]] atomic syncscope("device") monotonic
// CHECK-NEXT:    %[[OLD:.*]] = arith.bitcast %[[CODE]] : i32 to f32
// CHECK-NEXT:    %[[NAN:.*]] = arith.cmpf uno, %[[X:.*]], %[[X]] : f32
// CHECK-NEXT:    %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK-NEXT:    %[[XI:.*]] = arith.select %[[NAN]], %c2143289344_i32, %[[BITS]] : i32
// CHECK-NEXT:    %[[LESS:.*]] = arith.cmpf ule, %[[OLD]], %[[X]] : f32
// CHECK-NEXT:    %[[NUMBER:.*]] = arith.cmpf ord, %[[OLD]], %[[OLD]] : f32
// CHECK-NEXT:    %[[C:.*]] = arith.andi %[[LESS]], %[[NUMBER]] : i1
// CHECK-NEXT:    scf.if %[[C]] {
// CHECK-NEXT:      %[[NEGATIVE:.*]] = arith.cmpi slt, %[[XI]], %c0_i32 : i32
// CHECK-NEXT:      scf.if %[[NEGATIVE]] {
// CHECK-NEXT:        llvm.atomicrmw umin %[[P]], %[[XI]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        llvm.atomicrmw max %[[P]], %[[XI]]
func.func @maximum(%a: tensor<8xf32>, %i: index, %x: f32) -> tensor<8xf32> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: f32):
    %new = arith.maximumf %old, %x : f32
    "xgpu.yield"(%new) : (f32) -> ()
  }) : (tensor<8xf32>, index) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Where something else is written too, NaN with a sign may come at any time: a loop.

// CHECK-LABEL: func.func @maximum_among_others
// CHECK:         scf.while
// CHECK:           arith.maximumf
func.func @maximum_among_others(%a: tensor<8xf32>, %i: index, %x: f32) -> tensor<8xf32> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %u = tensor.insert %x into %a[%i] : tensor<8xf32>
  %0 = "xgpu.atomic_rmw"(%u, %i) ({
  ^bb0(%old: f32):
    %new = arith.maximumf %old, %x : f32
    "xgpu.yield"(%new) : (f32) -> ()
  }) : (tensor<8xf32>, index) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The parts of a complex number are added each on its own.

// CHECK-LABEL: func.func @complex
// CHECK:         %[[PAIR:.*]] = vector.from_elements %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %[[PAIR]] syncscope("device") monotonic {{[<{]alignment = 8( : i64)?[>}]}} : !llvm.ptr<1>, vector<2xf32>
func.func @complex(%a: tensor<8xi64>, %i: index, %x: f32, %y: f32) -> tensor<8xi64> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: i64):
    %parts = llvm.bitcast %old : i64 to vector<2xf32>
    %re = vector.extract %parts[0] : f32 from vector<2xf32>
    %im = vector.extract %parts[1] : f32 from vector<2xf32>
    %a1 = arith.addf %re, %x : f32
    %b1 = arith.subf %im, %y : f32
    %sum = vector.from_elements %a1, %b1 : vector<2xf32>
    %new = llvm.bitcast %sum : vector<2xf32> to i64
    "xgpu.yield"(%new) : (i64) -> ()
  }) : (tensor<8xi64>, index) -> tensor<8xi64>
  return %0 : tensor<8xi64>
}

// -----

// Parts exchanged: that is no sum.

// CHECK-LABEL: func.func @complex_exchanged
// CHECK:         scf.while {{.*}} : (i64) -> i64
func.func @complex_exchanged(%a: tensor<8xi64>, %i: index, %x: f32) -> tensor<8xi64> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: i64):
    %parts = llvm.bitcast %old : i64 to vector<2xf32>
    %re = vector.extract %parts[0] : f32 from vector<2xf32>
    %im = vector.extract %parts[1] : f32 from vector<2xf32>
    %a1 = arith.addf %im, %x : f32
    %b1 = arith.addf %re, %x : f32
    %sum = vector.from_elements %a1, %b1 : vector<2xf32>
    %new = llvm.bitcast %sum : vector<2xf32> to i64
    "xgpu.yield"(%new) : (i64) -> ()
  }) : (tensor<8xi64>, index) -> tensor<8xi64>
  return %0 : tensor<8xi64>
}

// -----

// In shared memory too; a region with control flow stays as it is.

// CHECK-LABEL: func.func @in_a_tile
// CHECK:         scf.while (%[[OLD:.*]] = %{{.*}}) : (i32) -> i32 {
// CHECK:           scf.if
// CHECK:           llvm.cmpxchg %{{.*}} : !llvm.ptr<3>, i32
func.func @in_a_tile(%i: index, %x: i32, %limit: i32) attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xi32>
  %0 = "xgpu.atomic_rmw"(%t, %i) ({
  ^bb0(%old: i32):
    %below = arith.cmpi slt, %old, %limit : i32
    %new = scf.if %below -> (i32) {
      %more = arith.muli %old, %x : i32
      scf.yield %more : i32
    } else {
      scf.yield %old : i32
    }
    "xgpu.yield"(%new) : (i32) -> ()
  }) : (tensor<8xi32>, index) -> tensor<8xi32>
  return
}

// -----

// CHECK-LABEL: func.func @vector
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("device") monotonic {{[<{]alignment = 16( : i64)?[>}]}} : !llvm.ptr<1>, vector<4xf32>
func.func @vector(%a: tensor<8xf32>, %i: index, %x: vector<4xf32>) -> tensor<8xf32> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_add"(%x, %a, %i) : (vector<4xf32>, tensor<8xf32>, index) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Where the new element is the old one, memory is not even read.

// CHECK-LABEL: func.func @nothing
// CHECK-NOT:     llvm.load
// CHECK-NOT:     llvm.cmpxchg
// CHECK:         return
func.func @nothing(%a: tensor<8xi64>, %i: index) -> tensor<8xi64> attributes {xgpu.kernel, xgpu.inputs = 0 : i64} {
  %0 = "xgpu.atomic_rmw"(%a, %i) ({
  ^bb0(%old: i64):
    "xgpu.yield"(%old) : (i64) -> ()
  }) : (tensor<8xi64>, index) -> tensor<8xi64>
  return %0 : tensor<8xi64>
}
