// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_iterations() {
  // expected-error @+1 {{attribute 'extent': expected 1 to 2147483647 iterations, got 0}}
  "xgpu.par"() ({
  ^bb0(%i: index):
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 0 : i64} : () -> ()
  return
}

// -----

func.func @no_variable() {
  // expected-error @+1 {{'xgpu.seq' expected body arguments (index), got ()}}
  "xgpu.seq"() ({
    "xgpu.yield"() : () -> ()
  }) {called = "k", extent = 4 : i64} : () -> ()
  return
}

// -----

func.func @unknown_band() {
  // expected-error @+1 {{attribute 'band': expected one of "grid", "block", "thread", got "warp"}}
  "xgpu.par"() ({
  ^bb0(%i: index):
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 4 : i64, band = "warp"} : () -> ()
  return
}

// -----

func.func @launch_of_too_many_threads() {
  // expected-error @+1 {{attribute 'block': expected 1 to 1024, got 2048}}
  "xgpu.launch"() ({
    "xgpu.yield"() : () -> ()
  }) {block = 2048 : i64} : () -> ()
  return
}

// -----

func.func @launch_in_a_loop() {
  "xgpu.seq"() ({
  ^bb0(%i: index):
    // expected-error @+1 {{expected to be directly inside a function}}
    "xgpu.launch"() ({
      "xgpu.yield"() : () -> ()
    }) : () -> ()
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 4 : i64} : () -> ()
  return
}

// -----

func.func @out_of_bounds(%a: memref<8xf32>) {
  "xgpu.par"() ({
  ^bb0(%i: index):
    // expected-error @+1 {{attribute 'map': expected index 0 of memref<8xf32> to be in [0, 7], got [1, 8]}}
    %x = "xgpu.read"(%a, %i) {map = #xgpu.map<(d0) -> (d0 + 1), d0 in [0, 7]>} : (memref<8xf32>, index) -> tensor<f32>
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 8 : i64} : () -> ()
  return
}

// -----

func.func @more_than_the_loop(%a: memref<8xf32>) {
  "xgpu.par"() ({
  ^bb0(%i: index):
    // expected-error @+1 {{attribute 'map': expected dimension 0 to be in [0, 3], got [0, 7]}}
    %x = "xgpu.read"(%a, %i) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 7]>} : (memref<8xf32>, index) -> tensor<f32>
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 4 : i64} : () -> ()
  return
}

// -----

func.func @no_variable_of_a_loop(%a: memref<8xf32>, %i: index) {
  // expected-error @+1 {{operand 0 of the map: expected a variable of a loop, or xgpu.to_index}}
  %x = "xgpu.read"(%a, %i) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 7]>} : (memref<8xf32>, index) -> tensor<f32>
  return
}

// -----

func.func @another_type(%a: memref<8xf32>, %x: tensor<i32>) {
  // expected-error @+1 {{expected a value of type tensor<f32> for memref<8xf32>, got tensor<i32>}}
  "xgpu.write"(%x, %a) {map = #xgpu.map<() -> (0)>} : (tensor<i32>, memref<8xf32>) -> ()
  return
}

// -----

func.func @too_few_indices(%a: memref<8x8xf32>, %x: tensor<f32>) {
  // expected-error @+1 {{attribute 'map': expected 2 results and no range variables for memref<8x8xf32>}}
  "xgpu.accumulate"(%x, %a) {atomic = true, combiner = "add", map = #xgpu.map<() -> (0)>} : (tensor<f32>, memref<8x8xf32>) -> ()
  return
}

// -----

func.func @unknown_combiner(%a: memref<8xf32>, %x: tensor<f32>) {
  // expected-error @+1 {{attribute 'combiner': expected one of "add", "multiply"}}
  "xgpu.accumulate"(%x, %a) {atomic = true, combiner = "power", map = #xgpu.map<() -> (0)>} : (tensor<f32>, memref<8xf32>) -> ()
  return
}

// -----

func.func @no_elements() {
  // expected-error @+1 {{expected a buffer with elements, got memref<0x4xf32>}}
  %0 = "xgpu.new"() {called = "t"} : () -> memref<0x4xf32>
  return
}

// -----

func.func @rows_of_nothing() {
  // expected-error @+1 {{attribute 'pad': expected a count for a buffer with rows, got 1 for memref<f32>}}
  %0 = "xgpu.new"() {called = "t", pad = 1 : i64} : () -> memref<f32>
  return
}

// -----

func.func @index_of_a_float(%x: tensor<f32>) {
  // expected-error @+1 {{expected an integer of 8 bits or more, got tensor<f32>}}
  %0 = "xgpu.to_index"(%x) {extent = 4 : i64} : (tensor<f32>) -> index
  return
}

// -----

func.func @number_too_large() {
  "xgpu.seq"() ({
  ^bb0(%i: index):
    // expected-error @+1 {{attribute 'map': expected a number that i32 holds, got [0, 2147483648]}}
    %0 = "xgpu.from_index"(%i) {map = #xgpu.map<(d0) -> (d0 * 1073741824), d0 in [0, 2]>} : (index) -> tensor<i32>
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 3 : i64} : () -> ()
  return
}

// -----

func.func @condition_with_results() {
  // expected-error @+1 {{attribute 'map': expected a map without results and range variables}}
  "xgpu.where"() ({
    "xgpu.yield"() : () -> ()
  }, {
    "xgpu.yield"() : () -> ()
  }) {map = #xgpu.map<() -> (0)>} : () -> ()
  return
}

// -----

func.func @one_region() {
  // expected-error @+1 {{'xgpu.where' expected 2 regions, got 1}}
  "xgpu.where"() ({
    "xgpu.yield"() : () -> ()
  }) {map = #xgpu.map<() -> ()>} : () -> ()
  return
}

// -----

func.func @anchor_of_an_array(%x: tensor<4xf32>) {
  // expected-error @+1 {{operand 'value': expected a tensor of no dimensions, got tensor<4xf32>}}
  "xgpu.anchor"(%x) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @barrier_of_the_grid() {
  // expected-error @+1 {{attribute 'scope': expected one of "warp", "block", got "grid"}}
  "xgpu.barrier"() {scope = "grid"} : () -> ()
  return
}

// -----

func.func @at_once_of_no_power() {
  // expected-error @+1 {{attribute 'extent': expected a power of two up to 1024 for iterations that run at once, got 6}}
  "xgpu.par"() ({
  ^bb0(%i: index):
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 6 : i64, align = 8 : i64} : () -> ()
  return
}

// -----

func.func @at_once_of_blocks() {
  // expected-error @+1 {{attribute 'band': expected threads to run iterations that run at once, got "block"}}
  "xgpu.par"() ({
  ^bb0(%i: index):
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 8 : i64, align = 8 : i64, band = "block"} : () -> ()
  return
}

// -----

func.func @at_once_with_more_inside() {
  // expected-error @+1 {{expected no xgpu.par inside of one whose iterations run at once}}
  "xgpu.par"() ({
  ^bb0(%i: index):
    "xgpu.par"() ({
    ^bb0(%j: index):
      "xgpu.yield"() : () -> ()
    }) {called = "j", extent = 8 : i64} : () -> ()
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 8 : i64, align = 8 : i64} : () -> ()
  return
}

// -----

func.func @stages() {
  // expected-error @+1 {{attribute 'stages': expected 2 to 16, got 1}}
  "xgpu.seq"() ({
  ^bb0(%k: index):
    "xgpu.yield"() : () -> ()
  }) {called = "k", extent = 4 : i64, stages = 1 : i64} : () -> ()
  return
}

// -----

func.func @launch_without_a_schedule() {
  // expected-error @+1 {{expected the attributes 'emitter' and 'schedule', or neither}}
  "xgpu.launch"() ({
    "xgpu.yield"() : () -> ()
  }) {emitter = "product"} : () -> ()
  return
}
