// RUN: xdsl-opt %s --split-input-file --verify-diagnostics | filecheck %s

"tt.func"() <{function_type = (f32) -> (), sym_name = "k"}> ({
^bb0(%x : i32):
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.func: expected arguments as (f32) -> () says

// -----

"tt.func"() <{arg_attrs = [], function_type = (f32) -> (), sym_name = "k"}> ({
^bb0(%x : f32):
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.func: expected attributes of 1 arguments

// -----

"tt.func"() <{function_type = () -> (), sym_name = "k"}> ({
^bb0():
  %r = "tt.make_range"() <{end = 48 : i32, start = 0 : i32}> : () -> tensor<48xi32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.make_range: expected a power of two of i32 numbers, got tensor<48xi32>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.splat"(%v) : (tensor<64xf32>) -> tensor<64xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.splat: expected a scalar and a block, got tensor<64xf32>, tensor<64xf32>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.expand_dims"(%v) <{axis = 0 : i32}> : (tensor<64xf32>) -> tensor<64x1xi32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.expand_dims: expected blocks of one element type

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.expand_dims"(%v) <{axis = 0 : i32}> : (tensor<64xf32>) -> tensor<64x1xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.expand_dims: expected a block of [1, 64], got tensor<64x1xf32>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.broadcast"(%v) : (tensor<64xf32>) -> tensor<32xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.broadcast: expected (64,) to repeat as (32,)

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.trans"(%v) <{order = array<i32: 1>}> : (tensor<64xf32>) -> tensor<64xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.trans: expected (64,) in the order (1,), got tensor<64xf32>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.addptr"(%v, %i) : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt: expected a pointer or a block of pointers, got tensor<64xf32>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.addptr"(%p, %v) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> tensor<64x!tt.ptr<f32>>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.addptr: expected an offset of i32 or i64, got tensor<64xf32>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.load"(%p, %m) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<64x!tt.ptr<f32>>, tensor<32xi1>) -> tensor<64xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.load: expected blocks of one shape, got tensor<64x!tt.ptr<f32>>, tensor<32xi1>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<64x!tt.ptr<f32>>) -> tensor<64xi32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.load: expected a result of f32, got tensor<64xi32>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  "tt.store"(%p, %i) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> ()
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.store: expected a value of f32, got tensor<64xi32>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.atomic_rmw"(%p, %v) <{atomic_rmw_op = 11 : i32, scope = 1 : i32, sem = 1 : i32}> : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> tensor<64xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.atomic_rmw: expected a kind from 1 to 10

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.cmpi"(%i, %i) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> i1
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.cmpi: expected operands of one type and i1 of their shape, got i1

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.cmpf"(%v, %v) <{predicate = 2 : i64}> : (tensor<64xf32>, tensor<64xf32>) -> i1
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.cmpf: expected operands of one type and i1 of their shape, got i1

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.select"(%m, %v, %i) : (tensor<32xi1>, tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.select: expected values of tensor<64xf32>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.select"(%m, %v, %v) : (tensor<32xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.select: expected a condition of i1, got tensor<32xi1>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.extsi"(%i) : (tensor<64xi32>) -> tensor<32xi64>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.extsi: expected blocks of one shape, got tensor<64xi32>, tensor<32xi64>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %r = "tt.mulhiui"(%i, %i) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi64>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.mulhiui: expected operands and result of one type

// -----

"tt.func"() <{function_type = (tensor<64x32xf32>, tensor<64x64xf32>) -> (), sym_name = "k"}> ({
^bb0(%a : tensor<64x32xf32>, %c : tensor<64x64xf32>):
  %d = "tt.dot"(%a, %a, %c) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.dot: expected (64, 32) · (32, 32) + (64, 32), got tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x64xf32>

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb1(%a : f32):
    "tt.reduce.return"(%a) : (f32) -> ()
  }) : (tensor<64xf32>) -> f32
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.reduce: expected a region that takes two scalars for each operand

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %s = "tt.scan"(%v) <{axis = 0 : i32, reverse = false}> ({
  ^bb1(%a : f32, %b : f32):
    "tt.scan.return"() : () -> ()
  }) : (tensor<64xf32>) -> tensor<64xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.scan: expected its region to return a scalar for each operand

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb1(%a : f32, %b : f32):
    "tt.reduce.return"(%a) : (f32) -> ()
  }) : (tensor<64xf32>) -> tensor<64xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.reduce: expected results that fit its operands

// -----

"tt.func"() <{function_type = (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi32>, tensor<32xi1>) -> (), sym_name = "k"}> ({
^bb0(%p : tensor<64x!tt.ptr<f32>>, %v : tensor<64xf32>, %i : tensor<64xi32>, %m : tensor<32xi1>):
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb1(%a : f32, %b : f32):
    "tt.return"(%a) : (f32) -> ()
  }) : (tensor<64xf32>) -> f32
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.reduce: expected its region to end in tt.reduce.return

// -----

"tt.func"() <{function_type = (!tt.ptr<bf16>, i32, i64) -> (), sym_name = "k"}> ({
^bb0(%x : !tt.ptr<bf16>, %n : i32, %s : i64):
  %d = "tt.make_tensor_descriptor"(%x, %n, %n, %s) <{operandSegmentSizes = array<i32: 1, 2, 1>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64) -> !tt.tensordesc<tensor<64x64xbf16>>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.make_tensor_descriptor: expected a size and a stride for each dim of tensor<64x64xbf16>

// -----

"tt.func"() <{function_type = (!tt.tensordesc<tensor<64x64xbf16>>, i32) -> (), sym_name = "k"}> ({
^bb0(%d : !tt.tensordesc<tensor<64x64xbf16>>, %n : i32):
  %v = "tt.descriptor_load"(%d, %n) : (!tt.tensordesc<tensor<64x64xbf16>>, i32) -> tensor<64x64xbf16>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.descriptor_load: expected tensor<64x64xbf16> and a place for each dim, got tensor<64x64xbf16>

// -----

"tt.func"() <{function_type = (tensor<8x4xf32>) -> (), sym_name = "k"}> ({
^bb0(%v : tensor<8x4xf32>):
  %r = "tt.reshape"(%v) : (tensor<8x4xf32>) -> tensor<8x8xf32>
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.reshape: expected the elements of tensor<8x4xf32>, got tensor<8x8xf32>

// -----

"tt.func"() <{function_type = (tensor<8x4xf32>) -> (), sym_name = "k"}> ({
^bb0(%v : tensor<8x4xf32>):
  %a, %b = "tt.split"(%v) : (tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  "tt.return"() : () -> ()
}) : () -> ()
// CHECK: tt.split: expected two blocks of tensor<8xf32>, got tensor<8xf32>
