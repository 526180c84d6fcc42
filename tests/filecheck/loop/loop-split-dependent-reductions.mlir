// RUN: xdsl-opt %s -p loop-split-dependent-reductions --split-input-file | filecheck %s

// The variance of long rows: parts about their own mean, which are then moved to the mean of all.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @variance
// CHECK: [[SUMS:%\w+]], [[SQUARES:%\w+]] = loop.kernel "var_parts" outs([[S:%\w+]]: memref<4x4xf32>, [[Q:%\w+]]: memref<4x4xf32>)
// CHECK-NEXT: loop.parallel ([[P:%\w+]], [[I:%\w+]]) to (4, 4) {
// CHECK-NEXT: [[SUM:%\w+]] = loop.reduce ([[J:%\w+]]) to (5000) [add] -> f32 {
// CHECK-NEXT: loop.read %x{{\[}}[[I]], [[P]] * 5000 + [[J]]]
// CHECK: [[N:%\w+]] = arith.constant 5.000000e+03 : f32
// CHECK-NEXT: [[MEAN:%\w+]] = arith.divf [[SUM]], [[N]] : f32
// CHECK-NEXT: [[SQUARE:%\w+]] = loop.reduce ([[K:%\w+]]) to (5000) [add] -> f32 {
// CHECK-NEXT: [[V:%\w+]] = loop.read %x{{\[}}[[I]], [[P]] * 5000 + [[K]]]
// CHECK-NEXT: arith.subf [[V]], [[MEAN]]
// CHECK: loop.write [[SUM]], [[S]]{{\[}}[[P]], [[I]]]
// CHECK-NEXT: loop.write [[SQUARE]], [[Q]]{{\[}}[[P]], [[I]]]
// CHECK: loop.kernel "var"
// CHECK: loop.reduce ([[R:%\w+]]) to (4) [add] -> f32 {
// CHECK-NEXT: loop.read [[SUMS]]{{\[}}[[R]],
// CHECK: [[ALL:%\w+]] = arith.divf
// CHECK-NEXT: loop.reduce ([[T:%\w+]]) to (4) [add] -> f32 {
// CHECK-NEXT: [[A:%\w+]] = loop.read [[SUMS]]{{\[}}[[T]],
// CHECK-NEXT: [[B:%\w+]] = loop.read [[SQUARES]]{{\[}}[[T]],
// CHECK-NEXT: [[M:%\w+]] = arith.constant 5.000000e+03 : f32
// CHECK-NEXT: [[OWN:%\w+]] = arith.divf [[A]], [[M]]
// CHECK-NEXT: [[D:%\w+]] = arith.subf [[OWN]], [[ALL]]
// CHECK-NEXT: [[DD:%\w+]] = arith.mulf [[D]], [[D]]
// CHECK-NEXT: [[MORE:%\w+]] = arith.mulf [[DD]], [[M]]
// CHECK-NEXT: arith.addf [[B]], [[MORE]]
func.func @variance(%x: tensor<4x20000xf32>) -> tensor<4xf32> {
  %y = loop.kernel "var" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 20000.0 : f32
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (20000) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x20000xf32>
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (20000) [add] -> f32 {
        %w = loop.read %x[%i, %k] : tensor<4x20000xf32>
        %d = arith.subf %w, %m : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }
      loop.write %q, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}
}

// -----

