// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

func.func @unary(%x0 : tensor<8xf32>, %x1 : tensor<8xi32>, %x2 : tensor<4x8xf32, #stepwell.layout<(4, 8), (1, 4)>>) {
  %r0 = graph.exp %x0 : tensor<8xf32>
  %r1 = graph.exp2 %x0 : tensor<8xf32>
  %r2 = graph.expm1 %x0 : tensor<8xf32>
  %r3 = graph.log %x0 : tensor<8xf32>
  %r4 = graph.log2 %x0 : tensor<8xf32>
  %r5 = graph.log10 %x0 : tensor<8xf32>
  %r6 = graph.log1p %x0 : tensor<8xf32>
  %r7 = graph.sqrt %x0 : tensor<8xf32>
  %r8 = graph.rsqrt %x0 : tensor<8xf32>
  %r9 = graph.reciprocal %x0 : tensor<8xf32>
  %r10 = graph.sin %x0 : tensor<8xf32>
  %r11 = graph.cos %x0 : tensor<8xf32>
  %r12 = graph.tan %x0 : tensor<8xf32>
  %r13 = graph.asin %x0 : tensor<8xf32>
  %r14 = graph.acos %x0 : tensor<8xf32>
  %r15 = graph.atan %x0 : tensor<8xf32>
  %r16 = graph.sinh %x0 : tensor<8xf32>
  %r17 = graph.cosh %x0 : tensor<8xf32>
  %r18 = graph.tanh %x0 : tensor<8xf32>
  %r19 = graph.asinh %x0 : tensor<8xf32>
  %r20 = graph.acosh %x0 : tensor<8xf32>
  %r21 = graph.atanh %x0 : tensor<8xf32>
  %r22 = graph.erf %x0 : tensor<8xf32>
  %r23 = graph.erfc %x0 : tensor<8xf32>
  %r24 = graph.sigmoid %x0 : tensor<8xf32>
  %r25 = graph.floor %x0 : tensor<8xf32>
  %r26 = graph.ceil %x0 : tensor<8xf32>
  %r27 = graph.round %x0 : tensor<8xf32>
  %r28 = graph.trunc %x0 : tensor<8xf32>
  %r29 = graph.neg %x0 : tensor<8xf32>
  %r30 = graph.abs %x0 : tensor<8xf32>
  %r31 = graph.sign %x0 : tensor<8xf32>
  %r32 = graph.relu %x0 : tensor<8xf32>
  %r33 = graph.not %x1 : tensor<8xi32>
  %r34 = graph.isnan %x0 : (tensor<8xf32>) -> tensor<8xi1>
  %r35 = graph.isinf %x0 : (tensor<8xf32>) -> tensor<8xi1>
  %r36 = graph.signbit %x0 : (tensor<8xf32>) -> tensor<8xi1>
  %r38 = graph.probability %x0 : tensor<8xf32>
  %r37 = graph.copy %x2 : (tensor<4x8xf32, #stepwell.layout<(4, 8), (1, 4)>>) -> tensor<4x8xf32>
  func.return
}
// CHECK-LABEL: @unary
// CHECK: graph.exp %{{.*}} : tensor<8xf32>
// CHECK: graph.exp2 %{{.*}} : tensor<8xf32>
// CHECK: graph.expm1 %{{.*}} : tensor<8xf32>
// CHECK: graph.log %{{.*}} : tensor<8xf32>
// CHECK: graph.log2 %{{.*}} : tensor<8xf32>
// CHECK: graph.log10 %{{.*}} : tensor<8xf32>
// CHECK: graph.log1p %{{.*}} : tensor<8xf32>
// CHECK: graph.sqrt %{{.*}} : tensor<8xf32>
// CHECK: graph.rsqrt %{{.*}} : tensor<8xf32>
// CHECK: graph.reciprocal %{{.*}} : tensor<8xf32>
// CHECK: graph.sin %{{.*}} : tensor<8xf32>
// CHECK: graph.cos %{{.*}} : tensor<8xf32>
// CHECK: graph.tan %{{.*}} : tensor<8xf32>
// CHECK: graph.asin %{{.*}} : tensor<8xf32>
// CHECK: graph.acos %{{.*}} : tensor<8xf32>
// CHECK: graph.atan %{{.*}} : tensor<8xf32>
// CHECK: graph.sinh %{{.*}} : tensor<8xf32>
// CHECK: graph.cosh %{{.*}} : tensor<8xf32>
// CHECK: graph.tanh %{{.*}} : tensor<8xf32>
// CHECK: graph.asinh %{{.*}} : tensor<8xf32>
// CHECK: graph.acosh %{{.*}} : tensor<8xf32>
// CHECK: graph.atanh %{{.*}} : tensor<8xf32>
// CHECK: graph.erf %{{.*}} : tensor<8xf32>
// CHECK: graph.erfc %{{.*}} : tensor<8xf32>
// CHECK: graph.sigmoid %{{.*}} : tensor<8xf32>
// CHECK: graph.floor %{{.*}} : tensor<8xf32>
// CHECK: graph.ceil %{{.*}} : tensor<8xf32>
// CHECK: graph.round %{{.*}} : tensor<8xf32>
// CHECK: graph.trunc %{{.*}} : tensor<8xf32>
// CHECK: graph.neg %{{.*}} : tensor<8xf32>
// CHECK: graph.abs %{{.*}} : tensor<8xf32>
// CHECK: graph.sign %{{.*}} : tensor<8xf32>
// CHECK: graph.relu %{{.*}} : tensor<8xf32>
// CHECK: graph.not %{{.*}} : tensor<8xi32>
// CHECK: graph.isnan %{{.*}} : (tensor<8xf32>) -> tensor<8xi1>
// CHECK: graph.isinf %{{.*}} : (tensor<8xf32>) -> tensor<8xi1>
// CHECK: graph.signbit %{{.*}} : (tensor<8xf32>) -> tensor<8xi1>
// CHECK: graph.probability %{{.*}} : tensor<8xf32>
// CHECK: graph.copy %{{.*}} : (tensor<4x8xf32, #stepwell.layout<(4, 8), (1, 4)>>) -> tensor<4x8xf32>

func.func @binary(%x0 : tensor<8xf32>, %x1 : tensor<8xf32>, %x2 : tensor<8xi32>, %x3 : tensor<8xi32>) {
  %r0 = graph.add %x0, %x1 : tensor<8xf32>
  %r1 = graph.sub %x0, %x1 : tensor<8xf32>
  %r2 = graph.mul %x0, %x1 : tensor<8xf32>
  %r3 = graph.div %x0, %x1 : tensor<8xf32>
  %r4 = graph.floordiv %x0, %x1 : tensor<8xf32>
  %r5 = graph.truncdiv %x0, %x1 : tensor<8xf32>
  %r6 = graph.remainder %x0, %x1 : tensor<8xf32>
  %r7 = graph.fmod %x0, %x1 : tensor<8xf32>
  %r8 = graph.pow %x0, %x1 : tensor<8xf32>
  %r9 = graph.maximum %x0, %x1 : tensor<8xf32>
  %r10 = graph.minimum %x0, %x1 : tensor<8xf32>
  %r11 = graph.atan2 %x0, %x1 : tensor<8xf32>
  %r12 = graph.copysign %x0, %x1 : tensor<8xf32>
  %r13 = graph.and %x2, %x3 : tensor<8xi32>
  %r14 = graph.or %x2, %x3 : tensor<8xi32>
  %r15 = graph.xor %x2, %x3 : tensor<8xi32>
  %r16 = graph.shl %x2, %x3 : tensor<8xi32>
  %r17 = graph.shr %x2, %x3 : tensor<8xi32>
  func.return
}
// CHECK-LABEL: @binary
// CHECK: graph.add %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.sub %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.mul %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.div %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.floordiv %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.truncdiv %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.remainder %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.fmod %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.pow %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.maximum %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.minimum %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.atan2 %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.copysign %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.and %{{.*}}, %{{.*}} : tensor<8xi32>
// CHECK: graph.or %{{.*}}, %{{.*}} : tensor<8xi32>
// CHECK: graph.xor %{{.*}}, %{{.*}} : tensor<8xi32>
// CHECK: graph.shl %{{.*}}, %{{.*}} : tensor<8xi32>
// CHECK: graph.shr %{{.*}}, %{{.*}} : tensor<8xi32>

func.func @choice_and_conversion(%x0 : tensor<8xf32>, %x1 : tensor<8xf32>, %x2 : tensor<8xi1>, %x3 : tensor<8xf32>) {
  %r0 = graph.compare %x0, %x1 is lt : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  %r1 = graph.select %x2, %x0, %x1 : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %r2 = graph.fma %x0, %x1, %x3 : tensor<8xf32>
  %r3 = graph.convert %x0 : (tensor<8xf32>) -> tensor<8xbf16>
  %r4 = graph.bitcast %x0 : (tensor<8xf32>) -> tensor<8xi32>
  func.return
}
// CHECK-LABEL: @choice_and_conversion
// CHECK: graph.compare %{{.*}}, %{{.*}} is lt : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
// CHECK: graph.select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK: graph.fma %{{.*}}, %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK: graph.convert %{{.*}} : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK: graph.bitcast %{{.*}} : (tensor<8xf32>) -> tensor<8xi32>

func.func @reductions(%x0 : tensor<4x8xf32>, %x1 : tensor<4x8xi1>) {
  %r0 = graph.sum %x0 [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %r1 = graph.prod %x0 [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %r2 = graph.max %x0 [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %r3 = graph.min %x0 [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %r4 = graph.any %x1 [1] : (tensor<4x8xi1>) -> tensor<4xi1>
  %r5 = graph.all %x1 [1] : (tensor<4x8xi1>) -> tensor<4xi1>
  %r6 = graph.argmax %x0 [1] : (tensor<4x8xf32>) -> tensor<4xi64>
  %r7 = graph.argmin %x0 [1] : (tensor<4x8xf32>) -> tensor<4xi64>
  %r8 = graph.scan %x0 dim 1 with add : tensor<4x8xf32>
  func.return
}
// CHECK-LABEL: @reductions
// CHECK: graph.sum %{{.*}} [1] : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK: graph.prod %{{.*}} [1] : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK: graph.max %{{.*}} [1] : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK: graph.min %{{.*}} [1] : (tensor<4x8xf32>) -> tensor<4xf32>
// CHECK: graph.any %{{.*}} [1] : (tensor<4x8xi1>) -> tensor<4xi1>
// CHECK: graph.all %{{.*}} [1] : (tensor<4x8xi1>) -> tensor<4xi1>
// CHECK: graph.argmax %{{.*}} [1] : (tensor<4x8xf32>) -> tensor<4xi64>
// CHECK: graph.argmin %{{.*}} [1] : (tensor<4x8xf32>) -> tensor<4xi64>
// CHECK: graph.scan %{{.*}} dim 1 with add : tensor<4x8xf32>

func.func @views(%x0 : tensor<4x8xf32>, %x1 : tensor<4x1xf32>, %x2 : tensor<4x9xf32>) {
  %r0 = graph.permute %x0 [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32, #stepwell.layout<(8, 4), (1, 8)>>
  %r1 = graph.reshape %x0 : (tensor<4x8xf32>) -> tensor<32xf32>
  %r2 = graph.broadcast %x1 : (tensor<4x1xf32>) -> tensor<2x4x8xf32>
  %r3 = graph.slice %x0 from (0, 2) step (1, 3) : (tensor<4x8xf32>) -> tensor<4x2xf32>
  %r4 = graph.flip %x0 [0] : tensor<4x8xf32>
  %r5 = graph.window %x2 step [2] dilation [1] : (tensor<4x9xf32>) -> tensor<4x4x3xf32>
  %r6 = graph.as_strided %x0 offset (8) : (tensor<4x8xf32>) -> tensor<3xf32, #stepwell.layout<(3), (9)>>
  func.return
}
// CHECK-LABEL: @views
// CHECK: graph.permute %{{.*}} [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32, #stepwell.layout<(8, 4), (1, 8)>>
// CHECK: graph.reshape %{{.*}} : (tensor<4x8xf32>) -> tensor<32xf32>
// CHECK: graph.broadcast %{{.*}} : (tensor<4x1xf32>) -> tensor<2x4x8xf32>
// CHECK: graph.slice %{{.*}} from (0, 2) step (1, 3) : (tensor<4x8xf32>) -> tensor<4x2xf32>
// CHECK: graph.flip %{{.*}} [0] : tensor<4x8xf32>
// CHECK: graph.window %{{.*}} step [2] dilation [1] : (tensor<4x9xf32>) -> tensor<4x4x3xf32>
// CHECK: graph.as_strided %{{.*}} offset (8) : (tensor<4x8xf32>) -> tensor<3xf32, #stepwell.layout<(3), (9)>>

func.func @creation(%x0 : tensor<i64>) {
  %r0 = graph.full f32<0.5> : tensor<4x8xf32>
  %r1 = graph.constant i64<1, 2, -3, 4> : tensor<2x2xi64>
  %r2 = graph.weight "layer.0.table" : tensor<512x64xf32>
  %r3 = graph.iota from (0) step (1) : tensor<8xi64>
  %r4 = graph.size (s0 * 2) : index
  %r5 = graph.size (s0 * 2) : tensor<i64>
  %r6 = graph.random %x0 stream 3 : (tensor<i64>) -> tensor<4x8xi32>
  func.return
}
// CHECK-LABEL: @creation
// CHECK: graph.full f32<0.5> : tensor<4x8xf32>
// CHECK: graph.constant i64<1, 2, -3, 4> : tensor<2x2xi64>
// CHECK: graph.weight "layer.0.table" : tensor<512x64xf32>
// CHECK: graph.iota from (0) step (1) : tensor<8xi64>
// CHECK: graph.size (s0 * 2) : index
// CHECK: graph.size (s0 * 2) : tensor<i64>
// CHECK: graph.random %{{.*}} stream 3 : (tensor<i64>) -> tensor<4x8xi32>

func.func @indexing(%x0 : tensor<4x8xf32>, %x1 : tensor<4x2xi64>, %x2 : tensor<4x8x6xf32>, %x3 : tensor<5xi64>, %x4 : tensor<5xi64>, %x5 : tensor<5x8xf32>, %x6 : tensor<4x2xf32>) {
  %r0 = graph.gather %x0, %x1 dim 1 bounds gather : (tensor<4x8xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
  %r1 = graph.index %x2, %x3, %x4 dims [0, 2] bounds index : (tensor<4x8x6xf32>, tensor<5xi64>, tensor<5xi64>) -> tensor<5x8xf32>
  %r2 = graph.index_put %x0, %x5, %x3 dims [0] bounds index with add : (tensor<4x8xf32>, tensor<5x8xf32>, tensor<5xi64>) -> tensor<4x8xf32>
  %r3 = graph.scatter %x0, %x1, %x6 dim 1 bounds gather with add : (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x8xf32>
  %r4 = graph.insert_slice %x0, %x6 from (0, 2) step (1, 3) : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x8xf32>
  %r5 = graph.cat %x0, %x6 dim 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  %r6 = graph.pad %x0 low (0, 1) value f32<0.0> : (tensor<4x8xf32>) -> tensor<4x10xf32>
  func.return
}
// CHECK-LABEL: @indexing
// CHECK: graph.gather %{{.*}}, %{{.*}} dim 1 bounds gather : (tensor<4x8xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
// CHECK: graph.index %{{.*}}, %{{.*}}, %{{.*}} dims [0, 2] bounds index : (tensor<4x8x6xf32>, tensor<5xi64>, tensor<5xi64>) -> tensor<5x8xf32>
// CHECK: graph.index_put %{{.*}}, %{{.*}}, %{{.*}} dims [0] bounds index with add : (tensor<4x8xf32>, tensor<5x8xf32>, tensor<5xi64>) -> tensor<4x8xf32>
// CHECK: graph.scatter %{{.*}}, %{{.*}}, %{{.*}} dim 1 bounds gather with add : (tensor<4x8xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x8xf32>
// CHECK: graph.insert_slice %{{.*}}, %{{.*}} from (0, 2) step (1, 3) : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x8xf32>
// CHECK: graph.cat %{{.*}}, %{{.*}} dim 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
// CHECK: graph.pad %{{.*}} low (0, 1) value f32<0.0> : (tensor<4x8xf32>) -> tensor<4x10xf32>

func.func @contractions(%x0 : tensor<4x8xf32>, %x1 : tensor<8x6xf32>, %x2 : tensor<6xf32>, %x3 : tensor<3x4x8xf32>, %x4 : tensor<3x8x6xf32>) {
  %r0 = graph.matmul %x0, %x1, %x2 : (tensor<4x8xf32>, tensor<8x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %r1 = graph.batch_matmul %x3, %x4 : (tensor<3x4x8xf32>, tensor<3x8x6xf32>) -> tensor<3x4x6xf32>
  func.return
}
// CHECK-LABEL: @contractions
// CHECK: graph.matmul %{{.*}}, %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<8x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
// CHECK: graph.batch_matmul %{{.*}}, %{{.*}} : (tensor<3x4x8xf32>, tensor<3x8x6xf32>) -> tensor<3x4x6xf32>

func.func @calls(%x0 : tensor<4x8xf32>, %x1 : tensor<8xf32>, %x2 : tensor<8xf32>) {
  %r0, %r1 = graph.extern "aten.topk.default"(%x0, 5, -1, true, true) : (tensor<4x8xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>)
  graph.extern "kernels.launch"(3, [[4, 1, 1]]), {metadata = {}, kwargs = {x = %x1, out = %x2, count = 8}} effect write : (tensor<8xf32>, tensor<8xf32>) -> ()
  graph.copy_into %x1, %x2 : (tensor<8xf32>, tensor<8xf32>) -> ()
  func.return
}
// CHECK-LABEL: @calls
// CHECK: graph.extern "aten.topk.default"(%{{.*}}, 5, -1, true, true) : (tensor<4x8xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>)
// CHECK: graph.extern "kernels.launch"(3, {{\[\[}}4, 1, 1]]), {metadata = {}, kwargs = {x = %{{.*}}, out = %{{.*}}, count = 8}} effect write
// CHECK: graph.copy_into %{{.*}}, %{{.*}} : (tensor<8xf32>, tensor<8xf32>) -> ()

func.func @attributes(%s0: index, %x: tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>, %c: tensor<4x!graph.dtype<"complex64">>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?, hint 8>]} {
  %r0 = graph.full f32<-inf> : tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>
  %r1 = graph.full bf16<nan> : tensor<4xbf16>
  %r2 = graph.constant f32<nan, nan(0x7FC00001), inf, -0.0, 1.0e-30, 16777216> : tensor<6xf32>
  %r3 = graph.constant i1<true, false> : tensor<2xi1>
  %r4 = graph.constant ui8<> : tensor<0xui8>
  %r5 = graph.extern "aten.none.default"(%c, [1, (s0 * 2), -3], none, -inf, 0.5, "mean", [%x, none, item %x]), {dtype = dtype<"float32">, device = device<"cpu">} effect random : (tensor<4x!graph.dtype<"complex64">>, tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>, tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>) -> index
  func.return
}
// CHECK-LABEL: @attributes
// CHECK: graph.full f32<-inf> : tensor<?x64xf32, #stepwell.layout<(s0, 64), (64, 1)>>
// CHECK: graph.full bf16<nan> : tensor<4xbf16>
// CHECK: graph.constant f32<nan, nan(0x7FC00001), inf, -0.0, 1.0e-30, 1.6777216e+07> : tensor<6xf32>
// CHECK: graph.constant i1<true, false> : tensor<2xi1>
// CHECK: graph.constant ui8<> : tensor<0xui8>
// CHECK: graph.extern "aten.none.default"(%{{.*}}, [1, (s0 * 2), -3], none, -inf, 0.5, "mean", [%{{.*}}, none, item %{{.*}}]), {dtype = dtype<"float32">, device = device<"cpu">} effect random

func.func @definitions(%s0: index, %x: tensor<8xf32>, %n: tensor<i64>) attributes {stepwell.symbols = [#stepwell.symbol<s0, 2, ?>, #stepwell.symbol<s1, 0, ?>, #stepwell.symbol<s2, -4, 9>, #stepwell.symbol<s3, 0, ?>]} {
  %r0 = graph.extern "aten.nonzero.default"(%x) defines (s1 = size(0, 0) floordiv 2, s3 = offset(0)) : (tensor<8xf32>) -> tensor<?x1xi64, #stepwell.layout<(s1 * 2, 1), (1, s1 * 2)>>
  %r1 = graph.extern "aten._local_scalar_dense.default"(%n) effect write defines (s2 = value(0)) : (tensor<i64>) -> index
  graph.extern "aten._assert_scalar.default"((min(s1, s2)), "nothing") effect check : () -> ()
  func.return
}
// CHECK-LABEL: @definitions
// CHECK: graph.extern "aten.nonzero.default"(%{{.*}}) defines (s1 = size(0, 0) floordiv 2, s3 = offset(0)) : (tensor<8xf32>) -> tensor<?x1xi64, #stepwell.layout<(s1 * 2, 1), (1, s1 * 2)>>
// CHECK: graph.extern "aten._local_scalar_dense.default"(%{{.*}}) effect write defines (s2 = value(0)) : (tensor<i64>) -> index
// CHECK: graph.extern "aten._assert_scalar.default"((min(s1, s2)), "nothing") effect check : () -> ()
