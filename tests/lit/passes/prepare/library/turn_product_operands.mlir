// RUN: xgpu-opt %s -p turn-product-operands --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'turn-product-operands{products=kernels}' --split-input-file | FileCheck %s --check-prefix=LIBRARY
// RUN: xgpu-opt %s -p 'turn-product-operands{target=sm_80}' --split-input-file | FileCheck %s --check-prefix=LIBRARY

// Tensor cores read f32 along the dimension that is summed; of the left operand that is contiguous already.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<256x64xf32>) -> tensor<64x256xf32>
// CHECK-NEXT:    stablehlo.dot_general %arg0, %[[T]], contracting_dims = [1] x [1]
// LIBRARY-NOT:   stablehlo.transpose
func.func @main(%x: tensor<512x256xf32>, %w: tensor<256x64xf32>) -> tensor<512x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x64xf32>) -> tensor<512x64xf32>
  return %0 : tensor<512x64xf32>
}

// -----

// They read 16 bits in any order; and no operand is turned for a product that they do not multiply.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.transpose
// CHECK-COUNT-2: stablehlo.dot_general
// CHECK-NOT:     stablehlo.transpose
func.func @main(%x: tensor<512x256xbf16>, %w: tensor<256x64xbf16>, %y: tensor<512x256xf32>, %v: tensor<256x64xf32>) -> (tensor<512x64xbf16>, tensor<512x64xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xbf16>, tensor<256x64xbf16>) -> tensor<512x64xbf16>
  %1 = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<512x256xf32>, tensor<256x64xf32>) -> tensor<512x64xf32>
  return %0, %1 : tensor<512x64xbf16>, tensor<512x64xf32>
}

// -----

// What a loop never changes is turned before it.

// CHECK-LABEL: func.func @main
// CHECK:         %[[T:.*]] = stablehlo.transpose %arg1, dims = [1, 0]
// CHECK-NEXT:    stablehlo.while
// CHECK:         stablehlo.dot_general %{{.*}}, %[[T]], contracting_dims = [1] x [1]
func.func @main(%x: tensor<64x512xf32>, %w: tensor<512x512xf32>, %p: tensor<i1>) -> tensor<64x512xf32> {
  %0:2 = stablehlo.while(%v = %w, %h = %x) : tensor<512x512xf32>, tensor<64x512xf32>
  cond {
    stablehlo.return %p : tensor<i1>
  } do {
    %1 = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
    stablehlo.return %v, %1 : tensor<512x512xf32>, tensor<64x512xf32>
  }
  return %0#1 : tensor<64x512xf32>
}

// -----

// What it changes is turned in each iteration; short sums are a loop as they are.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.while
// CHECK:         stablehlo.transpose %{{.*}}, dims = [1, 0] : (tensor<512x512xf32>)
// CHECK-NOT:     stablehlo.transpose
func.func @main(%x: tensor<64x512xf32>, %w: tensor<512x512xf32>, %a: tensor<64x64xf32>, %p: tensor<i1>) -> (tensor<64x512xf32>, tensor<64x64xf32>) {
  %0:3 = stablehlo.while(%v = %w, %h = %x, %b = %a) : tensor<512x512xf32>, tensor<64x512xf32>, tensor<64x64xf32>
  cond {
    stablehlo.return %p : tensor<i1>
  } do {
    %1 = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
    %2 = stablehlo.add %v, %v : tensor<512x512xf32>
    %3 = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    stablehlo.return %2, %1, %3 : tensor<512x512xf32>, tensor<64x512xf32>, tensor<64x64xf32>
  }
  return %0#1, %0#2 : tensor<64x512xf32>, tensor<64x64xf32>
}

// -----

// What a branch in a branch reads from outside is turned before both.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %arg1, dims = [1, 0]
// CHECK-NEXT:    "stablehlo.case"
// CHECK:         "stablehlo.case"
// CHECK:         stablehlo.dot_general %arg0, %[[T]], contracting_dims = [1] x [1]
func.func @main(%x: tensor<64x512xf32>, %w: tensor<512x512xf32>, %i: tensor<i32>) -> tensor<64x512xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = "stablehlo.case"(%i) ({
      %2 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
      stablehlo.return %2 : tensor<64x512xf32>
    }) : (tensor<i32>) -> tensor<64x512xf32>
    stablehlo.return %1 : tensor<64x512xf32>
  }) : (tensor<i32>) -> tensor<64x512xf32>
  return %0 : tensor<64x512xf32>
}
