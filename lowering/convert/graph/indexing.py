"""Gathers and scatters: elements at computed places, each index checked as eager checks it.

A bad index is recorded for the call to raise and replaced by 0, so that no foreign memory is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ....ir import graph, loop
from ....ir.expr import ONE, Expr, dim, minimum
from ....ir.graph.base import integer_of
from ....ir.loop.ops import INDEX
from ....ir.shapes import sizes_of
from .kernels import Kernel
from .memory import Memory
from .reductions import combiner_for
from .sources import Formula, Values, identity

# -- one index ---------------------------------------------------------------------------------------


def place_along(
    kernel: Kernel, op: graph.IndexedOp, index: SSAValue, at: Sequence[Expr], along: int, box: Sequence[Expr]
) -> Expr:
    """The index into a dim that the tensor `index` holds at a place, over a nest of sizes `box`."""
    size = sizes_of(op.operands[0].type)[along]
    source = kernel.values.source(index)
    if isinstance(source, Formula):
        expr, domain = source.expr.substitute_dims(list(at)), kernel.values.box(box).domain
        if domain.is_nonnegative(expr) and domain.is_less(expr, size):
            return expr
    value = kernel.cast(arith.ExtSIOp, kernel.read(index, at), i64)
    return kernel.computed(kernel.cast(arith.IndexCastOp, _checked(kernel, op, value, size, along), INDEX))


def _checked(kernel: Kernel, op: graph.IndexedOp, index: SSAValue, size: Expr, along: int) -> SSAValue:
    """The index, counted from the end if it is negative and the op allows that; 0 for a bad one, which is noted."""
    bounds = op.index_bounds
    extent, zero = kernel.index((), size), kernel.constant(0, i64)
    wrapped = index
    if bounds.wraps:
        negative = kernel.compare("slt", index, zero)
        wrapped = kernel.select(negative, kernel.apply(arith.AddiOp, index, extent), index)
    inside = kernel.compare("ult", wrapped, extent)
    if bounds.exception is not None:
        message = bounds.message.replace("{dim}", str(along)).replace("{size}", str(size))
        kernel.append(loop.AssertOp.make(inside, index, bounds.exception, message))
    return kernel.select(inside, wrapped, zero)


def rank_of_indices(op: graph.IndexOp | graph.IndexPutOp) -> int:
    """The dims of the indices, which are of one shape."""
    (rank,) = {len(sizes_of(index.type)) for index in op.indices}
    return rank


def indexed_place(kernel: Kernel, op: graph.IndexOp | graph.IndexPutOp, box: Sequence[Expr]) -> list[Expr]:
    """Where in the operand the element lies that advanced indexing names by the kernel's indices."""
    rank, dims = len(sizes_of(op.operand.type)), op.indexed
    position = graph.index_position(dims)
    count = rank_of_indices(op)
    at = [dim(position + k) for k in range(count)]
    rest = iter([k if k < position else k + count for k in range(rank - len(dims))])
    computed = {
        along: place_along(kernel, op, index, at, along, box) for along, index in zip(dims, op.indices, strict=True)
    }
    return [computed[k] if k in computed else dim(next(rest)) for k in range(rank)]


def along_place(kernel: Kernel, op: graph.GatherOp | graph.ScatterOp, box: Sequence[Expr]) -> list[Expr]:
    """The kernel's indices with the one along the op's dim replaced by a computed index."""
    along, place = integer_of(op.dim), list(identity(len(box)))
    place[along] = place_along(kernel, op, op.index, identity(len(box)), along, box)
    return place


def skip_if_empty(kernel: Kernel, op: graph.IndexedOp, dims: Sequence[int]) -> None:
    """Goes on in a nest that does not run where an indexed dim is empty, since then no index is good."""
    sizes = sizes_of(op.operands[0].type)
    kernel.enter_inner([minimum(sizes[k], ONE) for k in dims if not kernel.values.is_nonempty(sizes[k])])


# -- reading -----------------------------------------------------------------------------------------


def gather(values: Values, op: graph.GatherOp) -> Kernel:
    kernel = Kernel.of(values, op)
    kernel.enter_parallel(op.sizes)
    place = along_place(kernel, op, op.sizes)
    skip_if_empty(kernel, op, [integer_of(op.dim)])
    kernel.write(kernel.read(op.operand, place))
    return kernel


def index(values: Values, op: graph.IndexOp) -> Kernel:
    kernel = Kernel.of(values, op)
    kernel.enter_parallel(op.sizes)
    place = indexed_place(kernel, op, op.sizes)
    skip_if_empty(kernel, op, op.indexed)
    kernel.write(kernel.read(op.operand, place))
    return kernel


# -- writing -----------------------------------------------------------------------------------------


def scatter(memory: Memory, op: graph.ScatterOp) -> Kernel:
    kernel = Kernel.of(memory, op, memory.base(op.operand))
    along, sizes = integer_of(op.dim), sizes_of(op.value.type)

    def body() -> None:
        place, value = along_place(kernel, op, sizes), kernel.read(op.value)
        skip_if_empty(kernel, op, [along])
        kernel.write(value, place, _combiner(op))

    _run_over(kernel, op, sizes, [along], body)
    return kernel


def index_put(memory: Memory, op: graph.IndexPutOp) -> Kernel:
    kernel = Kernel.of(memory, op, memory.base(op.operand))
    position, rank = graph.index_position(op.indexed), rank_of_indices(op)
    sizes = sizes_of(op.value.type)

    def body() -> None:
        place, value = indexed_place(kernel, op, sizes), kernel.read(op.value)
        skip_if_empty(kernel, op, op.indexed)
        kernel.write(value, place, _combiner(op))

    _run_over(kernel, op, sizes, range(position, position + rank), body)
    return kernel


def _combiner(op: graph.ScatterOp | graph.IndexPutOp) -> str | None:
    return None if op.combiner is None else combiner_for(op.combiner.data, op.element)


def _run_over(
    kernel: Kernel,
    op: graph.ScatterOp | graph.IndexPutOp,
    sizes: Sequence[Expr],
    indexed: Sequence[int],
    body: Callable[[], None],
) -> None:
    """Runs `body` for all indices. Without a combiner the dims that places are computed for run in order, so that
    the last of repeated places stays."""
    ordered = [] if op.combiner is not None else list(indexed)
    dims = [*(k for k in range(len(sizes)) if k not in ordered), *ordered]
    kernel.enter_parallel([sizes[k] for k in dims[: len(dims) - len(ordered)]])

    def step(left: Sequence[int]) -> Sequence[SSAValue]:
        if left:
            first, *others = left
            kernel.iterate(sizes[first], (), lambda _: step(others))
        else:
            kernel.indices = tuple(kernel.indices[dims.index(k)] for k in range(len(sizes)))
            body()
        return ()

    step(ordered)
