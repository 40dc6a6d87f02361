// RUN: xgpu compile %s | FileCheck %s
// RUN: xgpu compile %s --target sm_80 | FileCheck %s --check-prefix AMPERE

// A thread takes the run of a row that one instruction adds: the index is read once, the update in a vector.
// CHECK-LABEL: .entry fusion_0(
// CHECK-NOT: {{div|rem}}
// CHECK: ld.global.nc.b32
// CHECK: @%p{{[0-9]+}} bra
// CHECK: ld.global.nc.v4.b32
// CHECK: red.relaxed.gpu.global.add.noftz.v4.bf16x2
// CHECK-NOT: {{atom|red|ld}}.
// CHECK: ret;

// Rows that are written once each: no atomic operation, whole vectors.
// CHECK-LABEL: .entry fusion_1(
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK-DAG: ld.global.v4.b32
// CHECK-COUNT-4: mul.rn.bf16x2
// CHECK: st.global.v4.b32
// CHECK-NOT: {{atom|red}}.

// Without such an instruction a thread adds one element, neighbouring threads neighbouring ones; bf16 in a loop.
// AMPERE-LABEL: .entry fusion_0(
// AMPERE: ld.global.nc.b16
// AMPERE: atom{{.*}}.cas.b32
// AMPERE-NOT: {{atom|red}}.
// AMPERE: ret;
// AMPERE-LABEL: .entry fusion_1(
// AMPERE: st.global.v4.b32
func.func @main(%x: tensor<50304x1024xbf16>, %rows: tensor<4096x1xi32>, %y: tensor<4096x1024xbf16>)
    -> (tensor<50304x1024xbf16>, tensor<50304x1024xbf16>) {
  %0 = "stablehlo.scatter"(%x, %rows, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %2 = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %2 : tensor<bf16>
  }) : (tensor<50304x1024xbf16>, tensor<4096x1xi32>, tensor<4096x1024xbf16>) -> tensor<50304x1024xbf16>
  %1 = "stablehlo.scatter"(%0, %rows, %y) <{unique_indices = true, scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %2 = stablehlo.multiply %a, %b : tensor<bf16>
    stablehlo.return %2 : tensor<bf16>
  }) : (tensor<50304x1024xbf16>, tensor<4096x1xi32>, tensor<4096x1024xbf16>) -> tensor<50304x1024xbf16>
  return %0, %1 : tensor<50304x1024xbf16>, tensor<50304x1024xbf16>
}
