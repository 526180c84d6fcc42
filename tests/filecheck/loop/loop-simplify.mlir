// RUN: xdsl-opt %s -p loop-simplify | filecheck %s

// Kernels in normal form: no dimension of one step, no nest that is none, nothing unused or twice.

// CHECK-LABEL: @unit_dims
// CHECK: loop.parallel (%j) to (8)
// CHECK-NEXT: loop.read %x[0, %j]
// CHECK: loop.write {{.*}}[0, %j, 0]
func.func @unit_dims(%x: tensor<1x8xf32>) -> tensor<1x8x1xf32> {
  %y = loop.kernel "neg" outs(%o : memref<1x8x1xf32>) -> tensor<1x8x1xf32> {
    loop.parallel (%i, %j, %k) to (1, 8, 1) {
      %v = loop.read %x[%i, %j] : tensor<1x8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j, %k] : memref<1x8x1xf32>
    }
  }
  func.return %y : tensor<1x8x1xf32>
}

// CHECK-LABEL: @nests_without_dims
// CHECK: loop.kernel
// CHECK-NEXT: %v = loop.read %x[0]
// CHECK-NEXT: loop.write %v
func.func @nests_without_dims(%x: tensor<1xf32>) -> tensor<f32> {
  %y = loop.kernel "sum" outs(%o : memref<f32>) -> tensor<f32> {
    loop.parallel () to () {
      %s = loop.reduce (%i) to (1) [add] -> f32 {
        %v = loop.read %x[%i] : tensor<1xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[] : memref<f32>
    }
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @nests_of_one_kind
// CHECK: loop.parallel (%i, %j) to (4, 8)
// CHECK-NEXT: loop.reduce (%k, %l) to (2, 3) [max]
// CHECK-NEXT: loop.read
func.func @nests_of_one_kind(%x: tensor<4x8x2x3xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel "max" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    loop.parallel (%i) to (4) {
      loop.parallel (%j) to (8) {
        %m = loop.reduce (%k) to (2) [max] -> f32 {
          %n = loop.reduce (%l) to (3) [max] -> f32 {
            %v = loop.read %x[%i, %j, %k, %l] : tensor<4x8x2x3xf32>
            loop.yield %v : f32
          }
          loop.yield %n : f32
        }
        loop.write %m, %o[%i, %j] : memref<4x8xf32>
      }
    }
  }
  func.return %y : tensor<4x8xf32>
}

// CHECK-LABEL: @maps_by_the_ranges_of_their_indices
// CHECK: loop.read %x[%i, %j]
func.func @maps_by_the_ranges_of_their_indices(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel "copy" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    loop.parallel (%i, %j) to (4, 8) {
      %v = loop.read %x[(%i * 8 + %j) floordiv 8, (%i * 8 + %j) mod 8] : tensor<4x8xf32>
      loop.write %v, %o[%i, %j] : memref<4x8xf32>
    }
  }
  func.return %y : tensor<4x8xf32>
}

// CHECK-LABEL: @unused_and_repeated
// CHECK-NEXT: loop.kernel "exp" outs(%{{\w+}}: memref<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: loop.parallel
// CHECK-NEXT: [[V:%\w+]] = loop.read %x[%i]
// CHECK-NEXT: [[E:%\w+]] = math.exp [[V]]
// CHECK-NEXT: [[S:%\w+]] = arith.addf [[E]], [[E]]
// CHECK-NEXT: loop.write [[S]]
// CHECK-NEXT: }
func.func @unused_and_repeated(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y, %z = loop.kernel "exp" outs(%o : memref<8xf32>, %p : memref<8xf32>) -> tensor<8xf32>, tensor<8xf32> {
    %b = loop.local (8) : memref<8xf32>
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %u = loop.read %x[%i] : tensor<8xf32>
      %e = math.exp %v : f32
      %f = math.exp %u : f32
      %s = arith.addf %e, %f : f32
      %unused = arith.mulf %s, %s : f32
      loop.write %s, %o[%i] : memref<8xf32>
      loop.write %e, %b[%i] : memref<8xf32>
      loop.write %e, %p[%i] : memref<8xf32>
    }
    loop.parallel (%j) to (8) {
      %v = loop.read %x[%j] : tensor<8xf32>
      loop.write %v, %p[%j] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// CHECK-LABEL: @no_flattening_when_combiners_differ
// CHECK: loop.reduce (%k) to (2) [max]
// CHECK-NEXT: loop.reduce (%l) to (3) [add]
func.func @no_flattening_when_combiners_differ(%x: tensor<2x3xf32>) -> tensor<f32> {
  %y = loop.kernel "max" outs(%o : memref<f32>) -> tensor<f32> {
    %m = loop.reduce (%k) to (2) [max] -> f32 {
      %n = loop.reduce (%l) to (3) [add] -> f32 {
        %v = loop.read %x[%k, %l] : tensor<2x3xf32>
        loop.yield %v : f32
      }
      loop.yield %n : f32
    }
    loop.write %m, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_merging_when_memory_is_written_between
// CHECK: [[V:%\w+]] = loop.read %b[]
// CHECK: loop.write {{.*}} %b[]
// CHECK: [[W:%\w+]] = loop.read %b[]
// CHECK-NEXT: arith.addf [[V]], [[W]]
func.func @no_merging_when_memory_is_written_between(%x: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel "add" outs(%o : memref<f32>) -> tensor<f32> {
    %b = loop.local () : memref<f32>
    %c = loop.read %x[] : tensor<f32>
    loop.write %c, %b[] : memref<f32>
    %v = loop.read %b[] : memref<f32>
    %d = arith.negf %v : f32
    loop.write %d, %b[] : memref<f32>
    %w = loop.read %b[] : memref<f32>
    %s = arith.addf %v, %w : f32
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_removal_when_it_checks
// CHECK: loop.kernel "check"
// CHECK: loop.assert
func.func @no_removal_when_it_checks(%n: tensor<8xi64>) {
  %y = loop.kernel "check" outs(%o : memref<8xi64>) -> tensor<8xi64> {
    loop.parallel (%i) to (8) {
      %v = loop.read %n[%i] : tensor<8xi64>
      %limit = arith.constant 8 : i64
      %in = arith.cmpi ult, %v, %limit : i64
      loop.assert %in, %v, "IndexError", "index {} is out of range"
      loop.write %v, %o[%i] : memref<8xi64>
    }
  }
  func.return
}

// -----

// CHECK-LABEL: @no_drop_when_the_body_reads_the_result
// CHECK: loop.kernel "sum" outs([[O:%\w+]]: memref<8xf32>, [[P:%\w+]]: memref<f32>) -> tensor<8xf32>, tensor<f32>
// CHECK: loop.write {{%\w+}}, [[O]][
// CHECK: loop.read [[O]][
func.func @no_drop_when_the_body_reads_the_result(%x: tensor<8xf32>) -> tensor<f32> {
  %y, %s = loop.kernel "sum" outs(%o : memref<8xf32>, %p : memref<f32>) -> tensor<8xf32>, tensor<f32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %n = arith.negf %v : f32
      loop.write %n, %o[%i] : memref<8xf32>
    }
    %t = loop.reduce (%i) to (8) [add] -> f32 {
      %v = loop.read %o[%i] : memref<8xf32>
      loop.yield %v : f32
    }
    loop.write %t, %p[] : memref<f32>
  }
  func.return %s : tensor<f32>
}

// -----

// CHECK-LABEL: @no_drop_when_a_result_is_another_tensor_updated
// CHECK: loop.kernel "put" outs({{%\w+}}: memref<8xf32> = %x, {{%\w+}}: memref<8xf32>) -> tensor<8xf32>, tensor<8xf32>
func.func @no_drop_when_a_result_is_another_tensor_updated(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y, %z = loop.kernel "put" outs(%o : memref<8xf32> = %x, %p : memref<8xf32>) -> tensor<8xf32>, tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %c = arith.constant 1.0 : f32
      loop.write %c, %o[%i] add : memref<8xf32>
      loop.write %c, %p[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// CHECK-LABEL: @loops_of_one_iteration
// CHECK: loop.parallel (%i) to (8)
// CHECK-NEXT: %v = loop.read %x[%i, 0]
// CHECK-NEXT: [[NEXT:%\w+]] = arith.mulf %one, %v
// CHECK-NEXT: loop.write [[NEXT]], %{{\w+}}[%i, 0]
// CHECK-NEXT: loop.write [[NEXT]], %{{\w+}}[%i]
// CHECK-NOT: loop.for
func.func @loops_of_one_iteration(%x: tensor<8x1xf32>) -> (tensor<8x1xf32>, tensor<8xf32>) {
  %y, %z = loop.kernel "scan" outs(%o : memref<8x1xf32>, %p : memref<8xf32>) -> tensor<8x1xf32>, tensor<8xf32> {
    %one = arith.constant 1.0 : f32
    loop.parallel (%i) to (8) {
      %last = loop.for (%j) to (1) carry (%c = %one : f32) {
        %v = loop.read %x[%i, %j] : tensor<8x1xf32>
        %n = arith.mulf %c, %v : f32
        loop.write %n, %o[%i, %j] : memref<8x1xf32>
        loop.yield %n : f32
      }
      loop.write %last, %p[%i] : memref<8xf32>
    }
  }
  func.return %y, %z : tensor<8x1xf32>, tensor<8xf32>
}

// CHECK-LABEL: @no_dissolving_when_a_loop_goes_round_twice
// CHECK: loop.for
func.func @no_dissolving_when_a_loop_goes_round_twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = loop.kernel "scan" outs(%o : memref<2xf32>) -> tensor<2xf32> {
    %one = arith.constant 1.0 : f32
    %last = loop.for (%j) to (2) carry (%c = %one : f32) {
      %v = loop.read %x[%j] : tensor<2xf32>
      %n = arith.mulf %c, %v : f32
      loop.write %n, %o[%j] : memref<2xf32>
      loop.yield %n : f32
    }
  }
  func.return %y : tensor<2xf32>
}

// CHECK-LABEL: @equal_ops_of_two_results
// CHECK: [[LOW:%\w+]], [[HIGH:%\w+]] = arith.mulsi_extended
// CHECK-NOT: mulsi_extended
// CHECK: arith.addi [[LOW]], [[HIGH]] : i64
func.func @equal_ops_of_two_results(%x: tensor<8xi64>) -> tensor<8xi64> {
  %y = loop.kernel "mul" outs(%o : memref<8xi64>) -> tensor<8xi64> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xi64>
      %a, %b = arith.mulsi_extended %v, %v : i64
      %c, %d = arith.mulsi_extended %v, %v : i64
      %s = arith.addi %a, %d : i64
      loop.write %s, %o[%i] : memref<8xi64>
    }
  }
  func.return %y : tensor<8xi64>
}

// Ranges are known of the indices of nests alone: not of what a loop carries.
// CHECK-LABEL: @no_range_when_an_index_is_carried
// CHECK: loop.read %x[%c floordiv 2]
// CHECK: loop.read %x[%j]
func.func @no_range_when_an_index_is_carried(%x: tensor<8xf32>) -> tensor<4xf32> {
  %y = loop.kernel "walk" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    %z = loop.index [0] : index
    %e = loop.for (%j) to (4) carry (%c = %z : index) {
      %v = loop.read %x[%c floordiv 2] : tensor<8xf32>
      %t = loop.read %x[(%j * 2 + 1) floordiv 2] : tensor<8xf32>
      %r = arith.addf %v, %t : f32
      loop.write %r, %o[%j] : memref<4xf32>
      %d = loop.index [%c + 1] : index
      loop.yield %d : index
    }
  }
  func.return %y : tensor<4xf32>
}

// Where an op takes an index as a value, the value of its expression stands, and other operands stay.
// CHECK-LABEL: @index_as_a_value
// CHECK: %[[I:[0-9]+]] = loop.index [0] : index
// CHECK-NEXT: arith.addi %[[I]], %c : index
func.func @index_as_a_value(%x: tensor<8xf32>) -> tensor<1xf32> {
  %y = loop.kernel "offset" outs(%o : memref<1xf32>) -> tensor<1xf32> {
    %c = loop.index [3] : index
    loop.parallel (%i) to (1) {
      %n = arith.addi %i, %c : index
      %v = loop.read %x[%n] : tensor<8xf32>
      loop.write %v, %o[%i] : memref<1xf32>
    }
  }
  func.return %y : tensor<1xf32>
}

// A row of zeros but for one element: the sum is the element, if it lies in the row, and 0 where it is -0.
// CHECK-LABEL: @row_with_one_element
// CHECK: [[K:%\w+]] = loop.read %k[]
// CHECK: [[X:%\w+]] = loop.read %x[]
// CHECK: [[N:%\w+]] = loop.index [1000] : i64
// CHECK-NEXT: [[IN:%\w+]] = arith.cmpi ult, [[K]], [[N]]
// CHECK-NEXT: [[ONE:%\w+]] = arith.select [[IN]], [[X]], [[ZERO:%\w+]]
// CHECK-NEXT: [[SUM:%\w+]] = arith.addf [[ONE]], [[ZERO]]
// CHECK-NEXT: loop.write [[SUM]]
func.func @row_with_one_element(%k: tensor<i64>, %x: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel "one" outs(%o : memref<f32>) -> tensor<f32> {
    %n = loop.read %k[] : tensor<i64>
    %v = loop.read %x[] : tensor<f32>
    %zero = arith.constant 0.0 : f32
    %s = loop.reduce (%i) to (1000) [add] -> f32 {
      %p = loop.index [%i] : i64
      %c = arith.cmpi eq, %p, %n : i64
      %e = arith.select %c, %v, %zero : f32
      loop.yield %e : f32
    }
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_pick_when_the_place_is_not_the_index
// CHECK: loop.reduce (%{{.*}}) to (1000)
func.func @no_pick_when_the_place_is_not_the_index(%k: tensor<i64>, %x: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel "one" outs(%o : memref<f32>) -> tensor<f32> {
    %n = loop.read %k[] : tensor<i64>
    %v = loop.read %x[] : tensor<f32>
    %zero = arith.constant 0.0 : f32
    %s = loop.reduce (%i) to (1000) [add] -> f32 {
      %p = loop.index [%i * 2] : i64
      %c = arith.cmpi eq, %p, %n : i64
      %e = arith.select %c, %v, %zero : f32
      loop.yield %e : f32
    }
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_pick_when_it_is_no_sum
// CHECK: loop.reduce (%{{.*}}) to (1000)
func.func @no_pick_when_it_is_no_sum(%k: tensor<i64>, %x: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel "one" outs(%o : memref<f32>) -> tensor<f32> {
    %n = loop.read %k[] : tensor<i64>
    %v = loop.read %x[] : tensor<f32>
    %zero = arith.constant 0.0 : f32
    %s = loop.reduce (%i) to (1000) [max] -> f32 {
      %p = loop.index [%i] : i64
      %c = arith.cmpi eq, %p, %n : i64
      %e = arith.select %c, %v, %zero : f32
      loop.yield %e : f32
    }
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_pick_when_the_element_is_its_place
// CHECK: loop.reduce (%{{.*}}) to (1000)
func.func @no_pick_when_the_element_is_its_place(%k: tensor<i64>) -> tensor<i64> {
  %y = loop.kernel "one" outs(%o : memref<i64>) -> tensor<i64> {
    %n = loop.read %k[] : tensor<i64>
    %zero = arith.constant 0 : i64
    %s = loop.reduce (%i) to (1000) [add] -> i64 {
      %p = loop.index [%i] : i64
      %c = arith.cmpi eq, %p, %n : i64
      %e = arith.select %c, %p, %zero : i64
      loop.yield %e : i64
    }
    loop.write %s, %o[] : memref<i64>
  }
  func.return %y : tensor<i64>
}

// CHECK-LABEL: @no_pick_when_all_others_count
// CHECK: loop.reduce (%{{.*}}) to (1000)
func.func @no_pick_when_all_others_count(%k: tensor<i64>, %x: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel "one" outs(%o : memref<f32>) -> tensor<f32> {
    %n = loop.read %k[] : tensor<i64>
    %v = loop.read %x[] : tensor<f32>
    %one = arith.constant 1.0 : f32
    %s = loop.reduce (%i) to (1000) [add] -> f32 {
      %p = loop.index [%i] : i64
      %c = arith.cmpi eq, %p, %n : i64
      %e = arith.select %c, %v, %one : f32
      loop.yield %e : f32
    }
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_pick_when_all_are_chosen_but_one
// CHECK: loop.reduce (%{{.*}}) to (1000)
func.func @no_pick_when_all_are_chosen_but_one(%k: tensor<i64>, %x: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel "one" outs(%o : memref<f32>) -> tensor<f32> {
    %n = loop.read %k[] : tensor<i64>
    %v = loop.read %x[] : tensor<f32>
    %zero = arith.constant 0.0 : f32
    %s = loop.reduce (%i) to (1000) [add] -> f32 {
      %p = loop.index [%i] : i64
      %c = arith.cmpi ne, %p, %n : i64
      %e = arith.select %c, %v, %zero : f32
      loop.yield %e : f32
    }
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// CHECK-LABEL: @no_pick_when_the_element_is_the_rows
// CHECK: loop.reduce (%{{.*}}) to (1000)
func.func @no_pick_when_the_element_is_the_rows(%k: tensor<i64>, %x: tensor<1000xf32>) -> tensor<f32> {
  %y = loop.kernel "one" outs(%o : memref<f32>) -> tensor<f32> {
    %n = loop.read %k[] : tensor<i64>
    %zero = arith.constant 0.0 : f32
    %s = loop.reduce (%i) to (1000) [add] -> f32 {
      %p = loop.index [%i] : i64
      %v = loop.read %x[%i] : tensor<1000xf32>
      %c = arith.cmpi eq, %p, %n : i64
      %e = arith.select %c, %v, %zero : f32
      loop.yield %e : f32
    }
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// The extremum is the one whose place is found.
// CHECK-LABEL: @shared_extremum
// CHECK: [[M:%\w+]], [[N:%\w+]], [[L:%\w+]] = loop.reduce (%i) to (8) [argmax, min] -> f32, i64, f32 {
// CHECK: loop.yield [[V:%\w+]], %{{\w+}}, [[V]] : f32, i64, f32
// CHECK: loop.write [[M]], %o[]
// CHECK: loop.write [[N]], %p[]
// CHECK: loop.write [[L]], %q[]
func.func @shared_extremum(%x: tensor<8xf32>) -> (tensor<f32>, tensor<i64>, tensor<f32>) {
  %a, %b, %c = loop.kernel "most" outs(%o : memref<f32>, %p : memref<i64>, %q : memref<f32>) -> tensor<f32>, tensor<i64>, tensor<f32> {
    %m, %k, %n, %l = loop.reduce (%i) to (8) [max, argmax, min] -> f32, f32, i64, f32 {
      %v = loop.read %x[%i] : tensor<8xf32>
      %u = loop.read %x[%i] : tensor<8xf32>
      %g = loop.index [%i] : i64
      loop.yield %v, %u, %g, %v : f32, f32, i64, f32
    }
    loop.write %m, %o[] : memref<f32>
    loop.write %n, %p[] : memref<i64>
    loop.write %l, %q[] : memref<f32>
  }
  func.return %a, %b, %c : tensor<f32>, tensor<i64>, tensor<f32>
}

// CHECK-LABEL: @no_sharing_of_other_extrema
// CHECK: loop.reduce (%i) to (8) [max, min, argmax] -> f32, f32, f32, i64 {
func.func @no_sharing_of_other_extrema(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<f32>, tensor<f32>, tensor<i64>) {
  %a, %b, %c = loop.kernel "most" outs(%o : memref<f32>, %p : memref<f32>, %q : memref<i64>) -> tensor<f32>, tensor<f32>, tensor<i64> {
    %m, %l, %k, %n = loop.reduce (%i) to (8) [max, min, argmax] -> f32, f32, f32, i64 {
      %v = loop.read %x[%i] : tensor<8xf32>
      %u = loop.read %y[%i] : tensor<8xf32>
      %g = loop.index [%i] : i64
      loop.yield %v, %u, %u, %g : f32, f32, f32, i64
    }
    loop.write %m, %o[] : memref<f32>
    loop.write %l, %p[] : memref<f32>
    loop.write %n, %q[] : memref<i64>
  }
  func.return %a, %b, %c : tensor<f32>, tensor<f32>, tensor<i64>
}

// CHECK: func.func private @declared
func.func private @declared(tensor<8xf32>) -> tensor<8xf32>
