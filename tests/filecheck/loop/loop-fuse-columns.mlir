// RUN: xdsl-opt %s -p loop-fuse-columns | filecheck %s

// A kernel that goes over rows also combines the columns of what it reads or makes.

// The bias' gradient is the sum down the columns of what the first kernel makes: it takes each value as it is made.
// CHECK-LABEL: @gradient_of_a_bias
// CHECK: loop.kernel "neg_sum" outs(%o: memref<1024x64xf32>, %p: memref<64xf32>)
// CHECK-NEXT: %[[L:[0-9]+]] = loop.local (64) : memref<64xf32>
// CHECK-NEXT: %[[Z:[0-9]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: loop.parallel (%[[C:[0-9]+]]) to (64)
// CHECK-NEXT: loop.write %[[Z]], %[[L]][%[[C]]] : memref<64xf32>
// CHECK: loop.parallel (%i, %j) to (1024, 64)
// CHECK: %w = arith.negf
// CHECK-NEXT: loop.write %w, %o[%i, %j]
// CHECK-NEXT: loop.write %w, %[[L]][%j] add : memref<64xf32>
// CHECK: loop.parallel (%k) to (64)
// CHECK-NEXT: %t = loop.read %[[L]][%k]
// CHECK-NEXT: loop.write %t, %p[%k]
// CHECK-NOT: loop.kernel
func.func @gradient_of_a_bias(%x: tensor<1024x64xf32>) -> (tensor<1024x64xf32>, tensor<64xf32>) {
  %y = loop.kernel "neg" outs(%o : memref<1024x64xf32>) -> tensor<1024x64xf32> {
    loop.parallel (%i, %j) to (1024, 64) {
      %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<1024x64xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %y[%r, %k] : tensor<1024x64xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  func.return %y, %b : tensor<1024x64xf32>, tensor<64xf32>
}

// The gradients of a norm's weight read what the gradient of its input reads. Rows in two dims are rows in one; what
// follows the reduction follows the rows.
// CHECK-LABEL: @gradient_of_a_weight
// CHECK: loop.kernel "sum_mul"
// CHECK: loop.parallel (%i, %j) to (8, 128)
// CHECK: loop.reduce
// CHECK: loop.parallel (%k_1) to (64)
// CHECK: loop.write %w, %o[%i, %j, %k_1]
// CHECK: %v_2 = loop.read %g[%i, %j, %k_1]
// CHECK-NEXT: loop.write %v_2, %[[A:[0-9]+]][%k_1] add
// CHECK: loop.parallel (%c) to (64)
// CHECK-NEXT: %t_1 = loop.read %[[A]][%c]
// CHECK-NEXT: %n = arith.negf %t_1
// CHECK-NOT: loop.kernel
func.func @gradient_of_a_weight(%g: tensor<8x128x64xf32>) -> (tensor<8x128x64xf32>, tensor<64xf32>) {
  %y = loop.kernel "sum_mul" outs(%o : memref<8x128x64xf32>) -> tensor<8x128x64xf32> {
    loop.parallel (%i, %j) to (8, 128) {
      %t = loop.reduce (%k) to (64) [add] -> f32 {
        %v = loop.read %g[%i, %j, %k] : tensor<8x128x64xf32>
        loop.yield %v : f32
      }
      loop.parallel (%k) to (64) {
        %v = loop.read %g[%i, %j, %k] : tensor<8x128x64xf32>
        %w = arith.mulf %v, %t : f32
        loop.write %w, %o[%i, %j, %k] : memref<8x128x64xf32>
      }
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%c) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %g[%r floordiv 128, %r mod 128, %c] : tensor<8x128x64xf32>
        loop.yield %v : f32
      }
      %n = arith.negf %t : f32
      loop.write %n, %p[%c] : memref<64xf32>
    }
  }
  func.return %y, %b : tensor<8x128x64xf32>, tensor<64xf32>
}

