// RUN: xdsl-opt %s -p convert-loop-to-tile --split-input-file | filecheck %s

// On a GPU, programs compute blocks of several axes, and rows stay in registers.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// One load of two rows, masked where the block is longer, serves all three nests; the local is gone.
// CHECK-LABEL: @softmax
// CHECK: tile.kernel @softmax_0(%{{.*}}) grid (2048) attributes {stepwell.num_warps = 2 : i32, stepwell.num_stages = 3 : i32, stepwell.index_bits = 32 : i32}
// CHECK: [[ROW:%\w+]] = tile.index [%{{.*}} * 2] : index
// CHECK: [[MASK:%\w+]] = tile.broadcast %{{.*}} dims [1] : vector<512xi1> -> vector<2x512xi1>
// CHECK: [[X:%\w+]] = tile.load %{{.*}}[[[ROW]] * 500] strides (500, 1) mask [[MASK]] : memref<?xf32> -> vector<2x512xf32>
// CHECK: tile.reduce max %{{.*}} dim 1
// CHECK: arith.subf [[X]], %{{.*}}
// CHECK: [[E:%\w+]] = math.exp
// CHECK: tile.reduce add %{{.*}} dim 1
// CHECK: arith.divf [[E]], %{{.*}} : vector<2x512xf32>
// CHECK-NEXT: tile.store %{{.*}}, %{{.*}}[[[ROW]] * 500] strides (500, 1) mask [[MASK]]
// CHECK-NOT: tile.load
func.func @softmax(%x: tensor<4096x500xf32>) -> tensor<4096x500xf32> {
  %y = loop.kernel "softmax" outs(%o : memref<4096x500xf32>) -> tensor<4096x500xf32> {
    loop.parallel (%i) to (4096) {
      %row = loop.local (500) : memref<500xf32>
      %m = loop.reduce (%j) to (500) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4096x500xf32>
        loop.yield %v : f32
      }
      %s = loop.reduce (%j) to (500) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4096x500xf32>
        %d = arith.subf %v, %m : f32
        %e = math.exp %d : f32
        loop.write %e, %row[%j] : memref<500xf32>
        loop.yield %e : f32
      }
      loop.parallel (%j) to (500) {
        %e = loop.read %row[%j] : memref<500xf32>
        %q = arith.divf %e, %s : f32
        loop.write %q, %o[%i, %j] : memref<4096x500xf32>
      }
    }
  }
  func.return %y : tensor<4096x500xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Where accesses are contiguous along different dims, programs take square tiles.
