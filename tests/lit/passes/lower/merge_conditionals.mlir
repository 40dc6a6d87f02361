// RUN: xgpu-opt %s -p merge-conditionals | FileCheck %s
// RUN: xgpu-opt %s -p merge-conditionals,cse | FileCheck %s --check-prefix=CSE

// CHECK-LABEL: func.func @both
// CHECK: %[[XY:.*]]:2 = scf.if %{{.*}} -> (f32, f32) {
// CHECK: scf.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK: } else {
// CHECK: scf.yield %[[ZERO:.*]], %[[ZERO]] : f32, f32
// CHECK: arith.addf %[[XY]]#0
// CHECK-NOT: scf.if
// CHECK: return %{{.*}}, %[[XY]]#1
// CSE-LABEL: func.func @both
// CSE-COUNT-1: tensor.extract
// CSE-NOT: tensor.extract
// CSE: return
func.func @both(%inside: i1, %t: tensor<100xf32>, %i: index) -> (f32, f32) {
  %zero = arith.constant 0.0 : f32
  %x = scf.if %inside -> (f32) {
    %0 = tensor.extract %t[%i] : tensor<100xf32>
    scf.yield %0 : f32
  } else {
    scf.yield %zero : f32
  }
  %sum = arith.addf %x, %x : f32
  %y = scf.if %inside -> (f32) {
    %1 = tensor.extract %t[%i] : tensor<100xf32>
    %2 = arith.mulf %1, %1 : f32
    scf.yield %2 : f32
  } else {
    scf.yield %zero : f32
  }
  return %sum, %y : f32, f32
}

// What is inside comes together too.
// CHECK-LABEL: func.func @nested
// CHECK: scf.if %arg0 -> (f32, f32)
// CHECK-NEXT: scf.if %arg1 -> (f32, f32)
// CHECK-NOT: scf.if
// CHECK: return
func.func @nested(%a: i1, %b: i1, %x: f32) -> (f32, f32) {
  %first = scf.if %a -> (f32) {
    %0 = scf.if %b -> (f32) {
      %1 = arith.mulf %x, %x : f32
      scf.yield %1 : f32
    } else {
      scf.yield %x : f32
    }
    scf.yield %0 : f32
  } else {
    scf.yield %x : f32
  }
  %second = scf.if %a -> (f32) {
    %0 = scf.if %b -> (f32) {
      %1 = arith.addf %x, %x : f32
      scf.yield %1 : f32
    } else {
      scf.yield %x : f32
    }
    scf.yield %0 : f32
  } else {
    scf.yield %x : f32
  }
  return %first, %second : f32, f32
}

// The second needs what the first makes, and the third, which needs what is there before the second, joins that.
// CHECK-LABEL: func.func @one_needs_the_other
// CHECK: %[[FIRST:.*]] = scf.if %arg0 -> (f32)
// CHECK: %[[SUM:.*]] = arith.addf %[[FIRST]]
// CHECK: %[[REST:.*]]:2 = scf.if %arg0 -> (f32, f32)
// CHECK: return %[[REST]]#0, %[[REST]]#1
func.func @one_needs_the_other(%a: i1, %x: f32) -> (f32, f32) {
  %first = scf.if %a -> (f32) {
    %0 = arith.mulf %x, %x : f32
    scf.yield %0 : f32
  } else {
    scf.yield %x : f32
  }
  %sum = arith.addf %first, %first : f32
  %second = scf.if %a -> (f32) {
    %0 = arith.mulf %sum, %x : f32
    scf.yield %0 : f32
  } else {
    scf.yield %x : f32
  }
  %third = scf.if %a -> (f32) {
    %0 = arith.subf %x, %sum : f32
    scf.yield %0 : f32
  } else {
    scf.yield %x : f32
  }
  return %second, %third : f32, f32
}

// Threads meet between the two, or something is stored: they stay where they are.
// CHECK-LABEL: func.func @barrier
// CHECK-COUNT-2: -> (f32)
func.func @barrier(%a: i1, %t: tensor<100xf32>, %i: index, %x: f32) -> (f32, f32, tensor<100xf32>) {
  %first = scf.if %a -> (f32) {
    %0 = tensor.extract %t[%i] : tensor<100xf32>
    scf.yield %0 : f32
  } else {
    scf.yield %x : f32
  }
  %stored = tensor.insert %first into %t[%i] : tensor<100xf32>
  %met = "xgpu.sync_threads"(%stored) : (tensor<100xf32>) -> tensor<100xf32>
  %second = scf.if %a -> (f32) {
    %0 = arith.mulf %x, %x : f32
    scf.yield %0 : f32
  } else {
    scf.yield %x : f32
  }
  return %first, %second, %met : f32, f32, tensor<100xf32>
}

// Stores are no scalars.
// CHECK-LABEL: func.func @stores
// CHECK-COUNT-2: -> (tensor<100xf32>)
func.func @stores(%a: i1, %t: tensor<100xf32>, %u: tensor<100xf32>, %i: index, %x: f32) -> (tensor<100xf32>, tensor<100xf32>) {
  %first = scf.if %a -> (tensor<100xf32>) {
    %0 = tensor.insert %x into %t[%i] : tensor<100xf32>
    scf.yield %0 : tensor<100xf32>
  } else {
    scf.yield %t : tensor<100xf32>
  }
  %second = scf.if %a -> (tensor<100xf32>) {
    %0 = tensor.insert %x into %u[%i] : tensor<100xf32>
    scf.yield %0 : tensor<100xf32>
  } else {
    scf.yield %u : tensor<100xf32>
  }
  return %first, %second : tensor<100xf32>, tensor<100xf32>
}
