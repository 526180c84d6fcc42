// RUN: xdsl-opt %s -p convert-loop-to-tile --split-input-file | filecheck %s

// Kernels get a schedule: which index runs along lanes, which points are one program, where partial results lie.

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @pointwise
// CHECK: host.launch @add_0 ins(%x : tensor<1000000xf32>)
func.func @pointwise(%x: tensor<1000000xf32>) -> tensor<1000000xf32> {
  %y = loop.kernel "add" outs(%o : memref<1000000xf32>) -> tensor<1000000xf32> {
    loop.parallel (%i) to (1000000) {
      %v = loop.read %x[%i] : tensor<1000000xf32>
      %w = arith.addf %v, %v : f32
      loop.write %w, %o[%i] : memref<1000000xf32>
    }
  }
  func.return %y : tensor<1000000xf32>
}
// Programs take chunks of whole blocks; the last one is masked.
// CHECK: tile.kernel @add_0
// CHECK: tile.for [[I:%\w+]], [[M:%\w+]] = [%{{.*}} * [[C:\d+]]] to [min(%{{.*}} * [[C]] + [[C]], 1000000)] step 64
// CHECK-NEXT: tile.load {{.*}}[[[I]]] strides (1) mask [[M]] : memref<?xf32> -> vector<64xf32>
// CHECK-NEXT: arith.addf
// CHECK-NEXT: tile.store {{.*}}[[[I]]] strides (1) mask [[M]]
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @column_sums
func.func @column_sums(%x: tensor<4096x4096xf32>) -> tensor<4096xf32> {
  %y = loop.kernel "sums" outs(%o : memref<4096xf32>) -> tensor<4096xf32> {
    loop.parallel (%j) to (4096) {
      %s = loop.reduce (%i) to (4096) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4096x4096xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%j] : memref<4096xf32>
    }
  }
  func.return %y : tensor<4096xf32>
}
// Long columns are added up row by row, a few rows at a time, in partial results; so memory is read in order.
// CHECK: tile.kernel @sums_0({{.*}}) grid (32)
// CHECK: tile.for {{.*}} step 16 {
// CHECK-NEXT: tile.for [[J:%\w+]], {{.*}} = [0] to [4096] step 64 {
// CHECK: tile.for [[I:%\w+]] = {{.*}} step 1 carry
// CHECK-NEXT: tile.load %{{.*}}[[[I]] * 4096 + [[J]]]
// CHECK: tile.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: tile.store
// CHECK: } finish {
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @fetch_next_rows
func.func @fetch_next_rows(%x: tensor<4096x2000xf32>, %w: tensor<2000xf32>) -> tensor<4096x2000xf32> {
  %y = loop.kernel "norm" outs(%o : memref<4096x2000xf32>) -> tensor<4096x2000xf32> {
    loop.parallel (%i) to (4096) {
      %m = loop.reduce (%j) to (2000) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4096x2000xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (2000) {
        %v = loop.read %x[%i, %j] : tensor<4096x2000xf32>
        %a = loop.read %w[%j] : tensor<2000xf32>
        %d = arith.subf %v, %m : f32
        %e = math.exp %d : f32
        %f = arith.mulf %e, %a : f32
        loop.write %f, %o[%i, %j] : memref<4096x2000xf32>
      }
    }
  }
  func.return %y : tensor<4096x2000xf32>
}
// The nest with the most to do fetches the next row, for reading and for writing; the weights stay in the cache.
// CHECK: tile.reduce max
// CHECK: tile.for [[J:%\w+]], [[M:%\w+]] = [0] to [2000]
// CHECK: tile.store
// CHECK-NEXT: tile.prefetch %{{.*}}[%{{.*}} * 2000 + [[J]] + 2000] lanes 32 mask [[M]] : memref<?xf32>
// CHECK-NEXT: tile.prefetch %{{.*}}[%{{.*}} * 2000 + [[J]] + 2000] lanes 32 mask [[M]] write : memref<?xf32>
// CHECK-NEXT: tile.yield
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @transposed
func.func @transposed(%x: tensor<2048x2048xf32>, %y: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %z = loop.kernel "add" outs(%o : memref<2048x2048xf32>) -> tensor<2048x2048xf32> {
    loop.parallel (%i, %j) to (2048, 2048) {
      %v = loop.read %x[%i, %j] : tensor<2048x2048xf32>
      %w = loop.read %y[%j, %i] : tensor<2048x2048xf32>
      %s = arith.addf %v, %w : f32
      loop.write %s, %o[%i, %j] : memref<2048x2048xf32>
    }
  }
  func.return %z : tensor<2048x2048xf32>
}
// Squares of the transposed tensor go through registers to scratch, where the body reads them along its lanes.
// The other tensors are fetched 4 KiB ahead: 8 rows of a tile of 128 columns.
// CHECK: tile.kernel @add_0
// CHECK: [[TILE:%\w+]] = tile.scratch
// CHECK: [[SQUARE:%\w+]] = tile.load %1[{{.*}}] strides (1, 2048) : memref<?xf32> -> vector<16x16xf32>
// CHECK-NEXT: tile.store [[SQUARE]], [[TILE]]
// CHECK: tile.prefetch %1
// CHECK: [[V:%\w+]] = tile.load %0[[[ROW:.*]]] strides (1)
// CHECK-NEXT: [[W:%\w+]] = tile.load [[TILE]]{{.*}} strides (1)
// CHECK-NEXT: arith.addf [[V]], [[W]]
// CHECK: tile.prefetch %0[[[ROW]] + 16384] lanes 64
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_registers_for_squares_when_a_size_may_be_small
func.func @no_registers_for_squares_when_a_size_may_be_small(%y: tensor<?x2048xf32, #stepwell.layout<(s0, 2048), (2048, 1)>>, %s0: index) -> tensor<2048x?xf32, #stepwell.layout<(2048, s0), (s0, 1)>> attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?, hint 2048>]} {
  %z = loop.kernel "neg" outs(%o : memref<2048x?xf32>) -> tensor<2048x?xf32, #stepwell.layout<(2048, s0), (s0, 1)>> {
    loop.parallel (%i, %j) to (2048, s0) {
      %w = loop.read %y[%j, %i] : tensor<?x2048xf32, #stepwell.layout<(s0, 2048), (2048, 1)>>
      %s = arith.negf %w : f32
      loop.write %s, %o[%i, %j] : memref<2048x?xf32>
    }
  }
  func.return %z : tensor<2048x?xf32, #stepwell.layout<(2048, s0), (s0, 1)>>
}
// CHECK: tile.kernel @neg_0
// CHECK-NOT: tile.scratch
// CHECK: tile.load {{.*}} strides (2048)
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_prefetch_when_cached
func.func @no_prefetch_when_cached(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %y = loop.kernel "add" outs(%o : memref<1000xf32>) -> tensor<1000xf32> {
    loop.parallel (%i) to (1000) {
      %v = loop.read %x[%i] : tensor<1000xf32>
      %w = arith.addf %v, %v : f32
      loop.write %w, %o[%i] : memref<1000xf32>
    }
  }
  func.return %y : tensor<1000xf32>
}
// CHECK: tile.kernel
// CHECK-NOT: tile.prefetch
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @rows
func.func @rows(%x: tensor<4096x2000xf32>) -> tensor<4096x2000xf32> {
  %y = loop.kernel "center" outs(%o : memref<4096x2000xf32>) -> tensor<4096x2000xf32> {
    loop.parallel (%i) to (4096) {
      %m = loop.reduce (%j) to (2000) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4096x2000xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (2000) {
        %v = loop.read %x[%i, %j] : tensor<4096x2000xf32>
        %w = arith.subf %v, %m : f32
        loop.write %w, %o[%i, %j] : memref<4096x2000xf32>
      }
    }
  }
  func.return %y : tensor<4096x2000xf32>
}
// The innermost nests run along lanes; lanes past the end contribute the identity.
// CHECK: tile.kernel @center_0
// CHECK: [[MAX:%\w+]] = tile.for {{%\w+}}, [[MASK:%\w+]] = [0] to [2000] step 64 carry
// CHECK: tile.select [[MASK]]
// CHECK: arith.maximumf
// CHECK: tile.reduce max [[MAX]] dim 0
// CHECK: tile.for {{.*}} = [0] to [2000] step 64 {
// CHECK: arith.subf
// CHECK-NEXT: tile.store
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @split
// CHECK: %{{.*}}, %{{.*}} = host.launch @total_0
func.func @split(%x: tensor<8000000xf32>) -> tensor<f32> {
  %y = loop.kernel "total" outs(%o : memref<f32>) -> tensor<f32> {
    %s = loop.reduce (%i) to (8000000) [add] -> f32 {
      %v = loop.read %x[%i] : tensor<8000000xf32>
      loop.yield %v : f32
    }
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}
// Each program stores one partial sum; the finish region adds them up in a fixed order.
// CHECK: tile.kernel @total_0({{.*}}) grid (32)
// CHECK: [[P:%\w+]] = tile.reduce add
// CHECK-NEXT: tile.store [[P]]
// CHECK: } finish {
// CHECK: tile.grid_size
// CHECK: tile.for
// CHECK: tile.store
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @runs_within_lanes
func.func @runs_within_lanes(%x: tensor<21x400xf32, #stepwell.layout<(21, 400), (1, 21)>>) -> tensor<f32> {
  %y = loop.kernel "total" outs(%o : memref<f32>) -> tensor<f32> {
    %s = loop.reduce (%i, %j) to (21, 400) [add] -> f32 {
      %v = loop.read %x[%i, %j] : tensor<21x400xf32, #stepwell.layout<(21, 400), (1, 21)>>
      loop.yield %v : f32
    }
    loop.write %s, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}
// Lanes run along the outer loop, runs of additions along the inner one: lanes beyond the end add 0 all the same.
// CHECK: tile.kernel @total_0
// CHECK: tile.for {{%\w+}}, [[M:%\w+]] = [0] to [21]
// CHECK: tile.for {{%\w+}} = [{{%\w+}}] to
// CHECK: [[V:%\w+]] = tile.load
// CHECK-NEXT: [[W:%\w+]] = tile.select [[M]], [[V]]
// CHECK-NEXT: arith.addf {{%\w+}}, [[W]]
}

// -----

module {
// CHECK-LABEL: @no_parallel_programs_when_indices_may_collide
func.func @no_parallel_programs_when_indices_may_collide(%g: tensor<4096x64xf32>, %ids: tensor<4096xi64>, %z: tensor<100x64xf32>) -> tensor<100x64xf32> {
  %y = loop.kernel "scatter" outs(%o : memref<100x64xf32> = %z) -> tensor<100x64xf32> {
    loop.parallel (%i, %j) to (4096, 64) {
      %id = loop.read %ids[%i] : tensor<4096xi64>
      %row = arith.index_cast %id : i64 to index
      %v = loop.read %g[%i, %j] : tensor<4096x64xf32>
      loop.write %v, %o[%row, %j] add : memref<100x64xf32>
    }
  }
  func.return %y : tensor<100x64xf32>
}
// Rows may be equal, so one program runs all of them, in order.
// CHECK: tile.kernel @scatter_0
// CHECK: tile.for [[ROW:%\w+]] = [0] to [4096] step 1 {
// CHECK-NEXT: tile.for {{.*}} step
// CHECK: tile.store {{.*}} add
}

// -----

module {
// CHECK-LABEL: @equal_kernels_share_code
// CHECK: host.launch @neg_0
// CHECK-NEXT: host.launch @neg_0
func.func @equal_kernels_share_code(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = loop.kernel "neg" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %v = loop.read %x[%i] : tensor<64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<64xf32>
    }
  }
  %b = loop.kernel "neg" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %v = loop.read %y[%i] : tensor<64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<64xf32>
    }
  }
  func.return %a, %b : tensor<64xf32>, tensor<64xf32>
}
// CHECK: tile.kernel @neg_0
// CHECK-NOT: tile.kernel
}

