"""What fusion must make of the programs that models consist of: one kernel each, with the same results."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stepwell.ir import loop
from stepwell.lowering.analysis.costs import LAUNCH_BYTES, bytes_moved
from stepwell.lowering.loop.coalesce_dims import LoopCoalesceDims
from stepwell.lowering.loop.fuse_leftovers import LoopFuseLeftovers
from stepwell.lowering.loop.fuse_nests import LoopFuseNests, refusals
from stepwell.lowering.loop.fuse_producers import LoopFuseProducers
from stepwell.lowering.loop.fuse_siblings import LoopFuseSiblings
from stepwell.lowering.loop.hoist_invariants import LoopHoistInvariants
from stepwell.lowering.loop.shrink_locals import LoopShrinkLocals
from stepwell.lowering.loop.simplify import LoopSimplify
from stepwell.tests.lowering.loop_programs import Program, Tensor
from stepwell.tests.lowering.loop_text import function_of, kernels_of, parse, run, transform_and_compare

PASSES = [
    LoopSimplify,
    LoopFuseProducers,
    LoopFuseNests,
    LoopFuseSiblings,
    LoopFuseLeftovers,
    LoopShrinkLocals,
    LoopHoistInvariants,
    LoopSimplify,
    LoopCoalesceDims,
]


def fuse(
    program: Program, *results: Tensor, sizes: dict[str, int] | None = None, rtol: float = 2e-6
) -> list[loop.KernelOp]:
    """The kernels left of a program; its results stay the same and its bytes do not grow."""
    text = program.text(*results)
    before = cost(kernels_of(parse(text)))
    kernels = transform_and_compare(text, PASSES, sizes, rtol)
    assert cost(kernels) <= before
    return kernels


def cost(kernels: Sequence[loop.KernelOp]) -> int:
    return sum(bytes_moved(kernel) + LAUNCH_BYTES for kernel in kernels)


def locals_of(kernel: loop.KernelOp) -> list[loop.LocalOp]:
    return [op for op in kernel.walk() if isinstance(op, loop.LocalOp)]


# -- programs ----------------------------------------------------------------------------------------


def softmax(p: Program, x: Tensor) -> Tensor:
    m = p.reduce("max", x)
    e = p.pointwise("math.exp", p.pointwise("arith.subf", x, m.at("i0")))
    s = p.reduce("add", e)
    return p.pointwise("arith.divf", e, s.at("i0"))


def layer_norm(p: Program, h: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    columns = h.sizes[-1]
    assert isinstance(columns, int)
    mean = p.reduce("add", h, scale=columns)
    centered = p.pointwise("arith.subf", h, mean.at("i0"))
    variance = p.reduce("add", p.pointwise("arith.mulf", centered, centered), scale=columns)
    rstd = p.pointwise("math.rsqrt", p.pointwise("arith.addf", variance, 1e-5))
    normal = p.pointwise("arith.mulf", centered, rstd.at("i0"))
    scaled = p.pointwise("arith.mulf", normal, weight.at("i1"))
    return p.pointwise("arith.addf", scaled, bias.at("i1")), mean, rstd


# -- one kernel each ---------------------------------------------------------------------------------


def test_chain_of_thirty_pointwise_ops() -> None:
    p = Program()
    x, y = p.input(4, 6), p.input(4, 6)
    value = x
    for position in range(30):
        value = p.pointwise("math.tanh", value) if position % 3 else p.pointwise("arith.addf", value, y)
    (kernel,) = fuse(p, value)
    assert not locals_of(kernel)
    assert sum(isinstance(op, loop.ReadOp) for op in kernel.walk()) == 2


def test_pointwise_values_that_are_also_results() -> None:
    p = Program()
    x = p.input(4, 6)
    a = p.pointwise("math.exp", x)
    b = p.pointwise("math.tanh", a)
    c = p.pointwise("arith.mulf", a, b)
    (kernel,) = fuse(p, a, c)
    assert len(kernel.results) == 2
    assert sum(isinstance(op, loop.ReadOp) for op in kernel.walk()) == 1


def test_softmax() -> None:
    p = Program()
    (kernel,) = fuse(p, softmax(p, p.input(4, 8)))
    (row,) = locals_of(kernel)
    assert [size.constant for size in row.sizes] == [8]


def test_masked_softmax_of_heads() -> None:
    p = Program()
    scores, mask = p.input(2, 3, 4, 5), p.input(2, 4, 5)
    x = p.pointwise("arith.addf", p.pointwise("arith.mulf", scores, 0.125), mask.at("i0", "i2", "i3"))
    m = p.reduce("max", x)
    e = p.pointwise("math.exp", p.pointwise("arith.subf", x, m.at("i0", "i1", "i2")))
    s = p.reduce("add", e)
    (kernel,) = fuse(p, p.pointwise("arith.divf", e, s.at("i0", "i1", "i2")))
    assert [size.constant for row in locals_of(kernel) for size in row.sizes] == [5]


def test_layer_norm_with_residual() -> None:
    p = Program()
    x, r, w, b = p.input(4, 8), p.input(4, 8), p.input(8), p.input(8)
    h = p.pointwise("arith.addf", x, r)
    y, mean, rstd = layer_norm(p, h, w, b)
    (kernel,) = fuse(p, h, y, mean, rstd)
    assert len(kernel.results) == 4
    assert not locals_of(kernel)


def test_rms_norm_in_bf16() -> None:
    p = Program()
    x, w = p.input(4, 8, dtype="bf16"), p.input(8, dtype="bf16")
    wide = p.pointwise("arith.extf", x)
    mean = p.reduce("add", p.pointwise("arith.mulf", wide, wide), scale=8)
    rstd = p.pointwise("math.rsqrt", p.pointwise("arith.addf", mean, 1e-6))
    narrow = p.pointwise("arith.truncf", p.pointwise("arith.mulf", wide, rstd.at("i0")))
    (kernel,) = fuse(p, p.pointwise("arith.mulf", narrow, w.at("i1")), rstd)
    assert len(kernel.results) == 2


def cross_entropy(p: Program, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rows = x.sizes[0]
    assert isinstance(rows, int)
    m = p.reduce("max", x)
    shifted = p.pointwise("arith.subf", x, m.at("i0"))
    total = p.reduce("add", p.pointwise("math.exp", shifted))
    log_total = p.pointwise("math.log", total)
    log_probability = p.pointwise("arith.subf", shifted, log_total.at("i0"))
    picked = p.pointwise("arith.negf", p.gather_rows(log_probability, target))
    return p.reduce("add", picked, scale=rows), m, log_total


def test_cross_entropy_is_one_nested_reduction() -> None:
    p = Program()
    loss, m, log_total = cross_entropy(p, p.input(5, 11), p.input(5, dtype="i64"))
    (kernel,) = fuse(p, loss, m, log_total)
    (outer,) = [op for op in kernel.block.ops if isinstance(op, loop.NestOp)]
    assert isinstance(outer, loop.ReduceOp)
    assert [type(op) for op in outer.block.ops if isinstance(op, loop.NestOp)] == [loop.ReduceOp, loop.ReduceOp]


def test_cross_entropy_backward() -> None:
    p = Program()
    x, m, log_total, scale = p.input(5, 7), p.input(5), p.input(5), p.input()
    shifted = p.pointwise("arith.subf", p.pointwise("arith.subf", x, m.at("i0")), log_total.at("i0"))
    probability = p.pointwise("math.exp", shifted)
    (kernel,) = fuse(p, p.pointwise("arith.mulf", probability, scale.at()))
    assert len(list(kernel.block.ops)) <= 2


# -- backward ----------------------------------------------------------------------------------------


def test_softmax_backward() -> None:
    p = Program()
    g, y = p.input(4, 8), p.input(4, 8)
    product = p.pointwise("arith.mulf", g, y)
    total = p.reduce("add", product)
    (kernel,) = fuse(p, p.pointwise("arith.subf", product, p.pointwise("arith.mulf", y, total.at("i0"))))
    assert len(kernel.results) == 1


def test_log_softmax_backward() -> None:
    p = Program()
    g, y = p.input(4, 8), p.input(4, 8)
    total = p.reduce("add", g)
    probability = p.pointwise("math.exp", y)
    fuse_to_one = fuse(p, p.pointwise("arith.subf", g, p.pointwise("arith.mulf", probability, total.at("i0"))))
    assert len(fuse_to_one) == 1


def test_layer_norm_backward_is_a_row_and_a_column_kernel() -> None:
    p = Program()
    g, x, w, mean, rstd = p.input(6, 8), p.input(6, 8), p.input(8), p.input(6), p.input(6)
    normal = p.pointwise("arith.mulf", p.pointwise("arith.subf", x, mean.at("i0")), rstd.at("i0"))
    scaled = p.pointwise("arith.mulf", g, w.at("i1"))
    first = p.reduce("add", scaled, scale=8)
    second = p.reduce("add", p.pointwise("arith.mulf", scaled, normal), scale=8)
    inner = p.pointwise("arith.subf", scaled, first.at("i0"))
    inner = p.pointwise("arith.subf", inner, p.pointwise("arith.mulf", normal, second.at("i0")))
    dx = p.pointwise("arith.mulf", inner, rstd.at("i0"))
    dw = p.reduce("add", p.pointwise("arith.mulf", g, normal), dims=(0,))
    db = p.reduce("add", g, dims=(0,))
    kernels = fuse(p, dx, dw, db, rtol=1e-5)
    assert sorted(len(kernel.results) for kernel in kernels) == [1, 2]


def test_rms_norm_backward_in_bf16() -> None:
    p = Program()
    g, x, w, rstd = p.input(6, 8, dtype="bf16"), p.input(6, 8, dtype="bf16"), p.input(8, dtype="bf16"), p.input(6)
    wide_g, wide_x = p.pointwise("arith.extf", g), p.pointwise("arith.extf", x)
    wide_w = p.pointwise("arith.extf", w)
    normal = p.pointwise("arith.mulf", wide_x, rstd.at("i0"))
    scaled = p.pointwise("arith.mulf", wide_g, wide_w.at("i1"))
    mean = p.reduce("add", p.pointwise("arith.mulf", scaled, normal), scale=8)
    inner = p.pointwise("arith.subf", scaled, p.pointwise("arith.mulf", normal, mean.at("i0")))
    dx = p.pointwise("arith.truncf", p.pointwise("arith.mulf", inner, rstd.at("i0")))
    dw = p.pointwise("arith.truncf", p.reduce("add", p.pointwise("arith.mulf", wide_g, normal), dims=(0,)))
    assert len(fuse(p, dx, dw, rtol=1e-2)) == 2


# -- spaces that differ ------------------------------------------------------------------------------


def test_softmax_of_a_reshaped_and_permuted_value() -> None:
    p = Program()
    x = p.input(12, 10)
    y = p.pointwise("math.tanh", x)  # also a result, so that it cannot be computed at its reads
    heads = y.at("(i0 * 2 + i1) * 3 + i2", "i3")
    heads = p.pointwise("arith.mulf", heads, 0.5, sizes=(2, 2, 3, 10))
    m = p.reduce("max", heads)
    (kernel,) = fuse(p, y, p.pointwise("arith.subf", heads, m.at("i0", "i1", "i2")))
    assert len(kernel.results) == 2


def test_consumer_over_flattened_rows() -> None:
    p = Program()
    x = p.input(3, 4, 6)
    y = p.pointwise("math.exp", x)
    flat = p.reduce("add", p.pointwise("math.tanh", y.at("i0 floordiv 4", "i0 mod 4", "i1"), sizes=(12, 6)))
    assert len(fuse(p, y, flat)) == 1


def test_consumer_with_permuted_dims() -> None:
    p = Program()
    y = p.pointwise("math.exp", p.input(4, 6))
    z = p.pointwise("math.tanh", y.at("i1", "i0"), sizes=(6, 4))
    (kernel,) = fuse(p, y, z)
    assert not locals_of(kernel)


def test_dynamic_rows() -> None:
    p = Program(symbols={"s0": 64})
    x, r, w, b = p.input("s0", 8), p.input("s0", 8), p.input(8), p.input(8)
    y, *_ = layer_norm(p, p.pointwise("arith.addf", x, r), w, b)
    assert len(fuse(p, softmax(p, y), sizes={"s0": 5})) == 1


def test_dynamic_rows_and_columns() -> None:
    p = Program(symbols={"s0": 64, "s1": 32})
    assert len(fuse(p, softmax(p, p.input("s0", "s1")), sizes={"s0": 3, "s1": 7})) == 1


# -- what stays apart --------------------------------------------------------------------------------


def test_a_row_kernel_and_a_column_sum_stay_apart() -> None:
    p = Program()
    y = softmax(p, p.input(4, 8))
    assert len(fuse(p, y, p.reduce("add", y, dims=(0,)))) == 2


def test_kernels_around_an_extern_that_joins_them_stay_apart() -> None:
    p = Program()
    y = p.pointwise("math.exp", p.input(4, 8))
    z = p.pointwise("arith.addf", y, p.extern(y))
    module = parse(p.text(z))
    run(module, PASSES)
    assert len(kernels_of(module)) == 2


def test_refusals_say_why_kernels_stay_apart() -> None:
    p = Program()
    y = softmax(p, p.input(4, 8))
    module = parse(p.text(y, p.reduce("add", y, dims=(0,))))
    run(module, PASSES)
    (refusal,) = refusals(function_of(module))
    assert refusal.consumer.kernel_name.data == "add"
    assert refusal.reason == "their index spaces share no leading index"


PARALLEL = """loop.parallel (%i) to (8) {
      %v = loop.read %SOURCE[%i] : tensor<8xf32>
      %w = arith.negf %v : f32
      loop.write %w, %o[%i] : memref<8xf32>
    }"""

SUM = """%s = loop.reduce (%i) to (8) [add] -> f32 {
      %v = loop.read %SOURCE[%i] : tensor<8xf32>
      loop.yield %v : f32
    }
    loop.write %s, %o[] : memref<f32>"""

SCALAR = """%v = loop.read %SOURCE[] : tensor<f32>
    %w = arith.negf %v : f32
    loop.write %w, %o[] : memref<f32>"""


@pytest.mark.parametrize(
    ("bodies", "types", "reason"),
    [
        ((PARALLEL + PARALLEL, PARALLEL), ("8xf32", "8xf32"), "one of them has several nests"),
        ((PARALLEL, PARALLEL + PARALLEL), ("8xf32", "8xf32"), "one of them has several nests"),
        (
            (SUM + "\n" + SUM.replace("%s", "%t"), SCALAR),
            ("f32", "f32"),
            "one of them has several nests",
        ),
        ((SCALAR, SCALAR), ("f32", "f32"), "nobody tried: they could be joined"),
        ((SUM, SCALAR), ("f32", "f32"), "nobody tried: they could be joined"),
    ],
)
def test_each_refusal_has_its_reason(bodies: tuple[str, str], types: tuple[str, str], reason: str) -> None:
    first, second = (
        f"""%{name} = loop.kernel "{name}" outs(%o : memref<{type_}>) -> tensor<{type_}> {{
    {body.replace("SOURCE", source)}
  }}"""
        for name, source, body, type_ in zip("yz", "xy", bodies, types, strict=True)
    )
    argument = "tensor<f32>" if bodies[0] == SCALAR else "tensor<8xf32>"
    module = parse(f"""func.func @f(%x: {argument}) -> tensor<{types[1]}> {{
  {first}
  {second}
  func.return %z : tensor<{types[1]}>
}}""")
    (refusal,) = refusals(function_of(module))
    assert refusal.reason == reason


@pytest.mark.parametrize("order", [0, 1])
def test_fusion_past_an_unrelated_extern_keeps_values_in_order(order: int) -> None:
    p = Program()
    x = p.input(4, 8)
    y = p.pointwise("math.exp", x)
    sorted_y = p.extern(y)
    z = p.pointwise("math.tanh", y)
    results = [p.pointwise("arith.negf", sorted_y), z] if order else [z, p.pointwise("arith.negf", sorted_y)]
    module = parse(p.text(y, *results))
    run(module, PASSES)
    assert len(kernels_of(module)) == 2
