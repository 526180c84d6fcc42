// RUN: xdsl-opt %s -p loop-schedule-products --split-input-file | filecheck %s

// A product gets the schedule that takes the least time by the cost model: large tiles where there are enough of them.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// CHECK-LABEL: @large
// CHECK: loop.kernel "matmul" {{.*}} attributes {stepwell.product = #stepwell.product<128, 256, 64, warps = 8, stages = 4, descriptors>}
func.func @large(%x: tensor<4096x4096xbf16>, %y: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %z = loop.kernel "matmul" outs(%o : memref<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
    loop.parallel (%i, %j) to (4096, 4096) {
      %s = loop.reduce (%k) to (4096) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<4096x4096xbf16>
        %b = loop.read %y[%k, %j] : tensor<4096x4096xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<4096x4096xbf16>
    }
  }
  func.return %z : tensor<4096x4096xbf16>
}

// Where much follows the sum, two programs of a multiprocessor take turns: one sums up while the other finishes.
// CHECK-LABEL: @much_follows
// CHECK: #stepwell.product<128, 128, 64, warps = 4, stages = 3, descriptors>
func.func @much_follows(%x: tensor<16384x1024xbf16>, %y: tensor<1024x4096xbf16>) -> tensor<16384x4096xbf16> {
  %z = loop.kernel "matmul_erf_erf" outs(%o : memref<16384x4096xbf16>) -> tensor<16384x4096xbf16> {
    loop.parallel (%i, %j) to (16384, 4096) {
      %s = loop.reduce (%k) to (1024) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<16384x1024xbf16>
        %b = loop.read %y[%k, %j] : tensor<1024x4096xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %e = math.erf %s : f32
      %f = math.erf %e : f32
      %r = arith.truncf %f : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<16384x4096xbf16>
    }
  }
  func.return %z : tensor<16384x4096xbf16>
}

// With 128 columns there are too few large tiles to keep all multiprocessors busy.
// CHECK-LABEL: @few_columns
// CHECK: #stepwell.product<64, 64, 64, warps = 4, stages = 5>
func.func @few_columns(%x: tensor<4096x1024xbf16>, %y: tensor<1024x128xbf16>) -> tensor<4096x128xbf16> {
  %z = loop.kernel "matmul" outs(%o : memref<4096x128xbf16>) -> tensor<4096x128xbf16> {
    loop.parallel (%i, %j) to (4096, 128) {
      %s = loop.reduce (%k) to (1024) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<4096x1024xbf16>
        %b = loop.read %y[%k, %j] : tensor<1024x128xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<4096x128xbf16>
    }
  }
  func.return %z : tensor<4096x128xbf16>
}

// The lanes of all multiprocessors take part in a small product of f32.
// CHECK-LABEL: @of_f32
// CHECK: #stepwell.product<16, 16, 16, warps = 2, stages = 4>
func.func @of_f32(%x: tensor<256x64xf32>, %y: tensor<64x128xf32>) -> tensor<256x128xf32> {
  %z = loop.kernel "matmul" outs(%o : memref<256x128xf32>) -> tensor<256x128xf32> {
    loop.parallel (%i, %j) to (256, 128) {
      %s = loop.reduce (%k) to (64) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<256x64xf32>
        %b = loop.read %y[%k, %j] : tensor<64x128xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.write %s, %o[%i, %j] : memref<256x128xf32>
    }
  }
  func.return %z : tensor<256x128xf32>
}

// A sum of products along rows is no product of matrices.
// CHECK-LABEL: @no_schedule_when_f32_is_summed_along_rows
// CHECK-NOT: stepwell.product
// CHECK-LABEL: @no_schedule_when_one_is_given
func.func @no_schedule_when_f32_is_summed_along_rows(%x: tensor<256x64xf32>, %y: tensor<256x64xf32>) -> tensor<256xf32> {
  %z = loop.kernel "sum" outs(%o : memref<256xf32>) -> tensor<256xf32> {
    loop.parallel (%i) to (256) {
      %s = loop.reduce (%k) to (64) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<256x64xf32>
        %b = loop.read %y[%i, %k] : tensor<256x64xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.write %s, %o[%i] : memref<256xf32>
    }
  }
  func.return %z : tensor<256xf32>
}

