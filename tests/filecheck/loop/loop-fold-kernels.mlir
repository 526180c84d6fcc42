// RUN: xdsl-opt %s -p loop-fold-kernels | filecheck %s

// A kernel that reads constants alone runs at compile time, and so does its reader: what windows count is known.
// CHECK-LABEL: @counts
// CHECK-NEXT: [[C:%\w+]] = graph.constant f32<2.0, 3.0, 2.0> : tensor<3xf32>
// CHECK-NEXT: loop.kernel "div"
// CHECK: loop.read [[C]]
// CHECK-NOT: graph.constant
func.func @counts(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = graph.constant i64<1, 0, 1> : tensor<3xi64>
  %n = loop.kernel "sub" outs(%o : memref<3xi64>) -> tensor<3xi64> {
    %three = arith.constant 3 : i64
    loop.parallel (%i) to (3) {
      %u = loop.read %c[%i] : tensor<3xi64>
      %v = arith.subi %three, %u : i64
      loop.write %v, %o[%i] : memref<3xi64>
    }
  }
  %f = loop.kernel "convert" outs(%o : memref<3xf32>) -> tensor<3xf32> {
    loop.parallel (%i) to (3) {
      %u = loop.read %n[%i] : tensor<3xi64>
      %v = arith.sitofp %u : i64 to f32
      loop.write %v, %o[%i] : memref<3xf32>
    }
  }
  %y = loop.kernel "div" outs(%o : memref<3xf32>) -> tensor<3xf32> {
    loop.parallel (%i) to (3) {
      %u = loop.read %x[%i] : tensor<3xf32>
      %v = loop.read %f[%i] : tensor<3xf32>
      %w = arith.divf %u, %v : f32
      loop.write %w, %o[%i] : memref<3xf32>
    }
  }
  func.return %y : tensor<3xf32>
}

// What is returned is new memory in each call.
// CHECK-LABEL: @no_constant_when_the_result_is_returned
// CHECK: loop.kernel "iota"
func.func @no_constant_when_the_result_is_returned() -> tensor<3xi64> {
  %n = loop.kernel "iota" outs(%o : memref<3xi64>) -> tensor<3xi64> {
    loop.parallel (%i) to (3) {
      %v = loop.index [%i * 2] : i64
      loop.write %v, %o[%i] : memref<3xi64>
    }
  }
  func.return %n : tensor<3xi64>
}

// CHECK-LABEL: @no_constant_when_there_are_many
// CHECK: loop.kernel "iota"
func.func @no_constant_when_there_are_many() -> tensor<1025xi64> {
  %n = loop.kernel "iota" outs(%o : memref<1025xi64>) -> tensor<1025xi64> {
    loop.parallel (%i) to (1025) {
      %v = loop.index [%i * 2] : i64
      loop.write %v, %o[%i] : memref<1025xi64>
    }
  }
  %y = loop.kernel "neg" outs(%o : memref<1025xi64>) -> tensor<1025xi64> {
    loop.parallel (%i) to (1025) {
      %u = loop.read %n[1024 - %i] : tensor<1025xi64>
      loop.write %u, %o[%i] : memref<1025xi64>
    }
  }
  func.return %y : tensor<1025xi64>
}

// A function may be an ulp from what machine code gives.
// CHECK-LABEL: @no_constant_when_it_is_a_function
// CHECK: loop.kernel "exp"
func.func @no_constant_when_it_is_a_function() -> tensor<3xf32> {
  %n = loop.kernel "exp" outs(%o : memref<3xf32>) -> tensor<3xf32> {
    loop.parallel (%i) to (3) {
      %v = loop.index [%i] : i64
      %f = arith.sitofp %v : i64 to f32
      %e = math.exp %f : f32
      loop.write %e, %o[%i] : memref<3xf32>
    }
  }
  %y = loop.kernel "flip" outs(%o : memref<3xf32>) -> tensor<3xf32> {
    loop.parallel (%i) to (3) {
      %u = loop.read %n[2 - %i] : tensor<3xf32>
      loop.write %u, %o[%i] : memref<3xf32>
    }
  }
  func.return %y : tensor<3xf32>
}

