// What lower-scf refuses.

// RUN: xgpu-opt %s -p lower-scf --split-input-file --verify-diagnostics

func.func @other_region(%x: index) -> i32 {
  // expected-error @below {{'scf.index_switch': expected scf.for, scf.if, scf.while}}
  %r = scf.index_switch %x -> i32
  case 2 {
    %c = arith.constant 2 : i32
    scf.yield %c : i32
  }
  default {
    %c = arith.constant 3 : i32
    scf.yield %c : i32
  }
  return %r : i32
}

// -----

func.func @word(%n: index) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'scf.for' attribute 'xgpu.unroll': expected 'none', 'full' or 'early', got "twice"}}
  scf.for %i = %c0 to %n step %n {
  } {xgpu.unroll = "twice"}
  return
}
