// RUN: xdsl-opt %s -t llvm-ir | filecheck %s

// Each kernel is a module of its own: the function that runs programs lo <= p < hi, and the one that counts them.
// CHECK-LABEL: ; tile.kernel @first grid (3)
// CHECK: define void @first(ptr %args, i64 %lo, i64 %hi)
// CHECK: load <8 x float>
// CHECK: fadd <8 x float>
// CHECK: store <8 x float>
// CHECK: define i64 @first.grid(ptr %args)
// CHECK: ret i64 3
tile.kernel @first(%x : memref<?xf32>, %o : memref<?xf32>) grid (3) {
  %p = tile.program_id : index
  %a = tile.load %x[%p * 8] strides (1) : memref<?xf32> -> vector<8xf32>
  %b = arith.addf %a, %a : vector<8xf32>
  tile.store %b, %o[%p * 8] strides (1) : vector<8xf32>, memref<?xf32>
}

// CHECK-LABEL: ; tile.kernel @second grid (1)
// CHECK: define void @second(
// CHECK: define i64 @second.grid(
tile.kernel @second(%o : memref<?xf32>) grid (1) {
}
