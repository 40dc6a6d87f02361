// RUN: xgpu-opt %s -p inline --verify-diagnostics

// Recursion is an error that names the functions, and not an endless loop.

func.func @main(%i: index) -> i1 {
  %x = "xgpu.pure_call"(%i) {callee = @even} : (index) -> i1
  return %x : i1
}
// expected-error @below {{functions call each other in a cycle: @even -> @odd -> @even}}
func.func private @even(%i: index) -> i1 {
  %x = "xgpu.pure_call"(%i) {callee = @odd} : (index) -> i1
  return %x : i1
}
func.func private @odd(%i: index) -> i1 {
  %x = "xgpu.pure_call"(%i) {callee = @even} : (index) -> i1
  return %x : i1
}
