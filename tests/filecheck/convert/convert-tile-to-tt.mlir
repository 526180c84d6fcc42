// RUN: xdsl-opt %s -p convert-tile-to-tt --split-input-file | filecheck %s

// A kernel takes pointers that are promised to be aligned; how to launch it is said by attributes.
// CHECK-LABEL: "tt.func"() <{sym_name = "double"
// CHECK-SAME: function_type = (!tt.ptr<f32>, !tt.ptr<f32>) -> ()
// CHECK-SAME: arg_attrs = [{tt.divisibility = 16 : i32}, {tt.divisibility = 16 : i32}]
// CHECK: [[PROGRAM:%.*]] = "tt.get_program_id"() <{axis = 0 : i32}>
// CHECK: [[OFFSET:%.*]] = arith.muli [[PROGRAM]], %{{.*}} : i32
// CHECK: [[POINTER:%.*]] = "tt.addptr"(%{{.*}}, [[OFFSET]]) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
// CHECK: [[LANES:%.*]] = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}>
// CHECK: [[BASE:%.*]] = "tt.splat"([[POINTER]])
// CHECK: "tt.addptr"([[BASE]], [[LANES]])
// CHECK: "tt.load"
// CHECK: "tt.store"
// CHECK: "tt.return"
// CHECK: stepwell.num_warps = 2 : i32, stepwell.num_stages = 3 : i32, stepwell.grid = #stepwell.map<() -> (8)>
tile.kernel @double(%x : memref<?xf32>, %o : memref<?xf32>) grid (8) attributes {stepwell.num_warps = 2 : i32, stepwell.index_bits = 32 : i32} {
  %p = tile.program_id : index
  %v = tile.load %x[%p * 64] strides (1) : memref<?xf32> -> vector<64xf32>
  %w = arith.addf %v, %v : vector<64xf32>
  tile.store %w, %o[%p * 64] strides (1) : vector<64xf32>, memref<?xf32>
}

// -----

// Symbols come as i32 where their range fits; wide offsets are i64.
// CHECK-LABEL: sym_name = "symbols"
// CHECK-SAME: function_type = (!tt.ptr<f32>, i32, i64) -> ()
// CHECK-SAME: arg_attrs = [{tt.divisibility = 16 : i32}, {}, {}]
// CHECK: "tt.extsi"(%{{.*}}) : (i32) -> i64
// CHECK: stepwell.grid = #stepwell.map<()[s0] -> (s0 ceildiv 64)>
tile.kernel @symbols(%x : memref<?xf32>, %s0 : index, %s1 : index) grid (s0 ceildiv 64) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, 4096>, #stepwell.symbol<s1, 2, ?>]} {
  %v = tile.load %x[s0 * s1] strides () : memref<?xf32> -> f32
  tile.store %v, %x[0] strides () : f32, memref<?xf32>
}

// -----

// bf16 is computed in f32 and rounded once per op; quotients are exact, functions come from libdevice.
// CHECK-LABEL: sym_name = "narrow"
// CHECK: [[VALUE:%.*]] = "tt.load"
// CHECK: [[WIDE:%.*]] = arith.extf [[VALUE]] : tensor<64xbf16> to tensor<64xf32>
// CHECK: [[QUOTIENT:%.*]] = "tt.precise_divf"([[WIDE]], [[WIDE]])
// CHECK: [[ROUNDED:%.*]] = arith.truncf [[QUOTIENT]] : tensor<64xf32> to tensor<64xbf16>
// CHECK: arith.extf [[ROUNDED]]
// CHECK: "tt.extern_elementwise"(%{{.*}}) <{libname = "", libpath = "", pure = true, symbol = "__nv_tanhf"}>
tile.kernel @narrow(%x : memref<?xbf16>, %o : memref<?xbf16>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xbf16> -> vector<64xbf16>
  %q = arith.divf %v, %v : vector<64xbf16>
  %t = math.tanh %q : vector<64xbf16>
  tile.store %t, %o[0] strides (1) : vector<64xbf16>, memref<?xbf16>
}

// -----

