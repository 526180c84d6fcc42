"""The error types of every level, in one small tree.

They live in `ir` because each layer raises them. A message says who complains, what it expected, what came
instead and what to do about it; a user never meets a bare KeyError or NotImplementedError of ours.
"""

from __future__ import annotations

import builtins
from functools import partial
from typing import Any


class StepwellError(Exception):
    """Base of all errors that Stepwell raises: `subject: expected …, got …; hint`.

    `location` is the place in the user's program, as `file.py:12`, where one is known.
    """

    def __init__(self, subject: str, *, expected: str, got: str, hint: str = "", location: str | None = None) -> None:
        super().__init__(subject)
        self.subject = subject
        self.expected = expected
        self.got = got
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        message = f"{self.subject}: expected {self.expected}, got {self.got}"
        message += f"; {self.hint}" if self.hint else ""
        return message + (f"\n  at {self.location}" if self.location else "")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by keyword, because the default would call the constructor with `args` alone."""
        make = partial(type(self), expected=self.expected, got=self.got, hint=self.hint, location=self.location)
        return make, (self.subject,)


class FrontendError(StepwellError):
    """An FX graph cannot be imported, although everything not native has a way as an extern."""


class LoweringError(StepwellError):
    """A pass met IR that it should never be given, or left some of a level that it was to remove."""


class BackendError(StepwellError):
    """Machine code cannot be made or run: an unsupported processor, a missing library, a refused module."""


class InterpreterError(StepwellError):
    """A reference interpreter met a program that breaks a rule of its level, such as a read outside of a tensor."""


class ConfigError(StepwellError):
    """A knob or an environment variable has no such name or does not take such a value."""


class OptionError(ConfigError):
    """The same, said through `options=` or `mode=` of `torch.compile`."""


def eager_error(exception: str, message: str, value: int) -> Exception:
    """What eager raises, from what a program records: a name, and a message in which `{}` stands for the value."""
    made: Exception = getattr(builtins, exception)(message.replace("{}", str(value)))
    return made
