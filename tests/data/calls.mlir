// Calls, a composite, CHLO and wrappers: what normalising removes.
module @calls attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%x: tensor<8x4xf32>, %y: tensor<8x4xf32> {mhlo.sharding = "{replicated}"}) -> tensor<8x4xf32> {
    %0 = call @twice(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{replicated}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2:2 = stablehlo.optimization_barrier %1, %y : tensor<8x4xf32>, tensor<8x4xf32>
    %3 = stablehlo.composite "my.square" %2#0 {decomposition = @square} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %4 = chlo.broadcast_add %3, %2#1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %4 : tensor<8x4xf32>
  }
  func.func private @twice(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = call @same(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.add %0, %x : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
  func.func private @same(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    return %x : tensor<8x4xf32>
  }
  func.func private @square(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = chlo.square %x : tensor<8x4xf32> -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
