// RUN: xgpu-opt %s -p expand-transforms --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'expand-transforms{runs=xla}' --split-input-file | FileCheck %s --check-prefix=XLA

// A short row is multiplied by the roots of unity; of real numbers, half of the result is the whole one.

// CHECK-LABEL: func.func @main
// CHECK:         %[[RE:.*]] = stablehlo.dot_general %arg0, %{{.*}}, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST]
// CHECK:         %[[IM:.*]] = stablehlo.dot_general %arg0,
// CHECK:         %[[A:.*]] = stablehlo.slice %[[RE]] [0:8, 0:9]
// CHECK:         %[[B:.*]] = stablehlo.slice %[[IM]] [0:8, 0:9]
// CHECK:         stablehlo.complex %[[A]], %[[B]]
// XLA:           stablehlo.fft
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x9xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [16] : (tensor<8x16xf32>) -> tensor<8x9xcomplex<f32>>
  return %0 : tensor<8x9xcomplex<f32>>
}

// -----

// A longer one in two steps: 64 columns, and 16 rows of the result.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: stablehlo.dot_general {{.*}} (tensor<16x64xf32>, tensor<64x64xf32>)
// CHECK:         stablehlo.cosine {{.*}} tensor<1x16x64xf32>
// CHECK-COUNT-4: stablehlo.dot_general {{.*}} (tensor<64x16xf32>, tensor<16x16xf32>)
// CHECK-NOT:     stablehlo.fft
func.func @main(%x: tensor<1024xcomplex<f32>>) -> tensor<1024xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [1024] : (tensor<1024xcomplex<f32>>) -> tensor<1024xcomplex<f32>>
  return %0 : tensor<1024xcomplex<f32>>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.fft
func.func @main(%x: tensor<65536xcomplex<f32>>) -> tensor<65536xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [65536] : (tensor<65536xcomplex<f32>>) -> tensor<65536xcomplex<f32>>
  return %0 : tensor<65536xcomplex<f32>>
}
