// RUN: xgpu-opt %s -p flatten-tensors --verify-diagnostics

// expected-error @below {{'func.func': expected tensors of static shape, got tensor<?x3xf32>}}
func.func @dynamic(%t: tensor<?x3xf32>) -> tensor<?x3xf32> {
  return %t : tensor<?x3xf32>
}
