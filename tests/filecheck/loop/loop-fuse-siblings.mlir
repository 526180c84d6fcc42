// RUN: xdsl-opt %s -p loop-fuse-siblings | filecheck %s

// Kernels that read the same tensors become one, where their spaces agree.

// The two column sums that a layer norm's weight and bias get.
// CHECK-LABEL: @column_sums
// CHECK: loop.kernel "mul_sum" outs(%{{\w+}}: memref<8xf32>, %{{\w+}}: memref<8xf32>)
// CHECK-NEXT: loop.parallel (%j) to (8)
// CHECK-NEXT: loop.reduce (%i) to (4) [add, add]
// CHECK-NOT: loop.kernel
func.func @column_sums(%g: tensor<4x8xf32>, %x: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %w = loop.kernel "mul_sum" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%j) to (8) {
      %t = loop.reduce (%i) to (4) [add] -> f32 {
        %v = loop.read %g[%i, %j] : tensor<4x8xf32>
        %u = loop.read %x[%i, %j] : tensor<4x8xf32>
        %p = arith.mulf %v, %u : f32
        loop.yield %p : f32
      }
      loop.write %t, %o[%j] : memref<8xf32>
    }
  }
  %b = loop.kernel "sum" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%j) to (8) {
      %t = loop.reduce (%i) to (4) [add] -> f32 {
        %v = loop.read %g[%i, %j] : tensor<4x8xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%j] : memref<8xf32>
    }
  }
  func.return %w, %b : tensor<8xf32>, tensor<8xf32>
}

// What stands between two siblings without needing them stays in order.
// CHECK-LABEL: @past_an_extern
// CHECK: graph.extern
// CHECK: loop.kernel "exp_neg"
// CHECK-NOT: loop.kernel
func.func @past_an_extern(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %s = graph.extern "aten.sort.stable"(%x) : (tensor<8xf32>) -> (tensor<8xf32>)
  %b = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %a, %s, %b : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @no_fusion_when_one_needs_the_other
// CHECK: loop.kernel "exp"
// CHECK: graph.extern
// CHECK: loop.kernel "add"
func.func @no_fusion_when_one_needs_the_other(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %s = graph.extern "aten.sort.stable"(%a) : (tensor<8xf32>) -> (tensor<8xf32>)
  %b = loop.kernel "add" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %u = loop.read %s[%i] : tensor<8xf32>
      %w = arith.addf %v, %u : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %b : tensor<8xf32>
}

// CHECK-LABEL: @no_fusion_when_they_share_too_little
// CHECK: loop.kernel "first"
// CHECK: loop.kernel "second"
func.func @no_fusion_when_they_share_too_little(%x: tensor<4x64xf32>, %y: tensor<4x64xf32>, %b: tensor<4xf32>) -> (tensor<4x64xf32>, tensor<4x64xf32>) {
  %u = loop.kernel "first" outs(%o : memref<4x64xf32>) -> tensor<4x64xf32> {
    loop.parallel (%i, %j) to (4, 64) {
      %v = loop.read %x[%i, %j] : tensor<4x64xf32>
      %c = loop.read %b[%i] : tensor<4xf32>
      %w = arith.addf %v, %c : f32
      loop.write %w, %o[%i, %j] : memref<4x64xf32>
    }
  }
  %v = loop.kernel "second" outs(%o : memref<4x64xf32>) -> tensor<4x64xf32> {
    loop.parallel (%i, %j) to (4, 64) {
      %v = loop.read %y[%i, %j] : tensor<4x64xf32>
      %c = loop.read %b[%i] : tensor<4xf32>
      %w = arith.mulf %v, %c : f32
      loop.write %w, %o[%i, %j] : memref<4x64xf32>
    }
  }
  func.return %u, %v : tensor<4x64xf32>, tensor<4x64xf32>
}

// CHECK-LABEL: @no_fusion_when_one_walks_rows_and_the_other_columns
// CHECK: loop.kernel "rows"
// CHECK: loop.kernel "columns"
func.func @no_fusion_when_one_walks_rows_and_the_other_columns(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %r = loop.kernel "rows" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%i) to (4) {
      %t = loop.reduce (%j) to (8) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<4xf32>
    }
  }
  %c = loop.kernel "columns" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%j) to (8) {
      %t = loop.reduce (%i) to (4) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%j] : memref<8xf32>
    }
  }
  func.return %r, %c : tensor<4xf32>, tensor<8xf32>
}

