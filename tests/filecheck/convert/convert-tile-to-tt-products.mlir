// RUN: xdsl-opt %s -p convert-tile-to-tt --split-input-file | filecheck %s

// Boxes become descriptors, made before the first loop; the function for unaligned addresses has none.

// CHECK-LABEL: sym_name = "k"
// CHECK: [[A:%\w+]] = "tt.make_tensor_descriptor"(%{{.*}}) {{.*}} -> !tt.tensordesc<tensor<128x64xbf16>>
// CHECK: [[C:%\w+]] = "tt.make_tensor_descriptor"(%{{.*}}) {{.*}} -> !tt.tensordesc<tensor<128x32xbf16>>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: [[L:%\w+]] = "tt.descriptor_load"([[A]], %{{.*}}, %{{.*}})
// CHECK: [[P:%\w+]] = "tt.load"(%{{.*}}) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x64x!tt.ptr<bf16>>) -> tensor<64x64xbf16>
// CHECK: "tt.dot"([[L]], [[P]], %{{.*}})
// CHECK: "tt.reshape"(%{{.*}}) : (tensor<128x64xf32>) -> tensor<128x2x32xf32>
// CHECK-NEXT: "tt.trans"(%{{.*}}) <{order = array<i32: 0, 2, 1>}>
// CHECK-NEXT: "tt.split"
// CHECK: "tt.descriptor_store"([[C]], %{{.*}})
// CHECK: {tt.flatten}
// CHECK: stepwell.unaligned = "k_unaligned"
// CHECK-LABEL: sym_name = "k_unaligned"
// CHECK-NOT: tt.divisibility
// CHECK-NOT: tensordesc
// CHECK: "tt.dot"
// CHECK: "tt.store"
tile.kernel @k(%x : memref<?xbf16>, %y : memref<?xbf16>, %o : memref<?xbf16>) grid (2) attributes {stepwell.descriptors, stepwell.num_warps = 4 : i32, stepwell.num_stages = 3 : i32, stepwell.index_bits = 32 : i32} {
  %p = tile.program_id : index
  %f = arith.constant 0.0 : f32
  %z = tile.broadcast %f dims [] : f32 -> vector<128x64xf32>
  tile.for %n = [0] to [2] step 1 {
    %s = tile.for %k = [0] to [4] step 1 carry (%c = %z : vector<128x64xf32>) {
      %a = tile.load_box %x[%n * 128, %k * 64] of (256, 256) strides (256, 1) : memref<?xbf16> -> vector<128x64xbf16>
      %b = tile.load_box %y[%k * 64, 0] of (256, 64) strides (70, 1) : memref<?xbf16> -> vector<64x64xbf16>
      %d = tile.dot %a, %b, %c : vector<128x64xbf16>, vector<64x64xbf16>, vector<128x64xf32>
      tile.yield %d : vector<128x64xf32>
    }
    %l, %h = tile.halves %s : vector<128x64xf32> -> vector<128x32xf32>
    %r = arith.truncf %l : vector<128x32xf32> to vector<128x32xbf16>
    tile.store_box %r, %o[%n * 128, 0] of (256, 64) strides (64, 1) : vector<128x32xbf16>
    tile.yield
  }
}

// -----

// A box that reaches beyond the end of an array is masked where pointers address it, and reshaped if it is of more dims.
// CHECK-LABEL: sym_name = "ragged"
// CHECK: "tt.descriptor_load"(%{{.*}}) : (!tt.tensordesc<tensor<1x64x64xbf16>>, i32, i32, i32) -> tensor<1x64x64xbf16>
// CHECK-NEXT: "tt.reshape"(%{{.*}}) : (tensor<1x64x64xbf16>) -> tensor<64x64xbf16>
// CHECK-LABEL: sym_name = "ragged_unaligned"
// CHECK: "tt.cmpi"(%{{.*}}) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
// CHECK: "tt.load"(%{{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1>}>
tile.kernel @ragged(%x : memref<?xbf16>, %o : memref<?xbf16>) grid (2) attributes {stepwell.descriptors, stepwell.index_bits = 32 : i32} {
  %p = tile.program_id : index
  %a = tile.load_box %x[%p, 0, 0] of (2, 50, 64) strides (3200, 64, 1) from (64) : memref<?xbf16> -> vector<64x64xbf16>
  tile.store %a, %o[%p * 4096] strides (64, 1) : vector<64x64xbf16>, memref<?xbf16>
}

// -----

// A product that is rounded and goes on in f32 is rounded in one step.
// CHECK-LABEL: sym_name = "rounded"
// CHECK: [[D:%\w+]] = "tt.dot"
// CHECK: "tt.elementwise_inline_asm"([[D]]) <{asm_string = "{{.*}}cvt.rn.bf16x2.f32 $0, $1, zero; }"
// CHECK-NOT: arith.extf
tile.kernel @rounded(%x : memref<?xbf16>, %o : memref<?xbf16>) grid (1) {
  %f = arith.constant 0.0 : f32
  %z = tile.broadcast %f dims [] : f32 -> vector<64x64xf32>
  %a = tile.load_box %x[0, 0] of (64, 64) strides (64, 1) : memref<?xbf16> -> vector<64x64xbf16>
  %d = tile.dot %a, %a, %z : vector<64x64xbf16>, vector<64x64xbf16>, vector<64x64xf32>
  %r = arith.truncf %d : vector<64x64xf32> to vector<64x64xbf16>
  %e = math.absf %r : vector<64x64xbf16>
  tile.store_box %e, %o[0, 0] of (64, 64) strides (64, 1) : vector<64x64xbf16>
}
