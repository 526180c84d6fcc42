"""Types of the host level: a buffer is memory as torch shows it, the workspace is memory that only kernels see."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ..dtypes import numpy_dtype
from ..expr import ONE, ZERO, Expr
from ..shapes import Layout, LayoutAttr, expr_list_text, layout_of, parse_expr_list


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute, ShapedType):
    """Memory with an element type, sizes and strides in elements: `!host.buffer<f32, (s0, 64), (64, 1)>`."""

    name = "host.buffer"

    element: Attribute
    layout: LayoutAttr

    @staticmethod
    def of(tensor: Attribute) -> BufferType:
        """The buffer that holds a tensor of that type."""
        assert isinstance(tensor, TensorType)
        return BufferType(tensor.element_type, LayoutAttr(layout_of(tensor)))

    @property
    def sizes(self) -> tuple[Expr, ...]:
        return self.layout.data.sizes

    @property
    def strides(self) -> tuple[Expr, ...]:
        return self.layout.data.strides

    def get_num_dims(self) -> int:
        return len(self.sizes)

    def get_shape(self) -> tuple[int, ...]:
        return tuple(size.constant if size.is_constant else DYNAMIC_INDEX for size in self.sizes)

    @property
    def element_span(self) -> Expr:
        """How many elements it is from the first one to behind the last."""
        return _element_span(self.layout.data)

    @property
    def byte_span(self) -> Expr:
        """The same in bytes; for a native element type."""
        return self.element_span * numpy_dtype(self.element).itemsize

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            element = parser.parse_type()
            parser.parse_punctuation(",")
            sizes = parse_expr_list(parser)
            parser.parse_punctuation(",")
            strides = parse_expr_list(parser)
        if len(sizes) != len(strides):
            parser.raise_error(f"host.buffer: expected {len(sizes)} strides, got {len(strides)}")
        return [element, LayoutAttr(Layout(sizes, strides))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element)
            printer.print_string(f", {expr_list_text(self.sizes)}, {expr_list_text(self.strides)}")


@lru_cache(maxsize=4096)
def _element_span(layout: Layout) -> Expr:
    if ZERO in layout.sizes:
        return ZERO
    pairs = zip(layout.sizes, layout.strides, strict=True)
    return sum(((size - 1) * stride for size, stride in pairs if size != ONE), ONE)


@irdl_attr_definition
class WorkspaceType(ParametrizedAttribute, TypeAttribute):
    """The memory in which one call keeps what only kernels see."""

    name = "host.workspace"


__all__ = ["BufferType", "WorkspaceType"]
