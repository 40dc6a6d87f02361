// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @element(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: !llvm.ptr<1>) {
  // expected-error @+1 {{'xgpu.encode_tensor_map' attribute 'element': expected one of i8, i16, i32, i64, f16, bf16, tf32, f32, f64, got f8E4M3FN}}
  "xgpu.encode_tensor_map"(%0, %1, %2) {box = array<i64: 128, 64>, element = f8E4M3FN, shape = array<i64: 4096, 1024>, strides = array<i64: 2048>, swizzle = "128"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  return
}

// -----

func.func @rank(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: !llvm.ptr<1>) {
  // expected-error @+1 {{'xgpu.encode_tensor_map' attribute 'shape': expected 1 to 5 sizes of 1 to 2^32, got (1, 1, 1, 1, 1, 1)}}
  "xgpu.encode_tensor_map"(%0, %1, %2) {box = array<i64: 128, 64>, element = bf16, shape = array<i64: 1, 1, 1, 1, 1, 1>, strides = array<i64: 2048>, swizzle = "128"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  return
}

// -----

func.func @strides(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: !llvm.ptr<1>) {
  // expected-error @+1 {{'xgpu.encode_tensor_map' attribute 'strides': expected 1 multiples of 16, below 2^40, got (2040,)}}
  "xgpu.encode_tensor_map"(%0, %1, %2) {box = array<i64: 128, 64>, element = bf16, shape = array<i64: 4096, 1024>, strides = array<i64: 2040>, swizzle = "128"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  return
}

// -----

func.func @box(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: !llvm.ptr<1>) {
  // expected-error @+1 {{'xgpu.encode_tensor_map' attribute 'box': expected 2 sizes of 1 to 256, got (257, 64)}}
  "xgpu.encode_tensor_map"(%0, %1, %2) {box = array<i64: 257, 64>, element = bf16, shape = array<i64: 4096, 1024>, strides = array<i64: 2048>, swizzle = "128"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  return
}

// -----

func.func @row(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: !llvm.ptr<1>) {
  // expected-error @+1 {{'xgpu.encode_tensor_map' attribute 'box': expected rows of a multiple of 16 bytes, got 8}}
  "xgpu.encode_tensor_map"(%0, %1, %2) {box = array<i64: 128, 4>, element = bf16, shape = array<i64: 4096, 1024>, strides = array<i64: 2048>, swizzle = "128"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  return
}

// -----

func.func @wide(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: !llvm.ptr<1>) {
  // expected-error @+1 {{'xgpu.encode_tensor_map' attribute 'box': expected rows of at most 64 bytes for this swizzle, got 128}}
  "xgpu.encode_tensor_map"(%0, %1, %2) {box = array<i64: 128, 64>, element = bf16, shape = array<i64: 4096, 1024>, strides = array<i64: 2048>, swizzle = "64"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  return
}

// -----

func.func @swizzle(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: !llvm.ptr<1>) {
  // expected-error @+1 {{'xgpu.encode_tensor_map' attribute 'swizzle': expected one of "none", "32", "64", "128", got "96"}}
  "xgpu.encode_tensor_map"(%0, %1, %2) {box = array<i64: 128, 64>, element = bf16, shape = array<i64: 4096, 1024>, strides = array<i64: 2048>, swizzle = "96"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  return
}
