// RUN: xdsl-opt %s -p graph-match-attention | filecheck %s

// CHECK-LABEL: @attention
// CHECK: [[K:%\w+]] = graph.permute %k [0, 2, 1]
// CHECK: graph.extern "aten._scaled_dot_product_flash_attention_for_cpu.default"({{.*}}), {scale = 0.5}
// CHECK-NEXT: [[R:%\w+]] = graph.reshape
// CHECK: func.return [[R]]
func.func @attention(%q: tensor<2x4x8xf32>, %k: tensor<2x8x6xf32, #stepwell.layout<(2, 8, 6), (48, 1, 8)>>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %p = graph.batch_matmul %q, %k : (tensor<2x4x8xf32>, tensor<2x8x6xf32, #stepwell.layout<(2, 8, 6), (48, 1, 8)>>) -> tensor<2x4x6xf32>
  %half = graph.full f32<0.5> : tensor<2x4x6xf32>
  %s = graph.mul %p, %half : tensor<2x4x6xf32>
  %m = graph.max %s [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %mk = graph.reshape %m : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %mb = graph.broadcast %mk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %d = graph.sub %s, %mb : tensor<2x4x6xf32>
  %e = graph.exp %d : tensor<2x4x6xf32>
  %t = graph.sum %e [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %tk = graph.reshape %t : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %tb = graph.broadcast %tk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %w = graph.div %e, %tb : tensor<2x4x6xf32>
  %o = graph.batch_matmul %w, %v : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  func.return %o : tensor<2x4x8xf32>
}

// CHECK-LABEL: @attention_by_the_inverse_of_the_sum
// CHECK: graph.extern "aten._scaled_dot_product_flash_attention_for_cpu.default"({{.*}}), {scale = 1.0}
func.func @attention_by_the_inverse_of_the_sum(%q: tensor<2x4x8xf32>, %k: tensor<2x8x6xf32, #stepwell.layout<(2, 8, 6), (48, 1, 8)>>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %s = graph.batch_matmul %q, %k : (tensor<2x4x8xf32>, tensor<2x8x6xf32, #stepwell.layout<(2, 8, 6), (48, 1, 8)>>) -> tensor<2x4x6xf32>
  %m = graph.max %s [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %mk = graph.reshape %m : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %mb = graph.broadcast %mk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %d = graph.sub %s, %mb : tensor<2x4x6xf32>
  %e = graph.exp %d : tensor<2x4x6xf32>
  %t = graph.sum %e [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %tk = graph.reshape %t : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %r = graph.reciprocal %tk : tensor<2x4x1xf32>
  %rb = graph.broadcast %r : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %w = graph.mul %e, %rb : tensor<2x4x6xf32>
  %o = graph.batch_matmul %w, %v : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  func.return %o : tensor<2x4x8xf32>
}

// CHECK-LABEL: @no_match_when_the_row_is_scaled_by_its_sum
// CHECK-NOT: graph.extern
// CHECK: func.return
func.func @no_match_when_the_row_is_scaled_by_its_sum(%q: tensor<2x4x8xf32>, %k: tensor<2x8x6xf32, #stepwell.layout<(2, 8, 6), (48, 1, 8)>>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %s = graph.batch_matmul %q, %k : (tensor<2x4x8xf32>, tensor<2x8x6xf32, #stepwell.layout<(2, 8, 6), (48, 1, 8)>>) -> tensor<2x4x6xf32>
  %m = graph.max %s [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %mk = graph.reshape %m : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %mb = graph.broadcast %mk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %d = graph.sub %s, %mb : tensor<2x4x6xf32>
  %e = graph.exp %d : tensor<2x4x6xf32>
  %t = graph.sum %e [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %tk = graph.reshape %t : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %tb = graph.broadcast %tk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %w = graph.mul %e, %tb : tensor<2x4x6xf32>
  %o = graph.batch_matmul %w, %v : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  func.return %o : tensor<2x4x8xf32>
}

// CHECK-LABEL: @no_match_when_the_weights_are_kept
// CHECK-NOT: graph.extern
// CHECK: func.return
func.func @no_match_when_the_weights_are_kept(%q: tensor<2x4x8xf32>, %k: tensor<2x8x6xf32, #stepwell.layout<(2, 8, 6), (48, 1, 8)>>, %v: tensor<2x6x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x6xf32>) {
  %s = graph.batch_matmul %q, %k : (tensor<2x4x8xf32>, tensor<2x8x6xf32, #stepwell.layout<(2, 8, 6), (48, 1, 8)>>) -> tensor<2x4x6xf32>
  %m = graph.max %s [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %mk = graph.reshape %m : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %mb = graph.broadcast %mk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %d = graph.sub %s, %mb : tensor<2x4x6xf32>
  %e = graph.exp %d : tensor<2x4x6xf32>
  %t = graph.sum %e [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %tk = graph.reshape %t : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %tb = graph.broadcast %tk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %w = graph.div %e, %tb : tensor<2x4x6xf32>
  %o = graph.batch_matmul %w, %v : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  func.return %o, %w : tensor<2x4x8xf32>, tensor<2x4x6xf32>
}

// CHECK-LABEL: @no_match_when_a_mask_is_added
// CHECK-NOT: graph.extern
// CHECK: func.return
func.func @no_match_when_a_mask_is_added(%q: tensor<2x4x8xf32>, %k: tensor<2x8x6xf32, #stepwell.layout<(2, 8, 6), (48, 1, 8)>>, %v: tensor<2x6x8xf32>, %mask: tensor<2x4x6xf32>) -> tensor<2x4x8xf32> {
  %p = graph.batch_matmul %q, %k : (tensor<2x4x8xf32>, tensor<2x8x6xf32, #stepwell.layout<(2, 8, 6), (48, 1, 8)>>) -> tensor<2x4x6xf32>
  %s = graph.add %p, %mask : tensor<2x4x6xf32>
  %m = graph.max %s [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %mk = graph.reshape %m : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %mb = graph.broadcast %mk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %d = graph.sub %s, %mb : tensor<2x4x6xf32>
  %e = graph.exp %d : tensor<2x4x6xf32>
  %t = graph.sum %e [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %tk = graph.reshape %t : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %tb = graph.broadcast %tk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %w = graph.div %e, %tb : tensor<2x4x6xf32>
  %o = graph.batch_matmul %w, %v : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  func.return %o : tensor<2x4x8xf32>
}

// CHECK-LABEL: @no_match_when_keys_are_strided_along_features
// CHECK-NOT: graph.extern
// CHECK: func.return
func.func @no_match_when_keys_are_strided_along_features(%q: tensor<2x4x8xf32>, %k: tensor<2x8x6xf32>, %v: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %s = graph.batch_matmul %q, %k : (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %m = graph.max %s [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %mk = graph.reshape %m : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %mb = graph.broadcast %mk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %d = graph.sub %s, %mb : tensor<2x4x6xf32>
  %e = graph.exp %d : tensor<2x4x6xf32>
  %t = graph.sum %e [2] : (tensor<2x4x6xf32>) -> tensor<2x4xf32>
  %tk = graph.reshape %t : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %tb = graph.broadcast %tk : (tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
  %w = graph.div %e, %tb : tensor<2x4x6xf32>
  %o = graph.batch_matmul %w, %v : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  func.return %o : tensor<2x4x8xf32>
}
