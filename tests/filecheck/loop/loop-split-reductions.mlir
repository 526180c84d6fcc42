// RUN: xdsl-opt %s -p loop-split-reductions --split-input-file | filecheck %s

// A large reduction with few results becomes the reduction of parts, and the reduction of what they leave.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @sum
// CHECK: [[PARTS:%\w+]] = loop.kernel "sum_parts" outs([[OUT:%\w+]]: memref<16xf32>) -> tensor<16xf32>
// CHECK-NEXT: loop.parallel ([[C:%\w+]]) to (16) {
// CHECK-NEXT: [[PART:%\w+]] = loop.reduce ([[J:%\w+]]) to (65536) [add] -> f32 {
// CHECK-NEXT: loop.read %x[[[C]] * 65536 + [[J]]]
// CHECK: loop.write [[PART]], [[OUT]][[[C]]]
// CHECK: loop.kernel "sum" outs
// CHECK-NEXT: loop.reduce ([[K:%\w+]]) to (16) [add] -> f32 {
// CHECK-NEXT: loop.read [[PARTS]][[[K]]]
func.func @sum(%x: tensor<1048576xf32>) -> tensor<f32> {
  %s = loop.kernel "sum" outs(%o : memref<f32>) -> tensor<f32> {
    %t = loop.reduce (%i) to (1048576) [add] -> f32 {
      %v = loop.read %x[%i] : tensor<1048576xf32>
      loop.yield %v : f32
    }
    loop.write %t, %o[] : memref<f32>
  }
  func.return %s : tensor<f32>
}
}

// -----

// Where no number of parts near the wanted one divides the size, the last part reads nothing beyond the end.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @ragged
// CHECK: loop.parallel ([[C:%\w+]], [[I:%\w+]]) to (6, 3) {
// CHECK: loop.reduce ([[J:%\w+]]) to (174763) [max] -> f32 {
// CHECK-NEXT: [[INDEX:%\w+]] = loop.index [[[C]] * 174763 + [[J]]] : i64
// CHECK-NEXT: [[SIZE:%\w+]] = loop.index [1048573] : i64
// CHECK-NEXT: [[INSIDE:%\w+]] = arith.cmpi slt, [[INDEX]], [[SIZE]] : i64
// CHECK: [[V:%\w+]] = loop.read %x[[[I]], [[C]] * 174763 + [[J]]] if [[INSIDE]]
// CHECK: arith.constant 0xff800000 : f32
// CHECK-NEXT: arith.select [[INSIDE]], [[V]]
func.func @ragged(%x: tensor<3x1048573xf32>) -> tensor<3xf32> {
  %s = loop.kernel "max" outs(%o : memref<3xf32>) -> tensor<3xf32> {
    loop.parallel (%i) to (3) {
      %t = loop.reduce (%j) to (1048573) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<3x1048573xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<3xf32>
    }
  }
  func.return %s : tensor<3xf32>
}
}

// -----

