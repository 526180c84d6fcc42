// RUN: xdsl-opt %s -p loop-fuse-nests --split-input-file | filecheck %s

// A kernel joins the one that it reads from, along the indices that the write and the read share.

// The value that both nests have at an index stays a scalar; what the function returns is still written.
// CHECK-LABEL: @pointwise_with_two_results
// CHECK: loop.kernel "exp_neg" outs(%{{\w+}}: memref<8xf32>, %{{\w+}}: memref<8xf32>)
// CHECK-NEXT: loop.parallel
// CHECK-NEXT: loop.read %x
// CHECK-NEXT: [[E:%\w+]] = math.exp
// CHECK-NEXT: loop.write [[E]]
// CHECK-NEXT: arith.negf [[E]]
// CHECK-NEXT: loop.write
// CHECK-NOT: loop.kernel
func.func @pointwise_with_two_results(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
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
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// A reduction takes up the nest that makes what it reduces; a later nest reads the row from a local.
// CHECK-LABEL: @rows
// CHECK: loop.kernel "exp_sum_div"
// CHECK: [[ROW:%\w+]] = loop.local (4, 8)
// CHECK: loop.parallel (%i) to (4)
// CHECK-NEXT: [[S:%\w+]] = loop.reduce (%j) to (8) [add]
// CHECK: loop.write [[E:%\w+]], [[ROW]][%i, %j]
// CHECK-NEXT: loop.yield [[E]]
// CHECK: loop.parallel ([[J:%\w+]]) to (8)
// CHECK-NEXT: [[V:%\w+]] = loop.read [[ROW]][%i, [[J]]]
// CHECK-NEXT: arith.divf [[V]], [[S]]
// CHECK-NOT: loop.kernel
func.func @rows(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = loop.kernel "exp" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    loop.parallel (%i, %j) to (4, 8) {
      %v = loop.read %x[%i, %j] : tensor<4x8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i, %j] : memref<4x8xf32>
    }
  }
  %s = loop.kernel "sum" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%i) to (4) {
      %t = loop.reduce (%j) to (8) [add] -> f32 {
        %v = loop.read %e[%i, %j] : tensor<4x8xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<4xf32>
    }
  }
  %y = loop.kernel "div" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    loop.parallel (%i, %j) to (4, 8) {
      %v = loop.read %e[%i, %j] : tensor<4x8xf32>
      %t = loop.read %s[%i] : tensor<4xf32>
      %w = arith.divf %v, %t : f32
      loop.write %w, %o[%i, %j] : memref<4x8xf32>
    }
  }
  func.return %y : tensor<4x8xf32>
}