// Of two kernels over the same rows, in one dim and in two, the columns go to the one that reads more of what they read,
// in the form that suits the other as well.
// CHECK-LABEL: @rows_in_one_dim_and_in_two
// CHECK: loop.kernel "exp" outs
// CHECK: loop.kernel "mul_sum" outs
// CHECK: loop.parallel (%{{\w+}}, %{{\w+}}, %j) to (8, 128, 64)
// CHECK: loop.write %{{\w+}}, %{{\w+}}[%j] add : memref<64xf32>
// CHECK-NOT: loop.kernel
func.func @rows_in_one_dim_and_in_two(%x: tensor<1024x64xf32>, %y: tensor<1024x64xf32>)
    -> (tensor<1024x64xf32>, tensor<8x128x64xf32>, tensor<64xf32>) {
  %a = loop.kernel "mul" outs(%o : memref<1024x64xf32>) -> tensor<1024x64xf32> {
    loop.parallel (%i, %j) to (1024, 64) {
      %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
      %u = loop.read %y[%i, %j] : tensor<1024x64xf32>
      %w = arith.mulf %v, %u : f32
      loop.write %w, %o[%i, %j] : memref<1024x64xf32>
    }
  }
  %b = loop.kernel "exp" outs(%o : memref<8x128x64xf32>) -> tensor<8x128x64xf32> {
    loop.parallel (%m, %n, %k) to (8, 128, 64) {
      %v = loop.read %x[%m * 128 + %n, %k] : tensor<1024x64xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%m, %n, %k] : memref<8x128x64xf32>
    }
  }
  %c = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %x[%r, %k] : tensor<1024x64xf32>
        %u = loop.read %y[%r, %k] : tensor<1024x64xf32>
        %w = arith.addf %v, %u : f32
        loop.yield %w : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  func.return %a, %b, %c : tensor<1024x64xf32>, tensor<8x128x64xf32>, tensor<64xf32>
}

