"""`loop-split-dependent-reductions`: reads long rows once where a second reduction over them needs the first result.

The variance needs the mean, a sum of exponentials the maximum. Over parts that fit in registers both are had at once,
about the part's own mean or maximum, and what the parts leave is brought to that of all: about another mean m the
squares of n numbers add up to n * (own mean - m)² more (Chan, Golub, LeVeque 1979), and exponentials about another
maximum m are exp(own maximum - m) times as large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, ModuleOp, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.expr import ONE, Expr, ExprLike, const, dim
from ...ir.shapes import tensor_type
from ...ir.target import target_of
from ..analysis.accesses import all_ops, enclosing_nests, nests_of
from ..analysis.kernels import functions_with_kernels
from ..analysis.sizes import Sizes
from ..schedule.model import KernelModel
from .moves import erase
from .nests import take_part
from .split_reductions import erase_dead

LONG = 1 << 14
"""Elements of a row from which on it is cut: shorter ones stay in registers as they are."""

LEAST_PART, MOST_PART = 1 << 10, 1 << 13
"""Elements of a part of a row: enough to be worth its two results, few enough for several programs at once."""

LEAST_COLUMN_PART, COLUMN_PART = 1 << 6, 1 << 8
"""Elements of a part of a column: programs take many columns at a time."""


# -- forms -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two reductions over one long space, the second about `centre`, a scalar made of the first one's result."""

    first: loop.ReduceOp
    second: loop.ReduceOp
    centre: SSAValue

    @property
    def element(self) -> Attribute:
        return self.first.result_types[0]


class Squares(Pair):
    """`c = sum(x) / n`, `sum((x - c) * (x - c))`."""

    def part_centre(self, block: Block, result: SSAValue, count: int) -> SSAValue:
        """The centre of a part of so many elements, from the first reduction over it."""
        return add(block, arith.DivfOp(result, constant(block, count, self.element)))

    def moved(self, block: Block, first: SSAValue, second: SSAValue, centre: SSAValue, count: int) -> SSAValue:
        """What a part left, about the centre of all."""
        size = constant(block, count, self.element)
        distance = add(block, arith.SubfOp(add(block, arith.DivfOp(first, size)), centre))
        square = add(block, arith.MulfOp(distance, distance))
        return add(block, arith.AddfOp(second, add(block, arith.MulfOp(square, size))))


class Exponentials(Pair):
    """`c = max(x)`, `sum(exp(x - c))`."""

    def part_centre(self, block: Block, result: SSAValue, count: int) -> SSAValue:
        """The maximum, or 0 where a part holds nothing but -inf: then it adds nothing, and not NaN."""
        lowest, zero = (constant(block, value, self.element) for value in (float("-inf"), 0.0))
        empty = add(block, arith.CmpfOp(result, lowest, "oeq"))
        return add(block, arith.SelectOp(empty, zero, result))

    def moved(self, block: Block, first: SSAValue, second: SSAValue, centre: SSAValue, count: int) -> SSAValue:
        distance = add(block, arith.SubfOp(first, centre))
        return add(block, arith.MulfOp(second, add(block, math.ExpOp(distance))))


