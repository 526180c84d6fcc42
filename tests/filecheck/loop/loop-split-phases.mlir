// RUN: xdsl-opt %s -p loop-split-phases --split-input-file | filecheck %s

// Nests that wait for each other become kernels; scalars and buffers go from one to the next as tensors.

// CHECK-LABEL: @centered
// CHECK: [[SUM:%\w+]] = loop.kernel "centered" outs([[S:%\w+]]: memref<f32>) -> tensor<f32>
// CHECK: [[TOTAL:%\w+]] = loop.reduce
// CHECK: loop.write [[TOTAL]], [[S]][]
// CHECK: [[Y:%\w+]], [[ROWS:%\w+]] = loop.kernel "centered"
// CHECK-NEXT: loop.read [[SUM]][] : tensor<f32>
// CHECK-NEXT: arith.constant 1.000000e+06
// CHECK: loop.parallel
// CHECK: func.return [[Y]], [[ROWS]]
func.func @centered(%x: tensor<1000x1000xf32>) -> (tensor<1000x1000xf32>, tensor<1000xf32>) {
  %y, %t = loop.kernel "centered" outs(%o : memref<1000x1000xf32>, %p : memref<1000xf32>) -> tensor<1000x1000xf32>, tensor<1000xf32> {
    %n = arith.constant 1.0e6 : f32
    %s = loop.reduce (%i, %j) to (1000, 1000) [add] -> f32 {
      %v = loop.read %x[%i, %j] : tensor<1000x1000xf32>
      loop.yield %v : f32
    }
    loop.parallel (%i) to (1000) {
      %mean = arith.divf %s, %n : f32
      %r = loop.reduce (%j) to (1000) [add] -> f32 {
        %v = loop.read %x[%i, %j] : tensor<1000x1000xf32>
        %d = arith.subf %v, %mean : f32
        loop.write %d, %o[%i, %j] : memref<1000x1000xf32>
        loop.yield %d : f32
      }
      loop.write %r, %p[%i] : memref<1000xf32>
    }
  }
  func.return %y, %t : tensor<1000x1000xf32>, tensor<1000xf32>
}

// A buffer that two nests write starts, in the second kernel, as what the first one made; a local becomes a tensor.
// CHECK-LABEL: @written_twice
// CHECK: [[A:%\w+]], [[L:%\w+]] = loop.kernel "fill" outs({{.*}}) -> tensor<100000xf32>, tensor<100000xf32>
// CHECK: [[B:%\w+]] = loop.kernel "fill" outs({{%\w+}}: memref<100000xf32> = [[A]])
// CHECK: loop.read [[L]][
// CHECK: func.return [[B]]
func.func @written_twice(%x: tensor<100000xf32>) -> tensor<100000xf32> {
  %y = loop.kernel "fill" outs(%o : memref<100000xf32>) -> tensor<100000xf32> {
    %row = loop.local (100000) : memref<100000xf32>
    loop.parallel (%i) to (100000) {
      %v = loop.read %x[%i] : tensor<100000xf32>
      loop.write %v, %o[%i] : memref<100000xf32>
      loop.write %v, %row[%i] : memref<100000xf32>
    }
    loop.parallel (%i) to (100000) {
      %v = loop.read %row[%i] : memref<100000xf32>
      loop.write %v, %o[-%i + 99999] add : memref<100000xf32>
    }
  }
  func.return %y : tensor<100000xf32>
}

