// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @nothing(%lane: index) {
  // expected-error @+1 {{'xgpu.shuffle' expected at least 2 operands, got 1}}
  "xgpu.shuffle"(%lane) : (index) -> ()
  return
}

// -----

func.func @results(%lane: index, %x: f32) {
  // expected-error @+1 {{expected results of the values' types (f32), got (f64)}}
  %0 = "xgpu.shuffle"(%lane, %x) : (index, f32) -> f64
  return
}

// -----

func.func @lane(%lane: i32, %x: f32) {
  // expected-error @+1 {{operand 'lane': expected index, got i32}}
  %0 = "xgpu.shuffle"(%lane, %x) : (i32, f32) -> f32
  return
}
