// RUN: xdsl-opt --verify-diagnostics --split-input-file %s | filecheck %s

func.func @add_of_different_sizes(%x: tensor<4xf32>, %y: tensor<1xf32>) {
  %z = graph.add %x, %y : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return
}
// CHECK: graph.add: expected operands of sizes (4), got (1)

// -----

func.func @add_of_bools(%x: tensor<4xi1>) {
  %z = graph.add %x, %x : tensor<4xi1>
  func.return
}
// CHECK: graph.add: expected an element type that it computes on, got i1

// -----

func.func @add_of_mixed_elements(%x: tensor<4xf32>, %y: tensor<4xbf16>) {
  %z = graph.add %x, %y : (tensor<4xf32>, tensor<4xbf16>) -> tensor<4xf32>
  func.return
}
// CHECK: graph.add: expected operands of element type f32, got bf16

// -----

func.func @exp_of_integers(%x: tensor<4xi64>) {
  %z = graph.exp %x : tensor<4xi64>
  func.return
}
// CHECK: graph.exp: expected an element type that it computes on, got i64

// -----

func.func @unknown_predicate(%x: tensor<4xf32>) {
  %z = graph.compare %x, %x is above : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  func.return
}
// CHECK: graph.compare: expected a predicate of eq, ne, lt, le, gt, ge, got above

// -----

func.func @select_by_numbers(%x: tensor<4xf32>) {
  %z = graph.select %x, %x, %x : tensor<4xf32>
  func.return
}
// CHECK: graph.select: expected a condition of element type i1, got f32

// -----

func.func @bitcast_to_wider(%x: tensor<4xf32>) {
  %z = graph.bitcast %x : (tensor<4xf32>) -> tensor<4xf64>
  func.return
}
// CHECK: graph.bitcast: expected a result element of 4 bytes, got 8 bytes

// -----

func.func @sum_of_missing_dim(%x: tensor<4x8xf32>) {
  %z = graph.sum %x [2] : (tensor<4x8xf32>) -> tensor<4xf32>
  func.return
}
// CHECK: graph.sum: expected distinct dims below 2, got [2]

// -----

func.func @sum_that_keeps_its_dim(%x: tensor<4x8xf32>) {
  %z = graph.sum %x [1] : (tensor<4x8xf32>) -> tensor<4x1xf32>
  func.return
}
// CHECK: graph.sum: expected a result of sizes (4), got (4, 1)

// -----

func.func @argmax_over_two_dims(%x: tensor<4x8xf32>) {
  %z = graph.argmax %x [0, 1] : (tensor<4x8xf32>) -> tensor<i64>
  func.return
}
// CHECK: graph.argmax: expected one dim, got [0, 1]

// -----

func.func @permute_that_repeats(%x: tensor<4x8xf32>) {
  %z = graph.permute %x [0, 0] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  func.return
}
// CHECK: graph.permute: expected a permutation of 2 dims, got [0, 0]

// -----

func.func @reshape_that_loses_elements(%x: tensor<4x8xf32>) {
  %z = graph.reshape %x : (tensor<4x8xf32>) -> tensor<31xf32>
  func.return
}
// CHECK: graph.reshape: expected 32 elements, got (31)

// -----

func.func @broadcast_of_a_real_dim(%x: tensor<4xf32>) {
  %z = graph.broadcast %x : (tensor<4xf32>) -> tensor<8xf32>
  func.return
}
// CHECK: graph.broadcast: expected sizes that (4) broadcasts to, got (8)

// -----

func.func @slice_past_the_end(%x: tensor<8xf32>) {
  %z = graph.slice %x from (4) step (2) : (tensor<8xf32>) -> tensor<3xf32>
  func.return
}
// CHECK: graph.slice: expected indices below 8, got 4 to 8

// -----

func.func @full_of_another_type() {
  %z = graph.full f64<0.5> : tensor<4xf32>
  func.return
}
// CHECK: graph.full: expected one value of type f32, got 1 of f64

// -----

func.func @constant_of_too_few() {
  %z = graph.constant f32<0.5, 1.0> : tensor<4xf32>
  func.return
}
// CHECK: graph.constant: expected 4 values of type f32, got 2 of f32

// -----

func.func @unknown_bounds(%x: tensor<4xf32>, %i: tensor<2xi64>) {
  %z = graph.gather %x, %i dim 0 bounds none : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}
// CHECK: graph.gather: expected bounds of index, select, copy, gather, target, wrapped, unchecked, got none

// -----

func.func @index_by_floats(%x: tensor<4xf32>, %i: tensor<2xf32>) {
  %z = graph.index %x, %i dims [0] bounds index : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}
