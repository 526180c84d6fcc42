"""The text of a kernel as Triton reads it: generic form, without what only we need to know."""

from __future__ import annotations

import re
from io import StringIO

from xdsl.printer import Printer

from .ops import STAND_INS, FuncOp

_STAND_INS = re.compile("|".join(f'"{op.name}"\\(' for op in STAND_INS))


def ttir(function: FuncOp) -> str:
    """A module with one kernel. Its text depends on the kernel alone, so it can be the key of what it compiles to."""
    stream = StringIO()
    attributes, function.attributes = function.attributes, {}
    Printer(stream, print_generic_format=True).print_op(function)
    function.attributes = attributes
    text = _STAND_INS.sub(lambda match: match[0].replace('"tt.', '"arith.'), stream.getvalue())
    return f"module {{\n{text}\n}}\n"


__all__ = ["ttir"]
