// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @element(%0: vector<64xf32>, %1: !llvm.ptr<3>, %2: !llvm.ptr<3>, %3: i1) {
  // expected-error @+1 {{'xgpu.warpgroup_mma' attribute 'a_element': expected a type of at most 32 bits, got f64}}
  %r = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = f64, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = f64, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<64xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<64xf32>
  return
}

// -----

func.func @sums(%0: vector<64xi32>, %1: !llvm.ptr<3>, %2: !llvm.ptr<3>, %3: i1) {
  // expected-error @+1 {{'xgpu.warpgroup_mma' expected accumulators of f32, got vector<64xi32> -> vector<64xi32>}}
  %r = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<64xi32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<64xi32>
  return
}

// -----

func.func @columns(%0: vector<6xf32>, %1: !llvm.ptr<3>, %2: !llvm.ptr<3>, %3: i1) {
  // expected-error @+1 {{'xgpu.warpgroup_mma' expected a number of columns that the instruction has, up to 256, got 12}}
  %r = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<6xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<6xf32>
  return
}

// -----

func.func @transposed(%0: vector<64xf32>, %1: !llvm.ptr<3>, %2: !llvm.ptr<3>, %3: i1) {
  // expected-error @+1 {{'xgpu.warpgroup_mma' expected operands of tf32 with rows along the contracted dimension, got a transposed one}}
  %r = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = tf32, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = tf32, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<64xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<64xf32>
  return
}

// -----

func.func @left(%0: vector<64xf32>, %1: vector<2xi32>, %2: !llvm.ptr<3>, %3: i1) {
  // expected-error @+1 {{'xgpu.warpgroup_mma' operand 'a': expected vector<4xi32> or !llvm.ptr<3>, got vector<2xi32>}}
  %r = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<64xf32>, vector<2xi32>, !llvm.ptr<3>, i1) -> vector<64xf32>
  return
}

// -----

func.func @layout(%0: vector<64xf32>, %1: !llvm.ptr<3>, %2: !llvm.ptr<3>, %3: i1) {
  // expected-error @+1 {{'xgpu.warpgroup_mma' attribute 'a_layout': expected 'group' to be a multiple of 16 bytes below 2^18, got 1000}}
  %r = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = bf16, a_layout = {group = 1000 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<64xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<64xf32>
  return
}

// -----

func.func @swizzle(%0: vector<64xf32>, %1: !llvm.ptr<3>, %2: !llvm.ptr<3>, %3: i1) {
  // expected-error @+1 {{'xgpu.warpgroup_mma' attribute 'a_layout': expected a swizzle of 0, 32, 64 or 128 bytes, got 96}}
  %r = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 96 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<64xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<64xf32>
  return
}
