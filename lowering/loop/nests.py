"""Takes nests apart and puts two into one: the equations that fusion applies. Not a pass.

Nothing here asks whether an equation may be applied; `fusion` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ...ir import loop
from ...ir.expr import Expr, dim
from ...ir.locations import fused
from ...ir.loop.ops import INDEX, AccessOp, extents_attr
from ..analysis.accesses import substitute_indices
from ..analysis.sizes import Sizes
from .moves import detach, erase

# -- indices -----------------------------------------------------------------------------------------


def replace_indices(replaced: Mapping[SSAValue, Expr], indices: Sequence[SSAValue], sizes: Sizes) -> None:
    """Puts expressions over `indices` in the place of indices, in every access."""
    for op in {use.operation: None for index in replaced for use in index.uses}:
        if isinstance(op, AccessOp):
            substitute_indices(op, replaced, indices, sizes)
        else:
            op.operands = [_as_value(operand, replaced, indices, op) for operand in op.operands]


def _as_value(
    operand: SSAValue, replaced: Mapping[SSAValue, Expr], indices: Sequence[SSAValue], user: Operation
) -> SSAValue:
    """The operand or, in the place of a replaced index, its expression computed before the user."""
    if operand not in replaced:
        return operand
    value = loop.IndexOp.make(indices, replaced[operand], INDEX)
    value.location = user.location
    assert user.parent is not None
    user.parent.insert_op_before(value, user)
    return value.result


def split_index(nest: loop.NestOp, index: SSAValue, factors: Sequence[Expr], sizes: Sizes) -> None:
    """`nest (n) to (6) { b(n) }  →  nest (i, j) to (2, 3) { b(i * 3 + j) }`."""
    position = list(nest.indices).index(index)
    parts = [nest.block.insert_arg(INDEX, position + k) for k in range(len(factors))]
    for part in parts:
        part.name_hint = index.name_hint
    nest.properties["extents"] = extents_attr([*nest.sizes[:position], *factors, *nest.sizes[position:]])
    expr = dim(0)
    for k, factor in enumerate(factors[1:], 1):
        expr = expr * factor + dim(k)
    replace_indices({index: expr}, parts, sizes)
    drop_index(nest, position + len(factors))


def take_part(nest: loop.NestOp, position: int, number: SSAValue, length: Expr, sizes: Sizes) -> SSAValue:
    """`nest (i) to (n) { b(i) }  →  nest (j) to (length) { b(number * length + j) }` for a dim; its new index."""
    old = nest.indices[position]
    inner = nest.block.insert_arg(INDEX, position)
    inner.name_hint = old.name_hint
    nest.properties["extents"] = extents_attr([*nest.sizes[:position], length, *nest.sizes[position:]])
    replace_indices({old: dim(0) * length + dim(1)}, [number, inner], sizes)
    drop_index(nest, position + 1)
    return inner


def drop_index(nest: loop.NestOp, position: int) -> None:
    """Removes an index that nothing uses."""
    extents = nest.sizes
    nest.block.erase_arg(nest.block.args[position])
    nest.properties["extents"] = extents_attr([*extents[:position], *extents[position + 1 :]])


def flatten(op: loop.NestOp) -> None:
    """`nest (i) { nest (j) { b } }  →  nest (i, j) { b }` where both combine alike."""
    match op, op.block.first_op:
        case loop.ParallelOp(), loop.ParallelOp() as inner:
            if op.block.last_op is not inner:
                return
        case loop.ReduceOp(), loop.ReduceOp() as inner:
            alone = op.yielded is inner.next_op and tuple(op.yielded.operands) == tuple(inner.results)
            if not alone or op.combiners != inner.combiners:
                return
            erase(op.yielded)
        case _:
            return
    extents = extents_attr([*op.sizes, *inner.sizes])
    region = inner.detach_region(0)
    block, rank = region.block, op.rank
    for position in range(rank):
        argument = block.insert_arg(op.block.args[position].type, position)
        argument.name_hint = op.block.args[position].name_hint
        op.block.args[position].replace_all_uses_with(argument)
    erase(inner)
    op.detach_region(0)
    op.add_region(region)
    op.properties["extents"] = extents


# -- taking apart ------------------------------------------------------------------------------------


def peel(nest: loop.NestOp, count: int) -> loop.NestOp:
    """`nest (i, j) { b }  →  nest (i) { nest (j) { b } }` with `count` indices outside; the outer nest."""
    outer = _with_region(nest, nest.sizes[:count], Region(Block(arg_types=[INDEX] * count)))
    inner = _with_region(nest, nest.sizes[count:], nest.detach_region(0))
    outer.block.add_op(inner)
    if isinstance(nest, loop.ReduceOp):
        outer.block.add_op(loop.YieldOp.make(inner.results))
    for index, replacement in zip(inner.block.args[:count], outer.block.args, strict=True):
        index.replace_all_uses_with(replacement)
        inner.block.erase_arg(index)
    _replace(nest, outer)
    return outer


def _with_region(nest: loop.NestOp, sizes: Sequence[Expr], region: Region) -> loop.NestOp:
    """A parallel or reduce nest like `nest` over another space."""
    return type(nest).create(
        properties=nest.properties | {"extents": extents_attr(sizes)},
        result_types=nest.result_types,
        regions=[region],
        location=nest.location,
    )


def _replace(old: Operation, new: Operation) -> None:
    assert old.parent is not None
    old.parent.insert_op_before(new, old)
    for result, replacement in zip(old.results, new.results, strict=True):
        result.replace_all_uses_with(replacement)
    erase(old)


# -- putting together --------------------------------------------------------------------------------


def join(first: loop.NestOp, second: loop.NestOp, pairs: Mapping[SSAValue, SSAValue]) -> loop.NestOp:
    """`nest (i) { a }  nest (j) { b }  →  nest (i) { a  b }` with each second index of a pair the first.

    All indices of both are paired. The new nest stands where the first stood and has the results of both.
    """
    for index, other in pairs.items():
        other.replace_all_uses_with(index)
    joined = _JOINERS[type(first), type(second)](first, second)
    joined.location = fused([first.location, second.location])
    erase(second)
    return joined


def can_join(first: loop.NestOp, second: loop.NestOp) -> bool:
    """Whether nests of these kinds have a common form."""
    return (type(first), type(second)) in _JOINERS


def _append(nest: loop.NestOp, ops: Sequence[Operation]) -> None:
    """Moves ops to the end of a nest's body, before its yield."""
    last = nest.block.last_op
    terminator = last if isinstance(last, loop.YieldOp) else None
    for op in ops:
        detach(op)
        if terminator is None:
            nest.block.add_op(op)
        else:
            nest.block.insert_op_before(op, terminator)


