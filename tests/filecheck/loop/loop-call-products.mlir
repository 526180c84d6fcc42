// RUN: xdsl-opt %s -p loop-call-products --split-input-file | filecheck %s

// A product that the library computes faster is parted from what had joined it.

// CHECK-LABEL: @with_bias
// CHECK: [[X:%\w+]] = host.view %x[(0)] : tensor<6x4xbf16> -> tensor<6x4xbf16>
// CHECK-NEXT: [[W:%\w+]] = host.view %w[(0)] : tensor<8x4xbf16> -> tensor<4x8xbf16, #stepwell.layout<(4, 8), (1, 4)>>
// CHECK-NEXT: [[M:%\w+]] = graph.matmul [[X]], [[W]], %b
// CHECK: loop.kernel "matmul_neg"
// CHECK-NEXT: loop.parallel ([[I:%\w+]], [[J:%\w+]]) to (6, 8) {
// CHECK-NEXT: [[R:%\w+]] = loop.read [[M]][[[I]], [[J]]]
// CHECK-NEXT: arith.negf [[R]]
// CHECK-NEXT: loop.write
func.func @with_bias(%x: tensor<6x4xbf16>, %w: tensor<8x4xbf16>, %b: tensor<8xbf16>) -> tensor<6x8xbf16> {
  %m = loop.kernel "matmul_neg" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%j, %k] : tensor<8x4xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %e = loop.read %b[%j] : tensor<8xbf16>
      %f = arith.extf %e : bf16 to f32
      %t = arith.addf %s, %f : f32
      %r = arith.truncf %t : f32 to bf16
      %n = arith.negf %r : bf16
      loop.write %n, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}

// -----

// Nothing is left to do for a kernel.
// CHECK-LABEL: @alone
// CHECK: graph.batch_matmul
// CHECK-NOT: loop.kernel
func.func @alone(%x: tensor<3x6x4xbf16>, %w: tensor<3x4x8xbf16>) -> tensor<3x6x8xbf16> {
  %m = loop.kernel "batch_matmul" outs(%o : memref<3x6x8xbf16>) -> tensor<3x6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%n, %i, %j) to (3, 6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%n, %i, %k] : tensor<3x6x4xbf16>
        %v = loop.read %w[%n, %k, %j] : tensor<3x4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%n, %i, %j] : memref<3x6x8xbf16>
    }
  }
  func.return %m : tensor<3x6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_the_sum_is_not_rounded
// CHECK-NOT: graph.matmul
// CHECK: loop.reduce
func.func @no_call_when_the_sum_is_not_rounded(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<6x8xf32> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xf32>) -> tensor<6x8xf32> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      loop.write %s, %o[%i, %j] : memref<6x8xf32>
    }
  }
  func.return %m : tensor<6x8xf32>
}

// -----

// CHECK-LABEL: @no_call_when_nothing_was_measured
// CHECK-NOT: graph.matmul
// CHECK: loop.reduce
func.func @no_call_when_nothing_was_measured(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_it_is_rounded_to_another_type
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_it_is_rounded_to_another_type(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<6x8xf16> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xf16>) -> tensor<6x8xf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to f16
      loop.write %r, %o[%i, %j] : memref<6x8xf16>
    }
  }
  func.return %m : tensor<6x8xf16>
}

// -----

