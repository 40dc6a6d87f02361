// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{attribute 'xgpu.block': expected sizes from 1 to (1024, 1024, 64)}}
func.func @negative() attributes {xgpu.kernel, xgpu.block = array<i64: 128, -1, 1>} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.block': expected at most 1024 together}}
func.func @too_many_threads() attributes {xgpu.kernel, xgpu.block = array<i64: 512, 4, 1>} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.grid': expected array<i64: x, y, z>}}
func.func @wrong_width() attributes {xgpu.kernel, xgpu.grid = array<i32: 1, 1, 1>} {
  return
}

// -----

// expected-error @+1 {{attribute 'arg_attrs' is or holds what is not supported as one}}
func.func @range_of_unknown_kind(%i: index {xgpu.range = array<si8: 0, 7>}) {
  return
}

// -----

// expected-error @+1 {{argument 0, attribute 'xgpu.range': expected array<i64: lower, upper>}}
func.func @range_of_other_width(%i: index {xgpu.range = array<i32: 0, 7>}) {
  return
}

// -----

// expected-error @+1 {{argument 0, attribute 'xgpu.range': expected array<i64: lower, upper>}}
func.func @range_of_three(%i: index {xgpu.range = array<i64: 1, 2, 3>}) {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.index_bits': expected 32 : i64 or 64 : i64}}
func.func @index_bits() attributes {xgpu.index_bits = 16 : i64} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.inputs': expected a count of type i64}}
func.func @inputs() attributes {xgpu.inputs = -1 : i64} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.overwrites': expected array<i64: ...> of outputs}}
func.func @overwrites() attributes {xgpu.overwrites = array<i64: -1>} {
  return
}

// -----

func.func @huge_vector(%i: index) {
  // expected-error @+1 {{vectors have at most 1024 elements}}
  %0 = arith.constant dense<0.0> : vector<65536xf32>
  return
}

// -----

func.func @unroll(%x: f32) -> f32 {
  // expected-error @+1 {{attribute 'xgpu.unroll': expected 'none', 'full' or 'early', got true}}
  %y = arith.addf %x, %x {xgpu.unroll = true} : f32
  return %y : f32
}

// -----

func.func @grade(%x: f32) -> f32 {
  // expected-error @+1 {{attribute 'xgpu.grade': expected the width of a type, got "16"}}
  %y = arith.addf %x, %x {xgpu.grade = "16"} : f32
  return %y : f32
}

// -----

func.func @flags(%x: f32) -> f32 {
  // expected-error @+1 {{attribute 'xgpu.flags': expected a string}}
  %y = arith.addf %x, %x {xgpu.flags = [1]} : f32
  return %y : f32
}

// -----

// expected-error @+1 {{attribute 'xgpu.cold': expected a unit attribute}}
func.func @cold() attributes {xgpu.cold = 1 : i32} {
  return
}

// -----

// expected-error @+1 {{argument 0, attribute 'xgpu.element': expected a type}}
func.func @element(%t: tensor<8xi64> {xgpu.element = 1 : i32}) {
  return
}

// -----

// expected-error @+1 {{argument 0, attribute 'llvm.align': expected a power of two}}
func.func @align(%p: !llvm.ptr {llvm.align = 0 : i64}) {
  return
}

// -----

// expected-error @+1 {{'builtin.module' attribute 'xgpu.level': expected a string, got 42 : i64}}
module attributes {xgpu.level = 42} {
}

// -----

func.func @address_space(%i: i64) {
  // expected-error @+1 {{'llvm.inttoptr' has a value of type !llvm.ptr<77>: the address spaces are 0, 1, 3, 4, 5, 7}}
  %p = llvm.inttoptr %i : i64 to !llvm.ptr<77>
  return
}

// -----

// expected-error @+1 {{'llvm.mlir.global' is in address space 2: they are 0, 1, 3, 4, 5}}
llvm.mlir.global internal @g() {addr_space = 2 : i32} : !llvm.array<8 x f32>

// -----

// What the bindings have no class for, wherever it is.

// expected-error @+1 {{attribute 'a.b' is or holds what is not supported as one}}
func.func @location() attributes {a.b = loc("x")} {
  return
}

// -----

// expected-error @+1 {{attribute 'arg_attrs' is or holds what is not supported as one}}
func.func @within(%i: index {a.b = [{c = loc(unknown)}]}) {
  return
}

// -----

func.func @complex() -> tensor<2xcomplex<f32>> {
  // expected-error @+1 {{'arith.constant': constant tensors of type tensor<2xcomplex<f32>> are not supported}}
  %0 = arith.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}

// -----

// expected-error @+1 {{has the unknown attribute 'xgpu.heroes' (did you mean 'xgpu.hero'?); those of operations are xgpu.level, xgpu.emitter, xgpu.schedule,}}
func.func @misspelt() attributes {xgpu.heroes} {
  return
}

// -----

// expected-error @+1 {{has the unknown attribute 'xgpu.range'}}
func.func @of_arguments() attributes {xgpu.range = array<i64: 0, 7>} {
  return
}

// -----

func.func @promise(%x: f32) -> f32 {
  // expected-error @+1 {{attribute 'xgpu.commutative' stands on a `stablehlo.reduce`}}
  %y = arith.addf %x, %x {xgpu.commutative} : f32
  return %y : f32
}

// -----

// expected-error @+1 {{attribute 'xgpu.schedule': expected #xgpu.schedule<name = number, ...>, got {vector = 4 : i64}}}
func.func @dictionary() attributes {xgpu.schedule = {vector = 4}} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.schedule': expected #xgpu.schedule<name = number, ...>, each name once}}
func.func @twice() attributes {xgpu.schedule = #xgpu.schedule<vector = 4, vector = 2>} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.cluster': expected at most 16 together}}
func.func @large_cluster() attributes {xgpu.kernel, xgpu.cluster = array<i64: 16, 2, 1>} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.cluster': expected divisors of the grid's sizes (6, 4, 1), got (4, 1, 1)}}
func.func @part_of_a_cluster() attributes {xgpu.kernel, xgpu.cluster = array<i64: 4, 1, 1>, xgpu.grid = array<i64: 6, 4, 1>} {
  return
}

