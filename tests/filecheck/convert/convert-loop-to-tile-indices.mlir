// RUN: xdsl-opt %s -p convert-loop-to-tile --split-input-file | filecheck %s

// Indices that programs of a graph seldom have: products of others, carried ones, of nests of one step.

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @products_of_indices
func.func @products_of_indices(%x: tensor<64000xf32>) -> tensor<64x1000xf32> {
  %y = loop.kernel "copy" outs(%o : memref<64x1000xf32>) -> tensor<64x1000xf32> {
    loop.parallel (%i, %j) to (64, 1000) {
      %v = loop.read %x[%i * %j] : tensor<64000xf32>
      loop.write %v, %o[%i, %j] : memref<64x1000xf32>
    }
  }
  func.return %y : tensor<64x1000xf32>
}
// An index that is multiplied by that of the lanes makes a block of offsets.
// CHECK: tile.kernel @copy_0
// CHECK: [[I:%\w+]] = tile.index [%{{\w+}}] : i64
// CHECK: [[BLOCK:%\w+]] = tile.broadcast [[I]]
// CHECK-NEXT: [[AT:%\w+]] = arith.muli [[BLOCK]]
// CHECK-NEXT: tile.gather %{{\w+}}[[[AT]]]
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_prefetch_when_rows_lie_products_apart
func.func @no_prefetch_when_rows_lie_products_apart(%x: tensor<64000xf32>) -> tensor<64x64x1000xf32> {
  %y = loop.kernel "copy" outs(%o : memref<64x64x1000xf32>) -> tensor<64x64x1000xf32> {
    loop.parallel (%i, %k, %j) to (64, 64, 1000) {
      %v = loop.read %x[%i * %k + %j] : tensor<64000xf32>
      loop.write %v, %o[%i, %k, %j] : memref<64x64x1000xf32>
    }
  }
  func.return %y : tensor<64x64x1000xf32>
}
// How far the next row lies depends on an index: only what is written is fetched ahead.
// CHECK: tile.kernel @copy_0
// CHECK: tile.load [[X:%\w+]][
// CHECK-NOT: tile.prefetch [[X]]
// CHECK: tile.prefetch {{.*}} write
// CHECK-NOT: tile.prefetch
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_prefetch_when_a_nest_has_one_step
func.func @no_prefetch_when_a_nest_has_one_step(%x: tensor<100000x1xf32>) -> tensor<100000x1xf32> {
  %y = loop.kernel "copy" outs(%o : memref<100000x1xf32>) -> tensor<100000x1xf32> {
    loop.for (%i) to (100000) carry () {
      loop.parallel (%j) to (1) {
        %v = loop.read %x[%i, %j] : tensor<100000x1xf32>
        loop.write %v, %o[%i, %j] : memref<100000x1xf32>
      }
      loop.yield :
    }
  }
  func.return %y : tensor<100000x1xf32>
}
// A nest of one step has no lanes, and nothing to fetch.
// CHECK: tile.kernel @copy_0
// CHECK: tile.load {{.*}} strides () : memref<?xf32> -> f32
// CHECK-NOT: tile.prefetch
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @the_index_of_lanes_as_a_number
func.func @the_index_of_lanes_as_a_number(%x: tensor<1000xi64>) -> tensor<1000xi64> {
  %y = loop.kernel "add" outs(%o : memref<1000xi64>) -> tensor<1000xi64> {
    loop.parallel (%i) to (1000) {
      %n = arith.index_cast %i : index to i64
      %v = loop.read %x[%i] : tensor<1000xi64>
      %w = arith.addi %v, %n : i64
      loop.write %w, %o[%i] : memref<1000xi64>
    }
  }
  func.return %y : tensor<1000xi64>
}
// CHECK: tile.kernel @add_0
// CHECK: [[I:%\w+]] = arith.index_cast
// CHECK: [[B:%\w+]] = tile.broadcast [[I]]
// CHECK-NEXT: [[N:%\w+]] = arith.addi [[B]]
// CHECK: arith.addi %{{\w+}}, [[N]] : vector<32xi64>
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_order_when_indices_are_not_the_steps
func.func @no_order_when_indices_are_not_the_steps(%x: tensor<1000xf32>) -> tensor<i64> {
  %y = loop.kernel "argmax" outs(%o : memref<i64>) -> tensor<i64> {
    %k, %at = loop.reduce (%i) to (1000) [argmax] -> f32, i64 {
      %v = loop.read %x[%i] : tensor<1000xf32>
      %n = loop.index [%i * 2] : i64
      loop.yield %v, %n : f32, i64
    }
    loop.write %at, %o[] : memref<i64>
  }
  func.return %y : tensor<i64>
}
// Of equal keys the one of the least index stays, for which no index is less than the neutral one.
// CHECK: tile.kernel @argmax_0
// CHECK: arith.constant 9223372036854775807 : i64
// CHECK: tile.compare oeq
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_chunks_of_rows_when_lanes_would_collide
func.func @no_chunks_of_rows_when_lanes_would_collide(%x: tensor<1000x512xf32>) -> tensor<1000xf32> {
  %y = loop.kernel "sums" outs(%o : memref<1000xf32>) -> tensor<1000xf32> {
    %l = loop.local (1000) : memref<1000xf32>
    %z = arith.constant 0.0 : f32
    loop.parallel (%i) to (1000) {
      loop.write %z, %l[%i] : memref<1000xf32>
    }
    loop.parallel (%i, %j) to (1000, 512) {
      %v = loop.read %x[%i, %j] : tensor<1000x512xf32>
      loop.write %v, %l[%i] add : memref<1000xf32>
    }
    loop.parallel (%i) to (1000) {
      %v = loop.read %l[%i] : memref<1000xf32>
      loop.write %v, %o[%i] : memref<1000xf32>
    }
  }
  func.return %y : tensor<1000xf32>
}
// The lanes of a row would add to one place of what is collected: one program runs all.
// CHECK: tile.kernel @sums_0({{.*}}) grid (1)
// CHECK: tile.scatter {{.*}} add
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_prefetch_when_the_row_is_carried
func.func @no_prefetch_when_the_row_is_carried(%x: tensor<64x8x1000xf32>) -> tensor<64x1000xf32> {
  %y = loop.kernel "walk" outs(%o : memref<64x1000xf32>) -> tensor<64x1000xf32> {
    loop.parallel (%i, %j) to (64, 1000) {
      %z = arith.constant 0.0 : f32
      %at, %sum = loop.for (%k) to (8) carry (%c = %i : index, %s = %z : f32) {
        %v = loop.read %x[%c, %k, %j] : tensor<64x8x1000xf32>
        %t = arith.addf %s, %v : f32
        %n = loop.index [(%c + 1) mod 64] : index
        loop.yield %n, %t : index, f32
      }
      loop.write %sum, %o[%i, %j] : memref<64x1000xf32>
    }
  }
  func.return %y : tensor<64x1000xf32>
}
// Nothing is fetched ahead of places that are blocks.
// CHECK: tile.kernel @walk_0
// CHECK: tile.gather
// CHECK-NOT: tile.prefetch
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @an_index_that_is_carried
func.func @an_index_that_is_carried(%x: tensor<64x64x1000xf32>) -> tensor<64x1000xf32> {
  %y = loop.kernel "walk" outs(%o : memref<64x1000xf32>) -> tensor<64x1000xf32> {
    loop.parallel (%i, %j) to (64, 1000) {
      %z = arith.constant 0.0 : f32
      %at, %sum = loop.for (%k) to (64) carry (%c = %i : index, %s = %z : f32) {
        %v = loop.read %x[%c, %k, %j] : tensor<64x64x1000xf32>
        %t = arith.addf %s, %v : f32
        %n = loop.index [(%c + 1) mod 64] : index
        loop.yield %n, %t : index, f32
      }
      loop.write %sum, %o[%i, %j] : memref<64x1000xf32>
    }
  }
  func.return %y : tensor<64x1000xf32>
}
// An index that differs from lane to lane is a block of i64.
// CHECK: tile.kernel @walk_0
// CHECK: tile.for {{.*}} carry ([[AT:%\w+]] = %{{\w+}} : vector<64xi64>
// CHECK-NEXT: arith.constant 64000
// CHECK-NEXT: tile.broadcast
// CHECK-NEXT: arith.muli [[AT]]
// CHECK-NOT: tile.prefetch
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @the_index_of_lanes_in_computations
func.func @the_index_of_lanes_in_computations(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %y = loop.kernel "take" outs(%o : memref<1000xf32>) -> tensor<1000xf32> {
    loop.parallel (%i) to (1000) {
      %c = arith.constant 500 : index
      %n = arith.remui %i, %c : index
      %low = arith.cmpi ult, %i, %c : index
      %at = arith.select %low, %n, %i : index
      %v = loop.read %x[%at] : tensor<1000xf32>
      loop.write %v, %o[%i] : memref<1000xf32>
    }
  }
  func.return %y : tensor<1000xf32>
}
// CHECK: tile.kernel @take_0
// CHECK: tile.for [[BASE:%\w+]], [[M:%\w+]] = [0] to [1000]
// CHECK: [[N:%\w+]] = arith.remui {{.*}} : vector<64xi64>
// CHECK: [[LOW:%\w+]] = tile.compare ult {{.*}} : vector<64xi64>
// CHECK: [[AT:%\w+]] = tile.select [[LOW]], [[N]], %{{\w+}} : vector<64xi1>, vector<64xi64>
// CHECK: tile.gather %{{\w+}}[[[AT]]] mask [[M]]
}
