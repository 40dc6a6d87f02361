// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit ptx | FileCheck %s --check-prefix=PTX

// Arrays have no signs; the tiles of unsigned numbers are unsigned, their products are added up as i32, and so is what
// follows. Rows of a tile have 128 bytes.
// CHECK-LABEL: func.func @fusion_0(%arg0: tensor<70x144xi8>, %arg1: tensor<40x144xi8>, %arg2: tensor<40xi32>, %arg3: tensor<70x40xi32>)
// CHECK:       "xgpu.steps"
// CHECK:       %[[X:.*]] = "xgpu.tile"(%arg0, {{.*}} : (tensor<70x144xi8>, index, index, index, index) -> tensor<64x128xui8>
// CHECK-NEXT:  %[[Y:.*]] = "xgpu.tile"(%arg1, {{.*}} : (tensor<40x144xi8>, index, index, index, index) -> tensor<128x32xui8>
// CHECK-NEXT:  stablehlo.dot_general %[[X]], %[[Y]], contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x128xui8>, tensor<128x32xui8>) -> tensor<64x32xi32>
// CHECK:       %[[SUM:.*]] = stablehlo.convert %{{.*}} : (tensor<64x32xi32>) -> tensor<64x32xui32>
// CHECK-NEXT:  %[[LIMIT:.*]] = "xgpu.tile"(%arg2, {{.*}} : (tensor<40xi32>, index, index, index) -> tensor<64x32xui32>
// CHECK-NEXT:  %[[LOW:.*]] = stablehlo.minimum %[[SUM]], %[[LIMIT]] : tensor<64x32xui32>
// CHECK-NEXT:  "xgpu.insert_tile"(%[[LOW]], {{.*}} : (tensor<64x32xui32>, tensor<70x40xi32>, index, index, index) -> tensor<70x40xi32>

// PTX: wgmma.mma_async.sync.aligned.m64n32k32.s32.u8.u8
// PTX: min.u32
module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<70x144xui8>, %arg1: tensor<40x144xui8>, %arg2: tensor<40xui32>) -> tensor<70x40xui32> attributes {xgpu.emitter = "product", xgpu.schedule = #xgpu.schedule<tile_n = 32, split = 1, swapped = false>} {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] {xgpu.hero, xgpu.product = "wgmma"} : (tensor<70x144xui8>, tensor<40x144xui8>) -> tensor<70x40xui32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<40xui32>) -> tensor<70x40xui32>
    %2 = stablehlo.minimum %0, %1 : tensor<70x40xui32>
    return %2 : tensor<70x40xui32>
  }
  func.func @main(%arg0: tensor<70x144xui8>, %arg1: tensor<40x144xui8>, %arg2: tensor<40xui32>) -> tensor<70x40xui32> {
    %0 = call @fusion_0(%arg0, %arg1, %arg2) : (tensor<70x144xui8>, tensor<40x144xui8>, tensor<40xui32>) -> tensor<70x40xui32>
    return %0 : tensor<70x40xui32>
  }
}
