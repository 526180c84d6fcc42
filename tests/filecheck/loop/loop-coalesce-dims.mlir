// RUN: xdsl-opt %s -p loop-coalesce-dims | filecheck %s

// Neighbouring dimensions that every access steps through evenly become one.

// CHECK-LABEL: @contiguous
// CHECK: loop.parallel (%k) to (96)
// CHECK-NEXT: loop.read %x[%k floordiv 24, (%k floordiv 6) mod 4, %k mod 6]
func.func @contiguous(%x: tensor<4x4x6xf32>) -> tensor<4x4x6xf32> {
  %y = loop.kernel "copy" outs(%o : memref<4x4x6xf32>) -> tensor<4x4x6xf32> {
    loop.parallel (%i, %j, %k) to (4, 4, 6) {
      %v = loop.read %x[%i, %j, %k] : tensor<4x4x6xf32>
      loop.write %v, %o[%i, %j, %k] : memref<4x4x6xf32>
    }
  }
  func.return %y : tensor<4x4x6xf32>
}

// A vector that only the last index walks keeps that one apart; split indices join again.
// CHECK-LABEL: @rows_of_a_bias
// CHECK: loop.parallel (%j, %k) to (s0 * 4, 6)
// CHECK-NEXT: loop.read %x[%j, %k]
// CHECK-NEXT: loop.read %b[%k]
func.func @rows_of_a_bias(%s0: index, %x: tensor<?x6xf32, #stepwell.layout<(s0 * 4, 6), (6, 1)>>, %b: tensor<6xf32>) -> tensor<?x6xf32, #stepwell.layout<(s0 * 4, 6), (6, 1)>> attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
  %y = loop.kernel "add" outs(%o : memref<?x6xf32>) -> tensor<?x6xf32, #stepwell.layout<(s0 * 4, 6), (6, 1)>> {
    loop.parallel (%i, %j, %k) to (s0, 4, 6) {
      %v = loop.read %x[%i * 4 + %j, %k] : tensor<?x6xf32, #stepwell.layout<(s0 * 4, 6), (6, 1)>>
      %c = loop.read %b[%k] : tensor<6xf32>
      %w = arith.addf %v, %c : f32
      loop.write %w, %o[%i * 4 + %j, %k] : memref<?x6xf32>
    }
  }
  func.return %y : tensor<?x6xf32, #stepwell.layout<(s0 * 4, 6), (6, 1)>>
}

// CHECK-LABEL: @no_coalescing_when_strides_have_gaps
// CHECK: loop.parallel (%i, %j) to (4, 6)
func.func @no_coalescing_when_strides_have_gaps(%x: tensor<4x6xf32, #stepwell.layout<(4, 6), (8, 1)>>) -> tensor<4x6xf32> {
  %y = loop.kernel "copy" outs(%o : memref<4x6xf32>) -> tensor<4x6xf32> {
    loop.parallel (%i, %j) to (4, 6) {
      %v = loop.read %x[%i, %j] : tensor<4x6xf32, #stepwell.layout<(4, 6), (8, 1)>>
      loop.write %v, %o[%i, %j] : memref<4x6xf32>
    }
  }
  func.return %y : tensor<4x6xf32>
}

// CHECK-LABEL: @no_coalescing_when_transposed
// CHECK: loop.parallel (%i, %j) to (4, 6)
func.func @no_coalescing_when_transposed(%x: tensor<6x4xf32>) -> tensor<4x6xf32> {
  %y = loop.kernel "transpose" outs(%o : memref<4x6xf32>) -> tensor<4x6xf32> {
    loop.parallel (%i, %j) to (4, 6) {
      %v = loop.read %x[%j, %i] : tensor<6x4xf32>
      loop.write %v, %o[%i, %j] : memref<4x6xf32>
    }
  }
  func.return %y : tensor<4x6xf32>
}

// CHECK-LABEL: @no_coalescing_when_an_index_is_a_value
// CHECK: loop.parallel (%i, %j) to (4, 6)
func.func @no_coalescing_when_an_index_is_a_value(%x: tensor<4x6xi64>) -> tensor<4x6xi64> {
  %y = loop.kernel "add" outs(%o : memref<4x6xi64>) -> tensor<4x6xi64> {
    loop.parallel (%i, %j) to (4, 6) {
      %v = loop.read %x[%i, %j] : tensor<4x6xi64>
      %n = loop.index [%j] : i64
      %w = arith.addi %v, %n : i64
      loop.write %w, %o[%i, %j] : memref<4x6xi64>
    }
  }
  func.return %y : tensor<4x6xi64>
}

// CHECK-LABEL: @no_coalescing_when_a_plain_op_takes_an_index
// CHECK: loop.parallel (%i, %j) to (4, 6)
func.func @no_coalescing_when_a_plain_op_takes_an_index(%x: tensor<4x6xf32>) -> tensor<4x6xi64> {
  %y = loop.kernel "count" outs(%o : memref<4x6xi64>) -> tensor<4x6xi64> {
    loop.parallel (%i, %j) to (4, 6) {
      %v = arith.index_cast %j : index to i64
      loop.write %v, %o[%i, %j] : memref<4x6xi64>
    }
  }
  func.return %y : tensor<4x6xi64>
}

// CHECK-LABEL: @no_coalescing_when_the_outer_index_is_divided
// CHECK: loop.parallel (%i, %j) to (4, 6)
func.func @no_coalescing_when_the_outer_index_is_divided(%x: tensor<2x6xf32>) -> tensor<4x6xf32> {
  %y = loop.kernel "repeat" outs(%o : memref<4x6xf32>) -> tensor<4x6xf32> {
    loop.parallel (%i, %j) to (4, 6) {
      %v = loop.read %x[%i floordiv 2, %j] : tensor<2x6xf32>
      loop.write %v, %o[%i, %j] : memref<4x6xf32>
    }
  }
  func.return %y : tensor<4x6xf32>
}
