// RUN: xdsl-opt %s -p loop-fuse-producers --split-input-file | filecheck %s

// On a GPU a kernel has no memory for what it reads at other places than its own: each read computes it.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Padding is read where it is needed, however many ops its guard takes: they follow from indices alone.
// CHECK-LABEL: @padded_windows
// CHECK: loop.kernel "pad_max"
// CHECK: loop.reduce (%k) to (9) [max] -> f32 {
// CHECK: loop.read %x[%i, %j * 2 + %k - 1] if %{{\w+}} else %{{\w+}}
// CHECK-NOT: loop.local
// CHECK-NOT: loop.kernel
func.func @padded_windows(%x: tensor<64x512xf32>) -> tensor<64x256xf32> {
  %p = loop.kernel "pad" outs(%o : memref<64x520xf32>) -> tensor<64x520xf32> {
    loop.parallel (%i, %j) to (64, 520) {
      %n = loop.index [%j - 1] : i64
      %zero = arith.constant 0 : i64
      %end = arith.constant 512 : i64
      %a = arith.cmpi sge, %n, %zero : i64
      %b = arith.cmpi slt, %n, %end : i64
      %c = arith.andi %a, %b : i1
      %low = arith.constant 0xFF800000 : f32
      %v = loop.read %x[%i, %j - 1] if %c else %low : tensor<64x512xf32>
      loop.write %v, %o[%i, %j] : memref<64x520xf32>
    }
  }
  %m = loop.kernel "max" outs(%o : memref<64x256xf32>) -> tensor<64x256xf32> {
    loop.parallel (%i, %j) to (64, 256) {
      %s = loop.reduce (%k) to (9) [max] -> f32 {
        %v = loop.read %p[%i, %j * 2 + %k] : tensor<64x520xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %j] : memref<64x256xf32>
    }
  }
  func.return %m : tensor<64x256xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// Many ops on data are not.
// CHECK-LABEL: @no_repetition_of_much_work
// CHECK: loop.kernel "exp"
// CHECK: loop.kernel "max"
func.func @no_repetition_of_much_work(%x: tensor<64x520xf32>) -> tensor<64x256xf32> {
  %p = loop.kernel "exp" outs(%o : memref<64x520xf32>) -> tensor<64x520xf32> {
    loop.parallel (%i, %j) to (64, 520) {
      %v = loop.read %x[%i, %j] : tensor<64x520xf32>
      %e = math.exp %v : f32
      loop.write %e, %o[%i, %j] : memref<64x520xf32>
    }
  }
  %m = loop.kernel "max" outs(%o : memref<64x256xf32>) -> tensor<64x256xf32> {
    loop.parallel (%i, %j) to (64, 256) {
      %s = loop.reduce (%k) to (9) [max] -> f32 {
        %v = loop.read %p[%i, %j * 2 + %k] : tensor<64x520xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %j] : memref<64x256xf32>
    }
  }
  func.return %m : tensor<64x256xf32>
}
}
