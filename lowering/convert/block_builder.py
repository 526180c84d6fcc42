"""Rewrites the scalar code of a loop kernel as code on blocks, under a choice of the lane dimension.

At any point at most one loop index runs along lanes. Values that depend on it are blocks, all others stay
scalars and are broadcast where they meet a block. This file knows nothing of grids and schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...ir import loop, tile
from ...ir.combiners import Combiner, identity_value, last_index
from ...ir.errors import LoweringError
from ...ir.expr import ONE, ZERO, Atom, Expr, dim, linearize
from ...ir.shapes import canonical_access
from ...ir.tile.ops import INDEX, block_type, element_of, shape_of
from ..schedule.prefetch import Stream


def new_index() -> SSAValue:
    """A name for an index that no loop has."""
    (index,) = Block(arg_types=[INDEX]).args
    return index


@dataclass(frozen=True)
class Lane:
    """The loop index that runs along lanes: its value in lane 0, how many lanes, and which of them are on."""

    index: SSAValue
    base: SSAValue
    width: int
    mask: SSAValue | None


@dataclass(frozen=True)
class Buffer:
    """Where a tensor or local lies: its flat buffer, strides per logical dimension, and a start in elements.

    The start is an expression over the loop indices `start_indices`; `lane_stride` is the extra stride along lanes
    of a local that holds one row per lane.
    """

    value: SSAValue
    strides: tuple[Expr, ...]
    start: Expr = ZERO
    start_indices: tuple[SSAValue, ...] = ()
    lane_stride: Expr = ZERO


@dataclass(frozen=True)
class Place:
    """An element by the key of its buffer and expressions over loop indices, one for each dimension."""

    target: SSAValue
    indices: Sequence[SSAValue]
    exprs: Sequence[Expr]


@dataclass(frozen=True)
class Address:
    """An offset over tile indices, and the stride along lanes (None: `offsets` holds a block of offsets)."""

    indices: Sequence[SSAValue]
    offset: Expr
    lane_stride: Expr | None
    offsets: SSAValue | None = None


_FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


class BlockBuilder:
    """Appends tile ops to `block`, translating loop ops through `values` and `buffers`."""

    handlers: ClassVar[dict[type[Operation], Callable[[Any, Any], None]]]
    """What translates ops of each class that is not cloned."""

    def __init__(self, block: Block, buffers: Mapping[SSAValue, Buffer], errors: dict[tuple[str, str], int]):
        self.block = block
        self.values: dict[SSAValue, SSAValue] = {}
        self.buffers: dict[SSAValue, Buffer] = dict(buffers)
        self.errors = errors
        self.moved: dict[Operation, Place] = {}  # reads that find their elements elsewhere
        self.lane: Lane | None = None
        self.number_type: IntegerType = i64  # of index expressions as values
        self.location: LocationAttr | None = None

    # -- plumbing --------------------------------------------------------------------------------

    def add(self, op: Operation) -> SSAValue:
        """Appends an op and gives its result."""
        if self.location is not None:
            op.location = self.location
        self.block.add_op(op)
        return SSAValue.get(op)

    def append(self, op: Operation) -> None:
        if self.location is not None:
            op.location = self.location
        self.block.add_op(op)

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Appends to another block for a while."""
        previous, self.block = self.block, block
        yield
        self.block = previous

    @contextmanager
    def along(self, lane: Lane) -> Iterator[None]:
        """Lets a loop index run along lanes for a while."""
        previous, self.lane = self.lane, lane
        self.values[lane.index] = lane.base
        yield
        self.lane = previous

    @property
    def width(self) -> int | None:
        return None if self.lane is None else self.lane.width

    @property
    def mask(self) -> SSAValue | None:
        return None if self.lane is None else self.lane.mask

    # -- values ----------------------------------------------------------------------------------

    def constant(self, value: float, element: Attribute) -> SSAValue:
        if isinstance(element, IntegerType | IndexType):
            attr: Attribute = IntegerAttr(int(value), element)
        else:
            assert isinstance(element, AnyFloat)
            attr = FloatAttr(float(value), element)
        return self.add(arith.ConstantOp.create(properties={"value": attr}, result_types=[element]))

    def broadcast(self, value: SSAValue, width: int | None) -> SSAValue:
        """The value as a block of that width; blocks and `None` leave it as it is."""
        if width is None or isinstance(value.type, VectorType):
            return value
        if isinstance(value.type, IndexType):  # as a block, indices are i64
            value = self.add(arith.IndexCastOp.create(operands=[value], result_types=[i64]))
        return self.add(tile.BroadcastOp.make(value, [width]))

    def aligned(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The values, scalars broadcast if any of them is a block."""
        width = next((width for value in values for width in shape_of(value.type)), None)
        return [self.broadcast(value, width) for value in values]

    def lane_numbers(self) -> SSAValue:
        """The lane index as a block of i64."""
        assert self.lane is not None
        base = self.add(arith.IndexCastOp.create(operands=[self.lane.base], result_types=[i64]))
        return self.binary(arith.AddiOp, base, self.steps())

    def steps(self) -> SSAValue:
        """The numbers of the lanes, from 0 on."""
        assert self.lane is not None
        return self.add(tile.IotaOp.make([self.lane.width]))

    def binary(self, op_class: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`op_class(lhs, rhs)` on scalars or blocks; the result has the operands' type."""
        lhs, rhs = self.aligned([lhs, rhs])
        return self.add(op_class.create(operands=[lhs, rhs], result_types=[lhs.type], properties=_properties(op_class)))

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self.add(tile.CompareOp.make(predicate, *self.aligned([lhs, rhs])))

    def select(self, condition: SSAValue, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        condition, lhs, rhs = self.aligned([condition, lhs, rhs])
        return self.add(tile.SelectOp.make(condition, lhs, rhs))

    def operand(self, value: SSAValue) -> SSAValue:
        """What a value has become; for the index that runs along lanes, the index of each."""
        return self.lane_numbers() if self.is_lane(value) else self.values[value]

    # -- index expressions -----------------------------------------------------------------------

    def is_lane(self, index: SSAValue) -> bool:
        return self.lane is not None and index is self.lane.index

    def _is_block(self, index: SSAValue) -> bool:
        return isinstance(self.values[index].type, VectorType)

    def address(self, indices: Sequence[SSAValue], offset: Expr) -> Address:
        """The offset over loop indices as one over tile indices, with its stride along lanes."""
        lane = next((position for position, index in enumerate(indices) if self.is_lane(index)), None)
        if not any(self._is_block(index) for index in indices):
            values = [self.values[index] for index in indices]
            if lane is None:
                return Address(values, offset, ZERO)
            stride = offset.coefficient(lane)
            if stride is not None and not stride.dims:
                return Address(values, offset, stride)
        return Address((), ZERO, None, self.evaluate(indices, offset))

    def evaluate(self, indices: Sequence[SSAValue], expr: Expr) -> SSAValue:
        """The value of an index expression as i64: a block where it varies along lanes, else a scalar."""
        varying = {position for position, index in enumerate(indices) if self.is_lane(index) or self._is_block(index)}
        if not varying & expr.dims:
            return self.add(tile.IndexOp.make([self.values[index] for index in indices], expr))
        first, *others = varying
        if not others and self.is_lane(indices[first]):
            linear = self._evaluate_linear([self.values[index] for index in indices], expr, first)
            if linear is not None:
                return linear
        return self._evaluate_terms(indices, expr, varying)

    def _evaluate_linear(self, values: Sequence[SSAValue], expr: Expr, lane: int) -> SSAValue | None:
        """`base + iota * stride` where the lane occurs linearly."""
        stride = expr.coefficient(lane)
        if stride is None or stride.dims:
            return None
        steps = self.steps()
        if stride != ONE:
            steps = self.binary(arith.MuliOp, steps, self.add(tile.IndexOp.make((), stride)))
        return self.binary(arith.AddiOp, self.add(tile.IndexOp.make(values, expr)), steps)

    def _evaluate_terms(self, indices: Sequence[SSAValue], expr: Expr, varying: set[int]) -> SSAValue:
        uniform, total = ZERO, None
        for monomial, coefficient in expr.terms:
            term = Expr(((monomial, coefficient),))
            if not varying & term.dims:
                uniform = uniform + term
                continue
            product = self._evaluate_atoms(indices, monomial, varying)
            if coefficient != 1:
                product = self.binary(arith.MuliOp, product, self.constant(coefficient, self.number_type))
            total = product if total is None else self.binary(arith.AddiOp, total, product)
        assert total is not None
        if uniform == ZERO:
            return total
        return self.binary(arith.AddiOp, total, self.evaluate(indices, uniform))

    def _evaluate_atoms(self, indices: Sequence[SSAValue], monomial: Sequence[Atom], varying: set[int]) -> SSAValue:
        product: SSAValue | None = None
        for atom in monomial:
            factor = self._evaluate_atom(indices, atom, varying)
            product = factor if product is None else self.binary(arith.MuliOp, product, factor)
        assert product is not None
        return product

    def _evaluate_atom(self, indices: Sequence[SSAValue], atom: Atom, varying: set[int]) -> SSAValue:
        if atom.kind == "dim":
            index = indices[atom.name]
            value = self.operand(index)
            return value if isinstance(value.type, VectorType) else self.evaluate(indices, dim(atom.name))
        if atom.kind == "symbol":
            return self.add(tile.IndexOp.make((), Expr((((atom,), 1),)), self.number_type))
        lhs, rhs = (self.evaluate(indices, arg) for arg in atom.args)
        if atom.kind == "ceildiv":
            less_one = self.binary(arith.SubiOp, rhs, self.constant(1, self.number_type))
            return self.binary(arith.FloorDivSIOp, self.binary(arith.AddiOp, lhs, less_one), rhs)
        if atom.kind == "mod":
            quotient = self.binary(arith.FloorDivSIOp, lhs, rhs)
            return self.binary(arith.SubiOp, lhs, self.binary(arith.MuliOp, quotient, rhs))
        return self.binary(_INDEX_OPERATORS[atom.kind], lhs, rhs)

    # -- ops -------------------------------------------------------------------------------------

    def emit(self, op: Operation) -> None:
        """Translates one scalar op of a body; nests and locals are the caller's."""
        self.location = op.location
        handler = self.handlers.get(type(op))
        if handler is not None:
            handler(self, op)
        elif type(op).dialect_name() in ("arith", "math"):
            self._clone(op)
        else:
            raise LoweringError("convert-loop-to-tile", expected="an op of a kernel's body", got=op.name)

    def _cast(self, op: Operation) -> None:
        """A cast, which `arith` defines on scalars only."""
        (value,) = (self.values[operand] for operand in op.operands)
        if not shape_of(value.type):
            self._clone(op)
            return
        kind = op.name.removeprefix("arith.")
        self.values[SSAValue.get(op)] = self.add(tile.ConvertOp.make(kind, value, SSAValue.get(op).type))

    def _clone(self, op: Operation) -> None:
        operands = self.aligned([self.operand(operand) for operand in op.operands])
        shape = next((shape_of(operand.type) for operand in operands if shape_of(operand.type)), ())
        types = [block_type(i64 if shape and result.type == INDEX else result.type, shape) for result in op.results]
        new = type(op).create(operands=operands, result_types=types, properties=op.properties, attributes=op.attributes)
        self.append(new)
        for old, fresh in zip(op.results, new.results, strict=True):
            self.values[old] = fresh

    def locate(self, target: SSAValue, indices: Sequence[SSAValue], exprs: Sequence[Expr]) -> tuple[Buffer, Address]:
        buffer = self.buffers[target]
        shift = len(indices)
        start = buffer.start.substitute_dims([dim(shift + k) for k in range(len(buffer.start_indices))])
        offset = linearize(exprs, buffer.strides) + start
        merged, access = canonical_access([*indices, *buffer.start_indices], [offset])
        address = self.address(merged, access.result)
        if buffer.lane_stride == ZERO:
            return buffer, address
        if address.offsets is not None:
            offsets = self.binary(arith.AddiOp, address.offsets, self.steps())
            return buffer, Address((), ZERO, None, offsets)
        assert address.lane_stride is not None
        return buffer, Address(address.indices, address.offset, address.lane_stride + buffer.lane_stride)

    def _read(self, op: loop.ReadOp) -> None:
        place = self.moved.get(op) or Place(op.source, list(op.indices), op.map.results)
        buffer, address = self.locate(place.target, place.indices, place.exprs)
        guard = None if op.guard is None else self.values[op.guard]
        other = None if op.other is None else self.values[op.other]
        self.values[op.result] = self.load(buffer.value, address, guard, other)

    def load(
        self, buffer: SSAValue, address: Address, guard: SSAValue | None = None, other: SSAValue | None = None
    ) -> SSAValue:
        """A load at the address: a scalar where nothing of it varies along lanes."""
        if address.offsets is not None:
            mask = self._masked(guard)
            return self.add(tile.GatherOp.make(buffer, address.offsets, mask, self.broadcast_optional(other)))
        blocks = [isinstance(value.type, VectorType) for value in (guard, other) if value is not None]
        if address.lane_stride == ZERO and not any(blocks):
            return self.add(tile.LoadOp.make(buffer, address.indices, address.offset, (), (), guard, other))
        assert self.lane is not None
        assert address.lane_stride is not None
        return self.add(
            tile.LoadOp.make(
                buffer,
                address.indices,
                address.offset,
                [self.lane.width],
                [address.lane_stride],
                self._masked(guard),
                self.broadcast_optional(other),
            )
        )

    def prefetch(self, stream: Stream) -> None:
        """Fetches what the stream's access comes to, where that is a block of neighbours."""
        target = stream.access.operands[1 if stream.writes else 0]
        buffer, address = self.locate(target, stream.indices, stream.access.map.results)
        if address.lane_stride == ONE:
            assert self.lane is not None
            offset = address.offset + stream.ahead
            lanes, mask = self.lane.width, self.mask
            self.append(
                tile.PrefetchOp.make(
                    buffer.value, address.indices, offset, lanes, mask, write=stream.writes, level=stream.level
                )
            )

    def broadcast_optional(self, value: SSAValue | None) -> SSAValue | None:
        return None if value is None else self.broadcast(value, self.width)

    def _masked(self, guard: SSAValue | None) -> SSAValue | None:
        """The guard and the lane mask together."""
        if guard is None:
            return self.mask
        guard = self.broadcast(guard, self.width)
        return guard if self.mask is None else self.binary(arith.AndIOp, guard, self.mask)

    def _write(self, op: loop.WriteOp) -> None:
        buffer, address = self.locate(op.target, list(op.indices), op.map.results)
        combiner = None if op.combiner is None else op.combiner.data
        self.store(self.values[op.value], buffer.value, address, combiner)

    def store(self, value: SSAValue, buffer: SSAValue, address: Address, combiner: str | None = None) -> None:
        """A store at the address, one per lane where address or a combined value vary along lanes."""
        same_place = address.lane_stride == ZERO
        if same_place and self.lane is not None and combiner is not None:
            address = Address((), ZERO, None, self._repeated(address))
        elif same_place and isinstance(value.type, VectorType):
            raise LoweringError("loop.write", expected="a place for each lane", got="one place for all lanes")
        if address.offsets is not None:
            value = self.broadcast(value, self.width)
            self.append(tile.ScatterOp.make(value, buffer, address.offsets, self.mask, combiner))
        elif same_place:
            self.append(tile.StoreOp.make(value, buffer, address.indices, address.offset, (), None, combiner))
        else:
            assert address.lane_stride is not None
            value = self.broadcast(value, self.width)
            strides = [address.lane_stride]
            self.append(tile.StoreOp.make(value, buffer, address.indices, address.offset, strides, self.mask, combiner))

    def _repeated(self, address: Address) -> SSAValue:
        return self.broadcast(self.add(tile.IndexOp.make(address.indices, address.offset)), self.width)

    def _index(self, op: loop.IndexOp) -> None:
        if op.result.type == i64:
            self.values[op.result] = self.evaluate(list(op.indices), op.map.result)
            return
        address = self.address(list(op.indices), op.map.result)
        if address.lane_stride == ZERO:
            self.values[op.result] = self.add(tile.IndexOp.make(address.indices, address.offset, INDEX))
        else:
            self.values[op.result] = self.evaluate(list(op.indices), op.map.result)

    def _index_cast(self, op: arith.IndexCastOp) -> None:
        value = self.operand(op.input)
        if not isinstance(value.type, VectorType) and value.type != op.result.type:
            value = self.add(arith.IndexCastOp.create(operands=[value], result_types=[op.result.type]))
        self.values[op.result] = value  # a block of indices stays a block of i64

    def _compare(self, op: arith.CmpfOp | arith.CmpiOp) -> None:
        names = _FLOAT_PREDICATES if isinstance(op, arith.CmpfOp) else _INTEGER_PREDICATES
        predicate = names[op.predicate.value.data]
        self.values[op.result] = self.compare(predicate, self.operand(op.lhs), self.operand(op.rhs))

    def _select(self, op: arith.SelectOp) -> None:
        self.values[op.result] = self.select(*(self.operand(operand) for operand in op.operands))

    def _constant(self, op: arith.ConstantOp) -> None:
        self.values[op.result] = self.add(
            arith.ConstantOp.create(properties=op.properties, result_types=[op.result.type])
        )

    def _assert(self, op: loop.AssertOp) -> None:
        code = self.errors.setdefault((op.exception.data, op.message.data), len(self.errors) + 1)
        condition, value = self.aligned([self.values[op.condition], self.values[op.value]])
        mask = self.mask if isinstance(condition.type, VectorType) else None
        self.append(tile.AssertOp.make(condition, value, code, mask))

    def _philox(self, op: loop.PhiloxOp) -> None:
        stream = op.stream.value.data  # type: ignore[attr-defined]
        seed, counter = self.values[op.seed], self.values[op.counter]
        self.values[op.bits] = self.add(tile.PhiloxOp.make(seed, counter, stream))

    # -- reductions ------------------------------------------------------------------------------

    def identities(
        self, combiners: Sequence[Combiner], types: Sequence[Attribute], width: int | None, *, in_order: bool = False
    ) -> list[SSAValue]:
        """Neutral accumulators, as blocks of that width if one is given.

        What comes in order is numbered from 0, and only a greater key replaces an earlier one: there the neutral
        index is 0, which stands where nothing beats the neutral key.
        """
        values: list[SSAValue] = []
        elements = iter(types)
        for combiner in combiners:
            element = next(elements)
            values.append(self.broadcast(self.constant(identity_value(combiner, element), element), width))
            if combiner.arity == 2:
                element = next(elements)
                index = 0 if in_order else last_index(element)
                values.append(self.broadcast(self.constant(index, element), width))
        return values

    def combine(
        self,
        combiners: Sequence[Combiner],
        left: Sequence[SSAValue],
        right: Sequence[SSAValue],
        *,
        in_order: bool = False,
    ) -> list[SSAValue]:
        """Combines two lists of accumulators, group by group; `in_order` says that indices on the right are later."""
        results: list[SSAValue] = []
        for combiner in combiners:
            start = len(results)
            if combiner.arity == 2:
                beats = self._beats_in_order if in_order else self._beats
                pairs = (left[start], left[start + 1], right[start], right[start + 1])
                takes = beats(combiner.name, *pairs)
                results += [self.select(takes, right[k], left[k]) for k in (start, start + 1)]
            else:
                results.append(self.combine_one(combiner.name, left[start], right[start]))
        return results

    def combine_one(self, name: str, left: SSAValue, right: SSAValue) -> SSAValue:
        is_float = not isinstance(element_of(left.type), IntegerType | IndexType)
        if element_of(left.type) == i1:
            name = ON_BOOLS[name]
        if is_float and name in ("max", "min"):  # so that the check for NaN does not wait for the accumulator
            left, right = right, left
        return self.binary(COMBINER_OPS[name][is_float], left, right)

    def _beats(
        self, name: str, left: SSAValue, left_index: SSAValue, right: SSAValue, right_index: SSAValue
    ) -> SSAValue:
        """Where the right (key, index) pair is the better one: by its key or, at equal keys, its index; NaN wins."""
        earlier = self.compare("slt", right_index, left_index)
        is_float = isinstance(element_of(left.type), AnyFloat)
        tied = self.binary(arith.AndIOp, self.compare("oeq" if is_float else "eq", right, left), earlier)
        takes = self.binary(arith.OrIOp, self.compare(_better(name, left), right, left), tied)
        if not is_float:
            return takes
        beats_nan = self.binary(arith.OrIOp, self.compare("ord", left, left), earlier)
        return self.binary(arith.OrIOp, takes, self.binary(arith.AndIOp, self.compare("uno", right, right), beats_nan))

    def _beats_in_order(self, name: str, left: SSAValue, _: SSAValue, right: SSAValue, __: SSAValue) -> SSAValue:
        """Where the right key is the better one, the right index being the later one; the first NaN wins."""
        better = _better(name, left)
        if not isinstance(element_of(left.type), AnyFloat):
            return self.compare(better, right, left)
        or_nan = self.compare(better.replace("o", "u"), right, left)
        return self.binary(arith.AndIOp, or_nan, self.compare("ord", left, left))


def _better(name: str, key: SSAValue) -> str:
    """The predicate under which one key beats another."""
    order = "gt" if name == "argmax" else "lt"
    element = element_of(key.type)
    if isinstance(element, AnyFloat):
        return f"o{order}"
    return f"u{order}" if element == i1 else f"s{order}"


@cache
def _properties(op_class: type[Operation]) -> dict[str, Attribute]:
    """The properties that arith ops print by default."""
    if issubclass(op_class, arith.FloatingPointLikeBinaryOperation):
        return {"fastmath": arith.FastMathFlagsAttr("none")}
    if issubclass(op_class, arith.SignlessIntegerBinaryOperationWithOverflow):
        return {"overflowFlags": arith.IntegerOverflowAttr("none")}
    return {}


_INDEX_OPERATORS: dict[str, type[Operation]] = {
    "floordiv": arith.FloorDivSIOp,
    "min": arith.MinSIOp,
    "max": arith.MaxSIOp,
}

COMBINER_OPS: dict[str, tuple[type[Operation], type[Operation]]] = {  # on integers, on floats
    "add": (arith.AddiOp, arith.AddfOp),
    "mul": (arith.MuliOp, arith.MulfOp),
    "max": (arith.MaxSIOp, arith.MaximumfOp),
    "min": (arith.MinSIOp, arith.MinimumfOp),
    "maxu": (arith.MaxUIOp, arith.MaximumfOp),
    "minu": (arith.MinUIOp, arith.MinimumfOp),
    "and": (arith.AndIOp, arith.AndIOp),
    "or": (arith.OrIOp, arith.OrIOp),
    "xor": (arith.XOrIOp, arith.XOrIOp),
}

ON_BOOLS = {
    "add": "or", "mul": "and", "max": "or", "maxu": "or", "min": "and", "minu": "and", "and": "and", "or": "or",
    "xor": "xor",
}  # fmt: skip
"""What a combiner is on bools."""

CASTS: tuple[type[Operation], ...] = (
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.FPToSIOp,
    arith.FPToUIOp,
)

BlockBuilder.handlers = {
    loop.ReadOp: BlockBuilder._read,
    loop.WriteOp: BlockBuilder._write,
    loop.IndexOp: BlockBuilder._index,
    loop.AssertOp: BlockBuilder._assert,
    loop.PhiloxOp: BlockBuilder._philox,
    arith.IndexCastOp: BlockBuilder._index_cast,
    **dict.fromkeys(CASTS, BlockBuilder._cast),
    arith.CmpfOp: BlockBuilder._compare,
    arith.CmpiOp: BlockBuilder._compare,
    arith.SelectOp: BlockBuilder._select,
    arith.ConstantOp: BlockBuilder._constant,
}
