// RUN: xdsl-opt %s -p convert-graph-to-loop | filecheck %s

// Each native graph op becomes one kernel over the dims of its result; views and numbers become none.

func.func @elementwise(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %z = graph.add %x, %y : tensor<4x8xf32>
  func.return %z : tensor<4x8xf32>
}
// CHECK-LABEL: @elementwise
// CHECK: [[Z:%\w+]] = loop.kernel "add" outs([[O:%\w+]]: memref<4x8xf32>) -> tensor<4x8xf32> {
// CHECK-NEXT: loop.parallel ([[I:%\w+]], [[J:%\w+]]) to (4, 8) {
// CHECK-NEXT: [[V:%\w+]] = loop.read %x[[[I]], [[J]]]
// CHECK-NEXT: [[W:%\w+]] = loop.read %y[[[I]], [[J]]]
// CHECK-NEXT: [[S:%\w+]] = arith.addf [[V]], [[W]] : f32
// CHECK-NEXT: loop.write [[S]], [[O]][[[I]], [[J]]]
// CHECK: func.return [[Z]]

func.func @no_dims(%x: tensor<f32>) -> tensor<f32> {
  %y = graph.exp %x : tensor<f32>
  func.return %y : tensor<f32>
}
// Scalars stand in the kernel itself.
// CHECK-LABEL: @no_dims
// CHECK: loop.kernel "exp"
// CHECK-NEXT: loop.read %x[] : tensor<f32>
// CHECK-NEXT: math.exp
// CHECK-NEXT: loop.write

func.func @narrow_floats(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %y = graph.sigmoid %x : tensor<8xbf16>
  func.return %y : tensor<8xbf16>
}
// One rounding per op.
// CHECK-LABEL: @narrow_floats
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK-NEXT: arith.constant 1.0{{.*}} : f32
// CHECK-NEXT: arith.negf
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.divf
// CHECK-NEXT: arith.truncf {{.*}} : f32 to bf16

func.func @no_widening_when_only_moved(%c: tensor<8xi1>, %x: tensor<8xbf16>) -> tensor<8xbf16> {
  %y = graph.select %c, %x, %x : (tensor<8xi1>, tensor<8xbf16>, tensor<8xbf16>) -> tensor<8xbf16>
  func.return %y : tensor<8xbf16>
}
// CHECK-LABEL: @no_widening_when_only_moved
// CHECK: loop.read %x{{.*}} : tensor<8xbf16>
// CHECK-NEXT: arith.select {{.*}} : bf16
// CHECK-NEXT: loop.write

func.func @unsigned(%x: tensor<8xui8>) -> tensor<8xi1> {
  %y = graph.compare %x, %x is lt : (tensor<8xui8>, tensor<8xui8>) -> tensor<8xi1>
  func.return %y : tensor<8xi1>
}
// CHECK-LABEL: @unsigned
// CHECK: arith.cmpi ult, {{.*}} : i8

func.func @integer_division(%x: tensor<8xi64>, %y: tensor<8xi64>) -> tensor<8xi64> {
  %z = graph.truncdiv %x, %y : tensor<8xi64>
  func.return %z : tensor<8xi64>
}
// A zero is recorded and, as -1, never divided by.
// CHECK-LABEL: @integer_division
// CHECK: [[D:%\w+]] = loop.read %y
// CHECK: loop.assert {{.*}}, "RuntimeError", "ZeroDivisionError"
// CHECK: [[SAFE:%\w+]] = arith.select {{.*}}, [[D]] : i64
// CHECK-NEXT: arith.divsi %{{\w+}}, [[SAFE]] : i64

func.func @probability(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = graph.probability %x : tensor<8xf32>
  func.return %y : tensor<8xf32>
}
// NaN is no probability either.
// CHECK-LABEL: @probability
// CHECK: [[P:%\w+]] = loop.read %x
// CHECK-DAG: arith.cmpf oge, [[P]], {{.*}} : f32
// CHECK-DAG: arith.cmpf ole, [[P]], {{.*}} : f32
// CHECK: loop.assert {{.*}}, "RuntimeError", "all elements of input should be between 0 and 1"
// CHECK: loop.write [[P]]