// Two reductions of one row are one nest with two combiners.
// CHECK-LABEL: @two_reductions_of_a_row
// CHECK: loop.parallel (%i) to (4)
// CHECK-NEXT: [[R:%\w+]], [[S:%\w+]] = loop.reduce (%j) to (8) [{{add, max|max, add}}]
// CHECK-NOT: loop.reduce
func.func @two_reductions_of_a_row(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %m = loop.kernel "max" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%i) to (4) {
      %t = loop.reduce (%j) to (8) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<4xf32>
    }
  }
  %s = loop.kernel "sum" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%i) to (4) {
      %t = loop.reduce (%j) to (8) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<4xf32>
    }
  }
  %y = loop.kernel "mul" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%i) to (4) {
      %v = loop.read %m[%i] : tensor<4xf32>
      %u = loop.read %s[%i] : tensor<4xf32>
      %w = arith.mulf %v, %u : f32
      loop.write %w, %o[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// A reduction over rows takes up the whole row kernel, and a scalar epilogue follows.
// CHECK-LABEL: @nested_reduction
// CHECK: [[T:%\w+]] = loop.reduce (%i) to (4) [add]
// CHECK-NEXT: [[R:%\w+]] = loop.reduce (%j) to (8) [max]
// CHECK: loop.yield [[R]]
// CHECK: [[L:%\w+]] = math.log [[T]]
// CHECK-NEXT: loop.write [[L]], %o{{\w*}}[]
func.func @nested_reduction(%x: tensor<4x8xf32>) -> tensor<f32> {
  %m = loop.kernel "max" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%i) to (4) {
      %t = loop.reduce (%j) to (8) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<4x8xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<4xf32>
    }
  }
  %s = loop.kernel "sum" outs(%o : memref<f32>) -> tensor<f32> {
    %t = loop.reduce (%i) to (4) [add] -> f32 {
      %v = loop.read %m[%i] : tensor<4xf32>
      loop.yield %v : f32
    }
    loop.write %t, %o[] : memref<f32>
  }
  %y = loop.kernel "log" outs(%o : memref<f32>) -> tensor<f32> {
    %v = loop.read %s[] : tensor<f32>
    %w = math.log %v : f32
    loop.write %w, %o[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// Spaces are aligned by splitting what the other space splits: (b, s, d) here, (b * s, d) there.
// CHECK-LABEL: @flattened_rows
// CHECK: loop.kernel "exp_sum"
// CHECK: loop.parallel ({{%\w+}}, {{%\w+}}) to (s0, 16)
// CHECK: loop.reduce ({{%\w+}}) to (8) [add]
// CHECK: math.exp
// CHECK: loop.write {{.*}} : memref<?x16x8xf32>
// CHECK: loop.write {{.*}}[%i * 16 + %{{\w+}}]
// CHECK-NOT: loop.kernel
func.func @flattened_rows(%s0: index, %x: tensor<?x16x8xf32, #stepwell.layout<(s0, 16, 8), (128, 8, 1)>>) -> (tensor<?x16x8xf32, #stepwell.layout<(s0, 16, 8), (128, 8, 1)>>, tensor<?xf32, #stepwell.layout<(s0 * 16), (1)>>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?, hint 64>]} {
  %e = loop.kernel "exp" outs(%o : memref<?x16x8xf32>) -> tensor<?x16x8xf32, #stepwell.layout<(s0, 16, 8), (128, 8, 1)>> {
    loop.parallel (%i, %j, %k) to (s0, 16, 8) {
      %v = loop.read %x[%i, %j, %k] : tensor<?x16x8xf32, #stepwell.layout<(s0, 16, 8), (128, 8, 1)>>
      %w = math.exp %v : f32
      loop.write %w, %o[%i, %j, %k] : memref<?x16x8xf32>
    }
  }
  %s = loop.kernel "sum" outs(%o : memref<?xf32>) -> tensor<?xf32, #stepwell.layout<(s0 * 16), (1)>> {
    loop.parallel (%i) to (s0 * 16) {
      %t = loop.reduce (%j) to (8) [add] -> f32 {
        %v = loop.read %e[%i floordiv 16, %i mod 16, %j] : tensor<?x16x8xf32, #stepwell.layout<(s0, 16, 8), (128, 8, 1)>>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<?xf32>
    }
  }
  func.return %e, %s : tensor<?x16x8xf32, #stepwell.layout<(s0, 16, 8), (128, 8, 1)>>, tensor<?xf32, #stepwell.layout<(s0 * 16), (1)>>
}

// Checks move along; a guarded read of the value at hand becomes a select.
// CHECK-LABEL: @checks_move_along
// CHECK: loop.assert
// CHECK: [[E:%\w+]] = math.exp
// CHECK: arith.select %in, [[E]], %zero
// CHECK-NOT: loop.kernel
func.func @checks_move_along(%x: tensor<8xf32>, %n: tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %k = loop.read %n[%i] : tensor<8xi64>
      %limit = arith.constant 8 : i64
      %ok = arith.cmpi ult, %k, %limit : i64
      loop.assert %ok, %k, "IndexError", "index {} is out of range"
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "where" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %p = loop.index [%i] : i64
      %limit = arith.constant 5 : i64
      %in = arith.cmpi slt, %p, %limit : i64
      %zero = arith.constant 0.0 : f32
      %v = loop.read %a[%i] if %in else %zero : tensor<8xf32>
      loop.write %v, %o[%i] : memref<8xf32>
    }
  }
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// What is between the two and needs only the first comes after the fused kernel.
// CHECK-LABEL: @other_users_follow
// CHECK: loop.kernel "exp_neg"
// CHECK: graph.extern "aten.sort.stable"
func.func @other_users_follow(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %s = graph.extern "aten.sort.stable"(%a) : (tensor<8xf32>) -> (tensor<8xf32>)
  %b = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %s, %b : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @no_fusion_when_a_third_op_joins_them
// CHECK: loop.kernel "exp"
// CHECK: graph.extern
// CHECK: loop.kernel "add"
func.func @no_fusion_when_a_third_op_joins_them(%x: tensor<8xf32>) -> tensor<8xf32> {
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
      %v = loop.read %a[%i] : tensor<8xf32>
      %u = loop.read %s[%i] : tensor<8xf32>
      %w = arith.addf %v, %u : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %b : tensor<8xf32>
}

// CHECK-LABEL: @no_fusion_when_memory_is_written_between
// CHECK: loop.kernel "exp"
// CHECK: graph.copy_into
// CHECK: loop.kernel "neg"
func.func @no_fusion_when_memory_is_written_between(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  graph.copy_into %a, %y : (tensor<8xf32>, tensor<8xf32>) -> ()
  %b = loop.kernel "neg" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i] : tensor<8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// Sums of columns would walk each row kernel's rows down a column.
// CHECK-LABEL: @no_fusion_when_columns_are_reduced
// CHECK: loop.kernel "exp"
// CHECK: loop.kernel "sum"
func.func @no_fusion_when_columns_are_reduced(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %e = loop.kernel "exp" outs(%o : memref<4x8xf32>) -> tensor<4x8xf32> {
    loop.parallel (%i, %j) to (4, 8) {
      %v = loop.read %x[%i, %j] : tensor<4x8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i, %j] : memref<4x8xf32>
    }
  }
  %s = loop.kernel "sum" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%j) to (8) {
      %t = loop.reduce (%i) to (4) [add] -> f32 {
        %v = loop.read %e[%i, %j] : tensor<4x8xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%j] : memref<8xf32>
    }
  }
  func.return %e, %s : tensor<4x8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @no_fusion_when_iterations_read_each_other