// Siblings of which one has a size that an extern defines become one behind the extern, and behind the check.
// CHECK-LABEL: @behind_a_definition
// CHECK: graph.extern "aten.nonzero.default"
// CHECK: graph.extern "aten._assert_scalar.default"
// CHECK: loop.kernel "exp_neg"
// CHECK-NOT: loop.kernel
func.func @behind_a_definition(%x: tensor<8xf32>, %m: tensor<8xi1>) -> (tensor<8xf32>, tensor<8xf32>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  %n = graph.extern "aten.nonzero.default"(%m) defines (s0 = size(0, 0)) : (tensor<8xi1>) -> tensor<?x1xi64, #stepwell.layout<(s0, 1), (1, s0)>>
  graph.extern "aten._assert_scalar.default"((min(s0, 1)), "nothing") effect check : () -> ()
  %b = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %s = loop.index [s0] : index
      %w = arith.index_cast %s : index to i32
      %f = arith.sitofp %w : i32 to f32
      %v = loop.read %x[%i] : tensor<8xf32>
      %u = arith.mulf %v, %f : f32
      loop.write %u, %o[%i] : memref<8xf32>
    }
  }
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @no_fuse_when_a_definition_stands_between
// CHECK: loop.kernel "exp"
// CHECK: graph.extern
// CHECK: loop.kernel "neg"
func.func @no_fuse_when_a_definition_stands_between(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  %n = graph.extern "aten.nonzero.default"(%a) defines (s0 = size(0, 0)) : (tensor<8xf32>) -> tensor<?x1xi64, #stepwell.layout<(s0, 1), (1, s0)>>
  %b = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %s = loop.index [s0] : index
      %w = arith.index_cast %s : index to i32
      %f = arith.sitofp %w : i32 to f32
      %v = loop.read %x[%i] : tensor<8xf32>
      %u = arith.mulf %v, %f : f32
      loop.write %u, %o[%i] : memref<8xf32>
    }
  }
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// Nests that share nothing meet in one that shares something with each: the sums of x, of y and of x y are one loop.
// CHECK-LABEL: @a_third_joins_two
// CHECK: loop.parallel (%{{.*}}) to (64)
// CHECK: loop.reduce (%{{.*}}) to (100) [add, add, add] -> f32, f32, f32
// CHECK-NOT: loop.reduce
func.func @a_third_joins_two(%x: tensor<64x100xf32>, %y: tensor<64x100xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %a, %b = loop.kernel "sum" outs(%o : memref<64xf32>, %p : memref<64xf32>) -> tensor<64xf32>, tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %s = loop.reduce (%j) to (100) [add] -> f32 {
        %u = loop.read %x[%i, %j] : tensor<64x100xf32>
        loop.yield %u : f32
      }
      loop.write %s, %o[%i] : memref<64xf32>
      %t = loop.reduce (%j) to (100) [add] -> f32 {
        %v = loop.read %y[%i, %j] : tensor<64x100xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%i] : memref<64xf32>
    }
  }
  %c = loop.kernel "dot" outs(%q : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %d = loop.reduce (%j) to (100) [add] -> f32 {
        %u = loop.read %x[%i, %j] : tensor<64x100xf32>
        %v = loop.read %y[%i, %j] : tensor<64x100xf32>
        %w = arith.mulf %u, %v : f32
        loop.yield %w : f32
      }
      loop.write %d, %q[%i] : memref<64xf32>
    }
  }
  func.return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// One that needs the sum cannot run beside it.
// CHECK-LABEL: @no_third_when_it_needs_the_other
// CHECK: loop.reduce (%{{.*}}) to (100) [add] -> f32
// CHECK: loop.reduce (%{{.*}}) to (100) [add, add] -> f32, f32
func.func @no_third_when_it_needs_the_other(%x: tensor<64x100xf32>, %y: tensor<64x100xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %a, %b = loop.kernel "sum" outs(%o : memref<64xf32>, %p : memref<64xf32>) -> tensor<64xf32>, tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %s = loop.reduce (%j) to (100) [add] -> f32 {
        %u = loop.read %x[%i, %j] : tensor<64x100xf32>
        loop.yield %u : f32
      }
      loop.write %s, %o[%i] : memref<64xf32>
      %t = loop.reduce (%j) to (100) [add] -> f32 {
        %v = loop.read %y[%i, %j] : tensor<64x100xf32>
        %w = arith.mulf %v, %s : f32
        loop.yield %w : f32
      }
      loop.write %t, %p[%i] : memref<64xf32>
    }
  }
  %c = loop.kernel "dot" outs(%q : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %d = loop.reduce (%j) to (100) [add] -> f32 {
        %u = loop.read %x[%i, %j] : tensor<64x100xf32>
        %v = loop.read %y[%i, %j] : tensor<64x100xf32>
        %w = arith.mulf %u, %v : f32
        loop.yield %w : f32
      }
      loop.write %d, %q[%i] : memref<64xf32>
    }
  }
  func.return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// The product shares more with the first sum than with the second, which then joins both from behind.
