// RUN: xdsl-opt -p host-plan-buffers %s | filecheck %s

// CHECK-LABEL: func.func @buffers_that_never_live_at_once_share_a_slot
func.func @buffers_that_never_live_at_once_share_a_slot(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: %workspace = host.workspace (128)
  // CHECK: %a = host.slot %workspace[(0)]
  // CHECK: %b = host.slot %workspace[(64)]
  // CHECK: %c = host.slot %workspace[(0)]
  // CHECK: %d = host.alloc
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  %c = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%b : !host.buffer<f32, (8), (1)>) outs(%c : !host.buffer<f32, (8), (1)>)
  %d = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%c : !host.buffer<f32, (8), (1)>) outs(%d : !host.buffer<f32, (8), (1)>)
  host.return (%d) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @slots_have_symbolic_sizes
func.func @slots_have_symbolic_sizes(%s0: index, %x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?, hint 100>]} {
  // CHECK: host.workspace (s0 * 64 + 64)
  // CHECK: %a = host.slot %workspace[(0)]
  // CHECK: %b = host.slot %workspace[(s0 * 64)]
  %a = host.alloc : !host.buffer<f32, (s0, 16), (16, 1)>
  host.run @k ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (s0, 16), (16, 1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%a : !host.buffer<f32, (s0, 16), (16, 1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  %d = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%b : !host.buffer<f32, (8), (1)>) outs(%d : !host.buffer<f32, (8), (1)>)
  host.return (%d) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_slot_when_an_extern_sees_it
func.func @no_slot_when_an_extern_sees_it(%x: !host.buffer<f32, (8), (1)>) {
  // CHECK-NOT: host.slot
  // CHECK: host.return
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.extern "aten.foo.default"(%a) : (!host.buffer<f32, (8), (1)>) -> ()
  host.return () : () -> ()
}

// CHECK-LABEL: func.func @no_slot_when_a_view_is_taken
func.func @no_slot_when_a_view_is_taken(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (4), (2)> {
  // CHECK-NOT: host.slot
  // CHECK: host.return
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  %v = host.view %a[(0)] : !host.buffer<f32, (8), (1)> -> !host.buffer<f32, (4), (2)>
  host.return (%v) : (!host.buffer<f32, (4), (2)>) -> ()
}

// What has a size that an extern defines lives in a workspace of its own, taken once the size is known.
// CHECK-LABEL: func.func @sizes_that_an_extern_defines
func.func @sizes_that_an_extern_defines(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  // CHECK-NEXT: %workspace = host.workspace (64)
  // CHECK-NEXT: %a = host.slot %workspace[(0)]
  // CHECK: %n = host.extern
  // CHECK-NEXT: host.extern "aten._assert_scalar.default"
  // CHECK-NEXT: %workspace_1 = host.workspace (((s0 * 4) ceildiv 64) * 64)
  // CHECK-NEXT: %c = host.slot %workspace_1[(0)]
  // CHECK: %d = host.alloc
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  %n = host.extern "aten.nonzero.default"(%x) defines (s0 = size(0, 0)) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<i64, (s0, 1), (1, s0)>)
  host.extern "aten._assert_scalar.default"((min(s0, 1)), "nothing") : () -> ()
  %c = host.alloc : !host.buffer<f32, (s0), (1)>
  host.run @k ins(%a : !host.buffer<f32, (8), (1)>) outs(%c : !host.buffer<f32, (s0), (1)>)
  %d = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%c : !host.buffer<f32, (s0), (1)>) outs(%d : !host.buffer<f32, (8), (1)>)
  host.return (%d) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_slot_when_nobody_uses_it
func.func @no_slot_when_nobody_uses_it() {
  // CHECK: host.alloc
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.return () : () -> ()
}

// CHECK: func.func private @declared
func.func private @declared(!host.buffer<f32, (8), (1)>)
