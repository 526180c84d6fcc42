// RUN: xdsl-opt %s -p graph-simplify-views | filecheck %s

// CHECK-LABEL: @reshapes_join
// CHECK: func.return %x
func.func @reshapes_join(%x: tensor<4x8xf32, #stepwell.layout<(4, 8), (8, 1)>>) -> tensor<4x8xf32, #stepwell.layout<(4, 8), (8, 1)>> {
  %a = graph.reshape %x : (tensor<4x8xf32, #stepwell.layout<(4, 8), (8, 1)>>) -> tensor<32xf32>
  %b = graph.reshape %a : (tensor<32xf32>) -> tensor<4x8xf32, #stepwell.layout<(4, 8), (8, 1)>>
  func.return %b : tensor<4x8xf32, #stepwell.layout<(4, 8), (8, 1)>>
}

// CHECK-LABEL: @permutes_join
// CHECK: graph.permute %x [2, 1, 0]
// CHECK-NEXT: func.return
func.func @permutes_join(%x: tensor<2x3x4xf32>) -> tensor<4x3x2xf32, #stepwell.layout<(4, 3, 2), (1, 4, 12)>> {
  %a = graph.permute %x [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32, #stepwell.layout<(3, 4, 2), (4, 1, 12)>>
  %b = graph.permute %a [1, 0, 2] : (tensor<3x4x2xf32, #stepwell.layout<(3, 4, 2), (4, 1, 12)>>) -> tensor<4x3x2xf32, #stepwell.layout<(4, 3, 2), (1, 4, 12)>>
  func.return %b : tensor<4x3x2xf32, #stepwell.layout<(4, 3, 2), (1, 4, 12)>>
}

// CHECK-LABEL: @broadcasts_join
// CHECK: graph.broadcast %x : (tensor<4xf32>) -> tensor<3x2x4xf32>
// CHECK-NEXT: func.return
func.func @broadcasts_join(%x: tensor<4xf32>) -> tensor<3x2x4xf32> {
  %a = graph.broadcast %x : (tensor<4xf32>) -> tensor<2x4xf32>
  %b = graph.broadcast %a : (tensor<2x4xf32>) -> tensor<3x2x4xf32>
  func.return %b : tensor<3x2x4xf32>
}

// CHECK-LABEL: @no_drop_when_a_permute_keeps_only_the_sizes
// CHECK: graph.permute
func.func @no_drop_when_a_permute_keeps_only_the_sizes(%x: tensor<1x1xf32, #stepwell.layout<(1, 1), (1, 1)>>) -> tensor<1x1xf32, #stepwell.layout<(1, 1), (1, 1)>> {
  %a = graph.permute %x [1, 0] : tensor<1x1xf32, #stepwell.layout<(1, 1), (1, 1)>>
  func.return %a : tensor<1x1xf32, #stepwell.layout<(1, 1), (1, 1)>>
}

// CHECK-LABEL: @no_join_when_a_permute_stands_between
// CHECK: graph.reshape
// CHECK: graph.permute
// CHECK: graph.reshape
func.func @no_join_when_a_permute_stands_between(%x: tensor<12xf32>) -> tensor<12xf32> {
  %a = graph.reshape %x : (tensor<12xf32>) -> tensor<3x4xf32, #stepwell.layout<(3, 4), (4, 1)>>
  %b = graph.permute %a [1, 0] : (tensor<3x4xf32, #stepwell.layout<(3, 4), (4, 1)>>) -> tensor<4x3xf32, #stepwell.layout<(4, 3), (1, 4)>>
  %c = graph.reshape %b : (tensor<4x3xf32, #stepwell.layout<(4, 3), (1, 4)>>) -> tensor<12xf32>
  func.return %c : tensor<12xf32>
}

// CHECK-LABEL: @no_drop_when_values_are_reversed
// CHECK: graph.flip
func.func @no_drop_when_values_are_reversed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.flip %x [0] : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @views_of_the_same_drop
// CHECK-NEXT: func.return %x
func.func @views_of_the_same_drop(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = graph.permute %x [0, 1] : tensor<4x8xf32>
  %b = graph.slice %a from (0, 0) step (1, 1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = graph.broadcast %b : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %d = graph.reshape %c : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %d : tensor<4x8xf32>
}
