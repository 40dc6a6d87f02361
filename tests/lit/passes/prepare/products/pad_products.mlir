// RUN: xgpu-opt %s -p pad-products --split-input-file | FileCheck %s

// The contracted dimension is that of a row: both operands are padded, and the attributes stay.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096x4093xbf16>, %arg1: tensor<4093x4096xbf16>) -> tensor<4096x4096xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.pad %arg0, %[[A]], low = [0, 0], high = [0, 3], interior = [0, 0] : (tensor<4096x4093xbf16>, tensor<bf16>) -> tensor<4096x4096xbf16>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.pad %arg1, %[[C]], low = [0, 0], high = [3, 0], interior = [0, 0] : (tensor<4093x4096xbf16>, tensor<bf16>) -> tensor<4096x4096xbf16>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.dot_general %[[B]], %[[D]], contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xf32>
// CHECK-NEXT:    return %[[E]] : tensor<4096x4096xf32>
func.func @main(%x: tensor<4096x4093xbf16>, %w: tensor<4093x4096xbf16>) -> tensor<4096x4096xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4096x4093xbf16>, tensor<4093x4096xbf16>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

// -----

// Rows of the second operand, and with them of the result, which is sliced.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096x4096xf32>, %arg1: tensor<4096x4097xf32>) -> tensor<4096x4097xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.pad %arg1, %[[A]], low = [0, 0], high = [0, 3], interior = [0, 0] : (tensor<4096x4097xf32>, tensor<f32>) -> tensor<4096x4100xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.dot_general %arg0, %[[B]], contracting_dims = [1] x [0] : (tensor<4096x4096xf32>, tensor<4096x4100xf32>) -> tensor<4096x4100xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.slice %[[C]] [0:4096, 0:4097] : (tensor<4096x4100xf32>) -> tensor<4096x4097xf32>
// CHECK-NEXT:    return %[[D]] : tensor<4096x4097xf32>
func.func @main(%x: tensor<4096x4096xf32>, %w: tensor<4096x4097xf32>) -> tensor<4096x4097xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x4096xf32>, tensor<4096x4097xf32>) -> tensor<4096x4097xf32>
  return %0 : tensor<4096x4097xf32>
}

// -----

// Rows of the result alone, which kernels read: an operand has more rows then.

// CHECK-LABEL: func.func @main(%arg0: tensor<8192x768xbf16>, %arg1: tensor<50257x768xbf16>) -> tensor<8192xbf16>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0xFF80> : tensor<bf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.pad %arg1, %[[B]], low = [0, 0], high = [7, 0], interior = [0, 0] : (tensor<50257x768xbf16>, tensor<bf16>) -> tensor<50264x768xbf16>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.dot_general %arg0, %[[C]], contracting_dims = [1] x [1] : (tensor<8192x768xbf16>, tensor<50264x768xbf16>) -> tensor<8192x50264xbf16>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.slice %[[D]] [0:8192, 0:50257] : (tensor<8192x50264xbf16>) -> tensor<8192x50257xbf16>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.reduce(%[[E]] init: %[[A]]) applies stablehlo.maximum across dimensions = [1] : (tensor<8192x50257xbf16>, tensor<bf16>) -> tensor<8192xbf16>
// CHECK-NEXT:    return %[[F]] : tensor<8192xbf16>
func.func @main(%x: tensor<8192x768xbf16>, %w: tensor<50257x768xbf16>) -> tensor<8192xbf16> {
  %c = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<8192x768xbf16>, tensor<50257x768xbf16>) -> tensor<8192x50257xbf16>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.maximum across dimensions = [1] : (tensor<8192x50257xbf16>, tensor<bf16>) -> tensor<8192xbf16>
  return %1 : tensor<8192xbf16>
}

// -----

// Of a batch, of operands whose rows are the free dimensions. A padded operand is made once for two products.

