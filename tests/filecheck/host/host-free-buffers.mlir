// RUN: xdsl-opt -p host-free-buffers %s | filecheck %s

// CHECK-LABEL: func.func @tensors_are_dropped_after_their_last_use
func.func @tensors_are_dropped_after_their_last_use(%x: !host.buffer<f32, (8), (1)>, %y: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.stretch
  // CHECK: }
  // CHECK-NEXT: host.free %x
  // CHECK-NEXT: %b = host.extern
  // CHECK-NEXT: host.free %y, %a
  // CHECK-NEXT: %c = host.extern
  // CHECK-NEXT: host.return (%c)
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.stretch {
    host.run @k ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  }
  %b = host.extern "aten.add.Tensor"(%a, %y) : (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>)
  %c = host.extern "aten.sin.default"(%b) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>)
  host.return (%c) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @an_unused_argument_is_dropped_first
func.func @an_unused_argument_is_dropped_first(%x: !host.buffer<f32, (8), (1)>, %y: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: %b = host.extern
  // CHECK-NEXT: host.free %x
  // CHECK-NEXT: %c = host.extern
  %b = host.extern "aten.sin.default"(%y) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>)
  %c = host.extern "aten.add.Tensor"(%b, %y) : (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>)
  host.return (%c) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_free_when_the_tensor_is_held
func.func @no_free_when_the_tensor_is_held(%y: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK-NOT: host.free %w
  // CHECK: host.return
  %w = host.weight "w" : !host.buffer<f32, (8), (1)>
  %b = host.extern "aten.add.Tensor"(%w, %y) : (!host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>)
  %c = host.extern "aten.sin.default"(%b) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>)
  host.return (%c) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_free_when_the_return_follows
func.func @no_free_when_the_return_follows(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: %b = host.extern
  // CHECK-NEXT: host.return
  %b = host.extern "aten.sin.default"(%x) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>)
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}
