"""Conversions between float widths that the host's back end calls by name where the CPU has no instruction.

Compilers' runtime libraries have these functions, but a process need not have one loaded, and the CPU's own
bf16 instructions flush subnormal numbers to zero. Here they are as LLVM IR, rounding to nearest even:

* double to a 16-bit type goes through a float rounded to odd (Boldo and Melquiond, "Emulation of a FMA and
  correctly-rounded sums: proved algorithms using rounding to odd"), so that it is rounded once;
* half subnormals are made by adding 0.5, whose unit in the last place is the smallest half.
"""

HELPER_NAMES = ("__truncsfbf2", "__truncdfbf2", "__truncsfhf2", "__truncdfhf2", "__extendhfsf2")

HELPED_TYPES = ("bfloat", "half")
"""LLVM's names of the types that these convert from and to: a module that names neither calls none of them."""

HELPER_IR = """
define internal float @to_odd_float(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %back_magnitude = call double @llvm.fabs.f64(double %back)
  %magnitude = call double @llvm.fabs.f64(double %x)
  %bits = bitcast float %near to i32
  %is_larger = fcmp ogt double %back_magnitude, %magnitude
  %one = zext i1 %is_larger to i32
  %truncated = sub i32 %bits, %one
  %is_inexact = fcmp one double %back, %x
  %sticky = zext i1 %is_inexact to i32
  %odd = or i32 %truncated, %sticky
  %result = bitcast i32 %odd to float
  ret float %result
}

define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %upper = lshr i32 %bits, 16
  %last = and i32 %upper, 1
  %half = add i32 %last, 32767
  %sum = add i32 %bits, %half
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %upper, 64
  %is_nan = fcmp uno float %x, %x
  %chosen = select i1 %is_nan, i32 %quiet, i32 %rounded
  %short = trunc i32 %chosen to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}

define bfloat @__truncdfbf2(double %x) {
  %odd = call float @to_odd_float(double %x)
  %result = call bfloat @__truncsfbf2(float %odd)
  ret bfloat %result
}

define half @__truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %sign_bit = lshr i32 %bits, 16
  %sign = and i32 %sign_bit, 32768
  %magnitude = and i32 %bits, 2147483647
  %value = bitcast i32 %magnitude to float
  %shifted = lshr i32 %magnitude, 13
  %last = and i32 %shifted, 1
  %half = add i32 %last, 4095
  %sum = add i32 %magnitude, %half
  %rebiased = sub i32 %sum, 939524096
  %normal = lshr i32 %rebiased, 13
  %aligned = fadd float %value, 5.000000e-01
  %aligned_bits = bitcast float %aligned to i32
  %subnormal = sub i32 %aligned_bits, 1056964608
  %is_subnormal = icmp ult i32 %magnitude, 947912704
  %finite = select i1 %is_subnormal, i32 %subnormal, i32 %normal
  %overflows = icmp uge i32 %magnitude, 1199566848
  %number = select i1 %overflows, i32 31744, i32 %finite
  %payload = and i32 %shifted, 1023
  %quiet = or i32 %payload, 32256
  %is_nan = fcmp uno float %x, %x
  %chosen = select i1 %is_nan, i32 %quiet, i32 %number
  %signed = or i32 %chosen, %sign
  %short = trunc i32 %signed to i16
  %result = bitcast i16 %short to half
  ret half %result
}

define half @__truncdfhf2(double %x) {
  %odd = call float @to_odd_float(double %x)
  %result = call half @__truncsfhf2(float %odd)
  ret half %result
}

define float @__extendhfsf2(half %x) {
  %short = bitcast half %x to i16
  %bits = zext i16 %short to i32
  %sign_bit = and i32 %bits, 32768
  %sign = shl i32 %sign_bit, 16
  %magnitude = and i32 %bits, 32767
  %shifted = shl i32 %magnitude, 13
  %small = bitcast i32 %shifted to float
  %scaled = fmul float %small, 0x46F0000000000000
  %scaled_bits = bitcast float %scaled to i32
  %special = or i32 %shifted, 2139095040
  %is_nan = icmp ugt i32 %magnitude, 31744
  %quiet_bit = select i1 %is_nan, i32 4194304, i32 0
  %quieted = or i32 %special, %quiet_bit
  %is_special = icmp uge i32 %magnitude, 31744
  %chosen = select i1 %is_special, i32 %quieted, i32 %scaled_bits
  %signed = or i32 %chosen, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}

declare double @llvm.fabs.f64(double)
"""
