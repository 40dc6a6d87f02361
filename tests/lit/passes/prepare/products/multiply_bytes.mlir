// RUN: xgpu-opt %s -p multiply-bytes --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p "multiply-bytes{products=library}" --split-input-file | FileCheck %s --check-prefix=LIBRARY
// RUN: xgpu-opt %s -p "multiply-bytes{target=sm_80}" --split-input-file | FileCheck %s --check-prefix=LIBRARY

// Three pairs of bytes of 16 bits count: the lowest ones, and each of the low ones with a high one, along a longer row.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[Y:.*]] = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<1000x1024xi16>) -> tensor<1024x1000xi16>
// CHECK:         stablehlo.pad %[[Y]], %{{.*}}, low = [0, 0], high = [0, 8], interior = [0, 0]
// CHECK:         %[[A:.*]] = stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [1] x [1] : (tensor<1024x1008xui8>, tensor<1024x1008xui8>) -> tensor<1024x1024xui32>
// CHECK:         stablehlo.shift_right_logical
// CHECK:         stablehlo.concatenate {{.*}} -> tensor<1024x2016xui8>
// CHECK:         %[[B:.*]] = stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [1] x [1] : (tensor<1024x2016xui8>, tensor<1024x2016xui8>) -> tensor<1024x1024xui32>
// CHECK:         %[[C:.*]] = stablehlo.shift_left %[[B]]
// CHECK:         %[[D:.*]] = stablehlo.add %[[A]], %[[C]]
// CHECK:         %[[E:.*]] = stablehlo.convert %[[D]] : (tensor<1024x1024xui32>) -> tensor<1024x1024xi16>
// CHECK:         return %[[E]]
// LIBRARY-LABEL: func.func @main(
// LIBRARY-NEXT:  stablehlo.dot_general %arg0, %arg1
func.func @main(%x: tensor<1024x1000xi16>, %y: tensor<1000x1024xi16>) -> tensor<1024x1024xi16> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<1024x1000xi16>, tensor<1000x1024xi16>) -> tensor<1024x1024xi16>
  return %0 : tensor<1024x1024xi16>
}

// -----

// Bytes themselves are one product, and so are truth values.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1] : (tensor<1024x1024xui8>, tensor<1024x1024xui8>) -> tensor<1024x1024xui32>
// CHECK:         %[[B:.*]] = stablehlo.dot_general %{{.*}} : (tensor<1024x1024xui8>, tensor<1024x1024xui8>) -> tensor<1024x1024xui32>
// CHECK:         %[[C:.*]] = stablehlo.compare NE, %[[B]], %{{.*}}
// CHECK:         %[[D:.*]] = stablehlo.convert %[[C]]
// CHECK:         return %[[A]], %[[D]]
// LIBRARY-LABEL: func.func @main(
// LIBRARY-NEXT:  stablehlo.dot_general %arg0, %arg1
// LIBRARY-NEXT:  %[[Z:.*]] = stablehlo.compare
// LIBRARY-NEXT:  stablehlo.dot_general %[[Z]], %[[Z]]
func.func @main(%x: tensor<1024x1024xui8>, %y: tensor<1024x1024xui8>) -> (tensor<1024x1024xui32>, tensor<1024x1024xui8>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<1024x1024xui8>, tensor<1024x1024xui8>) -> tensor<1024x1024xui32>
  %z = stablehlo.compare GT, %x, %y : (tensor<1024x1024xui8>, tensor<1024x1024xui8>) -> tensor<1024x1024xi1>
  %1 = stablehlo.dot_general %z, %z, contracting_dims = [1] x [0] : (tensor<1024x1024xi1>, tensor<1024x1024xi1>) -> tensor<1024x1024xi1>
  %2 = stablehlo.convert %1 : (tensor<1024x1024xi1>) -> tensor<1024x1024xui8>
  return %0, %2 : tensor<1024x1024xui32>, tensor<1024x1024xui8>
}

// -----

// What a library multiplies stays, and so does what is small.

// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    stablehlo.dot_general %arg0, %arg0
// CHECK-NEXT:    stablehlo.dot_general %arg1, %arg1
// CHECK-NEXT:    return
// LIBRARY-LABEL: func.func @main(
// LIBRARY-NEXT:  stablehlo.dot_general %arg0, %arg0
func.func @main(%x: tensor<1024x1024xi8>, %y: tensor<200x200xi32>) -> (tensor<1024x1024xi32>, tensor<200x200xi32>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<1024x1024xi8>, tensor<1024x1024xi8>) -> tensor<1024x1024xi32>
  %1 = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0] : (tensor<200x200xi32>, tensor<200x200xi32>) -> tensor<200x200xi32>
  return %0, %1 : tensor<1024x1024xi32>, tensor<200x200xi32>
}
