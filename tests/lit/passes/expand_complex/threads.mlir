// RUN: xgpu-opt %s -p expand-complex --split-input-file | FileCheck %s

// The combiner takes the parts of this lane's number, then those of the other lane's.

// CHECK-LABEL: func.func @shuffle
// CHECK-NEXT:    %[[R:.*]]:3 = "xgpu.shuffle_reduce"(%arg0, %arg1, %arg2) {combiner = @f, distance = 4 : i64} : (f32, f32, i8) -> (f32, f32, i8)
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1, %[[R]]#2
// CHECK:       func.func private @f(%arg0: f32, %arg1: f32, %arg2: i8, %arg3: f32, %arg4: f32, %arg5: i8) -> (f32, f32, i8)
// CHECK-NEXT:    return %arg3, %arg1, %arg5
func.func @shuffle(%z: complex<f32>, %n: i8) -> (complex<f32>, i8) {
  %0:2 = "xgpu.shuffle_reduce"(%z, %n) {combiner = @f, distance = 4 : i64} : (complex<f32>, i8) -> (complex<f32>, i8)
  return %0#0, %0#1 : complex<f32>, i8
}

func.func private @f(%a: complex<f32>, %m: i8, %b: complex<f32>, %n: i8) -> (complex<f32>, i8) {
  %re = complex.re %b : complex<f32>
  %im = complex.im %a : complex<f32>
  %c = complex.create %re, %im : complex<f32>
  return %c, %n : complex<f32>, i8
}

// -----

// CHECK-LABEL: func.func @tile
// CHECK-NEXT:    %[[T:.*]] = "xgpu.allocate_shared"() : () -> tensor<8xi128>
// CHECK-NEXT:    "xgpu.sync_threads"(%[[T]]) : (tensor<8xi128>) -> tensor<8xi128>
func.func @tile() {
  %t = "xgpu.allocate_shared"() : () -> tensor<8xcomplex<f64>>
  %s = "xgpu.sync_threads"(%t) : (tensor<8xcomplex<f64>>) -> tensor<8xcomplex<f64>>
  return
}

// -----

// CHECK-LABEL: func.func @predicated
// CHECK-SAME:    (%[[C:.*]]: i1, %[[RE:.*]]: f32, %[[IM:.*]]: f32, %[[T:.*]]: tensor<8xi64> {xgpu.element = complex<f32>}, %[[I:.*]]: index)
// CHECK-NEXT:    %[[PARTS:.*]] = vector.from_elements %[[RE]], %[[IM]] : vector<2xf32>
// CHECK-NEXT:    %[[BITS:.*]] = llvm.bitcast %[[PARTS]] : vector<2xf32> to i64
// CHECK-NEXT:    %[[READ:.*]] = "xgpu.predicated_extract"(%[[C]], %[[BITS]], %[[T]], %[[I]]) : (i1, i64, tensor<8xi64>, index) -> i64
// CHECK-NEXT:    %[[V:.*]] = llvm.bitcast %[[READ]] : i64 to vector<2xf32>
// CHECK-NEXT:    %[[X:.*]] = vector.extract %[[V]][0]
// CHECK-NEXT:    %[[Y:.*]] = vector.extract %[[V]][1]
// CHECK-NEXT:    %[[P:.*]] = vector.from_elements %[[X]], %[[Y]] : vector<2xf32>
// CHECK-NEXT:    %[[B:.*]] = llvm.bitcast %[[P]] : vector<2xf32> to i64
// CHECK-NEXT:    "xgpu.predicated_insert"(%[[C]], %[[B]], %[[T]], %[[I]]) : (i1, i64, tensor<8xi64>, index) -> tensor<8xi64>
func.func @predicated(%c: i1, %z: complex<f32>, %t: tensor<8xcomplex<f32>>, %i: index) -> tensor<8xcomplex<f32>> {
  %0 = "xgpu.predicated_extract"(%c, %z, %t, %i) : (i1, complex<f32>, tensor<8xcomplex<f32>>, index) -> complex<f32>
  %1 = "xgpu.predicated_insert"(%c, %0, %t, %i) : (i1, complex<f32>, tensor<8xcomplex<f32>>, index) -> tensor<8xcomplex<f32>>
  return %1 : tensor<8xcomplex<f32>>
}

// -----

// CHECK-LABEL: func.func @atomic
// CHECK:         "xgpu.atomic_rmw"(%{{.*}}, %{{.*}}) ({
// CHECK-NEXT:    ^bb0(%[[OLD:.*]]: i64):
// CHECK-NEXT:      %[[V:.*]] = llvm.bitcast %[[OLD]] : i64 to vector<2xf32>
// CHECK-NEXT:      %[[RE:.*]] = vector.extract %[[V]][0]
// CHECK-NEXT:      %[[IM:.*]] = vector.extract %[[V]][1]
// CHECK-NEXT:      %[[P:.*]] = vector.from_elements %[[IM]], %[[RE]] : vector<2xf32>
// CHECK-NEXT:      %[[NEW:.*]] = llvm.bitcast %[[P]] : vector<2xf32> to i64
// CHECK-NEXT:      "xgpu.yield"(%[[NEW]]) : (i64) -> ()
// CHECK-NEXT:    }) : (tensor<8xi64>, index) -> tensor<8xi64>
func.func @atomic(%t: tensor<8xcomplex<f32>>, %i: index) -> tensor<8xcomplex<f32>> {
  %0 = "xgpu.atomic_rmw"(%t, %i) ({
  ^bb0(%old: complex<f32>):
    %re = complex.re %old : complex<f32>
    %im = complex.im %old : complex<f32>
    %new = complex.create %im, %re : complex<f32>
    "xgpu.yield"(%new) : (complex<f32>) -> ()
  }) : (tensor<8xcomplex<f32>>, index) -> tensor<8xcomplex<f32>>
  return %0 : tensor<8xcomplex<f32>>
}
