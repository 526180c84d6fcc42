// RUN: xdsl-opt %s -p loop-fuse-leftovers --split-input-file | filecheck %s

// On a GPU functions take less time than the memory that holds their results.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// One of f32 is 16 operations, and 96 are done while the 16 bytes would be moved that it spares.
// CHECK-LABEL: @an_exponential
// CHECK-NOT: loop.kernel "exp"
// CHECK: loop.kernel "exp_sum"
// CHECK: math.exp
// CHECK: loop.kernel "exp_max"
// CHECK: math.exp
func.func @an_exponential(%x: tensor<8192x4096xf32>) -> (tensor<4096xf32>, tensor<8192xf32>) {
  %m = loop.kernel "exp" outs(%o : memref<8192x4096xf32>) -> tensor<8192x4096xf32> {
    loop.parallel (%i, %j) to (8192, 4096) {
      %v = loop.read %x[%i, %j] : tensor<8192x4096xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i, %j] : memref<8192x4096xf32>
    }
  }
  %a = loop.kernel "sum" outs(%o : memref<4096xf32>) -> tensor<4096xf32> {
    loop.parallel (%j) to (4096) {
      %t = loop.reduce (%i) to (8192) [add] -> f32 {
        %v = loop.read %m[%i, %j] : tensor<8192x4096xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%j] : memref<4096xf32>
    }
  }
  %b = loop.kernel "max" outs(%o : memref<8192xf32>) -> tensor<8192xf32> {
    loop.parallel (%i) to (8192) {
      %t = loop.reduce (%j) to (4096) [max] -> f32 {
        %v = loop.read %m[%i, %j] : tensor<8192x4096xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<8192xf32>
    }
  }
  func.return %a, %b : tensor<4096xf32>, tensor<8192xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// Six are 97 with the read.
// CHECK-LABEL: @no_copy_of_much_work
// CHECK: loop.kernel "exp"
// CHECK-COUNT-6: math.exp
// CHECK: loop.kernel "sum"
// CHECK-NOT: math.exp
// CHECK: loop.kernel "max"
// CHECK-NOT: math.exp
func.func @no_copy_of_much_work(%x: tensor<8192x4096xf32>) -> (tensor<4096xf32>, tensor<8192xf32>) {
  %m = loop.kernel "exp" outs(%o : memref<8192x4096xf32>) -> tensor<8192x4096xf32> {
    loop.parallel (%i, %j) to (8192, 4096) {
      %v = loop.read %x[%i, %j] : tensor<8192x4096xf32>
      %e0 = math.exp %v : f32
      %e1 = math.exp %e0 : f32
      %e2 = math.exp %e1 : f32
      %e3 = math.exp %e2 : f32
      %e4 = math.exp %e3 : f32
      %w = math.exp %e4 : f32
      loop.write %w, %o[%i, %j] : memref<8192x4096xf32>
    }
  }
  %a = loop.kernel "sum" outs(%o : memref<4096xf32>) -> tensor<4096xf32> {
    loop.parallel (%j) to (4096) {
      %t = loop.reduce (%i) to (8192) [add] -> f32 {
        %v = loop.read %m[%i, %j] : tensor<8192x4096xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%j] : memref<4096xf32>
    }
  }
  %b = loop.kernel "max" outs(%o : memref<8192xf32>) -> tensor<8192xf32> {
    loop.parallel (%i) to (8192) {
      %t = loop.reduce (%j) to (4096) [max] -> f32 {
        %v = loop.read %m[%i, %j] : tensor<8192x4096xf32>
        loop.yield %v : f32
      }
      loop.write %t, %o[%i] : memref<8192xf32>
    }
  }
  func.return %a, %b : tensor<4096xf32>, tensor<8192xf32>
}
}
