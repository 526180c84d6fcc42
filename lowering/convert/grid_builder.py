"""Rewrites the scalar code of a loop kernel as code on blocks of several axes, as the programs of a GPU hold them.

A loop index may run along an axis, one dimension of all blocks. A value is a block over just those axes that it
depends on, and is broadcast where it meets one over others. Equal values are made once: what two nests over one row
both read or compute thereby stays in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, VectorType, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ...ir import loop, tile
from ...ir.combiners import Combiner, identity_value, last_index
from ...ir.errors import LoweringError
from ...ir.expr import OPERATORS, ZERO, Atom, Domain, Expr, const, dim, linearize
from ...ir.tile.ops import INDEX, block_type, shape_of
from ..analysis.accesses import place_of
from ..analysis.sizes import Sizes
from .block_builder import Address, BlockBuilder


@dataclass(frozen=True)
class Axis:
    """A dimension of the blocks of a program. Axes of one block come in the order of their positions."""

    position: int
    width: int


@dataclass(frozen=True)
class Run:
    """A loop index that runs along an axis: its value in lane 0 and the lanes that are on, all if there is no mask."""

    axis: Axis
    base: SSAValue
    mask: SSAValue | None


Axes = tuple[Axis, ...]

_INDICES = {position: const(1 << 62) for position in range(16)}
"""Their extents: indices are not negative."""

MOST_SMALL = 1 << 30
"""Numbers up to which 32 bits hold what index expressions compute."""

_UNSIGNED: dict[str, type[Operation]] = {"floordiv": arith.DivUIOp, "mod": arith.RemUIOp}
"""Divisions of what is not negative, which take fewer instructions unsigned."""

Layout = tuple[SSAValue, tuple[Expr, ...]]
"""The flat buffer of a tensor, and its strides."""


def merged(groups: Sequence[Axes]) -> Axes:
    return tuple(sorted({axis for group in groups for axis in group}, key=lambda axis: axis.position))


@dataclass(frozen=True)
class GridAddress(Address):
    """An offset with its strides along axes, or a block of offsets over the axes."""

    axes: Axes = ()
    strides: tuple[Expr, ...] = ()


class GridBuilder(BlockBuilder):
    """A block builder whose blocks have an axis for each of several loop indices."""

    def __init__(
        self,
        block: Block,
        places: Mapping[SSAValue, Layout],
        constant: set[SSAValue],
        offset_type: IntegerType,
        sizes: Sizes,
    ):
        super().__init__(block, {}, {})
        self.offset_type = offset_type
        self.sizes = sizes
        self.places = places
        self.constant_buffers = constant
        self.runs: dict[SSAValue, Run] = {}
        self.active: list[Run] = []
        self.axes: dict[SSAValue, Axes] = {}
        self.guard: SSAValue | None = None
        self.made: list[dict[object, SSAValue]] = [{}]

    # -- plumbing --------------------------------------------------------------------------------

    def add(self, op: Operation, axes: Axes | None = None) -> SSAValue:
        """Appends an op unless an equal one is there; gives its result, over `axes` or those of its operands."""
        key = self.key(op, axes)
        for known in reversed(self.made):
            if key is not None and key in known:
                op.erase()
                return known[key]
        result = super().add(op)
        if key is not None:
            self.made[-1][key] = result
        if axes is not None:
            return self.over(result, axes)
        if isinstance(result.type, VectorType):
            shape = shape_of(result.type)
            like = next((one for one in op.operands if shape_of(one.type) == shape and one in self.axes), None)
            if like is not None:
                self.axes[result] = self.axes[like]
        return result

    def key(self, op: Operation, axes: Axes | None) -> object | None:
        """What ops have in common that give equal values over the same axes; None for those with effects."""
        loads = isinstance(op, tile.LoadOp | tile.GatherOp) and op.buffer in self.constant_buffers
        if not loads and not is_side_effect_free(op):
            return None
        operands = tuple(id(operand) for operand in op.operands)
        return op.name, operands, frozenset(op.properties.items()), tuple(op.result_types), axes

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        self.made.append({})
        with super().inside(block):
            yield
        self.made.pop()

    @contextmanager
    def running(self, index: SSAValue, run: Run) -> Iterator[None]:
        """Lets a loop index run along an axis for a while."""
        self.bind_run(index, run)
        self.active.append(run)
        yield
        self.active.pop()

    @contextmanager
    def guarding(self, guard: SSAValue) -> Iterator[None]:
        """Reads only where a condition holds, for a while."""
        previous = self.guard
        self.guard = guard if previous is None else self.binary(arith.AndIOp, previous, guard)
        yield
        self.guard = previous

    def bind_run(self, index: SSAValue, run: Run) -> None:
        self.runs[index] = run
        self.values[index] = run.base

    def over(self, value: SSAValue, axes: Axes) -> SSAValue:
        """Notes the axes of a block that was just made."""
        if axes:
            self.axes[value] = axes
        return value

    # -- values ----------------------------------------------------------------------------------

    def lift(self, value: SSAValue, axes: Axes) -> SSAValue:
        """The value as a block over axes that include its own."""
        own = self.axes.get(value, ())
        if own == axes:
            return value
        dims = [axes.index(axis) for axis in own]
        return self.add(tile.BroadcastOp.make(value, [axis.width for axis in axes], dims), axes)

    def axes_of(self, values: Sequence[SSAValue]) -> Axes:
        """All axes that values depend on."""
        return merged([self.axes.get(value, ()) for value in values])

    def aligned(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        axes = self.axes_of(values)
        return [self.lift(value, axes) for value in values]

    def numbers(self, run: Run) -> SSAValue:
        """The indices of a run as a block of the number type."""
        iota = self.add(tile.IotaOp.make([run.axis.width], element=self.number_type), (run.axis,))
        if known_number(run.base) == 0:
            return iota
        base = self.add(arith.IndexCastOp.create(operands=[run.base], result_types=[self.number_type]))
        return self.binary(arith.AddiOp, base, iota)

    def mask_of(self, axes: Axes, guard: SSAValue | None = None) -> SSAValue | None:
        """Which lanes of a block over these axes exist, and fulfil the guard."""
        masks = [run.mask for run in self.active if run.axis in axes and run.mask is not None]
        if guard is not None:
            masks.append(guard)
        if not masks:
            return None
        return self.lift(reduce(lambda first, second: self.binary(arith.AndIOp, first, second), masks), axes)

    # -- index expressions -----------------------------------------------------------------------

    def is_lane(self, index: SSAValue) -> bool:
        return index in self.runs

    def address(self, indices: Sequence[SSAValue], offset: Expr) -> GridAddress:
        """The offset over loop indices as one over tile indices, with its strides along axes."""
        used = sorted(offset.dims)
        blocks = any(self.values[indices[k]] in self.axes for k in used)
        runs = [k for k in used if indices[k] in self.runs]
        strides = {self.runs[indices[k]].axis: offset.coefficient(k) for k in runs}
        if not blocks and len(strides) == len(runs) and all(is_uniform(stride) for stride in strides.values()):
            axes = merged([tuple(strides)])
            values, base = self.grounded(indices, offset)
            return GridAddress(values, base, None, None, axes, tuple(strides[axis] or ZERO for axis in axes))
        with self.numbers_as(self.offset_type):
            block = self.evaluate(indices, offset)
        return GridAddress((), ZERO, None, block, self.axes.get(block, ()))

    @contextmanager
    def numbers_as(self, type_: IntegerType) -> Iterator[None]:
        """Evaluates index expressions in another type for a while."""
        previous, self.number_type = self.number_type, type_
        yield
        self.number_type = previous

    def grounded(self, indices: Sequence[SSAValue], expr: Expr) -> tuple[list[SSAValue], Expr]:
        """The expression in lane 0, over tile values; numbers become part of it."""
        values = [self.values[index] for index in indices]
        known = {k: number for k, value in enumerate(values) if (number := known_number(value)) is not None}
        return values, expr.substitute_dims(known)

    def evaluate(self, indices: Sequence[SSAValue], expr: Expr) -> SSAValue:
        varying = self.varying(indices, expr)
        if not varying:
            values, base = self.grounded(indices, expr)
            return self.add(tile.IndexOp.make(values, base, self.number_type))
        return self._evaluate_terms(indices, expr, varying)

    def varying(self, indices: Sequence[SSAValue], expr: Expr) -> set[int]:
        """The dims of an expression that differ from lane to lane."""
        return {k for k in expr.dims if indices[k] in self.runs or self.values[indices[k]] in self.axes}

    def position(self, indices: Sequence[SSAValue], expr: Expr) -> SSAValue:
        """The value of an index expression: a block of i64 where it varies, else an index."""
        if self.varying(indices, expr):
            return self.evaluate(indices, expr)
        values, base = self.grounded(indices, expr)
        return self.add(tile.IndexOp.make(values, base, INDEX))

    def _evaluate_atom(self, indices: Sequence[SSAValue], atom: Atom, varying: set[int]) -> SSAValue:
        if atom.kind == "dim" and indices[atom.args[0]] in self.runs:
            return self.numbers(self.runs[indices[atom.args[0]]])
        if atom.kind == "dim" and (value := self.values[indices[atom.args[0]]]) in self.axes:
            return self.add(tile.ConvertOp.make("trunci", value, i32)) if self.number_type == i32 else value
        known = Domain(_INDICES, dict(self.sizes.intervals))
        if atom.kind in _UNSIGNED and all(known.is_nonnegative(arg) for arg in atom.args):
            return self.binary(_UNSIGNED[atom.kind], *(self.evaluate(indices, arg) for arg in atom.args))
        return super()._evaluate_atom(indices, atom, varying)

    # -- ops -------------------------------------------------------------------------------------

    def _clone(self, op: Operation) -> None:
        operands = self.aligned([self.values[operand] for operand in op.operands])
        shape = [axis.width for axis in self.axes_of(operands)]
        types = [block_type(result.type, shape) for result in op.results]
        new = type(op).create(operands=operands, result_types=types, properties=op.properties, attributes=op.attributes)
        if len(types) == 1:
            self.values[op.results[0]] = self.add(new)
            return
        self.append(new)
        for old, fresh in zip(op.results, new.results, strict=True):
            self.values[old] = self.over(fresh, self.axes_of(operands))

    def place(
        self, target: SSAValue, indices: Sequence[SSAValue], exprs: Sequence[Expr]
    ) -> tuple[SSAValue, GridAddress]:
        """The buffer of a tensor and the address of an element of it."""
        buffer, strides = self.places[target]
        offset = linearize(exprs, strides)
        return buffer, self.address(list(indices), offset)

    def _read(self, op: loop.ReadOp) -> None:
        buffer, address = self.place(op.source, op.indices, op.map.results)
        guard = self.guard if op.guard is None else self.values[op.guard]
        if op.guard is not None and self.guard is not None:
            guard = self.binary(arith.AndIOp, self.guard, self.values[op.guard])
        other = None if op.other is None else self.values[op.other]
        given = [value for value in (guard, other) if value is not None]
        axes = merged([address.axes, self.axes_of(given)])
        mask = self.mask_of(axes, guard)
        other = None if other is None else self.lift(other, axes)
        self.values[op.result] = self.add(self.load_op(buffer, address, axes, mask, other), axes)

    def load_op(
        self, buffer: SSAValue, address: GridAddress, axes: Axes, mask: SSAValue | None, other: SSAValue | None
    ) -> Operation:
        if address.offsets is not None and axes:
            return tile.GatherOp.make(buffer, self.lift(address.offsets, axes), mask, other)
        indices, offset = self.scalar_place(address)
        shape = [axis.width for axis in axes]
        return tile.LoadOp.make(buffer, indices, offset, shape, self.strides_over(address, axes), mask, other)

    def scalar_place(self, address: GridAddress) -> tuple[Sequence[SSAValue], Expr]:
        if address.offsets is None:
            return address.indices, address.offset
        return [self.add(arith.IndexCastOp.create(operands=[address.offsets], result_types=[INDEX]))], dim(0)

    def strides_over(self, address: GridAddress, axes: Axes) -> list[Expr]:
        """Strides along axes that include the address's own."""
        own = dict(zip(address.axes, address.strides, strict=True))
        return [own.get(axis, ZERO) for axis in axes]

    def _write(self, op: loop.WriteOp) -> None:
        """Stores a block. Lanes along a dim that the layout of the tensor repeats store one value in one place."""
        buffer, address = self.place(op.target, op.indices, op.map.results)
        combiner = None if op.combiner is None else op.combiner.data
        value = self.values[op.value]
        axes = merged([address.axes, self.axes.get(value, ()), tuple(run.axis for run in self.active)])
        named = {*address.axes, *(self.runs[index].axis for index in op.indices if index in self.runs)}
        if combiner is None and any(axis.width > 1 and axis not in named for axis in axes):
            raise LoweringError("loop.write", expected="a place for each lane", got="one place for several lanes")
        mask, value = self.mask_of(axes), self.lift(value, axes)
        if address.offsets is not None and axes:
            self.append(tile.ScatterOp.make(value, buffer, self.lift(address.offsets, axes), mask, combiner))
        else:
            indices, offset = self.scalar_place(address)
            strides = self.strides_over(address, axes)
            self.append(tile.StoreOp.make(value, buffer, indices, offset, strides, mask, combiner))

    def _index(self, op: loop.IndexOp) -> None:
        value = self.number(op)
        if op.result.type == INDEX and value not in self.axes:
            value = self.add(arith.IndexCastOp.create(operands=[value], result_types=[INDEX]))
        self.values[op.result] = value

    def number(self, op: loop.IndexOp) -> SSAValue:
        """The value of an index expression; where it is a block of small ones, computed in the type of offsets."""
        indices, expr = list(op.indices), op.map.result
        short = self.offset_type != i64 and is_small(expr, place_of(op).domain(self.sizes))
        if not short or not self.varying(indices, expr):
            return self.evaluate(indices, expr)
        with self.numbers_as(self.offset_type):
            return self.add(tile.ConvertOp.make("extsi", self.evaluate(indices, expr), i64))

    def lanes_below(self, run: Run, size: Expr) -> SSAValue:
        """The lanes of a run that come before the end of its dim."""
        known = Domain({}, dict(self.sizes.intervals))
        with self.numbers_as(self.offset_type if is_small(size, known) else i64):
            limit = self.add(tile.IndexOp.make((), size, self.number_type))
            return self.compare("slt", self.numbers(run), limit)

    def _index_cast(self, op: arith.IndexCastOp) -> None:
        value = self.numbers(self.runs[op.input]) if op.input in self.runs else self.values[op.input]
        if value not in self.axes and value.type != op.result.type:
            value = self.add(arith.IndexCastOp.create(operands=[value], result_types=[op.result.type]))
        self.values[op.result] = value  # a block of indices stays a block of i64

    def _assert(self, op: loop.AssertOp) -> None:
        code = self.errors.setdefault((op.exception.data, op.message.data), len(self.errors) + 1)
        condition, value = self.aligned([self.values[op.condition], self.values[op.value]])
        self.append(tile.AssertOp.make(condition, value, code, self.mask_of(self.axes.get(condition, ()))))

    # -- reductions ------------------------------------------------------------------------------

    def neutral(
        self, combiners: Sequence[Combiner], types: Sequence[Attribute], axes: Axes, in_order: bool
    ) -> list[SSAValue]:
        """Neutral accumulators over axes."""
        return [self.lift(value, axes) for value in self.identities(combiners, types, None, in_order=in_order)]

    def identities(
        self, combiners: Sequence[Combiner], types: Sequence[Attribute], width: int | None, *, in_order: bool = False
    ) -> list[SSAValue]:
        values: list[SSAValue] = []
        elements = iter(types)
        for combiner in combiners:
            element = next(elements)
            values.append(self.constant(identity_value(combiner, element), element))
            if combiner.arity == 2:
                element = next(elements)
                values.append(self.constant(0 if in_order else last_index(element), element))
        return values

    def reduce_axis(self, combiners: Sequence[Combiner], values: Sequence[SSAValue], axis: Axis) -> list[SSAValue]:
        """Combines blocks along one axis, group by group."""
        results: list[SSAValue] = []
        for combiner in combiners:
            group = self.aligned(values[len(results) : len(results) + combiner.arity])
            axes = self.axes_of(group)
            op = tile.ReduceOp.make(combiner.name, group, axes.index(axis))
            rest = tuple(other for other in axes if other != axis)
            if combiner.arity == 1:
                results.append(self.add(op, rest))
            else:
                self.append(op)
                results += [self.over(value, rest) for value in op.results]
        return results


def is_small(expr: Expr, known: Domain) -> bool:
    """Whether 32 bits hold an expression, and what it divides, with room for the lanes beyond an end."""
    low, high = known.interval(expr)
    if low is None or high is None or max(-low, high) > MOST_SMALL:
        return False
    parts = [arg for monomial, _ in expr.terms for atom in monomial if atom.kind in OPERATORS for arg in atom.args]
    return all(is_small(part, known) for part in parts)


def known_number(value: SSAValue) -> int | None:
    """What an integer is, if it is a constant."""
    op = value.owner
    return op.value.value.data if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr) else None


def is_uniform(stride: Expr | None) -> bool:
    """Whether lanes lie equally far apart."""
    return stride is not None and not stride.dims


GridBuilder.handlers = {
    **BlockBuilder.handlers,
    loop.ReadOp: GridBuilder._read,
    loop.WriteOp: GridBuilder._write,
    loop.IndexOp: GridBuilder._index,
    loop.AssertOp: GridBuilder._assert,
    arith.IndexCastOp: GridBuilder._index_cast,
}

__all__ = ["Axes", "Axis", "GridBuilder", "Run", "known_number"]
