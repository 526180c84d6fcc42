"""Stepwell: PyTorch programs step down through the graph, loop and tile dialects to machine code.

Importing this package must cost nothing: tools such as `xdsl-opt` load it to find the dialects, and torch
alone takes seconds. So every public name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ir.errors import (
        BackendError,
        ConfigError,
        FrontendError,
        LoweringError,
        OptionError,
        StepwellError,
    )
    from .runtime.config import config
    from .runtime.explain import explain
    from .runtime.memory import empty_cache
    from .runtime.torch_backend import compile

__version__ = "0.1.0"

_HOME = {
    "compile": ".runtime.torch_backend",
    "config": ".runtime.config",
    "empty_cache": ".runtime.memory",
    "explain": ".runtime.explain",
    "BackendError": ".ir.errors",
    "ConfigError": ".ir.errors",
    "FrontendError": ".ir.errors",
    "LoweringError": ".ir.errors",
    "OptionError": ".ir.errors",
    "StepwellError": ".ir.errors",
}

__all__ = [
    "BackendError",
    "ConfigError",
    "FrontendError",
    "LoweringError",
    "OptionError",
    "StepwellError",
    "__version__",
    "compile",
    "config",
    "empty_cache",
    "explain",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