func.func @copies_of_types_that_no_kernel_reads(%x: tensor<4x!graph.dtype<"complex64">>) -> (tensor<4x!graph.dtype<"complex64">>, tensor<4x!graph.dtype<"complex64">>) attributes {stepwell.storages = array<i64: 1, 2>} {
  %y = graph.extern "aten.exp.default"(%x) : (tensor<4x!graph.dtype<"complex64">>) -> tensor<4x!graph.dtype<"complex64">>
  func.return %y, %y : tensor<4x!graph.dtype<"complex64">>, tensor<4x!graph.dtype<"complex64">>
}
// CHECK-LABEL: @copies_of_types_that_no_kernel_reads
// CHECK: [[Y:%\w+]] = graph.extern "aten.exp.default"
// CHECK: [[COPY:%\w+]] = graph.extern "aten.clone.default"([[Y]])
// CHECK: func.return [[Y]], [[COPY]]

func.func @no_check_when_the_divisor_is_known(%x: tensor<8xi64>) -> tensor<8xi64> {
  %c = graph.full i64<3> : tensor<8xi64>
  %z = graph.truncdiv %x, %c : tensor<8xi64>
  func.return %z : tensor<8xi64>
}
// CHECK-LABEL: @no_check_when_the_divisor_is_known
// CHECK: [[C:%\w+]] = arith.constant 3 : i64
// CHECK-NEXT: arith.divsi %{{\w+}}, [[C]] : i64
// CHECK-NEXT: loop.write