// -----

// A local of 128 KiB lies in the scratch of a program; a larger one in memory, a copy for each program.

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @local_in_scratch
func.func @local_in_scratch(%x: tensor<4x32768xf32>) -> tensor<4x32768xf32> {
  %y = loop.kernel "twice" outs(%o : memref<4x32768xf32>) -> tensor<4x32768xf32> {
    loop.parallel (%i) to (4) {
      %row = loop.local (32768) : memref<32768xf32>
      loop.parallel (%j) to (32768) {
        %v = loop.read %x[%i, %j] : tensor<4x32768xf32>
        loop.write %v, %row[%j] : memref<32768xf32>
      }
      loop.parallel (%j) to (32768) {
        %v = loop.read %row[-%j + 32767] : memref<32768xf32>
        loop.write %v, %o[%i, %j] : memref<4x32768xf32>
      }
    }
  }
  func.return %y : tensor<4x32768xf32>
}
// CHECK: tile.kernel @twice_0({{%\w+}}: memref<?xf32>, {{%\w+}}: memref<?xf32>) grid
// CHECK: tile.scratch 32768
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_scratch_when_a_local_is_large
func.func @no_scratch_when_a_local_is_large(%x: tensor<4x32769xf32>) -> tensor<4x32769xf32> {
  %y = loop.kernel "twice" outs(%o : memref<4x32769xf32>) -> tensor<4x32769xf32> {
    loop.parallel (%i) to (4) {
      %row = loop.local (32769) : memref<32769xf32>
      loop.parallel (%j) to (32769) {
        %v = loop.read %x[%i, %j] : tensor<4x32769xf32>
        loop.write %v, %row[%j] : memref<32769xf32>
      }
      loop.parallel (%j) to (32769) {
        %v = loop.read %row[-%j + 32768] : memref<32769xf32>
        loop.write %v, %o[%i, %j] : memref<4x32769xf32>
      }
    }
  }
  func.return %y : tensor<4x32769xf32>
}
// CHECK: tile.kernel @twice_0({{%\w+}}: memref<?xf32>, {{%\w+}}: memref<?xf32>, [[ROW:%\w+]]: memref<?xf32>) grid
// CHECK-NOT: tile.scratch
// CHECK: tile.store {{.*}}, [[ROW]][
}

