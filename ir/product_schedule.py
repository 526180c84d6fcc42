"""How a product of matrices is laid on a GPU, as an attribute of its loop kernel.

A cost model sets it, or whoever measured; what makes kernels of products reads nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

PRODUCT = "stepwell.product"
"""Attribute of a `loop.kernel`: the `#stepwell.product` that it is laid out by, or LIBRARY."""


LIBRARY = "library"
"""Value of that attribute, as a string, of a product that the library should compute."""

MEASURE = "stepwell.measure"
"""Attribute of a module: schedules will be measured, so every product that can be a kernel becomes one."""


@dataclass(frozen=True)
class ProductSchedule:
    """A program has a tile of the result of `rows` × `columns`, which it sums up in steps of `depth`, on so many
    `warps`, with the factors of `stages` steps in shared memory at once. `descriptors` has the copy engine bring them,
    which spares the warps the work; but it takes microseconds to describe the arrays to it."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int
    descriptors: bool = False

    @property
    def shared_bytes(self) -> int:
        """What the factors take, two bytes an element."""
        return 2 * self.stages * self.depth * (self.rows + self.columns)

    @property
    def parts(self) -> int:
        """Parts in which what follows the sum runs: each leaves a thread 64 elements at most, which it can keep in
        registers beside what it computes of them."""
        return max(1, self.rows * self.columns // (32 * self.warps * 64))

    def needed_bytes(self, point_bytes: int) -> int:
        """Shared memory of a program, if what follows the sum moves so many bytes for each element of the result."""
        return self.shared_bytes + self.rows * self.columns // self.parts * point_bytes

    def __str__(self) -> str:
        numbers = f"{self.rows}, {self.columns}, {self.depth}, warps = {self.warps}, stages = {self.stages}"
        return f"{numbers}, descriptors" if self.descriptors else numbers


@irdl_attr_definition
class ProductAttr(Data[ProductSchedule]):
    """The layout of a product: `#stepwell.product<128, 256, 64, warps = 8, stages = 4, descriptors>`."""

    name = "stepwell.product"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ProductSchedule:
        numbers: list[int] = []
        with parser.in_angle_brackets():
            for name in ("", "", "", "warps", "stages"):
                if numbers:
                    parser.parse_punctuation(",")
                if name:
                    parser.parse_keyword(name)
                    parser.parse_punctuation("=")
                numbers.append(parser.parse_integer(allow_boolean=False, allow_negative=False))
            described = parser.parse_optional_punctuation(",") is not None
            if described:
                parser.parse_keyword("descriptors")
        rows, columns, depth, warps, stages = numbers
        return ProductSchedule(rows, columns, depth, warps, stages, described)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


__all__ = ["LIBRARY", "MEASURE", "PRODUCT", "ProductAttr", "ProductSchedule"]
