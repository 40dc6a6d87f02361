// RUN: xgpu-opt %s -p expand-atomics | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: xgpu-opt %s -p 'expand-atomics{capability=80}' | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: xgpu-opt %s -p 'expand-atomics{target=host}' | FileCheck %s --check-prefixes=CHECK,HOST
// In one piece: text with updates in generic form is first parsed in a process of its own.

// GPUs add pairs of bf16 from compute capability 9.0 on: the other of the pair gets -0, whose bits are 0x8000. Others
// compare and exchange the word around the element.

// CHECK-LABEL: func.func @bf16
// CHECK-SAME:    (%[[P:.*]]: !llvm.ptr<1>, %[[X:.*]]: bf16)
// SM90:          %[[WORD:.*]] = llvm.getelementptr %[[P]][%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// SM90:          %[[MASK:.*]] = arith.shli %c65535_i32, %[[SHIFT:.*]] : i32
// SM90:          %[[REST:.*]] = arith.xori %[[MASK]], %{{.*}} : i32
// SM90:          %[[ZEROS:.*]] = arith.andi %{{.*}}, %[[REST]] : i32
// SM90-NEXT:     %[[BITS:.*]] = arith.bitcast %[[X]] : bf16 to i16
// SM90-NEXT:     %[[WIDE:.*]] = arith.extui %[[BITS]] : i16 to i32
// SM90-NEXT:     %[[PLACED:.*]] = arith.shli %[[WIDE]], %[[SHIFT]] : i32
// SM90-NEXT:     %[[PAIR:.*]] = arith.ori %[[PLACED]], %[[ZEROS]] : i32
// SM90-NEXT:     llvm.inline_asm has_side_effects "red.relaxed.gpu.global.add.noftz.bf16x2 [$0], $1;", "l,r,~{memory}" %[[WORD]], %[[PAIR]]
// SM90-NEXT:     return
// SM80-NEXT:     %[[ADDRESS:.*]] = llvm.ptrtoint %[[P]]
// SM80:          %[[INSIDE:.*]] = arith.andi %[[ADDRESS]],
// SM80:          %[[BACK:.*]] = arith.subi %{{.*}}, %[[INSIDE]]
// SM80-NEXT:     %[[WORD:.*]] = llvm.getelementptr %[[P]][%[[BACK]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// SM80:          %[[FIRST:.*]] = llvm.load %[[WORD]] atomic syncscope("device") monotonic {{[<{]alignment = 4( : i64)?[>}]}}
// SM80-NEXT:     scf.while (%[[OLD:.*]] = %[[FIRST]]) : (i32) -> i32 {
// SM80:            %[[PART:.*]] = arith.bitcast %{{.*}} : i16 to bf16
// SM80-NEXT:       arith.addf %[[PART]], %[[X]] : bf16
// SM80:            %[[NEW:.*]] = arith.ori
// SM80-NEXT:       %[[CHANGED:.*]] = arith.cmpi ne, %[[NEW]], %[[OLD]]
// SM80-NEXT:       %[[R:.*]]:2 = scf.if %[[CHANGED]] -> (i32, i1) {
// SM80-NEXT:         %[[PAIR:.*]] = llvm.cmpxchg %[[WORD]], %[[OLD]], %[[NEW]] syncscope("device") monotonic monotonic
// SM80-NEXT:         %[[SEEN:.*]] = llvm.extractvalue %[[PAIR]][0]
// SM80-NEXT:         %[[SUCCESS:.*]] = llvm.extractvalue %[[PAIR]][1]
// SM80:              %[[FAILED:.*]] = arith.xori %[[SUCCESS]],
// SM80-NEXT:         scf.yield %[[SEEN]], %[[FAILED]]
// SM80-NEXT:       } else {
// SM80:              scf.yield %[[OLD]], %{{.*}}
// SM80-NEXT:       }
// SM80-NEXT:       scf.condition(%[[R]]#1) %[[R]]#0
// HOST:          llvm.load %{{.*}} atomic monotonic {{[<{]alignment = 4( : i64)?[>}]}}
// HOST:          llvm.cmpxchg %{{.*}} monotonic monotonic
func.func @bf16(%p: !llvm.ptr<1>, %x: bf16) {
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 2 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, bf16) -> bf16
  return
}

// CHECK-LABEL: func.func @f16
// SM90:          llvm.inline_asm has_side_effects "red.relaxed.gpu.global.add.noftz.f16x2 [$0], $1;"
// SM80:          llvm.inline_asm has_side_effects "red.relaxed.gpu.global.add.noftz.f16x2 [$0], $1;"
// HOST:          arith.addf %{{.*}} : f16
func.func @f16(%p: !llvm.ptr<1>, %x: f16) {
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 2 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, f16) -> f16
  return
}

// CHECK-LABEL: func.func @everywhere
// SM90-NEXT:     llvm.atomicrmw fadd %{{.*}} syncscope("device") monotonic
// SM90-NEXT:     llvm.atomicrmw max %{{.*}} syncscope("device") monotonic
// SM80-NEXT:     llvm.atomicrmw fadd %{{.*}} syncscope("device") monotonic
// SM80-NEXT:     llvm.atomicrmw max %{{.*}} syncscope("device") monotonic
// HOST-NEXT:     llvm.atomicrmw fadd %arg0, %arg1 monotonic
// HOST-NEXT:     llvm.atomicrmw max %arg0, %arg2 monotonic
func.func @everywhere(%p: !llvm.ptr<1>, %x: f32, %i: i64) {
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 4 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, f32) -> f32
  %1 = "llvm.atomicrmw"(%p, %i) <{alignment = 8 : i64, bin_op = 7 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, i64) -> i64
  return
}

