// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @no_region(%i: index) {
  // expected-error @+1 {{'xgpu.loop' expected 1 regions, got 0}}
  "xgpu.loop"(%i) {map = #xgpu.map<(d0) -> (), d0 in [0, 3]>} : (index) -> ()
  return
}

// -----

func.func @results_differ(%i: index, %x: f32) -> i32 {
  // expected-error @+1 {{expected results of types (f32), those carried, got (i32)}}
  %0 = "xgpu.loop"(%i, %x) ({
  ^bb0(%acc: f32):
    "xgpu.yield"(%acc) : (f32) -> ()
  }) {map = #xgpu.map<(d0) -> (), d0 in [0, 3]>} : (index, f32) -> i32
  return %0 : i32
}

// -----

func.func @body_arguments(%i: index, %x: f32) -> f32 {
  // expected-error @+1 {{expected body arguments (index, index, f32), got (index, f32)}}
  %0 = "xgpu.loop"(%i, %x) ({
  ^bb0(%s: index, %acc: f32):
    "xgpu.yield"(%acc) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (d0 + s0), d0 in [0, 3], s0 in [0, 3]>} : (index, f32) -> f32
  return %0 : f32
}

// -----

func.func @yields_too_little(%i: index, %x: f32) -> f32 {
  // expected-error @+1 {{expected xgpu.yield of (f32), got ()}}
  %0 = "xgpu.loop"(%i, %x) ({
  ^bb0(%acc: f32):
    "xgpu.yield"() : () -> ()
  }) {map = #xgpu.map<(d0) -> (), d0 in [0, 3]>} : (index, f32) -> f32
  return %0 : f32
}

// -----

func.func @used_before_it_is_made(%x: f32) -> f32 {
  %r = "xgpu.loop"(%x) ({
  ^bb0(%s0: index, %a: f32):
    // expected-error @+1 {{'arith.negf' operand #0 does not dominate this use}}
    %n = arith.negf %n : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<()[s0] -> (), s0 in [0, 3]>} : (f32) -> f32
  return %r : f32
}

// -----

func.func @used_in_a_region_before_it_is_made(%x: f32, %c: i1) -> f32 {
  %r = "xgpu.loop"(%x) ({
  ^bb0(%s0: index, %a: f32):
    %n = scf.if %c -> f32 {
      // expected-error @+1 {{'scf.yield' operand #0 does not dominate this use}}
      scf.yield %later : f32
    } else {
      scf.yield %a : f32
    }
    %later = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<()[s0] -> (), s0 in [0, 3]>} : (f32) -> f32
  return %r : f32
}
