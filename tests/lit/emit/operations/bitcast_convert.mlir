// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The parts of an element are numbered from its lowest bits.
// CHECK-LABEL: func.func private @fusion_0_part_0__root
// CHECK-SAME: %[[I:[a-z0-9]+]]: index {{.*}}, %[[PART:[a-z0-9]+]]: index
// CHECK: %[[X:.*]] = tensor.extract %arg0[%[[I]]]
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK: %[[N:.*]] = arith.index_castui %[[PART]] : index to i32
// CHECK: %[[AMOUNT:.*]] = arith.muli %[[N]], %{{.*}}
// CHECK: %[[SHIFTED:.*]] = arith.shrui %[[BITS]], %[[AMOUNT]]
// CHECK: arith.trunci %[[SHIFTED]] : i32 to i8

// CHECK-LABEL: func.func private @fusion_0_part_1__root
// CHECK-COUNT-2: tensor.extract
// CHECK: %[[LOW:.*]] = arith.extui %{{.*}} : i16 to i32
// CHECK: %[[HIGH:.*]] = arith.extui %{{.*}} : i16 to i32
// CHECK: %[[PLACED:.*]] = arith.shli %[[HIGH]], %{{.*}}
// CHECK: %[[JOINED:.*]] = arith.ori %[[LOW]], %[[PLACED]]
// CHECK: arith.bitcast %[[JOINED]] : i32 to f32
func.func @main(%x: tensor<5xf32>, %y: tensor<5x2xi16>) -> (tensor<5x4xui8>, tensor<5xf32>) {
  %0 = stablehlo.bitcast_convert %x : (tensor<5xf32>) -> tensor<5x4xui8>
  %1 = stablehlo.bitcast_convert %y : (tensor<5x2xi16>) -> tensor<5xf32>
  return %0, %1 : tensor<5x4xui8>, tensor<5xf32>
}
