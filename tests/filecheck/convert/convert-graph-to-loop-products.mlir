// RUN: xdsl-opt %s -p convert-graph-to-loop --split-input-file | filecheck %s

// On a GPU, products of bf16 and f16 are kernels that sum up in f32 and round once, unless a library is better.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// CHECK-LABEL: @with_bias
// CHECK: loop.kernel "matmul" outs([[OUT:%\w+]]: memref<512x1024xbf16>)
// CHECK-NEXT: loop.parallel ([[I:%\w+]], [[J:%\w+]]) to (512, 1024) {
// CHECK-NEXT: [[SUM:%\w+]] = loop.reduce ([[K:%\w+]]) to (256) [add] -> f32 {
// CHECK: loop.read %x[[[I]], [[K]]]
// CHECK: loop.read %y[[[K]], [[J]]]
// CHECK: arith.mulf
// CHECK: loop.read %b[[[J]]]
// CHECK: arith.addf [[SUM]]
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: loop.write
func.func @with_bias(%x: tensor<512x256xbf16>, %y: tensor<256x1024xbf16>, %b: tensor<1024xbf16>) -> tensor<512x1024xbf16> {
  %z = graph.matmul %x, %y, %b : (tensor<512x256xbf16>, tensor<256x1024xbf16>, tensor<1024xbf16>) -> tensor<512x1024xbf16>
  func.return %z : tensor<512x1024xbf16>
}

// CHECK-LABEL: @in_batches
// CHECK: loop.kernel "batch_matmul"
// CHECK-NEXT: loop.parallel (%{{.*}}, %{{.*}}, %{{.*}}) to (8, 128, 256) {
func.func @in_batches(%x: tensor<8x128x64xf16>, %y: tensor<8x64x256xf16>) -> tensor<8x128x256xf16> {
  %z = graph.batch_matmul %x, %y : (tensor<8x128x64xf16>, tensor<8x64x256xf16>) -> tensor<8x128x256xf16>
  func.return %z : tensor<8x128x256xf16>
}

// Small ones of f32 take less time than a call of the library costs.
// CHECK-LABEL: @of_f32
// CHECK: loop.kernel "matmul"
// CHECK: loop.reduce
// CHECK-NEXT: loop.read
// CHECK-NEXT: loop.read
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: loop.yield
func.func @of_f32(%x: tensor<256x64xf32>, %y: tensor<64x128xf32>) -> tensor<256x128xf32> {
  %z = graph.matmul %x, %y : (tensor<256x64xf32>, tensor<64x128xf32>) -> tensor<256x128xf32>
  func.return %z : tensor<256x128xf32>
}

// CHECK-LABEL: @no_kernel_when_f32_is_large
// CHECK: graph.matmul
func.func @no_kernel_when_f32_is_large(%x: tensor<512x256xf32>, %y: tensor<256x1024xf32>) -> tensor<512x1024xf32> {
  %z = graph.matmul %x, %y : (tensor<512x256xf32>, tensor<256x1024xf32>) -> tensor<512x1024xf32>
  func.return %z : tensor<512x1024xf32>
}

// 100 elements of bf16 are not a multiple of 16 bytes.
// CHECK-LABEL: @no_kernel_when_rows_lie_no_whole_steps_apart
// CHECK: graph.matmul
func.func @no_kernel_when_rows_lie_no_whole_steps_apart(%x: tensor<512x100xbf16>, %y: tensor<100x1024xbf16>) -> tensor<512x1024xbf16> {
  %z = graph.matmul %x, %y : (tensor<512x100xbf16>, tensor<100x1024xbf16>) -> tensor<512x1024xbf16>
  func.return %z : tensor<512x1024xbf16>
}

// The library shares out the long sum of the one tile.
// CHECK-LABEL: @no_kernel_when_tiles_are_few_and_sums_long
// CHECK: graph.matmul
func.func @no_kernel_when_tiles_are_few_and_sums_long(%x: tensor<64x65536xbf16>, %y: tensor<65536x64xbf16>) -> tensor<64x64xbf16> {
  %z = graph.matmul %x, %y : (tensor<64x65536xbf16>, tensor<65536x64xbf16>) -> tensor<64x64xbf16>
  func.return %z : tensor<64x64xbf16>
}
}

// -----

