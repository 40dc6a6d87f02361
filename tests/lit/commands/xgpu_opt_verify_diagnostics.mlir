// With --verify-diagnostics the comments say which diagnostics are right, and only those.

// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @same_line() { "nothing.known"() : () -> () return } // expected-error {{unknown operation 'nothing.known'}}

// -----

func.func @lines() {
  // expected-error@+2 {{unknown operation 'nothing.a'}}
  // expected-error@below {{unknown operation 'nothing.a'}}
  "nothing.a"() : () -> () "nothing.a"() : () -> ()
  "nothing.b"() : () -> ()
  // expected-error@above {{unknown operation 'nothing.b'}}
  // expected-error@-2 {{unknown operation 'nothing.c'}}
  "nothing.c"() : () -> () loc("-":13:1)
  return
}

// -----

func.func @regular_expression() {
  // expected-error-re @below {{unknown operation '{{[a-z]+}}.known': no {{dialect|namespace}} 'nothing' is known}}
  "nothing.known"() : () -> ()
  return
}

// -----

func.func @note() {
  // expected-note @below {{previously defined here}}
  %x = arith.constant 1 : i32
  // expected-error @below {{redefinition of SSA value '%x'}}
  %x = arith.constant 2 : i32
  return
}

// -----

func.func @nowhere() {
  // expected-error @unknown {{unknown operation 'nothing.known'}}
  "nothing.known"() : () -> () loc(unknown)
  return
}