// -----

// expected-error @+1 {{'llvm.mlir.global' is in address space 7: they are 0, 1, 3, 4, 5}}
llvm.mlir.global internal @of_a_cluster() {addr_space = 7 : i32} : !llvm.array<8 x i8>

// -----

func.func @convergent(%x: f32) -> f32 {
  // expected-error @+1 {{attribute 'xgpu.convergent' stands on an `llvm.inline_asm`}}
  %y = arith.addf %x, %x {xgpu.convergent} : f32
  return %y : f32
}

// -----

func.func @product(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{attribute 'xgpu.product' stands on a `stablehlo.dot_general`}}
  %0 = stablehlo.add %x, %x {xgpu.product = "mma"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @product_with_a_value(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{attribute 'xgpu.product': expected 'wgmma', 'mma' or 'fma', got true}}
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] {xgpu.product = true} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @product_measured(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{attribute 'xgpu.measured' stands on a `stablehlo.dot_general`}}
  %0 = stablehlo.add %x, %x {xgpu.measured = "library 1.0 us"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @product_joined_by_a_name(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{attribute 'xgpu.joined': expected a count of type i64, got "gate"}}
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] {xgpu.joined = "gate"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @product_with_a_prologue_of_a_number(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{attribute 'xgpu.prologue': expected 'left' or 'right', got 1}}
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] {xgpu.prologue = 1 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @product_without_a_number(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{attribute 'xgpu.candidate': expected a count of type i64, got -1 : i64}}
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] {xgpu.candidate = -1 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// expected-error @+1 {{attribute 'xgpu.workspace': expected}}
func.func @workspace() attributes {xgpu.kernel, xgpu.workspace = -1 : i64} {
  return
}

// -----

// expected-error @+1 {{attribute 'xgpu.workspace': expected the last output to be of type tensor<256xi8>, got tensor<128xi8>}}
func.func @size_of_workspace(%x: tensor<4xf32>, %own: tensor<128xi8>) -> tensor<128xi8> attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.workspace = 256 : i64} {
  return %own : tensor<128xi8>
}

// -----

// expected-error @+1 {{attribute 'xgpu.workspace': expected the last output to be of type tensor<256xi8>, got none}}
func.func @no_workspace(%x: tensor<256xi8>) attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.workspace = 256 : i64} {
  return
}

// -----

func.func @visible(%n: index) {
  // expected-error @+1 {{attribute 'xgpu.visible': expected an indexing map}}
  "xgpu.steps"() ({
  ^bb0(%i: index):
    "xgpu.yield"() : () -> ()
  }) {count = 1 : i64, xgpu.visible = 3 : i64} : () -> ()
  return
}

// -----

func.func @hidden(%n: index) {
  // expected-error @+1 {{attribute 'xgpu.hidden': expected a float}}
  "xgpu.steps"() ({
  ^bb0(%i: index):
    "xgpu.yield"() : () -> ()
  }) {count = 1 : i64, xgpu.hidden = 3 : i64} : () -> ()
  return
}

// -----

func.func @weight(%x: f32) -> f32 {
  // expected-error @+1 {{attribute 'xgpu.weight': expected a unit attribute}}
  %0 = math.exp %x {xgpu.weight = 3 : i64} : f32
  return %0 : f32
}

// -----

func.func @rare(%c: tensor<4xi1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{attribute 'xgpu.rare': expected a unit attribute}}
  %0 = stablehlo.select %c, %x, %x {xgpu.rare = 3 : i64} : tensor<4xi1>, tensor<4xf32>
  return %0 : tensor<4xf32>
}
