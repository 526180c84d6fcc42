// RUN: xdsl-opt %s -p loop-fuse-producers | filecheck %s

// Pointwise kernels are computed where their values are read, through any index map.

// CHECK-LABEL: @chain
// CHECK: loop.kernel "double_exp_neg"
// CHECK: [[V:%\w+]] = loop.read %x[%i]
// CHECK-NEXT: [[D:%\w+]] = arith.addf [[V]], [[V]]
// CHECK-NEXT: [[E:%\w+]] = math.exp [[D]]
// CHECK-NEXT: [[N:%\w+]] = arith.negf [[E]]
// CHECK-NEXT: loop.write [[N]], %o[%i]
// CHECK-NOT: loop.kernel
func.func @chain(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = loop.kernel "double" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = arith.addf %v, %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %c = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %b[%i] : tensor<8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %c : tensor<8xf32>
}

// Index maps compose, and simplify by the ranges of the indices.
// CHECK-LABEL: @through_views
// CHECK: loop.kernel "exp_sum"
// CHECK: loop.reduce (%j) to (16)
// CHECK-NEXT: loop.read %x[%j + 2, -%i + 7]
// CHECK-NEXT: math.exp
func.func @through_views(%x: tensor<32x8xf32>) -> tensor<8xf32> {
  %a = loop.kernel "exp" outs(%o : memref<30x8xf32>) -> tensor<30x8xf32> {
    loop.parallel (%i, %j) to (30, 8) {
      %v = loop.read %x[%i + 2, 7 - %j] : tensor<32x8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i, %j] : memref<30x8xf32>
    }
  }
  %b = loop.kernel "sum" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %s = loop.reduce (%j) to (16) [add] -> f32 {
        %v = loop.read %a[(%j * 8 + %i) floordiv 8, (%j * 8 + %i) mod 8] : tensor<30x8xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i] : memref<8xf32>
    }
  }
  func.return %b : tensor<8xf32>
}

// A cheap producer is copied to several readers.
// CHECK-LABEL: @copies_of_a_cast
// CHECK: loop.kernel "cast_neg"
// CHECK: loop.read %x[{{%\w+}}] : tensor<8xbf16>
// CHECK: loop.kernel "cast_exp"
// CHECK: loop.read %x[{{%\w+}}] : tensor<8xbf16>
func.func @copies_of_a_cast(%x: tensor<8xbf16>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = loop.kernel "cast" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xbf16>
      %w = arith.extf %v : bf16 to f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %c = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %b, %c : tensor<8xf32>, tensor<8xf32>
}

