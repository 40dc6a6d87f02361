// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @pending() {
  // expected-error @+1 {{'xgpu.warpgroup_wait' attribute 'pending': expected 0 to 7, got 8}}
  "xgpu.warpgroup_wait"() {pending = 8 : i64} : () -> ()
  return
}

// -----

func.func @types(%0: vector<64xf32>) {
  // expected-error @+1 {{'xgpu.warpgroup_wait' expected results of the operands' types (vector<64xf32>), got (vector<32xf32>)}}
  %r = "xgpu.warpgroup_wait"(%0) {pending = 0 : i64} : (vector<64xf32>) -> vector<32xf32>
  return
}

// -----

func.func @no_accumulators(%wide: vector<256xf32>, %odd: vector<6xi32>, %bytes: vector<16xi8>) {
  // expected-error @+3 {{expected accumulators of f32 or i32, a multiple of 4 up to 128, got vector<256xf32>}}
  // expected-error @+2 {{expected accumulators of f32 or i32, a multiple of 4 up to 128, got vector<6xi32>}}
  // expected-error @+1 {{expected accumulators of f32 or i32, a multiple of 4 up to 128, got vector<16xi8>}}
  %0:3 = "xgpu.warpgroup_wait"(%wide, %odd, %bytes) {pending = 0 : i64} : (vector<256xf32>, vector<6xi32>, vector<16xi8>) -> (vector<256xf32>, vector<6xi32>, vector<16xi8>)
  return
}

// -----

func.func @scalable(%d: vector<[4]xf32>) {
  // expected-error @+1 {{operand 'started': expected a vector of one dimension, got vector<[4]xf32>}}
  %0 = "xgpu.warpgroup_wait"(%d) {pending = 0 : i64} : (vector<[4]xf32>) -> vector<[4]xf32>
  return
}