def add(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return SSAValue.get(op)


def constant(block: Block, value: float, element: Attribute) -> SSAValue:
    assert isinstance(element, AnyFloat)
    return add(block, arith.ConstantOp(FloatAttr(float(value), element)))


def pair_of(block: Block) -> Squares | Exponentials | None:
    """The two reductions of a block that holds no other nest, if they are of a known form."""
    nests = nests_of(block)
    if len(nests) != 2:
        return None
    first, second = nests
    if not isinstance(first, loop.ReduceOp) or not isinstance(second, loop.ReduceOp) or first.sizes != second.sizes:
        return None
    if second.combiner_names != ("add",) or not is_long(first):
        return None
    return squares(first, second) or exponentials(first, second)


def yielded_value(reduction: loop.ReduceOp) -> SSAValue:
    """What a reduction of one value combines."""
    (value,) = reduction.yielded.values
    return value


def squares(first: loop.ReduceOp, second: loop.ReduceOp) -> Squares | None:
    square = yielded_value(second).owner
    if not isinstance(square, arith.MulfOp) or square.lhs is not square.rhs or first.combiner_names != ("add",):
        return None
    difference = square.lhs.owner
    if not isinstance(difference, arith.SubfOp) or not same_elements(first, second, difference.lhs):
        return None
    return Squares(first, second, difference.rhs) if is_mean(difference.rhs, first) else None


def exponentials(first: loop.ReduceOp, second: loop.ReduceOp) -> Exponentials | None:
    exponential = yielded_value(second).owner
    if not isinstance(exponential, math.ExpOp) or first.combiner_names != ("max",):
        return None
    difference = exponential.operand.owner
    if not isinstance(difference, arith.SubfOp) or difference.rhs is not SSAValue.get(first):
        return None
    return Exponentials(first, second, difference.rhs) if same_elements(first, second, difference.lhs) else None


def same_elements(first: loop.ReduceOp, second: loop.ReduceOp, value: SSAValue) -> bool:
    """Whether the value of the second body is what the first one reduces."""
    indices = dict(zip(first.indices, second.indices, strict=True))
    return is_same(yielded_value(first), value, indices)


def is_same(one: SSAValue, other: SSAValue, indices: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether two values are made alike within the kernel, with the paired indices in each other's place. What nests
    make is not looked into: `is_closed` refuses it."""
    if one is other or indices.get(one) is other:
        return True
    made, again = one.owner, other.owner
    return (
        isinstance(made, Operation)
        and isinstance(made.parent_op(), loop.NestOp | loop.KernelOp)
        and type(made) is type(again)
        and made.properties == again.properties
        and all(is_same(a, b, indices) for a, b in zip(made.operands, again.operands, strict=True))
    )


def is_mean(value: SSAValue, sum_: loop.ReduceOp) -> bool:
    """Whether a value is a sum by the number of its terms, or times one over that."""
    op = value.owner
    if not isinstance(op, arith.DivfOp | arith.MulfOp) or op.lhs is not SSAValue.get(sum_):
        return False
    wanted = float(volume(sum_)) if isinstance(op, arith.DivfOp) else 1.0 / volume(sum_)
    match op.rhs.owner:
        case arith.ConstantOp(value=FloatAttr(value=factor)):
            return bool(np.float32(factor.data) == np.float32(wanted)) and value.type == f32
    return False


def is_long(nest: loop.NestOp) -> bool:
    """Whether a nest has so many indices, as far as that is known, that it is cut."""
    return all(size.is_constant for size in nest.sizes) and volume(nest) >= LONG


def volume(nest: loop.NestOp) -> int:
    """The number of indices of a nest of known sizes."""
    return prod(size.constant for size in nest.sizes)


# -- the split ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """Parts by their counts along the first dims; each has `length` indices of the last of these dims, and `volume`
    elements in all."""

    counts: tuple[int, ...]
    length: int
    volume: int


class DependentSplitter:
    """Splits the dependent reductions of one kernel."""

    def __init__(self, kernel: loop.KernelOp):
        self.kernel = kernel
        self.sizes = Sizes.at(kernel)

    def run(self) -> None:
        """`a = reduce (i) { x }  b = reduce (i) { f(x, a) }  →  kernel { parallel (p) { reduce, reduce over a part } }
        a = reduce (p)  b = reduce (p) { moved to a }`.

        Does not fire where the row is short or of unknown length, where no fitting number of parts divides it, where
        a further nest goes over the row anyway, or where what is reduced is made by this kernel.
        """
        blocks = [self.kernel.block, *(op.block for op in all_ops(self.kernel.block) if isinstance(op, loop.NestOp))]
        for block in blocks:
            pair = pair_of(block)
            if pair is None:
                continue
            cut = self.cut(pair)
            if cut is not None and self.is_closed(pair):
                self.combine(pair, cut, self.make_parts(pair, cut))
                return

    def cut(self, pair: Pair) -> Cut | None:
        """Parts that take one index of the first dims, and a divisor of the next one."""
        least, most = (LEAST_COLUMN_PART, COLUMN_PART) if self.runs_down_columns(pair) else (LEAST_PART, MOST_PART)
        extents = [size.constant for size in pair.first.sizes]
        for position, extent in enumerate(extents):
            rest = prod(extents[position + 1 :])
            longest = most if rest == 1 else 1 if rest <= most else 0  # registers hold a part along one dim
            lengths = [n for n in range(longest, 0, -1) if extent % n == 0]
            if lengths:
                unit = self.unit(pair.first, position, lengths)
                length = next((n for n in lengths if n % unit == 0), max(lengths))
                cut = Cut((*extents[:position], extent // length), length, length * rest)
                return cut if cut.volume >= least else None
        return None

    def unit(self, reduction: loop.ReduceOp, position: int, lengths: Sequence[int]) -> int:
        """What reads divide an index by, at most a part: parts of whole units are read at linear places."""
        index, found = reduction.indices[position], {1}
        for read in all_ops(reduction.block):
            if isinstance(read, loop.ReadOp) and index in read.indices:
                own = list(read.indices).index(index)
                found |= {divisor for result in read.map.results for divisor in divisors(result, own)}
        return max(divisor for divisor in found if divisor <= max(lengths))

    def runs_down_columns(self, pair: Pair) -> bool:
        """Whether neighbours in memory belong to different rows."""
        inner = set(pair.first.indices)
        reads = [access for access in KernelModel(self.kernel).accesses if pair.first.is_ancestor(access.op)]
        ones = [index for access in reads for index in access.indices if access.stride(index) == ONE]
        return bool(ones) and not inner.intersection(ones)

    def is_closed(self, pair: Pair) -> bool:
        """Whether the bodies do nothing but yield, and need nothing that this kernel writes or that its nests make."""
        written = {op.target for op in all_ops(self.kernel.block) if isinstance(op, loop.WriteOp)}
        needed = [*self.needed(pair.first, pair), *self.needed(pair.second, pair)]
        ops = [*needed, *all_ops(pair.first.block), *all_ops(pair.second.block)]
        return not any(isinstance(op, loop.NestOp | loop.AssertOp) or not written.isdisjoint(op.operands) for op in ops)

    def needed(self, reduction: loop.ReduceOp, pair: Pair) -> list[Operation]:
        """The ops outside of a reduction that its body needs, in their order, the centre aside."""
        found: list[Operation] = []
        values = {operand for op in all_ops(reduction.block) for operand in op.operands} - {pair.centre}
        for op in reversed(all_ops(self.kernel.block)):
            if not reduction.is_ancestor(op) and not values.isdisjoint(op.results):
                found.append(op)
                values |= set(op.operands) - {pair.centre}
        return [*reversed(found)]

    # -- parts ---------------------------------------------------------------------------------------

    def make_parts(self, pair: Squares | Exponentials, cut: Cut) -> loop.KernelOp:
        """The kernel that leaves both reductions of each part, for all indices around."""
        around = self.around(pair)
        outer = [size for nest in around for size in nest.sizes]
        shape: list[ExprLike] = [*cut.counts, *outer]
        made = loop.KernelOp.make(
            f"{self.kernel.kernel_name.data}_parts", [tensor_type(pair.element, shape) for _ in range(2)]
        )
        made.location = self.kernel.location
        assert self.kernel.parent is not None
        self.kernel.parent.insert_op_before(made, self.kernel)
        space = loop.ParallelOp.make(shape)
        made.block.add_op(space)
        indices = [index for nest in around for index in nest.indices]
        copies: dict[SSAValue, SSAValue] = dict(zip(indices, space.indices[len(cut.counts) :], strict=True))
        first = self.part(pair.first, pair, cut, space, copies)
        copies[pair.centre] = pair.part_centre(space.block, first, cut.volume)
        second = self.part(pair.second, pair, cut, space, copies)
        places = [dim(k) for k in range(len(space.indices))]
        for value, destination in zip((first, second), made.block.args, strict=True):
            space.block.add_op(loop.WriteOp.make(value, destination, list(space.indices), places))
        return made

    def around(self, pair: Pair) -> list[loop.NestOp]:
        return [nest for nest in enclosing_nests(pair.first) if nest is not pair.first]

    def part(
        self,
        reduction: loop.ReduceOp,
        pair: Pair,
        cut: Cut,
        space: loop.ParallelOp,
        copies: dict[SSAValue, SSAValue],
    ) -> SSAValue:
        """A copy of the reduction over one part."""
        for op in self.needed(reduction, pair):
            if SSAValue.get(op) not in copies:
                space.block.add_op(op.clone(copies))
        made = reduction.clone(copies)
        space.block.add_op(made)
        for position, number in enumerate(space.indices[: len(cut.counts)]):
            last = position == len(cut.counts) - 1
            take_part(made, position, number, const(cut.length if last else 1), self.sizes)
        return SSAValue.get(made)

    # -- combination ---------------------------------------------------------------------------------

    def combine(self, pair: Squares | Exponentials, cut: Cut, parts: loop.KernelOp) -> None:
        """Has the kernel reduce what the parts left, the second of them about the centre of all."""
        indices = [index for nest in self.around(pair) for index in nest.indices]
        first = loop.ReduceOp.make(cut.counts, pair.first.combiner_names, pair.first.result_types)
        first.block.add_op(loop.YieldOp.make([read_part(first, parts.results[0], indices)]))
        replace(pair.first, first)
        centre = SSAValue.get(first) if isinstance(pair, Exponentials) else pair.centre
        second = loop.ReduceOp.make(cut.counts, pair.second.combiner_names, pair.second.result_types)
        own, left = (read_part(second, part, indices) for part in parts.results)
        second.block.add_op(loop.YieldOp.make([pair.moved(second.block, own, left, centre, cut.volume)]))
        replace(pair.second, second)
        erase_dead(list(all_ops(self.kernel.block)))


def divisors(expr: Expr, position: int) -> Iterator[int]:
    """The numbers by which an expression divides sums in which a dim occurs."""
    for atom in (atom for monomial, _ in expr.terms for atom in monomial):
        if atom.kind in ("dim", "symbol"):
            continue
        base, divisor = atom.args
        if atom.kind in ("floordiv", "mod") and position in base.dims and divisor.is_constant:
            yield divisor.constant
        for argument in (base, divisor):
            yield from divisors(argument, position)


def replace(old: loop.ReduceOp, new: loop.ReduceOp) -> None:
    new.location = old.location
    assert old.parent is not None
    old.parent.insert_op_before(new, old)
    SSAValue.get(old).replace_all_uses_with(SSAValue.get(new))
    erase(old)


def read_part(reduction: loop.ReduceOp, part: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
    """What the part of the reduction's index left, for the indices around."""
    all_indices = [*reduction.indices, *indices]
    return add(reduction.block, loop.ReadOp.make(part, all_indices, [dim(k) for k in range(len(all_indices))]))


class LoopSplitDependentReductions(ModulePass):
    """Reduce long rows in parts, where a second reduction needs the first one's result, if the target is a GPU."""

    name = "loop-split-dependent-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not target_of(op).is_gpu:
            return
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                DependentSplitter(kernel).run()


__all__ = ["LoopSplitDependentReductions"]
