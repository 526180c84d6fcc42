// RUN: xdsl-opt -p host-batch-runs %s | filecheck %s

builtin.module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {

// CHECK-LABEL: func.func @equal_kernels_become_one
// CHECK: host.stretch {
// CHECK-NEXT: host.run @double_batch_0 ins(%x : !host.buffer<f32, (128), (1)>, %y : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>, %b : !host.buffer<f32, (128), (1)>)
// CHECK-NEXT: }
func.func @equal_kernels_become_one(%x: !host.buffer<f32, (128), (1)>, %y: !host.buffer<f32, (128), (1)>) -> !host.buffer<f32, (128), (1)> {
  %a = host.alloc : !host.buffer<f32, (128), (1)>
  %b = host.alloc : !host.buffer<f32, (128), (1)>
  host.stretch {
    host.run @double ins(%x : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @double ins(%y : !host.buffer<f32, (128), (1)>) outs(%b : !host.buffer<f32, (128), (1)>)
  }
  host.return (%a) : (!host.buffer<f32, (128), (1)>) -> ()
}

// Two chains in turn: each link is batched with that of the other chain, over the run between them.
// CHECK-LABEL: func.func @runs_move_before_those_they_do_not_wait_for
// CHECK: host.stretch {
// CHECK-NEXT: host.run @double_batch_0 ins(%x : {{.*}}, %y : {{.*}}) outs(%a : {{.*}}, %b :
// CHECK-NEXT: host.run @negate_batch_1 ins(%a : {{.*}}, %b : {{.*}}) outs(%a : {{.*}}, %b :
// CHECK-NEXT: }
func.func @runs_move_before_those_they_do_not_wait_for(%x: !host.buffer<f32, (128), (1)>, %y: !host.buffer<f32, (128), (1)>) -> !host.buffer<f32, (128), (1)> {
  %a = host.alloc : !host.buffer<f32, (128), (1)>
  %b = host.alloc : !host.buffer<f32, (128), (1)>
  host.stretch {
    host.run @double ins(%x : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @negate ins(%a : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @double ins(%y : !host.buffer<f32, (128), (1)>) outs(%b : !host.buffer<f32, (128), (1)>)
    host.run @negate ins(%b : !host.buffer<f32, (128), (1)>) outs(%b : !host.buffer<f32, (128), (1)>)
  }
  host.return (%a) : (!host.buffer<f32, (128), (1)>) -> ()
}

// CHECK-LABEL: func.func @a_buffer_of_all_is_passed_once
// CHECK: host.run @scale_batch_2 ins(%x : !host.buffer<f32, (128), (1)>, %y : !host.buffer<f32, (128), (1)>, %s : !host.buffer<f32, (), ()>) outs(%a : !host.buffer<f32, (128), (1)>, %b : !host.buffer<f32, (128), (1)>)
func.func @a_buffer_of_all_is_passed_once(%x: !host.buffer<f32, (128), (1)>, %y: !host.buffer<f32, (128), (1)>, %s: !host.buffer<f32, (), ()>) -> !host.buffer<f32, (128), (1)> {
  %a = host.alloc : !host.buffer<f32, (128), (1)>
  %b = host.alloc : !host.buffer<f32, (128), (1)>
  host.stretch {
    host.run @scale ins(%x : !host.buffer<f32, (128), (1)>, %s : !host.buffer<f32, (), ()>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @scale ins(%y : !host.buffer<f32, (128), (1)>, %s : !host.buffer<f32, (), ()>) outs(%b : !host.buffer<f32, (128), (1)>)
  }
  host.return (%a) : (!host.buffer<f32, (128), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_batch_when_one_needs_the_other
// CHECK: host.run @double ins(%x :
// CHECK-NEXT: host.run @double ins(%a :
func.func @no_batch_when_one_needs_the_other(%x: !host.buffer<f32, (128), (1)>) -> !host.buffer<f32, (128), (1)> {
  %a = host.alloc : !host.buffer<f32, (128), (1)>
  %b = host.alloc : !host.buffer<f32, (128), (1)>
  host.stretch {
    host.run @double ins(%x : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @double ins(%a : !host.buffer<f32, (128), (1)>) outs(%b : !host.buffer<f32, (128), (1)>)
  }
  host.return (%b) : (!host.buffer<f32, (128), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_batch_when_one_overwrites_what_the_other_reads
// CHECK: host.run @double ins(%x :
// CHECK-NEXT: host.run @double ins(%y :
func.func @no_batch_when_one_overwrites_what_the_other_reads(%x: !host.buffer<f32, (128), (1)>, %y: !host.buffer<f32, (128), (1)>) -> !host.buffer<f32, (128), (1)> {
  %a = host.alloc : !host.buffer<f32, (128), (1)>
  host.stretch {
    host.run @double ins(%x : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @double ins(%y : !host.buffer<f32, (128), (1)>) outs(%x : !host.buffer<f32, (128), (1)>)
  }
  host.return (%a) : (!host.buffer<f32, (128), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_batch_when_both_write_the_same
// CHECK: host.run @double ins(%x :
// CHECK-NEXT: host.run @double ins(%y :
func.func @no_batch_when_both_write_the_same(%x: !host.buffer<f32, (128), (1)>, %y: !host.buffer<f32, (128), (1)>) -> !host.buffer<f32, (128), (1)> {
  %a = host.alloc : !host.buffer<f32, (128), (1)>
  host.stretch {
    host.run @double ins(%x : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @double ins(%y : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
  }
  host.return (%a) : (!host.buffer<f32, (128), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_batch_when_slots_overlap
// CHECK: host.run @double ins(%x : {{.*}} outs(%a :
// CHECK-NEXT: host.run @negate ins(%a :
// CHECK-NEXT: host.run @double ins(%y : {{.*}} outs(%b :
func.func @no_batch_when_slots_overlap(%x: !host.buffer<f32, (128), (1)>, %y: !host.buffer<f32, (128), (1)>) -> !host.buffer<f32, (128), (1)> {
  %w = host.workspace (1024) : !host.workspace
  %a = host.slot %w[(0)] : !host.buffer<f32, (128), (1)>
  %b = host.slot %w[(256)] : !host.buffer<f32, (128), (1)>
  host.stretch {
    host.run @double ins(%x : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @negate ins(%a : !host.buffer<f32, (128), (1)>) outs(%x : !host.buffer<f32, (128), (1)>)
    host.run @double ins(%y : !host.buffer<f32, (128), (1)>) outs(%b : !host.buffer<f32, (128), (1)>)
  }
  host.return (%x) : (!host.buffer<f32, (128), (1)>) -> ()
}

// CHECK-LABEL: func.func @slots_beside_each_other
// CHECK: host.run @double_batch_0
func.func @slots_beside_each_other(%x: !host.buffer<f32, (128), (1)>, %y: !host.buffer<f32, (128), (1)>) -> !host.buffer<f32, (128), (1)> {
  %w = host.workspace (1024) : !host.workspace
  %a = host.slot %w[(0)] : !host.buffer<f32, (128), (1)>
  %b = host.slot %w[(512)] : !host.buffer<f32, (128), (1)>
  host.stretch {
    host.run @double ins(%x : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @double ins(%y : !host.buffer<f32, (128), (1)>) outs(%b : !host.buffer<f32, (128), (1)>)
  }
  host.return (%x) : (!host.buffer<f32, (128), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_batch_when_sizes_differ
// CHECK: host.run @ramp {{.*}} symbols (s0)
// CHECK-NEXT: host.run @ramp {{.*}} symbols (s0 + 1)
func.func @no_batch_when_sizes_differ(%s0: index, %x: !host.buffer<f32, (s0), (1)>, %y: !host.buffer<f32, (s0), (1)>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 1, ?>]} {
  host.stretch {
    host.run @ramp ins() outs(%x : !host.buffer<f32, (s0), (1)>) symbols (s0)
    host.run @ramp ins() outs(%y : !host.buffer<f32, (s0), (1)>) symbols (s0 + 1)
  }
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_batch_when_programs_ask_how_many_they_are
// CHECK: host.run @counting
// CHECK-NEXT: host.run @counting
func.func @no_batch_when_programs_ask_how_many_they_are(%x: !host.buffer<i64, (8), (1)>, %y: !host.buffer<i64, (8), (1)>) {
  host.stretch {
    host.run @counting ins() outs(%x : !host.buffer<i64, (8), (1)>)
    host.run @counting ins() outs(%y : !host.buffer<i64, (8), (1)>)
  }
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_batch_when_slots_may_overlap
// CHECK: host.run @double ins(%x : {{.*}} outs(%a :
// CHECK-NEXT: host.run @negate ins(%a :
// CHECK-NEXT: host.run @double ins(%y : {{.*}} outs(%b :
// CHECK-NEXT: host.run @negate ins(%b :
// CHECK-NEXT: host.run @double ins(%y : {{.*}} outs(%c :
func.func @no_batch_when_slots_may_overlap(%s0: index, %x: !host.buffer<f32, (128), (1)>, %y: !host.buffer<f32, (128), (1)>) -> !host.buffer<f32, (128), (1)> attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, 64>]} {
  %w = host.workspace (1024) : !host.workspace
  %a = host.slot %w[(0)] : !host.buffer<f32, (128), (1)>
  %b = host.slot %w[(s0 * 4)] : !host.buffer<f32, (128 - s0), (1)>
  %c = host.slot %w[(512)] : !host.buffer<f32, (128), (1)>
  host.stretch {
    host.run @double ins(%x : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @negate ins(%a : !host.buffer<f32, (128), (1)>) outs(%x : !host.buffer<f32, (128), (1)>)
    host.run @double ins(%y : !host.buffer<f32, (128), (1)>) outs(%b : !host.buffer<f32, (128 - s0), (1)>)
    host.run @negate ins(%b : !host.buffer<f32, (128 - s0), (1)>) outs(%y : !host.buffer<f32, (128), (1)>)
    host.run @double ins(%y : !host.buffer<f32, (128), (1)>) outs(%c : !host.buffer<f32, (128), (1)>)
  }
  host.return (%x) : (!host.buffer<f32, (128), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_batch_when_all_programs_finish_together
// CHECK: host.run @finishing
// CHECK-NEXT: host.run @finishing
func.func @no_batch_when_all_programs_finish_together(%x: !host.buffer<f32, (128), (1)>, %y: !host.buffer<f32, (128), (1)>, %a: !host.buffer<f32, (128), (1)>, %b: !host.buffer<f32, (128), (1)>) {
  host.stretch {
    host.run @finishing ins(%x : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @finishing ins(%y : !host.buffer<f32, (128), (1)>) outs(%b : !host.buffer<f32, (128), (1)>)
  }
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_batch_when_the_kernel_is_unknown
// CHECK: host.run @unknown
// CHECK-NEXT: host.run @unknown
func.func @no_batch_when_the_kernel_is_unknown(%x: !host.buffer<f32, (128), (1)>, %y: !host.buffer<f32, (128), (1)>, %a: !host.buffer<f32, (128), (1)>, %b: !host.buffer<f32, (128), (1)>) {
  host.stretch {
    host.run @unknown ins(%x : !host.buffer<f32, (128), (1)>) outs(%a : !host.buffer<f32, (128), (1)>)
    host.run @unknown ins(%y : !host.buffer<f32, (128), (1)>) outs(%b : !host.buffer<f32, (128), (1)>)
  }
  host.return () : () -> ()
}

tile.kernel @finishing(%x: memref<?xf32>, %y: memref<?xf32>) grid (2) {
  %p = tile.program_id : index
  %v = tile.load %x[%p * 64] strides (1) : memref<?xf32> -> vector<64xf32>
  tile.store %v, %y[%p * 64] strides (1) : vector<64xf32>, memref<?xf32>
} finish {
^bb0(%xf: memref<?xf32>, %yf: memref<?xf32>):
  %v = tile.load %yf[0] strides () : memref<?xf32> -> f32
  tile.store %v, %yf[1] strides () : f32, memref<?xf32>
}
tile.kernel @double(%x: memref<?xf32>, %y: memref<?xf32>) grid (2) attributes {stepwell.num_warps = 1 : i32} {
  %p = tile.program_id : index
  %v = tile.load %x[%p * 64] strides (1) : memref<?xf32> -> vector<64xf32>
  %w = arith.addf %v, %v : vector<64xf32>
  tile.store %w, %y[%p * 64] strides (1) : vector<64xf32>, memref<?xf32>
}
tile.kernel @negate(%x: memref<?xf32>, %y: memref<?xf32>) grid (2) {
  %p = tile.program_id : index
  %v = tile.load %x[%p * 64] strides (1) : memref<?xf32> -> vector<64xf32>
  %w = arith.negf %v : vector<64xf32>
  tile.store %w, %y[%p * 64] strides (1) : vector<64xf32>, memref<?xf32>
}
tile.kernel @scale(%x: memref<?xf32>, %s: memref<?xf32>, %y: memref<?xf32>) grid (2) {
  %p = tile.program_id : index
  %v = tile.load %x[%p * 64] strides (1) : memref<?xf32> -> vector<64xf32>
  %f = tile.load %s[0] strides (0) : memref<?xf32> -> vector<64xf32>
  %w = arith.mulf %v, %f : vector<64xf32>
  tile.store %w, %y[%p * 64] strides (1) : vector<64xf32>, memref<?xf32>
}
tile.kernel @ramp(%y: memref<?xf32>, %n: index) grid (s0) attributes {stepwell.symbols = [#stepwell.symbol<s0, 1, ?>]} {
  %p = tile.program_id : index
  %v = arith.constant 1.000000e+00 : f32
  tile.store %v, %y[%p] strides () : f32, memref<?xf32>
}
tile.kernel @counting(%y: memref<?xi64>) grid (8) {
  %p = tile.program_id : index
  %n = tile.grid_size : index
  %v = arith.index_cast %n : index to i64
  tile.store %v, %y[%p] strides () : i64, memref<?xi64>
}

// A program knows by its number whose it is; kernels that nothing runs any more are gone.
// CHECK-NOT: tile.kernel @scale(
// CHECK: tile.kernel @double_batch_0(%{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>) grid (4) attributes {stepwell.num_warps = 1 : i32} {
// CHECK-NEXT: [[P:%[0-9a-z_]+]] = tile.program_id
// CHECK-NEXT: [[K:%[0-9a-z_]+]] = tile.index {{\[}}[[P]] floordiv 2] : index
// CHECK-NEXT: [[OWN:%[0-9a-z_]+]] = tile.index {{\[}}[[P]] mod 2] : index
// CHECK-NEXT: [[X:%[0-9a-z_]+]] = tile.choose [[K]] from (
// CHECK-NEXT: [[Y:%[0-9a-z_]+]] = tile.choose [[K]] from (
// CHECK-NEXT: tile.load [[X]]{{\[}}[[OWN]] * 64]
}