// ½(1 + tanh) is a logistic function: 1 / (1 + exp2(-2 log2(e) x)).
// CHECK-LABEL: sym_name = "half_of_one_more_than_tanh"
// CHECK-NOT: extern_elementwise
// CHECK: [[POWER:%.*]] = math.exp2
// CHECK: [[BELOW:%.*]] = arith.addf [[POWER]]
// CHECK: [[SCALED:%.*]] = arith.mulf [[BELOW]], %{{.*}}
// CHECK: [[NEAR:%.*]] = "tt.elementwise_inline_asm"([[SCALED]]) <{asm_string = "rcp.approx.ftz.f32 $0, $1;"
// CHECK: [[LEFT:%.*]] = math.fma %{{.*}}, [[NEAR]], %{{.*}}
// CHECK: math.fma [[NEAR]], [[LEFT]], [[NEAR]]
tile.kernel @half_of_one_more_than_tanh(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %half = arith.constant 0.5 : f32
  %halves = tile.broadcast %half dims [] : f32 -> vector<64xf32>
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<64xf32>
  %t = math.tanh %v : vector<64xf32>
  %s = math.fma %t, %halves, %halves : vector<64xf32>
  tile.store %s, %o[0] strides (1) : vector<64xf32>, memref<?xf32>
}

// -----

// A quotient by one more than an exponential is such a product, and what that leaves of the dividend.
// CHECK-LABEL: sym_name = "silu"
// CHECK-NOT: precise_divf
// CHECK: [[BELOW:%.*]] = arith.addf
// CHECK: [[SCALED:%.*]] = arith.mulf [[BELOW]], %{{.*}}
// CHECK: [[NEAR:%.*]] = "tt.elementwise_inline_asm"([[SCALED]]) <{asm_string = "rcp.approx.ftz.f32 $0, $1;"
// CHECK: [[OVER:%.*]] = arith.mulf [[NEAR]], %{{.*}}
// CHECK: [[FIRST:%.*]] = arith.mulf [[V:%.*]], [[OVER]]
// CHECK: [[LEFT:%.*]] = math.fma %{{.*}}, %{{.*}}, [[V]]
// CHECK: math.fma [[LEFT]], [[OVER]], [[FIRST]]
// CHECK-NOT: precise_divf
tile.kernel @silu(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %one = arith.constant 1.0 : f32
  %ones = tile.broadcast %one dims [] : f32 -> vector<64xf32>
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<64xf32>
  %n = arith.negf %v : vector<64xf32>
  %e = math.exp %n : vector<64xf32>
  %b = arith.addf %ones, %e : vector<64xf32>
  %s = arith.divf %v, %b : vector<64xf32>
  tile.store %s, %o[0] strides (1) : vector<64xf32>, memref<?xf32>
}

// -----

// Others are divided exactly.
// CHECK-LABEL: sym_name = "no_product_when_what_is_added_is_not_one"
// CHECK-NOT: inline_asm
// CHECK: "tt.precise_divf"
tile.kernel @no_product_when_what_is_added_is_not_one(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %two = arith.constant 2.0 : f32
  %twos = tile.broadcast %two dims [] : f32 -> vector<64xf32>
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<64xf32>
  %e = math.exp %v : vector<64xf32>
  %b = arith.addf %twos, %e : vector<64xf32>
  %s = arith.divf %v, %b : vector<64xf32>
  tile.store %s, %o[0] strides (1) : vector<64xf32>, memref<?xf32>
}

// -----

// CHECK-LABEL: sym_name = "no_product_when_one_is_added_to_anything"
// CHECK-NOT: inline_asm
// CHECK: "tt.precise_divf"
tile.kernel @no_product_when_one_is_added_to_anything(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %one = arith.constant 1.0 : f32
  %ones = tile.broadcast %one dims [] : f32 -> vector<64xf32>
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<64xf32>
  %b = arith.addf %ones, %v : vector<64xf32>
  %s = arith.divf %v, %b : vector<64xf32>
  tile.store %s, %o[0] strides (1) : vector<64xf32>, memref<?xf32>
}

// -----

