// RUN: xdsl-opt %s -p loop-flatten-rows --split-input-file | filecheck %s

// The elements of a row are named as they were when the row was reduced, whatever else is read for them.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @scaled
// CHECK: loop.reduce ([[J:%\w+]]) to (98) [add] -> f32 {
// CHECK: loop.parallel ([[E:%\w+]]) to (98) {
// CHECK-NEXT: loop.read %{{.*}}[[[N:%\w+]], [[E]] floordiv 49, [[E]] mod 49]
// CHECK-NEXT: loop.read %{{.*}}[[[E]] floordiv 49]
// CHECK: loop.write %{{.*}}, %{{.*}}[[[N]], [[E]] floordiv 49, [[E]] mod 49]
func.func @scaled(%x: tensor<4x2x49xf32>, %w: tensor<2xf32>) -> tensor<4x2x49xf32> {
  %y = loop.kernel "scaled" outs(%o : memref<4x2x49xf32>) -> tensor<4x2x49xf32> {
    loop.parallel (%n) to (4) {
      %t = loop.reduce (%j) to (98) [add] -> f32 {
        %v = loop.read %x[%n, %j floordiv 49, %j mod 49] : tensor<4x2x49xf32>
        loop.yield %v : f32
      }
      loop.parallel (%c, %p) to (2, 49) {
        %v = loop.read %x[%n, %c, %p] : tensor<4x2x49xf32>
        %k = loop.read %w[%c] : tensor<2xf32>
        %a = arith.mulf %v, %k : f32
        %d = arith.subf %a, %t : f32
        loop.write %d, %o[%n, %c, %p] : memref<4x2x49xf32>
      }
    }
  }
  func.return %y : tensor<4x2x49xf32>
}

// CHECK-LABEL: @no_flatten_when_other_tensors_are_read
// CHECK: loop.parallel ({{.*}}) to (2, 49)
func.func @no_flatten_when_other_tensors_are_read(%x: tensor<4x98xf32>, %z: tensor<4x2x49xf32>) -> tensor<4x2x49xf32> {
  %y = loop.kernel "other" outs(%o : memref<4x2x49xf32>) -> tensor<4x2x49xf32> {
    loop.parallel (%n) to (4) {
      %t = loop.reduce (%j) to (98) [add] -> f32 {
        %v = loop.read %x[%n, %j] : tensor<4x98xf32>
        loop.yield %v : f32
      }
      loop.parallel (%c, %p) to (2, 49) {
        %v = loop.read %z[%n, %c, %p] : tensor<4x2x49xf32>
        %d = arith.subf %v, %t : f32
        loop.write %d, %o[%n, %c, %p] : memref<4x2x49xf32>
      }
    }
  }
  func.return %y : tensor<4x2x49xf32>
}

// CHECK-LABEL: @no_flatten_when_the_row_is_reduced_along_two_dims
// CHECK: loop.parallel ({{.*}}) to (2, 49)
func.func @no_flatten_when_the_row_is_reduced_along_two_dims(%x: tensor<4x2x49xf32>) -> tensor<4x2x49xf32> {
  %y = loop.kernel "two" outs(%o : memref<4x2x49xf32>) -> tensor<4x2x49xf32> {
    loop.parallel (%n) to (4) {
      %t = loop.reduce (%i, %j) to (2, 49) [add] -> f32 {
        %v = loop.read %x[%n, %i, %j] : tensor<4x2x49xf32>
        loop.yield %v : f32
      }
      loop.parallel (%c, %p) to (2, 49) {
        %v = loop.read %x[%n, %c, %p] : tensor<4x2x49xf32>
        %d = arith.subf %v, %t : f32
        loop.write %d, %o[%n, %c, %p] : memref<4x2x49xf32>
      }
    }
  }
  func.return %y : tensor<4x2x49xf32>
}
}

// -----

// Lanes of a processor go along the last dim in any case.

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 49152, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_flatten_when_the_target_is_a_processor
// CHECK: loop.parallel ({{.*}}) to (2, 49)
func.func @no_flatten_when_the_target_is_a_processor(%x: tensor<4x2x49xf32>) -> tensor<4x2x49xf32> {
  %y = loop.kernel "scaled" outs(%o : memref<4x2x49xf32>) -> tensor<4x2x49xf32> {
    loop.parallel (%n) to (4) {
      %t = loop.reduce (%j) to (98) [add] -> f32 {
        %v = loop.read %x[%n, %j floordiv 49, %j mod 49] : tensor<4x2x49xf32>
        loop.yield %v : f32
      }
      loop.parallel (%c, %p) to (2, 49) {
        %v = loop.read %x[%n, %c, %p] : tensor<4x2x49xf32>
        %d = arith.subf %v, %t : f32
        loop.write %d, %o[%n, %c, %p] : memref<4x2x49xf32>
      }
    }
  }
  func.return %y : tensor<4x2x49xf32>
}
}
