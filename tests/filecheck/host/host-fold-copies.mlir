// RUN: xdsl-opt -p host-fold-copies %s | filecheck %s

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

// CHECK-LABEL: func.func @the_kernel_writes_the_argument
func.func @the_kernel_writes_the_argument(%x: !host.buffer<f32, (8), (1)>) {
  // CHECK-NEXT: host.run @add_one ins(%x : {{.*}}) outs(%x
  // CHECK-NEXT: host.return ()
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @other_arguments_are_kept_apart
func.func @other_arguments_are_kept_apart(%x: !host.buffer<f32, (8), (1)>, %y: !host.buffer<f32, (8), (1)>) {
  // CHECK-NEXT: %[[Y:.*]] = host.separate (%y : {{.*}}) from (%x
  // CHECK-NEXT: host.run @shift ins(%[[Y]] : {{.*}}) outs(%x
  // CHECK-NEXT: host.return ()
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%y : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @a_scatter_needs_no_copy_of_its_target
func.func @a_scatter_needs_no_copy_of_its_target(%x: !host.buffer<f32, (8), (1)>) {
  // CHECK-NEXT: host.run @scatter ins() outs(%x
  // CHECK-NEXT: host.return ()
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.copy %x, %a : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.run @scatter ins() outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @later_reads_see_the_argument
func.func @later_reads_see_the_argument(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK-NEXT: host.run @add_one ins(%x : {{.*}}) outs(%x
  // CHECK-NEXT: %b = host.alloc
  // CHECK-NEXT: host.run @shift ins(%x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @the_argument_may_be_returned
func.func @the_argument_may_be_returned(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK-NEXT: host.run @add_one ins(%x : {{.*}}) outs(%x
  // CHECK-NEXT: host.return (%x)
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return (%x) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_fold_when_the_old_value_is_read_later
func.func @no_fold_when_the_old_value_is_read_later(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.copy %a, %x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%x : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_fold_when_other_elements_are_read
func.func @no_fold_when_other_elements_are_read(%x: !host.buffer<f32, (8), (1)>) {
  // CHECK: host.copy %a, %x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_fold_when_the_new_value_is_returned
func.func @no_fold_when_the_new_value_is_returned(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.copy %a, %x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return (%a) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_fold_when_the_layouts_differ
func.func @no_fold_when_the_layouts_differ(%x: !host.buffer<f32, (8), (2)>) {
  // CHECK: host.copy %a, %x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @fill ins() outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (2)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_fold_when_an_extern_made_the_value
func.func @no_fold_when_an_extern_made_the_value(%x: !host.buffer<f32, (8), (1)>) {
  // CHECK: host.copy %a, %x
  %a = host.extern "aten.sin.default"(%x) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @a_copy_of_another_argument_goes_straight
func.func @a_copy_of_another_argument_goes_straight(%x: !host.buffer<f32, (8), (1)>, %y: !host.buffer<f32, (8), (1)>) {
  // CHECK-NEXT: %[[Y:.*]] = host.separate (%y : {{.*}}) from (%x
  // CHECK-NEXT: host.copy %[[Y]], %x
  // CHECK-NEXT: host.run @scatter ins() outs(%x
  // CHECK-NEXT: host.return ()
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.copy %y, %a : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.run @scatter ins() outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_fold_when_the_source_is_an_argument
func.func @no_fold_when_the_source_is_an_argument(%x: !host.buffer<f32, (8), (1)>, %y: !host.buffer<f32, (8), (1)>, %z: !host.buffer<f32, (8), (1)>) {
  // CHECK-NEXT: host.run @shift ins(%z : {{.*}}) outs(%y
  // CHECK-NEXT: host.copy %y, %x
  host.run @shift ins(%z : !host.buffer<f32, (8), (1)>) outs(%y : !host.buffer<f32, (8), (1)>)
  host.copy %y, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_fold_when_a_view_of_the_target_is_copied_first
func.func @no_fold_when_a_view_of_the_target_is_copied_first(%x: !host.buffer<f32, (8), (1)>) {
  // CHECK: host.copy %a, %x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  %v = host.view %x[(0)] : !host.buffer<f32, (8), (1)> -> !host.buffer<f32, (8), (1)>
  host.copy %v, %a : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.run @scatter ins() outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_fold_when_a_call_writes_the_source
func.func @no_fold_when_a_call_writes_the_source(%x: !host.buffer<f32, (8), (1)>, %y: !host.buffer<f32, (8), (1)>) {
  // CHECK: host.copy %a, %x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.extern "aten.mv.out"(%y, %y), {out = %a} : (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) -> ()
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_fold_when_the_source_is_read_first
func.func @no_fold_when_the_source_is_read_first(%x: !host.buffer<f32, (8), (1)>, %y: !host.buffer<f32, (8), (1)>) {
  // CHECK: host.copy %a, %x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_fold_when_the_source_is_read_where_it_is_written
func.func @no_fold_when_the_source_is_read_where_it_is_written(%x: !host.buffer<f32, (8), (1)>) {
  // CHECK: host.copy %a, %x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%a : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_fold_when_a_view_of_the_target_is_read
func.func @no_fold_when_a_view_of_the_target_is_read(%x: !host.buffer<f32, (8), (1)>) {
  // CHECK: host.copy %a, %x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  %v = host.view %x[(0)] : !host.buffer<f32, (8), (1)> -> !host.buffer<f32, (8), (1)>
  host.run @add_one ins(%v : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_fold_when_the_kernel_is_unknown
func.func @no_fold_when_the_kernel_is_unknown(%x: !host.buffer<f32, (8), (1)>) {
  // CHECK: host.copy %a, %x
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @unknown ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_separation_when_an_argument_is_read_before_or_returned
func.func @no_separation_when_an_argument_is_read_before_or_returned(%x: !host.buffer<f32, (8), (1)>, %y: !host.buffer<f32, (8), (1)>, %z: !host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) {
  // CHECK-NEXT: %b = host.alloc
  // CHECK-NEXT: host.run @shift ins(%y : {{.*}}) outs(%b
  // CHECK-NEXT: host.run @shift ins(%b : {{.*}}) outs(%x
  // CHECK-NEXT: host.return (%z, %b)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%y : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%b : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return (%z, %b) : (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @an_argument_that_is_read_is_returned_as_it_is
func.func @an_argument_that_is_read_is_returned_as_it_is(%x: !host.buffer<f32, (8), (1)>, %y: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK-NEXT: %[[Y:.*]] = host.separate (%y : {{.*}}) from (%x
  // CHECK-NEXT: host.run @shift ins(%[[Y]] : {{.*}}) outs(%x
  // CHECK-NEXT: host.return (%y)
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @shift ins(%y : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.return (%y) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func private @declared
func.func private @declared(!host.buffer<f32, (8), (1)>) -> ()
