// RUN: xgpu-opt %s -p 'mark-products{choices=open}' | FileCheck %s --check-prefix=OPEN -DBY=wgmma
// RUN: xgpu-opt %s -p 'mark-products{choices=open target=sm_80}' | FileCheck %s --check-prefix=OPEN -DBY=mma
// RUN: xgpu-opt %s -p 'mark-products{products=kernels choices=library@5.25/6.50;tile_m=64+staged=true@9.00/4.00;@-/4.00}' | FileCheck %s --check-prefix=CHOSEN
// RUN: not xgpu-opt %s -p 'mark-products{choices=library@-/-}' 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not xgpu-opt %s -p 'mark-products{choices=cublas@-/-}' 2>&1 | FileCheck %s --check-prefix=WORD

// FEW: option 'choices': expected one for each of 3 products that a kernel can compute, got 1
// WORD: option 'choices': expected open|CHOICE;CHOICE;..., got 'cublas@-/-'

// Products that a kernel can compute are numbered, the one of f32 is passed over, and the loop's comes last.

// OPEN-LABEL:  func.func @main
// OPEN:        stablehlo.dot_general %arg0, %arg1{{.*}} {xgpu.candidate = 0 : i64, xgpu.product = "[[BY]]"} :
// OPEN:        stablehlo.dot_general{{.*}} : (tensor<64x64xf32>
// OPEN:        stablehlo.while
// OPEN:        stablehlo.dot_general{{.*}} {xgpu.candidate = 2 : i64, xgpu.product = "[[BY]]"} :
// OPEN:        stablehlo.dot_general{{.*}} {xgpu.candidate = 1 : i64, xgpu.product = "[[BY]]"} :

// CHOSEN-LABEL: func.func @main
// CHOSEN:       stablehlo.dot_general %arg0, %arg1{{.*}} {xgpu.measured = "library 5.2 us, kernel 6.5 us"} :
// CHOSEN:       stablehlo.dot_general{{.*}} precision
// CHOSEN-NOT:   xgpu
// CHOSEN:       stablehlo.while
// CHOSEN:       stablehlo.dot_general{{.*}} {xgpu.measured = "kernel 4.0 us", xgpu.product = "wgmma", xgpu.schedule = #xgpu.schedule<>} :
// CHOSEN:       stablehlo.dot_general{{.*}} {xgpu.measured = "library 9.0 us, kernel 4.0 us", xgpu.product = "wgmma", xgpu.schedule = #xgpu.schedule<tile_m = 64, staged = true>} :
func.func @main(%x: tensor<64x64xbf16>, %w: tensor<64x64xbf16>, %y: tensor<64x64xf32>, %n: tensor<i32>) -> (tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64x64xbf16>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %1 = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %2:2 = stablehlo.while(%i = %zero, %s = %0) : tensor<i32>, tensor<64x64xbf16>
  cond {
    %less = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    stablehlo.return %next, %3 : tensor<i32>, tensor<64x64xbf16>
  }
  %4 = stablehlo.dot_general %2#1, %w, contracting_dims = [1] x [0] {xgpu.product = "wgmma"} : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %4, %1, %0 : tensor<64x64xbf16>, tensor<64x64xf32>, tensor<64x64xbf16>
}
