// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_such_function(%i: index) -> f32 {
  // expected-error @+1 {{'xgpu.pure_call' expected the name of a function of this module, got '@missing'}}
  %0 = "xgpu.pure_call"(%i) {callee = @missing} : (index) -> f32
  return %0 : f32
}

// -----

func.func private @callee(%i: index) -> f32

func.func @wrong_type(%x: f32) -> f32 {
  // expected-error @+1 {{expected operands and results to fit '@callee' of type (index) -> f32, got (f32) -> f32}}
  %0 = "xgpu.pure_call"(%x) {callee = @callee} : (f32) -> f32
  return %0 : f32
}

// -----

func.func @callee_is_no_symbol(%i: index) -> f32 {
  // expected-error @+1 {{attribute 'callee': expected a function's symbol, got "f"}}
  %0 = "xgpu.pure_call"(%i) {callee = "f"} : (index) -> f32
  return %0 : f32
}
