"""A program as the command line names it: `file.py:function`, and tensors from shapes such as `4x?xf32`."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..ir.dtypes import NATIVE
from ..ir.errors import OptionError

DYNAMIC_SIZE = 24
"""What a dim written `?` measures in the example; `?7` names another size."""

ELEMENTS = {str(dtype.type): getattr(torch, name) for name, dtype in NATIVE.items()}
"""The element type as the IR writes it → torch's."""

_SHAPE = re.compile(r"((?:\??\d+x|\?x)*)(\w+)")


@dataclass(frozen=True)
class Program:
    """What to compile and the arguments to compile it for."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def load(path: str, shapes: Sequence[str] = (), seed: int = 0) -> Program:
    """The function, or the module (an instance, or a class without arguments), that `file.py:name` names.

    Without shapes it is called with what `example_inputs()` of that file returns, if there is one. Raises
    OptionError where the file has no such name or a shape cannot be read.
    """
    file, _, name = path.rpartition(":")
    if not file or not Path(file).is_file():
        raise OptionError("program", expected="file.py:function of a file that exists", got=repr(path))
    torch.manual_seed(seed)
    namespace = _namespace(Path(file))
    if name not in namespace:
        public = [key for key, value in namespace.items() if callable(value) and not key.startswith("_")]
        raise OptionError(f"program {file}", expected=f"one of {', '.join(public)}", got=repr(name))
    found = namespace[name]
    function = found() if isinstance(found, type) and issubclass(found, nn.Module) else found
    if not shapes and "example_inputs" in namespace:
        return Program(function, tuple(namespace["example_inputs"]()))
    return Program(function, tuple(map(example, shapes)))


def _namespace(path: Path) -> dict[str, Any]:
    """What the file defines; it may import its neighbours, as it may when it is run, and Dynamo may find it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return vars(module)


def example(shape: str) -> Tensor:
    """A tensor of a shape such as `4x8xf32`, `f32` (a scalar), `?x8xi64` or `?7xf32` (dynamic).

    Floats are normal, integers small and never negative, so that they may be indices.
    """
    match = _SHAPE.fullmatch(shape)
    dtype = ELEMENTS.get(match[2]) if match else None
    if match is None or dtype is None:
        raise OptionError(
            f"shape {shape!r}",
            expected=f"sizes and an element type of {', '.join(ELEMENTS)}, as in 4x8xf32",
            got="neither" if match is None else match[2],
            hint="a dynamic size is written ?, or ?7 to begin with 7",
        )
    dims = match[1].split("x")[:-1]
    sizes = [int(dim.removeprefix("?") or DYNAMIC_SIZE) for dim in dims]
    made = torch.randn(sizes).to(dtype) if dtype.is_floating_point else torch.randint(0, 2, sizes).to(dtype)
    for position, dim in enumerate(dims):
        if dim.startswith("?"):
            torch._dynamo.mark_dynamic(made, position)
    return made
