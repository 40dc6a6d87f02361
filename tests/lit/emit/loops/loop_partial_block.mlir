// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The elements do not fill the last block: the map is constrained. A multiple of the run constrains only the thread.
// CHECK: {map = #xgpu.map<(d0, d1)[s0] -> (d0 * 4 + d1 * 512 + s0), d0 in [0, 127], d1 in [0, 1953], s0 in [0, 3], d0 + d1 * 128 in [0, 249999]>}
func.func @main(%x: tensor<1000000xf32>) -> tensor<1000000xf32> {
  %0 = stablehlo.negate %x : tensor<1000000xf32>
  return %0 : tensor<1000000xf32>
}
