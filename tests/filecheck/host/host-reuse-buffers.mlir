// RUN: xdsl-opt -p host-reuse-buffers %s | filecheck %s

tile.kernel @add_one(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %one = arith.constant dense<1.0> : vector<8xf32>
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  %w = arith.addf %v, %one : vector<8xf32>
  tile.store %w, %o[0] strides (1) : vector<8xf32>, memref<?xf32>
}

tile.kernel @shift(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %v = tile.load %x[1] strides (1) : memref<?xf32> -> vector<8xf32>
  tile.store %v, %o[0] strides (1) : vector<8xf32>, memref<?xf32>
}

tile.kernel @read_after_write(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  tile.store %v, %o[0] strides (1) : vector<8xf32>, memref<?xf32>
  %w = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
}

tile.kernel @read_in_a_loop(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %z = arith.constant dense<0.0> : vector<8xf32>
  %sum = tile.for %j = [0] to [2] step 1 carry (%acc = %z : vector<8xf32>) {
    %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
    %next = arith.addf %acc, %v : vector<8xf32>
    tile.yield %next : vector<8xf32>
  }
  tile.store %sum, %o[0] strides (1) : vector<8xf32>, memref<?xf32>
}

tile.kernel @copies_in_two_warps(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) attributes {stepwell.num_warps = 2 : i32} {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<32xf32>
  tile.store %v, %o[0] strides (1) : vector<32xf32>, memref<?xf32>
}

// CHECK-LABEL: func.func @no_reuse_when_threads_hold_copies
func.func @no_reuse_when_threads_hold_copies(%x: !host.buffer<f32, (32), (1)>) -> !host.buffer<f32, (32), (1)> {
  // CHECK: %a = host.alloc
  // CHECK: %b = host.alloc
  // CHECK: host.run @copies_in_two_warps ins(%a : {{.*}}) outs(%b
  %a = host.alloc : !host.buffer<f32, (32), (1)>
  host.run @copies_in_two_warps ins(%x : !host.buffer<f32, (32), (1)>) outs(%a : !host.buffer<f32, (32), (1)>)
  %b = host.alloc : !host.buffer<f32, (32), (1)>
  host.run @copies_in_two_warps ins(%a : !host.buffer<f32, (32), (1)>) outs(%b : !host.buffer<f32, (32), (1)>)
  host.return (%b) : (!host.buffer<f32, (32), (1)>) -> ()
}

// CHECK-LABEL: func.func @a_chain_works_in_one_buffer
func.func @a_chain_works_in_one_buffer(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: %a = host.alloc
  // CHECK-NOT: host.alloc
  // CHECK: host.run @shift ins(%x : {{.*}}) outs(%a
  // CHECK: host.run @add_one ins(%a : {{.*}}) outs(%a
  // CHECK: host.run @add_one ins(%a : {{.*}}) outs(%a
  // CHECK: host.return (%a)
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  %c = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%b : !host.buffer<f32, (8), (1)>) outs(%c : !host.buffer<f32, (8), (1)>)
  host.return (%c) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @a_product_gives_its_buffer
func.func @a_product_gives_its_buffer(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.run @add_one ins(%a : {{.*}}) outs(%a
  // CHECK-NEXT: host.return (%a)
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.extern "aten.mv.out"(%x, %x), {out = %a} : (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) -> ()
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_reuse_when_the_input_lives_on
func.func @no_reuse_when_the_input_lives_on() -> (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) {
  // CHECK: host.run @add_one ins(%a : {{.*}}) outs(%b
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @fill ins() outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.return (%a, %b) : (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_reuse_when_an_extern_may_keep_a_view
func.func @no_reuse_when_an_extern_may_keep_a_view() -> (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) {
  // CHECK: host.run @add_one ins(%a : {{.*}}) outs(%b
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @fill ins() outs(%a : !host.buffer<f32, (8), (1)>)
  %v = host.extern "aten.alias.default"(%a) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.return (%v, %b) : (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_reuse_when_the_input_is_the_callers
func.func @no_reuse_when_the_input_is_the_callers(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.run @add_one ins(%x : {{.*}}) outs(%b
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%x : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_reuse_when_the_layouts_differ
func.func @no_reuse_when_the_layouts_differ() -> !host.buffer<f32, (4, 2), (2, 1)> {
  // CHECK: host.run @add_one ins(%a : {{.*}}) outs(%b
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @fill ins() outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (4, 2), (2, 1)>
  host.run @add_one ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (4, 2), (2, 1)>)
  host.return (%b) : (!host.buffer<f32, (4, 2), (2, 1)>) -> ()
}

// CHECK-LABEL: func.func @no_reuse_when_the_result_holds_something
func.func @no_reuse_when_the_result_holds_something(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.run @add_one ins(%a : {{.*}}) outs(%b
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @fill ins() outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.copy %x, %b : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_reuse_when_other_elements_are_read
func.func @no_reuse_when_other_elements_are_read() -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.run @shift ins(%a : {{.*}}) outs(%b
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @fill ins() outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_reuse_when_read_after_the_write
func.func @no_reuse_when_read_after_the_write() -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.run @read_after_write ins(%a : {{.*}}) outs(%b
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @fill ins() outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @read_after_write ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_reuse_when_read_in_other_steps
func.func @no_reuse_when_read_in_other_steps() -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.run @read_in_a_loop ins(%a : {{.*}}) outs(%b
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @fill ins() outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @read_in_a_loop ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_reuse_when_the_kernel_is_unknown
func.func @no_reuse_when_the_kernel_is_unknown() -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.run @unknown ins(%a : {{.*}}) outs(%b
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @fill ins() outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @unknown ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_reuse_when_the_result_is_an_argument
func.func @no_reuse_when_the_result_is_an_argument(%x: !host.buffer<f32, (8), (1)>, %y: !host.buffer<f32, (8), (1)>) {
  // CHECK: host.run @add_one ins(%a : {{.*}}) outs(%y
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.run @add_one ins(%a : !host.buffer<f32, (8), (1)>) outs(%y : !host.buffer<f32, (8), (1)>)
  host.return () : () -> ()
}

tile.kernel @add_one_and_keep(%x : memref<?xf32>, %o : memref<?xf32>, %p : memref<?xf32>) grid (1) {
  %one = arith.constant dense<1.0> : vector<8xf32>
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  %w = arith.addf %v, %one : vector<8xf32>
  tile.store %w, %o[0] strides (1) : vector<8xf32>, memref<?xf32>
  tile.store %w, %p[0] strides (1) : vector<8xf32>, memref<?xf32>
}

// CHECK-LABEL: func.func @no_reuse_when_the_input_is_written_as_well
func.func @no_reuse_when_the_input_is_written_as_well(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: %b = host.alloc
  // CHECK: host.run @add_one_and_keep ins(%a : {{.*}}) outs(%b : {{.*}}, %a
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one_and_keep ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>, %a : !host.buffer<f32, (8), (1)>)
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}
