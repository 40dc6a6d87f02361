// RUN: xgpu-opt %s -p 'mark-products{products=all}' | FileCheck %s
// RUN: xgpu-opt %s -p 'mark-products{products=all target=sm_80}' | FileCheck %s --check-prefix=WARPS

// All are marked that a library would compute, also those that it computes faster.

// CHECK: stablehlo.dot_general{{.*}} {xgpu.product = "wgmma"}
// CHECK: stablehlo.dot_general{{.*}} {xgpu.product = "wgmma"}
// CHECK: stablehlo.dot_general{{.*}} {xgpu.product = "fma"}
// CHECK: stablehlo.dot_general{{.*}} {xgpu.product = "fma"}
// CHECK: stablehlo.dot_general{{.*}} {xgpu.product = "fma"}

// One of a few products is a loop like others.
// CHECK: stablehlo.dot_general{{.*}} : (tensor<4x4xf32>
// CHECK-NOT: xgpu.product

// WARPS: stablehlo.dot_general{{.*}} {xgpu.product = "mma"}
// WARPS-COUNT-4: stablehlo.dot_general{{.*}} {xgpu.product = "fma"}
func.func @main(%x: tensor<4096x4096xbf16>, %y: tensor<512x256xf32>, %z: tensor<300x256xf32>, %w: tensor<256x300xf32>,
                %s: tensor<4x4xf32>, %d: tensor<300x256xf64>, %i: tensor<300x256xi32>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
  %1 = stablehlo.dot_general %y, %z, contracting_dims = [1] x [1] : (tensor<512x256xf32>, tensor<300x256xf32>) -> tensor<512x300xf32>
  %2 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x300xf32>) -> tensor<512x300xf32>
  %3 = stablehlo.dot_general %d, %d, contracting_dims = [1] x [1] : (tensor<300x256xf64>, tensor<300x256xf64>) -> tensor<300x300xf64>
  %4 = stablehlo.dot_general %i, %i, contracting_dims = [1] x [1] : (tensor<300x256xi32>, tensor<300x256xi32>) -> tensor<300x300xi32>
  %5 = stablehlo.dot_general %s, %s, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