// CHECK-LABEL: @no_kernel_when_there_is_no_gpu
// CHECK: graph.matmul
func.func @no_kernel_when_there_is_no_gpu(%x: tensor<512x256xbf16>, %y: tensor<256x1024xbf16>) -> tensor<512x1024xbf16> {
  %z = graph.matmul %x, %y : (tensor<512x256xbf16>, tensor<256x1024xbf16>) -> tensor<512x1024xbf16>
  func.return %z : tensor<512x1024xbf16>
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// CHECK-LABEL: @kernel_of_few_rows
// CHECK: loop.kernel
func.func @kernel_of_few_rows(%x: tensor<2x4096xbf16>, %y: tensor<4096x4096xbf16, #stepwell.layout<(4096, 4096), (1, 4096)>>) -> tensor<2x4096xbf16> {
  %z = graph.matmul %x, %y : (tensor<2x4096xbf16>, tensor<4096x4096xbf16, #stepwell.layout<(4096, 4096), (1, 4096)>>) -> tensor<2x4096xbf16>
  func.return %z : tensor<2x4096xbf16>
}

// What walks over few rows at a time must know how many they are.
// CHECK-LABEL: @no_kernel_when_few_rows_may_become_more
// CHECK: graph.matmul
func.func @no_kernel_when_few_rows_may_become_more(%s0: index, %x: tensor<?x4096xbf16, #stepwell.layout<(s0, 4096), (4096, 1)>>, %y: tensor<4096x4096xbf16, #stepwell.layout<(4096, 4096), (1, 4096)>>) -> tensor<?x4096xbf16, #stepwell.layout<(s0, 4096), (4096, 1)>> attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?, hint 2>]} {
  %z = graph.matmul %x, %y : (tensor<?x4096xbf16, #stepwell.layout<(s0, 4096), (4096, 1)>>, tensor<4096x4096xbf16, #stepwell.layout<(4096, 4096), (1, 4096)>>) -> tensor<?x4096xbf16, #stepwell.layout<(s0, 4096), (4096, 1)>>
  func.return %z : tensor<?x4096xbf16, #stepwell.layout<(s0, 4096), (4096, 1)>>
}

// CHECK-LABEL: @no_kernel_when_there_are_no_columns
// CHECK: graph.matmul
func.func @no_kernel_when_there_are_no_columns(%x: tensor<2x4096xbf16>, %y: tensor<4096x0xbf16, #stepwell.layout<(4096, 0), (1, 4096)>>) -> tensor<2x0xbf16> {
  %z = graph.matmul %x, %y : (tensor<2x4096xbf16>, tensor<4096x0xbf16, #stepwell.layout<(4096, 0), (1, 4096)>>) -> tensor<2x0xbf16>
  func.return %z : tensor<2x0xbf16>
}

// CHECK-LABEL: @no_kernel_when_a_factor_is_the_same_in_all_products
// CHECK: graph.batch_matmul
func.func @no_kernel_when_a_factor_is_the_same_in_all_products(%x: tensor<8x128x64xbf16, #stepwell.layout<(8, 128, 64), (0, 64, 1)>>, %y: tensor<8x64x256xbf16>) -> tensor<8x128x256xbf16> {
  %z = graph.batch_matmul %x, %y : (tensor<8x128x64xbf16, #stepwell.layout<(8, 128, 64), (0, 64, 1)>>, tensor<8x64x256xbf16>) -> tensor<8x128x256xbf16>
  func.return %z : tensor<8x128x256xbf16>
}
}

// -----

// All products that can be kernels become some where they are measured, but for those of f32.
module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>, stepwell.measure} {
// CHECK-LABEL: @kernel_to_be_measured
// CHECK: loop.kernel
func.func @kernel_to_be_measured(%x: tensor<64x65536xbf16>, %y: tensor<65536x64xbf16>) -> tensor<64x64xbf16> {
  %z = graph.matmul %x, %y : (tensor<64x65536xbf16>, tensor<65536x64xbf16>) -> tensor<64x64xbf16>
  func.return %z : tensor<64x64xbf16>
}

// CHECK-LABEL: @no_kernel_to_be_measured_when_f32_is_large
// CHECK: graph.matmul
func.func @no_kernel_to_be_measured_when_f32_is_large(%x: tensor<512x256xf32>, %y: tensor<256x1024xf32>) -> tensor<512x1024xf32> {
  %z = graph.matmul %x, %y : (tensor<512x256xf32>, tensor<256x1024xf32>) -> tensor<512x1024xf32>
  func.return %z : tensor<512x1024xf32>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_80", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// CHECK-LABEL: @no_kernel_when_the_gpu_copies_no_boxes
// CHECK: graph.matmul
func.func @no_kernel_when_the_gpu_copies_no_boxes(%x: tensor<512x256xbf16>, %y: tensor<256x1024xbf16>) -> tensor<512x1024xbf16> {
  %z = graph.matmul %x, %y : (tensor<512x256xbf16>, tensor<256x1024xbf16>) -> tensor<512x1024xbf16>
  func.return %z : tensor<512x1024xbf16>
}
}
