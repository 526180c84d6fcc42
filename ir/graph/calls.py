"""Ops that reach outside the values of the graph: eager ATen ops, and writes into arguments."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

from xdsl.dialects.builtin import UNKNOWN_LOC, FunctionType, LocationAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Resource

from ..definitions import definitions_of, verify_definitions
from ..dtypes import element_of
from ..shapes import DEFINES, DefinitionsAttr, parse_definitions, print_definitions, sizes_of
from .attributes import Arguments, ArgumentsAttr, OperandRef, parse_arguments, print_arguments
from .base import TENSOR, GraphOp, differ


@dataclass(frozen=True)
class Checks(Resource):
    """The checks that a program makes, of which the first to fail is the one that raises."""

    def name(self) -> str:
        return "<Checks>"


@dataclass(frozen=True)
class GeneratorState(Resource):
    """The state of torch's random number generators."""

    def name(self) -> str:
        return "<Generator>"


EFFECTS: dict[str, frozenset[EffectInstance]] = {
    "check": frozenset((EffectInstance(MemoryEffectKind.WRITE, None, Checks()),)),
    "random": frozenset((EffectInstance(MemoryEffectKind.WRITE, None, GeneratorState()),)),
    "write": frozenset(EffectInstance(kind) for kind in (MemoryEffectKind.READ, MemoryEffectKind.WRITE)),
}
"""What an extern may do besides computing: raise if sizes are not as they must be, draw random numbers, or write
memory and keep its place."""


@dataclass(frozen=True)
class Sizes(Resource):
    """The values of the function's symbols."""

    def name(self) -> str:
        return "<Sizes>"


DEFINING = frozenset((EffectInstance(MemoryEffectKind.WRITE, None, Sizes()),))


class DeclaredEffect(MemoryEffect):
    """The effects that the op's `effect` names, none without one; a definition of symbols stays though no result is
    used."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        effect = op.properties.get("effect")
        effects = EFFECTS[effect.data] if isinstance(effect, StringAttr) else frozenset[EffectInstance]()
        return effects | DEFINING if definitions_of(op) else effects


@irdl_op_definition
class ExternOp(GraphOp):
    """
    Calls an eager op by its overload with all arguments as they were; operands stand in their places.

    ```mlir
    %v, %i = graph.extern "aten.topk.default"(%x, 5, -1, true, true)
      : (tensor<4x8xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>)
    ```

    Where sizes depend on data, the op defines symbols: the sizes of results along dims, and numbers that it gives as
    `index`. The function declares them behind those of its arguments; what names one stands behind this op, and
    behind the ops of effect `check` that name it, which raise before anything relies on what they check.

    ```mlir
    %n = graph.extern "aten.nonzero.default"(%x) defines (s1 = size(0, 0))
      : (tensor<8xf32>) -> tensor<?x1xi64, #stepwell.layout<(s1, 1), (1, 1)>>
    graph.extern "aten._assert_scalar.default"((min(s1, 1)), "nothing found") effect check : () -> ()
    ```
    """

    name = "graph.extern"

    inputs = var_operand_def()
    target = prop_def(StringAttr)
    arguments = prop_def(ArgumentsAttr)
    effect = opt_prop_def(StringAttr)
    defines = opt_prop_def(DefinitionsAttr)
    outputs = var_result_def()

    traits = traits_def(DeclaredEffect())

    @classmethod
    def make(
        cls,
        target: str,
        inputs: Sequence[SSAValue],
        arguments: Arguments,
        types: Sequence[Attribute],
        effect: str | None = None,
        location: LocationAttr = UNKNOWN_LOC,
        defines: DefinitionsAttr | None = None,
    ) -> Self:
        properties: dict[str, Attribute] = {
            "target": StringAttr(target),
            "arguments": ArgumentsAttr(arguments),
        }
        if effect is not None:
            properties["effect"] = StringAttr(effect)
        if defines is not None:
            properties[DEFINES] = defines
        return cls.create(operands=tuple(inputs), result_types=tuple(types), properties=properties, location=location)

    def verify_(self) -> None:
        refs = [argument.position for argument in self.arguments.data.flat() if isinstance(argument, OperandRef)]
        if refs != list(range(len(self.inputs))):
            raise self.fail(f"arguments that take operands 0 to {len(self.inputs) - 1} in order", str(refs))
        if self.effect is not None and self.effect.data not in EFFECTS:
            raise self.fail(f"an effect of {', '.join(EFFECTS)}", self.effect.data)
        verify_definitions(self)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.target.data)
        print_arguments(printer, self.arguments.data, lambda position: printer.print_operand(self.inputs[position]))
        if self.effect is not None:
            printer.print_string(f" effect {self.effect.data}")
        print_definitions(printer, self.defines)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(FunctionType.from_lists([*self.operand_types], [*self.result_types]))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        target = parser.parse_str_literal()
        operands: list[UnresolvedOperand] = []

        def operand() -> OperandRef | None:
            found = parser.parse_optional_unresolved_operand()
            if found is None:
                return None
            operands.append(found)
            return OperandRef(len(operands) - 1)

        arguments = parse_arguments(parser, operand)
        effect = parser.parse_identifier() if parser.parse_optional_keyword("effect") else None
        defines = parse_definitions(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type_ = parser.parse_type()
        assert isinstance(type_, FunctionType)
        inputs = parser.resolve_operands(operands, type_.inputs.data, position)
        op = cls.make(target, inputs, arguments, type_.outputs.data, effect, defines=defines)
        op.attributes.update(attributes)
        return op


class WritesTarget(MemoryEffect):
    """The op writes the memory of its second operand."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return frozenset((EffectInstance(MemoryEffectKind.WRITE, op.operands[1]),))


@irdl_op_definition
class CopyIntoOp(GraphOp):
    """
    Writes the value into an argument's memory: the end of a mutated input.

    ```mlir
    graph.copy_into %value, %x : (tensor<8xf32>, tensor<8xf32>) -> ()
    ```
    """

    name = "graph.copy_into"

    value = operand_def(TENSOR)
    target = operand_def(TENSOR)

    traits = traits_def(WritesTarget())

    @classmethod
    def make(cls, value: SSAValue, target: SSAValue, location: LocationAttr = UNKNOWN_LOC) -> CopyIntoOp:
        return cls.create(operands=(value, target), location=location)

    def verify_(self) -> None:
        value, target = self.value.type, self.target.type
        if differ(sizes_of(value), sizes_of(target)) or element_of(value) != element_of(target):
            raise self.fail(f"a value like its target {target}", f"{value}")
