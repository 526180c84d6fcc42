"""Every knob of Stepwell in one typed, documented table: `STEPWELL_<NAME>`, `stepwell.config`, `options=`.

Nothing else in the project may read an environment variable of ours. A compile takes one `Settings` at its
start and passes it on, because backward graphs compile on autograd's threads, where a `patch` is not in force.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from platformdirs import user_cache_dir
from xdsl.passes import ModulePass

from ..backends.interface import Backend
from ..ir.errors import ConfigError, OptionError

PREFIX = "STEPWELL_"

ExtraPass = str | ModulePass
NamedBackend = str | Backend


def _knob(default: Any, doc: str, choices: tuple[Any, ...] = (), minimum: int | None = None) -> Any:
    """A field of `Settings`; `choices` and `minimum` narrow what its type admits."""
    return field(default=default, metadata={"doc": doc, "choices": choices, "minimum": minimum})


@dataclass(frozen=True)
class Settings:
    """The knobs' values for one compile. The order is the order in which the README lists them."""

    strict: bool = _knob(False, "Raise when the compiler fails, instead of running that graph eagerly.")
    mode: str = _knob(
        "default",
        "What to optimise for, in the words of `torch.compile`.",
        choices=("default", "reduce-overhead", "max-autotune"),
    )
    passes: tuple[ExtraPass, ...] = _knob((), "Passes to run beside the pipeline's own: names or objects.")
    backend: NamedBackend = _knob("cpu", "What makes machine code of kernels: cpu, or a backend by name or as object.")
    opt_level: int = _knob(0, "LLVM's optimisation level; kernels run no faster above 0.", choices=(0, 1, 2, 3))
    vector_bits: int = _knob(
        0, "Width of the vectors in CPU kernels; 0 takes the machine's widest.", choices=(0, 128, 256, 512)
    )
    min_parallel_elements: int = _knob(16384, "A kernel with fewer elements runs on one thread.", minimum=1)
    excess_precision: bool = _knob(False, "Keep bf16 and f16 values in f32 within one kernel.")
    fallback_random: bool = _knob(False, "Draw random numbers with eager's operators: they equal eager's.")
    pool_bytes: int = _knob(2**30, "Bytes of freed output storage to keep for reuse; 0 keeps none.", minimum=0)
    cache_dir: Path = _knob(Path(user_cache_dir("stepwell")), "Folder of compiled kernels.")
    disable_cache: bool = _knob(False, "Neither read nor write compiled kernels on disk.")
    verify: bool = _knob(False, "Verify the IR after each pass.")
    dump: Path | None = _knob(None, "Folder that receives the IR after each pass and how to replay it.")


class Kind(NamedTuple):
    """How values of one annotated type are described, recognised and read from a string."""

    description: str
    convert: Callable[[Any], Any]
    parse: Callable[[str], Any]


def _instance_of(*types: type) -> Callable[[Any], Any]:
    """Identity on instances of exactly these types: True is no int here, 1 no bool."""

    def convert(value: Any) -> Any:
        if type(value) not in types:
            raise TypeError
        return value

    return convert


def _as_path(value: Any) -> Path:
    return Path(value).expanduser()


def _as_passes(value: Any) -> tuple[ExtraPass, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, (str, ModulePass)) for item in value):
        raise TypeError
    return tuple(value)


def _as_backend(value: Any) -> NamedBackend:
    if not isinstance(value, (str, Backend)):
        raise TypeError
    return value


