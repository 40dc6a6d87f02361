// RUN: xgpu-opt %s -p split-chains --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'split-chains{parts=3}' --split-input-file | FileCheck %s --check-prefix=THREE
// RUN: xgpu-opt %s -p 'split-chains{parts=1}' --split-input-file | FileCheck %s --check-prefix=ONE

// ONE-NOT: stablehlo.pad
// ONE-NOT: tensor<3x

// Four rows of queries and 4,096 keys: 32 steps for one block, or one step for each of 32 blocks. Logits and values are in
// parts, the arrays are what they were; the result of each part is f32.
// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.*]]:3 = "xgpu.chain"(%arg0, %arg1, %arg2) ({
// CHECK:           %[[S:.*]] = stablehlo.dot_general {{.*}} -> tensor<4x4096xf32>
// CHECK:           %[[X:.*]] = stablehlo.reshape %[[S]] : (tensor<4x4096xf32>) -> tensor<4x[[N:[0-9]+]]x[[L:[0-9]+]]xf32>
// CHECK:           %[[M:.*]] = stablehlo.reduce(%[[X]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [2]
// CHECK:           %[[T:.*]] = stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.add across dimensions = [2]
// CHECK:           %[[V:.*]] = stablehlo.reshape %{{.*}} : (tensor<4096x64xbf16>) -> tensor<[[N]]x[[L]]x64xbf16>
// CHECK:           %[[O:.*]] = stablehlo.dot_general %{{.*}}, %[[V]], batching_dims = [1] x [0], contracting_dims = [2] x [1]{{.*}} -> tensor<[[N]]x4x64xf32>
// CHECK:           stablehlo.return %[[O]], %[[M]], %[[T]]
// CHECK:         %[[B:.*]] = stablehlo.transpose %[[P]]#1, dims = [1, 0]
// CHECK:         stablehlo.broadcast_in_dim %[[B]], dims = [0, 1] : (tensor<[[N]]x4xf32>) -> tensor<[[N]]x4x64xf32>
// CHECK:         %[[W:.*]] = stablehlo.multiply %[[P]]#0, %{{.*}} : tensor<[[N]]x4x64xf32>
// CHECK:         %[[R:.*]]:3 = stablehlo.reduce
// CHECK:         %[[Q:.*]] = stablehlo.divide %[[R]]#2, %[[R]]#1 : tensor<4x64xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.convert %[[Q]] : (tensor<4x64xf32>) -> tensor<4x64xbf16>
// CHECK-NEXT:    return %[[C]]

// In three parts the last one is shorter: 11 steps of 128, of 32. Its missing keys have no weight, and no values.
// THREE-LABEL: func.func @main
// THREE:         stablehlo.pad %{{.*}}, %{{.*}}, low = [0, 0], high = [0, 128], interior = [0, 0] : (tensor<4x4096xf32>, tensor<f32>) -> tensor<4x4224xf32>
// THREE:         stablehlo.pad %{{.*}}, %{{.*}}, low = [0, 0], high = [128, 0], interior = [0, 0] : (tensor<4096x64xbf16>, tensor<bf16>) -> tensor<4224x64xbf16>
// THREE:         stablehlo.reshape {{.*}} -> tensor<3x1408x64xbf16>
func.func @main(%q: tensor<4x64xbf16>, %k: tensor<4096x64xbf16>, %v: tensor<4096x64xbf16>) -> tensor<4x64xbf16> {
  %r = "xgpu.chain"(%q, %k, %v) ({
  ^bb0(%0: tensor<4x64xbf16>, %1: tensor<4096x64xbf16>, %2: tensor<4096x64xbf16>):
    %x = stablehlo.dot_general %0, %1, contracting_dims = [1] x [1] : (tensor<4x64xbf16>, tensor<4096x64xbf16>) -> tensor<4x4096xf32>
    %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4096xf32>, tensor<f32>) -> tensor<4xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x4096xf32>
    %d = stablehlo.subtract %x, %mb : tensor<4x4096xf32>
    %e = stablehlo.exponential %d : tensor<4x4096xf32>
    %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x4096xf32>, tensor<f32>) -> tensor<4xf32>
    %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<4xf32>) -> tensor<4x4096xf32>
    %p = stablehlo.divide %e, %tb : tensor<4x4096xf32>
    %w = stablehlo.convert %p : (tensor<4x4096xf32>) -> tensor<4x4096xbf16>
    %o = stablehlo.dot_general %w, %2, contracting_dims = [1] x [0] : (tensor<4x4096xbf16>, tensor<4096x64xbf16>) -> tensor<4x64xbf16>
    stablehlo.return %o : tensor<4x64xbf16>
  }) : (tensor<4x64xbf16>, tensor<4096x64xbf16>, tensor<4096x64xbf16>) -> tensor<4x64xbf16>
  return %r : tensor<4x64xbf16>
}