// CHECK-LABEL: func.func @main(%arg0: tensor<3x2048x1023xf16>, %arg1: tensor<3x2048x1029xf16>) -> (tensor<3x1023x1029xf16>, tensor<3x1023x1023xf16>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.pad %arg0, %[[A]], low = [0, 0, 0], high = [0, 0, 1], interior = [0, 0, 0] : (tensor<3x2048x1023xf16>, tensor<f16>) -> tensor<3x2048x1024xf16>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f16>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.pad %arg1, %[[C]], low = [0, 0, 0], high = [0, 0, 3], interior = [0, 0, 0] : (tensor<3x2048x1029xf16>, tensor<f16>) -> tensor<3x2048x1032xf16>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.dot_general %[[B]], %[[D]], batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<3x2048x1024xf16>, tensor<3x2048x1032xf16>) -> tensor<3x1024x1032xf16>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.slice %[[E]] [0:3, 0:1023, 0:1029] : (tensor<3x1024x1032xf16>) -> tensor<3x1023x1029xf16>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.dot_general %[[B]], %[[B]], batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<3x2048x1024xf16>, tensor<3x2048x1024xf16>) -> tensor<3x1024x1024xf16>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.slice %[[G]] [0:3, 0:1023, 0:1023] : (tensor<3x1024x1024xf16>) -> tensor<3x1023x1023xf16>
// CHECK-NEXT:    return %[[F]], %[[H]] : tensor<3x1023x1029xf16>, tensor<3x1023x1023xf16>
func.func @main(%x: tensor<3x2048x1023xf16>, %w: tensor<3x2048x1029xf16>) -> (tensor<3x1023x1029xf16>, tensor<3x1023x1023xf16>) {
  %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<3x2048x1023xf16>, tensor<3x2048x1029xf16>) -> tensor<3x1023x1029xf16>
  %1 = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<3x2048x1023xf16>, tensor<3x2048x1023xf16>) -> tensor<3x1023x1023xf16>
  return %0, %1 : tensor<3x1023x1029xf16>, tensor<3x1023x1023xf16>
}

// -----

