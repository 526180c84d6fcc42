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
