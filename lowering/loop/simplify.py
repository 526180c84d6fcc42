"""`loop-simplify`: the normal form of kernels: no dimension of one step, no nest that is none, nothing unused or twice.

Equal scalars are merged here and not by xDSL's `cse`, which takes ten times as long on kernels and compares nests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, FloatAttr, IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.combiners import COMBINERS
from ...ir.expr import ONE, ZERO, dim
from ...ir.loop.ops import AccessOp
from ..analysis.accesses import all_ops, index_operands, set_access
from ..analysis.kernels import functions_with_kernels
from ..analysis.radix import divides
from ..analysis.sizes import Sizes
from .hoist_invariants import is_pure
from .moves import constant, detach, erase, erase_writes, is_only_written
from .nests import drop_index, flatten, replace_indices

EQUAL = 0
"""The predicate of `arith.cmpi eq`."""


class Simplifier:
    """Simplifies one kernel, inside out and last to first, so that one visit is enough."""

    def __init__(self, kernel: loop.KernelOp):
        self.sizes = Sizes.at(kernel)

    def run(self, block: Block) -> None:
        op = block.last_op
        while op is not None:
            previous = op.prev_op
            rule = _RULES.get(type(op))
            if rule is not None:
                rule(self, op)
            elif is_pure(type(op)) and is_unused(op):
                erase(op)
            op = previous

    def nest(self, op: loop.NestOp) -> None:
        self.run(op.block)
        if is_unused(op) and not any(isinstance(inner, loop.WriteOp | loop.AssertOp) for inner in all_ops(op.block)):
            erase(op)
        elif isinstance(op, loop.ForOp):
            self.run_once(op)
        else:
            self.drop_unit_dims(op)
            flatten(op)
            if not op.rank:
                dissolve(op)
            elif isinstance(op, loop.ReduceOp):
                self.pick(op)

    def run_once(self, op: loop.ForOp) -> None:
        """`for (i) to (1) carry (c = a) { b(i, c) }  →  b(0, a)`."""
        (size,), (index,) = op.sizes, op.indices
        if size != ONE:
            return
        replace_indices({index: ZERO}, [], self.sizes)
        for carried, init in zip(op.carried, op.inits, strict=True):
            carried.replace_all_uses_with(init)
        dissolve(op)

    def drop_unit_dims(self, op: loop.NestOp) -> None:
        """`nest (i) to (1) { b(i) }  →  nest () { b(0) }`."""
        for position in range(op.rank - 1, -1, -1):
            if op.sizes[position] == ONE:
                replace_indices({op.indices[position]: ZERO}, [], self.sizes)
                drop_index(op, position)

    def pick(self, op: loop.ReduceOp) -> None:
        """`reduce (i) to (n) [add] { i == k ? x : 0 }  →  (k < n ? x : 0) + 0`: a row with one element, as
        the gradient of a label is, needs no sum; that of zeros of both signs is the positive one."""
        index, chosen = op.block.first_op, op.yielded.operands[0].owner
        if op.rank != 1 or [*op.combiner_names] != ["add"] or not isinstance(index, loop.IndexOp):
            return
        match chosen:
            case arith.SelectOp(cond=OpResult(op=arith.CmpiOp() as compared), lhs=x, rhs=other):
                pass
            case _:
                return
        k = compared.rhs if compared.lhs is index.result else compared.lhs
        alone = {*op.block.ops} <= {index, compared, chosen, op.yielded} and index.map.results == (dim(0),)
        varies = op in (k.owner.parent_op(), x.owner.parent_op())
        if not alone or varies or compared.predicate.value.data != EQUAL or not is_zero(other):
            return
        size = loop.IndexOp.make([], op.sizes[0], index.result.type)
        inside = arith.CmpiOp(k, size.result, "ult")
        picked = arith.SelectOp(inside, x, other)
        zero = constant(0, x.type)
        plus = arith.AddfOp if isinstance(x.type, AnyFloat) else arith.AddiOp
        total = plus(picked.result, zero.result)
        assert op.parent is not None
        op.parent.insert_ops_before([size, inside, picked, zero, total], op)
        op.results[0].replace_all_uses_with(total.result)
        erase(op)

    def access(self, op: AccessOp) -> None:
        """Simplifies the map by the ranges of its indices; removes reads that nobody uses."""
        if op.results and is_unused(op):
            erase(op)
            return
        if divides(op.map.results):
            set_access(op, list(index_operands(op)), op.map.results, self.sizes)

    def local(self, op: loop.LocalOp) -> None:
        """Removes a local that is never read, with its writes."""
        if is_only_written(op.buffer):
            erase_writes(op.buffer)
            erase(op)


_KEYED = {"max": "argmax", "min": "argmin"}
"""Combiners, and those of pairs whose first value is the same; where it is a zero, of the sign of the first one."""


def share_extremes(op: loop.ReduceOp) -> None:
    """`reduce [max, argmax] { yield x, x, i }  →  reduce [argmax] { yield x, i }`, whose first result is both."""
    places = list(accumulate((COMBINERS[name].arity for name in op.combiner_names), initial=0))
    found = list(zip(op.combiner_names, places, strict=False))
    values = op.yielded.operands
    keys = {(name, values[at]): at for name, at in found if name in _KEYED.values()}
    dropped = [(at, keys[key]) for name, at in found if (key := (_KEYED.get(name, ""), values[at])) in keys]
    if not dropped:
        return
    for at, same in dropped:
        op.results[at].replace_all_uses_with(op.results[same])
    gone = [at for at, _ in dropped]
    kept = [at for at in range(len(op.results)) if at not in gone]
    smaller = loop.ReduceOp.create(
        properties=op.properties
        | {"combiners": ArrayAttr(one for one, at in zip(op.combiners, places, strict=False) if at not in gone)},
        result_types=[op.result_types[at] for at in kept],
        regions=[op.detach_region(0)],
        location=op.location,
    )
    smaller.yielded.operands = [values[at] for at in kept]
    assert op.parent is not None
    op.parent.insert_op_before(smaller, op)
    for at, result in zip(kept, smaller.results, strict=True):
        op.results[at].replace_all_uses_with(result)
    erase(op)


def dissolve(op: loop.NestOp) -> None:
    """`nest { b }  →  b` for a nest that runs its body once and whose indices nothing uses."""
    block = op.parent
    assert block is not None
    values: list[SSAValue] = []
    for inner in list(op.block.ops):
        if isinstance(inner, loop.YieldOp):
            values = list(inner.operands)
            continue
        detach(inner)
        block.insert_op_before(inner, op)
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    erase(op)


_RULES: dict[type[Operation], Callable[..., None]] = {
    loop.ParallelOp: Simplifier.nest,
    loop.ReduceOp: Simplifier.nest,
    loop.ForOp: Simplifier.nest,
    loop.ReadOp: Simplifier.access,
    loop.WriteOp: Simplifier.access,
    loop.IndexOp: Simplifier.access,
    loop.LocalOp: Simplifier.local,
    loop.YieldOp: lambda simplifier, op: None,
}


def is_zero(value: SSAValue) -> bool:
    """Whether a value is the constant 0, of either sign."""
    held = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(held, FloatAttr | IntegerAttr) and held.value.data == 0


def is_unused(op: Operation) -> bool:
    return all(result.first_use is None for result in op.results)


# -- equal scalars -----------------------------------------------------------------------------------

Key = tuple[object, ...]
Known = dict[Key, Operation]
"""Scalars computed so far, by what they compute."""


def merge_equal(block: Block, outer: Known) -> None:
    """`%a = f(%x)  …  %b = f(%x)  →  %a` for both, also where the second stands in a nest."""
    known = dict(outer)
    reads: Known = {}
    op = block.first_op
    while op is not None:
        following = op.next_op
        if op.regions:
            reads.clear()  # the nest may write what was read
            for region in op.regions:
                merge_equal(region.block, known)
        elif isinstance(op, loop.WriteOp):
            reads.clear()
        elif isinstance(op, loop.ReadOp):
            merge(op, known if isinstance(op.operands[0].type, TensorType) else reads)
        elif is_pure(type(op)) and op.results:
            merge(op, known)
        op = following


def merge(op: Operation, known: Known) -> None:
    """Replaces the op by an equal one, or notes it."""
    key = (type(op), tuple(op.operands), tuple(op.properties.values()), tuple(op.result_types))
    earlier = known.setdefault(key, op)
    if earlier is not op:
        for result, equal in zip(op.results, earlier.results, strict=True):
            result.replace_all_uses_with(equal)
        erase(op)


# -- results -----------------------------------------------------------------------------------------


def drop_unused_results(op: loop.KernelOp) -> loop.KernelOp | None:
    """The kernel without results that nobody uses, unless its body reads them; None if it does nothing then."""
    unused = [
        k for k, result in enumerate(op.results) if result.first_use is None and is_only_written(op.block.args[k])
    ]
    if not unused or op.operands:
        return op
    kept = [result for position, result in enumerate(op.results) if position not in unused]
    if not kept:
        if any(isinstance(inner, loop.AssertOp) for inner in all_ops(op.block)):
            return op
        erase(op)
        return None
    for position in reversed(unused):
        erase_writes(op.block.args[position])
        op.block.erase_arg(op.block.args[position])
    return with_results(op, kept)


def with_results(op: loop.KernelOp, kept: Sequence[SSAValue]) -> loop.KernelOp:
    """The kernel with the kept results only; its body has lost the other destinations."""
    smaller = loop.KernelOp.create(
        result_types=[result.type for result in kept],
        properties=op.properties,
        regions=[op.detach_region(0)],
        location=op.location,
    )
    for result, replacement in zip(kept, smaller.results, strict=True):
        result.replace_all_uses_with(replacement)
    assert op.parent is not None
    op.parent.insert_op_before(smaller, op)
    erase(op)
    return smaller


class LoopSimplify(ModulePass):
    """Bring kernels into normal form and remove what nothing uses."""

    name = "loop-simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            for kernel in reversed(kernels):
                smaller = drop_unused_results(kernel)
                if smaller is not None:
                    Simplifier(smaller).run(smaller.block)
                    merge_equal(smaller.block, {})
                    for reduction in [inner for inner in all_ops(smaller.block) if isinstance(inner, loop.ReduceOp)]:
                        share_extremes(reduction)
