"""A plan as CUDA graphs, for `mode="reduce-overhead"`: addresses that come again are recorded with it and replayed.

Inputs are never copied: a call with other addresses runs the plan itself. A recording is replayed only while nobody
holds its last results, so that no tensor ever changes under its owner.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch._C import _storage_Use_Count
from torch._C._dynamo import guards

from ..frontend.import_fx import ImportedGraph, NumberInput
from ..ir import host
from ..ir.graph.attributes import OperandRef
from .addresses import Places, addresses_of
from .plan import BoxedCall

MAX_PATTERNS = 8
"""Recordings hold memory of their own, so the pattern used longest ago is forgotten."""

MAX_TWINS = 2
"""Recordings of one pattern: a loop that still holds the last result when it asks for the next one needs two."""

reinterpret = guards._reinterpret_tensor  # type: ignore[attr-defined]

Pattern = tuple[Any, ...]


def why_not(imported: ImportedGraph) -> str | None:
    """What in a graph a CUDA graph would freeze, if anything."""
    if any(isinstance(source, NumberInput) for source in imported.arguments):
        return "an input is a Python number"
    return next((reason for op in imported.function.body.block.ops if (reason := _freezes(op))), None)


def launches(imported: ImportedGraph) -> int:
    """How many kernels and operators a call queues: one alone is queued faster than a graph is replayed."""
    ops = imported.function.body.block.ops
    return sum(len(op.runs) if isinstance(op, host.StretchOp) else isinstance(op, host.ExternOp) for op in ops)


def _freezes(op: Any) -> str | None:
    if not isinstance(op, host.ExternOp):
        return None
    if op.defines is not None:
        return f"{op.target.data} gives a size"
    if any(isinstance(argument, OperandRef) and argument.item for argument in op.arguments.data.flat()):
        return f"{op.target.data} reads a number from a tensor"
    return f"{op.target.data} works on another device" if op.target.data.startswith("torch.ops.") else None


class Owned:
    """A tensor that a recording writes, and how many hold its storage while nobody else does."""

    def __init__(self, tensor: Tensor) -> None:
        layout = tuple(tensor.shape), tensor.stride(), 0
        self.again: Callable[[], Tensor] = partial(reinterpret, reinterpret(tensor, *layout), *layout)
        """Makes a new tensor over the same memory."""
        self._storage = tensor.untyped_storage()
        self._holders = 0

    def settle(self) -> None:
        """Counts the holders, once all others have let go."""
        self._holders = self._count()

    def _count(self) -> int:
        return sys.getrefcount(self._storage) + int(_storage_Use_Count(self._storage._cdata))

    def is_free(self) -> bool:
        return self._count() == self._holders

    def result(self, args: Sequence[Any], results: Sequence[Any]) -> Tensor:
        return self.again()


class Same:
    """A result that is an input, or no tensor."""

    def __init__(self, value: Any, position: int | None) -> None:
        self._value, self._position = value, position

    def result(self, args: Sequence[Any], results: Sequence[Any]) -> Any:
        return self._value if self._position is None else args[self._position]


class View:
    """A result that lies in the memory of an input, or of an earlier result."""

    def __init__(self, tensor: Tensor, position: int, of_input: bool) -> None:
        self._layout = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        self._position, self._of_input = position, of_input

    def result(self, args: Sequence[Any], results: Sequence[Any]) -> Tensor:
        base: Tensor = (args if self._of_input else results)[self._position]
        return base.as_strided(*self._layout)


def described(results: Sequence[Any], args: Sequence[Any]) -> list[Owned | Same | View]:
    """How each result comes about in a replay, keeping none of the tensors."""
    inputs: dict[int, int] = {}
    owners: dict[int, int] = {}
    for position, value in enumerate(args):
        if isinstance(value, Tensor):
            inputs.setdefault(value.untyped_storage()._cdata, position)
    found: list[Owned | Same | View] = []
    for position, value in enumerate(results):
        if not isinstance(value, Tensor):
            found.append(Same(value, None))
            continue
        storage = value.untyped_storage()._cdata
        same = next((at for at, given in enumerate(args) if given is value), None)
        if same is not None:
            found.append(Same(None, same))
        elif storage in inputs:
            found.append(View(value, inputs[storage], of_input=True))
        elif owners.setdefault(storage, position) != position:
            found.append(View(value, owners[storage], of_input=False))
        else:
            found.append(Owned(value))
    return found


class Recording:
    """The kernels of one call, recorded for its addresses. Raises what the plan or CUDA raises."""

    def __init__(self, function: BoxedCall, args: Sequence[Any], device: torch.device) -> None:
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(device):
            self._results = described(self._capture(function, args, recording_stream(device)), args)
        self._owned = [result for result in self._results if isinstance(result, Owned)]
        for result in self._owned:
            result.settle()

    def _capture(self, function: BoxedCall, args: Sequence[Any], own: torch.cuda.Stream) -> list[Any]:
        current = torch.cuda.current_stream()
        own.wait_stream(current)
        with torch.cuda.stream(own):
            self._graph.capture_begin(capture_error_mode="thread_local")
            try:
                results = function([*args])
            finally:
                self._graph.capture_end()
        current.wait_stream(own)
        return results

    def is_free(self) -> bool:
        """Whether nobody holds a result of the last replay."""
        return all(result.is_free() for result in self._owned)

    def replay(self, args: Sequence[Any]) -> list[Any]:
        self._graph.replay()
        results: list[Any] = []
        for result in self._results:  # a training step has a hundred, nearly all its own
            results.append(result.again() if isinstance(result, Owned) else result.result(args, results))
        return results


@cache
def recording_stream(device: torch.device) -> torch.cuda.Stream:
    """One per device: libraries keep memory for each stream that they were used on."""
    return torch.cuda.Stream(device)


class GraphedPlan:
    """A plan that records and replays itself; `checks` are done before every replay. Where it is `fixed`, no two calls
    differ in sizes and strides."""

    def __init__(
        self,
        function: BoxedCall,
        name: str,
        device: torch.device,
        checks: Sequence[Callable[[], None]],
        *,
        fixed: bool = False,
    ) -> None:
        self._function = function
        self._name = name
        self._device = device
        self._checks = checks
        self._fixed = fixed
        self._last: tuple[Places, Pattern] | None = None
        self._recordings: OrderedDict[Pattern, list[Recording]] = OrderedDict()
        self._refused = False
        self._lock = threading.RLock()

    def __call__(self, args: list[Any]) -> list[Any]:
        results = None
        if not self._refused and not torch.cuda.is_current_stream_capturing():
            pattern = self._pattern(args)
            if pattern is not None:
                with self._lock:  # from the choice of a recording until its results are handed out
                    results = self._replay(pattern, args)
        if results is None:
            return self._function(args)
        args.clear()
        return results

    def _replay(self, pattern: Pattern, args: Sequence[Any]) -> list[Any] | None:
        """The results of a replay; None where there is nothing to replay."""
        recordings = self._recordings.get(pattern)
        if recordings is None:
            self._remember(pattern)
            return None
        for check in self._checks:
            check()
        self._recordings.move_to_end(pattern)
        recording = next((one for one in recordings if one.is_free()), None) or self._record(args, recordings)
        return None if recording is None else recording.replay(args)

    def _pattern(self, args: list[Any]) -> Pattern | None:
        """The addresses and layouts of a call, and its stream; None where they will not do."""
        stream = torch._C._cuda_getCurrentRawStream(self._device.index)
        found: list[Any] = [stream, torch.is_inference_mode_enabled()]
        last = self._last
        if last is not None and last[1][:2] == tuple(found) and last[0].hold(args):
            return last[1]
        for value in args:
            if not isinstance(value, Tensor):
                found.append(value)
            elif not value.is_cuda:
                self._refuse("an input is on the CPU")
                return None
            elif self._fixed:
                found.append(value.data_ptr())
            else:
                found += (value.data_ptr(), value.shape, value.stride())
        pattern = tuple(found)
        if self._fixed and all(isinstance(value, Tensor) for value in args):
            self._last = Places(addresses_of(args)), pattern
        return pattern

    def _remember(self, pattern: Pattern) -> None:
        """Notes a pattern that was seen once; forgets the one that was used longest ago."""
        self._recordings[pattern] = []
        if len(self._recordings) > MAX_PATTERNS:
            self._recordings.popitem(last=False)

    def _record(self, args: Sequence[Any], recordings: list[Recording]) -> Recording | None:
        if len(recordings) == MAX_TWINS:
            return None
        try:
            recording = Recording(self._function, args, self._device)
        except Exception as error:
            self._refuse(f"recording it failed: {type(error).__name__}: {error}")
            return None
        recordings.append(recording)
        return recording

    def _refuse(self, reason: str) -> None:
        self._refused = True
        self._recordings.clear()
        warn_refused(self._name, reason)


def warn_refused(name: str, reason: str) -> None:
    warnings.warn(f"stepwell runs a {name} graph without CUDA graphs: {reason}", stacklevel=2)