// CHECK-LABEL: @a_third_joins_two_before_it
// CHECK: loop.parallel (%{{.*}}) to (64)
// CHECK: loop.reduce (%{{.*}}) to (100) [add, add, add] -> f32, f32, f32
// CHECK-NOT: loop.reduce
func.func @a_third_joins_two_before_it(%x: tensor<64x100xf32>, %y: tensor<64x100xbf16>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %a, %b = loop.kernel "sum" outs(%o : memref<64xf32>, %p : memref<64xf32>) -> tensor<64xf32>, tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %s = loop.reduce (%j) to (100) [add] -> f32 {
        %u = loop.read %x[%i, %j] : tensor<64x100xf32>
        loop.yield %u : f32
      }
      loop.write %s, %o[%i] : memref<64xf32>
      %t = loop.reduce (%j) to (100) [add] -> f32 {
        %v = loop.read %y[%i, %j] : tensor<64x100xbf16>
        %w = arith.extf %v : bf16 to f32
        loop.yield %w : f32
      }
      loop.write %t, %p[%i] : memref<64xf32>
    }
  }
  %c = loop.kernel "dot" outs(%q : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %d = loop.reduce (%j) to (100) [add] -> f32 {
        %u = loop.read %x[%i, %j] : tensor<64x100xf32>
        %v = loop.read %y[%i, %j] : tensor<64x100xbf16>
        %w = arith.extf %v : bf16 to f32
        %z = arith.mulf %u, %w : f32
        loop.yield %z : f32
      }
      loop.write %d, %q[%i] : memref<64xf32>
    }
  }
  func.return %a, %b, %c : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// Windows that are read alike are one window, whatever map leads to its elements.
// CHECK-LABEL: @equal_windows
// CHECK: loop.parallel (%{{\w+}}, %{{\w+}}) to (16, 8) {
// CHECK-NEXT: loop.reduce (%{{\w+}}) to (3) [max, min] -> f32, f32 {
// CHECK-NOT: loop.kernel
func.func @equal_windows(%x: tensor<16x17xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
  %a = loop.kernel "max" outs(%o : memref<16x8xf32>) -> tensor<16x8xf32> {
    loop.parallel (%i, %j) to (16, 8) {
      %t = loop.reduce (%k) to (3) [max] -> f32 {
        %v = loop.read %x[%i, %j * 2 + %k] : tensor<16x17xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i, %j] : memref<16x8xf32>
    }
  }
  %b = loop.kernel "min" outs(%o : memref<16x8xf32>) -> tensor<16x8xf32> {
    loop.parallel (%i, %j) to (16, 8) {
      %t = loop.reduce (%k) to (3) [min] -> f32 {
        %v = loop.read %x[%i, %j * 2 + %k] : tensor<16x17xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i, %j] : memref<16x8xf32>
    }
  }
  func.return %a, %b : tensor<16x8xf32>, tensor<16x8xf32>
}

// Others meet in their rows alone.
// CHECK-LABEL: @no_common_window
// CHECK: loop.parallel (%{{\w+}}) to (16) {
// CHECK-NEXT: loop.parallel (%{{\w+}}) to (8) {
// CHECK: loop.parallel (%{{\w+}}) to (8) {
func.func @no_common_window(%x: tensor<16x17xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
  %a = loop.kernel "max" outs(%o : memref<16x8xf32>) -> tensor<16x8xf32> {
    loop.parallel (%i, %j) to (16, 8) {
      %t = loop.reduce (%k) to (3) [max] -> f32 {
        %v = loop.read %x[%i, %j * 2 + %k] : tensor<16x17xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i, %j] : memref<16x8xf32>
    }
  }
  %b = loop.kernel "min" outs(%o : memref<16x8xf32>) -> tensor<16x8xf32> {
    loop.parallel (%i, %j) to (16, 8) {
      %t = loop.reduce (%k) to (3) [min] -> f32 {
        %v = loop.read %x[%i, %j + %k] : tensor<16x17xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i, %j] : memref<16x8xf32>
    }
  }
  func.return %a, %b : tensor<16x8xf32>, tensor<16x8xf32>
}