// Of a row of several dimensions the one that takes the fewest zeros.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096x1365x3xf32>, %arg1: tensor<1365x3x4096xf32>) -> tensor<4096x4096xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.pad %arg0, %[[A]], low = [0, 0, 0], high = [0, 3, 0], interior = [0, 0, 0] : (tensor<4096x1365x3xf32>, tensor<f32>) -> tensor<4096x1368x3xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.pad %arg1, %[[C]], low = [0, 0, 0], high = [3, 0, 0], interior = [0, 0, 0] : (tensor<1365x3x4096xf32>, tensor<f32>) -> tensor<1368x3x4096xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.dot_general %[[B]], %[[D]], contracting_dims = [1, 2] x [0, 1] : (tensor<4096x1368x3xf32>, tensor<1368x3x4096xf32>) -> tensor<4096x4096xf32>
// CHECK-NEXT:    return %[[E]] : tensor<4096x4096xf32>
func.func @main(%x: tensor<4096x1365x3xf32>, %w: tensor<1365x3x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1, 2] x [0, 1] : (tensor<4096x1365x3xf32>, tensor<1365x3x4096xf32>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

// -----

// What the loop does not change is padded before it. What is made of a constant is left to XLA, which folds it.

// CHECK-LABEL: func.func @main(%arg0: tensor<2048x2047xf32>, %arg1: tensor<2047x2048xf32>, %arg2: tensor<i1>) -> tensor<2048x2048xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<2048x2048xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.pad %arg0, %[[B]], low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<2048x2047xf32>, tensor<f32>) -> tensor<2048x2048xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.pad %arg1, %[[D]], low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<2047x2048xf32>, tensor<f32>) -> tensor<2048x2048xf32>
// CHECK-NEXT:    %[[F:.*]]:4 = stablehlo.while(%[[G:.*]] = %arg0, %[[H:.*]] = %arg1, %[[I:.*]] = %[[A]], %[[J:.*]] = %arg2) : tensor<2048x2047xf32>, tensor<2047x2048xf32>, tensor<2048x2048xf32>, tensor<i1>
// CHECK-NEXT:    cond {
// CHECK-NEXT:      stablehlo.return %[[J]] : tensor<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:      %[[K:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<2048x2047xf32>
// CHECK-NEXT:      %[[L:.*]] = stablehlo.dot_general %[[C]], %[[E]], contracting_dims = [1] x [0] : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
// CHECK-NEXT:      %[[M:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:      %[[N:.*]] = stablehlo.pad %[[K]], %[[M]], low = [0, 0], high = [0, 1], interior = [0, 0] {xgpu.fallback = "XLA folds a pad of a constant, which a kernel would have in its text"} : (tensor<2048x2047xf32>, tensor<f32>) -> tensor<2048x2048xf32>
// CHECK-NEXT:      %[[O:.*]] = stablehlo.dot_general %[[N]], %[[E]], contracting_dims = [1] x [0] : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
// CHECK-NEXT:      %[[P:.*]] = stablehlo.add %[[L]], %[[O]] : tensor<2048x2048xf32>
// CHECK-NEXT:      stablehlo.return %[[G]], %[[H]], %[[P]], %[[J]] : tensor<2048x2047xf32>, tensor<2047x2048xf32>, tensor<2048x2048xf32>, tensor<i1>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[F]]#2 : tensor<2048x2048xf32>
func.func @main(%x: tensor<2048x2047xf32>, %w: tensor<2047x2048xf32>, %p: tensor<i1>) -> tensor<2048x2048xf32> {
  %s = stablehlo.constant dense<0.0> : tensor<2048x2048xf32>
  %0:4 = stablehlo.while(%a = %x, %b = %w, %c = %s, %d = %p) : tensor<2048x2047xf32>, tensor<2047x2048xf32>, tensor<2048x2048xf32>, tensor<i1>
  cond {
    stablehlo.return %d : tensor<i1>
  } do {
    %k = stablehlo.constant dense<1.0> : tensor<2048x2047xf32>
    %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2048x2047xf32>, tensor<2047x2048xf32>) -> tensor<2048x2048xf32>
    %2 = stablehlo.dot_general %k, %b, contracting_dims = [1] x [0] : (tensor<2048x2047xf32>, tensor<2047x2048xf32>) -> tensor<2048x2048xf32>
    %3 = stablehlo.add %1, %2 : tensor<2048x2048xf32>
    stablehlo.return %a, %b, %3, %d : tensor<2048x2047xf32>, tensor<2047x2048xf32>, tensor<2048x2048xf32>, tensor<i1>
  }
  return %0#2 : tensor<2048x2048xf32>
}

// -----

// What an operand is transposes of is padded. Products with an algorithm have such operands.

// CHECK-LABEL: func.func @main(%arg0: tensor<4096x4096xbf16>, %arg1: tensor<4096x4093xbf16>) -> tensor<4096x4096xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.slice %arg0 [0:4096, 0:4093] : (tensor<4096x4096xbf16>) -> tensor<4096x4093xbf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<4096x4093xbf16>) -> tensor<4093x4096xbf16>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.pad %[[A]], %[[C]], low = [0, 0], high = [0, 3], interior = [0, 0] : (tensor<4096x4093xbf16>, tensor<bf16>) -> tensor<4096x4096xbf16>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.pad %arg1, %[[E]], low = [0, 0], high = [0, 3], interior = [0, 0] : (tensor<4096x4093xbf16>, tensor<bf16>) -> tensor<4096x4096xbf16>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.transpose %[[F]], dims = [1, 0] : (tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.dot_general %[[D]], %[[G]], contracting_dims = [1] x [0], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xf32>
// CHECK-NEXT:    return %[[H]] : tensor<4096x4096xf32>
func.func @main(%x: tensor<4096x4096xbf16>, %w: tensor<4096x4093xbf16>) -> tensor<4096x4096xf32> {
  %0 = stablehlo.slice %x [0:4096, 0:4093] : (tensor<4096x4096xbf16>) -> tensor<4096x4093xbf16>
  %1 = stablehlo.transpose %w, dims = [1, 0] : (tensor<4096x4093xbf16>) -> tensor<4093x4096xbf16>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<4096x4093xbf16>, tensor<4093x4096xbf16>) -> tensor<4096x4096xf32>
  return %2 : tensor<4096x4096xf32>
}