// What a conversion of too large a number gives is for the machine to say.
// CHECK-LABEL: @no_constant_when_it_converts_to_integers
// CHECK: loop.kernel "convert"
func.func @no_constant_when_it_converts_to_integers() -> tensor<3xi32> {
  %c = graph.constant f32<1.0, 2.0, 1.0e20> : tensor<3xf32>
  %n = loop.kernel "convert" outs(%o : memref<3xi32>) -> tensor<3xi32> {
    loop.parallel (%i) to (3) {
      %u = loop.read %c[%i] : tensor<3xf32>
      %v = arith.fptosi %u : f32 to i32
      loop.write %v, %o[%i] : memref<3xi32>
    }
  }
  %y = loop.kernel "flip" outs(%o : memref<3xi32>) -> tensor<3xi32> {
    loop.parallel (%i) to (3) {
      %u = loop.read %n[2 - %i] : tensor<3xi32>
      loop.write %u, %o[%i] : memref<3xi32>
    }
  }
  func.return %y : tensor<3xi32>
}

// CHECK-LABEL: @no_constant_when_a_size_is_a_symbol
// CHECK: loop.kernel "iota"
func.func @no_constant_when_a_size_is_a_symbol(%s0: index) -> tensor<3xi64> {
  %n = loop.kernel "iota" outs(%o : memref<3xi64>) -> tensor<3xi64> {
    loop.parallel (%i) to (3) {
      %v = loop.index [%i * s0] : i64
      loop.write %v, %o[%i] : memref<3xi64>
    }
  }
  %y = loop.kernel "flip" outs(%o : memref<3xi64>) -> tensor<3xi64> {
    loop.parallel (%i) to (3) {
      %u = loop.read %n[2 - %i] : tensor<3xi64>
      loop.write %u, %o[%i] : memref<3xi64>
    }
  }
  func.return %y : tensor<3xi64>
}

// CHECK-LABEL: @no_constant_when_an_argument_is_read
// CHECK: loop.kernel "flip"
// CHECK: loop.kernel "flip"
func.func @no_constant_when_an_argument_is_read(%x: tensor<3xi64>) -> tensor<3xi64> {
  %n = loop.kernel "flip" outs(%o : memref<3xi64>) -> tensor<3xi64> {
    loop.parallel (%i) to (3) {
      %v = loop.read %x[2 - %i] : tensor<3xi64>
      loop.write %v, %o[%i] : memref<3xi64>
    }
  }
  %y = loop.kernel "flip" outs(%o : memref<3xi64>) -> tensor<3xi64> {
    loop.parallel (%i) to (3) {
      %u = loop.read %n[2 - %i] : tensor<3xi64>
      loop.write %u, %o[%i] : memref<3xi64>
    }
  }
  func.return %y : tensor<3xi64>
}

// CHECK-LABEL: @no_constant_when_it_starts_as_an_argument
// CHECK: loop.kernel "fill" outs(%{{.*}}: memref<3xi64> = %x)
func.func @no_constant_when_it_starts_as_an_argument(%x: tensor<3xi64>) -> tensor<3xi64> {
  %n = loop.kernel "fill" outs(%o : memref<3xi64> = %x) -> tensor<3xi64> {
    %zero = arith.constant 0 : i64
    loop.parallel (%i) to (2) {
      loop.write %zero, %o[%i] : memref<3xi64>
    }
  }
  %y = loop.kernel "flip" outs(%o : memref<3xi64>) -> tensor<3xi64> {
    loop.parallel (%i) to (3) {
      %u = loop.read %n[2 - %i] : tensor<3xi64>
      loop.write %u, %o[%i] : memref<3xi64>
    }
  }
  func.return %y : tensor<3xi64>
}