// Under a guard, what the producer reads is guarded too; the padding shows elsewhere.
// CHECK-LABEL: @under_a_guard
// CHECK: [[IN:%\w+]] = arith.cmpi slt
// CHECK: [[ONE:%\w+]] = arith.constant 1.000000e+00
// CHECK-NEXT: [[V:%\w+]] = loop.read %x[%i] if [[IN]] else [[ONE]]
// CHECK-NEXT: [[E:%\w+]] = math.exp [[V]]
// CHECK-NEXT: arith.select [[IN]], [[E]], %zero
func.func @under_a_guard(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "pad" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    %zero = arith.constant 0.0 : f32
    loop.parallel (%i) to (8) {
      %n = loop.index [%i] : i64
      %limit = arith.constant 5 : i64
      %in = arith.cmpi slt, %n, %limit : i64
      %v = loop.read %a[%i] if %in else %zero : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  func.return %b : tensor<8xf32>
}

// CHECK-LABEL: @no_copies_when_expensive
// CHECK: loop.kernel "exp"
// CHECK: loop.kernel "spread"
func.func @no_copies_when_expensive(%x: tensor<8xf32>) -> tensor<64x8xf32> {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "spread" outs(%o : memref<64x8xf32>) -> tensor<64x8xf32> {
    loop.parallel (%i, %j) to (64, 8) {
      %v = loop.read %a[%j] : tensor<8xf32>
      loop.write %v, %o[%i, %j] : memref<64x8xf32>
    }
  }
  func.return %b : tensor<64x8xf32>
}

// CHECK-LABEL: @no_fusion_when_the_value_leaves
// CHECK: loop.kernel "neg"
// CHECK: loop.kernel "double"
// CHECK: loop.read %a[{{%\w+}}]
func.func @no_fusion_when_the_value_leaves(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "double" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = arith.addf %v, %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// Three readers of a sum of two tensors would read six tensors instead of three.
// CHECK-LABEL: @no_copies_when_they_read_more
// CHECK: loop.kernel "add"
// CHECK: loop.kernel "neg"
// CHECK: loop.kernel "exp"
// CHECK: loop.kernel "log"
func.func @no_copies_when_they_read_more(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %a = loop.kernel "add" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %u = loop.read %y[%i] : tensor<8xf32>
      %w = arith.addf %v, %u : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %c = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %d = loop.kernel "log" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = math.log %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// A check must run for every element, even one that nobody reads.
// CHECK-LABEL: @no_fusion_when_it_checks
// CHECK: loop.kernel "lookup"
// CHECK: loop.kernel "head"
func.func @no_fusion_when_it_checks(%x: tensor<8xf32>, %n: tensor<8xi64>) -> tensor<4xf32> {
  %a = loop.kernel "lookup" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %k = loop.read %n[%i] : tensor<8xi64>
      %limit = arith.constant 8 : i64
      %in = arith.cmpi ult, %k, %limit : i64
      loop.assert %in, %k, "IndexError", "index {} is out of range"
      %p = arith.index_cast %k : i64 to index
      %zero = arith.constant 0.0 : f32
      %v = loop.read %x[%p] if %in else %zero : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "head" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%i) to (4) {
      %v = loop.read %a[%i] : tensor<8xf32>
      loop.write %v, %o[%i] : memref<4xf32>
    }
  }
  func.return %b : tensor<4xf32>
}

// Factors of a product are read from memory, by whole boxes.
// CHECK-LABEL: @no_move_when_a_product_reads
// CHECK: loop.kernel "neg"
// CHECK: loop.kernel "matmul"
func.func @no_move_when_a_product_reads(%y: tensor<6x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<6x8xbf16> {
  %x = loop.kernel "neg" outs(%o : memref<6x4xbf16>) -> tensor<6x4xbf16> {
    loop.parallel (%i, %k) to (6, 4) {
      %v = loop.read %y[%i, %k] : tensor<6x4xbf16>
      %u = arith.negf %v : bf16
      loop.write %u, %o[%i, %k] : memref<6x4xbf16>
    }
  }
  %m = loop.kernel "matmul" outs(%o : memref<6x8xbf16>) -> tensor<6x8xbf16> {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %b = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<6x8xbf16>
    }
  }
  func.return %m : tensor<6x8xbf16>
}

// CHECK-LABEL: @no_fusion_when_the_producer_updates_a_tensor
// CHECK: loop.kernel "head"
// CHECK: loop.kernel "neg"
func.func @no_fusion_when_the_producer_updates_a_tensor(%x: tensor<4xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %a = loop.kernel "head" outs(%o : memref<8xf32> = %y) -> tensor<8xf32> {
    loop.parallel (%i) to (4) {
      %v = loop.read %x[%i] : tensor<4xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %b : tensor<8xf32>
}

// CHECK-LABEL: @no_fusion_when_the_producer_writes_transposed
// CHECK: loop.kernel "transpose"
// CHECK: loop.kernel "neg"
func.func @no_fusion_when_the_producer_writes_transposed(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %a = loop.kernel "transpose" outs(%o : memref<8x4xf32>) -> tensor<8x4xf32> {
    loop.parallel (%i, %j) to (4, 8) {
      %v = loop.read %x[%i, %j] : tensor<4x8xf32>
      loop.write %v, %o[%j, %i] : memref<8x4xf32>
    }
  }
  %b = loop.kernel "neg" outs(%o : memref<8x4xf32>) -> tensor<8x4xf32> {
    loop.parallel (%i, %j) to (8, 4) {
      %v = loop.read %a[%i, %j] : tensor<8x4xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<8x4xf32>
    }
  }
  func.return %b : tensor<8x4xf32>
}

// What a product reads of each element behind its sum is computed there; an index that is a value needs no new op.
// CHECK-LABEL: @behind_the_sum_of_a_product
// CHECK-COUNT-1: loop.kernel "scale_matmul"
// CHECK: loop.reduce
// CHECK-NOT: loop.index
// CHECK: arith.index_cast %j : index to i64
// CHECK-NOT: loop.kernel
func.func @behind_the_sum_of_a_product(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<6x8xf32> {
  %a = loop.kernel "scale" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %n = arith.index_cast %i : index to i64
      %v = arith.sitofp %n : i64 to f32
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  %m = loop.kernel "matmul" outs(%o : memref<6x8xf32>) -> tensor<6x8xf32> {
    loop.parallel (%i, %j) to (6, 8) {
      %s = loop.reduce (%k) to (4) [add] -> f32 {
        %l = loop.read %x[%i, %k] : tensor<6x4xbf16>
        %r = loop.read %w[%k, %j] : tensor<4x8xbf16>
        %c = arith.extf %l : bf16 to f32
        %d = arith.extf %r : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %f = loop.read %a[%j] : tensor<8xf32>
      %t = arith.mulf %s, %f : f32
      loop.write %t, %o[%i, %j] : memref<6x8xf32>
    }
  }
  func.return %m : tensor<6x8xf32>
}

// What a local holds stays with it.
// CHECK-LABEL: @no_fusion_when_a_local_is_written
// CHECK: loop.kernel "held"
// CHECK: loop.kernel "neg"
func.func @no_fusion_when_a_local_is_written(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = loop.kernel "held" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %l = loop.local () : memref<f32>
      %v = loop.read %x[%i] : tensor<64xf32>
      loop.write %v, %l[] : memref<f32>
      %u = loop.read %l[] : memref<f32>
      loop.write %u, %o[%i] : memref<64xf32>
    }
  }
  %z = loop.kernel "neg" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %v = loop.read %y[%i] : tensor<64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<64xf32>
    }
  }
  func.return %z : tensor<64xf32>
}

// A read that gives elsewhere what the one it stands for would needs no choice behind it.
// CHECK-LABEL: @guard_in_guard
// CHECK: [[BOTH:%\w+]] = arith.andi
// CHECK: [[V:%\w+]] = loop.read %x[%i] if [[BOTH]] else %{{\w+}}
// CHECK-NEXT: loop.write [[V]]
func.func @guard_in_guard(%x: tensor<8xf32>, %c: tensor<8xi1>, %d: tensor<8xi1>) -> tensor<8xf32> {
  %a = loop.kernel "one" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %b = loop.read %c[%i] : tensor<8xi1>
      %z = arith.constant 0.0 : f32
      %v = loop.read %x[%i] if %b else %z : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  %y = loop.kernel "two" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %b = loop.read %d[%i] : tensor<8xi1>
      %z = arith.constant 0.0 : f32
      %v = loop.read %a[%i] if %b else %z : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// CHECK-LABEL: @guard_in_guard_of_another_zero
// CHECK: [[V:%\w+]] = loop.read %x[%i] if %{{\w+}} else %{{\w+}}
// CHECK-NEXT: [[W:%\w+]] = arith.select %{{\w+}}, [[V]], %{{\w+}} : f32
// CHECK-NEXT: loop.write [[W]]
func.func @guard_in_guard_of_another_zero(%x: tensor<8xf32>, %c: tensor<8xi1>, %d: tensor<8xi1>) -> tensor<8xf32> {
  %a = loop.kernel "one" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %b = loop.read %c[%i] : tensor<8xi1>
      %z = arith.constant 0.0 : f32
      %v = loop.read %x[%i] if %b else %z : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  %y = loop.kernel "two" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %b = loop.read %d[%i] : tensor<8xi1>
      %z = arith.constant -0.0 : f32
      %v = loop.read %a[%i] if %b else %z : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// Nor does what is computed from such a read.
// CHECK-LABEL: @no_guard_left_out_behind_a_computation
// CHECK: math.exp
// CHECK-NEXT: arith.select
func.func @no_guard_left_out_behind_a_computation(%x: tensor<8xf32>, %c: tensor<8xi1>, %d: tensor<8xi1>) -> tensor<8xf32> {
  %a = loop.kernel "one" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %b = loop.read %c[%i] : tensor<8xi1>
      %z = arith.constant 0.0 : f32
      %v = loop.read %x[%i] if %b else %z : tensor<8xf32>
      %e = math.exp %v : f32
      loop.write %e, %o[%i] : memref<8xf32>
    }
  }
  %y = loop.kernel "two" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %b = loop.read %d[%i] : tensor<8xi1>
      %z = arith.constant 0.0 : f32
      %v = loop.read %a[%i] if %b else %z : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}