// By one number for a row whose results are narrow: a product with its reciprocal, brought near to 1 first.
// CHECK-LABEL: sym_name = "narrow_row"
// CHECK: [[D:%.*]] = "tt.load"({{.*}}) -> f32
// CHECK: [[NEAR:%.*]] = arith.mulf [[D]], [[SCALE:%.*]] : f32
// CHECK-NEXT: [[OVER:%.*]] = "tt.precise_divf"(%{{.*}}, [[NEAR]]) : (f32, f32) -> f32
// CHECK-NEXT: [[SCALES:%.*]] = "tt.splat"([[SCALE]])
// CHECK-NEXT: [[OVERS:%.*]] = "tt.splat"([[OVER]])
// CHECK-NEXT: [[X:%.*]] = arith.mulf %{{.*}}, [[SCALES]]
// CHECK-NEXT: [[Q:%.*]] = arith.mulf [[X]], [[OVERS]]
// CHECK-NEXT: arith.truncf [[Q]]
tile.kernel @narrow_row(%x : memref<?xf32>, %o : memref<?xbf16>) grid (1) {
  %d = tile.load %x[64] strides () : memref<?xf32> -> f32
  %ds = tile.broadcast %d dims [] : f32 -> vector<64xf32>
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<64xf32>
  %q = arith.divf %v, %ds : vector<64xf32>
  %n = arith.truncf %q : vector<64xf32> to vector<64xbf16>
  tile.store %n, %o[0] strides (1) : vector<64xbf16>, memref<?xbf16>
}

// -----

// CHECK-LABEL: sym_name = "no_reciprocal_when_a_result_is_wide"
// CHECK: "tt.precise_divf"{{.*}} -> tensor<64xf32>
tile.kernel @no_reciprocal_when_a_result_is_wide(%x : memref<?xf32>, %o : memref<?xbf16>, %w : memref<?xf32>) grid (1) {
  %d = tile.load %x[64] strides () : memref<?xf32> -> f32
  %ds = tile.broadcast %d dims [] : f32 -> vector<64xf32>
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<64xf32>
  %q = arith.divf %v, %ds : vector<64xf32>
  %n = arith.truncf %q : vector<64xf32> to vector<64xbf16>
  tile.store %n, %o[0] strides (1) : vector<64xbf16>, memref<?xbf16>
  tile.store %q, %w[0] strides (1) : vector<64xf32>, memref<?xf32>
}

// -----

// CHECK-LABEL: sym_name = "no_reciprocal_when_each_has_its_divisor"
// CHECK: "tt.precise_divf"{{.*}} -> tensor<64xf32>
tile.kernel @no_reciprocal_when_each_has_its_divisor(%x : memref<?xf32>, %o : memref<?xbf16>) grid (1) {
  %ds = tile.load %x[64] strides (1) : memref<?xf32> -> vector<64xf32>
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<64xf32>
  %q = arith.divf %v, %ds : vector<64xf32>
  %n = arith.truncf %q : vector<64xf32> to vector<64xbf16>
  tile.store %n, %o[0] strides (1) : vector<64xbf16>, memref<?xbf16>
}

// -----

// It stays where tanh itself is wanted, too.
// CHECK-LABEL: sym_name = "no_logistic_when_tanh_has_other_uses"
// CHECK: [[TANH:%.*]] = "tt.extern_elementwise"(%{{.*}}) <{libname = "", libpath = "", pure = true, symbol = "__nv_tanhf"}>
// CHECK: math.fma [[TANH]]
tile.kernel @no_logistic_when_tanh_has_other_uses(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %half = arith.constant 0.5 : f32
  %halves = tile.broadcast %half dims [] : f32 -> vector<64xf32>
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<64xf32>
  %t = math.tanh %v : vector<64xf32>
  %s = math.fma %t, %halves, %halves : vector<64xf32>
  %p = arith.mulf %s, %t : vector<64xf32>
  tile.store %p, %o[0] strides (1) : vector<64xf32>, memref<?xf32>
}

// -----

