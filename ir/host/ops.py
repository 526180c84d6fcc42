"""The operations of the host level: what the calling thread does, in order, as data.

In value form (`host.launch`, `host.view`) values are tensors and nobody owns memory. `host-bufferize` makes it
buffer form, in which every value is memory: allocated, written by kernels and externs, copied, dropped. Buffer
form holds no decision that the runtime still has to take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
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
    IsTerminator,
    MemoryAllocEffect,
    MemoryFreeEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from ..definitions import verify_definitions
from ..expr import Expr, ExprLike
from ..graph.attributes import (
    Arguments,
    ArgumentsAttr,
    DataAttr,
    OperandRef,
    parse_arguments,
    print_arguments,
)
from ..shapes import (
    DEFINES,
    DefinitionsAttr,
    MapAttr,
    expr_list_text,
    parse_definitions,
    parse_expr_list,
    print_definitions,
)
from .types import BufferType, WorkspaceType

INDEX = IndexType()


def _segments(*sizes: int) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i32, list(sizes))


def _exprs(op: IRDLOperation, name: str) -> tuple[Expr, ...]:
    attr = op.properties[name]
    assert isinstance(attr, MapAttr)
    return attr.results


# -- text of operand lists ---------------------------------------------------------------------------


def _print_typed(printer: Printer, values: Sequence[SSAValue]) -> None:
    """`(%a : type, %b : type)`."""

    def one(value: SSAValue) -> None:
        printer.print_operand(value)
        printer.print_string(" : ")
        printer.print_attribute(value.type)

    with printer.in_parens():
        printer.print_list(values, one)


def _parse_typed(parser: Parser) -> list[SSAValue]:
    def one() -> SSAValue:
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        return parser.resolve_operand(operand, parser.parse_type())

    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)


def _print_symbols(printer: Printer, symbols: Sequence[Expr]) -> None:
    if symbols:
        printer.print_string(f" symbols {expr_list_text(symbols)}")


def _parse_symbols(parser: Parser) -> MapAttr:
    return MapAttr.of(0, parse_expr_list(parser) if parser.parse_optional_keyword("symbols") else ())


# -- kernels -----------------------------------------------------------------------------------------


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """
    Runs a `tile.kernel` on tensors (value form). The kernel gets the buffers of the inputs, then those of the
    results, which already hold the initial value where one is given, then the values of the symbols.

    ```mlir
    %y, %n = host.launch @k ins(%x : tensor<8xf32>) outs(tensor<8xf32>, %a : tensor<4xf32>) symbols (8)
    ```
    """

    name = "host.launch"

    inputs = var_operand_def(TensorType)
    inits = var_operand_def(TensorType)
    kernel = prop_def(SymbolRefAttr)
    symbols = prop_def(MapAttr)
    initialized = opt_prop_def(ArrayAttr[IntegerAttr])
    results_ = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    @staticmethod
    def make(
        kernel: str,
        inputs: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        symbols: Sequence[ExprLike] = (),
        inits: Sequence[SSAValue | None] = (),
    ) -> LaunchOp:
        """`inits[k]`, if given and not None, is what result k starts as."""
        given = [value for value in inits if value is not None]
        properties: dict[str, Attribute] = {
            "kernel": SymbolRefAttr(kernel),
            "symbols": MapAttr.of(0, symbols),
            "operandSegmentSizes": _segments(len(inputs), len(given)),
        }
        if given:
            positions = [position for position, value in enumerate(inits) if value is not None]
            properties["initialized"] = ArrayAttr([IntegerAttr(position, 64) for position in positions])
        return LaunchOp.create(operands=[*inputs, *given], result_types=list(result_types), properties=properties)

    @property
    def symbol_values(self) -> tuple[Expr, ...]:
        return self.symbols.results

    @property
    def init_positions(self) -> tuple[int, ...]:
        return () if self.initialized is None else tuple(attr.value.data for attr in self.initialized)

    @property
    def init_of(self) -> dict[int, SSAValue]:
        """Position of a result → what it starts as."""
        return dict(zip(self.init_positions, self.inits, strict=True))

    def verify_(self) -> None:
        if len(self.init_positions) != len(self.inits):
            raise VerifyException(
                f"host.launch: expected {len(self.inits)} initialized positions, got {len(self.init_positions)}"
            )
        for position, init in self.init_of.items():
            if _shape(init.type) != _shape(self.results[position].type):
                raise VerifyException(
                    f"host.launch: expected result {position} to have the shape and element type of its "
                    f"initial value {init.type}, got {self.results[position].type}"
                )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.kernel)
        printer.print_string(" ins")
        _print_typed(printer, self.inputs)
        printer.print_string(" outs(")
        inits = self.init_of
        for position, result in enumerate(self.results):
            printer.print_string(", " if position else "")
            if position in inits:
                printer.print_operand(inits[position])
                printer.print_string(" : ")
                printer.print_attribute(inits[position].type)
                printer.print_string(" -> ")
            printer.print_attribute(result.type)
        printer.print_string(")")
        _print_symbols(printer, self.symbol_values)

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        kernel = parser.parse_symbol_name()
        parser.parse_keyword("ins")
        inputs = _parse_typed(parser)
        parser.parse_keyword("outs")
        types: list[Attribute] = []

        def result() -> SSAValue | None:
            operand = parser.parse_optional_unresolved_operand()
            init = None if operand is None else _parse_init(parser, operand)
            types.append(parser.parse_type())
            return init

        inits = parser.parse_comma_separated_list(parser.Delimiter.PAREN, result)
        return LaunchOp.make(kernel.data, inputs, types, _parse_symbols(parser).results, inits)


def _parse_init(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    parser.parse_punctuation(":")
    init = parser.resolve_operand(operand, parser.parse_type())
    parser.parse_punctuation("->")
    return init


def _shape(type_: Attribute) -> tuple[Attribute, tuple[int, ...]]:
    assert isinstance(type_, TensorType)
    return type_.element_type, type_.get_shape()


@irdl_op_definition
class RunOp(IRDLOperation):
    """
    Runs a `tile.kernel` on buffers: reads the first list, writes the second. A buffer in both is worked on in place.

    ```mlir
    host.run @k ins(%x : !host.buffer<f32, (8), (1)>) outs(%y : !host.buffer<f32, (8), (1)>) symbols (8)
    ```
    """

    name = "host.run"

    inputs = var_operand_def(BufferType)
    outputs = var_operand_def(BufferType)
    kernel = prop_def(SymbolRefAttr)
    symbols = prop_def(MapAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @staticmethod
    def make(
        kernel: str,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        symbols: Sequence[ExprLike] = (),
    ) -> RunOp:
        return RunOp.create(
            operands=[*inputs, *outputs],
            properties={
                "kernel": SymbolRefAttr(kernel),
                "symbols": MapAttr.of(0, symbols),
                "operandSegmentSizes": _segments(len(inputs), len(outputs)),
            },
        )

    @property
    def kernel_name(self) -> str:
        return self.kernel.root_reference.data

    @property
    def symbol_values(self) -> tuple[Expr, ...]:
        return self.symbols.results

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.kernel)
        printer.print_string(" ins")
        _print_typed(printer, self.inputs)
        printer.print_string(" outs")
        _print_typed(printer, self.outputs)
        _print_symbols(printer, self.symbol_values)

    @classmethod
    def parse(cls, parser: Parser) -> RunOp:
        kernel = parser.parse_symbol_name()
        parser.parse_keyword("ins")
        inputs = _parse_typed(parser)
        parser.parse_keyword("outs")
        outputs = _parse_typed(parser)
        return RunOp.make(kernel.data, inputs, outputs, _parse_symbols(parser).results)


@irdl_op_definition
class StretchOp(IRDLOperation):
    """
    Kernels that run one after the other with nothing of Python in between: one native call.

    ```mlir
    host.stretch {
      host.run @k ins() outs(%y : !host.buffer<f32, (8), (1)>)
    }
    ```
    """

    name = "host.stretch"

    body = region_def("single_block")

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    assembly_format = "attr-dict-with-keyword $body"

    @staticmethod
    def make() -> StretchOp:
        return StretchOp.create(regions=[Region(Block())])

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def runs(self) -> tuple[RunOp, ...]:
        return tuple(op for op in self.block.ops if isinstance(op, RunOp))

    def verify_(self) -> None:
        if any(not isinstance(op, RunOp) for op in self.block.ops):
            raise VerifyException("host.stretch: expected only host.run in its body")


# -- memory ------------------------------------------------------------------------------------------


@irdl_op_definition
class AllocOp(IRDLOperation):
    """
    A new tensor, not initialised, that code outside of kernels sees: a result, or an operand of an extern.

    ```mlir
    %y = host.alloc : !host.buffer<f32, (s0, 64), (64, 1)>
    ```
    """

    name = "host.alloc"

    buffer = result_def(BufferType)

    traits = traits_def(MemoryAllocEffect())

    assembly_format = "attr-dict `:` type($buffer)"

    @staticmethod
    def make(type_: Attribute) -> AllocOp:
        return AllocOp.create(result_types=[type_])


@irdl_op_definition
class WorkspaceOp(IRDLOperation):
    """
    The memory of this call that only kernels see, by its size in bytes.

    ```mlir
    %w = host.workspace (s0 * 256) : !host.workspace
    ```
    """

    name = "host.workspace"

    size = prop_def(MapAttr)
    workspace = result_def(WorkspaceType)

    traits = traits_def(MemoryAllocEffect())

    @staticmethod
    def make(size: ExprLike) -> WorkspaceOp:
        return WorkspaceOp.create(properties={"size": MapAttr.of(0, [size])}, result_types=[WorkspaceType()])

    @property
    def byte_size(self) -> Expr:
        return self.size.results[0]

    def print(self, printer: Printer) -> None:
        printer.print_string(f" ({self.byte_size}) : ")
        printer.print_attribute(self.workspace.type)

    @classmethod
    def parse(cls, parser: Parser) -> WorkspaceOp:
        size = parse_expr_list(parser)
        parser.parse_punctuation(":")
        parser.parse_type()
        return WorkspaceOp.make(size[0])


@irdl_op_definition
class SlotOp(IRDLOperation):
    """
    A buffer at an offset in bytes of the workspace; slots of buffers that never live at once may overlap.

    ```mlir
    %t = host.slot %w[(s0 * 256)] : !host.buffer<f32, (s0, 64), (64, 1)>
    ```
    """

    name = "host.slot"

    workspace = operand_def(WorkspaceType)
    offset = prop_def(MapAttr)
    buffer = result_def(BufferType)

    traits = traits_def(Pure())

    @staticmethod
    def make(workspace: SSAValue, offset: ExprLike, type_: Attribute) -> SlotOp:
        return SlotOp.create(operands=[workspace], properties={"offset": MapAttr.of(0, [offset])}, result_types=[type_])

    @property
    def byte_offset(self) -> Expr:
        return self.offset.results[0]

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.workspace)
        printer.print_string(f"[({self.byte_offset})] : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> SlotOp:
        operand = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            offset = parse_expr_list(parser)
        parser.parse_punctuation(":")
        return SlotOp.make(parser.resolve_operand(operand, WorkspaceType()), offset[0], parser.parse_type())


@irdl_op_definition
class ViewOp(IRDLOperation):
    """
    The memory of its operand, from an offset in elements on, under other sizes and strides.

    ```mlir
    %t = host.view %x[(0)] : tensor<8x4xf32> -> tensor<4x8xf32, #stepwell.layout<(4, 8), (1, 4)>>
    ```
    """

    name = "host.view"

    source = operand_def(TensorType.constr() | BaseAttr(BufferType))
    offset = prop_def(MapAttr)
    result = result_def(TensorType.constr() | BaseAttr(BufferType))

    traits = traits_def(Pure())

    @staticmethod
    def make(source: SSAValue, offset: ExprLike, type_: Attribute) -> ViewOp:
        return ViewOp.create(operands=[source], properties={"offset": MapAttr.of(0, [offset])}, result_types=[type_])

    @property
    def element_offset(self) -> Expr:
        return self.offset.results[0]

    def verify_(self) -> None:
        if isinstance(self.source.type, BufferType) != isinstance(self.result.type, BufferType):
            raise VerifyException(
                "host.view: expected a tensor of a tensor or a buffer of a buffer, got "
                f"{self.result.type} of {self.source.type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_string(f"[({self.element_offset})] : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ViewOp:
        operand = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            offset = parse_expr_list(parser)
        parser.parse_punctuation(":")
        source = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        return ViewOp.make(source, offset[0], parser.parse_type())


@irdl_op_definition
class CopyOp(IRDLOperation):
    """
    Copies all elements of the first buffer into the second, which has the same sizes.

    ```mlir
    host.copy %new, %x : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
    ```
    """

    name = "host.copy"

    source = operand_def(BufferType)
    target = operand_def(BufferType)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    assembly_format = "$source `,` $target attr-dict `:` type($source) `,` type($target)"

    @staticmethod
    def make(source: SSAValue, target: SSAValue) -> CopyOp:
        return CopyOp.create(operands=[source, target])


@irdl_op_definition
class SeparateOp(IRDLOperation):
    """
    The first buffers, each replaced by a copy if its memory overlaps that of one of the second list: what later
    writes into those must not change.

    ```mlir
    %y = host.separate (%x : !host.buffer<f32, (8), (1)>) from (%z : !host.buffer<f32, (8), (1)>)
    ```
    """

    name = "host.separate"

    sources = var_operand_def(BufferType)
    written = var_operand_def(BufferType)
    results_ = var_result_def(BufferType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryAllocEffect())

    @staticmethod
    def make(sources: Sequence[SSAValue], written: Sequence[SSAValue]) -> SeparateOp:
        return SeparateOp.create(
            operands=[*sources, *written],
            properties={"operandSegmentSizes": _segments(len(sources), len(written))},
            result_types=[source.type for source in sources],
        )

    def verify_(self) -> None:
        if [source.type for source in self.sources] != list(self.result_types):
            raise VerifyException("host.separate: expected one result of the same type per source")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_typed(printer, self.sources)
        printer.print_string(" from ")
        _print_typed(printer, self.written)

    @classmethod
    def parse(cls, parser: Parser) -> SeparateOp:
        sources = _parse_typed(parser)
        parser.parse_keyword("from")
        return SeparateOp.make(sources, _parse_typed(parser))


@irdl_op_definition
class FreeOp(IRDLOperation):
    """
    Drops the references to tensors after their last use; memory that somebody else holds lives on.

    ```mlir
    host.free %x, %y : !host.buffer<f32, (8), (1)>, !host.buffer<f32, (8), (1)>
    ```
    """

    name = "host.free"

    buffers = var_operand_def(BufferType)

    traits = traits_def(MemoryFreeEffect())

    assembly_format = "$buffers attr-dict `:` type($buffers)"

    @staticmethod
    def make(buffers: Sequence[SSAValue]) -> FreeOp:
        return FreeOp.create(operands=list(buffers))


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """
    A tensor with these elements in row-major order, made once and held by the compiled graph.

    ```mlir
    %c = host.constant <i64, 1, 2> : !host.buffer<i64, (2), (1)>
    ```
    """

    name = "host.constant"

    value = prop_def(DataAttr)
    buffer = result_def(BufferType)

    traits = traits_def(Pure())

    assembly_format = "$value attr-dict `:` type($buffer)"

    @staticmethod
    def make(value: DataAttr, type_: Attribute) -> ConstantOp:
        return ConstantOp.create(properties={"value": value}, result_types=[type_])


@irdl_op_definition
class WeightOp(IRDLOperation):
    """
    A tensor that the compiled graph holds, by name.

    ```mlir
    %w = host.weight "layer.table" : !host.buffer<f32, (512, 64), (64, 1)>
    ```
    """

    name = "host.weight"

    weight = prop_def(StringAttr)
    buffer = result_def(BufferType)

    traits = traits_def(Pure())

    assembly_format = "$weight attr-dict `:` type($buffer)"

    @staticmethod
    def make(weight: str, type_: Attribute) -> WeightOp:
        return WeightOp.create(properties={"weight": StringAttr(weight)}, result_types=[type_])


# -- Python ------------------------------------------------------------------------------------------


@irdl_op_definition
class ExternOp(IRDLOperation):
    """
    Calls eager's operator. Its tensor results are new tensors of the promised layout, or views of operands.

    ```mlir
    %v, %i = host.extern "aten.topk.default"(%x, 3)
      : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<f32, (3), (1)>, !host.buffer<i64, (3), (1)>)
    ```

    It may define symbols as `graph.extern` does.

    ```mlir
    %n = host.extern "aten.nonzero.default"(%x) defines (s1 = size(0, 0))
      : (!host.buffer<f32, (8), (1)>) -> (!host.buffer<i64, (s1, 1), (1, 1)>)
    ```
    """

    name = "host.extern"

    operands_ = var_operand_def()
    target = prop_def(StringAttr)
    arguments = prop_def(ArgumentsAttr)
    defines = opt_prop_def(DefinitionsAttr)
    results_ = var_result_def()

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @staticmethod
    def make(
        target: str,
        operands: Sequence[SSAValue],
        arguments: Arguments,
        result_types: Sequence[Attribute],
        defines: DefinitionsAttr | None = None,
    ) -> ExternOp:
        properties: dict[str, Attribute] = {"target": StringAttr(target), "arguments": ArgumentsAttr(arguments)}
        if defines is not None:
            properties[DEFINES] = defines
        return ExternOp.create(operands=list(operands), properties=properties, result_types=list(result_types))

    def verify_(self) -> None:
        if self.arguments.data.operand_count != len(self.operands):
            raise VerifyException(
                f"host.extern: expected {self.arguments.data.operand_count} operands in its arguments, "
                f"got {len(self.operands)}"
            )
        verify_definitions(self)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.target.data)
        print_arguments(printer, self.arguments.data, lambda position: printer.print_operand(self.operands[position]))
        print_definitions(printer, self.defines)
        _print_signature(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> ExternOp:
        target = parser.parse_str_literal()
        names, operand = _operand_collector(parser)
        arguments = parse_arguments(parser, operand)
        defines = parse_definitions(parser)
        values, results = _parse_signature(parser, names)
        return ExternOp.make(target, values, arguments, results, defines)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """
    Ends the function with its list of results: buffers, sizes as expressions, and `none`.

    ```mlir
    host.return (%y, (s0 * 2), none) : (!host.buffer<f32, (8), (1)>) -> ()
    ```
    """

    name = "host.return"

    operands_ = var_operand_def()
    arguments = prop_def(ArgumentsAttr)

    traits = traits_def(IsTerminator())

    @staticmethod
    def make(operands: Sequence[SSAValue], arguments: Arguments) -> ReturnOp:
        return ReturnOp.create(operands=list(operands), properties={"arguments": ArgumentsAttr(arguments)})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_arguments(printer, self.arguments.data, lambda position: printer.print_operand(self.operands[position]))
        _print_signature(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> ReturnOp:
        names, operand = _operand_collector(parser)
        arguments = parse_arguments(parser, operand)
        values, _ = _parse_signature(parser, names)
        return ReturnOp.make(values, arguments)


def _print_signature(printer: Printer, op: Operation) -> None:
    printer.print_string(" : (")
    printer.print_list([operand.type for operand in op.operands], printer.print_attribute)
    printer.print_string(") -> (")
    printer.print_list(op.result_types, printer.print_attribute)
    printer.print_string(")")


def _parse_signature(parser: Parser, names: Sequence[UnresolvedOperand]) -> tuple[Sequence[SSAValue], list[Attribute]]:
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    parser.parse_punctuation("->")
    results: list[Attribute] = [*parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)]
    return parser.resolve_operands(names, types, parser.pos), results


def _operand_collector(
    parser: Parser,
) -> tuple[list[UnresolvedOperand], Callable[[], OperandRef | None]]:
    """A list, and the parser of one operand that appends to it."""
    names: list[UnresolvedOperand] = []

    def operand() -> OperandRef | None:
        name = parser.parse_optional_unresolved_operand()
        if name is None:
            return None
        names.append(name)
        return OperandRef(len(names) - 1)

    return names, operand


__all__ = [
    "AllocOp", "ConstantOp", "CopyOp", "ExternOp", "FreeOp", "LaunchOp", "ReturnOp", "RunOp", "SeparateOp",
    "SlotOp", "StretchOp", "ViewOp", "WeightOp", "WorkspaceOp",
]  # fmt: skip
