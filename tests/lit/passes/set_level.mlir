// RUN: xgpu-opt %s -p 'set-level{level=optimized}' | FileCheck %s

// The level that a module has reached is recorded on it, in place of the one it had.
// CHECK: module attributes {xgpu.level = "optimized"}
module attributes {xgpu.level = "emitted"} {
}
