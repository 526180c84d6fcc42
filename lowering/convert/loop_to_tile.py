"""`convert-loop-to-tile`: gives every `loop.kernel` a schedule and makes it a `tile.kernel` that the host launches.

A kernel is laid on a grid of programs in one of three ways:

- *parallel*: the indices of its one parallel nest are spread over programs; lanes run along one of them or along
  the innermost nests;
- *split*: a large reduction with few results is cut into chunks, one program each; partial results lie in a buffer
  and the finish region combines them;
- *serial*: one program runs everything, which is right for any kernel and used for small or irregular ones.

Kernels of equal structure become one tile kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...ir import loop, tile
from ...ir.expr import (
    ONE,
    ZERO,
    Expr,
    ceildiv,
    contiguous_strides,
    delinearize,
    dim,
    floordiv,
    linearize,
    minimum,
    mod,
    product,
    symbol,
)
from ...ir.host import LaunchOp
from ...ir.shapes import SymbolRange, sizes_of, strides_of, symbol_ranges, tensor_type
from ...ir.target import vector_bits_of
from ...ir.tile.ops import INDEX, buffer_type
from ..schedule.choose import (
    HEAVY_REGISTERS,
    LIGHT_REGISTERS,
    block_width,
    choose_lane,
    is_heavy,
    machine_lanes,
)
from ..schedule.model import KernelModel, captured, exprs_of, nests_of
from .block_builder import Address, BlockBuilder, Buffer
from .nests import NestEmitter, Span, combiners_of, fits_scratch

PROGRAM_WORK = 1 << 14
"""Scalar operations that one program should at least do; a parallel region costs about 2 µs."""

ENOUGH_PROGRAMS = 32
"""Programs beyond which more of them balance no better."""

TILE = 64
"""Side of the square tiles in which transposed data is walked: 64 lines of L1."""

SPLIT_WORK = 1 << 17
"""A reduction with few results is split from this much work on."""

SPLIT_CHUNKS = 32
"""Most chunks of a split reduction; a function of sizes only, so results repeat for any number of threads."""

ROW_BLOCK = 16
"""Rows that a split column reduction adds up in registers between two visits of its partial results."""


# -- plans -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParallelPlan:
    """Programs take `rows` consecutive points of the box of `prefix` dims and, if given, a `chunk` of the lane dim.

    `crossed` is a dim along which some tensor is read contiguously while another is along the lanes: the two are
    walked in square tiles, so that what one line of cache holds is used while it is there.
    """

    nest: loop.ParallelOp
    lane: int | None
    width: int
    prefix: tuple[int, ...]
    inner: tuple[int, ...]
    rows: int
    chunk: int | None
    crossed: int | None = None

    @property
    def row_count(self) -> Expr:
        return product(self.nest.sizes[k] for k in self.prefix)

    @property
    def lane_chunks(self) -> Expr:
        return ONE if self.chunk is None or self.lane is None else ceildiv(self.nest.sizes[self.lane], self.chunk)

    @property
    def grid(self) -> Expr:
        return ceildiv(self.row_count, self.rows) * self.lane_chunks


@dataclass(frozen=True)
class SplitPlan:
    """Programs take `length` indices of dim `position` of the one reduction; `nest` is the parallel nest around it."""

    nest: loop.ParallelOp | None
    reduction: loop.ReduceOp
    lane: int | None
    width: int
    position: int
    length: Expr

    @property
    def grid(self) -> Expr:
        return ceildiv(self.reduction.sizes[self.position], self.length)

    @property
    def outer_sizes(self) -> tuple[Expr, ...]:
        return () if self.nest is None else self.nest.sizes

    @property
    def block(self) -> Block:
        """The block in which the reduction stands."""
        block = self.reduction.parent
        assert block is not None
        return block


@dataclass(frozen=True)
class SerialPlan:
    """One program runs the whole kernel."""

    @property
    def grid(self) -> Expr:
        return ONE


Plan = ParallelPlan | SplitPlan | SerialPlan


class Planner:
    """Chooses the plan of one kernel."""

    def __init__(self, model: KernelModel, vector_bits: int):
        self.model = model
        self.hints = model.hints
        self.lanes = machine_lanes(model, vector_bits)
        self.registers = HEAVY_REGISTERS if is_heavy(model) else LIGHT_REGISTERS

    def plan(self) -> Plan:
        nests = nests_of(self.model.kernel.block)
        if len(nests) != 1 or (isinstance(nests[0], loop.ParallelOp) and nests[0] is not self.last_op):
            return SerialPlan()
        nest = nests[0]
        if isinstance(nest, loop.ReduceOp):
            return self.split(None, nest) or SerialPlan()
        if not isinstance(nest, loop.ParallelOp):
            return SerialPlan()
        plan = self.parallel(nest)
        inner = nests_of(nest.block)
        if len(inner) == 1 and isinstance(inner[0], loop.ReduceOp) and self.hints.size(plan.grid) < ENOUGH_PROGRAMS:
            return self.split(nest, inner[0]) or plan
        return plan

    @property
    def last_op(self) -> Operation | None:
        return self.model.kernel.block.last_op

    def width(self, size: Expr) -> int:
        return block_width(size, self.hints, self.lanes, self.registers)

    # -- parallel --------------------------------------------------------------------------------

    def parallel(self, nest: loop.ParallelOp) -> ParallelPlan:
        choice = choose_lane(nest, self.model, self.lanes)
        lane = None if choice.index is None else list(nest.indices).index(choice.index)
        free = self.independent_dims(nest)
        outer = [k for k in range(nest.rank) if k != lane]
        crossed = self.crossed(nest, lane)
        prefix = self.prefix([k for k in outer if k in free and k != crossed], nest)
        points = self.hints.volume([nest.sizes[k] for k in prefix])
        rows = max(1, -(-PROGRAM_WORK * points // max(self.model.work, 1)))
        width = 1 if lane is None else self.width(nest.sizes[lane])
        chunk = self.chunk(nest, lane, width, points) if lane in free and points < ENOUGH_PROGRAMS * rows else None
        if chunk is not None and crossed is not None:
            chunk = -(-chunk // TILE) * TILE
        inner = tuple(k for k in outer if k not in prefix and k != crossed)
        return ParallelPlan(nest, lane, width, tuple(prefix), inner, min(rows, max(points, 1)), chunk, crossed)

    def crossed(self, nest: loop.ParallelOp, lane: int | None) -> int | None:
        """A dim along which some tensor is contiguous that the lanes walk in strides."""
        if lane is None:
            return None
        for access in self.model.accesses:
            if access.stride(nest.indices[lane]) in (ZERO, ONE):
                continue
            for k, index in enumerate(nest.indices):
                if access.stride(index) == ONE and self.hints.size(nest.sizes[k]) >= self.lanes:
                    return k
        return None

    def prefix(self, dims: Sequence[int], nest: loop.ParallelOp) -> list[int]:
        """The leading dims that together have enough points."""
        chosen: list[int] = []
        points = 1
        for k in dims:
            if points >= ENOUGH_PROGRAMS * 2:
                break
            chosen.append(k)
            points *= max(self.hints.size(nest.sizes[k]), 1)
        return chosen

    def chunk(self, nest: loop.ParallelOp, lane: int | None, width: int, points: int) -> int | None:
        """How many lane indices make a program's work; None where one program takes them all."""
        assert lane is not None
        extent = self.hints.size(nest.sizes[lane])
        per_index = max(self.model.work // max(extent, 1), 1)
        least = -(-PROGRAM_WORK // per_index)
        chunk = -(-max(least, 1) // width) * width
        known_small = nest.sizes[lane].is_constant and chunk >= extent
        return None if known_small else chunk

    def independent_dims(self, nest: loop.ParallelOp) -> set[int]:
        """Dims of which no two indices combine into the same element."""
        dims = set(range(nest.rank))
        for op in nest.body.walk():
            if isinstance(op, loop.WriteOp) and op.combiner is not None:
                alone = [result.as_dim for result in op.map.results]
                indices = [op.indices[k] for k in alone if k is not None]
                dims &= {k for k, index in enumerate(nest.indices) if index in indices}
        return dims

    # -- split -----------------------------------------------------------------------------------

    def split(self, nest: loop.ParallelOp | None, reduction: loop.ReduceOp) -> SplitPlan | None:
        """Splits a large reduction whose block holds nothing but scalars besides it."""
        if self.model.work < SPLIT_WORK or reduction.rank == 0 or self._has_locals():
            return None
        lane = None
        if nest is not None:
            choice = choose_lane(nest, self.model, self.lanes)
            lane = None if choice.index is None else list(nest.indices).index(choice.index)
        sizes = [self.hints.size(size) for size in reduction.sizes]
        position = next((k for k, size in enumerate(sizes) if size >= 4 * SPLIT_CHUNKS), sizes.index(max(sizes)))
        width = 1 if nest is None or lane is None else self.width(nest.sizes[lane])
        unit = ROW_BLOCK if lane is not None else self.lanes * self.registers
        length = ceildiv(reduction.sizes[position], SPLIT_CHUNKS * unit) * unit
        return SplitPlan(nest, reduction, lane, width, position, length)

    def _has_locals(self) -> bool:
        return any(isinstance(op, loop.LocalOp) for op in self.model.kernel.body.walk())


# -- emission ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Converted:
    """A tile kernel with what its launch needs besides the tensors: symbols and temporaries."""

    kernel: tile.KernelOp
    symbols: tuple[str, ...]
    temporaries: tuple[Attribute, ...]


class KernelConverter:
    """Makes one tile kernel."""

    def __init__(self, kernel: loop.KernelOp, name: str, vector_bits: int):
        self.kernel = kernel
        self.name = name
        self.model = KernelModel(kernel)
        self.planner = Planner(self.model, vector_bits)
        self.inputs = captured(kernel)
        self.errors: dict[tuple[str, str], int] = {}

    def convert(self) -> Converted:
        plan = self.planner.plan()
        temporaries = self.temporaries(plan)
        symbols = self.symbols(plan, temporaries)
        result_types = [*self.kernel.result_types, *temporaries]
        types = [buffer_type(loop.scalar_type(type_.element_type)) for type_ in (*self._input_types(), *result_types)]  # type: ignore[attr-defined]
        finish = isinstance(plan, SplitPlan)
        made = tile.KernelOp.make(self.name, types, plan.grid, symbols, finish=finish)
        made.location = self.kernel.location
        self.emit(plan, made, temporaries)
        if self.errors:
            made.set_errors(self.errors)
        return Converted(made, tuple(known.name for known in symbols), tuple(temporaries))

    def _input_types(self) -> list[Attribute]:
        return [value.type for value in self.inputs]

    def symbols(self, plan: Plan, temporaries: Sequence[Attribute]) -> list[SymbolRange]:
        names = {name for expr in exprs_of(self.kernel) for name in expr.symbols} | plan.grid.symbols
        for type_ in (*self._input_types(), *self.kernel.result_types, *temporaries):
            names |= {name for expr in (*sizes_of(type_), *strides_of(type_)) for name in expr.symbols}
        known = symbol_ranges(self.kernel)
        ordered = sorted(names, key=lambda name: (len(name), name))
        return [known.get(name, SymbolRange(name, 0)) for name in ordered]

    # -- temporaries -----------------------------------------------------------------------------

    def large_locals(self, plan: Plan) -> list[loop.LocalOp]:
        width = plan.width if isinstance(plan, ParallelPlan) and plan.lane is not None else 1
        found = [op for op in self.kernel.body.walk() if isinstance(op, loop.LocalOp)]
        return [op for op in found if not fits_scratch(op, width)]

    def temporaries(self, plan: Plan) -> list[Attribute]:
        """Types of the tensors that a launch needs besides its results: large locals, or partial results."""
        outer = plan.nest.sizes if isinstance(plan, ParallelPlan) else ()
        found: list[Attribute] = [
            tensor_type(op.buffer.type.element_type, [*outer, *op.sizes]) for op in self.large_locals(plan)
        ]
        if isinstance(plan, SplitPlan):
            sizes = (plan.grid, *plan.outer_sizes)
            found += [tensor_type(type_, sizes) for type_ in plan.reduction.result_types]
        return found

    def buffers(self, block: Block, plan: Plan, temporaries: Sequence[Attribute]) -> dict[SSAValue, Buffer]:
        """Where every tensor, destination and large local lies, by the block's arguments."""
        arguments = iter(block.args)
        found = {value: Buffer(next(arguments), strides_of(value.type)) for value in self.inputs}
        for destination, result in zip(self.kernel.block.args, self.kernel.results, strict=True):
            found[destination] = Buffer(next(arguments), strides_of(result.type))
        rank = plan.nest.rank if isinstance(plan, ParallelPlan) else 0
        indices = tuple(plan.nest.indices) if isinstance(plan, ParallelPlan) else ()
        for op, type_ in zip(self.large_locals(plan), temporaries, strict=False):
            strides = strides_of(type_)
            start = linearize([dim(k) for k in range(rank)], strides[:rank])
            found[op.buffer] = Buffer(next(arguments), strides[rank:], start, indices)
        return found

    # -- bodies ----------------------------------------------------------------------------------

    def emitter(self, block: Block, plan: Plan, temporaries: Sequence[Attribute]) -> NestEmitter:
        builder = BlockBuilder(block, self.buffers(block, plan, temporaries), self.errors)
        return NestEmitter(builder, self.model, self.planner.lanes, self.planner.registers)

    def emit(self, plan: Plan, made: tile.KernelOp, temporaries: Sequence[Attribute]) -> None:
        emitter = self.emitter(made.block, plan, temporaries)
        if isinstance(plan, SerialPlan):
            emitter.body(self.kernel.block)
        elif isinstance(plan, ParallelPlan):
            self.emit_parallel(plan, emitter)
        else:
            assert made.finish is not None
            partials = len(self.inputs) + len(self.kernel.results)
            SplitEmitter(plan, emitter, made.block.args[partials:]).chunk(self._before(plan))
            finish = self.emitter(made.finish.block, plan, temporaries)
            SplitEmitter(plan, finish, made.finish.block.args[partials:]).finish(self._before(plan))

    def _before(self, plan: SplitPlan) -> list[Operation]:
        """Scalars of the kernel that stand before the parallel nest around the reduction."""
        return [] if plan.nest is None else ops_before(plan.nest)

    def emit_parallel(self, plan: ParallelPlan, emitter: NestEmitter) -> None:
        emitter.ops(ops_before(plan.nest))
        program = emitter.builder.add(tile.ProgramIdOp.make())
        row, lane_chunk = floordiv(dim(0), plan.lane_chunks), mod(dim(0), plan.lane_chunks)
        if not plan.prefix:
            lane_chunk = dim(0)
        inner = [Span.whole(plan.nest.indices[k], plan.nest.sizes[k]) for k in plan.inner]
        if plan.lane is not None:
            lane_span = self._lane_span(plan, program, lane_chunk)
            inner += [lane_span] if plan.crossed is None else tiled(plan, plan.crossed, lane_span)

        def body(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            emitter.body(plan.nest.block)
            return ()

        def rows(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._bind_prefix(plan, emitter)
            return emitter.loops(inner, (), body)

        if plan.prefix:
            low = row * plan.rows
            high = minimum(low + plan.rows, plan.row_count) if plan.rows > 1 else low + 1
            self.row = Block(arg_types=[INDEX]).args[0]
            emitter.loops([Span(self.row, low, high, (program,))], (), rows)
        else:
            emitter.loops(inner, (), body)

    def _bind_prefix(self, plan: ParallelPlan, emitter: NestEmitter) -> None:
        """The indices of the prefix dims, from the number of the row."""
        row = emitter.builder.values[self.row]
        for k, expr in zip(plan.prefix, delinearize(dim(0), [plan.nest.sizes[k] for k in plan.prefix]), strict=True):
            whole = expr == dim(0)
            index = row if whole else emitter.builder.add(tile.IndexOp.make([row], expr, INDEX))
            emitter.builder.values[plan.nest.indices[k]] = index

    def _lane_span(self, plan: ParallelPlan, program: SSAValue, lane_chunk: Expr) -> Span:
        assert plan.lane is not None
        index, size = plan.nest.indices[plan.lane], plan.nest.sizes[plan.lane]
        if plan.chunk is None:
            return Span.whole(index, size, plan.width)
        low = lane_chunk * plan.chunk
        return Span(index, low, minimum(low + plan.chunk, size), (program,), plan.width)


def tiled(plan: ParallelPlan, crossed: int, lane: Span) -> list[Span]:
    """The crossed dim and the lanes, in square tiles."""
    cross = Span.whole(plan.nest.indices[crossed], plan.nest.sizes[crossed])
    outer, inner = zip(cross.cut(TILE), lane.cut(max(TILE, plan.width)), strict=True)
    return [*outer, *inner]


def ops_before(nest: loop.NestOp) -> list[Operation]:
    """The ops that stand before a nest in its block."""
    assert nest.parent is not None
    found: list[Operation] = []
    for op in nest.parent.ops:
        if op is nest:
            return found
        found.append(op)
    return found


def ops_after(nest: loop.NestOp) -> list[Operation]:
    """The ops that stand after a nest in its block."""
    assert nest.parent is not None
    ops = list(nest.parent.ops)
    return ops[ops.index(nest) + 1 :]


class SplitEmitter:
    """Emits the two regions of a split reduction."""

    def __init__(self, plan: SplitPlan, emitter: NestEmitter, partials: Iterable[SSAValue]):
        self.plan = plan
        self.emitter = emitter
        self.builder = emitter.builder
        self.partials = list(partials)[: len(plan.reduction.results)]
        self.indices = [] if plan.nest is None else list(plan.nest.indices)
        self.strides = contiguous_strides((plan.grid, *plan.outer_sizes))

    def chunk(self, before: Sequence[Operation]) -> None:
        """The body: one program's partial results."""
        self.emitter.ops(before)
        self.program = self.builder.add(tile.ProgramIdOp.make())
        low = dim(0) * self.plan.length
        bounds = low, minimum(low + self.plan.length, self.plan.reduction.sizes[self.plan.position])
        if self.plan.lane is None:
            self.emitter.loops(self.outer_spans(), (), lambda _: self._registers(*bounds))
        else:
            self.emitter.loops(self.outer_spans(), (), lambda _: self._rows(*bounds))

    def finish(self, before: Sequence[Operation]) -> None:
        """The finish region: combines the partial results and goes on from there."""
        self.emitter.ops(before)
        spans = self.outer_spans()
        if self.plan.lane is not None:
            spans.append(self.lane_span())
        self.emitter.loops(spans, (), lambda _: self._combine())

    def outer_spans(self) -> list[Span]:
        sizes = self.plan.outer_sizes
        return [Span.whole(self.indices[k], size) for k, size in enumerate(sizes) if k != self.plan.lane]

    def lane_span(self) -> Span:
        assert self.plan.lane is not None
        return Span.whole(self.indices[self.plan.lane], self.plan.outer_sizes[self.plan.lane], self.plan.width)

    def reduction_spans(self, low: Expr, high: Expr, indices: tuple[SSAValue, ...]) -> list[Span]:
        """The loops of the reduction, its split dim between the given bounds."""
        spans = self.emitter.spans(self.plan.reduction)
        whole = spans[self.plan.position]
        spans[self.plan.position] = Span(whole.index, low, high, indices, whole.width)
        return spans

    def address(self, chunk: SSAValue) -> Address:
        """Where the partial result of a chunk lies for the current outer indices."""
        offset = linearize([dim(k) for k in range(len(self.strides))], self.strides)
        self.builder.values[chunk] = chunk
        return self.builder.address([chunk, *self.indices], offset)

    def load(self, chunk: SSAValue) -> list[SSAValue]:
        address = self.address(chunk)
        return [self.builder.load(partial, address) for partial in self.partials]

    def store(self, chunk: SSAValue, values: Sequence[SSAValue]) -> None:
        address = self.address(chunk)
        for partial, value in zip(self.partials, values, strict=True):
            self.builder.store(value, partial, address)

    def _registers(self, low: Expr, high: Expr) -> Sequence[SSAValue]:
        """Accumulates in registers, for results that do not run along lanes."""
        reduction = self.plan.reduction
        self.emitter.ops(ops_before(reduction))
        spans = self.reduction_spans(low, high, (self.program,))
        results = self.emitter.accumulate(reduction, spans, self.emitter.accumulators(reduction, spans))
        self.emitter.bind_reduced(reduction, results, any(span.width > 1 for span in spans))
        self.store(self.program, self.emitter.values(reduction.results))
        return ()

    def _rows(self, low: Expr, high: Expr) -> Sequence[SSAValue]:
        """Accumulates in the partial results themselves, a few rows at a time, so that memory is read in order."""
        reduction = self.plan.reduction
        start = Block(arg_types=[INDEX]).args[0]
        blocks = Span(start, low, high, (self.program,), stride=ROW_BLOCK)
        self.emitter.loops([self.lane_span()], (), lambda _: self._clear())

        def lanes(_: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.emitter.ops(ops_before(reduction))
            end = minimum(dim(0) + ROW_BLOCK, high.substitute_dims([dim(1)]))
            spans = self.reduction_spans(dim(0), end, (start, self.program))
            self.store(self.program, self.emitter.accumulate(reduction, spans, self.load(self.program)))
            return ()

        self.emitter.loops([blocks, self.lane_span()], (), lanes)
        return ()

    def _clear(self) -> Sequence[SSAValue]:
        self.store(self.program, self.emitter.accumulators(self.plan.reduction, ()))
        return ()

    def _combine(self) -> Sequence[SSAValue]:
        reduction = self.plan.reduction
        self.emitter.ops(ops_before(reduction))
        chunk = Block(arg_types=[INDEX]).args[0]
        count = self.builder.add(tile.GridSizeOp.make())

        def step(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return self.builder.combine(combiners_of(reduction), carried, self.load(self.builder.values[chunk]))

        span = Span(chunk, ZERO, dim(0), (count,))
        results = self.emitter.loops([span], self.emitter.accumulators(reduction, ()), step)
        self.builder.values.update(zip(reduction.results, results, strict=True))
        self.emitter.ops(ops_after(reduction))
        return ()


# -- the pass ----------------------------------------------------------------------------------------


def structure(kernel: loop.KernelOp) -> tuple[object, ...]:
    """A key that two kernels share just when one tile kernel serves both."""
    numbers: dict[SSAValue, int] = {}
    key: list[object] = [kernel.properties.get("initialized"), tuple(kernel.result_types)]

    def number(value: SSAValue) -> object:
        known = numbers.get(value)
        if known is None:
            known = numbers[value] = len(numbers)
            return known, value.type
        return known

    for op in kernel.body.walk():
        key.append((op.name, tuple(map(number, op.operands)), frozenset(op.properties.items())))
        for result in op.results:
            key.append(number(result))
        for region in op.regions:
            key.extend(number(argument) for argument in region.block.args)
    return tuple(key)


class ConvertLoopToTile(ModulePass):
    """Give every loop.kernel a schedule for the module's target and make it a tile.kernel that the host launches."""

    name = "convert-loop-to-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        vector_bits = vector_bits_of(op)
        converted: dict[tuple[object, ...], Converted] = {}
        for kernel in [inner for inner in op.walk() if isinstance(inner, loop.KernelOp)]:
            key = structure(kernel)
            found = converted.get(key)
            if found is None:
                name = f"{kernel.kernel_name.data}_{len(converted)}"
                found = converted[key] = KernelConverter(kernel, name, vector_bits).convert()
                op.body.block.add_op(found.kernel)
            replace_by_launch(kernel, found)


def replace_by_launch(kernel: loop.KernelOp, converted: Converted) -> None:
    """`loop.kernel → host.launch` of the tile kernel, temporaries as further results."""
    launch = LaunchOp.make(
        converted.kernel.sym_name.data,
        captured(kernel),
        [*kernel.result_types, *converted.temporaries],
        [symbol(name) for name in converted.symbols],
        [kernel.init_of(position) for position in range(len(kernel.results))],
    )
    launch.location = kernel.location
    block = kernel.parent
    assert block is not None
    block.insert_op_before(launch, kernel)
    for old, new in zip(kernel.results, launch.results, strict=False):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(kernel)