// What was measured stays.
// CHECK: #stepwell.product<64, 64, 64, warps = 4, stages = 5>
func.func @no_schedule_when_one_is_given(%x: tensor<4096x1024xbf16>, %y: tensor<1024x4096xbf16>) -> tensor<4096x4096xbf16> {
  %z = loop.kernel "matmul" outs(%o : memref<4096x4096xbf16>) -> tensor<4096x4096xbf16> attributes {stepwell.product = #stepwell.product<64, 64, 64, warps = 4, stages = 5>} {
    loop.parallel (%i, %j) to (4096, 4096) {
      %s = loop.reduce (%k) to (1024) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<4096x1024xbf16>
        %b = loop.read %y[%k, %j] : tensor<1024x4096xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<4096x4096xbf16>
    }
  }
  func.return %z : tensor<4096x4096xbf16>
}

// CHECK-LABEL: @no_schedule_when_rows_are_few
// CHECK-NOT: stepwell.product
func.func @no_schedule_when_rows_are_few(%x: tensor<2x1024xbf16>, %y: tensor<4096x1024xbf16>) -> tensor<2x4096xbf16> {
  %z = loop.kernel "matmul" outs(%o : memref<2x4096xbf16>) -> tensor<2x4096xbf16> {
    loop.parallel (%i, %j) to (2, 4096) {
      %s = loop.reduce (%k) to (1024) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<2x1024xbf16>
        %b = loop.read %y[%j, %k] : tensor<4096x1024xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<2x4096xbf16>
    }
  }
  func.return %z : tensor<2x4096xbf16>
}

// A sum of squares has one factor.
// CHECK-LABEL: @no_schedule_when_it_is_no_product
// CHECK-NOT: stepwell.product
func.func @no_schedule_when_it_is_no_product(%x: tensor<4096x64x1024xbf16>) -> tensor<4096x64xf32> {
  %z = loop.kernel "squares" outs(%o : memref<4096x64xf32>) -> tensor<4096x64xf32> {
    loop.parallel (%i, %j) to (4096, 64) {
      %s = loop.reduce (%k) to (1024) [add] -> f32 {
        %a = loop.read %x[%i, %j, %k] : tensor<4096x64x1024xbf16>
        %c = arith.extf %a : bf16 to f32
        %p = arith.mulf %c, %c : f32
        loop.yield %p : f32
      }
      loop.write %s, %o[%i, %j] : memref<4096x64xf32>
    }
  }
  func.return %z : tensor<4096x64xf32>
}
}

// -----

// CHECK-LABEL: @no_schedule_when_there_is_no_gpu
// CHECK-NOT: stepwell.product
func.func @no_schedule_when_there_is_no_gpu(%x: tensor<64x64xbf16>, %y: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %z = loop.kernel "matmul" outs(%o : memref<64x64xbf16>) -> tensor<64x64xbf16> {
    loop.parallel (%i, %j) to (64, 64) {
      %s = loop.reduce (%k) to (64) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<64x64xbf16>
        %b = loop.read %y[%k, %j] : tensor<64x64xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%i, %j] : memref<64x64xbf16>
    }
  }
  func.return %z : tensor<64x64xbf16>
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 4, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// CHECK-LABEL: @no_schedule_when_there_are_no_columns
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: stepwell.product
func.func @no_schedule_when_there_are_no_columns(%x: tensor<4096x4096xbf16>, %w: tensor<4096xbf16>) -> tensor<4096xf32> {
  %y = loop.kernel "k" outs(%o : memref<4096xf32>) -> tensor<4096xf32> {
    loop.parallel (%i) to (4096) {
      %s = loop.reduce (%k) to (4096) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<4096x4096xbf16>
        %b = loop.read %w[%k] : tensor<4096xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      loop.write %s, %o[%i] : memref<4096xf32>
    }
  }
  func.return %y : tensor<4096xf32>
}
}
