// RUN: xdsl-opt %s | xdsl-opt --print-op-generic | xdsl-opt | filecheck %s

// CHECK-LABEL: func.func @value_form
func.func @value_form(%s0: index, %x: tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>, %a: tensor<4xf32>) -> tensor<4xf32> attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?, hint 8>]} {
  // CHECK: %y, %n = host.launch @k ins(%x : tensor<{{.*}}>) outs(tensor<8xf32>, %a : tensor<4xf32> -> tensor<4xf32>) symbols (s0, s0 * 2)
  %y, %n = host.launch @k ins(%x : tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>) outs(tensor<8xf32>, %a : tensor<4xf32> -> tensor<4xf32>) symbols (s0, s0 * 2)
  // CHECK-NEXT: %t = host.view %y[(s0 + 2)] : tensor<8xf32> -> tensor<2x2xf32, #stepwell.layout<(2, 2), (1, 2)>>
  %t = host.view %y[(s0 + 2)] : tensor<8xf32> -> tensor<2x2xf32, #stepwell.layout<(2, 2), (1, 2)>>
  func.return %n : tensor<4xf32>
}

// CHECK-LABEL: func.func @buffer_form
func.func @buffer_form(%s0: index, %x: !host.buffer<f32, (s0, 64), (64, 1)>, %z: !host.buffer<f32, (8), (1)>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
  // CHECK-NEXT: %p = host.separate (%x : !host.buffer<f32, (s0, 64), (64, 1)>) from (%z : !host.buffer<f32, (8), (1)>)
  %p = host.separate (%x : !host.buffer<f32, (s0, 64), (64, 1)>) from (%z : !host.buffer<f32, (8), (1)>)
  // CHECK-NEXT: %w = host.workspace (s0 * 256) : !host.workspace
  %w = host.workspace (s0 * 256) : !host.workspace
  // CHECK-NEXT: %t = host.slot %w[(s0 * 64)] : !host.buffer<f32, (8), (1)>
  %t = host.slot %w[(s0 * 64)] : !host.buffer<f32, (8), (1)>
  // CHECK-NEXT: %y = host.alloc : !host.buffer<f32, (8), (1)>
  %y = host.alloc : !host.buffer<f32, (8), (1)>
  // CHECK-NEXT: host.stretch {
  // CHECK-NEXT: host.run @k ins(%p : {{.*}}) outs(%t : {{.*}}, %y : {{.*}}) symbols (s0)
  // CHECK-NEXT: }
  host.stretch {
    host.run @k ins(%p : !host.buffer<f32, (s0, 64), (64, 1)>) outs(%t : !host.buffer<f32, (8), (1)>, %y : !host.buffer<f32, (8), (1)>) symbols (s0)
  }
  // CHECK-NEXT: host.copy %y, %z : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  host.copy %y, %z : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
  // CHECK-NEXT: %u = host.weight "layer.table" : !host.buffer<f32, (512, 64), (64, 1)>
  %u = host.weight "layer.table" : !host.buffer<f32, (512, 64), (64, 1)>
  // CHECK-NEXT: %c = host.constant <i64, 1, 2> : !host.buffer<i64, (2), (1)>
  %c = host.constant <i64, 1, 2> : !host.buffer<i64, (2), (1)>
  // CHECK-NEXT: %v, %i = host.extern "aten.topk.default"(%y, 3, [(s0 * 2), none], true), {dtype = dtype<"float32">}
  %v, %i = host.extern "aten.topk.default"(%y, 3, [(s0 * 2), none], true), {dtype = dtype<"float32">} : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (3), (1)>, !host.buffer<i64, (3), (1)>)
  // CHECK-NEXT: host.free %y, %v
  host.free %y, %v : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (3), (1)>
  // CHECK-NEXT: host.return (%i, (s0 * 2), none) : (!host.buffer<i64, (3), (1)>) -> ()
  host.return (%i, (s0 * 2), none) : (!host.buffer<i64, (3), (1)>) -> ()
}

// CHECK-LABEL: func.func @definitions
func.func @definitions(%x: !host.buffer<f32, (8), (1)>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  // CHECK-NEXT: %n = host.extern "aten.nonzero.default"(%x) defines (s0 = size(0, 0)) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<i64, (s0, 1), (1, s0)>)
  %n = host.extern "aten.nonzero.default"(%x) defines (s0 = size(0, 0)) : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<i64, (s0, 1), (1, s0)>)
  // CHECK-NEXT: host.return ((s0), input<"2">) : () -> ()
  host.return ((s0), input<"2">) : () -> ()
}
