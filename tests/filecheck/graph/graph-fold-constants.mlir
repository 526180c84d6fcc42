// RUN: xdsl-opt %s -p graph-fold-constants | filecheck %s

// CHECK-LABEL: @uniform_values_fold
// CHECK-NEXT: [[R:%\w+]] = graph.full f32<2.5> : tensor<4xf32>
// CHECK-NOT: graph.add
// CHECK: func.return [[R]]
func.func @uniform_values_fold() -> tensor<4xf32> {
  %a = graph.full f32<1.5> : tensor<4xf32>
  %b = graph.full f32<1.0> : tensor<4xf32>
  %c = graph.add %a, %b : tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// Halves compute in f32 and round once: 2049 has no f16, so 2048 + 1 stays 2048.
// CHECK-LABEL: @halves_round_once
// CHECK: graph.full f16<2.048e+03>
func.func @halves_round_once() -> tensor<4xf16> {
  %a = graph.full f16<2048.0> : tensor<4xf16>
  %b = graph.full f16<1.0> : tensor<4xf16>
  %c = graph.add %a, %b : tensor<4xf16>
  func.return %c : tensor<4xf16>
}

// CHECK-LABEL: @integers_wrap
// CHECK: graph.full i8<-128>
func.func @integers_wrap() -> tensor<4xi8> {
  %a = graph.full i8<127> : tensor<4xi8>
  %b = graph.full i8<1> : tensor<4xi8>
  %c = graph.add %a, %b : tensor<4xi8>
  func.return %c : tensor<4xi8>
}

// CHECK-LABEL: @small_tables_fold
// CHECK: graph.constant i64<2, 3, 4> : tensor<3xi64>
func.func @small_tables_fold() -> tensor<3xi64> {
  %a = graph.constant i64<1, 2, 3> : tensor<3xi64>
  %b = graph.full i64<1> : tensor<3xi64>
  %c = graph.add %a, %b : tensor<3xi64>
  func.return %c : tensor<3xi64>
}

// CHECK-LABEL: @views_of_one_value_fold
// CHECK-NEXT: graph.full f32<1.0> : tensor<2x4xf32
// CHECK-NOT: graph.broadcast
// CHECK: func.return
func.func @views_of_one_value_fold() -> tensor<2x4xf32> {
  %a = graph.full f32<1.0> : tensor<4xf32>
  %b = graph.broadcast %a : (tensor<4xf32>) -> tensor<2x4xf32>
  func.return %b : tensor<2x4xf32>
}

// CHECK-LABEL: @no_fold_when_it_may_raise
// CHECK: graph.floordiv
func.func @no_fold_when_it_may_raise() -> tensor<4xi64> {
  %a = graph.full i64<1> : tensor<4xi64>
  %b = graph.full i64<0> : tensor<4xi64>
  %c = graph.floordiv %a, %b : tensor<4xi64>
  func.return %c : tensor<4xi64>
}

// CHECK-LABEL: @no_fold_when_the_machine_decides
// CHECK: graph.convert
func.func @no_fold_when_the_machine_decides() -> tensor<4xi8> {
  %a = graph.full f32<1000.0> : tensor<4xf32>
  %b = graph.convert %a : (tensor<4xf32>) -> tensor<4xi8>
  func.return %b : tensor<4xi8>
}

// CHECK-LABEL: @no_fold_when_an_operand_varies
// CHECK: graph.add
func.func @no_fold_when_an_operand_varies(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = graph.full f32<1.0> : tensor<4xf32>
  %c = graph.add %x, %b : tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// CHECK-LABEL: @no_fold_of_elements_when_the_machine_decides
// CHECK: graph.convert
func.func @no_fold_of_elements_when_the_machine_decides() -> tensor<2xi8> {
  %a = graph.constant f32<1.0, 1000.0> : tensor<2xf32>
  %b = graph.convert %a : (tensor<2xf32>) -> tensor<2xi8>
  func.return %b : tensor<2xi8>
}