def _optional(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _optional_text(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text.lower() in ("", "none") else parse(text)


_BOOLEANS = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}


def _parse_bool(text: str) -> bool:
    return _BOOLEANS[text.lower()]


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


KINDS: dict[Any, Kind] = {
    bool: Kind("True or False", _instance_of(bool), _parse_bool),
    int: Kind("an int", _instance_of(int), int),
    str: Kind("a str", _instance_of(str), str),
    Path: Kind("a path", _as_path, _as_path),
    Path | None: Kind("a path or None", _optional(_as_path), _optional_text(_as_path)),
    NamedBackend: Kind("the name of a backend, or a backend", _as_backend, str),
    tuple[ExtraPass, ...]: Kind("a list of pass names or passes", _as_passes, _parse_names),
}


@dataclass(frozen=True)
class Knob:
    """One row of the table: what a knob is called, means, defaults to and admits."""

    name: str
    kind: Kind
    default: Any
    doc: str
    choices: tuple[Any, ...]
    minimum: int | None

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def expected(self) -> str:
        """The admitted values, in the words of an error message."""
        if self.choices:
            return "one of " + ", ".join(map(repr, self.choices))
        return self.kind.description + ("" if self.minimum is None else f" of at least {self.minimum}")

    def check(self, value: Any) -> Any:
        """The value in the knob's own type; raises TypeError or ValueError where it is not admitted."""
        value = self.kind.convert(value)
        if self.choices and value not in self.choices:
            raise ValueError
        if self.minimum is not None and value < self.minimum:
            raise ValueError
        return value

    def parse(self, text: str) -> Any:
        """The value that an environment variable spells; raises ConfigError."""
        try:
            return self.check(self.kind.parse(text))
        except (KeyError, TypeError, ValueError):
            raise ConfigError(self.variable, expected=self.expected, got=repr(text), hint=self.doc) from None


def _table() -> dict[str, Knob]:
    types = get_type_hints(Settings)
    return {f.name: Knob(f.name, KINDS[types[f.name]], f.default, **f.metadata) for f in fields(Settings)}


KNOBS = _table()


def _known_names() -> str:
    return "one of " + ", ".join(KNOBS)


def _suggestion(name: str) -> str:
    close = get_close_matches(name, KNOBS, n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def _checked(owner: str, values: Mapping[str, Any], error: type[ConfigError] = ConfigError) -> dict[str, Any]:
    """The values in their knobs' types; raises `error` naming the known knobs or the admitted values."""
    return {name: _checked_value(owner, name, value, error) for name, value in values.items()}


def _checked_value(owner: str, name: str, value: Any, error: type[ConfigError]) -> Any:
    if name not in KNOBS:
        raise error(owner, expected=_known_names(), got=repr(name), hint=_suggestion(name))
    knob = KNOBS[name]
    try:
        return knob.check(value)
    except (TypeError, ValueError):
        got = f"{value!r} ({type(value).__name__})"
        hint = _instance_meant(value) or knob.doc
        raise error(f"{owner}.{name}", expected=knob.expected, got=got, hint=hint) from None


def _instance_meant(value: Any) -> str:
    """What to write instead, where a class stands for an object of it."""
    items = value if isinstance(value, (list, tuple)) else [value]
    names = [item.__name__ for item in items if isinstance(item, type)]
    return f"did you mean {names[0]}()?" if names else ""


def from_environment(environment: Mapping[str, str]) -> Settings:
    """The defaults, overridden by the variables `STEPWELL_<NAME>`; a variable of no knob is warned about."""
    ours = {name for name in environment if name.startswith(PREFIX)}
    known = {knob.variable: knob for knob in KNOBS.values()}
    for name in sorted(ours - known.keys()):
        warnings.warn(f"{name} is not a knob of stepwell; known are {', '.join(known)}", stacklevel=2)
    return Settings(**{known[name].name: known[name].parse(environment[name]) for name in ours & known.keys()})


class Config:
    """`stepwell.config`: read and assign knobs as attributes, for the whole process or under `patch`."""

    _settings: Settings
    _patches: ContextVar[dict[str, Any]]

    def __init__(self, settings: Settings) -> None:
        object.__setattr__(self, "_settings", settings)
        object.__setattr__(self, "_patches", ContextVar("stepwell.config"))

    def snapshot(self) -> Settings:
        """The values in force here and now."""
        return replace(self._settings, **self._patches.get({}))

    def with_options(self, options: Mapping[str, Any] | None, mode: str | None = None) -> Settings:
        """A snapshot overridden by the `options=` and `mode=` of one `torch.compile`; raises OptionError."""
        values = dict(options or {}) | ({} if mode is None else {"mode": mode})
        return replace(self.snapshot(), **_checked("options", values, OptionError))

    @contextmanager
    def patch(self, **values: Any) -> Iterator[None]:
        """Override knobs for the calling thread until the block ends."""
        patches = self._patches.get({}) | _checked("config", values)
        token = self._patches.set(patches)
        try:
            yield
        finally:
            self._patches.reset(token)

    def __getattr__(self, name: str) -> Any:
        if name not in KNOBS:
            raise AttributeError(f"config: expected {_known_names()}, got {name!r}")
        return getattr(self.snapshot(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a knob for the process; under a patch of that same knob, until the patch ends."""
        checked = _checked("config", {name: value})
        patches = self._patches.get({})
        if name in patches:
            patches.update(checked)
        else:
            object.__setattr__(self, "_settings", replace(self._settings, **checked))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *KNOBS]

    def __repr__(self) -> str:
        settings = self.snapshot()
        return "\n".join(f"{name} = {getattr(settings, name)!r}  # {knob.doc}" for name, knob in KNOBS.items())


config = Config(from_environment(os.environ))