// CHECK: graph.index: expected indices of i64 or i32, got tensor<2xf32>

// -----

func.func @cat_of_other_rows(%x: tensor<4x8xf32>, %y: tensor<5x8xf32>) {
  %z = graph.cat %x, %y dim 1 : (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<4x16xf32>
  func.return
}
// CHECK: graph.cat: expected operands of sizes (4, 16) but for dim 1, got tensor<5x8xf32>

// -----

func.func @pad_that_cuts(%x: tensor<8xf32>) {
  %z = graph.pad %x low (1) value f32<0.0> : (tensor<8xf32>) -> tensor<8xf32>
  func.return
}
// CHECK: graph.pad: expected paddings of at least 0, got 1 and -1

// -----

func.func @matmul_of_other_depth(%x: tensor<4x8xf32>, %y: tensor<7x6xf32>) {
  %z = graph.matmul %x, %y : (tensor<4x8xf32>, tensor<7x6xf32>) -> tensor<4x6xf32>
  func.return
}
// CHECK: graph.matmul: expected matching sizes, got (4, 8) and (7, 6)

// -----

func.func @unknown_effect(%x: tensor<4xf32>) {
  %z = graph.extern "aten.rand_like.default"(%x) effect luck : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
// CHECK: graph.extern: expected an effect of check, random, write, got luck

// -----

func.func @copy_into_smaller(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  graph.copy_into %x, %y : (tensor<8xf32>, tensor<4xf32>) -> ()
  func.return
}
// CHECK: graph.copy_into: expected a value like its target tensor<4xf32>, got tensor<8xf32>

// -----

func.func @a_symbol_that_the_function_does_not_declare(%x: tensor<4xf32>) {
  %n = graph.extern "aten.f.default"(%x) defines (s0 = size(0, 0)) : (tensor<4xf32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  func.return
}
// CHECK: graph.extern: expected the function to declare s0, got no such symbol

// -----

func.func @a_symbol_used_before_its_definition(%x: tensor<4xf32>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %z = graph.full f32<0.0> : tensor<?xf32, #stepwell.layout<(s0), (1)>>
  %n = graph.extern "aten.f.default"(%x) defines (s0 = size(0, 0)) : (tensor<4xf32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  func.return
}
// CHECK: graph.extern: expected no use of s0 before it is defined, got one in graph.full

// -----

func.func @a_symbol_defined_twice(%x: tensor<4xf32>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %m = graph.extern "aten.f.default"(%x) defines (s0 = size(0, 0)) : (tensor<4xf32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  %n = graph.extern "aten.f.default"(%x) defines (s0 = size(0, 0)) : (tensor<4xf32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  func.return
}
// CHECK: graph.extern: expected no use of s0 before it is defined, got one in graph.extern

// -----

func.func @a_number_that_is_a_tensor(%x: tensor<4xf32>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %n = graph.extern "aten.f.default"(%x) defines (s0 = value(0)) : (tensor<4xf32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  func.return
}
// CHECK: graph.extern: expected the value of an index or a measure of a tensor, got s0 = value(0) of

// -----

func.func @a_size_of_no_dim(%x: tensor<4xf32>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %n = graph.extern "aten.f.default"(%x) defines (s0 = size(0, 1)) : (tensor<4xf32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  func.return
}
// CHECK: graph.extern: expected the value of an index or a measure of a tensor, got s0 = size(0, 1) of

// -----

func.func @a_size_of_no_result(%x: tensor<4xf32>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %n = graph.extern "aten.f.default"(%x) defines (s0 = size(1, 0)) : (tensor<4xf32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  func.return
}
// CHECK: graph.extern: expected a symbol of one of 1 results, got s0 = size(1, 0)

// -----

func.func @an_unknown_measure(%x: tensor<4xf32>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %n = graph.extern "aten.f.default"(%x) defines (s0 = rank(0)) : (tensor<4xf32>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  func.return
}
// CHECK: graph.extern: expected a measure of value, size, offset, got s0 = rank(0)

// -----

func.func @an_argument_of_a_size_defined_later(%x: tensor<?xf32, #stepwell.layout<(s0), (1)>>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 0, ?>]} {
  %n = graph.extern "aten.f.default"(%x) defines (s0 = size(0, 0)) : (tensor<?xf32, #stepwell.layout<(s0), (1)>>) -> tensor<?xf32, #stepwell.layout<(s0), (1)>>
  func.return
}
// CHECK: graph.extern: expected no use of s0 before it is defined, got one in argument 0
