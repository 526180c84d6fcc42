// RUN: xdsl-opt %s -t 'asm{cpu="skylake-avx512" triple="x86_64-unknown-linux-gnu"}' | filecheck %s
// RUN: xdsl-opt %s -t 'asm{cpu="cortex-a76" triple="aarch64-unknown-linux-gnu"}' | filecheck %s --check-prefix ARM

// The same kernel for two named processors: eight numbers are one register here and two there.
// CHECK-LABEL: double:
// CHECK: vaddps %ymm{{.*}}, %ymm{{.*}}, %ymm
// CHECK: retq
// ARM-LABEL: double:
// ARM: fadd v{{.*}}.4s
// ARM-NEXT: fadd v{{.*}}.4s
// ARM: ret
tile.kernel @double(%x : memref<?xf32>, %o : memref<?xf32>) grid (3) {
  %p = tile.program_id : index
  %a = tile.load %x[%p * 8] strides (1) : memref<?xf32> -> vector<8xf32>
  %b = arith.addf %a, %a : vector<8xf32>
  tile.store %b, %o[%p * 8] strides (1) : vector<8xf32>, memref<?xf32>
}