// CHECK: loop.kernel "exp"
// CHECK: loop.kernel "flip"
func.func @no_fusion_when_iterations_read_each_other(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "flip" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[7 - %i] : tensor<8xf32>
      %u = loop.read %a[%i] : tensor<8xf32>
      %w = arith.addf %v, %u : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// The sum of everything must be there before the first element is divided by it.
// CHECK-LABEL: @no_fusion_when_the_whole_result_is_needed
// CHECK: loop.kernel "sum"
// CHECK: loop.kernel "div"
func.func @no_fusion_when_the_whole_result_is_needed(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = loop.kernel "sum" outs(%o : memref<f32>) -> tensor<f32> {
    %t = loop.reduce (%i) to (8) [add] -> f32 {
      %v = loop.read %x[%i] : tensor<8xf32>
      loop.yield %v : f32
    }
    loop.write %t, %o[] : memref<f32>
  }
  %y = loop.kernel "div" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    %t = loop.read %s[] : tensor<f32>
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = arith.divf %v, %t : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// CHECK-LABEL: @no_fusion_when_it_combines_into_memory
// CHECK: loop.kernel "exp"
// CHECK: loop.kernel "scatter"
func.func @no_fusion_when_it_combines_into_memory(%x: tensor<8xf32>, %z: tensor<4xf32>, %n: tensor<8xi64>) -> (tensor<8xf32>, tensor<4xf32>) {
  %a = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  %b = loop.kernel "scatter" outs(%o : memref<4xf32> = %z) -> tensor<4xf32> {
    loop.parallel (%i) to (8) {
      %k = loop.read %n[%i] : tensor<8xi64>
      %p = arith.index_cast %k : i64 to index
      %v = loop.read %a[%i] : tensor<8xf32>
      loop.write %v, %o[%p] add : memref<4xf32>
    }
  }
  func.return %a, %b : tensor<8xf32>, tensor<4xf32>
}

// Rows of 4 MiB would be gone from the cache before the second nest reads them.
// CHECK-LABEL: @no_fusion_when_rows_do_not_stay_hot
// CHECK: loop.kernel "max"
// CHECK: loop.kernel "sub"
func.func @no_fusion_when_rows_do_not_stay_hot(%x: tensor<64x1048576xf32>) -> tensor<64x1048576xf32> {
  %m = loop.kernel "max" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %t = loop.reduce (%j) to (1048576) [max] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<64x1048576xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<64xf32>
    }
  }
  %y = loop.kernel "sub" outs(%o : memref<64x1048576xf32>) -> tensor<64x1048576xf32> {
    loop.parallel (%i, %j) to (64, 1048576) {
      %v = loop.read %x[%i, %j] : tensor<64x1048576xf32>
      %t = loop.read %m[%i] : tensor<64xf32>
      %w = arith.subf %v, %t : f32
      loop.write %w, %o[%i, %j] : memref<64x1048576xf32>
    }
  }
  func.return %y : tensor<64x1048576xf32>
}

// -----

