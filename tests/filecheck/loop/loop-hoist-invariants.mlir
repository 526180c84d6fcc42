// RUN: xdsl-opt %s -p loop-hoist-invariants | filecheck %s

// Scalars leave the nests on whose indices they do not depend, one nest after the other.

// CHECK-LABEL: @scalars_and_reads
// CHECK: %c = arith.constant 2.000000e+00 : f32
// CHECK-NEXT: loop.parallel (%i) to (4)
// CHECK-NEXT: %m = loop.read %mean[%i]
// CHECK-NEXT: %d = arith.mulf %m, %c
// CHECK-NEXT: loop.parallel (%j) to (8)
// CHECK-NEXT: loop.read %x[%i, %j]
func.func @scalars_and_reads(%x: tensor<4x8xf32>, %mean: tensor<4xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel "sub" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    loop.parallel (%i) to (4) {
      loop.parallel (%j) to (8) {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        %m = loop.read %mean[%i] : tensor<4xf32>
        %c = arith.constant 2.0 : f32
        %d = arith.mulf %m, %c : f32
        %w = arith.subf %v, %d : f32
        loop.write %w, %o[%i, %j] : memref<4x8xf32>
      }
    }
  }
  func.return %y : tensor<4x8xf32>
}

// An inner space that may be empty runs nothing, so a read or a division that only it makes stays.
// CHECK-LABEL: @no_hoisting_when_the_space_may_be_empty
// CHECK: loop.parallel (%j) to (s0)
// CHECK-NEXT: %n = loop.read %x[0]
// CHECK-NEXT: %q = arith.divsi
func.func @no_hoisting_when_the_space_may_be_empty(%s0: index, %x: tensor<?xi64, #stepwell.layout<(s0), (1)>>, %d: tensor<i64>) -> tensor<?xi64, #stepwell.layout<(s0), (1)>> attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %y = loop.kernel "div" outs(%o : memref<?xi64>) -> tensor<?xi64, #stepwell.layout<(s0), (1)>> {
    loop.parallel (%j) to (s0) {
      %n = loop.read %x[0] : tensor<?xi64, #stepwell.layout<(s0), (1)>>
      %q = arith.divsi %n, %n : i64
      loop.write %q, %o[%j] : memref<?xi64>
    }
  }
  func.return %y : tensor<?xi64, #stepwell.layout<(s0), (1)>>
}

// CHECK-LABEL: @no_hoisting_when_a_nest_writes_what_is_read
// CHECK: loop.parallel (%j) to (8)
// CHECK-NEXT: loop.read %b[]
func.func @no_hoisting_when_a_nest_writes_what_is_read(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = loop.kernel "copy" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    %b = loop.local () : memref<f32>
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      loop.write %v, %b[] : memref<f32>
      loop.parallel (%j) to (8) {
        %w = loop.read %b[] : memref<f32>
        loop.write %w, %o[%i] : memref<8xf32>
      }
    }
  }
  func.return %y : tensor<8xf32>
}
