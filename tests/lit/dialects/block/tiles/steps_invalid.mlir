// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @count(%x: tensor<8xf32>) {
  // expected-error @+1 {{'xgpu.steps' attribute 'count': expected a number from 0, got -1}}
  %0 = "xgpu.steps"(%x) ({
  ^bb0(%step: index, %a: tensor<8xf32>):
    "xgpu.yield"(%a) : (tensor<8xf32>) -> ()
  }) {count = -1 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @no_number(%x: tensor<8xf32>) {
  // expected-error @+1 {{expected body arguments (index, tensor<8xf32>), got (tensor<8xf32>)}}
  %0 = "xgpu.steps"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    "xgpu.yield"(%a) : (tensor<8xf32>) -> ()
  }) {count = 2 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @results(%x: tensor<8xf32>) {
  // expected-error @+1 {{expected what is carried, of which 0 are results, and then integers without dimensions, got tensor<8xf32>}}
  "xgpu.steps"(%x) ({
  ^bb0(%step: index, %a: tensor<8xf32>):
    "xgpu.yield"(%a) : (tensor<8xf32>) -> ()
  }) {count = 2 : i64} : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @yields_another_type(%x: tensor<8xf32>, %y: f32) {
  // expected-error @+1 {{expected xgpu.yield of (tensor<8xf32>), got (f32)}}
  %0 = "xgpu.steps"(%x) ({
  ^bb0(%step: index, %a: tensor<8xf32>):
    "xgpu.yield"(%y) : (f32) -> ()
  }) {count = 2 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @ends_otherwise(%x: tensor<8xf32>) {
  // expected-error @+1 {{expected the body to end with xgpu.yield}}
  %0 = "xgpu.steps"(%x) ({
  ^bb0(%step: index, %a: tensor<8xf32>):
    stablehlo.return %a : tensor<8xf32>
  }) {count = 2 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @limit_of_rows(%start: tensor<8xf32>, %lengths: tensor<8xi32>) {
  // expected-error @+1 {{expected what is carried, of which 1 are results, and then integers without dimensions, got tensor<8xi32>}}
  %0 = "xgpu.steps"(%start, %lengths) ({
  ^bb0(%step: index, %carried: tensor<8xf32>):
    "xgpu.yield"(%carried) : (tensor<8xf32>) -> ()
  }) {count = 4 : i64} : (tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @limit_that_is_an_index(%start: tensor<8xf32>, %length: index) {
  // expected-error @+1 {{operand 'limits': expected a tensor of static shape, got index}}
  %0 = "xgpu.steps"(%start, %length) ({
  ^bb0(%step: index, %carried: tensor<8xf32>):
    "xgpu.yield"(%carried) : (tensor<8xf32>) -> ()
  }) {count = 4 : i64} : (tensor<8xf32>, index) -> tensor<8xf32>
  return
}
