// RUN: xdsl-opt %s -p graph-simplify-algebra | filecheck %s

// CHECK-LABEL: @neutral_operands_drop
// CHECK-NOT: graph.mul
// CHECK-NOT: graph.sub
// CHECK: func.return %x
func.func @neutral_operands_drop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %one = graph.full f32<1.0> : tensor<4xf32>
  %zero = graph.full f32<0.0> : tensor<4xf32>
  %a = graph.mul %one, %x : tensor<4xf32>
  %b = graph.sub %a, %zero : tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// CHECK-LABEL: @no_drop_when_zero_is_added_to_a_float
// CHECK: graph.add
func.func @no_drop_when_zero_is_added_to_a_float(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = graph.full f32<0.0> : tensor<4xf32>
  %a = graph.add %x, %zero : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @minus_zero_is_neutral_in_addition
// CHECK: func.return %x
func.func @minus_zero_is_neutral_in_addition(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = graph.full f32<-0.0> : tensor<4xf32>
  %a = graph.add %x, %zero : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @no_drop_when_minus_zero_is_subtracted
// CHECK: graph.sub
func.func @no_drop_when_minus_zero_is_subtracted(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = graph.full f32<-0.0> : tensor<4xf32>
  %a = graph.sub %x, %zero : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @no_drop_when_the_layout_changes
// CHECK: graph.mul
func.func @no_drop_when_the_layout_changes(%x: tensor<4x8xf32, #stepwell.layout<(4, 8), (1, 4)>>) -> tensor<4x8xf32> {
  %one = graph.full f32<1.0> : tensor<4x8xf32>
  %a = graph.mul %x, %one : (tensor<4x8xf32, #stepwell.layout<(4, 8), (1, 4)>>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %a : tensor<4x8xf32>
}

// CHECK-LABEL: @integer_products_with_zero_vanish
// CHECK: [[Z:%\w+]] = graph.full i64<0>
// CHECK: func.return [[Z]]
func.func @integer_products_with_zero_vanish(%x: tensor<4xi64>) -> tensor<4xi64> {
  %zero = graph.full i64<0> : tensor<4xi64>
  %a = graph.mul %x, %zero : tensor<4xi64>
  func.return %a : tensor<4xi64>
}

// CHECK-LABEL: @no_annihilation_when_floats_may_be_nan
// CHECK: graph.mul
func.func @no_annihilation_when_floats_may_be_nan(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = graph.full f32<0.0> : tensor<4xf32>
  %a = graph.mul %x, %zero : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @integer_differences_cancel
// CHECK: graph.full i32<0>
func.func @integer_differences_cancel(%x: tensor<4xi32>) -> tensor<4xi32> {
  %a = graph.sub %x, %x : tensor<4xi32>
  func.return %a : tensor<4xi32>
}

// CHECK-LABEL: @no_cancel_when_floats_may_be_infinite
// CHECK: graph.sub
func.func @no_cancel_when_floats_may_be_infinite(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.sub %x, %x : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @powers_of_two_multiply
// CHECK: graph.full f32<0.125>
// CHECK: graph.mul
func.func @powers_of_two_multiply(%x: tensor<4xf32>) -> tensor<4xf32> {
  %eight = graph.full f32<8.0> : tensor<4xf32>
  %a = graph.div %x, %eight : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @no_multiply_when_the_reciprocal_rounds
// CHECK: graph.div
func.func @no_multiply_when_the_reciprocal_rounds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %three = graph.full f32<3.0> : tensor<4xf32>
  %a = graph.div %x, %three : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @squares_multiply
// CHECK: graph.mul %x, %x
// CHECK-NOT: graph.pow
// CHECK: func.return
func.func @squares_multiply(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = graph.full f32<2.0> : tensor<4xf32>
  %a = graph.pow %x, %two : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @no_square_when_halves_would_round_twice
// CHECK: graph.pow
func.func @no_square_when_halves_would_round_twice(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %three = graph.full bf16<3.0> : tensor<4xbf16>
  %a = graph.pow %x, %three : tensor<4xbf16>
  func.return %a : tensor<4xbf16>
}

// CHECK-LABEL: @inverses_cancel
// CHECK: func.return %x
func.func @inverses_cancel(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.neg %x : tensor<4xf32>
  %b = graph.neg %a : tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// CHECK-LABEL: @repetition_drops
// CHECK: [[R:%\w+]] = graph.relu %x
// CHECK-NEXT: func.return [[R]]
func.func @repetition_drops(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.relu %x : tensor<4xf32>
  %b = graph.relu %a : tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// CHECK-LABEL: @constant_conditions_choose
// CHECK: func.return %y
func.func @constant_conditions_choose(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.full i1<false> : tensor<4xi1>
  %a = graph.select %c, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @equal_operands_collapse
// CHECK: func.return %x
func.func @equal_operands_collapse(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.maximum %x, %x : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @widening_and_back_is_nothing
// CHECK: func.return %x
func.func @widening_and_back_is_nothing(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %a = graph.convert %x : (tensor<4xbf16>) -> tensor<4xf32>
  %b = graph.convert %a : (tensor<4xf32>) -> tensor<4xbf16>
  func.return %b : tensor<4xbf16>
}

// CHECK-LABEL: @no_join_when_the_middle_rounds
// CHECK: graph.convert
// CHECK: graph.convert
func.func @no_join_when_the_middle_rounds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
  %b = graph.convert %a : (tensor<4xbf16>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// CHECK-LABEL: @no_change_when_the_layout_differs
// CHECK: graph.neg
// CHECK: graph.neg
// CHECK: graph.relu
// CHECK: graph.relu
func.func @no_change_when_the_layout_differs(%x: tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %a = graph.neg %x : (tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>) -> tensor<2x4xf32>
  %b = graph.neg %a : tensor<2x4xf32>
  %c = graph.relu %x : tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>
  %d = graph.relu %c : (tensor<2x4xf32, #stepwell.layout<(2, 4), (1, 2)>>) -> tensor<2x4xf32>
  func.return %b, %d : tensor<2x4xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: @products_by_the_inverse_of_what_is_normal_in_every_type
// CHECK: graph.full f32<6.1035156e-05>
// CHECK-NEXT: graph.mul
// CHECK: graph.full f32<-6.1035156e-05>
// CHECK-NEXT: graph.mul
// CHECK: graph.full f32<16384.0>
// CHECK-NEXT: graph.mul
func.func @products_by_the_inverse_of_what_is_normal_in_every_type(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %n0 = graph.full f32<16384.0> : tensor<4xf32>
  %r0 = graph.div %x, %n0 : tensor<4xf32>
  %n1 = graph.full f32<-16384.0> : tensor<4xf32>
  %r1 = graph.div %x, %n1 : tensor<4xf32>
  %n2 = graph.full f32<6.103515625e-05> : tensor<4xf32>
  %r2 = graph.div %x, %n2 : tensor<4xf32>
  func.return %r0, %r1, %r2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @no_product_when_the_inverse_or_the_divisor_is_not_normal_in_every_type
// CHECK: graph.div
// CHECK: graph.div
// CHECK: graph.div
func.func @no_product_when_the_inverse_or_the_divisor_is_not_normal_in_every_type(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %n0 = graph.full f32<32768.0> : tensor<4xf32>
  %r0 = graph.div %x, %n0 : tensor<4xf32>
  %n1 = graph.full f32<3.0517578125e-05> : tensor<4xf32>
  %r1 = graph.div %x, %n1 : tensor<4xf32>
  %n2 = graph.full f32<0.0> : tensor<4xf32>
  %r2 = graph.div %x, %n2 : tensor<4xf32>
  func.return %r0, %r1, %r2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// neg(not x) is x + 1.
// CHECK-LABEL: @no_rewrite_when_not_is_negated
// CHECK: graph.not
// CHECK: graph.neg
func.func @no_rewrite_when_not_is_negated(%x: tensor<4xi64>) -> tensor<4xi64> {
  %a = graph.not %x : tensor<4xi64>
  %b = graph.neg %a : tensor<4xi64>
  func.return %b : tensor<4xi64>
}