// -----

// Small products are not worth a kernel for each operand, and those of few rows take about as long as the copies.

// CHECK-LABEL: func.func @main(%arg0: tensor<255x257xbf16>, %arg1: tensor<257x255xbf16>, %arg2: tensor<8x4093xbf16>, %arg3: tensor<4093x4097xbf16>) -> (tensor<255x255xbf16>, tensor<8x4097xbf16>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<255x257xbf16>, tensor<257x255xbf16>) -> tensor<255x255xbf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dot_general %arg2, %arg3, contracting_dims = [1] x [0] : (tensor<8x4093xbf16>, tensor<4093x4097xbf16>) -> tensor<8x4097xbf16>
// CHECK-NEXT:    return %[[A]], %[[B]] : tensor<255x255xbf16>, tensor<8x4097xbf16>
func.func @main(%x: tensor<255x257xbf16>, %w: tensor<257x255xbf16>, %y: tensor<8x4093xbf16>, %v: tensor<4093x4097xbf16>) -> (tensor<255x255xbf16>, tensor<8x4097xbf16>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<255x257xbf16>, tensor<257x255xbf16>) -> tensor<255x255xbf16>
  %1 = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0] : (tensor<8x4093xbf16>, tensor<4093x4097xbf16>) -> tensor<8x4097xbf16>
  return %0, %1 : tensor<255x255xbf16>, tensor<8x4097xbf16>
}

// -----

// Nor is a result worth it that XLA makes more of: it would be read and stored again, and with operands that are aligned the product
// is not so slow.

// CHECK-LABEL: func.func @main(%arg0: tensor<8192x768xbf16>, %arg1: tensor<50257x768xbf16>) -> tensor<8192x50257xbf16>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1] : (tensor<8192x768xbf16>, tensor<50257x768xbf16>) -> tensor<8192x50257xbf16>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.tanh %[[A]] : tensor<8192x50257xbf16>
// CHECK-NEXT:    return %[[B]] : tensor<8192x50257xbf16>
func.func @main(%x: tensor<8192x768xbf16>, %w: tensor<50257x768xbf16>) -> tensor<8192x50257xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<8192x768xbf16>, tensor<50257x768xbf16>) -> tensor<8192x50257xbf16>
  %1 = stablehlo.tanh %0 : tensor<8192x50257xbf16>
  return %1 : tensor<8192x50257xbf16>
}

// -----

// Tensor cores do not multiply f64, nor f32 at a higher precision.

// CHECK-LABEL: func.func @main(%arg0: tensor<2047x2047xf64>, %arg1: tensor<2047x2047xf32>) -> (tensor<2047x2047xf64>, tensor<2047x2047xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0] : (tensor<2047x2047xf64>, tensor<2047x2047xf64>) -> tensor<2047x2047xf64>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dot_general %arg1, %arg1, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2047x2047xf32>, tensor<2047x2047xf32>) -> tensor<2047x2047xf32>
// CHECK-NEXT:    return %[[A]], %[[B]] : tensor<2047x2047xf64>, tensor<2047x2047xf32>
func.func @main(%x: tensor<2047x2047xf64>, %y: tensor<2047x2047xf32>) -> (tensor<2047x2047xf64>, tensor<2047x2047xf32>) {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<2047x2047xf64>, tensor<2047x2047xf64>) -> tensor<2047x2047xf64>
  %1 = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2047x2047xf32>, tensor<2047x2047xf32>) -> tensor<2047x2047xf32>
  return %0, %1 : tensor<2047x2047xf64>, tensor<2047x2047xf32>
}
