"""The operation of the tile level by which one kernel does the work of several launches: a choice among buffers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .ops import INDEX


@irdl_op_definition
class ChooseOp(IRDLOperation):
    """
    The buffer of that number, counted from 0; the number must be one of them.

    ```mlir
    %b = tile.choose %k from (%x, %y) : memref<?xf32>
    ```
    """

    name = "tile.choose"

    number = operand_def(INDEX)
    buffers = var_operand_def(MemRefType)
    result = result_def(MemRefType)

    traits = traits_def(Pure())

    @staticmethod
    def make(number: SSAValue, buffers: Sequence[SSAValue]) -> ChooseOp:
        return ChooseOp.create(operands=[number, *buffers], result_types=[buffers[0].type])

    def verify_(self) -> None:
        if not self.buffers or any(buffer.type != self.result.type for buffer in self.buffers):
            raise VerifyException(f"tile.choose: expected buffers of {self.result.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.number)
        printer.print_string(" from ")
        with printer.in_parens():
            printer.print_list(self.buffers, printer.print_operand)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ChooseOp:
        number = parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)
        parser.parse_keyword("from")
        buffers = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return ChooseOp.make(number, parser.resolve_operands(buffers, [type_] * len(buffers), parser.pos))
