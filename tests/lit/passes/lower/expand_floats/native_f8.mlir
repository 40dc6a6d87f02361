// GPUs from sm_89 on convert two of the 8-bit types themselves; what rounds beyond the largest number is mended.

// RUN: xgpu-opt %s -p 'expand-floats{capability=89}' --split-input-file | FileCheck %s --check-prefixes=CHECK,NATIVE
// RUN: xgpu-opt %s -p 'expand-floats{capability=80}' --split-input-file | FileCheck %s --check-prefixes=CHECK,CODE
// RUN: xgpu-opt %s -p 'expand-floats{target=host}' --split-input-file | FileCheck %s --check-prefixes=CHECK,CODE

// CHECK-LABEL: func.func @decode
// CODE-NOT:      llvm.call_intrinsic
// NATIVE:        %[[BYTE:.*]] = arith.extui %arg0 : i8 to i16
// NATIVE:        %[[PAIR:.*]] = llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"(%[[BYTE]]) : (i16) -> vector<2xf16>
// NATIVE:        %[[X:.*]] = vector.extract %[[PAIR]][0] : f16 from vector<2xf16>
// NATIVE:        llvm.call_intrinsic "llvm.nvvm.e5m2x2.to.f16x2.rn"
// NATIVE:        arith.extf {{.*}} : f16 to f32
// NATIVE:        return %[[X]]
func.func @decode(%x: f8E4M3FN, %y: f8E5M2) -> (f16, f32) {
  %a = arith.extf %x : f8E4M3FN to f16
  %b = arith.extf %y : f8E5M2 to f32
  return %a, %b : f16, f32
}

// -----

// CHECK-LABEL: func.func @encode
// CODE-NOT:      llvm.call_intrinsic
// NATIVE-DAG:    %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// NATIVE:        %[[CODES:.*]] = llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%[[ZERO]], %arg0) : (f32, f32) -> i16
// NATIVE:        %[[SIZE:.*]] = math.absf %arg0 : f32
// NATIVE:        %[[LIMIT:.*]] = arith.constant 4.640000e+02 : f32
// NATIVE:        %[[OVER:.*]] = arith.cmpf ogt, %[[SIZE]], %[[LIMIT]] : f32
// NATIVE:        %[[LOW:.*]] = arith.trunci %[[CODES]] : i16 to i8
// NATIVE:        %[[NEXT:.*]] = arith.extui %[[OVER]] : i1 to i8
// NATIVE:        arith.addi %[[LOW]], %[[NEXT]] : i8
// NATIVE:        vector.from_elements %arg1, {{.*}} : vector<2xf16>
// NATIVE:        llvm.call_intrinsic "llvm.nvvm.f16x2.to.e5m2x2.rn"
// NATIVE:        arith.cmpf oge
func.func @encode(%x: f32, %y: f16) -> (f8E4M3FN, f8E5M2) {
  %a = arith.truncf %x : f32 to f8E4M3FN
  %b = arith.truncf %y : f16 to f8E5M2
  return %a, %b : f8E4M3FN, f8E5M2
}

// -----

// No GPU converts the others.

// CHECK-LABEL: func.func @others
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         return
func.func @others(%x: f8E4M3, %y: f32) -> (f32, f8E8M0FNU, f4E2M1FN) {
  %a = arith.extf %x : f8E4M3 to f32
  %b = arith.truncf %y : f32 to f8E8M0FNU
  %c = arith.truncf %y : f32 to f4E2M1FN
  return %a, %b, %c : f32, f8E8M0FNU, f4E2M1FN
}