// -----

// Rows for all multiprocessors: keys are left together. What there is of each row is combined as the result is.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     tensor<{{[0-9]+}}x512x1024xf32>
// CHECK:         return %{{.*}}, %{{.*}} : tensor<512x4x64xbf16>, tensor<4x64xbf16>
// THREE-LABEL: func.func @main
// THREE:         "xgpu.chain"(%arg0, %arg1, %arg1)
// THREE:         stablehlo.reshape {{.*}} -> tensor<4x3x1408xf32>
// THREE:         }) : {{.*}} -> (tensor<3x4x64xf32>, tensor<4x3xf32>, tensor<4x3xf32>)
func.func @main(%a: tensor<512x4x64xbf16>, %b: tensor<512x1024x64xbf16>, %q: tensor<4x64xbf16>, %k: tensor<4096x64xbf16>) -> (tensor<512x4x64xbf16>, tensor<4x64xbf16>) {
  %r = "xgpu.chain"(%a, %b, %b) ({
  ^bb0(%0: tensor<512x4x64xbf16>, %1: tensor<512x1024x64xbf16>, %2: tensor<512x1024x64xbf16>):
    %x = stablehlo.dot_general %0, %1, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<512x4x64xbf16>, tensor<512x1024x64xbf16>) -> tensor<512x4x1024xf32>
    %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<512x4x1024xf32>, tensor<f32>) -> tensor<512x4xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<512x4xf32>) -> tensor<512x4x1024xf32>
    %d = stablehlo.subtract %x, %mb : tensor<512x4x1024xf32>
    %e = stablehlo.exponential %d : tensor<512x4x1024xf32>
    %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<512x4x1024xf32>, tensor<f32>) -> tensor<512x4xf32>
    %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<512x4xf32>) -> tensor<512x4x1024xf32>
    %p = stablehlo.divide %e, %tb : tensor<512x4x1024xf32>
    %w = stablehlo.convert %p : (tensor<512x4x1024xf32>) -> tensor<512x4x1024xbf16>
    %o = stablehlo.dot_general %w, %2, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<512x4x1024xbf16>, tensor<512x1024x64xbf16>) -> tensor<512x4x64xbf16>
    stablehlo.return %o : tensor<512x4x64xbf16>
  }) : (tensor<512x4x64xbf16>, tensor<512x1024x64xbf16>, tensor<512x1024x64xbf16>) -> tensor<512x4x64xbf16>
  %s:2 = "xgpu.chain"(%q, %k, %k) ({
  ^bb0(%0: tensor<4x64xbf16>, %1: tensor<4096x64xbf16>, %2: tensor<4096x64xbf16>):
    %x = stablehlo.dot_general %0, %1, contracting_dims = [1] x [1] : (tensor<4x64xbf16>, tensor<4096x64xbf16>) -> tensor<4x4096xf32>
    %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4096xf32>, tensor<f32>) -> tensor<4xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>) -> tensor<4x4096xf32>
    %d = stablehlo.subtract %x, %mb : tensor<4x4096xf32>
    %e = stablehlo.exponential %d : tensor<4x4096xf32>
    %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x4096xf32>, tensor<f32>) -> tensor<4xf32>
    %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<4xf32>) -> tensor<4x4096xf32>
    %p = stablehlo.divide %e, %tb : tensor<4x4096xf32>
    %w = stablehlo.convert %p : (tensor<4x4096xf32>) -> tensor<4x4096xbf16>
    %o = stablehlo.dot_general %w, %2, contracting_dims = [1] x [0] : (tensor<4x4096xbf16>, tensor<4096x64xbf16>) -> tensor<4x64xbf16>
    stablehlo.return %o, %m : tensor<4x64xbf16>, tensor<4xf32>
  }) : (tensor<4x64xbf16>, tensor<4096x64xbf16>, tensor<4096x64xbf16>) -> (tensor<4x64xbf16>, tensor<4xf32>)
  return %r, %s#0 : tensor<512x4x64xbf16>, tensor<4x64xbf16>
}