// -----

// Nothing is added to an index that has no uniform part.

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @index_of_lanes_alone
func.func @index_of_lanes_alone(%x: tensor<50000xf32>) -> tensor<100000xf32> {
  %y = loop.kernel "repeat" outs(%o : memref<100000xf32>) -> tensor<100000xf32> {
    loop.parallel (%i) to (100000) {
      %v = loop.read %x[%i floordiv 2] : tensor<50000xf32>
      loop.write %v, %o[%i] : memref<100000xf32>
    }
  }
  func.return %y : tensor<100000xf32>
}
// CHECK: tile.kernel @repeat_0
// CHECK: [[HALF:%\w+]] = arith.floordivsi
// CHECK-NEXT: tile.gather {{%\w+}}[[[HALF]]]
}

// -----

module {
// A symbol of which nothing is said may be any size.
// CHECK-LABEL: @a_symbol_without_range
func.func @a_symbol_without_range(%s0: index, %x: tensor<?xf32, #stepwell.layout<(s0), (1)>>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>> {
  %y = loop.kernel "neg" outs(%o : memref<?xf32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>> {
    loop.parallel (%i) to (s0) {
      %v = loop.read %x[%i] : tensor<?xf32, #stepwell.layout<(s0), (1)>>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<?xf32>
    }
  }
  func.return %y : tensor<?xf32, #stepwell.layout<(s0), (1)>>
}
// CHECK: tile.kernel @neg_0({{.*}}) {{.*}} attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]}
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// Lanes run along an outer nest where memory does; what inner loops do not change is there before them.
// CHECK-LABEL: @channels_beside_each_other
// CHECK: tile.kernel @channels_beside_each_other_0
// CHECK: [[MAX:%\w+]] = tile.for [[C:%\w+]], [[MASK:%\w+]] = [0] to [64] step 64 carry
// CHECK: tile.for {{.*}} step 1 carry
// CHECK: tile.load %{{.*}} + [[C]] + {{.*}} strides (1) mask [[MASK]] : memref<?xf32> -> vector<64xf32>
// CHECK: tile.select [[MASK]]
// CHECK: arith.maximumf
// CHECK: tile.reduce max [[MAX]] dim 0 : vector<64xf32>
// CHECK: tile.for {{.*}} = [0] to [64] step 64
// CHECK: tile.gather
// CHECK: tile.for {{.*}} = [0] to [900] step 1
// CHECK-NOT: tile.gather
// CHECK: tile.store
func.func @channels_beside_each_other(%x: tensor<8x64x900xf32, #stepwell.layout<(8, 64, 900), (57600, 1, 64)>>, %w: tensor<8x8xf32>) -> (tensor<8x64x900xf32, #stepwell.layout<(8, 64, 900), (57600, 1, 64)>>, tensor<8xf32>) {
  %y, %z = loop.kernel "channels_beside_each_other" outs(%o : memref<8x64x900xf32>, %p : memref<8xf32>) -> tensor<8x64x900xf32, #stepwell.layout<(8, 64, 900), (57600, 1, 64)>>, tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %m = loop.reduce (%c) to (64) [max] -> f32 {
        %s = loop.reduce (%k) to (900) [add] -> f32 {
          %v = loop.read %x[%i, %c, %k] : tensor<8x64x900xf32, #stepwell.layout<(8, 64, 900), (57600, 1, 64)>>
          loop.yield %v : f32
        }
        loop.yield %s : f32
      }
      loop.write %m, %p[%i] : memref<8xf32>
      loop.parallel (%c, %k) to (64, 900) {
        %v = loop.read %x[%i, %c, %k] : tensor<8x64x900xf32, #stepwell.layout<(8, 64, 900), (57600, 1, 64)>>
        %g = loop.read %w[%i, %c floordiv 8] : tensor<8x8xf32>
        %a = arith.mulf %v, %g : f32
        loop.write %a, %o[%i, %c, %k] : memref<8x64x900xf32>
      }
    }
  }
  func.return %y, %z : tensor<8x64x900xf32, #stepwell.layout<(8, 64, 900), (57600, 1, 64)>>, tensor<8xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"wide", vector_bits = 512, registers = 32, cores = 2, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// Elsewhere they run along the innermost ones.
