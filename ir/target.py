"""The machine that a module is compiled for, as an attribute that schedule passes read.

Backends fill it in; passes read nothing else about the machine, so they run for any machine anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from xdsl.ir import Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

TARGET = "stepwell.target"
"""Attribute of a module: its `#stepwell.target`."""


@dataclass(frozen=True)
class Target:
    """A processor: its name, its width and number of vector registers, its cores, its caches per core (L3: all), and
    whether it has instructions that round f32 to bf16.

    On a GPU the cores are multiprocessors and L1 is the shared memory of one.
    """

    name: str
    vector_bits: int
    registers: int
    cores: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    rounds_to_bf16: bool = False

    @property
    def is_gpu(self) -> bool:
        """Whether blocks are spread over the threads of a multiprocessor; GPUs are named as `sm_90`."""
        return self.name.startswith("sm_")


GENERIC = Target(
    "generic", vector_bits=256, registers=16, cores=1, l1_bytes=32 << 10, l2_bytes=1 << 20, l3_bytes=8 << 20
)
"""What a module without the attribute is compiled for."""

_FLAG = "rounds_to_bf16"
_NUMBERS = tuple(field.name for field in fields(Target) if field.name not in ("name", _FLAG))


@irdl_attr_definition
class TargetAttr(Data[Target]):
    """The machine, e.g. `#stepwell.target<"znver4", vector_bits = 512, registers = 32, cores = 2, …>`."""

    name = "stepwell.target"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Target:
        with parser.in_angle_brackets():
            name = parser.parse_str_literal()
            numbers = {field: _parse_number(parser, field) for field in _NUMBERS}
            rounds = parser.parse_optional_punctuation(",") is not None
            if rounds:
                parser.parse_keyword(_FLAG)
            return Target(name, **numbers, rounds_to_bf16=rounds)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.name)
            for field in _NUMBERS:
                printer.print_string(f", {field} = {getattr(self.data, field)}")
            if self.data.rounds_to_bf16:
                printer.print_string(f", {_FLAG}")


def _parse_number(parser: AttrParser, field: str) -> int:
    parser.parse_punctuation(",")
    parser.parse_keyword(field)
    parser.parse_punctuation("=")
    return parser.parse_integer(allow_boolean=False, allow_negative=False)


def target_of(op: Operation) -> Target:
    """The machine that the module around `op` names; a modest one where it names none."""
    current: Operation | None = op
    while current is not None:
        attr = current.attributes.get(TARGET)
        if isinstance(attr, TargetAttr):
            return attr.data
        current = current.parent_op()
    return GENERIC


def vector_bits_of(op: Operation) -> int:
    return target_of(op).vector_bits


__all__ = ["GENERIC", "TARGET", "Target", "TargetAttr", "target_of", "vector_bits_of"]
