// RUN: xdsl-opt %s -p convert-loop-to-tile --split-input-file | filecheck %s

// What is fetched ahead on a processor that does so by itself for single runs of memory.

module attributes {stepwell.target = #stepwell.target<"znver3", vector_bits = 256, registers = 16, cores = 2, l1_bytes = 32768, l2_bytes = 524288, l3_bytes = 33554432>} {
// CHECK-LABEL: @no_prefetch_when_the_processor_does_it
func.func @no_prefetch_when_the_processor_does_it(%x: tensor<4194304xf32>) -> tensor<4194304xf32> {
  %y = loop.kernel "k" outs(%o : memref<4194304xf32>) -> tensor<4194304xf32> {
    loop.parallel (%i) to (4194304) {
      %v = loop.read %x[%i] : tensor<4194304xf32>
      %w = arith.addf %v, %v : f32
      loop.write %w, %o[%i] : memref<4194304xf32>
    }
  }
  func.return %y : tensor<4194304xf32>
}
// CHECK: tile.kernel @k_0
// CHECK: arith.addf
// CHECK-NOT: tile.prefetch
}

// -----

module attributes {stepwell.target = #stepwell.target<"znver3", vector_bits = 256, registers = 16, cores = 2, l1_bytes = 32768, l2_bytes = 524288, l3_bytes = 33554432>} {
// CHECK-LABEL: @prefetch_beside_functions
func.func @prefetch_beside_functions(%x: tensor<4194304xf32>) -> tensor<4194304xf32> {
  %y = loop.kernel "k" outs(%o : memref<4194304xf32>) -> tensor<4194304xf32> {
    loop.parallel (%i) to (4194304) {
      %v = loop.read %x[%i] : tensor<4194304xf32>
      %w = math.exp %v : f32
      loop.write %w, %o[%i] : memref<4194304xf32>
    }
  }
  func.return %y : tensor<4194304xf32>
}
// While it computes, memory would idle.
// CHECK: tile.kernel @k_0
// CHECK: math.exp
// CHECK: tile.prefetch
// CHECK: tile.prefetch {{.*}} write
}

// -----

module attributes {stepwell.target = #stepwell.target<"znver3", vector_bits = 256, registers = 16, cores = 2, l1_bytes = 32768, l2_bytes = 524288, l3_bytes = 33554432>} {
// CHECK-LABEL: @prefetch_of_narrow_elements
func.func @prefetch_of_narrow_elements(%x: tensor<4194304xbf16>) -> tensor<4194304xbf16> {
  %y = loop.kernel "k" outs(%o : memref<4194304xbf16>) -> tensor<4194304xbf16> {
    loop.parallel (%i) to (4194304) {
      %v = loop.read %x[%i] : tensor<4194304xbf16>
      %w = arith.addf %v, %v : bf16
      loop.write %w, %o[%i] : memref<4194304xbf16>
    }
  }
  func.return %y : tensor<4194304xbf16>
}
// CHECK: tile.kernel @k_0
// CHECK: arith.addf
// CHECK: tile.prefetch
}

// -----

module attributes {stepwell.target = #stepwell.target<"znver3", vector_bits = 256, registers = 16, cores = 2, l1_bytes = 32768, l2_bytes = 524288, l3_bytes = 33554432>} {
// CHECK-LABEL: @prefetch_of_rows
func.func @prefetch_of_rows(%x: tensor<1024x1000xf32>) -> tensor<1024x1000xf32> {
  %y = loop.kernel "k" outs(%o : memref<1024x1000xf32>) -> tensor<1024x1000xf32> {
    loop.parallel (%i, %j) to (1024, 1000) {
      %v = loop.read %x[%i, %j] : tensor<1024x1000xf32>
      %w = arith.addf %v, %v : f32
      loop.write %w, %o[%i, %j] : memref<1024x1000xf32>
    }
  }
  func.return %y : tensor<1024x1000xf32>
}
// CHECK: tile.kernel @k_0
// CHECK: arith.addf
// CHECK: tile.prefetch
}

// -----

module attributes {stepwell.target = #stepwell.target<"middle", vector_bits = 256, registers = 16, cores = 2, l1_bytes = 32768, l2_bytes = 524288, l3_bytes = 33554432>} {
// CHECK-LABEL: @prefetch_on_other_processors
func.func @prefetch_on_other_processors(%x: tensor<4194304xf32>) -> tensor<4194304xf32> {
  %y = loop.kernel "k" outs(%o : memref<4194304xf32>) -> tensor<4194304xf32> {
    loop.parallel (%i) to (4194304) {
      %v = loop.read %x[%i] : tensor<4194304xf32>
      %w = arith.addf %v, %v : f32
      loop.write %w, %o[%i] : memref<4194304xf32>
    }
  }
  func.return %y : tensor<4194304xf32>
}
// CHECK: tile.kernel @k_0
// CHECK: arith.addf
// CHECK: tile.prefetch
}
