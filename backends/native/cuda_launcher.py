"""Stretches of CUDA launches as one Python callable: writes the descriptors that `cuda_driver` runs.

Gets addresses and handles as numbers; never loads CUDA itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from . import cuda_driver
from .jit import compile_module
from .launcher import ErrorRecord, NativeFunction, bind, descriptor, method_of, python_symbols
from .object_cache import ObjectCache


class CudaLaunch(NamedTuple):
    """A kernel by its cell (see `cuda_driver.LAUNCH`), and the slots that its stream, grid and parameters come from.

    `checked` are the slots whose values choose between the two functions of the cell. A grid of 0 launches nothing.
    """

    cell: int
    context: int
    stream: int
    grid: int
    parameters: tuple[int, ...]
    checked: tuple[int, ...] = ()

    def words(self, number: int) -> list[int]:
        head = (self.cell, self.context, self.stream, self.grid, number, len(self.checked), len(self.parameters))
        return [*head, *self.checked, *self.parameters]

    @property
    def slots(self) -> tuple[int, ...]:
        return (self.stream, self.grid, *self.checked, *self.parameters)


class CudaStretch:
    """Launches that are queued in one native call.

    `call(first, last, *arguments)` queues `launches[first:last]` and returns None; or, where one cannot be queued,
    stops there and returns (CUDA's status or `cuda_driver.UNMADE`, number of the launch). Slots are those of
    `launcher.Stretch`. A parameter of 32 bits is the lower half of its slot. `addresses` are those of
    `cuda_driver.SYMBOLS`. The GIL is released, since a full queue makes the driver wait.
    """

    call: Callable[..., ErrorRecord | None]

    def __init__(
        self,
        kinds: str,
        launches: Sequence[CudaLaunch],
        addresses: Mapping[str, int],
        *,
        constants: Sequence[int] = (),
        derived: Sequence[tuple[int, int]] = (),
        owners: Sequence[object] = (),
    ) -> None:
        records = [launch.words(number) for number, launch in enumerate(launches)]
        n_words = 1 + max((len(launch.parameters) for launch in launches), default=0)
        words = descriptor(kinds, constants, derived, records, [launch.slots for launch in launches], n_words)
        self.call = bind(prepare(addresses), words, owners)


_functions: dict[tuple[int, ...], NativeFunction] = {}


def prepare(addresses: Mapping[str, int], objects: ObjectCache | None = None) -> NativeFunction:
    """Compile the native code once per CUDA driver, or load it from a cache."""
    imports = {symbol: addresses[symbol] for symbol in cuda_driver.SYMBOLS}
    key = tuple(imports.values())
    if key not in _functions:
        module = compile_module(cuda_driver.text(), objects=objects, imports=python_symbols() | imports)
        _functions.setdefault(key, method_of(module))
    return _functions[key]