// Exponentials about the maximum, within a reduction over rows; a part of nothing but -inf adds nothing. Dims before
// the one that is cut are parts of their own.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @exponentials
// CHECK: loop.parallel ([[P:%\w+]], [[R:%\w+]], [[I:%\w+]]) to (3, 2, 4) {
// CHECK-NEXT: [[MAX:%\w+]] = loop.reduce ({{.*}}) to (1, 8000) [max] -> f32 {
// CHECK: [[EMPTY:%\w+]] = arith.cmpf oeq, [[MAX]]
// CHECK-NEXT: [[CENTRE:%\w+]] = arith.select [[EMPTY]]
// CHECK-NEXT: loop.reduce ({{.*}}) to (1, 8000) [add] -> f32 {
// CHECK: arith.subf {{.*}}, [[CENTRE]]
// CHECK: loop.kernel "lse"
// CHECK: loop.reduce ({{.*}}) to (4) [add] -> f32 {
// CHECK: [[ALL:%\w+]] = loop.reduce ({{.*}}) to (3, 2) [max] -> f32 {
// CHECK: loop.reduce ({{.*}}) to (3, 2) [add] -> f32 {
// CHECK-NEXT: [[OWN:%\w+]] = loop.read
// CHECK-NEXT: [[SUM:%\w+]] = loop.read
// CHECK-NEXT: [[D:%\w+]] = arith.subf [[OWN]], [[ALL]]
// CHECK-NEXT: [[E:%\w+]] = math.exp [[D]]
// CHECK-NEXT: arith.mulf [[SUM]], [[E]]
func.func @exponentials(%x: tensor<4x3x16000xf32>) -> tensor<f32> {
  %y = loop.kernel "lse" outs(%o : memref<f32>) -> tensor<f32> {
    %t = loop.reduce (%i) to (4) [add] -> f32 {
      %m = loop.reduce (%a, %b) to (3, 16000) [max] -> f32 {
        %v = loop.read %x[%i, %a, %b] : tensor<4x3x16000xf32>
        loop.yield %v : f32
      }
      %s = loop.reduce (%c, %e) to (3, 16000) [add] -> f32 {
        %w = loop.read %x[%i, %c, %e] : tensor<4x3x16000xf32>
        %d = arith.subf %w, %m : f32
        %f = math.exp %d : f32
        loop.yield %f : f32
      }
      %l = math.log %s : f32
      %r = arith.addf %l, %m : f32
      loop.yield %r : f32
    }
    loop.write %t, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_split_when_rows_fit_in_registers
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_rows_fit_in_registers(%x: tensor<4x8192xf32>) -> tensor<4xf32> {
  %y = loop.kernel "var" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 8192.0 : f32
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (8192) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x8192xf32>
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (8192) [add] -> f32 {
        %w = loop.read %x[%i, %k] : tensor<4x8192xf32>
        %d = arith.subf %w, %m : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }
      loop.write %q, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: @no_split_when_the_centre_is_no_mean
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_the_centre_is_no_mean(%x: tensor<4x20000xf32>) -> tensor<4xf32> {
  %y = loop.kernel "off" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 19999.0 : f32
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (20000) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x20000xf32>
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (20000) [add] -> f32 {
        %w = loop.read %x[%i, %k] : tensor<4x20000xf32>
        %d = arith.subf %w, %m : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }
      loop.write %q, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: @no_split_when_other_elements_are_squared
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_other_elements_are_squared(%x: tensor<4x20000xf32>, %z: tensor<4x20000xf32>) -> tensor<4xf32> {
  %y = loop.kernel "other" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 20000.0 : f32
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (20000) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x20000xf32>
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (20000) [add] -> f32 {
        %w = loop.read %z[%i, %k] : tensor<4x20000xf32>
        %d = arith.subf %w, %m : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }
      loop.write %q, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: @no_split_when_a_further_nest_goes_over_the_row
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_a_further_nest_goes_over_the_row(%x: tensor<4x20000xf32>) -> tensor<4x20000xf32> {
  %y = loop.kernel "softmax" outs(%o : memref<4x20000xf32>) -> tensor<4x20000xf32> {
    loop.parallel (%i) to (4) {
      %m = loop.reduce (%j) to (20000) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x20000xf32>
        loop.yield %v : f32
      }
      %s = loop.reduce (%k) to (20000) [add] -> f32 {
        %w = loop.read %x[%i, %k] : tensor<4x20000xf32>
        %d = arith.subf %w, %m : f32
        %e = math.exp %d : f32
        loop.yield %e : f32
      }
      loop.parallel (%l) to (20000) {
        %u = loop.read %x[%i, %l] : tensor<4x20000xf32>
        %g = arith.subf %u, %m : f32
        %h = math.exp %g : f32
        %p = arith.divf %h, %s : f32
        loop.write %p, %o[%i, %l] : memref<4x20000xf32>
      }
    }
  }
  func.return %y : tensor<4x20000xf32>
}
}

// -----

// A read need not go along the index that is cut.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @exponentials_with_a_bias
// CHECK: loop.kernel "softmax_parts"
// CHECK: loop.kernel "softmax"
func.func @exponentials_with_a_bias(%x: tensor<4x3x16000xf32>, %b: tensor<4x3xf32>) -> tensor<4xf32> {
  %y = loop.kernel "softmax" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%i) to (4) {
      %m = loop.reduce (%r, %j) to (3, 16000) [max] -> f32 {
        %v = loop.read %x[%i, %r, %j] : tensor<4x3x16000xf32>
        %a = loop.read %b[%i, %r] : tensor<4x3xf32>
        %w = arith.addf %v, %a : f32
        loop.yield %w : f32
      }
      %s = loop.reduce (%r, %j) to (3, 16000) [add] -> f32 {
        %v = loop.read %x[%i, %r, %j] : tensor<4x3x16000xf32>
        %a = loop.read %b[%i, %r] : tensor<4x3xf32>
        %w = arith.addf %v, %a : f32
        %d = arith.subf %w, %m : f32
        %e = math.exp %d : f32
        loop.yield %e : f32
      }
      loop.write %s, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}
}