def _join_plain(first: loop.NestOp, second: loop.NestOp) -> loop.NestOp:
    _append(first, list(second.block.ops))
    return first


def _join_reduction(first: loop.NestOp, second: loop.NestOp) -> loop.NestOp:
    """The second reduces: the first becomes a reduction that yields what both did."""
    combiners, types, values = list(second.properties["combiners"]), list(second.result_types), []  # type: ignore[call-overload]
    *ops, last = second.block.ops
    if isinstance(first, loop.ReduceOp):
        combiners, types = [*first.combiners, *combiners], [*first.result_types, *types]
        values = list(first.yielded.operands)
        erase(first.yielded)
    joined = loop.ReduceOp.create(
        properties={"extents": first.properties["extents"], "combiners": ArrayAttr(combiners)},
        result_types=types,
        regions=[first.detach_region(0)],
    )
    _append(joined, ops)
    joined.block.add_op(loop.YieldOp.make([*values, *last.operands]))
    own = len(first.results)
    for result, replacement in zip(second.results, joined.results[own:], strict=True):
        result.replace_all_uses_with(replacement)
    assert first.parent is not None
    first.parent.insert_op_before(joined, first)
    for result, replacement in zip(first.results, joined.results, strict=False):
        result.replace_all_uses_with(replacement)
    erase(first)
    return joined


_JOINERS: dict[tuple[type[Operation], type[Operation]], Callable[[loop.NestOp, loop.NestOp], loop.NestOp]] = {
    (loop.ParallelOp, loop.ParallelOp): _join_plain,
    (loop.ReduceOp, loop.ParallelOp): _join_plain,
    (loop.ForOp, loop.ParallelOp): _join_plain,
    (loop.ParallelOp, loop.ReduceOp): _join_reduction,
    (loop.ReduceOp, loop.ReduceOp): _join_reduction,
}
