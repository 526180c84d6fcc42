// RUN: xdsl-opt %s -p loop-fuse-leftovers | filecheck %s

// A pointwise kernel that nothing could be joined with is copied to its readers, although they then read more
// together: a mask of bytes is smaller than the floats it is made of, but a kernel of its own costs a launch.

// CHECK-LABEL: @mask
// CHECK-NOT: loop.kernel "compare"
// CHECK: loop.kernel "compare_sum"
// CHECK: arith.cmpf
// CHECK: loop.kernel "compare_max"
// CHECK: arith.cmpf
func.func @mask(%x: tensor<8x4xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %m = loop.kernel "compare" outs(%o : memref<8x4xi1>) -> tensor<8x4xi1> {
    loop.parallel (%i, %j) to (8, 4) {
      %v = loop.read %x[%i, %j] : tensor<8x4xf32>
      %zero = arith.constant 0.0 : f32
      %w = arith.cmpf ogt, %v, %zero : f32
      loop.write %w, %o[%i, %j] : memref<8x4xi1>
    }
  }
  %a = loop.kernel "sum" outs(%o : memref<4xf32>) -> tensor<4xf32> {
    loop.parallel (%j) to (4) {
      %t = loop.reduce (%i) to (8) [add] -> f32 {
        %v = loop.read %m[%i, %j] : tensor<8x4xi1>
        %w = arith.uitofp %v : i1 to f32
        loop.yield %w : f32
      }
      loop.write %t, %o[%j] : memref<4xf32>
    }
  }
  %b = loop.kernel "max" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %t = loop.reduce (%j) to (4) [max] -> f32 {
        %v = loop.read %m[%i, %j] : tensor<8x4xi1>
        %w = arith.uitofp %v : i1 to f32
        loop.yield %w : f32
      }
      loop.write %t, %o[%i] : memref<8xf32>
    }
  }
  func.return %a, %b : tensor<4xf32>, tensor<8xf32>
}

// At a hundred million elements the readers would move far more than a launch costs.
// CHECK-LABEL: @no_copies_when_tensors_are_large
// CHECK: loop.kernel "compare" outs
// CHECK: loop.kernel "sum"
// CHECK: loop.kernel "max"
func.func @no_copies_when_tensors_are_large(%x: tensor<16384x8192xf32>) -> (tensor<8192xf32>, tensor<16384xf32>) {
  %m = loop.kernel "compare" outs(%o : memref<16384x8192xi1>) -> tensor<16384x8192xi1> {
    loop.parallel (%i, %j) to (16384, 8192) {
      %v = loop.read %x[%i, %j] : tensor<16384x8192xf32>
      %zero = arith.constant 0.0 : f32
      %w = arith.cmpf ogt, %v, %zero : f32
      loop.write %w, %o[%i, %j] : memref<16384x8192xi1>
    }
  }
  %a = loop.kernel "sum" outs(%o : memref<8192xf32>) -> tensor<8192xf32> {
    loop.parallel (%j) to (8192) {
      %t = loop.reduce (%i) to (16384) [add] -> f32 {
        %v = loop.read %m[%i, %j] : tensor<16384x8192xi1>
        %w = arith.uitofp %v : i1 to f32
        loop.yield %w : f32
      }
      loop.write %t, %o[%j] : memref<8192xf32>
    }
  }
  %b = loop.kernel "max" outs(%o : memref<16384xf32>) -> tensor<16384xf32> {
    loop.parallel (%i) to (16384) {
      %t = loop.reduce (%j) to (8192) [max] -> f32 {
        %v = loop.read %m[%i, %j] : tensor<16384x8192xi1>
        %w = arith.uitofp %v : i1 to f32
        loop.yield %w : f32
      }
      loop.write %t, %o[%i] : memref<16384xf32>
    }
  }
  func.return %a, %b : tensor<8192xf32>, tensor<16384xf32>
}
