// RUN: xgpu-opt %s -p 'merge-products{products=library}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p merge-products --split-input-file | FileCheck %s --check-prefix=KERNELS
// RUN: xgpu-opt %s -p 'merge-products{products=kernels}' --split-input-file | FileCheck %s --check-prefix=KERNELS
// RUN: xgpu-opt %s -p 'merge-products{choices=open}' --split-input-file | FileCheck %s --check-prefix=KERNELS
// RUN: xgpu-opt %s -p 'merge-products{products=kernels target=sm_80}' --split-input-file | FileCheck %s

// Products of one array with two.

// CHECK-LABEL: func.func @main(%arg0: tensor<32x256xf32>, %arg1: tensor<256x64xf32>, %arg2: tensor<256x16xf32>) -> (tensor<32x64xf32>, tensor<32x16xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg1, %arg2, dim = 1 : (tensor<256x64xf32>, tensor<256x16xf32>) -> tensor<256x80xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dot_general %arg0, %[[A]], contracting_dims = [1] x [0] : (tensor<32x256xf32>, tensor<256x80xf32>) -> tensor<32x80xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.slice %[[B]] [0:32, 0:64] : (tensor<32x80xf32>) -> tensor<32x64xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.slice %[[B]] [0:32, 64:80] : (tensor<32x80xf32>) -> tensor<32x16xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.sine %[[C]] : tensor<32x64xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.sine %[[D]] : tensor<32x16xf32>
// CHECK-NEXT:    return %[[E]], %[[F]] : tensor<32x64xf32>, tensor<32x16xf32>
func.func @main(%x: tensor<32x256xf32>, %v: tensor<256x64xf32>, %w: tensor<256x16xf32>) -> (tensor<32x64xf32>, tensor<32x16xf32>) {
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<32x256xf32>, tensor<256x64xf32>) -> tensor<32x64xf32>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<32x256xf32>, tensor<256x16xf32>) -> tensor<32x16xf32>
  %2 = stablehlo.sine %0 : tensor<32x64xf32>
  %3 = stablehlo.sine %1 : tensor<32x16xf32>
  return %2, %3 : tensor<32x64xf32>, tensor<32x16xf32>
}

// -----

// Products of two arrays with one, of a batch. What reads the first comes after the merged one.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x32x256xf32>, %arg1: tensor<4x8x256xf32>, %arg2: tensor<4x64x256xf32>) -> (tensor<4x32x64xf32>, tensor<4x8x64xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<4x32x256xf32>, tensor<4x8x256xf32>) -> tensor<4x40x256xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dot_general %[[A]], %arg2, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x40x256xf32>, tensor<4x64x256xf32>) -> tensor<4x40x64xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.slice %[[B]] [0:4, 0:32, 0:64] : (tensor<4x40x64xf32>) -> tensor<4x32x64xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.sine %[[C]] : tensor<4x32x64xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.slice %[[B]] [0:4, 32:40, 0:64] : (tensor<4x40x64xf32>) -> tensor<4x8x64xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.sine %[[E]] : tensor<4x8x64xf32>
// CHECK-NEXT:    return %[[D]], %[[F]] : tensor<4x32x64xf32>, tensor<4x8x64xf32>
func.func @main(%x: tensor<4x32x256xf32>, %y: tensor<4x8x256xf32>, %w: tensor<4x64x256xf32>) -> (tensor<4x32x64xf32>, tensor<4x8x64xf32>) {
  %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x32x256xf32>, tensor<4x64x256xf32>) -> tensor<4x32x64xf32>
  %1 = stablehlo.sine %0 : tensor<4x32x64xf32>
  %2 = stablehlo.dot_general %y, %w, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x8x256xf32>, tensor<4x64x256xf32>) -> tensor<4x8x64xf32>
  %3 = stablehlo.sine %2 : tensor<4x8x64xf32>
  return %1, %3 : tensor<4x32x64xf32>, tensor<4x8x64xf32>
}

// -----

// The second product needs the first.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x64xf32>, %arg1: tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.sine %[[A]] : tensor<64x64xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.dot_general %arg0, %[[B]], contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.sine %[[C]] : tensor<64x64xf32>
// CHECK-NEXT:    return %[[D]] : tensor<64x64xf32>
func.func @main(%x: tensor<64x64xf32>, %v: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.sine %0 : tensor<64x64xf32>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = stablehlo.sine %2 : tensor<64x64xf32>
  return %3 : tensor<64x64xf32>
}

// -----

// What the loop does not change is concatenated before it.