func.func @views(%x: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %t = graph.permute %x [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32, #stepwell.layout<(6, 4), (1, 6)>>
  %f = graph.flip %t [0] : (tensor<6x4xf32, #stepwell.layout<(6, 4), (1, 6)>>) -> tensor<6x4xf32>
  %r = graph.reshape %f : (tensor<6x4xf32>) -> tensor<24xf32>
  %s = graph.reshape %r : (tensor<24xf32>) -> tensor<6x4xf32>
  %y = graph.exp %s : tensor<6x4xf32>
  func.return %y : tensor<6x4xf32>
}
// Four views are one index map, and divisions that undo each other are gone.
// CHECK-LABEL: @views
// CHECK-NEXT: loop.kernel "exp"
// CHECK-NEXT: loop.parallel ([[I:%\w+]], [[J:%\w+]]) to (6, 4) {
// CHECK-NEXT: loop.read %x[[[J]], {{-}}[[I]] + 5]
// CHECK-NEXT: math.exp

func.func @returned_view(%x: tensor<4x6xf32>) -> tensor<6x4xf32, #stepwell.layout<(6, 4), (1, 6)>> {
  %e = graph.exp %x : tensor<4x6xf32>
  %t = graph.permute %e [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32, #stepwell.layout<(6, 4), (1, 6)>>
  func.return %t : tensor<6x4xf32, #stepwell.layout<(6, 4), (1, 6)>>
}
// CHECK-LABEL: @returned_view
// CHECK: [[E:%\w+]] = loop.kernel "exp"
// CHECK: [[T:%\w+]] = host.view [[E]][(0)] : tensor<4x6xf32> -> tensor<6x4xf32, #stepwell.layout<(6, 4), (1, 6)>>
// CHECK-NEXT: func.return [[T]]

func.func @no_view_when_strides_differ(%x: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %e = graph.exp %x : tensor<4x6xf32>
  %t = graph.permute %e [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  func.return %t : tensor<6x4xf32>
}
// CHECK-LABEL: @no_view_when_strides_differ
// CHECK: loop.kernel "exp"
// CHECK: [[T:%\w+]] = loop.kernel "permute"
// CHECK: func.return [[T]]

func.func @numbers(%s0: index, %x: tensor<?xf32, #stepwell.layout<(s0), (1)>>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>> attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
  %c = graph.full f32<2.0> : tensor<f32>
  %b = graph.broadcast %c : (tensor<f32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  %m = graph.mul %x, %b : tensor<?xf32, #stepwell.layout<(s0), (1)>>
  %n = graph.size (s0) : tensor<i64>
  %f = graph.convert %n : (tensor<i64>) -> tensor<f32>
  %w = graph.broadcast %f : (tensor<f32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  %y = graph.div %m, %w : tensor<?xf32, #stepwell.layout<(s0), (1)>>
  func.return %y : tensor<?xf32, #stepwell.layout<(s0), (1)>>
}
// CHECK-LABEL: @numbers
// CHECK-NEXT: loop.kernel "mul"
// CHECK-NEXT: loop.parallel ({{.*}}) to (s0) {
// CHECK-NEXT: loop.read %x
// CHECK-NEXT: arith.constant 2.0{{.*}} : f32
// CHECK: loop.kernel "convert"
// CHECK-NEXT: [[N:%\w+]] = loop.index [s0] : i64
// CHECK-NEXT: arith.sitofp [[N]] : i64 to f32

func.func @reduction(%x: tensor<4x8x3xf32>) -> tensor<8xf32> {
  %y = graph.sum %x [0, 2] : (tensor<4x8x3xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}
// CHECK-LABEL: @reduction
// CHECK: loop.parallel ([[J:%\w+]]) to (8) {
// CHECK-NEXT: [[SUM:%\w+]] = loop.reduce ([[I:%\w+]], [[K:%\w+]]) to (4, 3) [add] -> f32 {
// CHECK-NEXT: [[V:%\w+]] = loop.read %x[[[I]], [[J]], [[K]]]
// CHECK-NEXT: loop.yield [[V]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: loop.write [[SUM]], %{{\w+}}[[[J]]]

func.func @full_reduction(%x: tensor<8xbf16>) -> tensor<bf16> {
  %y = graph.sum %x [0] : (tensor<8xbf16>) -> tensor<bf16>
  func.return %y : tensor<bf16>
}
// CHECK-LABEL: @full_reduction
// CHECK: loop.kernel "sum"
// CHECK-NEXT: [[SUM:%\w+]] = loop.reduce ({{.*}}) to (8) [add] -> f32 {
// CHECK: arith.truncf [[SUM]] : f32 to bf16
// CHECK-NEXT: loop.write

func.func @index_reduction(%x: tensor<4x8xf32>) -> tensor<4xi64> {
  %y = graph.argmax %x [1] : (tensor<4x8xf32>) -> tensor<4xi64>
  func.return %y : tensor<4xi64>
}
// CHECK-LABEL: @index_reduction
// CHECK: %{{\w+}}, [[INDEX:%\w+]] = loop.reduce ([[J:%\w+]]) to (8) [argmax] -> f32, i32 {
// CHECK: [[NUMBER:%\w+]] = loop.index [[[J]]] : i64
// CHECK: arith.trunci [[NUMBER]] : i64 to i32
// CHECK: [[WIDE:%\w+]] = arith.extsi [[INDEX]] : i32 to i64
// CHECK: loop.write [[WIDE]]

// Places in rows that may be longer than 32 bits count stay as they are.
func.func @long_index_reduction(%x: tensor<2147483648xf32>) -> tensor<i64> {
  %y = graph.argmax %x [0] : (tensor<2147483648xf32>) -> tensor<i64>
  func.return %y : tensor<i64>
}
// CHECK-LABEL: @long_index_reduction
// CHECK: [[INDEX:%\w+]] = loop.reduce ([[J:%\w+]]) to (2147483648) [argmax] -> f32, i64 {
// CHECK-NOT: arith.trunci
// CHECK: loop.write [[INDEX]]

func.func @scan(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = graph.scan %x dim 0 with add : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
// Eager accumulates in f64.
// CHECK-LABEL: @scan
// CHECK: loop.parallel ([[J:%\w+]]) to (8) {
// CHECK: loop.for ([[I:%\w+]]) to (4) carry ([[SUM:%\w+]] = %{{\w+}} : f64) {
// CHECK-NEXT: loop.read %x[[[I]], [[J]]]
// CHECK: arith.addf [[SUM]], {{.*}} : f64
// CHECK: loop.write {{.*}}[[[I]], [[J]]]
// CHECK-NEXT: loop.yield

func.func @indexing(%x: tensor<9x8xf32>, %i: tensor<5xi64>) -> tensor<5x8xf32> {
  %y = graph.index %x, %i dims [0] bounds index : (tensor<9x8xf32>, tensor<5xi64>) -> tensor<5x8xf32>
  func.return %y : tensor<5x8xf32>
}
// Wrapped, checked, made harmless.
// CHECK-LABEL: @indexing
// CHECK: [[I:%\w+]] = loop.read %i
// CHECK: [[NEGATIVE:%\w+]] = arith.cmpi slt, [[I]]
// CHECK: [[WRAPPED:%\w+]] = arith.select [[NEGATIVE]]
// CHECK: [[INSIDE:%\w+]] = arith.cmpi ult, [[WRAPPED]]
// CHECK-NEXT: loop.assert [[INSIDE]], [[I]], "IndexError", "index {} is out of bounds for dimension 0 with size 9"
// CHECK-NEXT: [[SAFE:%\w+]] = arith.select [[INSIDE]], [[WRAPPED]]
// CHECK-NEXT: [[ROW:%\w+]] = arith.index_cast [[SAFE]] : i64 to index
// CHECK-NEXT: loop.read %x[[[ROW]], %{{\w+}}]

func.func @no_check_when_the_index_is_a_formula(%x: tensor<9x8xf32>) -> tensor<5x8xf32> {
  %i = graph.iota from (0) step (2) : tensor<5xi64>
  %y = graph.index %x, %i dims [0] bounds index : (tensor<9x8xf32>, tensor<5xi64>) -> tensor<5x8xf32>
  func.return %y : tensor<5x8xf32>
}
// CHECK-LABEL: @no_check_when_the_index_is_a_formula
// CHECK: loop.parallel ([[I:%\w+]], [[J:%\w+]]) to (5, 8) {
// CHECK-NEXT: loop.read %x[[[I]] * 2, [[J]]]

func.func @accumulating_scatter(%v: tensor<5x8xf32>, %i: tensor<5xi64>) -> tensor<9x8xf32> {
  %z = graph.full f32<0.0> : tensor<9x8xf32>
  %y = graph.index_put %z, %v, %i dims [0] bounds select with add : (tensor<9x8xf32>, tensor<5x8xf32>, tensor<5xi64>) -> tensor<9x8xf32>
  func.return %y : tensor<9x8xf32>
}
// The destination starts as the base.
// CHECK-LABEL: @accumulating_scatter
// CHECK: [[BASE:%\w+]] = loop.kernel "full"
// CHECK: loop.kernel "index_put" outs([[O:%\w+]]: memref<9x8xf32> = [[BASE]])
// CHECK-NEXT: loop.parallel ({{.*}}) to (5, 8) {
// CHECK: loop.write {{.*}}, [[O]][{{.*}}] add

func.func @each_scatter_fills_its_own_base(%v: tensor<5x8xf32>, %i: tensor<5xi64>) -> (tensor<9x8xf32>, tensor<9x8xf32>) {
  %z = graph.full f32<0.0> : tensor<9x8xf32>
  %y0 = graph.index_put %z, %v, %i dims [0] bounds select with add : (tensor<9x8xf32>, tensor<5x8xf32>, tensor<5xi64>) -> tensor<9x8xf32>
  %y1 = graph.index_put %z, %v, %i dims [0] bounds select : (tensor<9x8xf32>, tensor<5x8xf32>, tensor<5xi64>) -> tensor<9x8xf32>
  func.return %y0, %y1 : tensor<9x8xf32>, tensor<9x8xf32>
}

// CHECK-LABEL: @each_scatter_fills_its_own_base
// CHECK-DAG: [[FIRST:%\w+]] = loop.kernel "full"
// CHECK-DAG: [[SECOND:%\w+]] = loop.kernel "full"
// CHECK: loop.kernel "index_put" outs(%{{\w+}}: memref<9x8xf32> = [[SECOND]])
// CHECK: loop.kernel "index_put" outs(%{{\w+}}: memref<9x8xf32> = [[FIRST]])

func.func @overwriting_scatter(%x: tensor<4x8xf32>, %i: tensor<4x2xi64>, %v: tensor<4x2xf32>) -> tensor<4x8xf32> {
  %y = graph.scatter %x, %i, %v dim 1 bounds gather : (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
// In order along the dim, so that the last of repeated places stays.
// CHECK-LABEL: @overwriting_scatter
// CHECK: loop.kernel "scatter" outs(%{{\w+}}: memref<4x8xf32> = %x)
// CHECK-NEXT: loop.parallel ([[I:%\w+]]) to (4) {
// CHECK-NEXT: loop.for ([[J:%\w+]]) to (2) carry () {
// CHECK: loop.read %v[[[I]], [[J]]]

func.func @joining(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>) -> tensor<4x10xf32> {
  %z = graph.cat %x, %y dim 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  func.return %z : tensor<4x10xf32>
}
// CHECK-LABEL: @joining
// CHECK: [[FIRST:%\w+]] = loop.read %x[%{{\w+}}, [[J:%\w+]]] if
// CHECK: loop.read %y[%{{\w+}}, [[J]] - 8] if %{{\w+}} else [[FIRST]]

func.func @padding(%x: tensor<4x8xf32>) -> tensor<4x11xf32> {
  %y = graph.pad %x low (0, 1) value f32<-1.0> : (tensor<4x8xf32>) -> tensor<4x11xf32>
  func.return %y : tensor<4x11xf32>
}
// One unsigned comparison bounds both sides.
// CHECK-LABEL: @padding
// CHECK: [[K:%\w+]] = loop.index [[[J:%\w+]] - 1] : i64
// CHECK: [[INSIDE:%\w+]] = arith.cmpi ult, [[K]]
// CHECK: [[AROUND:%\w+]] = arith.constant -1.0
// CHECK: loop.read %x[%{{\w+}}, [[J]] - 1] if [[INSIDE]] else [[AROUND]]

func.func @random(%seed: tensor<i64>) -> tensor<4x8xi32> {
  %y = graph.random %seed stream 3 : (tensor<i64>) -> tensor<4x8xi32>
  func.return %y : tensor<4x8xi32>
}
// CHECK-LABEL: @random
// CHECK: [[PLACE:%\w+]] = loop.index [%{{\w+}} * 8 + %{{\w+}}] : i64
// CHECK-NEXT: loop.philox %{{\w+}}, [[PLACE]] stream 3

func.func @what_the_host_does(%x: tensor<4x8xf32>, %y: tensor<8x6xf32>, %o: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %p = graph.matmul %x, %y : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %c = graph.erfc %p : tensor<4x6xf32>
  graph.copy_into %c, %o : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
  func.return %p : tensor<4x6xf32>
}
// CHECK-LABEL: @what_the_host_does
// CHECK-NEXT: [[P:%\w+]] = graph.matmul %x, %y
// CHECK-NEXT: [[C:%\w+]] = graph.extern "aten.erfc.default"([[P]])
// CHECK-NEXT: graph.copy_into [[C]], %o
// CHECK-NEXT: func.return [[P]]

func.func @known_sizes(%x: tensor<4xi64>) -> tensor<4xi64> {
  %n = graph.size (5) : tensor<i64>
  %b = graph.broadcast %n : (tensor<i64>) -> tensor<4xi64>
  %y = graph.add %x, %b : tensor<4xi64>
  func.return %y : tensor<4xi64>
}
// CHECK-LABEL: @known_sizes
// CHECK: arith.constant 5 : i64

func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
// What is declared, or is no function, stays.
// CHECK-LABEL: func.func private @declared

builtin.module @other {
}
// CHECK: builtin.module @other