// CHECK-LABEL: @channels_apart
// CHECK: tile.kernel @channels_apart_0
// CHECK: tile.for {{%\w+}} = [0] to [64] step 1 carry
// CHECK: tile.for {{%\w+}}, {{%\w+}} = [0] to [900] step 64 carry
// CHECK: tile.for {{%\w+}} = [0] to [64] step 1
// CHECK: tile.for {{%\w+}}, {{%\w+}} = [0] to [900] step 64
// CHECK: tile.load %{{.*}} strides () : memref<?xf32> -> f32
func.func @channels_apart(%x: tensor<8x64x900xf32>, %w: tensor<8x8xf32>) -> (tensor<8x64x900xf32>, tensor<8xf32>) {
  %y, %z = loop.kernel "channels_apart" outs(%o : memref<8x64x900xf32>, %p : memref<8xf32>) -> tensor<8x64x900xf32>, tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %m = loop.reduce (%c) to (64) [max] -> f32 {
        %s = loop.reduce (%k) to (900) [add] -> f32 {
          %v = loop.read %x[%i, %c, %k] : tensor<8x64x900xf32>
          loop.yield %v : f32
        }
        loop.yield %s : f32
      }
      loop.write %m, %p[%i] : memref<8xf32>
      loop.parallel (%c, %k) to (64, 900) {
        %v = loop.read %x[%i, %c, %k] : tensor<8x64x900xf32>
        %g = loop.read %w[%i, %c floordiv 8] : tensor<8x8xf32>
        %a = arith.mulf %v, %g : f32
        loop.write %a, %o[%i, %c, %k] : memref<8x64x900xf32>
      }
    }
  }
  func.return %y, %z : tensor<8x64x900xf32>, tensor<8xf32>
}
}