// CHECK-LABEL: func.func @main(%arg0: tensor<32x64xf32>, %arg1: tensor<64x64xf32>, %arg2: tensor<64x64xf32>, %arg3: tensor<i1>) -> tensor<32x64xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg1, %arg2, dim = 1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x128xf32>
// CHECK-NEXT:    %[[B:[0-9]+]]:4 = stablehlo.while(%[[C:.*]] = %arg0, %[[D:.*]] = %arg1, %[[E:.*]] = %arg2, %[[F:.*]] = %arg3) : tensor<32x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<i1>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      stablehlo.return %[[F]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[G:.*]] = stablehlo.dot_general %[[C]], %[[A]], contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.slice %[[G]] [0:32, 0:64] : (tensor<32x128xf32>) -> tensor<32x64xf32>
// CHECK-NEXT:      %[[I:.*]] = stablehlo.slice %[[G]] [0:32, 64:128] : (tensor<32x128xf32>) -> tensor<32x64xf32>
// CHECK-NEXT:      %[[J:.*]] = stablehlo.multiply %[[H]], %[[I]] : tensor<32x64xf32>
// CHECK-NEXT:      stablehlo.return %[[J]], %[[D]], %[[E]], %[[F]] : tensor<32x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<i1>
// CHECK:         return %[[B]]#0 : tensor<32x64xf32>
func.func @main(%x: tensor<32x64xf32>, %v: tensor<64x64xf32>, %w: tensor<64x64xf32>, %p: tensor<i1>) -> tensor<32x64xf32> {
  %0:4 = stablehlo.while(%a = %x, %b = %v, %c = %w, %d = %p) : tensor<32x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<i1>
  cond {
    stablehlo.return %d : tensor<i1>
  } do {
    %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %2 = stablehlo.dot_general %a, %c, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<32x64xf32>
    stablehlo.return %3, %b, %c, %d : tensor<32x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<i1>
  }
  return %0#0 : tensor<32x64xf32>
}

// -----

// What XLA alone reads is left to it: it would read parts that a kernel copies.

// CHECK-LABEL: func.func @main(%arg0: tensor<64x64xf32>, %arg1: tensor<64x64xf32>, %arg2: tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dot_general %arg0, %arg2, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.dot_general %[[A]], %[[B]], contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:    return %[[C]] : tensor<64x64xf32>
func.func @main(%x: tensor<64x64xf32>, %v: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// -----

// XLA folds what it makes of constants.

// CHECK-LABEL: func.func @main(%arg0: tensor<32x64xf32>, %arg1: tensor<64x64xf32>) -> tensor<32x64xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<64x64xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dot_general %arg0, %[[A]], contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.multiply %[[B]], %[[C]] : tensor<32x64xf32>
// CHECK-NEXT:    return %[[D]] : tensor<32x64xf32>
func.func @main(%x: tensor<32x64xf32>, %w: tensor<64x64xf32>) -> tensor<32x64xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<64x64xf32>
  %0 = stablehlo.dot_general %x, %c, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<32x64xf32>
  return %2 : tensor<32x64xf32>
}

// -----

// Kernels compute small products.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dot_general %arg0, %arg2, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:    return %[[A]], %[[B]] : tensor<8x8xf32>, tensor<8x8xf32>
func.func @main(%x: tensor<8x8xf32>, %v: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// XLA merges two products of which one takes at most 64 MB: of the large ones, the first. A kernel that computes the
// operands stores them side by side.

// CHECK-LABEL: func.func @main(%arg0: tensor<1024x1024xf32>, %arg1: tensor<1024x16384xf32>, %arg2: tensor<1024x16384xf32>, %arg3: tensor<1024x64xf32>)
// CHECK-NEXT:    %[[U:.*]] = stablehlo.cosine %arg1
// CHECK-NEXT:    %[[W:.*]] = stablehlo.cosine %arg3
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %[[U]], %[[W]], dim = 1 : (tensor<1024x16384xf32>, tensor<1024x64xf32>) -> tensor<1024x16448xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dot_general %arg0, %[[A]],
// CHECK-NEXT:    %[[C:.*]] = stablehlo.slice %[[B]] [0:1024, 0:16384]
// CHECK-NEXT:    %[[D:.*]] = stablehlo.sine %[[C]]
// CHECK-NEXT:    %[[E:.*]] = stablehlo.dot_general %arg0, %arg2,
// CHECK-NEXT:    %[[F:.*]] = stablehlo.sine %[[E]]
// CHECK-NEXT:    %[[G:.*]] = stablehlo.slice %[[B]] [0:1024, 16384:16448]
// CHECK-NEXT:    %[[H:.*]] = stablehlo.sine %[[G]]
// CHECK-NEXT:    return %[[D]], %[[F]], %[[H]]
func.func @main(%x: tensor<1024x1024xf32>, %u: tensor<1024x16384xf32>, %v: tensor<1024x16384xf32>, %w: tensor<1024x64xf32>) -> (tensor<1024x16384xf32>, tensor<1024x16384xf32>, tensor<1024x64xf32>) {
  %a = stablehlo.cosine %u : tensor<1024x16384xf32>
  %b = stablehlo.cosine %w : tensor<1024x64xf32>
  %0 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x16384xf32>) -> tensor<1024x16384xf32>
  %1 = stablehlo.sine %0 : tensor<1024x16384xf32>
  %2 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x16384xf32>) -> tensor<1024x16384xf32>
  %3 = stablehlo.sine %2 : tensor<1024x16384xf32>
  %4 = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x64xf32>) -> tensor<1024x64xf32>
  %5 = stablehlo.sine %4 : tensor<1024x64xf32>
  return %1, %3, %5 : tensor<1024x16384xf32>, tensor<1024x16384xf32>, tensor<1024x64xf32>
}