// CHECK-LABEL: @transpose
// CHECK: grid (1024)
// CHECK: tile.load %{{.*}} strides (1, 2048) : memref<?xf32> -> vector<64x64xf32>
// CHECK: tile.load %{{.*}} strides (2048, 1) : memref<?xf32> -> vector<64x64xf32>
func.func @transpose(%x: tensor<2048x2048xf32>, %y: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %z = loop.kernel "add" outs(%o : memref<2048x2048xf32>) -> tensor<2048x2048xf32> {
    loop.parallel (%i, %j) to (2048, 2048) {
      %v = loop.read %x[%j, %i] : tensor<2048x2048xf32>
      %w = loop.read %y[%i, %j] : tensor<2048x2048xf32>
      %s = arith.addf %v, %w : f32
      loop.write %s, %o[%i, %j] : memref<2048x2048xf32>
    }
  }
  func.return %z : tensor<2048x2048xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Columns are reduced side by side, some rows at a time.
// CHECK-LABEL: @columns
// CHECK: grid (512)
// CHECK: [[SUM:%\w+]] = tile.for {{.*}} to [128] step 64 carry
// CHECK-NEXT: tile.load %{{.*}} strides (1, 32768) : memref<?xf32> -> vector<64x64xf32>
// CHECK: tile.reduce add [[SUM]] dim 1 : vector<64x64xf32>
func.func @columns(%x: tensor<128x32768xf32>) -> tensor<32768xf32> {
  %y = loop.kernel "sum" outs(%o : memref<32768xf32>) -> tensor<32768xf32> {
    loop.parallel (%j) to (32768) {
      %s = loop.reduce (%i) to (128) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<128x32768xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%j] : memref<32768xf32>
    }
  }
  func.return %y : tensor<32768xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// A loop that adds up is a scan of blocks.
// CHECK-LABEL: @running_sum
// CHECK: [[X:%\w+]] = tile.load %{{.*}} : memref<?xf32> -> vector<1024xf32>
// CHECK: [[S:%\w+]] = tile.scan add [[X]] dim 0 : vector<1024xf32>
// CHECK: [[T:%\w+]] = arith.addf %{{.*}}, [[S]] : vector<1024xf32>
// CHECK: tile.store [[T]]
// CHECK-NOT: tile.for
func.func @running_sum(%x: tensor<256x1024xf32>) -> tensor<256x1024xf32> {
  %y = loop.kernel "scan" outs(%o : memref<256x1024xf32>) -> tensor<256x1024xf32> {
    %z = arith.constant 0.0 : f32
    loop.parallel (%i) to (256) {
      %l = loop.for (%j) to (1024) carry (%c = %z : f32) {
        %v = loop.read %x[%i, %j] : tensor<256x1024xf32>
        %n = arith.addf %c, %v : f32
        loop.write %n, %o[%i, %j] : memref<256x1024xf32>
        loop.yield %n : f32
      }
    }
  }
  func.return %y : tensor<256x1024xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Points of which each reads less than four bytes go by twice as many.
// CHECK-LABEL: @narrow_points
// CHECK: tile.load {{.*}} -> vector<2048xbf16>
// CHECK: tile.load {{.*}} -> vector<1024xbf16>
func.func @narrow_points(%x: tensor<65536xbf16>, %y: tensor<65536xbf16>) -> (tensor<65536xbf16>, tensor<65536xbf16>) {
  %a = loop.kernel "neg" outs(%o : memref<65536xbf16>) -> tensor<65536xbf16> {
    loop.parallel (%i) to (65536) {
      %v = loop.read %x[%i] : tensor<65536xbf16>
      %n = arith.negf %v : bf16
      loop.write %n, %o[%i] : memref<65536xbf16>
    }
  }
  %b = loop.kernel "maximum" outs(%o : memref<65536xbf16>) -> tensor<65536xbf16> {
    loop.parallel (%i) to (65536) {
      %v = loop.read %x[%i] : tensor<65536xbf16>
      %w = loop.read %y[%i] : tensor<65536xbf16>
      %m = arith.maximumf %v, %w : bf16
      loop.write %m, %o[%i] : memref<65536xbf16>
    }
  }
  func.return %a, %b : tensor<65536xbf16>, tensor<65536xbf16>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Few warps add up columns, so that each thread adds up much before warps exchange anything.
// CHECK-LABEL: @columns
// CHECK: stepwell.num_warps = 4
// CHECK: tile.load {{.*}} -> vector<64x64xf32>
func.func @columns(%x: tensor<1024x16384xf32>) -> tensor<16384xf32> {
  %a = loop.kernel "sum" outs(%o : memref<16384xf32>) -> tensor<16384xf32> {
    loop.parallel (%j) to (16384) {
      %s = loop.reduce (%i) to (1024) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<1024x16384xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%j] : memref<16384xf32>
    }
  }
  func.return %a : tensor<16384xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Blocks of decreasing lengths hold a long row without idle lanes; all are loaded before the first is reduced.
// CHECK-LABEL: @long_row
// CHECK: stepwell.num_warps = 8 : i32, {{.*}}stepwell.registers = 128 : i32
// CHECK: [[A:%\w+]] = tile.load %{{.*}}[%{{\w+}} * 25088] strides (1) : memref<?xf32> -> vector<16384xf32>
// CHECK-NEXT: tile.load %{{.*}}[%{{\w+}} * 25088 + 16384] strides (1) : memref<?xf32> -> vector<8192xf32>
// CHECK-NEXT: tile.load %{{.*}}[%{{\w+}} * 25088 + 24576] strides (1) : memref<?xf32> -> vector<512xf32>
// CHECK: tile.reduce add [[A]] dim 0 : vector<16384xf32>
// CHECK-NOT: tile.load
// CHECK: tile.store %{{.*}}[%{{\w+}} * 25088] strides (1)
// CHECK: tile.store %{{.*}}[%{{\w+}} * 25088 + 16384] strides (1)
// CHECK: tile.store %{{.*}}[%{{\w+}} * 25088 + 24576] strides (1) : vector<512xf32>
func.func @long_row(%x: tensor<512x25088xf32>) -> tensor<512x25088xf32> {
  %y = loop.kernel "centre" outs(%o : memref<512x25088xf32>) -> tensor<512x25088xf32> {
    loop.parallel (%i) to (512) {
      %s = loop.reduce (%j) to (25088) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<512x25088xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (25088) {
        %v = loop.read %x[%i, %j] : tensor<512x25088xf32>
        %d = arith.subf %v, %s : f32
        loop.write %d, %o[%i, %j] : memref<512x25088xf32>
      }
    }
  }
  func.return %y : tensor<512x25088xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Where few lanes would be idle, they are: one block holds the end. What is read once takes one block.
// CHECK-LABEL: @ragged_row
// CHECK: tile.load %{{.*}} : memref<?xf32> -> vector<4096xf32>
// CHECK: tile.load %{{.*}}[%{{\w+}} * 5000 + 4096] strides (1) mask %{{\w+}} : memref<?xf32> -> vector<1024xf32>
// CHECK: tile.kernel @sum
// CHECK: tile.load %{{.*}} mask %{{\w+}} : memref<?xf32> -> vector<8192xf32>
func.func @ragged_row(%x: tensor<512x5000xf32>) -> (tensor<512xf32>, tensor<512xf32>) {
  %y = loop.kernel "squares" outs(%o : memref<512xf32>) -> tensor<512xf32> {
    loop.parallel (%i) to (512) {
      %s = loop.reduce (%j) to (5000) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<512x5000xf32>
        loop.yield %v : f32
      }
      %q = loop.reduce (%j) to (5000) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<512x5000xf32>
        %d = arith.subf %v, %s : f32
        %e = arith.mulf %d, %d : f32
        loop.yield %e : f32
      }
      loop.write %q, %o[%i] : memref<512xf32>
    }
  }
  %z = loop.kernel "sum" outs(%o : memref<512xf32>) -> tensor<512xf32> {
    loop.parallel (%i) to (512) {
      %s = loop.reduce (%j) to (5000) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<512x5000xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i] : memref<512xf32>
    }
  }
  func.return %y, %z : tensor<512xf32>, tensor<512xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Of narrow elements shorter rows are long, too.
// CHECK-LABEL: tile.kernel @narrow_row
// CHECK-SAME: stepwell.num_warps = 8 : i32, stepwell.num_stages = 3 : i32, stepwell.index_bits = 32 : i32} {
func.func @f(%x: tensor<512x12288xbf16>) -> tensor<512x12288xbf16> {
  %y = loop.kernel "narrow_row" outs(%o : memref<512x12288xbf16>) -> tensor<512x12288xbf16> {
    loop.parallel (%i) to (512) {
      %s = loop.reduce (%j) to (12288) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<512x12288xbf16>
        %w = arith.extf %v : bf16 to f32
        loop.yield %w : f32
      }
      loop.parallel (%j) to (12288) {
        %v = loop.read %x[%i, %j] : tensor<512x12288xbf16>
        %w = arith.extf %v : bf16 to f32
        %d = arith.subf %w, %s : f32
        %r = arith.truncf %d : f32 to bf16
        loop.write %r, %o[%i, %j] : memref<512x12288xbf16>
      }
    }
  }
  func.return %y : tensor<512x12288xbf16>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// As many threads as usual: each holds no more than 32 elements.
// CHECK-LABEL: tile.kernel @no_few_warps_when_elements_are_wide
// CHECK-NOT: stepwell.registers
// CHECK-SAME: stepwell.num_warps = 16 : i32
func.func @f(%x: tensor<512x16384xf32>) -> tensor<512x16384xf32> {
  %y = loop.kernel "no_few_warps_when_elements_are_wide" outs(%o : memref<512x16384xf32>) -> tensor<512x16384xf32> {
    loop.parallel (%i) to (512) {
      %s = loop.reduce (%j) to (16384) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<512x16384xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (16384) {
        %v = loop.read %x[%i, %j] : tensor<512x16384xf32>
        %d = arith.subf %v, %s : f32
        loop.write %d, %o[%i, %j] : memref<512x16384xf32>
      }
    }
  }
  func.return %y : tensor<512x16384xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Nor are there more of them in a row of 8192.
// CHECK-LABEL: tile.kernel @no_registers_asked_for_when_rows_are_short
// CHECK-NOT: stepwell.registers
// CHECK-SAME: stepwell.num_warps = 8 : i32
func.func @f(%x: tensor<512x8192xbf16>) -> tensor<512x8192xbf16> {
  %y = loop.kernel "no_registers_asked_for_when_rows_are_short" outs(%o : memref<512x8192xbf16>) -> tensor<512x8192xbf16> {
    loop.parallel (%i) to (512) {
      %s = loop.reduce (%j) to (8192) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<512x8192xbf16>
        %w = arith.extf %v : bf16 to f32
        loop.yield %w : f32
      }
      loop.parallel (%j) to (8192) {
        %v = loop.read %x[%i, %j] : tensor<512x8192xbf16>
        %w = arith.extf %v : bf16 to f32
        %d = arith.subf %w, %s : f32
        %r = arith.truncf %d : f32 to bf16
        loop.write %r, %o[%i, %j] : memref<512x8192xbf16>
      }
    }
  }
  func.return %y : tensor<512x8192xbf16>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// What is written and read at one quotient of an outer index is computed again at the place of the read.
// CHECK-LABEL: @pooled
// CHECK: tile.kernel @pooled_0
// CHECK: math.exp
// CHECK: tile.store
// CHECK: math.exp
// CHECK: tile.store
func.func @pooled(%x: tensor<64x8x16xf32>) -> (tensor<64x8x16xf32>, tensor<64x8x8xf32>) {
  %y, %z = loop.kernel "pooled" outs(%o : memref<64x8x16xf32>, %p : memref<64x8x8xf32>) -> tensor<64x8x16xf32>, tensor<64x8x8xf32> {
    loop.parallel (%i) to (512) {
      loop.parallel (%j) to (16) {
        %v = loop.read %x[%i floordiv 8, %i mod 8, %j] : tensor<64x8x16xf32>
        %e = math.exp %v : f32
        loop.write %e, %o[%i floordiv 8, %i mod 8, %j] : memref<64x8x16xf32>
      }
      loop.parallel (%k) to (8) {
        %s = loop.reduce (%l) to (2) [add] -> f32 {
          %v = loop.read %o[%i floordiv 8, %i mod 8, %k * 2 + %l] : memref<64x8x16xf32>
          loop.yield %v : f32
        }
        loop.write %s, %p[%i floordiv 8, %i mod 8, %k] : memref<64x8x8xf32>
      }
    }
  }
  func.return %y, %z : tensor<64x8x16xf32>, tensor<64x8x8xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Two rows of 8 KiB are what a program takes.
// CHECK-LABEL: tile.kernel @pairs_of_rows_0
// CHECK-SAME: grid (2048) attributes {stepwell.num_warps = 16 : i32
// CHECK: vector<2x2048xf32>
func.func @pairs_of_rows(%x: tensor<4096x2048xf32>) -> tensor<4096x2048xf32> {
  %y = loop.kernel "pairs_of_rows" outs(%o : memref<4096x2048xf32>) -> tensor<4096x2048xf32> {
    loop.parallel (%i) to (4096) {
      %m = loop.reduce (%j) to (2048) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4096x2048xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (2048) {
        %v = loop.read %x[%i, %j] : tensor<4096x2048xf32>
        %d = arith.subf %v, %m : f32
        loop.write %d, %o[%i, %j] : memref<4096x2048xf32>
      }
    }
  }
  func.return %y : tensor<4096x2048xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: tile.kernel @no_pairs_when_rows_of_two_tensors_are_held_0
// CHECK-SAME: grid (4096) attributes {stepwell.num_warps = 4 : i32
func.func @no_pairs_when_rows_of_two_tensors_are_held(%x: tensor<4096x2048xf32>, %z: tensor<4096x2048xf32>) -> tensor<4096x2048xf32> {
  %y = loop.kernel "no_pairs_when_rows_of_two_tensors_are_held" outs(%o : memref<4096x2048xf32>) -> tensor<4096x2048xf32> {
    loop.parallel (%i) to (4096) {
      %m = loop.reduce (%j) to (2048) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4096x2048xf32>
        %w = loop.read %z[%i, %j] : tensor<4096x2048xf32>
        %p = arith.mulf %v, %w : f32
        loop.yield %p : f32
      }
      loop.parallel (%j) to (2048) {
        %v = loop.read %x[%i, %j] : tensor<4096x2048xf32>
        %w = loop.read %z[%i, %j] : tensor<4096x2048xf32>
        %d = arith.subf %v, %m : f32
        %e = arith.mulf %d, %w : f32
        loop.write %e, %o[%i, %j] : memref<4096x2048xf32>
      }
    }
  }
  func.return %y : tensor<4096x2048xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// What is not reduced needs no registers for a whole row.
// CHECK-LABEL: tile.kernel @rows_without_a_sum_0
// CHECK-SAME: grid (4096) attributes {stepwell.num_warps = 8 : i32
// CHECK: tile.for {{.*}} = [0] to [32000] step 4096
func.func @rows_without_a_sum(%x: tensor<4096x32000xf32>, %s: tensor<4096xf32>) -> tensor<4096x32000xf32> {
  %y = loop.kernel "rows_without_a_sum" outs(%o : memref<4096x32000xf32>) -> tensor<4096x32000xf32> {
    loop.parallel (%i) to (4096) {
      %r = loop.read %s[%i] : tensor<4096xf32>
      %f = math.exp %r : f32
      loop.parallel (%j) to (32000) {
        %v = loop.read %x[%i, %j] : tensor<4096x32000xf32>
        %d = arith.mulf %v, %f : f32
        loop.write %d, %o[%i, %j] : memref<4096x32000xf32>
      }
    }
  }
  func.return %y : tensor<4096x32000xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// Short loops around little are written out; each thread has two points.
// CHECK-LABEL: tile.kernel @windows_0
// CHECK-SAME: grid (8192)
// CHECK-NOT: tile.for
// CHECK: tile.load %{{.*}}[%{{\w+}} * 1025 + %{{\w+}} * 2] strides (2)
// CHECK: tile.load %{{.*}}[%{{\w+}} * 1025 + %{{\w+}} * 2 + 1] strides (2)
// CHECK: tile.load %{{.*}}[%{{\w+}} * 1025 + %{{\w+}} * 2 + 2] strides (2)
// CHECK: tile.store %{{.*}} : vector<256xf32>
func.func @main(%x: tensor<4096x1025xf32>) -> tensor<4096x512xf32> {
  %y = loop.kernel "windows" outs(%o : memref<4096x512xf32>) -> tensor<4096x512xf32> {
    loop.parallel (%i, %j) to (4096, 512) {
      %s = loop.reduce (%k) to (3) [add] -> f32 {
        %v = loop.read %x[%i, %j * 2 + %k] : tensor<4096x1025xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %j] : memref<4096x512xf32>
    }
  }
  func.return %y : tensor<4096x512xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// Short rows that lie side by side run along an axis: neighbouring threads read neighbours.
// CHECK-LABEL: tile.kernel @rows_0
// CHECK: [[X:%\w+]] = tile.load %{{.*}} strides (8, 1) : memref<?xf32> -> vector<128x8xf32>
// CHECK-NEXT: tile.reduce add [[X]] dim 1 : vector<128x8xf32>
func.func @main(%x: tensor<4096x4096xf32>) -> tensor<4096x512xf32> {
  %y = loop.kernel "rows" outs(%o : memref<4096x512xf32>) -> tensor<4096x512xf32> {
    loop.parallel (%i, %j) to (4096, 512) {
      %s = loop.reduce (%k) to (8) [add] -> f32 {
        %v = loop.read %x[%i, %j * 8 + %k] : tensor<4096x4096xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %j] : memref<4096x512xf32>
    }
  }
  func.return %y : tensor<4096x512xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// Of three elements threads take rows.
// CHECK-LABEL: tile.kernel @few_0
// CHECK: tile.load %{{.*}} strides (3)
// CHECK-NOT: dim 1
func.func @main(%x: tensor<4096x1536xf32>) -> tensor<4096x512xf32> {
  %y = loop.kernel "few" outs(%o : memref<4096x512xf32>) -> tensor<4096x512xf32> {
    loop.parallel (%i, %j) to (4096, 512) {
      %s = loop.reduce (%k) to (3) [add] -> f32 {
        %v = loop.read %x[%i, %j * 3 + %k] : tensor<4096x1536xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %j] : memref<4096x512xf32>
    }
  }
  func.return %y : tensor<4096x512xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// CHECK-LABEL: tile.kernel @no_rows_that_overlap_0
// CHECK: tile.load %{{.*}} strides (4)
// CHECK-NOT: dim 1
func.func @main(%x: tensor<4096x2052xf32>) -> tensor<4096x512xf32> {
  %y = loop.kernel "no_rows_that_overlap" outs(%o : memref<4096x512xf32>) -> tensor<4096x512xf32> {
    loop.parallel (%i, %j) to (4096, 512) {
      %s = loop.reduce (%k) to (8) [add] -> f32 {
        %v = loop.read %x[%i, %j * 4 + %k] : tensor<4096x2052xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %j] : memref<4096x512xf32>
    }
  }
  func.return %y : tensor<4096x512xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// Points that read few places apart from each other's are as many as others.
// CHECK-LABEL: tile.kernel @together
// CHECK: tile.store %{{.*}} : vector<1024xf32>
func.func @main(%x: tensor<4096x6144xf32>) -> tensor<4096x2048xf32> {
  %y = loop.kernel "together" outs(%o : memref<4096x2048xf32>) -> tensor<4096x2048xf32> {
    loop.parallel (%i, %j) to (4096, 2048) {
      %v0 = loop.read %x[%i, %j * 3 + 0] : tensor<4096x6144xf32>
      %v1 = loop.read %x[%i, %j * 3 + 1] : tensor<4096x6144xf32>
      %s1 = arith.addf %v0, %v1 : f32
      %v2 = loop.read %x[%i, %j * 3 + 2] : tensor<4096x6144xf32>
      %s2 = arith.addf %s1, %v2 : f32
      loop.write %s2, %o[%i, %j] : memref<4096x2048xf32>
    }
  }
  func.return %y : tensor<4096x2048xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// With more, they are half as many, since registers are few,
// CHECK-LABEL: tile.kernel @apart
// CHECK: tile.store %{{.*}} : vector<512xf32>
func.func @main(%x: tensor<4096x6144xf32>) -> tensor<4096x2048xf32> {
  %y = loop.kernel "apart" outs(%o : memref<4096x2048xf32>) -> tensor<4096x2048xf32> {
    loop.parallel (%i, %j) to (4096, 2048) {
      %v0 = loop.read %x[%i, %j * 3 + 0] : tensor<4096x6144xf32>
      %v1 = loop.read %x[%i, %j * 3 + 1] : tensor<4096x6144xf32>
      %s1 = arith.addf %v0, %v1 : f32
      %v2 = loop.read %x[%i, %j * 3 + 2] : tensor<4096x6144xf32>
      %s2 = arith.addf %s1, %v2 : f32
      %v3 = loop.read %x[%i, %j * 3 + 3] : tensor<4096x6144xf32>
      %s3 = arith.addf %s2, %v3 : f32
      loop.write %s3, %o[%i, %j] : memref<4096x2048xf32>
    }
  }
  func.return %y : tensor<4096x2048xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// and then a quarter.
// CHECK-LABEL: tile.kernel @far_apart
// CHECK: tile.store %{{.*}} : vector<256xf32>
func.func @main(%x: tensor<4096x6144xf32>) -> tensor<4096x2048xf32> {
  %y = loop.kernel "far_apart" outs(%o : memref<4096x2048xf32>) -> tensor<4096x2048xf32> {
    loop.parallel (%i, %j) to (4096, 2048) {
      %v0 = loop.read %x[%i, %j * 3 + 0] : tensor<4096x6144xf32>
      %v1 = loop.read %x[%i, %j * 3 + 1] : tensor<4096x6144xf32>
      %s1 = arith.addf %v0, %v1 : f32
      %v2 = loop.read %x[%i, %j * 3 + 2] : tensor<4096x6144xf32>
      %s2 = arith.addf %s1, %v2 : f32
      %v3 = loop.read %x[%i, %j * 3 + 3] : tensor<4096x6144xf32>
      %s3 = arith.addf %s2, %v3 : f32
      %v4 = loop.read %x[%i, %j * 3 + 4] : tensor<4096x6144xf32>
      %s4 = arith.addf %s3, %v4 : f32
      %v5 = loop.read %x[%i, %j * 3 + 5] : tensor<4096x6144xf32>
      %s5 = arith.addf %s4, %v5 : f32
      %v6 = loop.read %x[%i, %j * 3 + 6] : tensor<4096x6144xf32>
      %s6 = arith.addf %s5, %v6 : f32
      %v7 = loop.read %x[%i, %j * 3 + 7] : tensor<4096x6144xf32>
      %s7 = arith.addf %s6, %v7 : f32
      loop.write %s7, %o[%i, %j] : memref<4096x2048xf32>
    }
  }
  func.return %y : tensor<4096x2048xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// What indices say is compared in 32 bits, where these hold it; a value that the program uses stays wide.
// CHECK-LABEL: tile.kernel @places
// CHECK: [[N:%\w+]] = arith.addi %{{.*}} : vector<1024xi32>
// CHECK: [[W:%\w+]] = tile.convert extsi [[N]] : vector<1024xi32> -> vector<1024xi64>
// CHECK: tile.store [[W]]
func.func @main() -> tensor<4096x1024xi64> {
  %y = loop.kernel "places" outs(%o : memref<4096x1024xi64>) -> tensor<4096x1024xi64> {
    loop.parallel (%i, %j) to (4096, 1024) {
      %n = loop.index [%i * 7 + %j - 1] : i64
      loop.write %n, %o[%i, %j] : memref<4096x1024xi64>
    }
  }
  func.return %y : tensor<4096x1024xi64>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// CHECK-LABEL: tile.kernel @no_places_beyond_32_bits
// CHECK-NOT: extsi
// CHECK: tile.store %{{.*}} : vector<1024xi64>
func.func @main() -> tensor<4096x1024xi64> {
  %y = loop.kernel "no_places_beyond_32_bits" outs(%o : memref<4096x1024xi64>) -> tensor<4096x1024xi64> {
    loop.parallel (%i, %j) to (4096, 1024) {
      %n = loop.index [%i * 1000000 + %j] : i64
      loop.write %n, %o[%i, %j] : memref<4096x1024xi64>
    }
  }
  func.return %y : tensor<4096x1024xi64>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// A short loop around much stays one.
// CHECK-LABEL: tile.kernel @much
// CHECK: tile.for
func.func @main(%x: tensor<4096x1039xf32>) -> tensor<4096x1024xf32> {
  %y = loop.kernel "much" outs(%o : memref<4096x1024xf32>) -> tensor<4096x1024xf32> {
    loop.parallel (%i, %j) to (4096, 1024) {
      %s = loop.reduce (%k) to (15) [add] -> f32 {
        %v = loop.read %x[%i, %j + %k] : tensor<4096x1039xf32>
        %e0 = math.exp %v : f32
        %e1 = math.exp %e0 : f32
        %e2 = math.exp %e1 : f32
        %e3 = math.exp %e2 : f32
        %e4 = math.exp %e3 : f32
        %e5 = math.exp %e4 : f32
        %e6 = math.exp %e5 : f32
        %e7 = math.exp %e6 : f32
        %e8 = math.exp %e7 : f32
        %e9 = math.exp %e8 : f32
        %e10 = math.exp %e9 : f32
        %e11 = math.exp %e10 : f32
        %e12 = math.exp %e11 : f32
        %e13 = math.exp %e12 : f32
        %e14 = math.exp %e13 : f32
        %e15 = math.exp %e14 : f32
        %e16 = math.exp %e15 : f32
        %e17 = math.exp %e16 : f32
        %e18 = math.exp %e17 : f32
        %e19 = math.exp %e18 : f32
        %e20 = math.exp %e19 : f32
        %e21 = math.exp %e20 : f32
        %e22 = math.exp %e21 : f32
        %e23 = math.exp %e22 : f32
        %e24 = math.exp %e23 : f32
        %e25 = math.exp %e24 : f32
        %e26 = math.exp %e25 : f32
        %e27 = math.exp %e26 : f32
        %e28 = math.exp %e27 : f32
        %e29 = math.exp %e28 : f32
        %e30 = math.exp %e29 : f32
        %e31 = math.exp %e30 : f32
        %e32 = math.exp %e31 : f32
        %e33 = math.exp %e32 : f32
        %e34 = math.exp %e33 : f32
        %e35 = math.exp %e34 : f32
        %e36 = math.exp %e35 : f32
        %e37 = math.exp %e36 : f32
        %e38 = math.exp %e37 : f32
        %e39 = math.exp %e38 : f32
        loop.yield %e39 : f32
      }
      loop.write %s, %o[%i, %j] : memref<4096x1024xf32>
    }
  }
  func.return %y : tensor<4096x1024xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// Nor is a loop around loops written out, which would repeat those.
// CHECK-LABEL: tile.kernel @nested
// CHECK: tile.for {{.*}} to [3]
// CHECK-NOT: tile.for
func.func @main(%x: tensor<4096x1039xf32>) -> tensor<4096x1024xf32> {
  %y = loop.kernel "nested" outs(%o : memref<4096x1024xf32>) -> tensor<4096x1024xf32> {
    loop.parallel (%i, %j) to (4096, 1024) {
      %s = loop.reduce (%k) to (3) [add] -> f32 {
        %m = loop.reduce (%l) to (4) [max] -> f32 {
          %v = loop.read %x[%i, %j + %k + %l * 2] : tensor<4096x1039xf32>
          loop.yield %v : f32
        }
        loop.yield %m : f32
      }
      loop.write %s, %o[%i, %j] : memref<4096x1024xf32>
    }
  }
  func.return %y : tensor<4096x1024xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Few lanes beside each other are no match for many that are apart.
// CHECK-LABEL: @few_neighbours
// CHECK: tile.for {{.*}} to [8] step 1 carry
// CHECK: tile.load %{{.*}} strides (8) {{.*}} -> vector<1024xf32>
func.func @few_neighbours(%x: tensor<64x8x900xf32, #stepwell.layout<(64, 8, 900), (7200, 1, 8)>>) -> tensor<64xf32> {
  %y = loop.kernel "few_neighbours" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %s = loop.reduce (%c, %k) to (8, 900) [add] -> f32 {
        %v = loop.read %x[%i, %c, %k] : tensor<64x8x900xf32, #stepwell.layout<(64, 8, 900), (7200, 1, 8)>>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i] : memref<64xf32>
    }
  }
  func.return %y : tensor<64xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Of as many, those run that are beside each other.
// CHECK-LABEL: @many_neighbours
// CHECK: tile.for {{.*}} to [900] step 1 carry
// CHECK: tile.load %{{.*}} strides ({{.*}}1) : memref<?xf32> -> vector<{{.*}}256xf32>
func.func @many_neighbours(%x: tensor<64x256x900xf32, #stepwell.layout<(64, 256, 900), (230400, 1, 256)>>) -> tensor<64xf32> {
  %y = loop.kernel "many_neighbours" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %s = loop.reduce (%c, %k) to (256, 900) [add] -> f32 {
        %v = loop.read %x[%i, %c, %k] : tensor<64x256x900xf32, #stepwell.layout<(64, 256, 900), (230400, 1, 256)>>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i] : memref<64xf32>
    }
  }
  func.return %y : tensor<64xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Warps are a power of two, also where blocks of several lengths hold what a program keeps.
// CHECK-LABEL: @rows_along_two_axes
// CHECK: stepwell.num_warps = {{1|2|4|8|16|32}} :
func.func @rows_along_two_axes(%x: tensor<64x256x3136xf32, #stepwell.layout<(64, 256, 3136), (802816, 1, 256)>>, %w: tensor<64x256x3136xf32, #stepwell.layout<(64, 256, 3136), (802816, 1, 256)>>) -> tensor<64x256x3136xf32> {
  %y = loop.kernel "rows_along_two_axes" outs(%o : memref<64x256x3136xf32>) -> tensor<64x256x3136xf32> {
    loop.parallel (%i, %g) to (64, 32) {
      %m = loop.reduce (%c) to (8) [max] -> f32 {
        %s = loop.reduce (%k) to (3136) [add] -> f32 {
          %a = loop.read %x[%i, %g * 8 + %c, %k] : tensor<64x256x3136xf32, #stepwell.layout<(64, 256, 3136), (802816, 1, 256)>>
          %b = loop.read %w[%i, %g * 8 + %c, %k] : tensor<64x256x3136xf32, #stepwell.layout<(64, 256, 3136), (802816, 1, 256)>>
          %v = arith.mulf %a, %b : f32
          loop.yield %v : f32
        }
        loop.yield %s : f32
      }
      loop.parallel (%c) to (8) {
        loop.parallel (%k) to (3136) {
          %a = loop.read %x[%i, %g * 8 + %c, %k] : tensor<64x256x3136xf32, #stepwell.layout<(64, 256, 3136), (802816, 1, 256)>>
          %b = loop.read %w[%i, %g * 8 + %c, %k] : tensor<64x256x3136xf32, #stepwell.layout<(64, 256, 3136), (802816, 1, 256)>>
          %v = arith.mulf %a, %b : f32
          %d = arith.subf %v, %m : f32
          loop.write %d, %o[%i, %g * 8 + %c, %k] : memref<64x256x3136xf32>
        }
      }
    }
  }
  func.return %y : tensor<64x256x3136xf32>
}
}
