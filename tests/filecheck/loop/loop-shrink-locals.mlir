// RUN: xdsl-opt %s -p loop-shrink-locals | filecheck %s

// A local moves into the nest around its uses and keeps what one iteration of it needs.

// CHECK-LABEL: @row
// CHECK: loop.parallel (%i) to (4)
// CHECK-NEXT: [[ROW:%\w+]] = loop.local (8) : memref<8xf32>
// CHECK: loop.write %v, [[ROW]][%j]
// CHECK: loop.read [[ROW]][-%k + 7]
func.func @row(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel "flip" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    %b = loop.local (4, 8) : memref<4x8xf32>
    loop.parallel (%i) to (4) {
      loop.parallel (%j) to (8) {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        loop.write %v, %b[%i, %j] : memref<4x8xf32>
      }
      loop.parallel (%k) to (8) {
        %w = loop.read %b[%i, 7 - %k] : memref<4x8xf32>
        loop.write %w, %o[%i, %k] : memref<4x8xf32>
      }
    }
  }
  func.return %y : tensor<4x8xf32>
}

// The part of a dimension that an outer index walks goes, also where the sizes are symbols.
// CHECK-LABEL: @part_of_a_dimension
// CHECK: loop.local (s0) : memref<?xf32>
// CHECK: loop.write %v, {{%\w+}}[%j]
// CHECK: loop.read {{%\w+}}[%k]
func.func @part_of_a_dimension(%s0: index, %x: tensor<?xf32, #stepwell.layout<(s0 * 4), (1)>>) -> tensor<?xf32, #stepwell.layout<(s0 * 4), (1)>> attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
  %y = loop.kernel "copy" outs(%o : memref<?xf32>) -> tensor<?xf32, #stepwell.layout<(s0 * 4), (1)>> {
    %b = loop.local (s0 * 4) : memref<?xf32>
    loop.parallel (%i) to (4) {
      loop.parallel (%j) to (s0) {
        %v = loop.read %x[%i * s0 + %j] : tensor<?xf32, #stepwell.layout<(s0 * 4), (1)>>
        loop.write %v, %b[%i * s0 + %j] : memref<?xf32>
      }
      loop.parallel (%k) to (s0) {
        %w = loop.read %b[%i * s0 + %k] : memref<?xf32>
        loop.write %w, %o[%i * s0 + %k] : memref<?xf32>
      }
    }
  }
  func.return %y : tensor<?xf32, #stepwell.layout<(s0 * 4), (1)>>
}

// CHECK-LABEL: @no_shrinking_when_iterations_read_each_other
// CHECK: loop.local (4, 8)
// CHECK-NEXT: loop.reduce
func.func @no_shrinking_when_iterations_read_each_other(%x: tensor<4x8xf32>) -> tensor<f32> {
  %y = loop.kernel "scan" outs(%o : memref<f32>) -> tensor<f32> {
    %b = loop.local (4, 8) : memref<4x8xf32>
    %s = loop.reduce (%i) to (4) [add] -> f32 {
      loop.parallel (%j) to (8) {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        loop.write %v, %b[%i, %j] : memref<4x8xf32>
      }
      %w = loop.read %b[0, 0] : memref<4x8xf32>
      loop.yield %w : f32
    }
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_shrinking_when_used_outside_of_the_nest
// CHECK: loop.local (8)
// CHECK-NEXT: loop.parallel
func.func @no_shrinking_when_used_outside_of_the_nest(%x: tensor<8xf32>) -> tensor<f32> {
  %y = loop.kernel "first" outs(%o : memref<f32>) -> tensor<f32> {
    %b = loop.local (8) : memref<8xf32>
    loop.parallel (%j) to (8) {
      %v = loop.read %x[%j] : tensor<8xf32>
      loop.write %v, %b[%j] : memref<8xf32>
    }
    %w = loop.read %b[0] : memref<8xf32>
    loop.write %w, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_shrinking_when_the_inner_part_holds_an_outer_index
// CHECK-NEXT: loop.kernel
// CHECK-NEXT: loop.local (64)
func.func @no_shrinking_when_the_inner_part_holds_an_outer_index(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel "keep" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    %b = loop.local (64) : memref<64xf32>
    loop.parallel (%i) to (4) {
      loop.parallel (%j) to (8) {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        loop.write %v, %b[(%i + %j) floordiv 2] : memref<64xf32>
      }
      loop.parallel (%k) to (8) {
        %w = loop.read %b[(%i + %k) floordiv 2] : memref<64xf32>
        loop.write %w, %o[%i, %k] : memref<4x8xf32>
      }
    }
  }
  func.return %y : tensor<4x8xf32>
}

// CHECK-LABEL: @no_shrinking_when_inner_indices_count_down
// CHECK-NEXT: loop.kernel
// CHECK-NEXT: loop.local (64)
func.func @no_shrinking_when_inner_indices_count_down(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel "keep" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    %b = loop.local (64) : memref<64xf32>
    loop.parallel (%i) to (4) {
      loop.parallel (%j) to (8) {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        loop.write %v, %b[%i * 8 - %j + 7] : memref<64xf32>
      }
      loop.parallel (%k) to (8) {
        %w = loop.read %b[%i * 8 - %k + 7] : memref<64xf32>
        loop.write %w, %o[%i, %k] : memref<4x8xf32>
      }
    }
  }
  func.return %y : tensor<4x8xf32>
}

// CHECK-LABEL: @no_shrinking_when_inner_indices_are_divided
// CHECK-NEXT: loop.kernel
// CHECK-NEXT: loop.local (64)
func.func @no_shrinking_when_inner_indices_are_divided(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel "keep" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    %b = loop.local (64) : memref<64xf32>
    loop.parallel (%i) to (4) {
      loop.parallel (%j) to (8) {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        loop.write %v, %b[%i * 8 + %j floordiv 2] : memref<64xf32>
      }
      loop.parallel (%k) to (8) {
        %w = loop.read %b[%i * 8 + %k floordiv 2] : memref<64xf32>
        loop.write %w, %o[%i, %k] : memref<4x8xf32>
      }
    }
  }
  func.return %y : tensor<4x8xf32>
}

// CHECK-LABEL: @no_shrinking_when_inner_places_are_computed
// CHECK-NEXT: loop.kernel
// CHECK-NEXT: loop.local (64)
func.func @no_shrinking_when_inner_places_are_computed(%x: tensor<4x8xf32>, %at: tensor<8xi64>) -> tensor<4x8xf32> {
  %y = loop.kernel "keep" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    %b = loop.local (64) : memref<64xf32>
    loop.parallel (%i) to (4) {
      loop.parallel (%j) to (8) {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        %c = loop.read %at[%j] : tensor<8xi64>
        %p = arith.index_cast %c : i64 to index
        loop.write %v, %b[%i * 8 + %p] : memref<64xf32>
      }
      loop.parallel (%k) to (8) {
        %d = loop.read %at[%k] : tensor<8xi64>
        %q = arith.index_cast %d : i64 to index
        %w = loop.read %b[%i * 8 + %q] : memref<64xf32>
        loop.write %w, %o[%i, %k] : memref<4x8xf32>
      }
    }
  }
  func.return %y : tensor<4x8xf32>
}
