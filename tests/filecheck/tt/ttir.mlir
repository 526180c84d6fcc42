// RUN: xdsl-opt %s -t ttir | filecheck %s

// What Triton reads: one module for each kernel, ops of arith under their own names, no attributes of ours.
// CHECK-LABEL: module {
// CHECK: sym_name = "first"
// CHECK: "arith.extsi"(%{{.*}}) : (i32) -> i64
// CHECK-NOT: stepwell
"tt.func"() <{function_type = () -> (), sym_name = "first", sym_visibility = "public"}> ({
  %p = "tt.get_program_id"() <{axis = 0 : i32}> : () -> i32
  %q = "tt.extsi"(%p) : (i32) -> i64
  "tt.return"() : () -> ()
}) {stepwell.num_warps = 4 : i32} : () -> ()

// CHECK-LABEL: module {
// CHECK: sym_name = "second"
"tt.func"() <{function_type = () -> (), sym_name = "second", sym_visibility = "public"}> ({
  "tt.return"() : () -> ()
}) : () -> ()
