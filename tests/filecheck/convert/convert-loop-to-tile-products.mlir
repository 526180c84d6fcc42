// RUN: xdsl-opt %s -p convert-loop-to-tile --split-input-file | filecheck %s

// A product that has a schedule is summed up from boxes of its factors; what follows runs on parts of a tile.

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// 512 tiles: a program takes several, and goes down 8 rows of tiles before the next column.
// CHECK-LABEL: tile.kernel @several_tiles_0
// CHECK-SAME: grid (132) attributes {stepwell.num_warps = 8 : i32, stepwell.num_stages = 4 : i32
// CHECK-SAME: stepwell.descriptors
// CHECK: [[PROGRAM:%\w+]] = tile.program_id : index
// CHECK-NEXT: tile.for [[N:%\w+]] = [0] to [{{.*}}] step 1 {
// CHECK: [[TILE:%\w+]] = tile.index [[[N]] * 132 + [[PROGRAM]]] : index
// CHECK: [[ROW:%\w+]] = tile.index [{{.*}} mod 8] : index
// CHECK: [[COLUMN:%\w+]] = tile.index [{{.*}} floordiv 8] : index
// CHECK: [[SUM:%\w+]] = tile.for [[K:%\w+]] = [0] to [16] step 1 carry ([[ACC:%\w+]] = {{.*}} : vector<128x256xf32>) {
// CHECK-NEXT: [[A:%\w+]] = tile.load_box %{{.*}}[[[ROW]] * 128, [[K]] * 64] of (4096, 1024) strides (1024, 1) : memref<?xbf16> -> vector<128x64xbf16>
// CHECK-NEXT: [[W:%\w+]] = tile.load_box %{{.*}}[[[COLUMN]] * 256, [[K]] * 64] of (4096, 1024) strides (1024, 1) : memref<?xbf16> -> vector<256x64xbf16>
// CHECK-NEXT: [[B:%\w+]] = tile.transpose [[W]] : vector<256x64xbf16> -> vector<64x256xbf16>
// CHECK-NEXT: tile.dot [[A]], [[B]], [[ACC]] : vector<128x64xbf16>, vector<64x256xbf16>, vector<128x256xf32>
// CHECK: [[LOW:%\w+]], [[HIGH:%\w+]] = tile.halves [[SUM]] : vector<128x256xf32> -> vector<128x128xf32>
// CHECK: [[L:%\w+]] = arith.truncf [[LOW]]
// CHECK-NEXT: tile.store_box [[L]], %{{.*}}[[[ROW]] * 128, [[COLUMN]] * 256] of (4096, 4096) strides (4096, 1) : vector<128x128xbf16>
// CHECK: [[H:%\w+]] = arith.truncf [[HIGH]]
// CHECK-NEXT: tile.store_box [[H]], %{{.*}}[[[ROW]] * 128, [[COLUMN]] * 256 + 128] of (4096, 4096) strides (4096, 1) : vector<128x128xbf16>
func.func @main(%x: tensor<4096x1024xbf16>, %w: tensor<4096x1024xbf16>) -> tensor<4096x4096xbf16> {
  %z = loop.kernel "several_tiles" outs(%o : memref<4096x4096xbf16>) -> tensor<4096x4096xbf16> attributes {stepwell.product = #stepwell.product<128, 256, 64, warps = 8, stages = 4, descriptors>} {
    loop.parallel (%i, %j) to (4096, 4096) {
      %s = loop.reduce (%k) to (1024) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<4096x1024xbf16>
        %b = loop.read %w[%j, %k] : tensor<4096x1024xbf16>
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
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// 4 tiles: each is a program. The bias is masked, since columns end within a tile; factors and results are not.
// CHECK-LABEL: tile.kernel @one_tile_0
// CHECK-SAME: grid (4)
// CHECK: tile.for
// CHECK: tile.load_box %{{.*}} of (64, 100) strides (100, 1) : memref<?xf16> -> vector<64x64xf16>
// CHECK-NEXT: tile.dot
// CHECK: tile.compare slt %{{.*}}, %{{.*}} : vector<64xi32>
// CHECK: tile.load %{{.*}} strides (1) mask %{{.*}} : memref<?xf16> -> vector<64xf16>
// CHECK: tile.store_box %{{.*}} of (100, 100) strides (100, 1) : vector<64x64xf16>
func.func @main(%x: tensor<100x64xf16>, %y: tensor<64x100xf16>, %v: tensor<100xf16>) -> tensor<100x100xf16> {
  %z = loop.kernel "one_tile" outs(%o : memref<100x100xf16>) -> tensor<100x100xf16> attributes {stepwell.product = #stepwell.product<64, 64, 64, warps = 4, stages = 3>} {
    loop.parallel (%i, %j) to (100, 100) {
      %s = loop.reduce (%k) to (64) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<100x64xf16>
        %b = loop.read %y[%k, %j] : tensor<64x100xf16>
        %c = arith.extf %a : f16 to f32
        %d = arith.extf %b : f16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %u = loop.read %v[%j] : tensor<100xf16>
      %f = arith.extf %u : f16 to f32
      %t = arith.addf %s, %f : f32
      %r = arith.truncf %t : f32 to f16
      loop.write %r, %o[%i, %j] : memref<100x100xf16>
    }
  }
  func.return %z : tensor<100x100xf16>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// Each product of a batch has boxes of an array of three dims.
// CHECK-LABEL: tile.kernel @batch_0
// CHECK-SAME: grid (12)
// CHECK: [[BATCH:%\w+]] = tile.index [%{{.*}} floordiv 4] : index
// CHECK: tile.load_box %{{.*}}[[[BATCH]], %{{.*}}, %{{.*}}] of (3, 128, 64) strides (8192, 64, 1) : memref<?xbf16> -> vector<64x64xbf16>
// CHECK: tile.store_box %{{.*}}[[[BATCH]], %{{.*}}, %{{.*}}] of (3, 128, 128) strides (16384, 128, 1) : vector<64x64xbf16>
func.func @main(%x: tensor<3x128x64xbf16>, %y: tensor<3x64x128xbf16>) -> tensor<3x128x128xbf16> {
  %z = loop.kernel "batch" outs(%o : memref<3x128x128xbf16>) -> tensor<3x128x128xbf16> attributes {stepwell.product = #stepwell.product<64, 64, 64, warps = 4, stages = 3>} {
    loop.parallel (%n, %i, %j) to (3, 128, 128) {
      %s = loop.reduce (%k) to (64) [add] -> f32 {
        %a = loop.read %x[%n, %i, %k] : tensor<3x128x64xbf16>
        %b = loop.read %y[%n, %k, %j] : tensor<3x64x128xbf16>
        %c = arith.extf %a : bf16 to f32
        %d = arith.extf %b : bf16 to f32
        %p = arith.mulf %c, %d : f32
        loop.yield %p : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.write %r, %o[%n, %i, %j] : memref<3x128x128xbf16>
    }
  }
  func.return %z : tensor<3x128x128xbf16>
}
}

// -----

module attributes {stepwell.target = #stepwell.target<"sm_90", vector_bits = 128, registers = 255, cores = 132, l1_bytes = 232448, l2_bytes = 52428800, l3_bytes = 52428800>} {
// Lanes round each sum of f32: every step begins with zero, so that no chain of additions is as long as the product.
// CHECK-LABEL: tile.kernel @exact_0
// CHECK: [[ZERO:%\w+]] = tile.broadcast %{{.*}} : f32 -> vector<32x32xf32>
// CHECK: tile.for %{{.*}} carry ([[ACC:%\w+]] =
// CHECK: [[DOT:%\w+]] = tile.dot %{{.*}}, %{{.*}}, [[ZERO]] : vector<32x32xf32>, vector<32x32xf32>, vector<32x32xf32>
// CHECK-NEXT: arith.addf [[ACC]], [[DOT]]
func.func @main(%x: tensor<64x256xf32>, %y: tensor<256x64xf32>) -> tensor<64x64xf32> {
  %z = loop.kernel "exact" outs(%o : memref<64x64xf32>) -> tensor<64x64xf32> attributes {stepwell.product = #stepwell.product<32, 32, 32, warps = 4, stages = 3>} {
    loop.parallel (%i, %j) to (64, 64) {
      %s = loop.reduce (%k) to (256) [add] -> f32 {
        %a = loop.read %x[%i, %k] : tensor<64x256xf32>
        %b = loop.read %y[%k, %j] : tensor<256x64xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.write %s, %o[%i, %j] : memref<64x64xf32>
    }
  }
  func.return %z : tensor<64x64xf32>
}
}
