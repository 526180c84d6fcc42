"""What an import keeps besides values: arguments, results, mutations, strides, symbols, source lines, externs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from xdsl.dialects.builtin import ArrayAttr

from stepwell.frontend.builder import GraphBuilder
from stepwell.frontend.import_fx import ConstantResult, FunctionResult, TensorInput, import_graph
from stepwell.frontend.symbols import SizeSource
from stepwell.ir import graph
from stepwell.ir.definitions import definitions_of
from stepwell.ir.errors import FrontendError
from stepwell.ir.locations import location_text
from stepwell.ir.shapes import SYMBOLS, SymbolAttr, sizes_of, strides_of
from stepwell.tests.frontend.evaluate import evaluate
from stepwell.tests.frontend.tracing import import_function, op_names, trace

# -- arguments and results ---------------------------------------------------------------------------


def test_static_arguments_are_the_tensors() -> None:
    imported = import_function(lambda x, y: x + y, torch.ones(3), torch.ones(3))
    assert imported.arguments == (TensorInput(0), TensorInput(1))
    assert imported.results == (FunctionResult(0),)


def test_symbols_come_first_with_range_and_hint() -> None:
    imported = import_function(lambda x: x * 2, torch.ones(5, 7), dynamic=True)
    assert imported.arguments == (SizeSource(0, 0), SizeSource(0, 1), TensorInput(0))
    declared = imported.function.attributes[SYMBOLS]
    assert isinstance(declared, ArrayAttr)
    known = [attr.data for attr in declared if isinstance(attr, SymbolAttr)]
    assert [(symbol.name, symbol.low, symbol.hint) for symbol in known] == [("s0", 2, 5), ("s1", 2, 7)]


def test_equal_sizes_are_one_symbol() -> None:
    imported = import_function(lambda x, y: x + y, torch.ones(5, 5), torch.ones(5, 5), dynamic=True)
    assert len([source for source in imported.arguments if isinstance(source, SizeSource)]) == 1


def test_one_import_serves_all_sizes() -> None:
    def function(x: Tensor) -> Tensor:
        return (x.reshape(-1, 2) - x.mean()).cumsum(0)[1:] * x.shape[0]

    imported = import_function(function, torch.randn(6, 4), dynamic=True)
    for rows in (2, 6, 31):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(evaluate(imported, [x])[0], function(x))


def test_sizes_and_none_are_results_of_their_own_kind() -> None:
    gm = trace(lambda x: x + 1, torch.ones(5, 7), dynamic=True)
    size = gm.graph.find_nodes(op="placeholder")[0].meta["val"].shape[0]
    output = gm.graph.output_node()
    with gm.graph.inserting_before(output):
        node = gm.graph.call_function(torch.ops.aten.sym_size.int, (gm.graph.find_nodes(op="placeholder")[0], 0))
    node.meta["val"] = size
    output.args = ((output.args[0], None, node, 3),)
    imported = import_graph(gm, [torch.ones(5, 7)])
    imported.module.verify()
    assert imported.results == (FunctionResult(0), ConstantResult(None), FunctionResult(1), ConstantResult(3))
    assert evaluate(imported, [torch.ones(9, 7)])[1:] == [None, 9, 3]


def test_an_unused_input_stays_an_argument() -> None:
    imported = import_function(lambda x, y: x + 1, torch.ones(3), torch.ones(4))
    assert len(imported.arguments) == 2


# -- sizes that depend on data -----------------------------------------------------------------------


def checks(imported: Any) -> list[str]:
    """The conditions that a function checks, in order."""
    externs = [op for op in imported.function.body.block.ops if isinstance(op, graph.ExternOp)]
    return [
        str(op.arguments.data.positional[0]) for op in externs if op.effect is not None and op.effect.data == "check"
    ]


def definitions(imported: Any) -> list[str]:
    return [str(known) for op in imported.function.body.block.ops for known in definitions_of(op)]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x[x > 0] * 2, ["s0 = size(0, 0)"]),
        (lambda x: torch.nonzero(x).sum(0), ["s0 = size(0, 0)"]),
        (lambda x: torch.unique(x, return_inverse=True)[0] + 1, ["s0 = size(0, 0)"]),
        (lambda x: torch.masked_select(x, x > 0).exp(), ["s0 = size(0, 0)"]),
        (lambda x: torch.repeat_interleave(x.abs().long()) + 1, ["s0 = size(0, 0)"]),
        (lambda x: x * x.sum().long().item(), ["s0 = value(0)"]),
        (lambda x: x * (x[x > 0].shape[0] + x[x < 0].shape[0]), ["s0 = size(0, 0)", "s1 = size(0, 0)"]),
    ],
    ids=["mask", "nonzero", "unique", "masked_select", "repeat_interleave", "item", "two"],
)
def test_the_op_that_gives_a_size_defines_its_symbol(function: Any, expected: list[str]) -> None:
    imported = import_function(function, torch.randn(6))
    assert definitions(imported) == expected
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(6) * 3
        torch.testing.assert_close(evaluate(imported, [x])[0], function(x))


def test_symbols_of_the_body_follow_those_of_the_arguments() -> None:
    imported = import_function(lambda x: x[x > 0] * x.shape[0], torch.randn(6), dynamic=True)
    assert [type(source).__name__ for source in imported.arguments] == ["SizeSource", "TensorInput"]
    assert definitions(imported) == ["s1 = size(0, 0)"]
    declared = imported.function.attributes[SYMBOLS]
    assert isinstance(declared, ArrayAttr)
    assert [attr.data.name for attr in declared if isinstance(attr, SymbolAttr)] == ["s0", "s1"]


def test_what_torch_takes_for_granted_is_checked_where_the_size_comes_to_be() -> None:
    def function(x: Tensor, count: Tensor) -> Tensor:
        n = count.item()
        torch._check(n >= 1)
        torch._check(n <= x.shape[0])
        return x[:n] + 1

    imported = import_function(function, torch.randn(6), torch.tensor(3))
    ops = list(op_names(imported))
    assert ops[:3] == ["extern", "extern", "extern"]
    assert len(checks(imported)) == len(set(checks(imported))) == 2
    x = torch.randn(6)
    assert torch.equal(evaluate(imported, [x, torch.tensor(2)])[0], x[:2] + 1)
    for bad in (0, 7):
        with pytest.raises(RuntimeError, match="Runtime assertion failed for expression"):
            evaluate(imported, [x, torch.tensor(bad)])


def test_an_assertion_of_the_graph_is_made_once_and_where_the_size_comes_to_be() -> None:
    def function(x: Tensor, count: Tensor) -> Tensor:
        n = count.item()
        torch._check(n <= x.shape[0])
        y = x * 2
        torch.ops.aten._assert_scalar.default(n <= x.shape[0], "too many")
        torch.ops.aten._assert_scalar.default(n >= 2, "too few")
        return y[:n] + 1

    imported = import_function(function, torch.randn(6), torch.tensor(3))
    assert len(checks(imported)) == len(set(checks(imported)))
    assert all("s0" in condition for condition in checks(imported))
    ops = list(op_names(imported))
    assert ops.index("mul") > max(position for position, name in enumerate(ops[:3]) if name == "extern")
    for bad, message in ((7, "too many"), (1, "too few")):
        with pytest.raises(RuntimeError, match=message):
            evaluate(imported, [torch.randn(6), torch.tensor(bad)])


def test_a_size_that_must_be_a_number_is_compared_with_it() -> None:
    def function(x: Tensor, count: Tensor) -> Tensor:
        n: Any = count.item()
        torch._check(n == x.shape[0])
        return torch.zeros(n) + x

    imported = import_function(function, torch.randn(6), torch.tensor(6))
    x = torch.randn(6)
    assert torch.equal(evaluate(imported, [x, torch.tensor(6)])[0], x)
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        evaluate(imported, [x, torch.tensor(5)])


def test_a_float_that_depends_on_data_stays_in_its_tensor() -> None:
    imported = import_function(lambda x: x * x.sum().item(), torch.randn(6))
    assert "extern" not in op_names(imported)
    x = torch.randn(6)
    torch.testing.assert_close(evaluate(imported, [x])[0], x * x.sum().item())


def test_an_extremum_over_a_size_that_may_be_0_is_left_to_eager() -> None:
    def function(x: Tensor) -> Tensor:
        return x[x > 0].max()

    imported = import_function(function, torch.randn(6))
    assert "max" not in op_names(imported)
    with pytest.raises(RuntimeError, match=r"max\(\): Expected reduction dim"):
        evaluate(imported, [-torch.ones(6)])


# -- memory ------------------------------------------------------------------------------------------


def test_a_mutated_input_is_written_at_the_end() -> None:
    gm = trace(lambda x, y: (x.add_(y), x * 2)[1], torch.ones(3), torch.ones(3))
    node = next(node for node in gm.graph.nodes if node.target is torch.ops.aten.add_.Tensor)
    node.target = torch.ops.aten.add.Tensor
    target = gm.graph.find_nodes(op="placeholder")[0]
    with gm.graph.inserting_before(gm.graph.output_node()):
        copy = gm.graph.call_function(torch.ops.aten.copy_.default, (target, node))
    copy.meta["val"] = node.meta["val"]
    imported = import_graph(gm, [torch.ones(3), torch.ones(3)])
    imported.module.verify()
    assert imported.mutated == (0,)
    assert list(op_names(imported))[-1] == "copy_into"
    x = torch.ones(3)
    evaluate(imported, [x, torch.ones(3)])
    assert x.tolist() == [2, 2, 2]


def result_type(imported: Any) -> Any:
    return imported.function.function_type.outputs.data[0]


def test_results_have_the_strides_of_eager() -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    imported = import_function(lambda x: torch.relu(x) + 1, x)
    assert [stride.constant for stride in strides_of(result_type(imported))] == list(x.stride())


def test_a_view_has_the_strides_of_a_view() -> None:
    imported = import_function(lambda x: x.t().expand(2, 4, 3), torch.randn(3, 4))
    assert [stride.constant for stride in strides_of(result_type(imported))] == [0, 1, 4]


def test_a_clone_is_a_copy_with_its_own_strides() -> None:
    imported = import_function(lambda x: x.t().contiguous(), torch.randn(3, 4))
    assert list(op_names(imported)) == ["permute", "copy"]
    assert [stride.constant for stride in strides_of(result_type(imported))] == [3, 1]


def test_an_op_that_changes_nothing_still_gives_a_new_tensor() -> None:
    imported = import_function(torch.floor, torch.ones(3, dtype=torch.int64))
    assert list(op_names(imported)) == ["copy"]


def test_held_tensors_become_constants_or_weights() -> None:
    small, large = torch.tensor([1.0, math.inf]), torch.randn(1000)
    imported = import_function(lambda x: x * small + large.sum(), torch.ones(2))
    assert "constant" in op_names(imported)
    weight = next(op for op in imported.function.body.block.ops if isinstance(op, graph.WeightOp))
    assert imported.objects[weight.weight.data] is large
    assert evaluate(imported, [torch.ones(2)])[0].tolist() == (small + large.sum()).tolist()


# -- source lines ------------------------------------------------------------------------------------


def test_ops_know_their_source_line() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.nn.functional.gelu(x)

    gm = trace(function, torch.ones(3))
    line = function.__code__.co_firstlineno + 1
    node = next(node for node in gm.graph.nodes if node.op == "call_function")
    node.meta["stack_trace"] = (
        f'  File "{__file__}", line {line}, in function\n    return gelu(x)\n'
        f'  File "{Path(torch.__file__).parent}/nn/functional.py", line 9, in gelu\n    return torch.gelu(x)\n'
    )
    imported = import_graph(gm, [torch.ones(3)])
    ops = [op for op in imported.function.body.block.ops if op.name != "func.return"]
    assert {location_text(op) for op in ops} == {f"{__file__}:{line}"}


def test_a_failing_import_names_op_and_line() -> None:
    gm = trace(lambda x: x + 1, torch.ones(3))
    node = next(node for node in gm.graph.nodes if node.op == "call_function")
    node.args = (node.args[0], object())
    node.meta["stack_trace"] = '  File "model.py", line 7, in forward\n'
    with pytest.raises(FrontendError, match=r"import of aten\.add\.Tensor: expected .*\n  at model\.py:7"):
        import_graph(gm, [torch.ones(3)])


IN_RANGE: dict[str, Any] = {
    "infinite": lambda x, m: x.masked_fill(m, -math.inf),
    "the least": lambda x, m: x.masked_fill(m, torch.finfo(x.dtype).min),
    "infinite once rounded": lambda x, m: torch.where(m, x, -1e9),
    "filled": lambda x, m: torch.full_like(x, 0.0) + x.new_full((1,), -1.0) + torch.fill(x, 2),
    "a constant": lambda x, m: x.masked_fill(m, torch.tensor(-1e4)),
    "a size": lambda x, m: x.float().clamp(max=x.shape[0]) + torch.full((1,), x.shape[0]),
    "a size of a known range": lambda x, m: m.to(torch.int8).clamp(max=x.shape[0] % 7),
    "a power": lambda x, m: m.to(torch.int64) ** x.shape[0],
    "an activation": lambda x, m: torch.nn.functional.leaky_relu(torch.nn.functional.hardtanh(x)).clamp(-1, 6),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("name", IN_RANGE)
def test_numbers_in_the_range_of_a_type_are_native(name: str, dtype: torch.dtype) -> None:
    x = torch.ones(6, dtype=dtype)
    for dynamic in (False, True):
        assert "extern" not in op_names(import_function(IN_RANGE[name], x, x > 0, dynamic=dynamic))


# -- externs -----------------------------------------------------------------------------------------


def only_extern(imported: Any) -> graph.ExternOp:
    (op,) = (op for op in imported.function.body.block.ops if isinstance(op, graph.ExternOp))
    return op


def test_other_ops_keep_all_arguments() -> None:
    imported = import_function(lambda x: torch.topk(x, 2, dim=-1, largest=False), torch.randn(3, 5))
    op = only_extern(imported)
    assert op.target.data == "aten.topk.default"
    assert op.arguments.data.positional == (graph.OperandRef(0), 2, -1, False)
    x = torch.randn(3, 5)
    found, expected = evaluate(imported, [x]), torch.topk(x, 2, largest=False)
    assert torch.equal(found[0], expected.values)
    assert torch.equal(found[1], expected.indices)


def test_a_size_is_an_argument_of_an_extern() -> None:
    imported = import_function(lambda x: torch.topk(x, x.shape[0] // 2)[0], torch.randn(6), dynamic=True)
    assert str(only_extern(imported).arguments.data.positional[1]) == "s0 floordiv 2"
    assert len(evaluate(imported, [torch.randn(9)])[0]) == 4


@pytest.mark.parametrize(
    ("function", "effect"),
    [
        (lambda x: torch.sort(x)[0], None),
        (lambda x: torch.rand_like(x), "random"),
        (lambda x: torch.ops.aten.sort.values(x, values=x.clone(), indices=x.long())[0], "write"),
    ],
    ids=["pure", "random", "write"],
)
def test_externs_declare_their_effect(function: Any, effect: str | None) -> None:
    declared = only_extern(import_function(function, torch.randn(3))).effect
    assert (declared.data if declared else None) == effect


def test_types_that_are_not_native_stay_extern() -> None:
    imported = import_function(lambda x: torch.view_as_real(x * 2).sum(), torch.randn(3, dtype=torch.complex64))
    names = list(op_names(imported))
    assert names == ["extern", "extern", "sum"]


def test_a_number_that_depends_on_sizes_is_computed() -> None:
    def function(x: Tensor) -> Tensor:
        return x * (x.shape[0] / 3) + math.sqrt(2.0)

    imported = import_function(function, torch.ones(6), dynamic=True)
    assert "extern" not in op_names(imported)
    torch.testing.assert_close(evaluate(imported, [torch.ones(7)])[0], function(torch.ones(7)))


def test_rounded_quotients_of_sizes_are_sizes() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        return x[: torch.sym_int(x.shape[0] / 3)] + 1, x.new_zeros(math.ceil(x.shape[0] / 4))

    imported = import_function(function, torch.ones(6), dynamic=True)
    for found, expected in zip(evaluate(imported, [torch.ones(11)]), function(torch.ones(11)), strict=True):
        torch.testing.assert_close(found, expected)


def test_foreach_ops_are_lists_of_pointwise_ops() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        sums = torch._foreach_add([x, y], [y, x], alpha=2)
        return tuple(torch._foreach_addcmul(sums, [x, y], [x, x], 0.5))

    imported = import_function(function, torch.randn(3), torch.randn(3))
    assert list(op_names(imported)) == ["fma", "fma", "mul", "mul", "add", "mul", "mul", "add"]
    x, y = torch.randn(3), torch.randn(3)
    for found, expected in zip(evaluate(imported, [x, y]), function(x, y), strict=True):
        torch.testing.assert_close(found, expected)


def test_foreach_pow_of_a_number_is_native() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return tuple(torch._foreach_pow(0.9, [x, y]))

    imported = import_function(function, torch.tensor(3.0), torch.tensor(4.0))
    assert "extern" not in op_names(imported)
    for found, expected in zip(
        evaluate(imported, [torch.tensor(2.0), torch.tensor(5.0)]), (0.81, 0.59049), strict=True
    ):
        assert found.item() == pytest.approx(expected, rel=1e-6)


# -- type promotion ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (torch.ones(3, dtype=torch.bfloat16), 0.1),
        (torch.ones(3, dtype=torch.bfloat16), torch.tensor(0.1)),
        (torch.ones(3, dtype=torch.int32), torch.tensor(1.5)),
        (torch.ones(3, dtype=torch.int32), 2.5),
        (torch.ones(3, dtype=torch.uint8), torch.ones(3, dtype=torch.int64)),
        (torch.ones(3, dtype=torch.bool), 7),
        (torch.ones((), dtype=torch.float64), torch.ones(3)),
    ],
    ids=["bf16-number", "bf16-scalar", "int-scalar", "int-number", "u8-i64", "bool-number", "scalar-f32"],
)
@pytest.mark.parametrize("name", ["add", "mul", "div", "gt", "maximum"])
def test_types_are_promoted_as_eager_does(name: str, x: Any, y: Any) -> None:
    function = getattr(torch, name)
    if name == "maximum" and not isinstance(y, Tensor):
        pytest.skip("maximum takes tensors")
    if isinstance(y, Tensor):
        found = evaluate(import_function(function, x, y), [x, y])[0]
    else:
        found = evaluate(import_function(lambda x: function(x, y), x), [x])[0]
    assert found.dtype == function(x, y).dtype
    assert torch.equal(found, function(x, y))


def test_every_type_of_a_function_has_known_sizes() -> None:
    imported = import_function(lambda x: torch.softmax(x, -1) @ x.t(), torch.randn(4, 6), dynamic=True)
    for op in imported.function.body.block.ops:
        for result in op.results:
            assert {name for size in sizes_of(result.type) for name in size.symbols} <= {"s0", "s1"}


def test_sizes_that_a_guard_makes_one_broadcast() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x[: x.shape[0] // 4] * y, y])

    inputs = torch.randn(5, 3), torch.randn(2, 3)
    imported = import_function(function, *inputs, dynamic=True)
    torch.testing.assert_close(evaluate(imported, inputs)[0], function(*inputs))


@pytest.mark.parametrize(("rows", "sums"), [(64, 3), (65, 2)])
def test_the_mean_of_few_elements_is_taken_out_twice_on_a_gpu(
    rows: int, sums: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GraphBuilder, "is_on_cpu", False)
    norm = torch.ops.aten._native_batch_norm_legit.no_stats
    imported = import_function(lambda x: norm(x, None, None, True, 0.1, 1e-5), torch.randn(rows, 3))
    assert list(op_names(imported)).count("sum") == sums
