// RUN: xdsl-opt %s --split-input-file --verify-diagnostics | filecheck %s

func.func @f(%x: tensor<8xf32>) {
  %y = loop.kernel "k" outs(%o : memref<4xf32>) -> tensor<8xf32> {
  }
  func.return
}
// CHECK: loop.kernel: expected one destination per result of its shape and element type

// -----

func.func @f(%x: tensor<8xf32>) {
  %y = loop.kernel "k" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i, %i] : tensor<8xf32>
    }
  }
  func.return
}
// CHECK: loop.read: expected 1 index expressions, got 2

// -----

func.func @f(%x: tensor<8xf32>) {
  %y = loop.kernel "k" outs(%o : memref<f32>) -> tensor<f32> {
    %s = loop.reduce (%i) to (8) [add] -> f32 {
      %v = loop.read %x[%i] : tensor<8xf32>
    }
  }
  func.return
}
// CHECK: loop.read terminates block in single-block region but is not a terminator

// -----

func.func @f(%x: tensor<8xf32>) {
  %y = loop.kernel "k" outs(%o : memref<f32>) -> tensor<f32> {
    %s = loop.reduce (%i) to (8) [median] -> f32 {
      %v = loop.read %x[%i] : tensor<8xf32>
      loop.yield %v : f32
    }
  }
  func.return
}
// CHECK: loop.reduce: expected combiners of add, mul,

// -----

func.func @f(%x: tensor<8xf32>) {
  %y = loop.kernel "k" outs(%o : memref<f32>) -> tensor<f32> {
    %s = loop.reduce (%i) to (8) [argmax] -> f32 {
      %v = loop.read %x[%i] : tensor<8xf32>
      loop.yield %v : f32
    }
  }
  func.return
}
// CHECK: loop.reduce: expected 2 results for its combiners, got 1

// -----

func.func @f(%x: tensor<8xf32>) {
  %y = loop.kernel "k" outs(%o : memref<f32>) -> tensor<f32> {
    %s = loop.reduce (%i) to (8) [add] -> f64 {
      %v = loop.read %x[%i] : tensor<8xf32>
      loop.yield %v : f32
    }
  }
  func.return
}
// CHECK: loop.reduce: expected to yield (f64), got (f32)

// -----

func.func @f(%x: tensor<8xf32>, %z: f32) {
  %y = loop.kernel "k" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    %l = loop.for (%i, %j) to (8, 8) carry (%a = %z : f32) {
      loop.yield %a : f32
    }
  }
  func.return
}
// CHECK: loop.for: expected one dimension, got 2

// -----

func.func @f(%x: tensor<8xf32>) {
  %y = loop.kernel "k" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      loop.write %v, %o[%i] argmax : memref<8xf32>
    }
  }
  func.return
}
// CHECK: loop.write: expected a combiner of single values, got argmax
