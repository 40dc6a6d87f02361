// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit ptx | FileCheck %s --check-prefix=PTX

// Weights of 8 bits are tiles of their array, and are dequantised on tiles. Threads do that in registers: what they
// read from shared memory are bytes, of two neighbouring rows of the product at once, and scales are read once.
// CHECK-LABEL: func.func @fusion_0(%arg0: tensor<16x256xbf16>, %arg1: tensor<256x128xi8>, %arg2: tensor<128xf32>, %arg3: tensor<16x128xbf16>)
// CHECK:       "xgpu.steps"
// CHECK:       %[[Q:.*]] = "xgpu.tile"(%arg1, {{.*}}[s0, s1] -> (d3 * 128 + s1, s0), {{.*}} -> tensor<128x128xi8>
// CHECK-NEXT:  %[[F:.*]] = stablehlo.convert %[[Q]] : (tensor<128x128xi8>) -> tensor<128x128xf32>
// CHECK-NEXT:  %[[S:.*]] = "xgpu.tile"(%arg2, {{.*}}[s0, s1] -> (s0), {{.*}} -> tensor<128x128xf32>
// CHECK-NEXT:  %[[P:.*]] = stablehlo.multiply %[[F]], %[[S]] : tensor<128x128xf32>
// CHECK-NEXT:  %[[W:.*]] = stablehlo.convert %[[P]] : (tensor<128x128xf32>) -> tensor<128x128xbf16>
// CHECK-NEXT:  %[[X:.*]] = "xgpu.tile"(%arg0, {{.*}}[s0, s1] -> (s1, d3 * 128 + s0), {{.*}} -> tensor<128x16xbf16>
// CHECK-NEXT:  stablehlo.dot_general %[[W]], %[[X]], contracting_dims = [1] x [0] : (tensor<128x128xbf16>, tensor<128x16xbf16>)
// CHECK:       {count = 2 : i64}

// PTX:          ld.global.nc.v2.b32
// PTX:          mbarrier.try_wait
// PTX-NOT:      ld.global
// PTX-NOT:      st.shared
// PTX-COUNT-32: ld.shared.b16
// PTX-NOT:      cvt.rn.f32.s
// PTX:          cvt.rn.bf16x2.f32 %[[A:.*]],
// PTX:          wgmma.fence
// PTX:          wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {{{.*}}}, {{{%r.*}}}, %rd{{.*}}, 1, 1, 0;
module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<16x256xbf16>, %arg1: tensor<256x128xi8>, %arg2: tensor<128xf32>) -> tensor<16x128xbf16> attributes {xgpu.emitter = "product", xgpu.schedule = #xgpu.schedule<tile_m = 128, tile_n = 16, split = 1>} {
    %0 = stablehlo.convert %arg1 : (tensor<256x128xi8>) -> tensor<256x128xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<128xf32>) -> tensor<256x128xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<256x128xf32>
    %3 = stablehlo.convert %2 : (tensor<256x128xf32>) -> tensor<256x128xbf16>
    %4 = stablehlo.dot_general %arg0, %3, contracting_dims = [1] x [0] {xgpu.hero, xgpu.product = "wgmma", xgpu.prologue = "right"} : (tensor<16x256xbf16>, tensor<256x128xbf16>) -> tensor<16x128xbf16>
    return %4 : tensor<16x128xbf16>
  }
  func.func @main(%arg0: tensor<16x256xbf16>, %arg1: tensor<256x128xi8>, %arg2: tensor<128xf32>) -> tensor<16x128xbf16> {
    %0 = call @fusion_0(%arg0, %arg1, %arg2) : (tensor<16x256xbf16>, tensor<256x128xi8>, tensor<128xf32>) -> tensor<16x128xbf16>
    return %0 : tensor<16x128xbf16>
  }
}
