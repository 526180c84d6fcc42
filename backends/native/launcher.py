"""Stretches of kernel launches as one Python callable: writes the descriptors that `driver` runs.

One native function serves all of them. Holds nothing that changes: a callable may run in many threads at once.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from ...ir.errors import BackendError
from . import driver, openmp
from .jit import NativeModule, compile_module
from .object_cache import ObjectCache

ErrorRecord = tuple[int, int]
"""What a kernel put into the error slot: a code other than 0, and a value."""


class Launch(NamedTuple):
    """A kernel and the slots that its operands are taken from.

    `grid` is the address of a function that gives the number of programs, or 0 where that is `static_grid`. Fewer
    programs than `serial_below` run on the calling thread. `finish` is the address of a function to run after the
    last program, or 0.
    """

    kernel: int
    operand_slots: tuple[int, ...]
    grid: int = 0
    static_grid: int = 1
    finish: int = 0
    serial_below: int = 2

    def words(self) -> list[int]:
        fields = (self.kernel, self.grid, self.static_grid, self.finish, self.serial_below)
        return [*fields, len(self.operand_slots), *self.operand_slots]


KINDS = {"P": 0, "i": 1}
"""How an argument fills its slot: a tensor with the address of its data, an int with itself."""


class Stretch:
    """Launches that run in one native call, without Python between them.

    `call(first, last, *arguments)` runs `launches[first:last]` in order and returns None; or, once a kernel has
    recorded an error, stops after that launch and returns its (code, value). Slots are numbered through: one for each
    of `kinds`, one for each of `constants`, one for each pair in `derived`, which holds the sum of two earlier
    slots: an address within a workspace. `release_gil` lets other Python threads run meanwhile; it costs 0.1 µs.
    `owners`, the kernels' modules, live as long as `call` does. `serial` needs no OpenMP.
    """

    call: Callable[..., ErrorRecord | None]

    def __init__(
        self,
        kinds: str,
        launches: Sequence[Launch],
        *,
        constants: Sequence[int] = (),
        derived: Sequence[tuple[int, int]] = (),
        release_gil: bool = True,
        owners: Sequence[object] = (),
        serial: bool = False,
    ) -> None:
        records = [launch.words() for launch in launches]
        operands = [launch.operand_slots for launch in launches]
        n_words = 1 + max(map(len, operands), default=0)
        words = descriptor(kinds, constants, derived, records, operands, n_words, release_gil)
        self.call = bind(prepare(serial=serial), words, owners)


def descriptor(
    kinds: str,
    constants: Sequence[int],
    derived: Sequence[tuple[int, int]],
    records: Sequence[Sequence[int]],
    operands: Sequence[Sequence[int]],
    n_words: int,
    release_gil: bool = True,
) -> list[int]:
    """The words that `driver` describes; raises BackendError for an unknown kind or a slot that nothing fills.

    `records` are the words of each launch, `operands` the slots that it uses.
    """
    if unknown := sorted(set(kinds) - KINDS.keys()):
        raise BackendError("argument kinds", expected=f"only {', '.join(KINDS)}", got=", ".join(unknown))
    n_slots = len(kinds) + len(constants) + len(derived)
    _check_slots(len(kinds) + len(constants), derived, "derived slots")
    _check_slots(n_slots, operands, "kernel operands")
    sizes = (len(kinds), len(constants), len(derived), n_slots, len(records), n_words)
    head = [*sizes, int(release_gil), *(KINDS[kind] for kind in kinds), *constants]
    head += [slot for pair in derived for slot in pair]
    first = len(head) + len(records)
    starts = accumulate((len(record) for record in records[:-1]), initial=first) if records else ()
    return [*head, *starts, *(word for record in records for word in record)]


def _check_slots(n_slots: int, users: Sequence[Sequence[int]], subject: str) -> None:
    for slot in (slot for slots in users for slot in slots):
        if not 0 <= slot < n_slots:
            raise BackendError(subject, expected=f"slots below {n_slots}", got=str(slot))


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class NativeFunction(NamedTuple):
    """A native function in memory and what Python needs to know to call it."""

    module: NativeModule
    method: _MethodDef


_METH_FASTCALL = 0x80
_drivers: dict[bool, NativeFunction] = {}
_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def prepare(objects: ObjectCache | None = None, serial: bool = False) -> NativeFunction:
    """Compile the driver once, or load it from a cache: called early, it saves the first stretch some 30 ms.

    Raises BackendError where there is no OpenMP, unless `serial`.
    """
    if serial not in _drivers:
        imports = python_symbols() | ({} if serial else openmp.addresses())
        module = compile_module(driver.text(serial), objects=objects, imports=imports)
        _drivers.setdefault(serial, method_of(module))
    return _drivers[serial]


def method_of(module: NativeModule) -> NativeFunction:
    """The entry of a module that `driver` assembled."""
    return NativeFunction(module, _MethodDef(driver.ENTRY.encode(), module.address(driver.ENTRY), _METH_FASTCALL, None))


def python_symbols() -> dict[str, int]:
    """What the entry imports from the interpreter."""
    addresses = {symbol: _address_in_python(symbol) for symbol in driver.PYTHON_SYMBOLS}
    return {driver.DATA_PTR: id(_DATA_PTR), **addresses}


_DATA_PTR = sys.intern("data_ptr")


def _address_in_python(symbol: str) -> int:
    return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, symbol))


def bind(function: NativeFunction, words: Sequence[int], owners: Sequence[object]) -> Callable[..., ErrorRecord | None]:
    """A builtin that finds these words as its descriptor, and keeps the owners alive."""
    bound = (array("q", words).tobytes(), *owners)
    made: Callable[..., ErrorRecord | None] = _new_function(ctypes.addressof(function.method), bound, None)
    return made
