// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @operand_count() -> i1 {
  // expected-error @+1 {{'xgpu.in_domain' expected 1 operands, got 0}}
  %0 = "xgpu.in_domain"() {map = #xgpu.map<(d0) -> (), d0 in [0, 7], d0 in [0, 3]>} : () -> i1
  return %0 : i1
}

// -----

func.func @result_type(%i: index) -> i8 {
  // expected-error @+1 {{result 'inside': expected i1, got i8}}
  %0 = "xgpu.in_domain"(%i) {map = #xgpu.map<(d0) -> (), d0 in [0, 7]>} : (index) -> i8
  return %0 : i8
}
