// RUN: xdsl-opt --verify-diagnostics --split-input-file %s | filecheck %s

// CHECK: host.launch: expected result 0 to have the shape and element type of its initial value
func.func @an_initial_value_of_another_shape(%a: tensor<4xf32>) {
  %n = host.launch @k ins() outs(%a : tensor<4xf32> -> tensor<8xf32>)
  func.return
}

// -----

// CHECK: host.view: expected a tensor of a tensor or a buffer of a buffer
func.func @a_view_that_changes_form(%a: tensor<4xf32>) {
  %n = host.view %a[(0)] : tensor<4xf32> -> !host.buffer<f32, (4), (1)>
  func.return
}

// -----

// CHECK: host.stretch: expected only host.run in its body
func.func @an_allocation_in_a_stretch() {
  host.stretch {
    %a = host.alloc : !host.buffer<f32, (4), (1)>
  }
  func.return
}

// -----

// CHECK: host.extern: expected no use of s0 before it is defined, got one in host.alloc
func.func @a_size_used_before_its_definition(%x: !host.buffer<f32, (8), (1)>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %a = host.alloc : !host.buffer<f32, (s0), (1)>
  %n = host.extern "aten.nonzero.default"(%x) defines (s0 = size(0, 0)) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<i64, (s0, 1), (1, s0)>)
  func.return
}