// CHECK-LABEL: @no_fusion_when_rows_differ
// CHECK: loop.kernel "neg" outs
// CHECK: loop.kernel "sum" outs
func.func @no_fusion_when_rows_differ(%x: tensor<1024x64xf32>) -> (tensor<512x64xf32>, tensor<64xf32>) {
  %y = loop.kernel "neg" outs(%o : memref<512x64xf32>) -> tensor<512x64xf32> {
    loop.parallel (%i, %j) to (512, 64) {
      %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<512x64xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %x[%r, %k] : tensor<1024x64xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  func.return %y, %b : tensor<512x64xf32>, tensor<64xf32>
}

// Nothing is saved where the columns are those of the transposed matrix.
// CHECK-LABEL: @no_fusion_when_elements_differ
// CHECK: loop.kernel "neg" outs
// CHECK: loop.kernel "sum" outs
func.func @no_fusion_when_elements_differ(%x: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512xf32>) {
  %y = loop.kernel "neg" outs(%o : memref<512x512xf32>) -> tensor<512x512xf32> {
    loop.parallel (%i, %j) to (512, 512) {
      %v = loop.read %x[%i, %j] : tensor<512x512xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<512x512xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<512xf32>) -> tensor<512xf32> {
    loop.parallel (%k) to (512) {
      %t = loop.reduce (%r) to (512) [add] -> f32 {
        %v = loop.read %y[%k, %r] : tensor<512x512xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<512xf32>
    }
  }
  func.return %y, %b : tensor<512x512xf32>, tensor<512xf32>
}

// What only the sum reads had better not be made at all.
// CHECK-LABEL: @no_fusion_when_nobody_else_reads_the_rows
// CHECK: loop.kernel "neg" outs
// CHECK: loop.kernel "sum" outs
func.func @no_fusion_when_nobody_else_reads_the_rows(%x: tensor<1024x64xf32>) -> tensor<64xf32> {
  %y = loop.kernel "neg" outs(%o : memref<1024x64xf32>) -> tensor<1024x64xf32> {
    loop.parallel (%i, %j) to (1024, 64) {
      %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<1024x64xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %y[%r, %k] : tensor<1024x64xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  func.return %b : tensor<64xf32>
}

// With few rows, what programs collect apart is more than what they read.
// CHECK-LABEL: @no_fusion_when_rows_are_few
// CHECK: loop.kernel "neg" outs
// CHECK: loop.kernel "sum" outs
func.func @no_fusion_when_rows_are_few(%x: tensor<16x8192xf32>) -> (tensor<16x8192xf32>, tensor<8192xf32>) {
  %y = loop.kernel "neg" outs(%o : memref<16x8192xf32>) -> tensor<16x8192xf32> {
    loop.parallel (%i, %j) to (16, 8192) {
      %v = loop.read %x[%i, %j] : tensor<16x8192xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<16x8192xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<8192xf32>) -> tensor<8192xf32> {
    loop.parallel (%k) to (8192) {
      %t = loop.reduce (%r) to (16) [add] -> f32 {
        %v = loop.read %y[%r, %k] : tensor<16x8192xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<8192xf32>
    }
  }
  func.return %y, %b : tensor<16x8192xf32>, tensor<8192xf32>
}

// An argmax has an order of its own, and its index would need a second local.
// CHECK-LABEL: @no_fusion_when_pairs_are_reduced
// CHECK: loop.kernel "neg" outs
// CHECK: loop.kernel "argmax" outs
func.func @no_fusion_when_pairs_are_reduced(%x: tensor<1024x64xf32>) -> (tensor<1024x64xf32>, tensor<64xi64>) {
  %y = loop.kernel "neg" outs(%o : memref<1024x64xf32>) -> tensor<1024x64xf32> {
    loop.parallel (%i, %j) to (1024, 64) {
      %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<1024x64xf32>
    }
  }
  %b = loop.kernel "argmax" outs(%p : memref<64xi64>) -> tensor<64xi64> {
    loop.parallel (%k) to (64) {
      %t, %n = loop.reduce (%r) to (1024) [argmax] -> f32, i64 {
        %v = loop.read %x[%r, %k] : tensor<1024x64xf32>
        %m = loop.index [%r] : i64
        loop.yield %v, %m : f32, i64
      }
      loop.write %n, %p[%k] : memref<64xi64>
    }
  }
  func.return %y, %b : tensor<1024x64xf32>, tensor<64xi64>
}

// CHECK-LABEL: @no_fusion_when_another_row_is_read
// CHECK: loop.kernel "rows"
// CHECK: loop.kernel "sum"
func.func @no_fusion_when_another_row_is_read(%x: tensor<1024x64xf32>, %z: tensor<1025x64xf32>) -> (tensor<1024x64xf32>, tensor<64xf32>) {
  %y = loop.kernel "rows" outs(%o : memref<1024x64xf32>) -> tensor<1024x64xf32> {
    loop.parallel (%i, %j) to (1024, 64) {
      %v = loop.read %z[%i + 1, %j] : tensor<1025x64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<1024x64xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %z[%r, %k] : tensor<1025x64xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  func.return %y, %b : tensor<1024x64xf32>, tensor<64xf32>
}

// CHECK-LABEL: @no_fusion_when_columns_read_a_row_behind_their_sum
// CHECK: loop.kernel "rows"
// CHECK: loop.kernel "sum"
func.func @no_fusion_when_columns_read_a_row_behind_their_sum(%x: tensor<1024x64xf32>) -> (tensor<1024x64xf32>, tensor<64xf32>) {
  %y = loop.kernel "rows" outs(%o : memref<1024x64xf32>) -> tensor<1024x64xf32> {
    loop.parallel (%i, %j) to (1024, 64) {
      %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<1024x64xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %y[%r, %k] : tensor<1024x64xf32>
        loop.yield %v : f32
      }
      %u = loop.read %y[0, %k] : tensor<1024x64xf32>
      %q = arith.addf %t, %u : f32
      loop.write %q, %p[%k] : memref<64xf32>
    }
  }
  func.return %y, %b : tensor<1024x64xf32>, tensor<64xf32>
}

// CHECK-LABEL: @no_fusion_when_columns_read_what_a_row_leaves
// CHECK: loop.kernel "rows"
// CHECK: loop.kernel "sum"
func.func @no_fusion_when_columns_read_what_a_row_leaves(%x: tensor<1024x64xf32>) -> (tensor<1024x64xf32>, tensor<1024xf32>, tensor<64xf32>) {
  %y, %m = loop.kernel "rows" outs(%o : memref<1024x64xf32>, %n : memref<1024xf32>) -> tensor<1024x64xf32>, tensor<1024xf32> {
    loop.parallel (%i) to (1024) {
      %s = loop.reduce (%j) to (64) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
        loop.yield %v : f32
      }
      loop.parallel (%j) to (64) {
        %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
        %w = arith.subf %v, %s : f32
        loop.write %w, %o[%i, %j] : memref<1024x64xf32>
      }
      loop.write %s, %n[%i] : memref<1024xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %a = loop.read %y[%r, %k] : tensor<1024x64xf32>
        %c = loop.read %m[%r] : tensor<1024xf32>
        %v = arith.mulf %a, %c : f32
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  func.return %y, %m, %b : tensor<1024x64xf32>, tensor<1024xf32>, tensor<64xf32>
}

// Of two elements that are made for each column, the sum takes the one that it reads.
// CHECK-LABEL: @the_half_that_is_read
// CHECK: loop.kernel "rows_sum"
// CHECK: %w = arith.negf
// CHECK: loop.write %w, {{%\w+}}[%j] add
func.func @the_half_that_is_read(%x: tensor<1024x64xf32>) -> (tensor<1024x128xf32>, tensor<64xf32>) {
  %y = loop.kernel "rows" outs(%o : memref<1024x128xf32>) -> tensor<1024x128xf32> {
    loop.parallel (%i, %j) to (1024, 64) {
      %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
      %w = arith.negf %v : f32
      loop.write %v, %o[%i, %j] : memref<1024x128xf32>
      loop.write %w, %o[%i, %j + 64] : memref<1024x128xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %y[%r, %k + 64] : tensor<1024x128xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  func.return %y, %b : tensor<1024x128xf32>, tensor<64xf32>
}

// A kernel that collects columns already collects more of them.
// CHECK-LABEL: @two_sums
// CHECK: loop.kernel "rows_sum_squares"
// CHECK: loop.parallel (%i, %j) to (1024, 64)
// CHECK: add : memref<64xf32>
// CHECK: add : memref<64xf32>
// CHECK-NOT: loop.kernel
func.func @two_sums(%x: tensor<1024x64xf32>) -> (tensor<1024x64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %y = loop.kernel "rows" outs(%o : memref<1024x64xf32>) -> tensor<1024x64xf32> {
    loop.parallel (%i, %j) to (1024, 64) {
      %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<1024x64xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %y[%r, %k] : tensor<1024x64xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  %c = loop.kernel "squares" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %y[%r, %k] : tensor<1024x64xf32>
        %w = arith.mulf %v, %v : f32
        loop.yield %w : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  func.return %y, %b, %c : tensor<1024x64xf32>, tensor<64xf32>, tensor<64xf32>
}

// CHECK-LABEL: @no_fusion_when_each_row_collects
// CHECK: loop.kernel "rows"
// CHECK: loop.kernel "sum"
func.func @no_fusion_when_each_row_collects(%x: tensor<1024x64xf32>) -> (tensor<1024x64xf32>, tensor<64xf32>) {
  %y = loop.kernel "rows" outs(%o : memref<1024x64xf32>) -> tensor<1024x64xf32> {
    %l = loop.local (64) : memref<64xf32>
    loop.parallel (%i) to (1024) {
      loop.parallel (%j) to (64) {
        %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
        loop.write %v, %l[%j] : memref<64xf32>
      }
      loop.parallel (%j) to (64) {
        %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
        loop.write %v, %l[%j] max : memref<64xf32>
      }
      loop.parallel (%j) to (64) {
        %v = loop.read %l[%j] : memref<64xf32>
        %u = loop.read %x[%i, %j] : tensor<1024x64xf32>
        %w = arith.addf %u, %v : f32
        loop.write %w, %o[%i, %j] : memref<1024x64xf32>
      }
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%k) to (64) {
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %y[%r, %k] : tensor<1024x64xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  func.return %y, %b : tensor<1024x64xf32>, tensor<64xf32>
}

// CHECK-LABEL: @no_fusion_when_there_are_no_columns
// CHECK: loop.kernel "rows"
// CHECK: loop.kernel "sum"
func.func @no_fusion_when_there_are_no_columns(%x: tensor<1024x64xf32>) -> (tensor<1024x64xf32>, tensor<f32>) {
  %y = loop.kernel "rows" outs(%o : memref<1024x64xf32>) -> tensor<1024x64xf32> {
    loop.parallel (%i, %j) to (1024, 64) {
      %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<1024x64xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<f32>) -> tensor<f32> {
    loop.parallel () to () {
      %t = loop.reduce (%r, %k) to (1024, 64) [add] -> f32 {
        %v = loop.read %y[%r, %k] : tensor<1024x64xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[] : memref<f32>
    }
  }
  func.return %y, %b : tensor<1024x64xf32>, tensor<f32>
}

// CHECK-LABEL: @no_fusion_when_nothing_is_reduced
// CHECK: loop.kernel "rows"
// CHECK: loop.kernel "sum"
func.func @no_fusion_when_nothing_is_reduced(%x: tensor<1x8192xf32>) -> (tensor<1x8192xf32>, tensor<8192xf32>) {
  %y = loop.kernel "rows" outs(%o : memref<1x8192xf32>) -> tensor<1x8192xf32> {
    loop.parallel (%i, %j) to (1, 8192) {
      %v = loop.read %x[%i, %j] : tensor<1x8192xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<1x8192xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<8192xf32>) -> tensor<8192xf32> {
    loop.parallel (%k) to (8192) {
      %t = loop.reduce () to () [add] -> f32 {
        %v = loop.read %y[0, %k] : tensor<1x8192xf32>
        loop.yield %v : f32
      }
      loop.write %t, %p[%k] : memref<8192xf32>
    }
  }
  func.return %y, %b : tensor<1x8192xf32>, tensor<8192xf32>
}

// CHECK-LABEL: @no_fusion_when_columns_keep_something
// CHECK: loop.kernel "neg" outs
// CHECK: loop.kernel "sum" outs
func.func @no_fusion_when_columns_keep_something(%x: tensor<1024x64xf32>, %g: tensor<64xf32>) -> (tensor<1024x64xf32>, tensor<64xf32>) {
  %y = loop.kernel "neg" outs(%o : memref<1024x64xf32>) -> tensor<1024x64xf32> {
    loop.parallel (%i, %j) to (1024, 64) {
      %v = loop.read %x[%i, %j] : tensor<1024x64xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j] : memref<1024x64xf32>
    }
  }
  %b = loop.kernel "sum" outs(%p : memref<64xf32>) -> tensor<64xf32> {
    %l = loop.local (64) : memref<64xf32>
    loop.parallel (%k) to (64) {
      %f = loop.read %g[%k] : tensor<64xf32>
      loop.write %f, %l[%k] : memref<64xf32>
      %t = loop.reduce (%r) to (1024) [add] -> f32 {
        %v = loop.read %y[%r, %k] : tensor<1024x64xf32>
        %u = loop.read %l[%k] : memref<64xf32>
        %w = arith.mulf %v, %u : f32
        loop.yield %w : f32
      }
      loop.write %t, %p[%k] : memref<64xf32>
    }
  }
  func.return %y, %b : tensor<1024x64xf32>, tensor<64xf32>
}

// The rows of one row have no index of their own.
// CHECK-LABEL: @no_fusion_when_rows_have_no_index
// CHECK: loop.kernel "exp"
// CHECK: loop.kernel "sum"
func.func @no_fusion_when_rows_have_no_index(%x: tensor<1x64xf32>) -> (tensor<64xf32>, tensor<1x64xf32>) {
  %y = loop.kernel "exp" outs(%o : memref<1x64xf32>) -> tensor<1x64xf32> {
    loop.parallel (%c) to (64) {
      %v = loop.read %x[0, %c] : tensor<1x64xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[0, %c] : memref<1x64xf32>
    }
  }
  %s = loop.kernel "sum" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%c) to (64) {
      %t = loop.reduce (%r) to (1) [add] -> f32 {
        %v = loop.read %x[%r, %c] : tensor<1x64xf32>
        %u = loop.read %y[%r, %c] : tensor<1x64xf32>
        %w = arith.addf %v, %u : f32
        loop.yield %w : f32
      }
      loop.write %t, %o[%c] : memref<64xf32>
    }
  }
  func.return %s, %y : tensor<64xf32>, tensor<1x64xf32>
}
