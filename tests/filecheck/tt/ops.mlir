// RUN: xdsl-opt %s --split-input-file | xdsl-opt --split-input-file | filecheck %s

// Every op of the tt dialect prints in generic form, and what it prints it parses.

// CHECK-LABEL: "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}]
// CHECK-SAME: sym_name = "values", sym_visibility = "public"
"tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}, {}], function_type = (!tt.ptr<f32>, !tt.ptr<i32>, i32) -> (), sym_name = "values", sym_visibility = "public"}> ({
^bb0(%x : !tt.ptr<f32>, %y : !tt.ptr<i32>, %n : i32):
  // CHECK: "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
  %p = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
  // CHECK: "tt.get_num_programs"() <{axis = 0 : i32}> : () -> i32
  %q = "tt.get_num_programs"() <{axis = 0 : i32}> : () -> i32
  // CHECK: "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
  %r = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32>
  // CHECK: "tt.splat"(%{{.*}}) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
  %b = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
  // CHECK: "tt.addptr"(%{{.*}}, %{{.*}}) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
  %a = "tt.addptr"(%b, %r) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<64xi32>
  // CHECK: [[MASK:%\w+]] = "tt.cmpi"(%{{.*}}, %{{.*}}) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
  %m = "tt.cmpi"(%r, %ns) <{predicate = 2 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
  %zero = "arith.constant"() <{value = 0.0 : f32}> : () -> f32
  %z = "tt.splat"(%zero) : (f32) -> tensor<64xf32>
  // CHECK: "tt.load"(%{{.*}}, [[MASK]], %{{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
  %v = "tt.load"(%a, %m, %z) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
  // CHECK: "tt.cmpf"(%{{.*}}, %{{.*}}) <{predicate = 4 : i64}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  %less = "tt.cmpf"(%v, %z) <{predicate = 4 : i64}> : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  // CHECK: "tt.select"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %s = "tt.select"(%less, %z, %v) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  // CHECK: "tt.precise_sqrt"(%{{.*}}) : (tensor<64xf32>) -> tensor<64xf32>
  %root = "tt.precise_sqrt"(%s) : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: "tt.precise_divf"(%{{.*}}, %{{.*}}) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %d = "tt.precise_divf"(%root, %v) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  // CHECK: "tt.extern_elementwise"(%{{.*}}) <{libname = "", libpath = "", pure = true, symbol = "__nv_tanhf"}> : (tensor<64xf32>) -> tensor<64xf32>
  %t = "tt.extern_elementwise"(%d) <{libname = "", libpath = "", pure = true, symbol = "__nv_tanhf"}> : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: "tt.elementwise_inline_asm"(%{{.*}}) <{asm_string = "cvt.rn.bf16x2.f32 $0, $1, $1;", constraints = "=r,r", pure = true, packed_element = 1 : i32}> : (tensor<64xf32>) -> tensor<64xf32>
  %asm = "tt.elementwise_inline_asm"(%d) <{asm_string = "cvt.rn.bf16x2.f32 $0, $1, $1;", constraints = "=r,r", pure = true, packed_element = 1 : i32}> : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: "tt.bitcast"(%{{.*}}) : (tensor<64xf32>) -> tensor<64xi32>
  %bits = "tt.bitcast"(%t) : (tensor<64xf32>) -> tensor<64xi32>
  // CHECK: "tt.mulhiui"(%{{.*}}, %{{.*}}) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
  %h = "tt.mulhiui"(%bits, %r) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
  // CHECK: "tt.extsi"(%{{.*}}) : (tensor<64xi32>) -> tensor<64xi64>
  %w0 = "tt.extsi"(%h) : (tensor<64xi32>) -> tensor<64xi64>
  // CHECK: "tt.trunci"(%{{.*}}) : (tensor<64xi64>) -> tensor<64xi32>
  %w1 = "tt.trunci"(%w0) : (tensor<64xi64>) -> tensor<64xi32>
  // CHECK: "tt.extui"(%{{.*}}) : (tensor<64xi1>) -> tensor<64xi32>
  %w2 = "tt.extui"(%m) : (tensor<64xi1>) -> tensor<64xi32>
  // CHECK: "tt.sitofp"(%{{.*}}) : (tensor<64xi32>) -> tensor<64xf32>
  %f0 = "tt.sitofp"(%w1) : (tensor<64xi32>) -> tensor<64xf32>
  // CHECK: "tt.uitofp"(%{{.*}}) : (tensor<64xi32>) -> tensor<64xf32>
  %f1 = "tt.uitofp"(%w2) : (tensor<64xi32>) -> tensor<64xf32>
  // CHECK: "tt.fptosi"(%{{.*}}) : (tensor<64xf32>) -> tensor<64xi32>
  %i0 = "tt.fptosi"(%f0) : (tensor<64xf32>) -> tensor<64xi32>
  // CHECK: "tt.fptoui"(%{{.*}}) : (tensor<64xf32>) -> tensor<64xi32>
  %i1 = "tt.fptoui"(%f1) : (tensor<64xf32>) -> tensor<64xi32>
  // CHECK: "tt.store"(%{{.*}}, %{{.*}}, [[MASK]]) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
  "tt.store"(%a, %f1, %m) : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
  // CHECK: "tt.atomic_rmw"(%{{.*}}, %{{.*}}) <{atomic_rmw_op = 5 : i32, scope = 1 : i32, sem = 1 : i32}> : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> tensor<64xf32>
  %o = "tt.atomic_rmw"(%a, %f0) <{atomic_rmw_op = 5 : i32, scope = 1 : i32, sem = 1 : i32}> : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> tensor<64xf32>
  // CHECK: "tt.return"() : () -> ()
  "tt.return"() : () -> ()
}) : () -> ()

