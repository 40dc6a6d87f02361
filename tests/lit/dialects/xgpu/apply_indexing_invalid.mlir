// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_map(%i: index) -> index {
  // expected-error @+1 {{'xgpu.apply_indexing' expected attribute 'map' (an indexing map)}}
  %0 = "xgpu.apply_indexing"(%i) : (index) -> index
  return %0 : index
}

// -----

func.func @wrong_attribute(%i: index) -> index {
  // expected-error @+1 {{attribute 'map': expected an indexing map, got 1 : i64}}
  %0 = "xgpu.apply_indexing"(%i) {map = 1 : i64} : (index) -> index
  return %0 : index
}

// -----

func.func @malformed_map(%i: index) -> index {
  // expected-error @+1 {{attribute 'map':}}
  %0 = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 +), d0 in [0, 3]>} : (index) -> index
  return %0 : index
}

// -----

func.func @too_few_operands(%i: index) -> index {
  // expected-error @+1 {{'xgpu.apply_indexing' expected 2 operands, got 1}}
  %0 = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0, d1) -> (d0 + d1), d0 in [0, 3], d1 in [0, 3]>} : (index) -> index
  return %0 : index
}

// -----

func.func @operand_type(%i: i32) -> index {
  // expected-error @+1 {{operand 'dims': expected index, got i32}}
  %0 = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 3]>} : (i32) -> index
  return %0 : index
}

// -----

func.func @result_count(%i: index) -> index {
  // expected-error @+1 {{expected 2 results, one per result of the map, got 1}}
  %0 = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0, d0), d0 in [0, 3]>} : (index) -> index
  return %0 : index
}
