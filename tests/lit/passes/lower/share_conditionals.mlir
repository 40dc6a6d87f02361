// RUN: xgpu-opt %s -p share-conditionals | FileCheck %s

// What waits for the shuffle takes the exponential that the first conditional computed.
// CHECK-LABEL: func.func @later
// CHECK: %[[NONE:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[NONE_TOO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[X:.*]]:2 = scf.if %[[INSIDE:.*]] -> (f32, f32) {
// CHECK-NEXT: tensor.extract
// CHECK-NEXT: %[[E:.*]] = math.exp
// CHECK-NEXT: scf.yield %[[E]], %[[E]] : f32, f32
// CHECK: scf.yield %[[NONE]], %[[NONE_TOO]] : f32, f32
// CHECK: scf.if %[[INSIDE]] -> (f32) {
// CHECK-NEXT: arith.divf %[[X]]#1
// CHECK-NEXT: scf.yield
// CHECK-NOT: math.exp
// CHECK: return
func.func @later(%inside: i1, %t: tensor<100xf32>, %i: index) -> f32 {
  %zero = arith.constant 0.0 : f32
  %x = scf.if %inside -> (f32) {
    %0 = tensor.extract %t[%i] : tensor<100xf32>
    %1 = math.exp %0 : f32
    scf.yield %1 : f32
  } else {
    scf.yield %zero : f32
  }
  %sum = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 1 : i64} : (f32) -> f32
  %y = scf.if %inside -> (f32) {
    %0 = tensor.extract %t[%i] : tensor<100xf32>
    %1 = math.exp %0 : f32
    %2 = arith.divf %1, %sum : f32
    scf.yield %2 : f32
  } else {
    scf.yield %zero : f32
  }
  return %y : f32
}

// A vector is shared as a whole, and what the second adds is there for the third.
// CHECK-LABEL: func.func @three
// CHECK: %[[A:.*]]:2 = scf.if %{{.*}} -> (f32, vector<2xf32>)
// CHECK: %[[B:.*]]:2 = scf.if %{{.*}} -> (f32, f32)
// CHECK: math.sin
// CHECK: scf.if
// CHECK-NEXT: arith.mulf %[[B]]#1
// CHECK-NOT: math.sin
// CHECK: return
func.func @three(%inside: i1, %t: tensor<100xf32>, %i: index) -> f32 {
  %zero = arith.constant 0.0 : f32
  %a = scf.if %inside -> (f32) {
    %v = vector.transfer_read %t[%i], %zero {in_bounds = [true]} : tensor<100xf32>, vector<2xf32>
    %0 = vector.extract %v[0] : f32 from vector<2xf32>
    scf.yield %0 : f32
  } else {
    scf.yield %zero : f32
  }
  %p = "xgpu.shuffle_reduce"(%a) {combiner = @add, distance = 1 : i64} : (f32) -> f32
  %b = scf.if %inside -> (f32) {
    %v = vector.transfer_read %t[%i], %zero {in_bounds = [true]} : tensor<100xf32>, vector<2xf32>
    %0 = vector.extract %v[1] : f32 from vector<2xf32>
    %1 = arith.addf %0, %p : f32
    %2 = math.sin %1 : f32
    scf.yield %2 : f32
  } else {
    scf.yield %zero : f32
  }
  %q = "xgpu.shuffle_reduce"(%b) {combiner = @add, distance = 1 : i64} : (f32) -> f32
  %c = scf.if %inside -> (f32) {
    %v = vector.transfer_read %t[%i], %zero {in_bounds = [true]} : tensor<100xf32>, vector<2xf32>
    %0 = vector.extract %v[1] : f32 from vector<2xf32>
    %1 = arith.addf %0, %p : f32
    %2 = math.sin %1 : f32
    %3 = arith.mulf %2, %q : f32
    scf.yield %3 : f32
  } else {
    scf.yield %zero : f32
  }
  return %c : f32
}

// Other conditions, other regions, and other arrays stay apart; so do an array that was written and an index.
// CHECK-LABEL: func.func @apart
// CHECK: scf.if %arg0 -> (f32) {
// CHECK: scf.if %arg1 -> (f32) {
// CHECK: math.exp
// CHECK: scf.if %arg0 -> (f32) {
// CHECK: } else {
// CHECK-NEXT: tensor.extract %arg2
// CHECK-NEXT: math.exp
// CHECK: scf.if %arg0 -> (f32) {
// CHECK-NEXT: tensor.extract %{{inserted.*}}[
// CHECK-NEXT: math.exp
func.func @apart(%a: i1, %b: i1, %t: tensor<100xf32>, %i: index) -> (f32, f32, f32, f32) {
  %zero = arith.constant 0.0 : f32
  %x = scf.if %a -> (f32) {
    %0 = tensor.extract %t[%i] : tensor<100xf32>
    %1 = math.exp %0 : f32
    scf.yield %1 : f32
  } else {
    scf.yield %zero : f32
  }
  %y = scf.if %b -> (f32) {
    %0 = tensor.extract %t[%i] : tensor<100xf32>
    %1 = math.exp %0 : f32
    scf.yield %1 : f32
  } else {
    scf.yield %x : f32
  }
  %z = scf.if %a -> (f32) {
    scf.yield %y : f32
  } else {
    %0 = tensor.extract %t[%i] : tensor<100xf32>
    %1 = math.exp %0 : f32
    scf.yield %1 : f32
  }
  %inserted = tensor.insert %z into %t[%i] : tensor<100xf32>
  %w = scf.if %a -> (f32) {
    %0 = tensor.extract %inserted[%i] : tensor<100xf32>
    %1 = math.exp %0 : f32
    scf.yield %1 : f32
  } else {
    scf.yield %zero : f32
  }
  return %x, %y, %z, %w : f32, f32, f32, f32
}
func.func private @add(%a: f32, %b: f32) -> f32 {
  %0 = arith.addf %a, %b : f32
  return %0 : f32
}

// What one conditional computes twice is computed once there, and is not asked of itself.
// CHECK-LABEL: func.func @twice
// CHECK: %[[X:.*]]:2 = scf.if %{{.*}} -> (f32, f32) {
// CHECK-NEXT: %[[E:.*]] = math.exp
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[E]], %[[E]]
// CHECK-NEXT: scf.yield %[[P]], %[[E]]
// CHECK: scf.if
// CHECK-NEXT: arith.divf %[[X]]#1
// CHECK: return
func.func @twice(%inside: i1, %a: f32) -> f32 {
  %zero = arith.constant 0.0 : f32
  %x = scf.if %inside -> (f32) {
    %0 = math.exp %a : f32
    %1 = math.exp %a : f32
    %2 = arith.mulf %0, %1 : f32
    scf.yield %2 : f32
  } else {
    scf.yield %zero : f32
  }
  %sum = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 1 : i64} : (f32) -> f32
  %y = scf.if %inside -> (f32) {
    %0 = math.exp %a : f32
    %1 = arith.divf %0, %sum : f32
    scf.yield %1 : f32
  } else {
    scf.yield %zero : f32
  }
  return %y : f32
}
