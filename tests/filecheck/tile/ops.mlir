// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s --print-op-generic | xdsl-opt | filecheck %s

// CHECK-LABEL: tile.kernel @every_op
// CHECK-SAME: grid (s0 ceildiv 8) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} errors ["IndexError", "bad {}"] {
tile.kernel @every_op(%x : memref<?xf32>, %o : memref<?xf32>, %s0 : index) grid (s0 ceildiv 8) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} errors ["IndexError", "bad {}"] {
  // CHECK: %p = tile.program_id : index
  %p = tile.program_id : index
  %z = arith.constant 0.0 : f32
  // CHECK: %zv = tile.broadcast %z dims [] : f32 -> vector<64xf32>
  %zv = tile.broadcast %z dims [] : f32 -> vector<64xf32>
  // CHECK: %n = tile.index [%p * 8] : index
  %n = tile.index [%p * 8] : index
  // CHECK: %sum = tile.for %j, %mask = [%n] to [min(%n + 8, s0)] step 64 carry (%acc = %zv : vector<64xf32>) {
  %sum = tile.for %j, %mask = [%n] to [min(%n + 8, s0)] step 64 carry (%acc = %zv : vector<64xf32>) {
    // CHECK-NEXT: tile.load %x[%p * s0 + %j] strides (1) mask %mask : memref<?xf32> -> vector<64xf32>
    %v = tile.load %x[%p * s0 + %j] strides (1) mask %mask : memref<?xf32> -> vector<64xf32>
    // CHECK-NEXT: tile.load %x[%j] strides (s0) mask %mask else %zv : memref<?xf32> -> vector<64xf32>
    %w = tile.load %x[%j] strides (s0) mask %mask else %zv : memref<?xf32> -> vector<64xf32>
    // CHECK-NEXT: tile.compare olt %v, %w : vector<64xf32>
    %c = tile.compare olt %v, %w : vector<64xf32>
    // CHECK-NEXT: tile.select %c, %v, %w : vector<64xi1>, vector<64xf32>
    %q = tile.select %c, %v, %w : vector<64xi1>, vector<64xf32>
    // CHECK-NEXT: tile.convert uitofp %c : vector<64xi1> -> vector<64xf32>
    %u = tile.convert uitofp %c : vector<64xi1> -> vector<64xf32>
    // CHECK-NEXT: tile.iota 0 : vector<64xi64>
    %off = tile.iota 0 : vector<64xi64>
    // CHECK-NEXT: tile.assert %c, %off mask %mask code 1 : vector<64xi64>
    tile.assert %c, %off mask %mask code 1 : vector<64xi64>
    // CHECK-NEXT: tile.gather %x[%off] mask %mask else %zv : memref<?xf32>, vector<64xi64>
    %g = tile.gather %x[%off] mask %mask else %zv : memref<?xf32>, vector<64xi64>
    // CHECK-NEXT: tile.scatter %g, %o[%off] mask %mask add : vector<64xf32>, memref<?xf32>, vector<64xi64>
    tile.scatter %g, %o[%off] mask %mask add : vector<64xf32>, memref<?xf32>, vector<64xi64>
    // CHECK-NEXT: tile.prefetch %x[%j + 1024] lanes 64 mask %mask : memref<?xf32>
    tile.prefetch %x[%j + 1024] lanes 64 mask %mask : memref<?xf32>
    // CHECK-NEXT: tile.prefetch %o[%j + s0] lanes 16 write level 2 : memref<?xf32>
    tile.prefetch %o[%j + s0] lanes 16 write level 2 : memref<?xf32>
    %next = arith.addf %acc, %q : vector<64xf32>
    tile.yield %next : vector<64xf32>
  }
  %i0 = tile.index [%p] : i64
  // CHECK: tile.philox %i0, %i0 stream 3 : i64
  %bits = tile.philox %i0, %i0 stream 3 : i64
  // CHECK: %r = tile.reduce add %sum dim 0 : vector<64xf32>
  %r = tile.reduce add %sum dim 0 : vector<64xf32>
  // CHECK: %running = tile.scan add %sum dim 0 : vector<64xf32>
  %running = tile.scan add %sum dim 0 : vector<64xf32>
  %lanes = tile.iota 0 : vector<64xi64>
  // CHECK: %k, %a = tile.reduce argmax %sum, %lanes dim 0 : vector<64xf32>, vector<64xi64>
  %k, %a = tile.reduce argmax %sum, %lanes dim 0 : vector<64xf32>, vector<64xi64>
  // CHECK: %row = tile.scratch 64 : memref<?xf32>
  %row = tile.scratch 64 : memref<?xf32>
  // CHECK: tile.store %r, %o[%p] strides () add : f32, memref<?xf32>
  tile.store %r, %o[%p] strides () add : f32, memref<?xf32>
  // CHECK: tile.store %sum, %row[0] strides (1) : vector<64xf32>, memref<?xf32>
  tile.store %sum, %row[0] strides (1) : vector<64xf32>, memref<?xf32>
  // CHECK: tile.load %x[0] strides (16, 1) : memref<?xf32> -> vector<8x16xf32>
  %sq = tile.load %x[0] strides (16, 1) : memref<?xf32> -> vector<8x16xf32>
  // CHECK: tile.transpose %sq : vector<8x16xf32> -> vector<16x8xf32>
  %t = tile.transpose %sq : vector<8x16xf32> -> vector<16x8xf32>
  // CHECK: tile.for %e = [0] to [8] step 1 {
  tile.for %e = [0] to [8] step 1 {
    // CHECK-NEXT: tile.yield
    tile.yield
  }
// CHECK: } finish {
} finish {
^bb0(%x1 : memref<?xf32>, %o1 : memref<?xf32>, %s01 : index):
  // CHECK: tile.grid_size : index
  %g = tile.grid_size : index
}

// CHECK-LABEL: tile.kernel @product
tile.kernel @product(%x : memref<?xbf16>, %y : memref<?xbf16>, %o : memref<?xf32>, %s0 : index) grid (4) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
  %p = tile.program_id : index
  // CHECK: %a = tile.load_box %x[%p * 64, 0] of (s0, 32) strides (40, 1) : memref<?xbf16> -> vector<64x32xbf16>
  %a = tile.load_box %x[%p * 64, 0] of (s0, 32) strides (40, 1) : memref<?xbf16> -> vector<64x32xbf16>
  // CHECK: %b = tile.load_box %y[%p, 0, 0] of (4, 32, 16) strides (512, 16, 1) from (s0 + 8) : memref<?xbf16> -> vector<32x16xbf16>
  %b = tile.load_box %y[%p, 0, 0] of (4, 32, 16) strides (512, 16, 1) from (s0 + 8) : memref<?xbf16> -> vector<32x16xbf16>
  %f = arith.constant 0.0 : f32
  %c = tile.broadcast %f dims [] : f32 -> vector<64x16xf32>
  // CHECK: %d = tile.dot %a, %b, %c : vector<64x32xbf16>, vector<32x16xbf16>, vector<64x16xf32>
  %d = tile.dot %a, %b, %c : vector<64x32xbf16>, vector<32x16xbf16>, vector<64x16xf32>
  // CHECK: %l, %h = tile.halves %d : vector<64x16xf32> -> vector<64x8xf32>
  %l, %h = tile.halves %d : vector<64x16xf32> -> vector<64x8xf32>
  // CHECK: tile.store_box %l, %o[%p * 64, 8] of (s0, 16) strides (16, 1) : vector<64x8xf32>
  tile.store_box %l, %o[%p * 64, 8] of (s0, 16) strides (16, 1) : vector<64x8xf32>
}