// -----

// CHECK-LABEL: sym_name = "blocks"
"tt.func"() <{function_type = (f32, f32) -> (), sym_name = "blocks"}> ({
^bb0(%x : f32, %y : f32):
  %v = "tt.splat"(%x) : (f32) -> tensor<64xf32>
  // CHECK: "tt.expand_dims"(%{{.*}}) <{axis = 1 : i32}> : (tensor<64xf32>) -> tensor<64x1xf32>
  %e = "tt.expand_dims"(%v) <{axis = 1 : i32}> : (tensor<64xf32>) -> tensor<64x1xf32>
  // CHECK: "tt.broadcast"(%{{.*}}) : (tensor<64x1xf32>) -> tensor<64x32xf32>
  %b = "tt.broadcast"(%e) : (tensor<64x1xf32>) -> tensor<64x32xf32>
  // CHECK: "tt.trans"(%{{.*}}) <{order = array<i32: 1, 0>}> : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %t = "tt.trans"(%b) <{order = array<i32: 1, 0>}> : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %c = "tt.splat"(%y) : (f32) -> tensor<64x64xf32>
  // CHECK: "tt.dot"(%{{.*}}, %{{.*}}, %{{.*}}) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}>
  %d = "tt.dot"(%b, %t, %c) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : (tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  // CHECK: "tt.reduce"(%{{.*}}) <{axis = 1 : i32}> ({
  %s = "tt.reduce"(%d) <{axis = 1 : i32}> ({
  ^bb1(%p : f32, %q : f32):
    %sum = "arith.addf"(%p, %q) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    // CHECK: "tt.reduce.return"(%{{.*}}) : (f32) -> ()
    "tt.reduce.return"(%sum) : (f32) -> ()
  // CHECK-NEXT: }) : (tensor<64x64xf32>) -> tensor<64xf32>
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  // CHECK: "tt.scan"(%{{.*}}) <{axis = 0 : i32, reverse = false}> ({
  %r = "tt.scan"(%s) <{axis = 0 : i32, reverse = false}> ({
  ^bb2(%p : f32, %q : f32):
    %sum = "arith.addf"(%p, %q) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    // CHECK: "tt.scan.return"(%{{.*}}) : (f32) -> ()
    "tt.scan.return"(%sum) : (f32) -> ()
  // CHECK-NEXT: }) : (tensor<64xf32>) -> tensor<64xf32>
  }) : (tensor<64xf32>) -> tensor<64xf32>
  "tt.return"() : () -> ()
}) : () -> ()

// -----

// CHECK-LABEL: sym_name = "boxes"
"tt.func"() <{function_type = (!tt.ptr<bf16>, i32, i64) -> (), sym_name = "boxes"}> ({
^bb0(%x : !tt.ptr<bf16>, %n : i32, %s : i64):
  // CHECK: "tt.make_tensor_descriptor"(%{{.*}}) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !tt.tensordesc<tensor<64x32xbf16>>
  %d = "tt.make_tensor_descriptor"(%x, %n, %n, %s, %s) <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}> : (!tt.ptr<bf16>, i32, i32, i64, i64) -> !tt.tensordesc<tensor<64x32xbf16>>
  // CHECK: "tt.descriptor_load"(%{{.*}}) : (!tt.tensordesc<tensor<64x32xbf16>>, i32, i32) -> tensor<64x32xbf16>
  %v = "tt.descriptor_load"(%d, %n, %n) : (!tt.tensordesc<tensor<64x32xbf16>>, i32, i32) -> tensor<64x32xbf16>
  // CHECK: "tt.descriptor_store"(%{{.*}}) : (!tt.tensordesc<tensor<64x32xbf16>>, tensor<64x32xbf16>, i32, i32) -> ()
  "tt.descriptor_store"(%d, %v, %n, %n) : (!tt.tensordesc<tensor<64x32xbf16>>, tensor<64x32xbf16>, i32, i32) -> ()
  // CHECK: "tt.reshape"(%{{.*}}) : (tensor<64x32xbf16>) -> tensor<64x16x2xbf16>
  %r = "tt.reshape"(%v) : (tensor<64x32xbf16>) -> tensor<64x16x2xbf16>
  // CHECK: "tt.split"(%{{.*}}) : (tensor<64x16x2xbf16>) -> (tensor<64x16xbf16>, tensor<64x16xbf16>)
  %a, %b = "tt.split"(%r) : (tensor<64x16x2xbf16>) -> (tensor<64x16xbf16>, tensor<64x16xbf16>)
  "tt.return"() : () -> ()
}) : () -> ()