// A loop carries blocks, masks its last iteration and has loads in flight; a row is combined by a region.
// CHECK-LABEL: sym_name = "sum"
// CHECK: [[SUM:%\w+]] = scf.for %{{.*}} = %{{.*}} to [[HIGH:%\w+]] step %{{.*}} iter_args
// CHECK: [[LIMIT:%.*]] = "tt.splat"([[HIGH]])
// CHECK: [[MASK:%.*]] = "tt.cmpi"(%{{.*}}, [[LIMIT]]) <{predicate = 2 : i64}>
// CHECK: "tt.load"(%{{.*}}, [[MASK]], %{{.*}}) <{operandSegmentSizes = array<i32: 1, 1, 1>}>
// CHECK: scf.yield
// CHECK: tt.num_stages = 3 : i32
// CHECK: "tt.reduce"([[SUM]]) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^{{.*}}([[LEFT:%\w+]]: f32, [[RIGHT:%\w+]]: f32):
// CHECK-NEXT: [[BOTH:%.*]] = arith.addf [[LEFT]], [[RIGHT]]
// CHECK-NEXT: "tt.reduce.return"([[BOTH]])
tile.kernel @sum(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %z = arith.constant 0.0 : f32
  %zeros = tile.broadcast %z dims [] : f32 -> vector<64xf32>
  %sum = tile.for %j, %mask = [0] to [1000] step 64 carry (%acc = %zeros : vector<64xf32>) {
    %v = tile.load %x[%j] strides (1) mask %mask : memref<?xf32> -> vector<64xf32>
    %next = arith.addf %acc, %v : vector<64xf32>
    tile.yield %next : vector<64xf32>
  }
  %s = tile.reduce add %sum dim 0 : vector<64xf32>
  tile.store %s, %o[0] strides () : f32, memref<?xf32>
}

// -----

// A bool lies in a byte; a failed assertion goes to a word that the kernel takes behind its buffers.
// CHECK-LABEL: sym_name = "checked"
// CHECK-SAME: function_type = (!tt.ptr<i64>, !tt.ptr<i8>, !tt.ptr<i64>) -> ()
// CHECK: [[FAILED:%.*]] = arith.xori
// CHECK: [[WORD:%.*]] = arith.ori
// CHECK: "tt.store"(%{{.*}}, [[WORD]], [[FAILED]])
// CHECK: "tt.extui"(%{{.*}}) : (tensor<64xi1>) -> tensor<64xi8>
// CHECK: stepwell.errors = ["IndexError", "index {} is out of bounds"]
tile.kernel @checked(%x : memref<?xi64>, %o : memref<?xi1>) grid (1) errors ["IndexError", "index {} is out of bounds"] {
  %i = tile.load %x[0] strides (1) : memref<?xi64> -> vector<64xi64>
  %n = tile.index [100] : i64
  %limit = tile.broadcast %n dims [] : i64 -> vector<64xi64>
  %ok = tile.compare ult %i, %limit : vector<64xi64>
  tile.assert %ok, %i code 1 : vector<64xi64>
  tile.store %ok, %o[0] strides (1) : vector<64xi1>, memref<?xi1>
}

// -----

// CHECK-LABEL: sym_name = "scan"
// CHECK: [[WIDE:%\w+]] = arith.extf
// CHECK: "tt.scan"([[WIDE]]) <{axis = 0 : i32, reverse = false}> ({
// CHECK: "tt.scan.return"
// CHECK: }) : (tensor<64xf32>) -> tensor<64xf32>
// CHECK-NEXT: arith.truncf
tile.kernel @scan(%x : memref<?xbf16>, %o : memref<?xbf16>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xbf16> -> vector<64xbf16>
  %s = tile.scan add %v dim 0 : vector<64xbf16>
  tile.store %s, %o[0] strides (1) : vector<64xbf16>, memref<?xbf16>
}

// -----

// A load does not wait for what lies beside it.
// CHECK-LABEL: sym_name = "beside"
// CHECK: [[FIRST:%.*]] = "tt.load"
// CHECK: [[SECOND:%.*]] = "tt.load"(%{{.*}}, [[MASK:%\w+]], %{{\w+}})
// CHECK-NEXT: "tt.select"([[MASK]], [[SECOND]], [[FIRST]])
tile.kernel @beside(%x : memref<?xf32>, %o : memref<?xf32>) grid (1) {
  %v = tile.load %x[0] strides (1) : memref<?xf32> -> vector<64xf32>
  %n = tile.iota 0 : vector<64xi32>
  %c = arith.constant 32 : i32
  %l = tile.broadcast %c dims [] : i32 -> vector<64xi32>
  %m = tile.compare slt %n, %l : vector<64xi32>
  %w = tile.load %x[64] strides (1) mask %m else %v : memref<?xf32> -> vector<64xf32>
  tile.store %w, %o[0] strides (1) : vector<64xf32>, memref<?xf32>
}