// Two rows would keep two cores busy where a hundred thousand elements kept all of them.
module attributes {stepwell.target = #stepwell.target<"many", vector_bits = 512, registers = 32, cores = 16, l1_bytes = 32768, l2_bytes = 1048576, l3_bytes = 8388608>} {
// CHECK-LABEL: @no_fusion_when_too_few_iterations_run_in_parallel
// CHECK: loop.kernel "exp"
// CHECK: loop.kernel "sum"
func.func @no_fusion_when_too_few_iterations_run_in_parallel(%x: tensor<2x65536xf32>) -> (tensor<2x65536xf32>, tensor<2x256xf32>) {
  %e = loop.kernel "exp" outs(%o : memref<2x65536xf32>) -> tensor<2x65536xf32> {
    loop.parallel (%i, %j) to (2, 65536) {
      %v = loop.read %x[%i, %j] : tensor<2x65536xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i, %j] : memref<2x65536xf32>
    }
  }
  %s = loop.kernel "sum" outs(%o : memref<2x256xf32>) -> tensor<2x256xf32> {
    loop.parallel (%i, %k) to (2, 256) {
      %t = loop.reduce (%j) to (256) [add] -> f32 {
        %v = loop.read %e[%i, %j * 256 + %k] : tensor<2x65536xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i, %k] : memref<2x256xf32>
    }
  }
  func.return %e, %s : tensor<2x65536xf32>, tensor<2x256xf32>
}
}

// -----