// CHECK-LABEL: @no_split_when_small
// CHECK: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_small(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = loop.kernel "center" outs(%o : memref<8xf32>) -> tensor<8xf32> {
    %s = loop.reduce (%i) to (8) [add] -> f32 {
      %v = loop.read %x[%i] : tensor<8xf32>
      loop.yield %v : f32
    }
    loop.parallel (%i) to (8) {
      %v = loop.read %x[%i] : tensor<8xf32>
      %d = arith.subf %v, %s : f32
      loop.write %d, %o[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// A local stands before the ops that use it.
// CHECK-LABEL: @local_of_a_phase
// CHECK: [[S:%\w+]] = loop.kernel "sorted"
// CHECK: loop.kernel "sorted"
// CHECK: loop.kernel "sorted"
// CHECK-NEXT: loop.read [[S]][]
// CHECK-NEXT: [[L:%\w+]] = loop.local (2) : memref<2xf32>
// CHECK-NEXT: loop.write {{%\w+}}, [[L]][0]
func.func @local_of_a_phase(%x: tensor<100000xf32>) -> tensor<100000xf32> {
  %y = loop.kernel "sorted" outs(%o : memref<100000xf32>) -> tensor<100000xf32> {
    %s = loop.reduce (%i) to (100000) [add] -> f32 {
      %v = loop.read %x[%i] : tensor<100000xf32>
      loop.yield %v : f32
    }
    loop.parallel (%i) to (1) {
      loop.write %s, %o[%i] : memref<100000xf32>
    }
    %pair = loop.local (2) : memref<2xf32>
    loop.write %s, %pair[0] : memref<2xf32>
    loop.parallel (%i) to (100000) {
      %v = loop.read %x[%i] : tensor<100000xf32>
      %m = loop.read %pair[0] : memref<2xf32>
      %d = arith.subf %v, %m : f32
      loop.write %d, %o[%i] : memref<100000xf32>
    }
  }
  func.return %y : tensor<100000xf32>
}

// -----

// A local that stands before the first nest goes with the one phase that uses it, and is no scalar to hand on.
// CHECK-LABEL: @local_from_the_start
// CHECK: [[S:%\w+]] = loop.kernel "late" outs({{%\w+}}: memref<f32>) -> tensor<f32> {
// CHECK: loop.kernel "late" outs({{%\w+}}: memref<100000xf32>) -> tensor<100000xf32> {
// CHECK-NEXT: [[V:%\w+]] = loop.read [[S]][]
// CHECK-NEXT: [[L:%\w+]] = loop.local (100000)
// CHECK-NEXT: loop.parallel
// CHECK: loop.read [[L]][
func.func @local_from_the_start(%x: tensor<100000xf32>) -> tensor<100000xf32> {
  %y = loop.kernel "late" outs(%o : memref<100000xf32>) -> tensor<100000xf32> {
    %one = loop.local (100000) : memref<100000xf32>
    %s = loop.reduce (%i) to (100000) [add] -> f32 {
      %v = loop.read %x[%i] : tensor<100000xf32>
      loop.yield %v : f32
    }
    loop.parallel (%i) to (100000) {
      loop.write %s, %one[%i] : memref<100000xf32>
      %m = loop.read %one[%i] : memref<100000xf32>
      %v = loop.read %x[%i] : tensor<100000xf32>
      %d = arith.subf %v, %m : f32
      loop.write %d, %o[%i] : memref<100000xf32>
    }
  }
  func.return %y : tensor<100000xf32>
}

// -----

// A phase may write one buffer twice.
// CHECK-LABEL: @two_writes_of_a_phase
// CHECK: %{{.*}} = loop.kernel "pairs" outs({{%[0-9a-z]+}}: memref<2x100000xf32>) -> tensor<2x100000xf32>
// CHECK: loop.kernel "pairs" outs({{%[0-9a-z]+}}: memref<100000xf32>) -> tensor<100000xf32>
func.func @two_writes_of_a_phase(%x: tensor<100000xf32>) -> (tensor<2x100000xf32>, tensor<100000xf32>) {
  %y, %z = loop.kernel "pairs" outs(%o : memref<2x100000xf32>, %p : memref<100000xf32>) -> tensor<2x100000xf32>, tensor<100000xf32> {
    loop.parallel (%i) to (100000) {
      %v = loop.read %x[%i] : tensor<100000xf32>
      loop.write %v, %o[0, %i] : memref<2x100000xf32>
      loop.write %v, %o[1, %i] : memref<2x100000xf32>
    }
    loop.parallel (%i) to (100000) {
      %v = loop.read %o[1, -%i + 99999] : memref<2x100000xf32>
      loop.write %v, %p[%i] : memref<100000xf32>
    }
  }
  func.return %y, %z : tensor<2x100000xf32>, tensor<100000xf32>
}

// -----

// CHECK-LABEL: @no_split_when_a_phase_makes_nothing
// CHECK-COUNT-1: loop.kernel
// CHECK-NOT: loop.kernel
func.func @no_split_when_a_phase_makes_nothing(%x: tensor<100000xi64>) -> tensor<100000xi64> {
  %y = loop.kernel "checked" outs(%o : memref<100000xi64>) -> tensor<100000xi64> {
    %n = arith.constant 8 : i64
    loop.parallel (%i) to (100000) {
      %v = loop.read %x[%i] : tensor<100000xi64>
      %c = arith.cmpi slt, %v, %n : i64
      loop.assert %c, %v, "IndexError", "index {} is out of range"
    }
    loop.parallel (%i) to (100000) {
      %v = loop.read %x[%i] : tensor<100000xi64>
      loop.write %v, %o[%i] : memref<100000xi64>
    }
  }
  func.return %y : tensor<100000xi64>
}

// -----

// What both need of a tensor is made in both: a write behind the first one's nest would keep it on one thread.
// CHECK-LABEL: @scalars_of_several_phases
// CHECK-NEXT: loop.kernel "scale_sum" outs(%{{.*}}: memref<70000xf32>) -> tensor<70000xf32> {
// CHECK-NEXT: [[S:%\w+]] = loop.read %s[]
// CHECK-NEXT: math.exp [[S]]
// CHECK-NEXT: loop.parallel
// CHECK: loop.kernel "scale_sum" outs(%{{.*}}: memref<f32>) -> tensor<f32> {
// CHECK-NEXT: [[S:%\w+]] = loop.read %s[]
// CHECK-NEXT: math.exp [[S]]
// CHECK-NEXT: loop.reduce
func.func @scalars_of_several_phases(%x: tensor<70000xf32>, %s: tensor<f32>) -> (tensor<70000xf32>, tensor<f32>) {
  %y, %t = loop.kernel "scale_sum" outs(%o : memref<70000xf32>, %r : memref<f32>) -> tensor<70000xf32>, tensor<f32> {
    %v = loop.read %s[] : tensor<f32>
    %f = math.exp %v : f32
    loop.parallel (%i) to (70000) {
      %a = loop.read %x[%i] : tensor<70000xf32>
      %b = arith.mulf %a, %f : f32
      loop.write %b, %o[%i] : memref<70000xf32>
    }
    %sum = loop.reduce (%i) to (70000) [add] -> f32 {
      %a = loop.read %x[%i] : tensor<70000xf32>
      %b = arith.addf %a, %f : f32
      loop.yield %b : f32
    }
    loop.write %sum, %r[] : memref<f32>
  }
  func.return %y, %t : tensor<70000xf32>, tensor<f32>
}