// Nor does a check fail there.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @ragged_and_checked
// CHECK: loop.reduce
// CHECK: [[INSIDE:%\w+]] = arith.cmpi slt
// CHECK: [[OK:%\w+]] = arith.cmpi sge
// CHECK: [[TRUE:%\w+]] = arith.constant true
// CHECK-NEXT: [[OUTSIDE:%\w+]] = arith.xori [[INSIDE]], [[TRUE]] : i1
// CHECK-NEXT: [[EITHER:%\w+]] = arith.ori [[OK]], [[OUTSIDE]] : i1
// CHECK-NEXT: loop.assert [[EITHER]]
func.func @ragged_and_checked(%x: tensor<1048573xi64>) -> tensor<i64> {
  %s = loop.kernel "sum" outs(%o : memref<i64>) -> tensor<i64> {
    %zero = arith.constant 0 : i64
    %t = loop.reduce (%j) to (1048573) [add] -> i64 {
      %v = loop.read %x[%j] : tensor<1048573xi64>
      %ok = arith.cmpi sge, %v, %zero : i64
      loop.assert %ok, %v, "IndexError", "index {} is out of range"
      loop.yield %v : i64
    }
    loop.write %t, %o[] : memref<i64>
  }
  func.return %s : tensor<i64>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_split_when_rows_are_programs_enough
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_rows_are_programs_enough(%x: tensor<4096x4096xf32>) -> tensor<4096xf32> {
  %s = loop.kernel "sum" outs(%o : memref<4096xf32>) -> tensor<4096xf32> {
    loop.parallel (%i) to (4096) {
      %t = loop.reduce (%j) to (4096) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4096x4096xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<4096xf32>
    }
  }
  func.return %s : tensor<4096xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_split_when_the_target_is_a_processor
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_the_target_is_a_processor(%x: tensor<1048576xf32>) -> tensor<f32> {
  %s = loop.kernel "sum" outs(%o : memref<f32>) -> tensor<f32> {
    %t = loop.reduce (%i) to (1048576) [add] -> f32 {
      %v = loop.read %x[%i] : tensor<1048576xf32>
      loop.yield %v : f32
    }
    loop.write %t, %o[] : memref<f32>
  }
  func.return %s : tensor<f32>
}
}

// -----

// A read that has a guard already keeps it.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @guarded
// CHECK: [[INSIDE:%\w+]] = arith.cmpi slt, {{%\w+}}, {{%\w+}} : i64
// CHECK: [[GUARD:%\w+]] = arith.cmpi ult
// CHECK: [[BOTH:%\w+]] = arith.andi [[GUARD]], [[INSIDE]] : i1
// CHECK-NEXT: loop.read %x[{{.*}}] if [[BOTH]] else {{%\w+}}
func.func @guarded(%x: tensor<3x1048573xf32>) -> tensor<3xf32> {
  %s = loop.kernel "max" outs(%o : memref<3xf32>) -> tensor<3xf32> {
    loop.parallel (%i) to (3) {
      %t = loop.reduce (%j) to (1048573) [max] -> f32 {
        %n = loop.index [%j] : i64
        %limit = arith.constant 1000000 : i64
        %one = arith.constant 1.0 : f32
        %g = arith.cmpi ult, %n, %limit : i64
        %v = loop.read %x[%i, %j] if %g else %one : tensor<3x1048573xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<3xf32>
    }
  }
  func.return %s : tensor<3xf32>
}
}

// -----

// An index that is used as a number is computed from those of the parts.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @sum_of_indices
// CHECK: loop.parallel ([[P:%\w+]]) to (16)
// CHECK: [[T:%\w+]] = loop.reduce ([[J:%\w+]]) to (65536)
// CHECK-NEXT: [[I:%\w+]] = loop.index {{\[}}[[P]] * 65536 + [[J]]] : index
// CHECK-NEXT: [[N:%\w+]] = arith.index_cast [[I]] : index to i64
// CHECK-NEXT: loop.yield [[N]]
func.func @sum_of_indices() -> tensor<i64> {
  %s = loop.kernel "sum" outs(%o : memref<i64>) -> tensor<i64> {
    %t = loop.reduce (%i) to (1048576) [add] -> i64 {
      %n = arith.index_cast %i : index to i64
      loop.yield %n : i64
    }
    loop.write %t, %o[] : memref<i64>
  }
  func.return %s : tensor<i64>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_split_when_there_is_one_step
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_there_is_one_step(%x: tensor<1048576xf32>) -> tensor<f32> {
  %y = loop.kernel "k" outs(%o : memref<f32>) -> tensor<f32> {
    %t = loop.reduce (%i) to (1) [max] -> f32 {
      %s = loop.reduce (%k) to (1048576) [add] -> f32 {
        %v = loop.read %x[%k] : tensor<1048576xf32>
        loop.yield %v : f32
      }
      loop.yield %s : f32
    }
    loop.write %t, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_split_when_nothing_is_reduced
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_nothing_is_reduced(%x: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel "k" outs(%o : memref<f32>) -> tensor<f32> {
    %t = loop.reduce () to () [max] -> f32 {
      %v = loop.read %x[] : tensor<f32>
      loop.yield %v : f32
    }
    loop.write %t, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Equal parts write their elements.
// CHECK-LABEL: @sum_of_what_is_written
// CHECK-NEXT: %{{.*}}, [[PARTS:%\w+]] = loop.kernel "exp_sum" outs([[OUT:%\w+]]: memref<1048576xf32>, [[EACH:%\w+]]: memref<16xf32>)
// CHECK-NEXT: loop.parallel ([[P:%\w+]]) to (16) {
// CHECK-NEXT: [[SUM:%\w+]] = loop.reduce ([[I:%\w+]]) to (65536) [add]
// CHECK-NEXT: loop.read %x[[[P]] * 65536 + [[I]]]
// CHECK-NEXT: math.exp
// CHECK-NEXT: loop.write %{{.*}}, [[OUT]][[[P]] * 65536 + [[I]]]
// CHECK: loop.write [[SUM]], [[EACH]][[[P]]]
// CHECK: loop.kernel "exp_sum" outs(%{{.*}}: memref<f32>)
// CHECK-NEXT: loop.reduce ([[P:%\w+]]) to (16) [add]
// CHECK-NEXT: loop.read [[PARTS]][[[P]]]
func.func @sum_of_what_is_written(%x: tensor<1048576xf32>) -> (tensor<1048576xf32>, tensor<f32>) {
  %y, %t = loop.kernel "exp_sum" outs(%o : memref<1048576xf32>, %r : memref<f32>) -> tensor<1048576xf32>, tensor<f32> {
    %total = loop.reduce (%i) to (1048576) [add] -> f32 {
      %v = loop.read %x[%i] : tensor<1048576xf32>
      %e = math.exp %v : f32
      loop.write %e, %o[%i] : memref<1048576xf32>
      loop.yield %e : f32
    }
    loop.write %total, %r[] : memref<f32>
  }
  func.return %y, %t : tensor<1048576xf32>, tensor<f32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// The last of unequal parts would write beyond the end.
// CHECK-LABEL: @ragged_sum_of_what_is_written
// CHECK-NEXT: loop.kernel "exp_sum" outs([[OUT:%\w+]]: memref<1048573xf32>)
// CHECK-NEXT: loop.parallel ([[I:%\w+]]) to (1048573) {
// CHECK: loop.write %{{.*}}, [[OUT]][[[I]]]
// CHECK: loop.kernel "exp_sum_parts" outs(%{{.*}}: memref<16xf32>)
// CHECK-NOT: loop.write %{{.*}} * 65536
// CHECK: loop.kernel "exp_sum" outs(%{{.*}}: memref<f32>)
func.func @ragged_sum_of_what_is_written(%x: tensor<1048573xf32>) -> (tensor<1048573xf32>, tensor<f32>) {
  %y, %t = loop.kernel "exp_sum" outs(%o : memref<1048573xf32>, %r : memref<f32>) -> tensor<1048573xf32>, tensor<f32> {
    %total = loop.reduce (%i) to (1048573) [add] -> f32 {
      %v = loop.read %x[%i] : tensor<1048573xf32>
      %e = math.exp %v : f32
      loop.write %e, %o[%i] : memref<1048573xf32>
      loop.yield %e : f32
    }
    loop.write %total, %r[] : memref<f32>
  }
  func.return %y, %t : tensor<1048573xf32>, tensor<f32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// A sum of sums is one, and may be cut along any of its dims.
// CHECK-LABEL: @sum_of_sums
// CHECK: loop.parallel ([[P:%\w+]]) to (16) {
// CHECK-NEXT: loop.reduce ([[I:%\w+]], [[J:%\w+]]) to (4, 16384) [add]
// CHECK-NEXT: loop.read %x[[[I]], [[P]] * 16384 + [[J]]]
func.func @sum_of_sums(%x: tensor<4x262144xf32>) -> tensor<f32> {
  %t = loop.kernel "sum" outs(%r : memref<f32>) -> tensor<f32> {
    %total = loop.reduce (%i) to (4) [add] -> f32 {
      %part = loop.reduce (%j) to (262144) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x262144xf32>
        loop.yield %v : f32
      }
      loop.yield %part : f32
    }
    loop.write %total, %r[] : memref<f32>
  }
  func.return %t : tensor<f32>
}
}