// -----

// Of arrays in memory the same would be copied, for longer than one product saves; for two small ones it is not.

// CHECK-LABEL: func.func @main(%arg0: tensor<16x4096xbf16>
// CHECK-NEXT:    stablehlo.dot_general %arg0, %arg1,
// CHECK:         %[[A:.*]] = stablehlo.concatenate %arg2, %arg3, dim = 1 : (tensor<4096x16xbf16>, tensor<4096x8xbf16>) -> tensor<4096x24xbf16>
// CHECK:         stablehlo.dot_general %arg0, %[[A]],
func.func @main(%x: tensor<16x4096xbf16>, %u: tensor<4096x4096xbf16>, %v: tensor<4096x16xbf16>, %w: tensor<4096x8xbf16>) -> (tensor<16x4096xbf16>, tensor<16x16xbf16>, tensor<16x8xbf16>) {
  %0 = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<16x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<16x4096xbf16>
  %1 = stablehlo.sine %0 : tensor<16x4096xbf16>
  %2 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x4096xbf16>, tensor<4096x16xbf16>) -> tensor<16x16xbf16>
  %3 = stablehlo.sine %2 : tensor<16x16xbf16>
  %4 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x4096xbf16>, tensor<4096x8xbf16>) -> tensor<16x8xbf16>
  %5 = stablehlo.sine %4 : tensor<16x8xbf16>
  return %1, %3, %5 : tensor<16x4096xbf16>, tensor<16x16xbf16>, tensor<16x8xbf16>
}

// -----

// One that is read by a kernel is enough: XLA would merge both, and copy the part that the kernel reads.

// CHECK-LABEL: func.func @main(%arg0: tensor<32x256xf32>, %arg1: tensor<256x64xf32>, %arg2: tensor<256x16xf32>) -> (tensor<32x64xf32>, tensor<32x16xf32>)
// CHECK-NEXT:    stablehlo.concatenate %arg1, %arg2, dim = 1
func.func @main(%x: tensor<32x256xf32>, %v: tensor<256x64xf32>, %w: tensor<256x16xf32>) -> (tensor<32x64xf32>, tensor<32x16xf32>) {
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<32x256xf32>, tensor<256x64xf32>) -> tensor<32x64xf32>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<32x256xf32>, tensor<256x16xf32>) -> tensor<32x16xf32>
  %2 = stablehlo.sine %0 : tensor<32x64xf32>
  return %2, %1 : tensor<32x64xf32>, tensor<32x16xf32>
}

// -----

// One kernel of ours computes products that meet, where warp groups multiply; it needs no operand beside the other.

// CHECK-LABEL: func.func @main(%arg0: tensor<256x128xbf16>
// CHECK-NEXT:  %[[A:.*]] = stablehlo.transpose %arg1
// CHECK-NEXT:  %[[B:.*]] = stablehlo.transpose %arg2
// CHECK-NEXT:  stablehlo.concatenate %[[A]], %[[B]], dim = 1
// KERNELS-LABEL: func.func @main(%arg0: tensor<256x128xbf16>
// KERNELS-NEXT: stablehlo.transpose %arg1
// KERNELS-NEXT: stablehlo.transpose %arg2
// KERNELS-NEXT: %[[A:.*]] = stablehlo.dot_general %arg0, %{{.*}} : (tensor<256x128xbf16>, tensor<128x256xbf16>) -> tensor<256x256xbf16>
// KERNELS-NEXT: %[[B:.*]] = stablehlo.dot_general %arg0, %{{.*}} : (tensor<256x128xbf16>, tensor<128x256xbf16>) -> tensor<256x256xbf16>
// KERNELS-NEXT: stablehlo.multiply %[[A]], %[[B]]
func.func @main(%x: tensor<256x128xbf16>, %v: tensor<256x128xbf16>, %w: tensor<256x128xbf16>) -> tensor<256x256xbf16> {
  %0 = stablehlo.transpose %v, dims = [1, 0] : (tensor<256x128xbf16>) -> tensor<128x256xbf16>
  %1 = stablehlo.transpose %w, dims = [1, 0] : (tensor<256x128xbf16>) -> tensor<128x256xbf16>
  %2 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<256x128xbf16>, tensor<128x256xbf16>) -> tensor<256x256xbf16>
  %3 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : (tensor<256x128xbf16>, tensor<128x256xbf16>) -> tensor<256x256xbf16>
  %4 = stablehlo.multiply %2, %3 : tensor<256x256xbf16>
  return %4 : tensor<256x256xbf16>
}

