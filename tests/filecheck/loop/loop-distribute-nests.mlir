// RUN: xdsl-opt %s -p loop-distribute-nests --split-input-file | filecheck %s

// Nests that cannot share the programs of a GPU become kernels of their own; what they share goes through memory.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// A mean of each group is read at a computed place: it would be summed up again for every element.
// CHECK-LABEL: @groups
// CHECK: [[MEANS:%\w+]] = loop.kernel "norm" outs([[OUT:%\w+]]: memref<64x8xf32>) -> tensor<64x8xf32> {
// CHECK-NEXT: loop.parallel ([[I:%\w+]], [[G:%\w+]]) to (64, 8) {
// CHECK-NEXT: loop.reduce ([[J:%\w+]]) to (128) [add] -> f32 {
// CHECK: loop.write %{{.*}}, [[OUT]][[[I]], [[G]]]
// CHECK: loop.kernel "norm" outs
// CHECK-NEXT: loop.parallel ([[I:%\w+]], [[K:%\w+]]) to (64, 1024) {
// CHECK: loop.read [[MEANS]][[[I]], [[K]] floordiv 128]
func.func @groups(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %y = loop.kernel "norm" outs(%o : memref<64x1024xf32>) -> tensor<64x1024xf32> {
    loop.parallel (%i) to (64) {
      %means = loop.local (8) : memref<8xf32>
      loop.parallel (%g) to (8) {
        %s = loop.reduce (%j) to (128) [add] -> f32 {
          %v = loop.read %x[%i, %g * 128 + %j] : tensor<64x1024xf32>
          loop.yield %v : f32
        }
        loop.write %s, %means[%g] : memref<8xf32>
      }
      loop.parallel (%k) to (1024) {
        %v = loop.read %x[%i, %k] : tensor<64x1024xf32>
        %m = loop.read %means[%k floordiv 128] : memref<8xf32>
        %d = arith.subf %v, %m : f32
        loop.write %d, %o[%i, %k] : memref<64x1024xf32>
      }
    }
  }
  func.return %y : tensor<64x1024xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// One program would go over a million elements twice.
// CHECK-LABEL: @few_rows
// CHECK: [[SUM:%\w+]] = loop.kernel "centre" outs([[OUT:%\w+]]: memref<1xf32>) -> tensor<1xf32> {
// CHECK: loop.reduce
// CHECK: loop.kernel "centre" outs
// CHECK-NEXT: loop.parallel ([[I:%\w+]], [[J:%\w+]]) to (1, 1048576) {
// CHECK: loop.read [[SUM]][[[I]]]
func.func @few_rows(%x: tensor<1x1048576xf32>) -> tensor<1x1048576xf32> {
  %y = loop.kernel "centre" outs(%o : memref<1x1048576xf32>) -> tensor<1x1048576xf32> {
    loop.parallel (%i) to (1) {
      %s = loop.reduce (%j) to (1048576) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<1x1048576xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (1048576) {
        %v = loop.read %x[%i, %j] : tensor<1x1048576xf32>
        %d = arith.subf %v, %s : f32
        loop.write %d, %o[%i, %j] : memref<1x1048576xf32>
      }
    }
  }
  func.return %y : tensor<1x1048576xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// What a sequential loop leaves is read by scalar code behind it: no lane could compute one step alone.
// CHECK-LABEL: @behind_a_loop
// CHECK: [[ALL:%\w+]] = loop.kernel "scan" outs
// CHECK: loop.for
// CHECK: [[LAST:%\w+]] = loop.kernel "scan" outs([[OUT:%\w+]]: memref<64xf32>)
// CHECK-NEXT: loop.parallel ([[I:%\w+]]) to (64) {
// CHECK-NEXT: [[V:%\w+]] = loop.read [[ALL]][[[I]], 2]
// CHECK-NEXT: loop.write [[V]], [[OUT]][[[I]]]
func.func @behind_a_loop(%x: tensor<64x4xf32>) -> tensor<64xf32> {
  %y = loop.kernel "scan" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    %zero = arith.constant 0.0 : f32
    loop.parallel (%i) to (64) {
      %row = loop.local (4) : memref<4xf32>
      %s = loop.for (%j) to (4) carry (%c = %zero : f32) {
        %v = loop.read %x[%i, %j] : tensor<64x4xf32>
        %n = arith.addf %c, %v : f32
        loop.write %n, %row[%j] : memref<4xf32>
        loop.yield %n : f32
      }
      %l = loop.read %row[2] : memref<4xf32>
      loop.write %l, %o[%i] : memref<64xf32>
    }
  }
  func.return %y : tensor<64xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// A reduction that reads elsewhere what a nest inside of it writes: the nest goes before it, with a result for each of
// its steps.
// CHECK-LABEL: @inside_a_reduction
// CHECK: [[ROWS:%\w+]], [[SUMS:%\w+]] = loop.kernel "pool" outs([[R:%\w+]]: memref<8xf32>, [[S:%\w+]]: memref<2xf32>)
// CHECK: loop.parallel ([[I:%\w+]]) to (2) {
// CHECK-NEXT: [[SUM:%\w+]] = loop.reduce ([[J:%\w+]]) to (4) [add] -> f32 {
// CHECK: loop.write [[SUM]], [[S]][[[I]]]
// CHECK: loop.kernel "pool" outs
// CHECK: loop.reduce ([[I:%\w+]]) to (2) [max] -> f32 {
// CHECK-NEXT: [[READ:%\w+]] = loop.read [[SUMS]][[[I]]]
// CHECK-NEXT: loop.read [[ROWS]][[[I]] * 4 + 3]
// CHECK: loop.yield [[READ]] : f32
func.func @inside_a_reduction(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<2xf32>, tensor<f32>) {
  %a, %b, %c = loop.kernel "pool" outs(%o : memref<8xf32>, %p : memref<2xf32>, %q : memref<f32>) -> tensor<8xf32>, tensor<2xf32>, tensor<f32> {
    %m = loop.reduce (%i) to (2) [max] -> f32 {
      %s = loop.reduce (%j) to (4) [add] -> f32 {
        %v = loop.read %x[%i * 4 + %j] : tensor<8xf32>
        %e = math.exp %v : f32
        loop.write %e, %o[%i * 4 + %j] : memref<8xf32>
        loop.yield %e : f32
      }
      %l = loop.read %o[%i * 4 + 3] : memref<8xf32>
      loop.write %l, %p[%i] : memref<2xf32>
      loop.yield %s : f32
    }
    loop.write %m, %q[] : memref<f32>
  }
  func.return %a, %b, %c : tensor<8xf32>, tensor<2xf32>, tensor<f32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_distribution_when_rows_stay_in_registers
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_distribution_when_rows_stay_in_registers(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  %y = loop.kernel "softmax" outs(%o : memref<4096x1024xf32>) -> tensor<4096x1024xf32> {
    loop.parallel (%i) to (4096) {
      %row = loop.local (1024) : memref<1024xf32>
      %s = loop.reduce (%j) to (1024) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4096x1024xf32>
        %e = math.exp %v : f32
        loop.write %e, %row[%j] : memref<1024xf32>
        loop.yield %e : f32
      }
      loop.parallel (%j) to (1024) {
        %e = loop.read %row[%j] : memref<1024xf32>
        %q = arith.divf %e, %s : f32
        loop.write %q, %o[%i, %j] : memref<4096x1024xf32>
      }
    }
  }
  func.return %y : tensor<4096x1024xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_distribution_when_the_target_is_a_processor
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_distribution_when_the_target_is_a_processor(%x: tensor<1x1048576xf32>) -> tensor<1x1048576xf32> {
  %y = loop.kernel "centre" outs(%o : memref<1x1048576xf32>) -> tensor<1x1048576xf32> {
    loop.parallel (%i) to (1) {
      %s = loop.reduce (%j) to (1048576) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<1x1048576xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (1048576) {
        %v = loop.read %x[%i, %j] : tensor<1x1048576xf32>
        %d = arith.subf %v, %s : f32
        loop.write %d, %o[%i, %j] : memref<1x1048576xf32>
      }
    }
  }
  func.return %y : tensor<1x1048576xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Which iteration wrote what is read, nobody knows.
// CHECK-LABEL: @places_that_are_computed
// CHECK-COUNT-2: loop.kernel
// CHECK-NOT: loop.kernel
func.func @places_that_are_computed(%x: tensor<64x8xf32>, %at: tensor<8xi64>) -> tensor<64x8xf32> {
  %y = loop.kernel "k" outs(%o : memref<64x8xf32>) -> tensor<64x8xf32> {
    loop.parallel (%b) to (64) {
      %l = loop.local (8) : memref<8xf32>
      loop.parallel (%i) to (8) {
        %v = loop.read %x[%b, %i] : tensor<64x8xf32>
        %c = loop.read %at[%i] : tensor<8xi64>
        %p = arith.index_cast %c : i64 to index
        loop.write %v, %l[%p] : memref<8xf32>
      }
      loop.parallel (%j) to (8) {
        %v = loop.read %l[%j] : memref<8xf32>
        loop.write %v, %o[%b, %j] : memref<64x8xf32>
      }
    }
  }
  func.return %y : tensor<64x8xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Of two rows one was written.
// CHECK-LABEL: @one_row_of_two
// CHECK-COUNT-2: loop.kernel
// CHECK-NOT: loop.kernel
func.func @one_row_of_two(%x: tensor<64x8xf32>) -> tensor<64x2x8xf32> {
  %y = loop.kernel "k" outs(%o : memref<64x2x8xf32>) -> tensor<64x2x8xf32> {
    %none = arith.constant 0.0 : f32
    %first = arith.constant 0 : i64
    loop.parallel (%b) to (64) {
      %l = loop.local (2, 8) : memref<2x8xf32>
      loop.parallel (%i) to (8) {
        %v = loop.read %x[%b, %i] : tensor<64x8xf32>
        %e = math.exp %v : f32
        loop.write %e, %l[0, %i] : memref<2x8xf32>
      }
      loop.parallel (%m, %j) to (2, 8) {
        %n = loop.index [%m] : i64
        %c = arith.cmpi eq, %n, %first : i64
        %v = loop.read %l[%m, 7 - %j] if %c else %none : memref<2x8xf32>
        loop.write %v, %o[%b, %m, %j] : memref<64x2x8xf32>
      }
    }
  }
  func.return %y : tensor<64x2x8xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// What is added to an initial value cannot be made again without it.
// CHECK-LABEL: @updates_that_are_read
// CHECK-COUNT-2: loop.kernel
// CHECK-NOT: loop.kernel
func.func @updates_that_are_read(%x: tensor<64x8xf32>, %b: tensor<64x8xf32>) -> (tensor<64x8xf32>, tensor<64x8xf32>) {
  %y, %z = loop.kernel "k" outs(%o : memref<64x8xf32> = %b, %p : memref<64x8xf32>) -> tensor<64x8xf32>, tensor<64x8xf32> {
    loop.parallel (%i) to (64) {
      loop.parallel (%j) to (8) {
        %v = loop.read %x[%i, %j] : tensor<64x8xf32>
        loop.write %v, %o[%i, %j] add : memref<64x8xf32>
      }
      loop.parallel (%k) to (8) {
        %v = loop.read %o[%i, 7 - %k] : memref<64x8xf32>
        loop.write %v, %p[%i, %k] : memref<64x8xf32>
      }
    }
  }
  func.return %y, %z : tensor<64x8xf32>, tensor<64x8xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// No nest is around both the writes and the read: the kernel itself is split.
// CHECK-LABEL: @scalars_that_a_nest_reads
// CHECK-COUNT-2: loop.kernel
// CHECK-NOT: loop.kernel
func.func @scalars_that_a_nest_reads(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = loop.kernel "k" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    %l = loop.local (2) : memref<2xf32>
    %a = loop.read %x[3] : tensor<8xf32>
    %c = loop.read %x[5] : tensor<8xf32>
    loop.write %a, %l[0] : memref<2xf32>
    loop.write %c, %l[1] : memref<2xf32>
    loop.parallel (%i) to (8) {
      %v = loop.read %l[%i mod 2] : memref<2xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Rows of earlier steps are read.
// CHECK-LABEL: @no_distribution_of_a_sequential_loop
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_distribution_of_a_sequential_loop(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = loop.kernel "k" outs(%o : memref<8x4xf32>) -> tensor<8x4xf32> {
    %l = loop.local (8, 4) : memref<8x4xf32>
    %none = arith.constant 0.0 : f32
    %zero = arith.constant 0 : i64
    %e = loop.for (%i) to (8) carry (%q = %none : f32) {
      %n = loop.index [%i] : i64
      %c = arith.cmpi sgt, %n, %zero : i64
      loop.parallel (%j) to (4) {
        %v = loop.read %x[%i, %j] : tensor<8x4xf32>
        loop.write %v, %l[%i, %j] : memref<8x4xf32>
      }
      loop.parallel (%j) to (4) {
        %v = loop.read %l[%i - 1, %j] if %c else %none : memref<8x4xf32>
        %w = loop.read %l[%j, 0] if %c else %none : memref<8x4xf32>
        %t = arith.addf %v, %w : f32
        loop.write %t, %o[%i, %j] : memref<8x4xf32>
      }
      loop.yield %q : f32
    }
  }
  func.return %y : tensor<8x4xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_distribution_when_a_scalar_follows
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_distribution_when_a_scalar_follows(%x: tensor<1x1048576xf32>) -> (tensor<1x1048576xf32>, tensor<f32>) {
  %y, %z = loop.kernel "k" outs(%o : memref<1x1048576xf32>, %p : memref<f32>) -> tensor<1x1048576xf32>, tensor<f32> {
    loop.parallel (%i) to (1) {
      %s = loop.reduce (%j) to (1048576) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<1x1048576xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (1048576) {
        %v = loop.read %x[%i, %j] : tensor<1x1048576xf32>
        %d = arith.subf %v, %s : f32
        loop.write %d, %o[%i, %j] : memref<1x1048576xf32>
      }
    }
    %n = loop.read %x[0, 0] : tensor<1x1048576xf32>
    loop.write %n, %p[] : memref<f32>
  }
  func.return %y, %z : tensor<1x1048576xf32>, tensor<f32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_distribution_within_one_phase
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_distribution_within_one_phase(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = loop.kernel "k" outs(%o : memref<8xf32> = %x) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %o[%i] : memref<8xf32>
      %w = loop.read %x[%i] : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// The row was written, wherever it is.
// CHECK-LABEL: @no_distribution_when_a_place_is_known_before_both_nests
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_distribution_when_a_place_is_known_before_both_nests(%x: tensor<64x8xf32>, %at: tensor<64xi64>) -> tensor<64x8xf32> {
  %y = loop.kernel "k" outs(%o : memref<64x8xf32>) -> tensor<64x8xf32> {
    loop.parallel (%i) to (64) {
      %l = loop.local (4, 8) : memref<4x8xf32>
      %c = loop.read %at[%i] : tensor<64xi64>
      %p = arith.index_cast %c : i64 to index
      loop.parallel (%j) to (8) {
        %v = loop.read %x[%i, %j] : tensor<64x8xf32>
        %e = math.exp %v : f32
        loop.write %e, %l[%p, %j] : memref<4x8xf32>
      }
      loop.parallel (%k) to (8) {
        %w = loop.read %l[%p, 7 - %k] : memref<4x8xf32>
        loop.write %w, %o[%i, %k] : memref<64x8xf32>
      }
    }
  }
  func.return %y : tensor<64x8xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Rows wait for none of the others; their sum does, and what follows it.
// CHECK-LABEL: @rows_and_their_sum
// CHECK-NEXT: %{{.*}}, [[EACH:%\w+]] = loop.kernel "loss" outs([[OUT:%\w+]]: memref<512x1024xf32>, [[KEPT:%\w+]]: memref<512xf32>)
// CHECK-NEXT: loop.parallel ([[I:%\w+]]) to (512) {
// CHECK: [[MAX:%\w+]] = loop.reduce (%{{.*}}) to (1024) [max]
// CHECK: loop.write %{{.*}}, [[OUT]][[[I]], %{{.*}}]
// CHECK: [[LESS:%\w+]] = arith.negf [[MAX]]
// CHECK-NEXT: loop.write [[LESS]], [[KEPT]][[[I]]]
// CHECK: loop.kernel "loss" outs([[SUM:%\w+]]: memref<f32>)
// CHECK-NEXT: [[TOTAL:%\w+]] = loop.reduce ([[I:%\w+]]) to (512) [add]
// CHECK-NEXT: loop.read [[EACH]][[[I]]]
// CHECK: math.exp [[TOTAL]]
func.func @rows_and_their_sum(%x: tensor<512x1024xf32>) -> (tensor<512x1024xf32>, tensor<f32>) {
  %y, %t = loop.kernel "loss" outs(%o : memref<512x1024xf32>, %r : memref<f32>) -> tensor<512x1024xf32>, tensor<f32> {
    %total = loop.reduce (%i) to (512) [add] -> f32 {
      %m = loop.reduce (%j) to (1024) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<512x1024xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (1024) {
        %v = loop.read %x[%i, %j] : tensor<512x1024xf32>
        %d = arith.subf %v, %m : f32
        loop.write %d, %o[%i, %j] : memref<512x1024xf32>
      }
      %n = arith.negf %m : f32
      loop.yield %n : f32
    }
    %h = math.exp %total : f32
    loop.write %h, %r[] : memref<f32>
  }
  func.return %y, %t : tensor<512x1024xf32>, tensor<f32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// The sum of the rows is cut in parts instead.
// CHECK-LABEL: @no_freeing_when_rows_are_not_written
// CHECK-NEXT: loop.kernel "loss" outs(%{{.*}}: memref<f32>) -> tensor<f32> {
// CHECK-NEXT: loop.reduce (%{{.*}}) to (512) [add]
// CHECK-NOT: loop.kernel
func.func @no_freeing_when_rows_are_not_written(%x: tensor<512x1024xf32>) -> tensor<f32> {
  %t = loop.kernel "loss" outs(%r : memref<f32>) -> tensor<f32> {
    %total = loop.reduce (%i) to (512) [add] -> f32 {
      %m = loop.reduce (%j) to (1024) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<512x1024xf32>
        loop.yield %v : f32
      }
      loop.yield %m : f32
    }
    loop.write %total, %r[] : memref<f32>
  }
  func.return %t : tensor<f32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_freeing_when_there_is_little_to_do
// CHECK-NEXT: loop.kernel "loss" outs(%{{.*}}: memref<8xf32>, %{{.*}}: memref<f32>)
// CHECK-NEXT: loop.reduce (%{{.*}}) to (8) [add]
// CHECK-NOT: loop.kernel
func.func @no_freeing_when_there_is_little_to_do(%x: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<f32>) {
  %y, %t = loop.kernel "loss" outs(%o : memref<8xf32>, %r : memref<f32>) -> tensor<8xf32>, tensor<f32> {
    %total = loop.reduce (%i) to (8) [add] -> f32 {
      %m = loop.reduce (%j) to (16) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<8x16xf32>
        loop.yield %v : f32
      }
      loop.write %m, %o[%i] : memref<8xf32>
      loop.yield %m : f32
    }
    loop.write %total, %r[] : memref<f32>
  }
  func.return %y, %t : tensor<8xf32>, tensor<f32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Two programs would go over a million elements each: what they share is read by all elements.
// CHECK-LABEL: @few_long_rows
// CHECK: loop.parallel ([[I:%\w+]], [[J:%\w+]]) to (2, 1048576) {
// CHECK-NEXT: loop.read %s[[[I]]]
// CHECK-NEXT: loop.read %x[[[I]], [[J]]]
func.func @few_long_rows(%x: tensor<2x1048576xf32>, %s: tensor<2xf32>) -> tensor<2x1048576xf32> {
  %y = loop.kernel "scale" outs(%o : memref<2x1048576xf32>) -> tensor<2x1048576xf32> {
    loop.parallel (%i) to (2) {
      %f = loop.read %s[%i] : tensor<2xf32>
      loop.parallel (%j) to (1048576) {
        %v = loop.read %x[%i, %j] : tensor<2x1048576xf32>
        %d = arith.mulf %v, %f : f32
        loop.write %d, %o[%i, %j] : memref<2x1048576xf32>
      }
    }
  }
  func.return %y : tensor<2x1048576xf32>
}
}
