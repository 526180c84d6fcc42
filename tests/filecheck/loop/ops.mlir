// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s --print-op-generic | xdsl-opt | filecheck %s

// CHECK-LABEL: @every_op
func.func @every_op(%s0: index, %x: tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>, %ids: tensor<8xi64>, %z: f32, %seed: i64, %init: tensor<4xf32>) -> (tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>, tensor<4xf32>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?, hint 8>]} {
  // CHECK: %{{\w+}}, %{{\w+}} = loop.kernel "sample" outs(%o: memref<?x64xf32>, %p: memref<4xf32> = %init) -> tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>, tensor<4xf32> {
  %y, %w = loop.kernel "sample" outs(%o : memref<?x64xf32>, %p : memref<4xf32> = %init) -> tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>, tensor<4xf32> {
    // CHECK-NEXT: loop.parallel (%i) to (s0) {
    loop.parallel (%i) to (s0) {
      // CHECK-NEXT: %m, %q = loop.reduce (%j) to (64) [max, add] -> f32, f32 {
      %m, %q = loop.reduce (%j) to (64) [max, add] -> f32, f32 {
        // CHECK-NEXT: %v = loop.read %x[%i, %j] : tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>
        %v = loop.read %x[%i, %j] : tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>
        // CHECK-NEXT: loop.yield %v, %v : f32, f32
        loop.yield %v, %v : f32, f32
      }
      // CHECK: %row = loop.local (64) : memref<64xf32>
      %row = loop.local (64) : memref<64xf32>
      // CHECK-NEXT: %l = loop.for (%{{\w+}}) to (64) carry (%acc = %z : f32) {
      %l = loop.for (%j) to (64) carry (%acc = %z : f32) {
        // CHECK-NEXT: %n = loop.index [%i * s0 + (%{{\w+}} floordiv 4) * 2] : i64
        %n = loop.index [%i * s0 + (%j floordiv 4) * 2] : i64
        %k = arith.index_cast %n : i64 to index
        %c = arith.cmpi slt, %n, %n : i64
        // CHECK: loop.read %ids[%k] if %c else %n : tensor<8xi64>
        %g = loop.read %ids[%k] if %c else %n : tensor<8xi64>
        // CHECK: loop.assert %c, %n, "IndexError", "index {} is bad"
        loop.assert %c, %n, "IndexError", "index {} is bad"
        // CHECK-NEXT: %b = loop.philox %seed, %n stream 3 : i32
        %b = loop.philox %seed, %n stream 3 : i32
        // CHECK-NEXT: loop.write %m, %row[%{{\w+}}] : memref<64xf32>
        loop.write %m, %row[%j] : memref<64xf32>
        // CHECK-NEXT: loop.write %m, %o[%i, %{{\w+}}] add : memref<?x64xf32>
        loop.write %m, %o[%i, %j] add : memref<?x64xf32>
        loop.yield %acc : f32
      }
    }
  }
  func.return %y, %w : tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>, tensor<4xf32>
}

// CHECK-LABEL: @expressions_are_canonical
func.func @expressions_are_canonical(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = loop.kernel "k" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i, %j) to (8, 8) {
      // CHECK: loop.read %x[%i * 8 + %j] : tensor<64xf32>
      %v = loop.read %x[(%i * 2 + 0) * 4 + %j] : tensor<64xf32>
      loop.write %v, %o[%i * 8 + %j] : memref<64xf32>
    }
  }
  func.return %y : tensor<64xf32>
}

// CHECK-LABEL: @initial_value_in_another_layout
func.func @initial_value_in_another_layout(%x: tensor<2x3xf32, #stepwell.layout<(2, 3), (1, 2)>>) -> tensor<2x3xf32> {
  // CHECK: loop.kernel "copy" outs(%{{\w+}}: memref<2x3xf32> = %x : tensor<2x3xf32, #stepwell.layout<(2, 3), (1, 2)>>) -> tensor<2x3xf32> {
  %y = loop.kernel "copy" outs(%o : memref<2x3xf32> = %x : tensor<2x3xf32, #stepwell.layout<(2, 3), (1, 2)>>) -> tensor<2x3xf32> {
    loop.parallel (%i) to (3) {
      %v = loop.read %x[1, %i] : tensor<2x3xf32, #stepwell.layout<(2, 3), (1, 2)>>
      loop.write %v, %o[0, %i] : memref<2x3xf32>
    }
  }
  func.return %y : tensor<2x3xf32>
}
