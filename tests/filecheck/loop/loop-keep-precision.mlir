// RUN: xdsl-opt %s -p loop-keep-precision | filecheck %s

// CHECK-LABEL: @rounding_between_fused_ops_drops
// CHECK: [[A:%\w+]] = arith.addf
// CHECK-NEXT: arith.mulf [[A]], [[A]] : f32
func.func @rounding_between_fused_ops_drops(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %y = loop.kernel "k" outs(%o : memref<8xbf16>) -> tensor<8xbf16> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xbf16>
      %e = arith.extf %v : bf16 to f32
      %a = arith.addf %e, %e : f32
      %t = arith.truncf %a : f32 to bf16
      %w = arith.extf %t : bf16 to f32
      %m = arith.mulf %w, %w : f32
      %r = arith.truncf %m : f32 to bf16
      loop.write %r, %o[%i] : memref<8xbf16>
    }
  }
  func.return %y : tensor<8xbf16>
}

// CHECK-LABEL: @no_drop_when_the_value_was_wider
// CHECK: arith.truncf
// CHECK-NEXT: arith.extf
func.func @no_drop_when_the_value_was_wider(%x: tensor<8xf64>) -> tensor<8xf32> {
  %y = loop.kernel "k" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf64>
      %t = arith.truncf %v : f64 to bf16
      %w = arith.extf %t : bf16 to f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// CHECK-LABEL: @no_drop_when_the_value_comes_from_memory
// CHECK: arith.extf
func.func @no_drop_when_the_value_comes_from_memory(%x: tensor<8xbf16>) -> tensor<8xf32> {
  %y = loop.kernel "k" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xbf16>
      %w = arith.extf %v : bf16 to f32
      loop.write %w, %o[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}