// What follows each element of a product joins it, also where it sees rows in two dims.
// CHECK-LABEL: @after_a_product
// CHECK: loop.kernel "matmul_neg"
// CHECK-NEXT: loop.parallel (%{{.*}}, %{{.*}}, %{{.*}}) to (2, 3, 8) {
// CHECK: [[R:%\w+]] = arith.truncf
// CHECK-NEXT: arith.negf [[R]]
// CHECK-NOT: loop.kernel
func.func @after_a_product(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<2x3x8xbf16> {
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
  %n = loop.kernel "neg" outs(%o : memref<2x3x8xbf16>) -> tensor<2x3x8xbf16> {
    loop.parallel (%i, %h, %j) to (2, 3, 8) {
      %v = loop.read %m[%i * 3 + %h, %j] : tensor<6x8xbf16>
      %u = arith.negf %v : bf16
      loop.write %u, %o[%i, %h, %j] : memref<2x3x8xbf16>
    }
  }
  func.return %n : tensor<2x3x8xbf16>
}

// -----

// CHECK-LABEL: @no_join_when_rows_of_a_product_are_reduced
// CHECK: loop.kernel "matmul"
// CHECK: loop.kernel "sum"
func.func @no_join_when_rows_of_a_product_are_reduced(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>) -> tensor<6xf32> {
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
  %n = loop.kernel "sum" outs(%o : memref<6xf32>) -> tensor<6xf32> {
    loop.parallel (%i) to (6) {
      %s = loop.reduce (%j) to (8) [add] -> f32 {
        %v = loop.read %m[%i, %j] : tensor<6x8xbf16>
        %u = arith.extf %v : bf16 to f32
        loop.yield %u : f32
      }
      loop.write %s, %o[%i] : memref<6xf32>
    }
  }
  func.return %n : tensor<6xf32>
}

// -----

// CHECK-LABEL: @no_join_when_a_product_reads
// CHECK: loop.kernel "sum"
// CHECK: loop.kernel "matmul"
func.func @no_join_when_a_product_reads(%y: tensor<6x4x3xbf16>, %w: tensor<4x8xbf16>) -> tensor<6x8xbf16> {
  %x = loop.kernel "sum" outs(%o : memref<6x4xbf16>) -> tensor<6x4xbf16> {
    loop.parallel (%i, %k) to (6, 4) {
      %s = loop.reduce (%l) to (3) [add] -> f32 {
        %v = loop.read %y[%i, %k, %l] : tensor<6x4x3xbf16>
        %u = arith.extf %v : bf16 to f32
        loop.yield %u : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%i, %k] : memref<6x4xbf16>
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

// -----

// CHECK-LABEL: @no_fusion_when_the_first_collects
// CHECK: loop.kernel "collect"
// CHECK: loop.kernel "neg"
func.func @no_fusion_when_the_first_collects(%x: tensor<64x16x8xf32>) -> tensor<64x8xf32> {
  %a = loop.kernel "collect" outs(%o : memref<64x8xf32>) -> tensor<64x8xf32> {
    %l = loop.local (8) : memref<8xf32>
    %z = arith.constant 0.0 : f32
    loop.parallel (%i) to (64) {
      loop.parallel (%c) to (8) {
        loop.write %z, %l[%c] : memref<8xf32>
      }
      loop.parallel (%j, %k) to (16, 8) {
        %v = loop.read %x[%i, %j, %k] : tensor<64x16x8xf32>
        loop.write %v, %l[%k] add : memref<8xf32>
      }
      loop.parallel (%k) to (8) {
        %t = loop.read %l[%k] : memref<8xf32>
        loop.write %t, %o[%i, %k] : memref<64x8xf32>
      }
    }
  }
  %b = loop.kernel "neg" outs(%o : memref<64x8xf32>) -> tensor<64x8xf32> {
    loop.parallel (%i, %k) to (64, 8) {
      %v = loop.read %a[%i, %k] : tensor<64x8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %k] : memref<64x8xf32>
    }
  }
  func.return %b : tensor<64x8xf32>
}

// CHECK-LABEL: @no_fusion_when_the_second_collects
// CHECK: loop.kernel "neg"
// CHECK: loop.kernel "collect"
func.func @no_fusion_when_the_second_collects(%x: tensor<64x16x8xf32>) -> tensor<64x8xf32> {
  %a = loop.kernel "neg" outs(%o : memref<64x16x8xf32>) -> tensor<64x16x8xf32> {
    loop.parallel (%i, %j, %k) to (64, 16, 8) {
      %v = loop.read %x[%i, %j, %k] : tensor<64x16x8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i, %j, %k] : memref<64x16x8xf32>
    }
  }
  %b = loop.kernel "collect" outs(%o : memref<64x8xf32>) -> tensor<64x8xf32> {
    %l = loop.local (8) : memref<8xf32>
    %z = arith.constant 0.0 : f32
    loop.parallel (%i) to (64) {
      loop.parallel (%c) to (8) {
        loop.write %z, %l[%c] : memref<8xf32>
      }
      loop.parallel (%j, %k) to (16, 8) {
        %v = loop.read %a[%i, %j, %k] : tensor<64x16x8xf32>
        loop.write %v, %l[%k] add : memref<8xf32>
      }
      loop.parallel (%k) to (8) {
        %t = loop.read %l[%k] : memref<8xf32>
        loop.write %t, %o[%i, %k] : memref<64x8xf32>
      }
    }
  }
  func.return %b : tensor<64x8xf32>
}

// Of two elements that one iteration writes, the one is read that was written there.
// CHECK-LABEL: @the_element_that_was_written
// CHECK: loop.kernel "pairs_exp"
// CHECK: %d = arith.addf %v, %v
// CHECK: math.exp %d
func.func @the_element_that_was_written(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = loop.kernel "pairs" outs(%o : memref<8x2xf32>) -> tensor<8x2xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %d = arith.addf %v, %v : f32
      loop.write %v, %o[%i, 0] : memref<8x2xf32>
      loop.write %d, %o[%i, 1] : memref<8x2xf32>
    }
  }
  %b = loop.kernel "exp" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %a[%i, 1] : tensor<8x2xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %b : tensor<8xf32>
}

// CHECK-LABEL: @no_fusion_when_a_nest_repeats_the_points_of_a_product
// CHECK: loop.kernel "matmul"
// CHECK: loop.kernel "add"
func.func @no_fusion_when_a_nest_repeats_the_points_of_a_product(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %z: tensor<6x8x3xf32>) -> tensor<6x8x3xf32> {
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
      loop.write %s, %o[%i, %j] : memref<6x8xf32>
    }
  }
  %a = loop.kernel "add" outs(%o : memref<6x8x3xf32>) -> tensor<6x8x3xf32> {
    loop.parallel (%i, %j, %n) to (6, 8, 3) {
      %v = loop.read %m[%i, %j] : tensor<6x8xf32>
      %u = loop.read %z[%i, %j, %n] : tensor<6x8x3xf32>
      %t = arith.addf %v, %u : f32
      loop.write %t, %o[%i, %j, %n] : memref<6x8x3xf32>
    }
  }
  func.return %a : tensor<6x8x3xf32>
}

// -----

