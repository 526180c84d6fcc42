"""The operations of the tile level.

A kernel is a grid of programs; each computes on blocks, which are builtin `vector` values (a scalar is a block
of rank 0), with elementwise `arith` and `math`. Memory is flat: a buffer is `memref<?xT>`, an address is an
offset expression in elements. Tensors, views and fusion are gone; threads, registers and instructions are not
yet here.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence
from functools import cache

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from ..combiners import COMBINERS
from ..expr import Expr, ExprLike, as_expr, dim
from ..shapes import (
    SYMBOLS,
    IndexMap,
    MapAttr,
    SymbolAttr,
    SymbolRange,
    canonical_access,
    expr_list_text,
    parse_access,
    parse_expr_list,
    print_access,
)

INDEX = IndexType()

OFFSETS = (i64, i32)
"""Types of blocks of offsets."""

WARPS, STAGES, INDEX_BITS = "stepwell.num_warps", "stepwell.num_stages", "stepwell.index_bits"
"""What the schedule asks of a GPU, as `i32` attributes of a kernel: warps of each program, iterations of a loop whose
loads are in flight at once, and bits that hold every offset."""

REGISTERS = "stepwell.registers"
"""The most registers of a thread of a GPU, as an `i32` attribute of a kernel; the compiler decides without it."""

DESCRIPTORS = "stepwell.descriptors"
"""Unit attribute of a kernel: its boxes are moved by the copy engine of a GPU, as far as that can."""

FLOAT_PREDICATES = (
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
)
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


# Attributes are immutable and cost 40 µs each to make, so those of which every kernel has many are made once.


@cache
def buffer_type(element: Attribute) -> MemRefType[Attribute]:
    """The type of a flat buffer of such elements."""
    return MemRefType(element, [DYNAMIC_INDEX])


def block_type(element: Attribute, shape: Sequence[int]) -> Attribute:
    """The type of a block: the element itself at rank 0."""
    return _vector_type(element, tuple(shape)) if shape else element


@cache
def _vector_type(element: Attribute, shape: tuple[int, ...]) -> VectorType[Attribute]:
    return VectorType(element, shape)


def shape_of(type_: Attribute) -> tuple[int, ...]:
    return type_.get_shape() if isinstance(type_, VectorType) else ()


def element_of(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, VectorType | MemRefType) else type_


@cache
def _segments(*sizes: int) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i32, list(sizes))


@cache
def _integer(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, 64)


@cache
def _strides(strides: tuple[ExprLike, ...]) -> MapAttr:
    return MapAttr.of(0, strides)


@cache
def _dims(dims: tuple[int, ...]) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i64, list(dims))


@cache
def _text(text: str) -> StringAttr:
    return StringAttr(text)


def _optional(value: SSAValue | None) -> list[SSAValue]:
    return [] if value is None else [value]


# -- kernel ------------------------------------------------------------------------------------------


@irdl_op_definition
class KernelOp(IRDLOperation):
    """
    A grid of programs over buffers. The trailing `index` arguments are the values of its symbols, in the order of
    its `stepwell.symbols`. Programs run in any order, possibly at once; the finish region, if there is one, runs
    once after all of them. `errors` lists what `tile.assert` may record, by code - 1, as exception and message.

    ```mlir
    tile.kernel @double(%x : memref<?xf32>, %o : memref<?xf32>) grid (8) {
      %p = tile.program_id : index
      %v = tile.load %x[%p * 64] strides (1) : memref<?xf32> -> vector<64xf32>
      %w = arith.addf %v, %v : vector<64xf32>
      tile.store %w, %o[%p * 64] strides (1) : vector<64xf32>, memref<?xf32>
    }
    ```
    """

    name = "tile.kernel"

    sym_name = prop_def(SymbolNameConstraint())
    grid = prop_def(MapAttr)
    errors = opt_prop_def(ArrayAttr)
    body = region_def("single_block")
    finish = opt_region_def("single_block")

    traits = traits_def(NoTerminator(), IsolatedFromAbove(), SymbolOpInterface())

    @staticmethod
    def make(
        name: str,
        argument_types: Sequence[Attribute],
        grid: ExprLike,
        symbols: Sequence[SymbolRange] = (),
        *,
        errors: Sequence[tuple[str, str]] = (),
        finish: bool = False,
    ) -> KernelOp:
        """An empty kernel; index arguments for the symbols are appended to the given ones."""
        types = [*argument_types, *([INDEX] * len(symbols))]
        kernel = KernelOp.create(
            properties={"sym_name": StringAttr(name), "grid": MapAttr.of(0, [grid])},
            attributes={SYMBOLS: ArrayAttr([SymbolAttr(known) for known in symbols])} if symbols else {},
            regions=[Region(Block(arg_types=types)) for _ in range(1 + finish)],
        )
        if errors:
            kernel.set_errors(errors)
        return kernel

    def set_errors(self, errors: Iterable[tuple[str, str]]) -> None:
        """Sets the table of (exception, message) that the codes of `tile.assert` count from 1."""
        self.properties["errors"] = ArrayAttr([StringAttr(text) for error in errors for text in error])

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def grid_size(self) -> Expr:
        return self.grid.results[0]

    @property
    def symbols(self) -> tuple[SymbolRange, ...]:
        declared = self.attributes.get(SYMBOLS)
        return tuple(attr.data for attr in declared) if isinstance(declared, ArrayAttr) else ()

    @property
    def error_table(self) -> tuple[tuple[str, str], ...]:
        texts = [] if self.errors is None else [attr.data for attr in self.errors]
        return tuple(zip(texts[::2], texts[1::2], strict=True))

    def verify_(self) -> None:
        if self.grid.data.rank or len(self.grid.results) != 1:
            raise VerifyException(f"tile.kernel: expected one grid size over symbols, got {self.grid}")
        trailing = self.block.args[len(self.block.args) - len(self.symbols) :]
        if any(argument.type != INDEX for argument in trailing):
            raise VerifyException(f"tile.kernel: expected {len(self.symbols)} trailing index arguments for its symbols")
        if self.finish is not None and [a.type for a in self.finish.block.args] != [a.type for a in self.block.args]:
            raise VerifyException("tile.kernel: expected the finish region to take the arguments of the body")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.block.args, printer.print_block_argument)
        printer.print_string(f" grid {expr_list_text(self.grid.results)} ")
        if self.attributes:
            printer.print_string("attributes ")
            printer.print_attr_dict(self.attributes)
            printer.print_string(" ")
        if self.errors is not None:
            printer.print_string("errors ")
            printer.print_attribute(self.errors)
            printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        if self.finish is not None:
            printer.print_string(" finish ")
            printer.print_region(self.finish)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("grid")
        properties: dict[str, Attribute] = {"sym_name": name, "grid": MapAttr.of(0, parse_expr_list(parser))}
        attributes = parser.parse_optional_attr_dict_with_keyword()
        if parser.parse_optional_keyword("errors"):
            properties["errors"] = parser.parse_attribute()
        regions = [parser.parse_region(arguments)]
        if parser.parse_optional_keyword("finish"):
            regions.append(parser.parse_region())
        return cls.create(
            properties=properties, attributes={} if attributes is None else attributes.data, regions=regions
        )


class _GridValueOp(IRDLOperation, ABC):
    """A value of the grid, of type index."""

    result = result_def(INDEX)

    traits = traits_def(Pure())

    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class ProgramIdOp(_GridValueOp):
    """
    The number of the running program, from 0.

    ```mlir
    %p = tile.program_id : index
    ```
    """

    name = "tile.program_id"

    @staticmethod
    def make() -> ProgramIdOp:
        return ProgramIdOp.create(result_types=[INDEX])


@irdl_op_definition
class GridSizeOp(_GridValueOp):
    """
    The number of programs.

    ```mlir
    %n = tile.grid_size : index
    ```
    """

    name = "tile.grid_size"

    @staticmethod
    def make() -> GridSizeOp:
        return GridSizeOp.create(result_types=[INDEX])


# -- loops -------------------------------------------------------------------------------------------


@irdl_op_definition
class ForOp(IRDLOperation):
    """
    Runs its body in ascending order for every `step`-th index of `[low, high)`, carrying values along. A second
    index argument, the mask, tells which of the `step` lanes from the index on are below the upper bound; without
    it, `high - low` must be a multiple of the step.

    ```mlir
    %sum = tile.for %j, %mask = [0] to [%n] step 64 carry (%acc = %zero : vector<64xf32>) {
      %v = tile.load %x[%j] strides (1) mask %mask : memref<?xf32> -> vector<64xf32>
      %next = arith.addf %acc, %v : vector<64xf32>
      tile.yield %next : vector<64xf32>
    }
    ```
    """

    name = "tile.for"

    indices = var_operand_def(INDEX)
    inits = var_operand_def()
    bounds = prop_def(MapAttr)
    step = prop_def(IntegerAttr)
    results_ = var_result_def()
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(RecursiveMemoryEffect())

    @staticmethod
    def make(
        indices: Sequence[SSAValue],
        low: ExprLike,
        high: ExprLike,
        step: int = 1,
        inits: Sequence[SSAValue] = (),
        *,
        masked: bool = False,
    ) -> ForOp:
        """An empty loop; its body still needs its `tile.yield`. Bounds are over `indices` and symbols."""
        used, map_ = canonical_access(indices, [as_expr(low), as_expr(high)])
        types = [init.type for init in inits]
        mask = [block_type(i1, [step])] if masked else []
        return ForOp.create(
            operands=[*used, *inits],
            properties={
                "bounds": MapAttr(map_),
                "step": _integer(step),
                "operandSegmentSizes": _segments(len(used), len(inits)),
            },
            result_types=types,
            regions=[Region(Block(arg_types=[INDEX, *mask, *types]))],
        )

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def index(self) -> SSAValue:
        return self.block.args[0]

    @property
    def low(self) -> Expr:
        return self.bounds.results[0]

    @property
    def high(self) -> Expr:
        return self.bounds.results[1]

    @property
    def mask(self) -> SSAValue | None:
        return self.block.args[1] if len(self.block.args) == len(self.inits) + 2 else None

    @property
    def carried(self) -> Sequence[SSAValue]:
        return self.block.args[len(self.block.args) - len(self.inits) :]

    @property
    def lanes(self) -> int:
        return int(self.step.value.data)

    @property
    def yielded(self) -> YieldOp:
        last = self.block.last_op
        assert isinstance(last, YieldOp)
        return last

    def verify_(self) -> None:
        if len(self.bounds.results) != 2 or self.bounds.data.rank != len(self.indices):
            raise VerifyException(f"tile.for: expected two bounds over {len(self.indices)} indices, got {self.bounds}")
        if self.mask is not None and self.mask.type != VectorType(i1, [self.lanes]):
            raise VerifyException(f"tile.for: expected a mask of {self.lanes} lanes, got {self.mask.type}")
        if not isinstance(self.block.last_op, YieldOp):
            raise VerifyException("tile.for: expected its body to end in tile.yield")
        found = [value.type for value in self.yielded.operands]
        if found != list(self.result_types) or found != [value.type for value in self.carried]:
            raise VerifyException("tile.for: expected to yield values of the carried types")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(
            self.block.args[: len(self.block.args) - len(self.inits)],
            lambda argument: printer.print_block_argument(argument, print_type=False),
        )
        printer.print_string(" = ")
        print_access(printer, self.indices, IndexMap(self.bounds.data.rank, self.bounds.results[:1]))
        printer.print_string(" to ")
        print_access(printer, self.indices, IndexMap(self.bounds.data.rank, self.bounds.results[1:]))
        printer.print_string(f" step {self.lanes}")
        if self.inits:
            printer.print_string(" carry (")
            for position, (argument, init) in enumerate(zip(self.carried, self.inits, strict=True)):
                printer.print_string(", " if position else "")
                printer.print_operand(argument)
                printer.print_string(" = ")
                printer.print_operand(init)
                printer.print_string(" : ")
                printer.print_attribute(argument.type)
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        names = [parser.parse_argument(expect_type=False)]
        if parser.parse_optional_punctuation(","):
            names.append(parser.parse_argument(expect_type=False))
        parser.parse_punctuation("=")
        low_indices, low = parse_access(parser)
        parser.parse_keyword("to")
        high_indices, high = parse_access(parser)
        parser.parse_keyword("step")
        step = parser.parse_integer()
        carried, inits = _parse_carried(parser) if parser.parse_optional_keyword("carry") else ([], [])
        shifted = high.compose([dim(low.rank + position) for position in range(high.rank)], low.rank + high.rank)
        loop = ForOp.make(
            [*low_indices, *high_indices],
            low.results[0],
            shifted.results[0],
            step,
            inits,
            masked=len(names) == 2,
        )
        types = [argument.type for argument in loop.block.args[: len(names)]]
        arguments = [name.resolve(type_) for name, type_ in zip(names, types, strict=True)]
        region = parser.parse_region([*arguments, *carried])
        loop.detach_region(loop.body)
        loop.add_region(region)
        return loop


def _parse_carried(parser: Parser) -> tuple[list[Parser.Argument], list[SSAValue]]:
    inits: list[SSAValue] = []

    def carried() -> Parser.Argument:
        name = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        init = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        inits.append(parser.resolve_operand(init, type_))
        return name.resolve(type_)

    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, carried), inits


@irdl_op_definition
class YieldOp(IRDLOperation):
    """
    Ends one iteration of `tile.for` with the values to carry on.

    ```mlir
    tile.yield %a, %b : f32, vector<64xf32>
    ```
    """

    name = "tile.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "($values^ `:` type($values))? attr-dict"

    @staticmethod
    def make(values: Sequence[SSAValue] = ()) -> YieldOp:
        return YieldOp.create(operands=list(values))


# -- memory ------------------------------------------------------------------------------------------


@irdl_op_definition
class ScratchOp(IRDLOperation):
    """
    A buffer of a fixed number of elements that belongs to one program.

    ```mlir
    %row = tile.scratch 2048 : memref<?xf32>
    ```
    """

    name = "tile.scratch"

    size = prop_def(IntegerAttr)
    buffer = result_def(MemRefType)

    traits = traits_def(MemoryAllocEffect())

    @staticmethod
    def make(element: Attribute, size: int) -> ScratchOp:
        return ScratchOp.create(properties={"size": _integer(size)}, result_types=[buffer_type(element)])

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.size.value.data} : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> ScratchOp:
        size = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls.create(properties={"size": _integer(size)}, result_types=[parser.parse_type()])


def _print_mask(printer: Printer, mask: SSAValue | None, other: SSAValue | None = None) -> None:
    if mask is not None:
        printer.print_string(" mask ")
        printer.print_operand(mask)
    if other is not None:
        printer.print_string(" else ")
        printer.print_operand(other)


def _parse_optional_operand(parser: Parser, keyword: str) -> UnresolvedOperand | None:
    return parser.parse_unresolved_operand() if parser.parse_optional_keyword(keyword) else None


def _mask_type(block: Attribute) -> Attribute:
    return block_type(i1, shape_of(block))


def _resolve(parser: Parser, operand: UnresolvedOperand | None, type_: Attribute) -> SSAValue | None:
    return None if operand is None else parser.resolve_operand(operand, type_)


class BlockAccessOp(IRDLOperation, ABC):
    """A strided access: lane (l0, l1, …) addresses `offset + Σ lk * strides[k]` of the buffer."""

    @property
    def offset(self) -> Expr:
        attr = self.properties["access"]
        assert isinstance(attr, MapAttr)
        return attr.results[0]

    @property
    def lane_strides(self) -> tuple[Expr, ...]:
        attr = self.properties["strides"]
        assert isinstance(attr, MapAttr)
        return attr.results

    def verify_block(self, block: Attribute, buffer: Attribute, indices: Sequence[SSAValue]) -> None:
        attr = self.properties["access"]
        assert isinstance(attr, MapAttr)
        if len(attr.results) != 1 or attr.data.rank != len(indices):
            raise VerifyException(f"{self.name}: expected one offset over {len(indices)} indices, got {attr}")
        if len(self.lane_strides) != len(shape_of(block)):
            raise VerifyException(
                f"{self.name}: expected {len(shape_of(block))} strides for {block}, got {len(self.lane_strides)}"
            )
        if element_of(block) != element_of(buffer):
            raise VerifyException(f"{self.name}: expected a block of {element_of(buffer)}, got {block}")


@irdl_op_definition
class LoadOp(BlockAccessOp):
    """
    Loads a strided block; lanes that the mask excludes are not accessed and hold the other value (0 if not given).

    ```mlir
    %v = tile.load %x[%i * 2048 + %j] strides (1) mask %m else %z : memref<?xf32> -> vector<64xf32>
    %s = tile.load %x[%i] strides () : memref<?xf32> -> f32
    ```
    """

    name = "tile.load"

    buffer = operand_def(MemRefType)
    indices = var_operand_def(INDEX)
    mask = opt_operand_def()
    other = opt_operand_def()
    access = prop_def(MapAttr)
    strides = prop_def(MapAttr)
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    @staticmethod
    def make(
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        offset: ExprLike,
        shape: Sequence[int] = (),
        strides: Iterable[ExprLike] = (),
        mask: SSAValue | None = None,
        other: SSAValue | None = None,
    ) -> LoadOp:
        used, map_ = canonical_access(indices, [as_expr(offset)])
        return LoadOp.create(
            operands=[buffer, *used, *_optional(mask), *_optional(other)],
            properties={
                "access": MapAttr(map_),
                "strides": _strides(tuple(strides)),
                "operandSegmentSizes": _segments(1, len(used), int(mask is not None), int(other is not None)),
            },
            result_types=[block_type(element_of(buffer.type), shape)],
        )

    def verify_(self) -> None:
        self.verify_block(self.result.type, self.buffer.type, self.indices)
        if self.mask is not None and self.mask.type != _mask_type(self.result.type):
            raise VerifyException(f"tile.load: expected a mask of {_mask_type(self.result.type)}, got {self.mask.type}")
        if self.other is not None and self.other.type != self.result.type:
            raise VerifyException(f"tile.load: expected an other value of {self.result.type}, got {self.other.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.buffer)
        print_access(printer, self.indices, self.access.data)
        printer.print_string(f" strides {expr_list_text(self.lane_strides)}")
        _print_mask(printer, self.mask, self.other)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        buffer = parser.parse_unresolved_operand()
        indices, map_ = parse_access(parser)
        parser.parse_keyword("strides")
        strides = parse_expr_list(parser)
        mask, other = _parse_optional_operand(parser, "mask"), _parse_optional_operand(parser, "else")
        parser.parse_punctuation(":")
        value = parser.resolve_operand(buffer, parser.parse_type())
        parser.parse_punctuation("->")
        block = parser.parse_type()
        return LoadOp.make(
            value,
            indices,
            map_.results[0],
            shape_of(block),
            strides,
            _resolve(parser, mask, _mask_type(block)),
            _resolve(parser, other, block),
        )


@irdl_op_definition
class StoreOp(BlockAccessOp):
    """
    Stores a strided block in the lanes that the mask includes, or combines it into what is there.

    ```mlir
    tile.store %v, %o[%i * 2048 + %j] strides (1) mask %m : vector<64xf32>, memref<?xf32>
    tile.store %v, %o[%i] strides () add : f32, memref<?xf32>
    ```
    """

    name = "tile.store"

    value = operand_def()
    buffer = operand_def(MemRefType)
    indices = var_operand_def(INDEX)
    mask = opt_operand_def()
    access = prop_def(MapAttr)
    strides = prop_def(MapAttr)
    combiner = opt_prop_def(StringAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())

    @staticmethod
    def make(
        value: SSAValue,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        offset: ExprLike,
        strides: Iterable[ExprLike] = (),
        mask: SSAValue | None = None,
        combiner: str | None = None,
    ) -> StoreOp:
        used, map_ = canonical_access(indices, [as_expr(offset)])
        properties: dict[str, Attribute] = {
            "access": MapAttr(map_),
            "strides": _strides(tuple(strides)),
            "operandSegmentSizes": _segments(1, 1, len(used), int(mask is not None)),
        }
        if combiner is not None:
            properties["combiner"] = _text(combiner)
        return StoreOp.create(operands=[value, buffer, *used, *_optional(mask)], properties=properties)

    def verify_(self) -> None:
        self.verify_block(self.value.type, self.buffer.type, self.indices)
        _verify_combiner(self, self.combiner)
        if self.mask is not None and self.mask.type != _mask_type(self.value.type):
            raise VerifyException(f"tile.store: expected a mask of {_mask_type(self.value.type)}, got {self.mask.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(", ")
        printer.print_operand(self.buffer)
        print_access(printer, self.indices, self.access.data)
        printer.print_string(f" strides {expr_list_text(self.lane_strides)}")
        _print_mask(printer, self.mask)
        if self.combiner is not None:
            printer.print_string(f" {self.combiner.data}")
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(", ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        buffer = parser.parse_unresolved_operand()
        indices, map_ = parse_access(parser)
        parser.parse_keyword("strides")
        strides = parse_expr_list(parser)
        mask = _parse_optional_operand(parser, "mask")
        combiner = parser.parse_optional_keyword_in(tuple(COMBINERS))
        parser.parse_punctuation(":")
        block = parser.parse_type()
        parser.parse_punctuation(",")
        target = parser.resolve_operand(buffer, parser.parse_type())
        return StoreOp.make(
            parser.resolve_operand(value, block),
            target,
            indices,
            map_.results[0],
            strides,
            _resolve(parser, mask, _mask_type(block)),
            combiner,
        )


def _verify_combiner(op: IRDLOperation, combiner: StringAttr | None) -> None:
    if combiner is not None and combiner.data not in COMBINERS:
        raise VerifyException(f"{op.name}: expected a combiner of {', '.join(COMBINERS)}, got {combiner.data}")


@irdl_op_definition
class GatherOp(IRDLOperation):
    """
    Loads the elements at a block of offsets; excluded lanes are not accessed and hold the other value (0 if not
    given).

    ```mlir
    %v = tile.gather %x[%offsets] mask %m : memref<?xf32>, vector<64xi64>
    ```
    """

    name = "tile.gather"

    buffer = operand_def(MemRefType)
    offsets = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    @staticmethod
    def make(
        buffer: SSAValue, offsets: SSAValue, mask: SSAValue | None = None, other: SSAValue | None = None
    ) -> GatherOp:
        return GatherOp.create(
            operands=[buffer, offsets, *_optional(mask), *_optional(other)],
            properties={"operandSegmentSizes": _segments(1, 1, int(mask is not None), int(other is not None))},
            result_types=[block_type(element_of(buffer.type), shape_of(offsets.type))],
        )

    def verify_(self) -> None:
        expected = block_type(element_of(self.buffer.type), shape_of(self.offsets.type))
        if element_of(self.offsets.type) not in OFFSETS or self.result.type != expected:
            raise VerifyException(
                f"tile.gather: expected i64 or i32 offsets and a result of {expected}, got {self.result.type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.buffer)
        with printer.in_square_brackets():
            printer.print_operand(self.offsets)
        _print_mask(printer, self.mask, self.other)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)
        printer.print_string(", ")
        printer.print_attribute(self.offsets.type)

    @classmethod
    def parse(cls, parser: Parser) -> GatherOp:
        buffer = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            offsets = parser.parse_unresolved_operand()
        mask, other = _parse_optional_operand(parser, "mask"), _parse_optional_operand(parser, "else")
        parser.parse_punctuation(":")
        source = parser.parse_type()
        parser.parse_punctuation(",")
        offset_type = parser.parse_type()
        block = block_type(element_of(source), shape_of(offset_type))
        return GatherOp.make(
            parser.resolve_operand(buffer, source),
            parser.resolve_operand(offsets, offset_type),
            _resolve(parser, mask, _mask_type(block)),
            _resolve(parser, other, block),
        )


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """
    Stores a block at a block of offsets, or combines it into what is there; lanes act in ascending order.

    ```mlir
    tile.scatter %v, %o[%offsets] mask %m add : vector<64xf32>, memref<?xf32>, vector<64xi64>
    ```
    """

    name = "tile.scatter"

    value = operand_def()
    buffer = operand_def(MemRefType)
    offsets = operand_def()
    mask = opt_operand_def()
    combiner = opt_prop_def(StringAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())

    @staticmethod
    def make(
        value: SSAValue,
        buffer: SSAValue,
        offsets: SSAValue,
        mask: SSAValue | None = None,
        combiner: str | None = None,
    ) -> ScatterOp:
        properties: dict[str, Attribute] = {"operandSegmentSizes": _segments(1, 1, 1, int(mask is not None))}
        if combiner is not None:
            properties["combiner"] = _text(combiner)
        return ScatterOp.create(operands=[value, buffer, offsets, *_optional(mask)], properties=properties)

    def verify_(self) -> None:
        _verify_combiner(self, self.combiner)
        expected = block_type(element_of(self.buffer.type), shape_of(self.offsets.type))
        if element_of(self.offsets.type) not in OFFSETS or self.value.type != expected:
            raise VerifyException(
                f"tile.scatter: expected i64 or i32 offsets and a value of {expected}, got {self.value.type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(", ")
        printer.print_operand(self.buffer)
        with printer.in_square_brackets():
            printer.print_operand(self.offsets)
        _print_mask(printer, self.mask)
        if self.combiner is not None:
            printer.print_string(f" {self.combiner.data}")
        printer.print_string(" : ")
        printer.print_list((self.value.type, self.buffer.type, self.offsets.type), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> ScatterOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        buffer = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            offsets = parser.parse_unresolved_operand()
        mask = _parse_optional_operand(parser, "mask")
        combiner = parser.parse_optional_keyword_in(tuple(COMBINERS))
        parser.parse_punctuation(":")
        block = parser.parse_type()
        parser.parse_punctuation(",")
        target = parser.parse_type()
        parser.parse_punctuation(",")
        return ScatterOp.make(
            parser.resolve_operand(value, block),
            parser.resolve_operand(buffer, target),
            parser.resolve_operand(offsets, parser.parse_type()),
            _resolve(parser, mask, _mask_type(block)),
            combiner,
        )


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """
    Hints that the `lanes` elements from an offset on will be read, or written, soon, or a little later, so that the
    second level of the cache will do. No value depends on it; the offset may lie outside of the buffer, and a block
    that the mask cuts short needs no prefetch.

    ```mlir
    tile.prefetch %x[%i + 1024] lanes 64 mask %m : memref<?xf32>
    tile.prefetch %o[%i + 8192] lanes 64 write level 2 : memref<?xf32>
    ```
    """

    name = "tile.prefetch"

    buffer = operand_def(MemRefType)
    indices = var_operand_def(INDEX)
    mask = opt_operand_def()
    access = prop_def(MapAttr)
    lanes = prop_def(IntegerAttr)
    write = opt_prop_def(UnitAttr)
    level = opt_prop_def(IntegerAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())  # or it would be dead code

    @staticmethod
    def make(
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        offset: ExprLike,
        lanes: int,
        mask: SSAValue | None = None,
        *,
        write: bool = False,
        level: int = 1,
    ) -> PrefetchOp:
        used, map_ = canonical_access(indices, [as_expr(offset)])
        properties: dict[str, Attribute] = {
            "access": MapAttr(map_),
            "lanes": _integer(lanes),
            "operandSegmentSizes": _segments(1, len(used), int(mask is not None)),
        }
        if write:
            properties["write"] = UnitAttr()
        if level != 1:
            properties["level"] = _integer(level)
        return PrefetchOp.create(operands=[buffer, *used, *_optional(mask)], properties=properties)

    @property
    def offset(self) -> Expr:
        return self.access.results[0]

    def verify_(self) -> None:
        if len(self.access.results) != 1 or self.access.data.rank != len(self.indices):
            raise VerifyException(
                f"tile.prefetch: expected one offset over {len(self.indices)} indices, got {self.access}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.buffer)
        print_access(printer, self.indices, self.access.data)
        printer.print_string(f" lanes {self.lanes.value.data}")
        _print_mask(printer, self.mask)
        if self.write is not None:
            printer.print_string(" write")
        if self.level is not None:
            printer.print_string(f" level {self.level.value.data}")
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        buffer = parser.parse_unresolved_operand()
        indices, map_ = parse_access(parser)
        parser.parse_keyword("lanes")
        lanes = parser.parse_integer()
        mask = _parse_optional_operand(parser, "mask")
        write = parser.parse_optional_keyword("write") is not None
        level = parser.parse_integer() if parser.parse_optional_keyword("level") else 1
        parser.parse_punctuation(":")
        value = parser.resolve_operand(buffer, parser.parse_type())
        mask_type = block_type(i1, [lanes])
        resolved = _resolve(parser, mask, mask_type)
        return PrefetchOp.make(value, indices, map_.results[0], lanes, resolved, write=write, level=level)


# -- block values ------------------------------------------------------------------------------------


@irdl_op_definition
class IndexOp(IRDLOperation):
    """
    The value of an index expression over scalars and symbols, as i64 (i32 where that is known to hold it) for
    arithmetic or index for accesses.

    ```mlir
    %n = tile.index [%i * 64 + 3] : i64
    ```
    """

    name = "tile.index"

    indices = var_operand_def(INDEX)
    access = prop_def(MapAttr)
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(indices: Sequence[SSAValue], expr: ExprLike, type_: Attribute = i64) -> IndexOp:
        used, map_ = canonical_access(indices, [as_expr(expr)])
        return IndexOp.create(operands=used, properties={"access": MapAttr(map_)}, result_types=[type_])

    def verify_(self) -> None:
        if self.result.type not in (*OFFSETS, INDEX):
            raise VerifyException(f"tile.index: expected a result of type i64, i32 or index, got {self.result.type}")
        if len(self.access.results) != 1 or self.access.data.rank != len(self.indices):
            raise VerifyException(
                f"tile.index: expected one expression over {len(self.indices)} indices, got {self.access}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_access(printer, self.indices, self.access.data)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        indices, map_ = parse_access(parser)
        parser.parse_punctuation(":")
        return IndexOp.make(indices, map_.results[0], parser.parse_type())


@irdl_op_definition
class IotaOp(IRDLOperation):
    """
    The lane number along one dimension of a block, as i64 or i32.

    ```mlir
    %lane = tile.iota 0 : vector<64xi64>
    ```
    """

    name = "tile.iota"

    dimension = prop_def(IntegerAttr)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    @staticmethod
    def make(shape: Sequence[int], dimension: int = 0, element: Attribute = i64) -> IotaOp:
        return IotaOp.create(properties={"dimension": _integer(dimension)}, result_types=[block_type(element, shape)])

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.dimension.value.data} : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> IotaOp:
        dimension = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls.create(properties={"dimension": _integer(dimension)}, result_types=[parser.parse_type()])


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """
    Repeats a scalar over a block, or a block along further dimensions: `dims` says which dimension of the result
    each dimension of the operand becomes.

    ```mlir
    %v = tile.broadcast %s dims [] : f32 -> vector<64xf32>
    %w = tile.broadcast %row dims [1] : vector<16xf32> -> vector<8x16xf32>
    ```
    """

    name = "tile.broadcast"

    operand = operand_def()
    dims = prop_def(DenseArrayBase)
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(operand: SSAValue, shape: Sequence[int], dims: Sequence[int] = ()) -> BroadcastOp:
        return BroadcastOp.create(
            operands=[operand],
            properties={"dims": _dims(tuple(dims))},
            result_types=[block_type(element_of(operand.type), shape)],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.operand)
        printer.print_string(f" dims [{', '.join(map(str, self.dim_list))}] : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> BroadcastOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("dims")
        dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        return BroadcastOp.make(value, shape_of(parser.parse_type()), dims)

    @property
    def dim_list(self) -> tuple[int, ...]:
        return tuple(int(value) for value in self.dims.get_values())

    def verify_(self) -> None:
        source, target = shape_of(self.operand.type), shape_of(self.result.type)
        if len(self.dim_list) != len(source) or any(
            target[dim] != size for dim, size in zip(self.dim_list, source, strict=True)
        ):
            raise VerifyException(f"tile.broadcast: expected dims that place {source} in {target}, got {self.dim_list}")


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """
    Swaps the two dimensions of a block.

    ```mlir
    %t = tile.transpose %v : vector<8x16xf32> -> vector<16x8xf32>
    ```
    """

    name = "tile.transpose"

    operand = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    @staticmethod
    def make(operand: SSAValue) -> TransposeOp:
        rows, columns = shape_of(operand.type)
        return TransposeOp.create(
            operands=[operand], result_types=[VectorType(element_of(operand.type), [columns, rows])]
        )

    def verify_(self) -> None:
        if shape_of(self.operand.type) != shape_of(self.result.type)[::-1] or len(shape_of(self.result.type)) != 2:
            raise VerifyException("tile.transpose: expected a block of rank 2 and its transpose")


@irdl_op_definition
class CompareOp(IRDLOperation):
    """
    Compares two scalars or blocks; predicates are those of `arith.cmpf` for floats and `arith.cmpi` for integers.

    ```mlir
    %m = tile.compare olt %a, %b : vector<64xf32>
    ```
    """

    name = "tile.compare"

    lhs = operand_def()
    rhs = operand_def()
    predicate = prop_def(StringAttr)
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(predicate: str, lhs: SSAValue, rhs: SSAValue) -> CompareOp:
        return CompareOp.create(
            operands=[lhs, rhs],
            properties={"predicate": _text(predicate)},
            result_types=[_mask_type(lhs.type)],
        )

    def verify_(self) -> None:
        integers = isinstance(element_of(self.lhs.type), IntegerType | IndexType)
        known = INTEGER_PREDICATES if integers else FLOAT_PREDICATES
        if self.predicate.data not in known:
            raise VerifyException(f"tile.compare: expected one of {', '.join(known)}, got {self.predicate.data}")
        if self.lhs.type != self.rhs.type:
            raise VerifyException(f"tile.compare: expected operands of one type, got {self.lhs.type}, {self.rhs.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.predicate.data} ")
        printer.print_list((self.lhs, self.rhs), printer.print_operand)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)

    @classmethod
    def parse(cls, parser: Parser) -> CompareOp:
        predicate = parser.parse_identifier()
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return CompareOp.make(predicate, parser.resolve_operand(lhs, type_), parser.resolve_operand(rhs, type_))


@irdl_op_definition
class SelectOp(IRDLOperation):
    """
    Lane by lane, the first value where the condition holds, else the second; a scalar condition chooses whole.

    ```mlir
    %v = tile.select %m, %a, %b : vector<64xi1>, vector<64xf32>
    ```
    """

    name = "tile.select"

    condition = operand_def()
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(condition: SSAValue, lhs: SSAValue, rhs: SSAValue) -> SelectOp:
        return SelectOp.create(operands=[condition, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        if self.lhs.type != self.result.type or self.rhs.type != self.result.type:
            raise VerifyException(f"tile.select: expected both values of {self.result.type}")
        if self.condition.type not in (i1, _mask_type(self.result.type)):
            raise VerifyException(
                f"tile.select: expected i1 or {_mask_type(self.result.type)}, got {self.condition.type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_string(" : ")
        printer.print_list((self.condition.type, self.result.type), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        condition = parser.parse_type()
        parser.parse_punctuation(",")
        type_ = parser.parse_type()
        values = parser.resolve_operands(operands, [condition, type_, type_], parser.pos)
        return SelectOp.make(*values)


CONVERSIONS = ("extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui")
"""The casts of `arith` that it defines on scalars only; `arith.extf` and `arith.truncf` take blocks themselves."""


@irdl_op_definition
class ConvertOp(IRDLOperation):
    """
    Casts every lane as the scalar operation of `arith` of that name does.

    ```mlir
    %w = tile.convert sitofp %v : vector<64xi32> -> vector<64xf32>
    ```
    """

    name = "tile.convert"

    operand = operand_def()
    kind = prop_def(StringAttr)
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(kind: str, operand: SSAValue, element: Attribute) -> ConvertOp:
        return ConvertOp.create(
            operands=[operand],
            properties={"kind": StringAttr(kind)},
            result_types=[block_type(element, shape_of(operand.type))],
        )

    def verify_(self) -> None:
        if self.kind.data not in CONVERSIONS:
            raise VerifyException(f"tile.convert: expected one of {', '.join(CONVERSIONS)}, got {self.kind.data}")
        if shape_of(self.operand.type) != shape_of(self.result.type):
            raise VerifyException(
                f"tile.convert: expected blocks of one shape, got {self.operand.type}, {self.result.type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data} ")
        printer.print_operand(self.operand)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ConvertOp:
        kind = parser.parse_identifier()
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        return ConvertOp.make(kind, value, element_of(parser.parse_type()))


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """
    Combines the lanes of blocks along one dimension; `argmax` and `argmin` take a block of keys and one of indices.

    ```mlir
    %s = tile.reduce add %v dim 0 : vector<64xf32>
    %m, %n = tile.reduce argmax %v, %i dim 0 : vector<64xf32>, vector<64xi64>
    ```
    """

    name = "tile.reduce"

    values = var_operand_def()
    combiner = prop_def(StringAttr)
    dimension = prop_def(IntegerAttr)
    results_ = var_result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(combiner: str, values: Sequence[SSAValue], dimension: int = 0) -> ReduceOp:
        shape = list(shape_of(values[0].type))
        del shape[dimension]
        return ReduceOp.create(
            operands=list(values),
            properties={"combiner": _text(combiner), "dimension": _integer(dimension)},
            result_types=[block_type(element_of(value.type), shape) for value in values],
        )

    def verify_(self) -> None:
        _verify_combiner(self, self.combiner)
        arity = COMBINERS[self.combiner.data].arity
        if len(self.values) != arity:
            raise VerifyException(
                f"tile.reduce: expected {arity} operands for {self.combiner.data}, got {len(self.values)}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.combiner.data} ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_string(f" dim {self.dimension.value.data} : ")
        printer.print_list([value.type for value in self.operands], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        combiner = parser.parse_identifier()
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_keyword("dim")
        dimension = parser.parse_integer()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return ReduceOp.make(combiner, parser.resolve_operands(operands, types, parser.pos), dimension)


@irdl_op_definition
class ScanOp(IRDLOperation):
    """
    Combines each lane of a block with all before it along one dimension.

    ```mlir
    %s = tile.scan add %v dim 1 : vector<8x64xf32>
    ```
    """

    name = "tile.scan"

    value = operand_def(VectorType)
    combiner = prop_def(StringAttr)
    dimension = prop_def(IntegerAttr)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    @staticmethod
    def make(combiner: str, value: SSAValue, dimension: int = 0) -> ScanOp:
        return ScanOp.create(
            operands=[value],
            properties={"combiner": _text(combiner), "dimension": _integer(dimension)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        _verify_combiner(self, self.combiner)
        if COMBINERS[self.combiner.data].arity != 1:
            raise VerifyException(f"tile.scan: expected a combiner of single values, got {self.combiner.data}")
        if not 0 <= self.dimension.value.data < len(shape_of(self.value.type)) or self.result.type != self.value.type:
            raise VerifyException(f"tile.scan: expected a dimension of {self.value.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.combiner.data} ")
        printer.print_operand(self.value)
        printer.print_string(f" dim {self.dimension.value.data} : ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> ScanOp:
        combiner = parser.parse_identifier()
        operand = parser.parse_unresolved_operand()
        parser.parse_keyword("dim")
        dimension = parser.parse_integer()
        parser.parse_punctuation(":")
        return ScanOp.make(combiner, parser.resolve_operand(operand, parser.parse_type()), dimension)


@irdl_op_definition
class AssertOp(IRDLOperation):
    """
    Where the condition fails in a lane that the mask includes, records error `code` of the kernel's table with that
    lane's value, unless an error is recorded already; computation goes on.

    ```mlir
    tile.assert %ok, %index mask %m code 1 : vector<64xi64>
    ```
    """

    name = "tile.assert"

    condition = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    code = prop_def(IntegerAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())

    @staticmethod
    def make(condition: SSAValue, value: SSAValue, code: int, mask: SSAValue | None = None) -> AssertOp:
        return AssertOp.create(
            operands=[condition, value, *_optional(mask)],
            properties={
                "code": _integer(code),
                "operandSegmentSizes": _segments(1, 1, int(mask is not None)),
            },
        )

    def verify_(self) -> None:
        if self.condition.type != _mask_type(self.value.type):
            raise VerifyException(f"tile.assert: expected a condition of {_mask_type(self.value.type)}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.condition, self.value), printer.print_operand)
        _print_mask(printer, self.mask)
        printer.print_string(f" code {self.code.value.data} : ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> AssertOp:
        condition = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        value = parser.parse_unresolved_operand()
        mask = _parse_optional_operand(parser, "mask")
        parser.parse_keyword("code")
        code = parser.parse_integer()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        mask_type = _mask_type(type_)
        return AssertOp.make(
            parser.resolve_operand(condition, mask_type),
            parser.resolve_operand(value, type_),
            code,
            _resolve(parser, mask, mask_type),
        )


@irdl_op_definition
class PhiloxOp(IRDLOperation):
    """
    32 random bits per lane: the first word of Philox4x32-10 (Salmon et al., SC'11) with the seed as key, the counter
    as the low half of the counter block and the stream as its high half.

    ```mlir
    %bits = tile.philox %seed, %counter stream 3 : vector<64xi64>
    ```
    """

    name = "tile.philox"

    seed = operand_def(i64)
    counter = operand_def()
    stream = prop_def(IntegerAttr)
    bits = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(seed: SSAValue, counter: SSAValue, stream: int) -> PhiloxOp:
        return PhiloxOp.create(
            operands=[seed, counter],
            properties={"stream": _integer(stream)},
            result_types=[block_type(i32, shape_of(counter.type))],
        )

    def verify_(self) -> None:
        if element_of(self.counter.type) != i64:
            raise VerifyException(f"tile.philox: expected an i64 counter, got {self.counter.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.seed, self.counter), printer.print_operand)
        printer.print_string(f" stream {self.stream.value.data} : ")
        printer.print_attribute(self.counter.type)

    @classmethod
    def parse(cls, parser: Parser) -> PhiloxOp:
        seed = parser.parse_operand(i64)
        parser.parse_punctuation(",")
        counter = parser.parse_unresolved_operand()
        parser.parse_keyword("stream")
        stream = parser.parse_integer()
        parser.parse_punctuation(":")
        return PhiloxOp.make(seed, parser.resolve_operand(counter, parser.parse_type()), stream)