// -----

// Arrays with several dimensions of their own, which XLA takes for one: the first of them is the longer one.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[A:.*]] = stablehlo.concatenate {{.*}}, dim = 0 : (tensor<4x8x2048x64xf32>, tensor<2x8x2048x64xf32>) -> tensor<6x8x2048x64xf32>
// CHECK:         %[[B:.*]] = stablehlo.dot_general %[[A]], %arg2, contracting_dims = [3] x [1] : (tensor<6x8x2048x64xf32>, tensor<128x64xf32>) -> tensor<6x8x2048x128xf32>
// CHECK:         stablehlo.slice %[[B]] [0:4, 0:8, 0:2048, 0:128]
// CHECK:         stablehlo.slice %[[B]] [4:6, 0:8, 0:2048, 0:128]
func.func @main(%q: tensor<4x8x2048x64xf32>, %k: tensor<2x8x2048x64xf32>, %w: tensor<128x64xf32>) -> (tensor<4x8x2048x128xf32>, tensor<2x8x2048x128xf32>) {
  %a = stablehlo.sine %q : tensor<4x8x2048x64xf32>
  %b = stablehlo.sine %k : tensor<2x8x2048x64xf32>
  %0 = stablehlo.dot_general %a, %w, contracting_dims = [3] x [1] : (tensor<4x8x2048x64xf32>, tensor<128x64xf32>) -> tensor<4x8x2048x128xf32>
  %1 = stablehlo.dot_general %b, %w, contracting_dims = [3] x [1] : (tensor<2x8x2048x64xf32>, tensor<128x64xf32>) -> tensor<2x8x2048x128xf32>
  %2 = stablehlo.sine %0 : tensor<4x8x2048x128xf32>
  %3 = stablehlo.sine %1 : tensor<2x8x2048x128xf32>
  return %2, %3 : tensor<4x8x2048x128xf32>, tensor<2x8x2048x128xf32>
}

// -----

// Weights of heads: their first own dimension follows that of the rows in the result.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[A:.*]] = stablehlo.concatenate {{.*}}, dim = 1 : (tensor<64x4x16xf32>, tensor<64x2x16xf32>) -> tensor<64x6x16xf32>
// CHECK:         %[[B:.*]] = stablehlo.dot_general %arg0, %[[A]], contracting_dims = [2] x [0] : (tensor<2x8x64xf32>, tensor<64x6x16xf32>) -> tensor<2x8x6x16xf32>
// CHECK:         stablehlo.slice %[[B]] [0:2, 0:8, 0:4, 0:16]
// CHECK:         stablehlo.slice %[[B]] [0:2, 0:8, 4:6, 0:16]
func.func @main(%x: tensor<2x8x64xf32>, %v: tensor<64x4x16xf32>, %w: tensor<64x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>) {
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [2] x [0] : (tensor<2x8x64xf32>, tensor<64x4x16xf32>) -> tensor<2x8x4x16xf32>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x8x64xf32>, tensor<64x2x16xf32>) -> tensor<2x8x2x16xf32>
  %2 = stablehlo.sine %0 : tensor<2x8x4x16xf32>
  %3 = stablehlo.sine %1 : tensor<2x8x2x16xf32>
  return %2, %3 : tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>
}

// -----

// What is contracted lies between an array's own dimensions: none of them is the longer one.

// CHECK-LABEL: func.func @main(
// CHECK-NOT:     stablehlo.concatenate
func.func @main(%x: tensor<8x64xf32>, %v: tensor<4x64x16xf32>, %w: tensor<4x64x16xf32>) -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>) {
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [1] : (tensor<8x64xf32>, tensor<4x64x16xf32>) -> tensor<8x4x16xf32>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<8x64xf32>, tensor<4x64x16xf32>) -> tensor<8x4x16xf32>
  %2 = stablehlo.sine %0 : tensor<8x4x16xf32>
  %3 = stablehlo.sine %1 : tensor<8x4x16xf32>
  return %2, %3 : tensor<8x4x16xf32>, tensor<8x4x16xf32>
}
