// RUN: xdsl-opt %s -p loop-fuse-nests --split-input-file | filecheck %s

// On a GPU a kernel has no memory for what it reads at other places than its own: each read computes it.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// So what is expensive becomes a kernel of its own.
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

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// What is read at its own place stays in registers.
// CHECK-LABEL: @own_places
// CHECK: loop.kernel "exp_sum"
// CHECK-NOT: loop.kernel
func.func @own_places(%x: tensor<64x512xf32>) -> (tensor<64x512xf32>, tensor<64xf32>) {
  %p = loop.kernel "exp" outs(%o : memref<64x512xf32>) -> tensor<64x512xf32> {
    loop.parallel (%i, %j) to (64, 512) {
      %v = loop.read %x[%i, %j] : tensor<64x512xf32>
      %e = math.exp %v : f32
      loop.write %e, %o[%i, %j] : memref<64x512xf32>
    }
  }
  %m = loop.kernel "sum" outs(%o : memref<64xf32>) -> tensor<64xf32> {
    loop.parallel (%i) to (64) {
      %s = loop.reduce (%j) to (512) [add] -> f32 {
        %v = loop.read %p[%i, %j] : tensor<64x512xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i] : memref<64xf32>
    }
  }
  func.return %p, %m : tensor<64x512xf32>, tensor<64xf32>
}
}

// -----

// A CPU keeps it in its cache.
// CHECK-LABEL: @rows_in_cache
// CHECK: loop.local (64, 520)
func.func @rows_in_cache(%x: tensor<64x520xf32>) -> tensor<64x256xf32> {
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

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 0>} {
// So does what is read in groups: the places are others, but none of them twice in a nest.
// CHECK-LABEL: @own_places_in_groups
// CHECK: loop.kernel "exp_sum"
// CHECK: loop.parallel (%{{\w+}}, %{{\w+}}) to (512, 8)
// CHECK-NOT: loop.kernel
func.func @own_places_in_groups(%x: tensor<512x64xf32>) -> tensor<512x8xf32> {
  %p = loop.kernel "exp" outs(%o : memref<512x64xf32>) -> tensor<512x64xf32> {
    loop.parallel (%i, %j) to (512, 64) {
      %v = loop.read %x[%i, %j] : tensor<512x64xf32>
      %e = math.exp %v : f32
      loop.write %e, %o[%i, %j] : memref<512x64xf32>
    }
  }
  %m = loop.kernel "sum" outs(%o : memref<512x8xf32>) -> tensor<512x8xf32> {
    loop.parallel (%i, %j) to (512, 8) {
      %s = loop.reduce (%k) to (8) [add] -> f32 {
        %v = loop.read %p[%i, %j * 8 + %k] : tensor<512x64xf32>
        loop.yield %v : f32
      }
      loop.write %s, %o[%i, %j] : memref<512x8xf32>
    }
  }
  func.return %m : tensor<512x8xf32>
}
}
