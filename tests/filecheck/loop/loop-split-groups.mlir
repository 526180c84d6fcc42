// RUN: xdsl-opt %s -p loop-split-groups --split-input-file | filecheck %s

// What is in a group finds the group's reduction by a quotient; split, its index holds the group's own.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @groups
// CHECK: [[SUMS:%\w+]] = loop.kernel "sum"
// CHECK: [[MEANS:%\w+]] = loop.kernel "mean"
// CHECK: loop.kernel "centre"
// CHECK-NEXT: loop.parallel ([[N:%\w+]], [[G:%\w+]], [[E:%\w+]], [[P:%\w+]]) to (4, 8, 2, 49) {
// CHECK-NEXT: loop.read %{{.*}}[[[N]], [[G]] * 2 + [[E]], [[P]]]
// CHECK-NEXT: loop.read [[MEANS]][[[N]], [[G]]]
func.func @groups(%x: tensor<4x16x49xf32>) -> tensor<4x16x49xf32> {
  %s = loop.kernel "sum" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    loop.parallel (%n, %g) to (4, 8) {
      %t = loop.reduce (%j) to (98) [add] -> f32 {
        %v = loop.read %x[%n, %g * 2 + %j floordiv 49, %j mod 49] : tensor<4x16x49xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%n, %g] : memref<4x8xf32>
    }
  }
  %m = loop.kernel "mean" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    loop.parallel (%n, %g) to (4, 8) {
      %v = loop.read %s[%n, %g] : tensor<4x8xf32>
      %c = arith.constant 98.0 : f32
      %q = arith.divf %v, %c : f32
      loop.write %q, %o[%n, %g] : memref<4x8xf32>
    }
  }
  %y = loop.kernel "centre" outs(%o : memref<4x16x49xf32>) -> tensor<4x16x49xf32> {
    loop.parallel (%n, %c, %p) to (4, 16, 49) {
      %v = loop.read %x[%n, %c, %p] : tensor<4x16x49xf32>
      %w = loop.read %m[%n, %c floordiv 2] : tensor<4x8xf32>
      %d = arith.subf %v, %w : f32
      loop.write %d, %o[%n, %c, %p] : memref<4x16x49xf32>
    }
  }
  func.return %y : tensor<4x16x49xf32>
}

// CHECK-LABEL: @no_split_when_another_number_was_reduced
// CHECK: loop.parallel ({{.*}}) to (4, 16, 49)
func.func @no_split_when_another_number_was_reduced(%x: tensor<4x16x49xf32>, %z: tensor<4x8x97xf32>) -> tensor<4x16x49xf32> {
  %s = loop.kernel "sum" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    loop.parallel (%n, %g) to (4, 8) {
      %t = loop.reduce (%j) to (97) [add] -> f32 {
        %v = loop.read %z[%n, %g, %j] : tensor<4x8x97xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%n, %g] : memref<4x8xf32>
    }
  }
  %y = loop.kernel "centre" outs(%o : memref<4x16x49xf32>) -> tensor<4x16x49xf32> {
    loop.parallel (%n, %c, %p) to (4, 16, 49) {
      %v = loop.read %x[%n, %c, %p] : tensor<4x16x49xf32>
      %w = loop.read %s[%n, %c floordiv 2] : tensor<4x8xf32>
      %d = arith.subf %v, %w : f32
      loop.write %d, %o[%n, %c, %p] : memref<4x16x49xf32>
    }
  }
  func.return %y : tensor<4x16x49xf32>
}

// CHECK-LABEL: @no_split_when_the_group_outgrows_registers
// CHECK: loop.parallel ({{.*}}) to (4, 16, 20000)
func.func @no_split_when_the_group_outgrows_registers(%x: tensor<4x16x20000xf32>) -> tensor<4x16x20000xf32> {
  %s = loop.kernel "sum" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    loop.parallel (%n, %g) to (4, 8) {
      %t = loop.reduce (%j) to (40000) [add] -> f32 {
        %v = loop.read %x[%n, %g * 2 + %j floordiv 20000, %j mod 20000] : tensor<4x16x20000xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%n, %g] : memref<4x8xf32>
    }
  }
  %y = loop.kernel "centre" outs(%o : memref<4x16x20000xf32>) -> tensor<4x16x20000xf32> {
    loop.parallel (%n, %c, %p) to (4, 16, 20000) {
      %v = loop.read %x[%n, %c, %p] : tensor<4x16x20000xf32>
      %w = loop.read %s[%n, %c floordiv 2] : tensor<4x8xf32>
      %d = arith.subf %v, %w : f32
      loop.write %d, %o[%n, %c, %p] : memref<4x16x20000xf32>
    }
  }
  func.return %y : tensor<4x16x20000xf32>
}
}

// -----

// CHECK-LABEL: @no_split_when_the_target_is_no_gpu
// CHECK: loop.parallel ({{.*}}) to (16)
func.func @no_split_when_the_target_is_no_gpu(%x: tensor<16xf32>) -> tensor<16xf32> {
  %s = loop.kernel "sum" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%g) to (8) {
      %t = loop.reduce (%j) to (2) [add] -> f32 {
        %v = loop.read %x[%g * 2 + %j] : tensor<16xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%g] : memref<8xf32>
    }
  }
  %y = loop.kernel "centre" outs(%o : memref<16xf32>) -> tensor<16xf32> {
    loop.parallel (%c) to (16) {
      %w = loop.read %s[%c floordiv 2] : tensor<8xf32>
      loop.write %w, %o[%c] : memref<16xf32>
    }
  }
  func.return %y : tensor<16xf32>
}
