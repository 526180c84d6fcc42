"""`convert-loop-to-tile`: gives every `loop.kernel` a schedule and makes it a `tile.kernel` that the host launches.

`lowering.schedule` decides, this pass carries out. Kernels of equal structure become one tile kernel. Nests have at
least one dim, as `loop-simplify` leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...ir import loop, tile
from ...ir.expr import ONE, ZERO, dim, symbol
from ...ir.host import LaunchOp
from ...ir.product_schedule import PRODUCT, ProductAttr
from ...ir.shapes import SymbolRange, sizes_of, strides_of, symbol_ranges, tensor_type
from ...ir.target import Target, target_of
from ...ir.tile.ops import buffer_type
from ..analysis.contractions import contraction_of
from ..schedule.model import KernelModel, captured
from ..schedule.plan import AccumulatingPlan, ParallelPlan, Plan, Planner, SerialPlan, SplitPlan
from ..schedule.prefetch import LeafFinder, Prefetcher, Stream
from .accumulating_rows import AccumulationEmitter
from .block_builder import BlockBuilder, Buffer, new_index
from .grid_kernel import GridConverter
from .nests import NestEmitter, fits_scratch, ops_before
from .parallel_rows import RowEmitter
from .product_kernel import ProductConverter
from .split_reduction import SplitEmitter

PROGRAM = new_index()
"""Stands for the number of the running program among loop indices."""


# -- emission ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Converted:
    """A tile kernel with what its launch needs besides the tensors: symbols and temporaries."""

    kernel: tile.KernelOp
    symbols: tuple[str, ...]
    temporaries: tuple[Attribute, ...]


class KernelConverter:
    """Makes one tile kernel."""

    def __init__(self, kernel: loop.KernelOp, name: str, target: Target):
        self.kernel = kernel
        self.name = name
        self.target = target
        self.model = KernelModel(kernel)
        self.planner = Planner(self.model, target)
        self.inputs = self.model.inputs
        self.errors: dict[tuple[str, str], int] = {}

    def convert(self) -> Converted:
        plan = self.planner.plan()
        temporaries = self.temporaries(plan)
        symbols = self.symbols(plan, temporaries)
        result_types = [*self.kernel.result_types, *temporaries]
        types = [buffer_type(loop.scalar_type(type_.element_type)) for type_ in (*self._input_types(), *result_types)]  # type: ignore[attr-defined]
        finish = isinstance(plan, SplitPlan | AccumulatingPlan)
        made = tile.KernelOp.make(self.name, types, plan.grid, symbols, finish=finish)
        made.location = self.kernel.location
        self.emit(plan, made, temporaries)
        if self.errors:
            made.set_errors(self.errors)
        return Converted(made, tuple(known.name for known in symbols), tuple(temporaries))

    def _input_types(self) -> list[Attribute]:
        return [value.type for value in self.inputs]

    def symbols(self, plan: Plan, temporaries: Sequence[Attribute]) -> list[SymbolRange]:
        names = self.model.symbols | plan.grid.symbols
        for type_ in (*self._input_types(), *self.kernel.result_types, *temporaries):
            names |= {name for expr in (*sizes_of(type_), *strides_of(type_)) for name in expr.symbols}
        known = symbol_ranges(self.kernel)
        ordered = sorted(names, key=lambda name: (len(name), name))
        return [known.get(name, SymbolRange(name, 0)) for name in ordered]

    # -- temporaries -----------------------------------------------------------------------------

    def large_locals(self, plan: Plan) -> list[loop.LocalOp]:
        collecting = plan.parts.collected if isinstance(plan, AccumulatingPlan) else ()
        return [op for op in self.model.locals if op not in collecting and not fits_scratch(op, plan.lanes)]

    def temporaries(self, plan: Plan) -> list[Attribute]:
        """Types of the tensors that a launch needs besides its results: large locals of programs, partial results."""
        found: list[Attribute] = [
            tensor_type(op.buffer.type.element_type, [plan.grid, *op.sizes, plan.lanes])
            for op in self.large_locals(plan)
        ]
        if isinstance(plan, SplitPlan):
            sizes = (plan.grid, *plan.outer_sizes)
            found += [tensor_type(type_, sizes) for type_ in plan.reduction.result_types]
        if isinstance(plan, AccumulatingPlan):
            collecting = plan.parts.collected
            found += 2 * [tensor_type(op.buffer.type.element_type, plan.copies(op)) for op in collecting]
        return found

    def buffers(self, block: Block, plan: Plan, temporaries: Sequence[Attribute]) -> dict[SSAValue, Buffer]:
        """Where every tensor, destination and large local lies, by the block's arguments."""
        arguments = iter(block.args)
        found = {value: Buffer(next(arguments), strides_of(value.type)) for value in self.inputs}
        for destination, result in zip(self.kernel.block.args, self.kernel.results, strict=True):
            found[destination] = Buffer(next(arguments), strides_of(result.type))
        for op, type_ in zip(self.large_locals(plan), temporaries, strict=False):
            start, *strides, _ = strides_of(type_)
            lane_stride = ZERO if plan.lanes == 1 else ONE
            found[op.buffer] = Buffer(next(arguments), tuple(strides), dim(0) * start, (PROGRAM,), lane_stride)
        return found

    # -- bodies ----------------------------------------------------------------------------------

    def emitter(self, block: Block, plan: Plan, temporaries: Sequence[Attribute]) -> NestEmitter:
        builder = BlockBuilder(block, self.buffers(block, plan, temporaries), self.errors)
        return NestEmitter(builder, self.model, self.planner.width, self.streams(plan))

    def streams(self, plan: Plan) -> Mapping[Block, Sequence[Stream]]:
        """What is fetched ahead: nothing if all that the kernel touches stays in the cache."""
        if self.model.bytes <= self.target.l2_bytes:
            return {}
        leaves = LeafFinder(self.model, self.planner.width)
        return Prefetcher(self.model, list(plan.leaves(leaves)), self.target).plan()

    def emit(self, plan: Plan, made: tile.KernelOp, temporaries: Sequence[Attribute]) -> None:
        emitter = self.emitter(made.block, plan, temporaries)
        emitter.builder.values[PROGRAM] = emitter.builder.add(tile.ProgramIdOp.make())
        if isinstance(plan, SerialPlan):
            emitter.body(self.kernel.block)
        elif isinstance(plan, ParallelPlan):
            emitter.ops(ops_before(plan.nest))
            RowEmitter(plan, emitter, emitter.builder.values[PROGRAM]).emit()
        else:
            assert made.finish is not None
            finish = self.emitter(made.finish.block, plan, temporaries)
            self.part(plan, made, made.block, emitter).chunk()
            self.part(plan, made, made.finish.block, finish).finish()

    def part(
        self, plan: SplitPlan | AccumulatingPlan, made: tile.KernelOp, block: Block, emitter: NestEmitter
    ) -> SplitEmitter | AccumulationEmitter:
        """What emits one of the two regions of a plan that combines what programs have found."""
        buffers = block.args[: len(block.args) - len(made.symbols)]
        if isinstance(plan, AccumulatingPlan):
            return AccumulationEmitter(plan, emitter, buffers[-2 * len(plan.parts.collected) :])
        return SplitEmitter(plan, emitter, buffers[-len(plan.reduction.results) :])


