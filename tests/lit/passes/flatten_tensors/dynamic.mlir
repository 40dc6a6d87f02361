// RUN: not xgpu-opt %s -p flatten-tensors 2>&1 | FileCheck %s

// CHECK: expected tensors of static shape, got tensor<?x3xf32>
// CHECK-NOT: Traceback
func.func @dynamic(%t: tensor<?x3xf32>) -> tensor<?x3xf32> {
  return %t : tensor<?x3xf32>
}
