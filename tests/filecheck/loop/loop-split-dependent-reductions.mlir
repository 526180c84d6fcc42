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

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @squares_in_short_form
// CHECK-COUNT-2: loop.kernel
// CHECK-NOT: loop.kernel
func.func @squares_in_short_form(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @exponentials_in_short_form
// CHECK-COUNT-2: loop.kernel
// CHECK-NOT: loop.kernel
func.func @exponentials_in_short_form(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 1.0 : f32
    %s = loop.reduce (%j) to (20000) [max] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.mulf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %s : f32
      %e = math.exp %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_the_spaces_differ
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_the_spaces_differ(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (10000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_the_second_writes
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_the_second_writes(%x: tensor<20000xf32>) -> tensor<f32> {
  %y, %u = loop.kernel "var" outs(%o : memref<f32>, %r : memref<20000xf32>) -> tensor<f32>, tensor<20000xf32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.write %e, %r[%k] : memref<20000xf32>
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_the_second_checks
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_the_second_checks(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %p = loop.index [%k] : i64
      %c = arith.cmpf oge, %w, %n : f32
      loop.assert %c, %p, "IndexError", "index {} is bad"
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_squares_are_about_a_part_of_the_maximum
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_squares_are_about_a_part_of_the_maximum(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [max] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_sums_are_squared
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_sums_are_squared(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.addf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_differences_are_not_exponents
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_differences_are_not_exponents(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 1.0 : f32
    %s = loop.reduce (%j) to (20000) [max] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.mulf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %s : f32
      %e = arith.mulf %d, %w : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_exponentials_are_about_a_sum
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_exponentials_are_about_a_sum(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 1.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.mulf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %s : f32
      %e = math.exp %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_exponents_are_no_differences
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_exponents_are_no_differences(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 1.0 : f32
    %s = loop.reduce (%j) to (20000) [max] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.mulf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.addf %w, %s : f32
      %e = math.exp %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_exponentials_are_about_a_part_of_the_maximum
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_exponentials_are_about_a_part_of_the_maximum(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 0.5 : f32
    %s = loop.reduce (%j) to (20000) [max] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.mulf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %m : f32
      %e = math.exp %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_elements_are_made_by_other_ops
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_elements_are_made_by_other_ops(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %t = loop.read %x[%j] : tensor<20000xf32>
      %v = arith.addf %t, %t : f32
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %u = loop.read %x[%k] : tensor<20000xf32>
      %w = arith.mulf %u, %u : f32
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_elements_lie_at_other_places
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_elements_lie_at_other_places(%x: tensor<40000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<40000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k * 2] : tensor<40000xf32>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_calls_made_the_elements
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_calls_made_the_elements() -> tensor<f32> {
  %x = graph.extern "aten.rand"() : () -> (tensor<20000xf32>)
  %z = graph.extern "aten.rand"() : () -> (tensor<20000xf32>)
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %z[%k] : tensor<20000xf32>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_the_length_is_unknown
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_the_length_is_unknown(%x: tensor<?xf32, #stepwell.layout<(s0 * 20000), (1)>>, %c: index) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (s0 * 20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<?xf32, #stepwell.layout<(s0 * 20000), (1)>>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (s0 * 20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<?xf32, #stepwell.layout<(s0 * 20000), (1)>>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_the_sum_is_not_divided
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_the_sum_is_not_divided(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 5.0e-05 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.addf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_something_else_is_divided
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_something_else_is_divided(%x: tensor<20000xf32>, %z: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %t = loop.read %z[] : tensor<f32>
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %t, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_the_divisor_is_unknown
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_the_divisor_is_unknown(%x: tensor<20000xf32>, %z: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %t = loop.read %z[] : tensor<f32>
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %t : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_split_when_sums_are_f64
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_sums_are_f64(%x: tensor<20000xf64>) -> tensor<f64> {
  %y = loop.kernel "var" outs(%o : memref<f64>) -> tensor<f64> {
    %n = arith.constant 20000.0 : f64
    %s = loop.reduce (%j) to (20000) [add] -> f64 {
      %v = loop.read %x[%j] : tensor<20000xf64>
      loop.yield %v : f64
    }
    %m = arith.divf %s, %n : f64
    %q = loop.reduce (%k) to (20000) [add] -> f64 {
      %w = loop.read %x[%k] : tensor<20000xf64>
      %d = arith.subf %w, %m : f64
      %e = arith.mulf %d, %d : f64
      loop.yield %e : f64
    }
    loop.write %q, %o[] : memref<f64>
  }
  func.return %y : tensor<f64>
}

// CHECK-LABEL: @no_split_when_the_kernel_makes_the_elements
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_the_kernel_makes_the_elements(%x: tensor<4x20000xf32>) -> tensor<4xf32> {
  %y = loop.kernel "var" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 20000.0 : f32
    %l = loop.local (20000) : memref<20000xf32>
    loop.parallel (%i) to (20000) {
      %t = loop.read %x[0, %i] : tensor<4x20000xf32>
      loop.write %t, %l[%i] : memref<20000xf32>
    }
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (20000) [add] -> f32 {
        %v = loop.read %l[%j] : memref<20000xf32>
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (20000) [add] -> f32 {
        %w = loop.read %l[%k] : memref<20000xf32>
        %d = arith.subf %w, %m : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }
      loop.write %q, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: @no_split_when_elements_need_another_nest
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_elements_need_another_nest(%x: tensor<4x20000xf32>) -> tensor<4xf32> {
  %y = loop.kernel "var" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 20000.0 : f32
    %t = loop.reduce (%a, %b) to (4, 20000) [max] -> f32 {
      %u = loop.read %x[%a, %b] : tensor<4x20000xf32>
      loop.yield %u : f32
    }
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (20000) [add] -> f32 {
        %u = loop.read %x[%i, %j] : tensor<4x20000xf32>
        %v = arith.divf %u, %t : f32
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (20000) [add] -> f32 {
        %r = loop.read %x[%i, %k] : tensor<4x20000xf32>
        %w = arith.divf %r, %t : f32
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

// Parts are as long as registers take, of whole units of what a read divides the index by.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @parts_of_strided_rows_are_as_long_as_others
// CHECK: loop.parallel {{.*}} to (4, 4) {
func.func @parts_of_strided_rows_are_as_long_as_others(%x: tensor<4x40000xf32>) -> tensor<4xf32> {
  %y = loop.kernel "var" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 20000.0 : f32
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (20000) [add] -> f32 {
        %v = loop.read %x[%i, %j * 2] : tensor<4x40000xf32>
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (20000) [add] -> f32 {
        %w = loop.read %x[%i, %k * 2] : tensor<4x40000xf32>
        %d = arith.subf %w, %m : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }
      loop.write %q, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: @parts_of_any_length_when_another_index_is_divided
// CHECK: loop.parallel {{.*}} to (3, 4) {
func.func @parts_of_any_length_when_another_index_is_divided(%x: tensor<2x24576xf32>) -> tensor<4xf32> {
  %y = loop.kernel "var" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 24576.0 : f32
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (24576) [add] -> f32 {
        %v = loop.read %x[%i floordiv 3, %j] : tensor<2x24576xf32>
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (24576) [add] -> f32 {
        %w = loop.read %x[%i floordiv 3, %k] : tensor<2x24576xf32>
        %d = arith.subf %w, %m : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }
      loop.write %q, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: @parts_of_any_length_when_indices_are_bounded
// CHECK: loop.parallel {{.*}} to (3, 4) {
func.func @parts_of_any_length_when_indices_are_bounded(%x: tensor<4x7xf32>) -> tensor<4xf32> {
  %y = loop.kernel "var" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 24576.0 : f32
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (24576) [add] -> f32 {
        %v = loop.read %x[%i, min(%j, 6)] : tensor<4x7xf32>
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (24576) [add] -> f32 {
        %w = loop.read %x[%i, min(%k, 6)] : tensor<4x7xf32>
        %d = arith.subf %w, %m : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }
      loop.write %q, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: @parts_of_any_length_when_the_divisor_is_unknown
// CHECK: loop.parallel {{.*}} to (3, 4) {
func.func @parts_of_any_length_when_the_divisor_is_unknown(%x: tensor<4x24576xf32>, %c: index) -> tensor<4xf32> {
  %y = loop.kernel "var" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 24576.0 : f32
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (24576) [add] -> f32 {
        %v = loop.read %x[%i, %j floordiv (s0 * 6)] : tensor<4x24576xf32>
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (24576) [add] -> f32 {
        %w = loop.read %x[%i, %k floordiv (s0 * 6)] : tensor<4x24576xf32>
        %d = arith.subf %w, %m : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }
      loop.write %q, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: @parts_of_whole_units
// CHECK: loop.parallel {{.*}} to (128, 4) {
func.func @parts_of_whole_units(%x: tensor<4096x6x4xf32>) -> tensor<4xf32> {
  %y = loop.kernel "var" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %n = arith.constant 24576.0 : f32
    loop.parallel (%i) to (4) {
      %s = loop.reduce (%j) to (24576) [add] -> f32 {
        %v = loop.read %x[%j floordiv 6, %j mod 6, %i] : tensor<4096x6x4xf32>
        loop.yield %v : f32
      }
      %m = arith.divf %s, %n : f32
      %q = loop.reduce (%k) to (24576) [add] -> f32 {
        %w = loop.read %x[%k floordiv 6, %k mod 6, %i] : tensor<4096x6x4xf32>
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

module attributes {stepwell.target = #stepwell.target<"cpu", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_split_when_the_target_is_a_cpu
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_the_target_is_a_cpu(%x: tensor<20000xf32>) -> tensor<f32> {
  %y = loop.kernel "var" outs(%o : memref<f32>) -> tensor<f32> {
    %n = arith.constant 20000.0 : f32
    %s = loop.reduce (%j) to (20000) [add] -> f32 {
      %v = loop.read %x[%j] : tensor<20000xf32>
      loop.yield %v : f32
    }
    %m = arith.divf %s, %n : f32
    %q = loop.reduce (%k) to (20000) [add] -> f32 {
      %w = loop.read %x[%k] : tensor<20000xf32>
      %d = arith.subf %w, %m : f32
      %e = arith.mulf %d, %d : f32
      loop.yield %e : f32
    }
    loop.write %q, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}
}

// -----

// Where the last dims fit in registers, a part is one index of the dim before them.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @parts_of_leading_dims
// CHECK: loop.parallel ({{.*}}) to (23, 4) {
// CHECK-NEXT: loop.reduce ({{.*}}) to (1, 8000) [max] -> f32 {
func.func @parts_of_leading_dims(%x: tensor<4x23x8000xf32>) -> tensor<4xf32> {
  %y = loop.kernel "sums" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%i) to (4) {
      %m = loop.reduce (%a, %b) to (23, 8000) [max] -> f32 {
        %v = loop.read %x[%i, %a, %b] : tensor<4x23x8000xf32>
        loop.yield %v : f32
      }
      %s = loop.reduce (%a, %b) to (23, 8000) [add] -> f32 {
        %v = loop.read %x[%i, %a, %b] : tensor<4x23x8000xf32>
        %d = arith.subf %v, %m : f32
        %e = math.exp %d : f32
        loop.yield %e : f32
      }
      loop.write %s, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_split_when_another_row_is_read
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_another_row_is_read(%x: tensor<4x20000xf32>) -> tensor<4x4xf32> {
  %y = loop.kernel "sums" outs(%o : memref<4x4xf32>) -> tensor<4x4xf32> {
    loop.parallel (%i, %h) to (4, 4) {
      %m = loop.reduce (%j) to (20000) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x20000xf32>
        loop.yield %v : f32
      }
      %s = loop.reduce (%k) to (20000) [add] -> f32 {
        %v = loop.read %x[%h, %k] : tensor<4x20000xf32>
        %d = arith.subf %v, %m : f32
        %e = math.exp %d : f32
        loop.yield %e : f32
      }
      loop.write %s, %o[%i, %h] : memref<4x4xf32>
    }
  }
  func.return %y : tensor<4x4xf32>
}
}