// A group takes up what is summed for its channels.
// CHECK-LABEL: @groups_of_channels
// CHECK: loop.kernel "sum_max"
// CHECK: loop.parallel (%i, %{{\w+}}) to (8, 4)
// CHECK-NEXT: loop.reduce (%{{\w+}}) to (8) [max]
// CHECK-NEXT: loop.reduce (%k) to (900) [add]
func.func @groups_of_channels(%x: tensor<8x32x900xf32, #stepwell.layout<(8, 32, 900), (28800, 900, 1)>>) -> tensor<8x4xf32> {
  %p = loop.kernel "sum" outs(%o : memref<8x32xf32>) -> tensor<8x32xf32> {
    loop.parallel (%i, %c) to (8, 32) {
      %s = loop.reduce (%k) to (900) [add] -> f32 {
        %v = loop.read %x[%i, %c, %k] : tensor<8x32x900xf32, #stepwell.layout<(8, 32, 900), (28800, 900, 1)>>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %c] : memref<8x32xf32>
    }
  }
  %m = loop.kernel "max" outs(%o : memref<8x4xf32>) -> tensor<8x4xf32> {
    loop.parallel (%i, %g) to (8, 4) {
      %s = loop.reduce (%c) to (8) [max] -> f32 {
        %v = loop.read %p[%i, %g * 8 + %c] : tensor<8x32xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %g] : memref<8x4xf32>
    }
  }
  func.return %m : tensor<8x4xf32>
}

// -----

// So it does where channels are neighbours, and those of a group fill lines of the cache.
// CHECK-LABEL: @groups_of_lines
// CHECK: loop.kernel "sum_max"
// CHECK: loop.parallel (%i, %{{\w+}}) to (8, 4)
// CHECK-NEXT: loop.reduce (%{{\w+}}) to (16) [max]
// CHECK-NEXT: loop.reduce (%k) to (900) [add]
func.func @groups_of_lines(%x: tensor<8x64x900xf32, #stepwell.layout<(8, 64, 900), (57600, 1, 64)>>) -> tensor<8x4xf32> {
  %p = loop.kernel "sum" outs(%o : memref<8x64xf32>) -> tensor<8x64xf32> {
    loop.parallel (%i, %c) to (8, 64) {
      %s = loop.reduce (%k) to (900) [add] -> f32 {
        %v = loop.read %x[%i, %c, %k] : tensor<8x64x900xf32, #stepwell.layout<(8, 64, 900), (57600, 1, 64)>>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %c] : memref<8x64xf32>
    }
  }
  %m = loop.kernel "max" outs(%o : memref<8x4xf32>) -> tensor<8x4xf32> {
    loop.parallel (%i, %g) to (8, 4) {
      %s = loop.reduce (%c) to (16) [max] -> f32 {
        %v = loop.read %p[%i, %g * 16 + %c] : tensor<8x64xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %g] : memref<8x4xf32>
    }
  }
  func.return %m : tensor<8x4xf32>
}

// -----

// Of fewer each group would go through all lines, for a part of each: all channels are summed first.
// CHECK-LABEL: @no_groups_of_parts_of_lines
// CHECK: loop.kernel "sum_max"
// CHECK: loop.parallel (%i) to (8)
// CHECK: loop.parallel (%c) to (32)
// CHECK-NEXT: loop.reduce (%k) to (900) [add]
// CHECK: loop.parallel (%g) to (4)
// CHECK-NEXT: loop.reduce (%{{\w+}}) to (8) [max]
func.func @no_groups_of_parts_of_lines(%x: tensor<8x32x900xf32, #stepwell.layout<(8, 32, 900), (28800, 1, 32)>>) -> tensor<8x4xf32> {
  %p = loop.kernel "sum" outs(%o : memref<8x32xf32>) -> tensor<8x32xf32> {
    loop.parallel (%i, %c) to (8, 32) {
      %s = loop.reduce (%k) to (900) [add] -> f32 {
        %v = loop.read %x[%i, %c, %k] : tensor<8x32x900xf32, #stepwell.layout<(8, 32, 900), (28800, 1, 32)>>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %c] : memref<8x32xf32>
    }
  }
  %m = loop.kernel "max" outs(%o : memref<8x4xf32>) -> tensor<8x4xf32> {
    loop.parallel (%i, %g) to (8, 4) {
      %s = loop.reduce (%c) to (8) [max] -> f32 {
        %v = loop.read %p[%i, %g * 8 + %c] : tensor<8x32xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %g] : memref<8x4xf32>
    }
  }
  func.return %m : tensor<8x4xf32>
}
