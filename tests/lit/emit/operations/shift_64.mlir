// RUN: xgpu compile %s --emit ptx | FileCheck %s

// All 64 bits of the amount count; PTX's own shift looks at 32.
// CHECK: min.u64 %[[AMOUNT:rd[0-9]+]], %{{.*}}, 64
// CHECK: shl.b64
// CHECK: shl.b64
func.func @main(%x: tensor<1024xui64>, %amount: tensor<1024xui64>) -> tensor<1024xui64> {
  %0 = stablehlo.shift_left %x, %amount : tensor<1024xui64>
  return %0 : tensor<1024xui64>
}
