// RUN: xdsl-opt %s --split-input-file --verify-diagnostics | filecheck %s

tile.kernel @k(%x : memref<?xf32>, %s0 : f32) grid (s0) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>]} {
}
// CHECK: tile.kernel: expected 1 trailing index arguments for its symbols

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
} finish {
^bb0(%y : memref<?xf64>):
}
// CHECK: tile.kernel: expected the finish region to take the arguments of the body

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %v = tile.load %x[0] strides (1, 1) : memref<?xf32> -> vector<8xf32>
}
// CHECK: tile.load: expected 1 strides for vector<8xf32>, got 2

// -----

"tile.kernel"() <{sym_name = "k", grid = #stepwell.map<() -> (1)>}> ({
^bb0(%x : memref<?xf32>):
  %v = "tile.load"(%x) <{access = #stepwell.map<() -> (0)>, strides = #stepwell.map<() -> (1)>, operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (memref<?xf32>) -> vector<8xf64>
}) : () -> ()
// CHECK: tile.load: expected a block of f32, got vector<8xf64>

// -----

tile.kernel @k(%x : memref<?xf32>, %o : memref<?xf64>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  tile.store %v, %o[0] strides (1) : vector<8xf32>, memref<?xf64>
}
// CHECK: tile.store: expected a block of f64, got vector<8xf32>

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  %c = tile.compare slt %v, %v : vector<8xf32>
}
// CHECK: tile.compare: expected one of oeq,

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  %m, %n = tile.reduce add %v, %v dim 0 : vector<8xf32>, vector<8xf32>
}
// CHECK: tile.reduce: expected 1 operands for add, got 2

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  %w = tile.broadcast %v dims [0] : vector<8xf32> -> vector<4x8xf32>
}
// CHECK: tile.broadcast: expected dims that place (8,) in (4, 8), got (0,)

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  tile.for %i = [0] to [8] step 8 {
  }
}
// CHECK: tile.for contains empty block in single-block region that expects at least a terminator

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %n = tile.index [1] : i64
  %b = tile.philox %n, %x stream 0 : memref<?xf32>
}
// CHECK: tile.philox: expected an i64 counter

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  %w = tile.convert extf %v : vector<8xf32> -> vector<8xf64>
}
// CHECK: tile.convert: expected one of extsi, {{.*}}, got extf

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  %s = tile.scan argmax %v dim 0 : vector<8xf32>
}
// CHECK: tile.scan: expected a combiner of single values, got argmax

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<8xf32>
  %s = tile.scan add %v dim 1 : vector<8xf32>
}
// CHECK: tile.scan: expected a dimension of vector<8xf32>

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %p = tile.program_id : index
  %b = "tile.choose"(%p, %x) : (index, memref<?xf32>) -> memref<?xf64>
}
// CHECK: tile.choose: expected buffers of memref<?xf64>

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %v = tile.load_box %x[0, 0] of (8) strides (8, 1) : memref<?xf32> -> vector<8x8xf32>
}
// CHECK: tile.load_box: expected a place, a size and a stride for each dim of an array that holds vector<8x8xf32>

// -----

tile.kernel @k(%x : memref<?xf32>) grid (1) {
  %v = tile.load_box %x[0] of (8) strides (1) : memref<?xf32> -> vector<8x8xf32>
}
// CHECK: tile.load_box: expected a place, a size and a stride for each dim of an array that holds vector<8x8xf32>

// -----

tile.kernel @k(%x : memref<?xf16>) grid (1) {
  %a = tile.load_box %x[0, 0] of (8, 8) strides (8, 1) : memref<?xf16> -> vector<8x8xf16>
  %f = arith.constant 0.0 : f32
  %c = tile.broadcast %f dims [] : f32 -> vector<8x16xf32>
  %d = tile.dot %a, %a, %c : vector<8x8xf16>, vector<8x8xf16>, vector<8x16xf32>
}
// CHECK: tile.dot: expected (8, 8) · (8, 8) + (8, 8), got vector<8x8xf16>, vector<8x8xf16>, vector<8x16xf32>

// -----

tile.kernel @k(%x : memref<?xf16>) grid (1) {
  %a = tile.load_box %x[0] of (8) strides (1) : memref<?xf16> -> vector<8xf16>
  %l, %h = "tile.halves"(%a) : (vector<8xf16>) -> (vector<4xf16>, vector<8xf16>)
}
// CHECK: tile.halves: expected two blocks of half of vector<8xf16>
