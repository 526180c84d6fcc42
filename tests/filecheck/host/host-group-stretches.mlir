// RUN: xdsl-opt -p host-group-stretches %s | filecheck %s

// CHECK-LABEL: func.func @allocations_come_before_kernels
func.func @allocations_come_before_kernels(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK-NEXT: %a = host.alloc
  // CHECK-NEXT: %b = host.alloc
  // CHECK-NEXT: host.stretch {
  // CHECK-NEXT: host.run @j
  // CHECK-NEXT: host.run @k
  // CHECK-NEXT: }
  // CHECK-NEXT: host.return
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @j ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%a : !host.buffer<f32, (8), (1)>) outs(%b : !host.buffer<f32, (8), (1)>)
  host.return (%b) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_group_when_an_extern_is_between
func.func @no_group_when_an_extern_is_between(%x: !host.buffer<f32, (8), (1)>) -> !host.buffer<f32, (8), (1)> {
  // CHECK: host.stretch {
  // CHECK-NEXT: host.run @j
  // CHECK: host.extern
  // CHECK-NEXT: %c = host.alloc
  // CHECK-NEXT: host.stretch {
  // CHECK-NEXT: host.run @k
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @j ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  %b = host.extern "aten.sort.stable"(%a) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (8), (1)>)
  %c = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @k ins(%b : !host.buffer<f32, (8), (1)>) outs(%c : !host.buffer<f32, (8), (1)>)
  host.return (%c) : (!host.buffer<f32, (8), (1)>) -> ()
}

// CHECK-LABEL: func.func @no_group_when_a_copy_is_between
func.func @no_group_when_a_copy_is_between(%x: !host.buffer<f32, (8), (1)>) {
  // CHECK: host.stretch {
  // CHECK: host.copy
  // CHECK-NEXT: host.stretch {
  %a = host.alloc : !host.buffer<f32, (8), (1)>
  host.run @j ins(%x : !host.buffer<f32, (8), (1)>) outs(%a : !host.buffer<f32, (8), (1)>)
  host.copy %a, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.run @k ins(%a : !host.buffer<f32, (8), (1)>) outs(%x : !host.buffer<f32, (8), (1)>)
  host.return () : () -> ()
}
