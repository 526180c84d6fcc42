// RUN: xdsl-opt -p host-bufferize %s | filecheck %s

// CHECK-LABEL: func.func @kernels_write_into_new_buffers
func.func @kernels_write_into_new_buffers(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %a = host.alloc : !host.buffer<f32, (8), (1)>
  // CHECK-NEXT: host.run @k ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  // CHECK-NEXT: host.return (%a) : (!host.buffer<f32, (8), (1)>) -> ()
  %a = host.launch @k ins(%x : tensor<8xf32>) outs(tensor<8xf32>)
  func.return %a : tensor<8xf32>
}

// CHECK-LABEL: func.func @sizes_are_kept_as_expressions
func.func @sizes_are_kept_as_expressions(%s0: index, %x: tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>) -> (tensor<?xf32, #stepwell.layout<(s0 * 2), (1)>>, index) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
  // CHECK: %a = host.alloc : !host.buffer<f32, (s0 * 2), (1)>
  // CHECK-NEXT: host.run @k {{.*}} symbols (s0 * 64)
  // CHECK-NEXT: host.return (%a, (s0))
  %a = host.launch @k ins(%x : tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>) outs(tensor<?xf32, #stepwell.layout<(s0 * 2), (1)>>) symbols (s0 * 64)
  func.return %a, %s0 : tensor<?xf32, #stepwell.layout<(s0 * 2), (1)>>, index
}

// CHECK-LABEL: func.func @a_dying_initial_value_gives_its_buffer
func.func @a_dying_initial_value_gives_its_buffer(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %a = host.alloc
  // CHECK-NEXT: host.run @fill ins() outs(%a : !host.buffer<f32, (8), (1)>)
  // CHECK-NEXT: host.run @k ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  // CHECK-NEXT: host.return (%a)
  %a = host.launch @fill ins() outs(tensor<8xf32>)
  %b = host.launch @k ins(%x : tensor<8xf32>) outs(%a : tensor<8xf32> -> tensor<8xf32>)
  func.return %b : tensor<8xf32>
}

// CHECK-LABEL: func.func @no_overwrite_when_the_initial_value_lives_on
func.func @no_overwrite_when_the_initial_value_lives_on(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: host.run @fill ins() outs(%a
  // CHECK-NEXT: %b = host.alloc
  // CHECK-NEXT: host.copy %a, %b
  // CHECK-NEXT: host.run @k {{.*}} outs(%b
  %a = host.launch @fill ins() outs(tensor<8xf32>)
  %b = host.launch @k ins(%x : tensor<8xf32>) outs(%a : tensor<8xf32> -> tensor<8xf32>)
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @no_overwrite_when_a_view_lives_on
func.func @no_overwrite_when_a_view_lives_on(%x: tensor<8xf32>) -> (tensor<4x2xf32>, tensor<8xf32>) {
  // CHECK: host.copy
  %a = host.launch @fill ins() outs(tensor<8xf32>)
  %v = host.view %a[(0)] : tensor<8xf32> -> tensor<4x2xf32>
  %b = host.launch @k ins(%x : tensor<8xf32>) outs(%a : tensor<8xf32> -> tensor<8xf32>)
  func.return %v, %b : tensor<4x2xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @no_overwrite_when_the_kernel_reads_it_too
func.func @no_overwrite_when_the_kernel_reads_it_too() -> tensor<8xf32> {
  // CHECK: host.copy
  %a = host.launch @fill ins() outs(tensor<8xf32>)
  %b = host.launch @k ins(%a : tensor<8xf32>) outs(%a : tensor<8xf32> -> tensor<8xf32>)
  func.return %b : tensor<8xf32>
}

// CHECK-LABEL: func.func @no_overwrite_when_it_belongs_to_the_caller
func.func @no_overwrite_when_it_belongs_to_the_caller(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: host.copy %x, %b
  %b = host.launch @k ins() outs(%x : tensor<8xf32> -> tensor<8xf32>)
  func.return %b : tensor<8xf32>
}

// CHECK-LABEL: func.func @no_overwrite_when_the_layout_differs
func.func @no_overwrite_when_the_layout_differs() -> tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>> {
  // CHECK: host.copy
  %a = host.launch @fill ins() outs(tensor<2x4xf32>)
  %b = host.launch @k ins() outs(%a : tensor<2x4xf32> -> tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>)
  func.return %b : tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>
}

// CHECK-LABEL: func.func @products_compute_into_memory_of_ours
func.func @products_compute_into_memory_of_ours(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  // CHECK: %a = host.alloc
  // CHECK-NEXT: host.extern "aten.mm.out"(%x, %x), {out = %a}
  // CHECK-NEXT: host.return (%a)
  %a = graph.extern "aten.mm.default"(%x, %x) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %a : tensor<2x2xf32>
}

// CHECK-LABEL: func.func @other_externs_return_tensors
func.func @other_externs_return_tensors(%x: tensor<8xf32>) -> (tensor<3xf32>, tensor<3xi64>) {
  // CHECK: %v, %i = host.extern "aten.topk.default"(%x, 3, -1, true, true)
  // CHECK-NEXT: host.return (%v, %i)
  %v, %i = graph.extern "aten.topk.default"(%x, 3, -1, true, true) : (tensor<8xf32>) -> (tensor<3xf32>, tensor<3xi64>)
  func.return %v, %i : tensor<3xf32>, tensor<3xi64>
}

// CHECK-LABEL: func.func @a_mutated_argument_is_copied_into
func.func @a_mutated_argument_is_copied_into(%x: tensor<8xf32>) {
  // CHECK: host.run @k {{.*}} outs(%a
  // CHECK-NEXT: host.copy %a, %x
  // CHECK-NEXT: host.return ()
  %a = host.launch @k ins(%x : tensor<8xf32>) outs(tensor<8xf32>)
  graph.copy_into %a, %x : (tensor<8xf32>, tensor<8xf32>) -> ()
  func.return
}

// CHECK-LABEL: func.func @held_tensors_stay_by_name_or_value
func.func @held_tensors_stay_by_name_or_value() -> (tensor<8xf32>, tensor<2xi64>) {
  // CHECK: %w = host.weight "table" : !host.buffer<f32, (8), (1)>
  // CHECK-NEXT: %c = host.constant <i64, 1, 2> : !host.buffer<i64, (2), (1)>
  %w = graph.weight "table" : tensor<8xf32>
  %c = graph.constant i64<1, 2> : tensor<2xi64>
  func.return %w, %c : tensor<8xf32>, tensor<2xi64>
}

// CHECK-LABEL: func.func @a_bias_comes_first
func.func @a_bias_comes_first(%x: tensor<2x2xf32>, %b: tensor<2xf32>) -> tensor<2x2xf32> {
  // CHECK: %a = host.alloc
  // CHECK-NEXT: host.extern "aten.addmm.out"(%b, %x, %x), {out = %a}
  %a = graph.matmul %x, %x, %b : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  func.return %a : tensor<2x2xf32>
}

// CHECK-LABEL: func.func @sizes_need_no_memory
func.func @sizes_need_no_memory(%s0: index) -> index attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
  // CHECK-NEXT: host.return ((s0 * 2)) : () -> ()
  %n = graph.size (s0 * 2) : index
  func.return %n : index
}

// CHECK-LABEL: func.func @externs_keep_what_they_define
func.func @externs_keep_what_they_define(%x: tensor<8xf32>) -> index attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  // CHECK: %n = host.extern "aten.nonzero.default"(%x) defines (s0 = size(0, 0))
  // CHECK-NEXT: host.return ((s0 * 2))
  %n = graph.extern "aten.nonzero.default"(%x) defines (s0 = size(0, 0)) : (tensor<8xf32>) -> tensor<?x1xi64, #stepwell.layout<(s0, 1), (1, s0)>>
  %s = graph.size (s0 * 2) : index
  func.return %s : index
}

// CHECK-LABEL: func.func @no_memory_of_ours_when_no_kernel_knows_the_type
func.func @no_memory_of_ours_when_no_kernel_knows_the_type(%x: tensor<2x2x!graph.dtype<"complex64">>) -> tensor<2x2x!graph.dtype<"complex64">> {
  // CHECK: %a = host.extern "aten.mm.default"(%x, %x)
  %a = graph.extern "aten.mm.default"(%x, %x) : (tensor<2x2x!graph.dtype<"complex64">>, tensor<2x2x!graph.dtype<"complex64">>) -> tensor<2x2x!graph.dtype<"complex64">>
  func.return %a : tensor<2x2x!graph.dtype<"complex64">>
}
