// RUN: xdsl-opt %s -p graph-match-bias | filecheck %s

// CHECK-LABEL: @bias_joins_its_product
// CHECK: graph.matmul %x, %w, %b
// CHECK-NOT: graph.add
// CHECK: func.return
func.func @bias_joins_its_product(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32> {
  %p = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %r = graph.broadcast %b : (tensor<6xf32>) -> tensor<4x6xf32>
  %s = graph.add %p, %r : tensor<4x6xf32>
  func.return %s : tensor<4x6xf32>
}

// CHECK-LABEL: @no_match_when_the_product_has_other_users
// CHECK: graph.add
func.func @no_match_when_the_product_has_other_users(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %p = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %r = graph.broadcast %b : (tensor<6xf32>) -> tensor<4x6xf32>
  %s = graph.add %p, %r : tensor<4x6xf32>
  func.return %s, %p : tensor<4x6xf32>, tensor<4x6xf32>
}

// CHECK-LABEL: @no_match_when_a_matrix_is_added
// CHECK: graph.add
func.func @no_match_when_a_matrix_is_added(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %r: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %p = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %s = graph.add %p, %r : tensor<4x6xf32>
  func.return %s : tensor<4x6xf32>
}

// CHECK-LABEL: @no_match_when_the_product_is_rounded_first
// CHECK: graph.add
func.func @no_match_when_the_product_is_rounded_first(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %b: tensor<6xbf16>) -> tensor<4x6xbf16> {
  %p = graph.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xbf16>
  %r = graph.broadcast %b : (tensor<6xbf16>) -> tensor<4x6xbf16>
  %s = graph.add %p, %r : tensor<4x6xbf16>
  func.return %s : tensor<4x6xbf16>
}

// CHECK-LABEL: @no_match_when_the_product_has_a_bias
// CHECK: graph.matmul %x, %w, %b
// CHECK: graph.add
func.func @no_match_when_the_product_has_a_bias(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32> {
  %p = graph.matmul %x, %w, %b : (tensor<4x8xf32>, tensor<8x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %r = graph.broadcast %b : (tensor<6xf32>) -> tensor<4x6xf32>
  %s = graph.add %p, %r : tensor<4x6xf32>
  func.return %s : tensor<4x6xf32>
}

// CHECK-LABEL: @no_match_when_the_sum_has_another_layout
// CHECK: graph.add
func.func @no_match_when_the_sum_has_another_layout(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32, #stepwell.layout<(4, 6), (1, 4)>> {
  %p = graph.matmul %x, %w : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %r = graph.broadcast %b : (tensor<6xf32>) -> tensor<4x6xf32>
  %s = graph.add %p, %r : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32, #stepwell.layout<(4, 6), (1, 4)>>
  func.return %s : tensor<4x6xf32, #stepwell.layout<(4, 6), (1, 4)>>
}