# -- the pass ----------------------------------------------------------------------------------------


def structure(kernel: loop.KernelOp) -> tuple[object, ...]:
    """A key that two kernels share just when one tile kernel serves both."""
    numbers: dict[SSAValue, int] = {}
    key: list[object] = [
        kernel.properties.get("initialized"),
        kernel.attributes.get(PRODUCT),
        tuple(kernel.result_types),
    ]

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


def convert(kernel: loop.KernelOp, name: str, target: Target) -> Converted:
    """The tile kernel of a loop kernel, under the schedule that suits the target."""
    if not target.is_gpu:
        return KernelConverter(kernel, name, target).convert()
    made, symbols = grid_converter(kernel, name, target).convert()
    return Converted(made, symbols, ())


def grid_converter(kernel: loop.KernelOp, name: str, target: Target) -> GridConverter:
    """What makes the kernel for a GPU: a product that has been given a schedule is one of its own kind."""
    given = kernel.attributes.get(PRODUCT)
    contraction = contraction_of(kernel)
    if isinstance(given, ProductAttr) and contraction is not None:
        return ProductConverter(kernel, name, target, contraction, given.data)
    return GridConverter(kernel, name, target)


class ConvertLoopToTile(ModulePass):
    """Give every loop.kernel a schedule for the module's target and make it a tile.kernel that the host launches."""

    name = "convert-loop-to-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        converted: dict[tuple[object, ...], Converted] = {}
        for kernel in [inner for inner in op.walk() if isinstance(inner, loop.KernelOp)]:
            key = structure(kernel)
            found = converted.get(key)
            if found is None:
                name = f"{kernel.kernel_name.data}_{len(converted)}"
                found = converted[key] = convert(kernel, name, target)
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