// CHECK-LABEL: func.func @in_shared_memory
// SM90:          llvm.inline_asm has_side_effects "red.relaxed.gpu.shared.add.noftz.bf16x2 [$0], $1;"
// SM80:          llvm.cmpxchg
// HOST:          llvm.cmpxchg
func.func @in_shared_memory(%p: !llvm.ptr<3>, %x: bf16) {
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 2 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<3>, bf16) -> bf16
  return
}

// CHECK-LABEL: func.func @vector_of_f32
// CHECK-SAME:    (%[[P:.*]]: !llvm.ptr<1>, %[[X:.*]]: vector<4xf32>)
// SM90-NEXT:     %[[E:.*]]:4 = vector.to_elements %[[X]]
// SM90-NEXT:     llvm.inline_asm has_side_effects "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f,~{memory}" %[[P]], %[[E]]#0, %[[E]]#1, %[[E]]#2, %[[E]]#3
// SM80:          llvm.atomicrmw fadd %[[P]], %{{.*}} syncscope("device") monotonic {{[<{]alignment = 4( : i64)?[>}]}} : !llvm.ptr<1>, f32
// SM80:          %[[SECOND:.*]] = llvm.getelementptr %[[P]][1]
// SM80:          llvm.atomicrmw fadd %[[SECOND]],
// SM80:          %[[LAST:.*]] = llvm.getelementptr %[[P]][3]
// SM80:          llvm.atomicrmw fadd %[[LAST]],
// HOST-COUNT-4:  llvm.atomicrmw fadd %{{.*}} monotonic {{[<{]alignment = 4( : i64)?[>}]}} : !llvm.ptr<1>, f32
func.func @vector_of_f32(%p: !llvm.ptr<1>, %x: vector<4xf32>) {
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 16 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, vector<4xf32>) -> vector<4xf32>
  return
}

// Sixteen bytes at a time.

// CHECK-LABEL: func.func @long_vector
// SM90:          "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f,~{memory}" %arg0,
// SM90:          %[[NEXT:.*]] = llvm.getelementptr %arg0[4]
// SM90:          "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f,~{memory}" %[[NEXT]],
// SM80-COUNT-8:  llvm.atomicrmw fadd
func.func @long_vector(%p: !llvm.ptr<1>, %x: vector<8xf32>) {
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 16 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, vector<8xf32>) -> vector<8xf32>
  return
}

// Below 9.0 pairs of f16 are added, and words of two bf16 compared and exchanged.

// CHECK-LABEL: func.func @vectors_of_small_floats
// SM90:          "red.relaxed.gpu.global.add.noftz.v4.bf16x2 [$0], {$1, $2, $3, $4};", "l,r,r,r,r,~{memory}"
// SM90:          "red.relaxed.gpu.global.add.noftz.v2.f16x2 [$0], {$1, $2};", "l,r,r,~{memory}"
// SM80-COUNT-4:  llvm.cmpxchg
// SM80-COUNT-2:  "red.relaxed.gpu.global.add.noftz.f16x2 [$0], $1;"
// HOST-COUNT-6:  llvm.cmpxchg
func.func @vectors_of_small_floats(%p: !llvm.ptr<1>, %x: vector<8xbf16>, %y: vector<4xf16>) {
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 16 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, vector<8xbf16>) -> vector<8xbf16>
  %1 = "llvm.atomicrmw"(%p, %y) <{alignment = 8 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, vector<4xf16>) -> vector<4xf16>
  return
}

// No instruction adds vectors of f64, or vectors in shared memory.

// CHECK-LABEL: func.func @no_vectors
// SM90-COUNT-2:  llvm.atomicrmw fadd %{{.*}} : !llvm.ptr<1>, f64
// SM90-COUNT-4:  llvm.atomicrmw fadd %{{.*}} : !llvm.ptr<3>, f32
// SM90-NEXT:     return
func.func @no_vectors(%p: !llvm.ptr<1>, %x: vector<2xf64>, %q: !llvm.ptr<3>, %y: vector<4xf32>) {
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 16 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, vector<2xf64>) -> vector<2xf64>
  %1 = "llvm.atomicrmw"(%q, %y) <{alignment = 16 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<3>, vector<4xf32>) -> vector<4xf32>
  return
}

// A pointer of address space 0 says at run time where it leads, and instructions then name no space.

// CHECK-LABEL: func.func @generic
// SM90:          llvm.inline_asm has_side_effects "red.relaxed.gpu.add.noftz.f16x2 [$0], $1;"
// SM80:          llvm.inline_asm has_side_effects "red.relaxed.gpu.add.noftz.f16x2 [$0], $1;"
// HOST:          llvm.cmpxchg
func.func @generic(%p: !llvm.ptr, %x: f16) {
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 2 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr, f16) -> f16
  return
}
