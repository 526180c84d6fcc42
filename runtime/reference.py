"""Imported graphs in the reference interpreters, on torch's tensors and with torch's operators as externs.

For looking into faults: slow, and no part of what a compiled function runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch import Tensor
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from ..frontend.import_fx import FunctionResult, ImportedGraph, NumberInput, TensorInput
from ..frontend.symbols import SizeSource
from ..ir import graph
from ..ir.arithmetic import Array, dtype_of
from ..ir.expr import Expr
from ..ir.graph.attributes import Argument, Fields, Named, OperandRef
from ..ir.interpret import Interpretation
from .extern import leaves_of, named_object, resolve, tensors_of

# -- data --------------------------------------------------------------------------------------------


def to_array(value: Tensor) -> Array:
    """A copy in the order of the indices."""
    plain = value.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def to_tensor(value: Array) -> Tensor:
    whole = np.array(value, order="C")
    if whole.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(whole.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(whole)


def arguments_of(imported: ImportedGraph, inputs: Sequence[Any]) -> list[Any]:
    """The function's arguments from the inputs of the FX graph: integers for sizes, arrays for the rest."""
    return [
        _argument(source, inputs, argument.type)
        for source, argument in zip(imported.arguments, imported.function.body.block.args, strict=True)
    ]


def _argument(source: SizeSource | TensorInput | NumberInput, inputs: Sequence[Any], type_: Any) -> Any:
    if isinstance(source, SizeSource):
        return source.value(inputs)
    value = inputs[source.input]
    return to_array(value) if isinstance(value, Tensor) else np.asarray(value, dtype_of(type_))


# -- runs --------------------------------------------------------------------------------------------


class Watch(Interpreter.Listener):
    """Keeps the results of each op of the function itself."""

    def __init__(self) -> None:
        self.values: dict[Operation, PythonValues] = {}

    def will_interpret_op(self, op: Operation, args: PythonValues) -> None:
        """What goes in came out of another op."""

    def did_interpret_op(self, op: Operation, results: PythonValues) -> None:
        self.values[op] = results


class Reference:
    """Runs modules of any level that the interpreters know, with the objects that an import holds."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self.objects = objects
        self.weights = {name: to_array(value) for name, value in objects.items() if isinstance(value, Tensor)}

    def run(self, module: ModuleOp, arguments: Sequence[Any], *, watch: Watch | None = None) -> list[Array]:
        """The results, then the arguments as they are afterwards. The caller's stay as they are."""
        own = [np.array(value) if isinstance(value, np.ndarray) else value for value in arguments]
        interpretation = Interpretation(module, self.weights, self._extern)
        if watch is not None:
            interpretation.interpreter.listeners = (watch,)
        self._symbols = interpretation.symbols
        torch.manual_seed(0)
        return [*interpretation.call(own), *(value for value in own if isinstance(value, np.ndarray))]

    def _extern(self, op: graph.ExternOp, args: PythonValues) -> Sequence[Array | int]:
        tensors = [to_tensor(value) for value in args]
        call = op.arguments.data
        keywords = {name: self._value(value, tensors) for name, value in call.keywords}
        result = resolve(op.target.data)(*(self._value(value, tensors) for value in call.positional), **keywords)
        if not any(isinstance(value.type, IndexType) for value in op.results):
            return [to_array(value) for value in tensors_of(result)]
        return [to_array(value) if isinstance(value, Tensor) else value for value in leaves_of(result)]

    def _value(self, argument: Argument, tensors: Sequence[Tensor]) -> Any:
        match argument:
            case OperandRef(position, item):
                return tensors[position].item() if item else tensors[position]
            case Named():
                return named_object(argument, self.objects)
            case Expr():
                return int(argument.evaluate(lambda leaf: self._symbols[leaf.args[0]]))
            case tuple():
                return [self._value(value, tensors) for value in argument]
            case Fields(items):
                return {name: self._value(value, tensors) for name, value in items}
        return argument


def results_of(imported: ImportedGraph, outputs: Sequence[Any], inputs: Sequence[Any]) -> list[Array]:
    """What `Reference.run` gives, from what a run of the FX graph returned and left in its inputs."""
    found = {
        source.position: to_array(output) if isinstance(output, Tensor) else np.asarray(output)
        for source, output in zip(imported.results, outputs, strict=True)
        if isinstance(source, FunctionResult)
    }
    after = (value for value in arguments_of(imported, inputs) if isinstance(value, np.ndarray))
    return [*(found[position] for position in sorted(found)), *after]


# -- comparison --------------------------------------------------------------------------------------

TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 4e-2}
"""The greatest difference that rounding may make, relative to the greatest number of a tensor."""


def difference(found: Array, expected: Array) -> float:
    """The greatest difference of two arrays as a multiple of the tolerance of their type; infinite where shapes, NaN,
    infinities or numbers that are not floats differ."""
    found, expected = np.asarray(found), np.asarray(expected)
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return float("inf")
    tolerance = TOLERANCES.get(found.dtype.name)
    if tolerance is None:
        return 0.0 if np.array_equal(found, expected) else float("inf")
    left, right = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(left) & np.isfinite(right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    if not (same | finite).all():
        return float("inf")
    if not finite.any():
        return 0.0
    scale = max(np.abs(right[finite]).max(), np.finfo(np.float32).tiny)
    return float(np.abs(left[finite] - right[finite]).max() / scale / tolerance)


def differences(found: Sequence[Array], expected: Sequence[Array]) -> list[float]:
    return [difference(one, other) for one, other in zip(found, expected, strict=True)]