// CHECK-LABEL: @no_call_when_a_matrix_is_added
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_a_matrix_is_added(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %b: tensor<6x8xbf16>) -> tensor<6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %e = loop.read %b[%i, %j] : tensor<6x8xbf16>
      %f = arith.extf %e : bf16 to f32
      %t = arith.addf %s, %f : f32
      %r = arith.truncf %t : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_each_row_has_a_bias
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_each_row_has_a_bias(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %b: tensor<6xbf16>) -> tensor<6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %e = loop.read %b[%i] : tensor<6xbf16>
      %f = arith.extf %e : bf16 to f32
      %t = arith.addf %s, %f : f32
      %r = arith.truncf %t : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_the_bias_is_part_of_a_tensor
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_the_bias_is_part_of_a_tensor(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %b: tensor<16xbf16>) -> tensor<6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %e = loop.read %b[%j] : tensor<16xbf16>
      %f = arith.extf %e : bf16 to f32
      %t = arith.addf %s, %f : f32
      %r = arith.truncf %t : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_the_bias_has_another_type
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_the_bias_has_another_type(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %b: tensor<8xf16>) -> tensor<6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %e = loop.read %b[%j] : tensor<8xf16>
      %f = arith.extf %e : f16 to f32
      %t = arith.addf %s, %f : f32
      %r = arith.truncf %t : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_the_bias_is_read_backwards
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_the_bias_is_read_backwards(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %b: tensor<8xbf16>) -> tensor<6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %e = loop.read %b[7 - %j] : tensor<8xbf16>
      %f = arith.extf %e : bf16 to f32
      %t = arith.addf %s, %f : f32
      %r = arith.truncf %t : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_a_number_is_added
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_a_number_is_added(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %f = arith.constant 1.0 : f32
      %t = arith.addf %s, %f : f32
      %r = arith.truncf %t : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_a_factor_is_not_linear
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_a_factor_is_not_linear(%x: tensor<3x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i floordiv 2, %k] : tensor<3x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_the_left_factor_has_no_batch
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_the_left_factor_has_no_batch(%x: tensor<6x4xbf16>, %w: tensor<3x4x8xbf16>) -> tensor<3x6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<3x6x8xbf16>) -> tensor<3x6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%n, %i, %j) to (3, 6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%n, %k, %j] : tensor<3x4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%n, %i, %j] : memref<3x6x8xbf16>
    }
  }
  func.return %m : tensor<3x6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_the_right_factor_has_no_batch
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_the_right_factor_has_no_batch(%x: tensor<3x6x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<3x6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<3x6x8xbf16>) -> tensor<3x6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%n, %i, %j) to (3, 6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%n, %i, %k] : tensor<3x6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%n, %i, %j] : memref<3x6x8xbf16>
    }
  }
  func.return %m : tensor<3x6x8xbf16>
}

// -----

// CHECK-LABEL: @no_call_when_a_batch_has_two_dims
// CHECK-NOT: graph
// CHECK: loop.reduce
func.func @no_call_when_a_batch_has_two_dims(%x: tensor<2x3x6x4xbf16>, %w: tensor<2x3x4x8xbf16>) -> tensor<2x3x6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<2x3x6x8xbf16>) -> tensor<2x3x6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%q, %n, %i, %j) to (2, 3, 6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%q, %n, %i, %k] : tensor<2x3x6x4xbf16>
        %v = loop.read %w[%q, %n, %k, %j] : tensor<2x3x4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%q, %n, %i, %j] : memref<2x3x6x8xbf16>
    }
  }
  func.return %m : tensor<2x3x6x8xbf16>
}

// -----

// What is not to lie as the library leaves it is copied.
// CHECK-LABEL: @into_columns
// CHECK: [[M:%\w+]] = graph.matmul
// CHECK: loop.kernel
// CHECK: loop.read [[M]][%i, %j]
func.func @into_columns(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<8x6xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<8x6xbf16>) -> tensor<8x6xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%j, %i] : memref<8x6xbf16>
    }
  }
  func.return %m : tensor<8x6xbf16>
}

// -----

// What the kernel still needs stays.
// CHECK-LABEL: @a_bias_with_another_use
// CHECK: graph.matmul
// CHECK: loop.kernel
// CHECK: %e = loop.read %b[%j]
// CHECK-NOT: arith.extf
func.func @a_bias_with_another_use(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %b: tensor<8xbf16>) -> tensor<6x8xbf16> {
  %m = loop.kernel "matmul" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> attributes {stepwell.product = "library"} {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %v = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %v : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %e = loop.read %b[%j] : tensor<8xbf16>
      %f = arith.extf %e : bf16 to f32
      %t = arith.addf %s, %f : f32
      %r = arith.truncf %t : f32 to bf16
      %g = arith.mulf %r, %e : bf16
      loop.write %g, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}
