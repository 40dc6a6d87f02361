// RUN: xgpu compile %s --emit fusions | FileCheck %s --check-prefix=FUSIONS
// RUN: xgpu compile %s | FileCheck %s --check-prefix=PTX

// The numbers of a point lie together, and each is a row of the result: a thread takes four points and writes all rows,
// so that it reads their numbers in three loads of 16 bytes.
// FUSIONS: xgpu.schedule = #xgpu.schedule<threads = 128, vector = 4, rows = 3, row = 1048576>
// PTX-LABEL: .entry fusion_0(
// PTX-COUNT-3: ld.global.nc.v4.b32
// PTX-COUNT-3: st.global.v4.b32
// PTX-NOT: {{ld\.global|st\.global}}
// PTX: ret;
func.func @main(%x: tensor<1048576x3xf32>) -> tensor<3x1048576xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<1048576x3xf32>) -> tensor<3x1048576xf32>
  return %0 : tensor<3x1048576xf32>
}
