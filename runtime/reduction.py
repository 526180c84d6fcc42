"""Makes a graph program that shows a fault smaller: fewer results, values as arguments in place of ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from xdsl.dialects.builtin import FunctionType, IndexType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ..frontend.import_fx import ArgumentSource, FunctionResult, ImportedGraph, TensorInput
from ..frontend.symbols import SizeSource
from ..ir.arithmetic import dtype_of
from ..ir.dtypes import element_of, is_native
from ..ir.graph.attributes import DataAttr
from ..ir.graph.storages import OFFSETS, STORAGES, storages_attr, storages_of
from ..ir.interpret import symbol_names
from ..ir.memory import Symbols, shape_of
from ..ir.shapes import layout_of
from ..ir.target import TARGET
from .observers import ir_text
from .reference import Reference, Watch, to_tensor

SHOWN_ELEMENTS = 64
"""Arguments of at most so many elements are written into the command that shows the fault."""


@dataclass(frozen=True)
class Case:
    """A module with `@main` at the graph level, and its arguments: integers for sizes, arrays for tensors."""

    module: ModuleOp
    arguments: tuple[Any, ...]

    @property
    def function(self) -> FuncOp:
        found = self.module.body.block.first_op
        assert isinstance(found, FuncOp)
        return found

    @property
    def sizes(self) -> list[int]:
        return [value for value in self.arguments if isinstance(value, int)]

    @property
    def ops(self) -> list[Operation]:
        return list(self.function.body.block.ops)

    @property
    def maker(self) -> Operation | None:
        """The op that makes the only result, if there is one."""
        results = self.ops[-1].operands
        owner = results[0].owner if len(results) == 1 else None
        return owner if isinstance(owner, Operation) else None

    def as_import(self, objects: Mapping[str, Any], target: Attribute) -> tuple[ImportedGraph, list[Any]]:
        """The case as if it were imported, with the inputs to call it with."""
        module = self.module.clone()
        module.attributes[TARGET] = target
        symbols = dict(zip(symbol_names(self.function), self.sizes, strict=True))
        inputs = [
            value if isinstance(value, int) else laid_out(to_tensor(value), argument.type, symbols)
            for value, argument in zip(self.arguments, self.function.body.block.args, strict=True)
        ]
        sources: list[ArgumentSource] = [
            SizeSource(position, None) if isinstance(value, int) else TensorInput(position)
            for position, value in enumerate(self.arguments)
        ]
        results = tuple(map(FunctionResult, range(len(self.function.function_type.outputs))))
        return ImportedGraph(module, tuple(sources), results, dict(objects)), inputs

    def text(self, passes: Sequence[str]) -> str:
        """The module under the commands that run it before and after passes."""
        shown = self.arguments_text()
        arguments = f" --args '{shown}'" if shown else ""
        run = f"stepwell-run{arguments}"
        header = f"// {run} FILE\n// xdsl-opt FILE -p {','.join(passes)} | {run}"
        return f"{header}\n{ir_text(self.module)}"

    def arguments_text(self) -> str:
        """The arguments as stepwell-run takes them; empty where they are too many."""
        arrays = [value for value in self.arguments if not isinstance(value, int)]
        if sum(np.size(value) for value in arrays) > SHOWN_ELEMENTS:
            return ""
        types = [argument.type for argument in self.function.body.block.args if isinstance(argument.type, TensorType)]
        sizes = [f"{value} : index" for value in self.sizes]
        data = [
            str(DataAttr.packed(element_of(type_), np.ascontiguousarray(value).tobytes()))
            for value, type_ in zip(arrays, types, strict=True)
        ]
        return ", ".join([*sizes, *data])


def laid_out(value: Tensor, type_: Attribute, symbols: Symbols) -> Tensor:
    """The tensor with the strides that its type says."""
    strides = shape_of(layout_of(type_).strides, symbols)
    return torch.empty_strided(value.shape, strides, dtype=value.dtype).copy_(value)


def reduce(case: Case, fails: Callable[[Case], bool], reference: Reference) -> Case:
    """The smallest case found that still fails: each step that keeps the failure is kept, until none does."""
    while (smaller := next((found for found in candidates(case, reference) if _still(fails, found)), None)) is not None:
        case = smaller
    return case


def _still(fails: Callable[[Case], bool], case: Case) -> bool:
    """Whether the case fails in the same way; one that does not even run is another failure."""
    try:
        case.module.verify()
        return fails(case)
    except Exception:
        return False


def candidates(case: Case, reference: Reference) -> Iterator[Case]:
    """Smaller cases: one result alone, an operand as the result in place of what is made of it, an argument in place
    of an op."""
    count = len(case.function.function_type.outputs)
    if count > 1:
        yield from (cleaned(case, keep=position) for position in range(count))
    else:
        yield from shortened(case)
    watch = Watch()
    reference.run(case.module, case.arguments, watch=watch)
    for position, op in enumerate(case.ops):
        if is_tensor_op(op):
            yield cleaned(cut(case, position, watch.values[op]))


def is_tensor_op(op: Operation) -> bool:
    """Whether arguments can stand for all results of the op."""
    types = [result.type for result in op.results]
    return bool(types) and all(isinstance(type_, TensorType) and is_native(element_of(type_)) for type_ in types)


def cut(case: Case, position: int, values: Sequence[Any]) -> Case:
    """The case with the values of an op as further arguments in its place."""
    made = Case(case.module.clone(), case.arguments)
    op, block = made.ops[position], made.function.body.block
    for result in op.results:
        result.replace_all_uses_with(block.insert_arg(result.type, len(block.args)))
    block.erase_op(op)
    arrays = (np.asarray(value, dtype_of(result.type)) for value, result in zip(values, op.results, strict=True))
    return Case(made.module, (*case.arguments, *arrays))


def shortened(case: Case) -> Iterator[Case]:
    """The case of one result with each tensor operand of the op that makes it as the result."""
    for position, type_ in enumerate(case.maker.operand_types if case.maker else ()):
        if isinstance(type_, TensorType):
            made = Case(case.module.clone(), case.arguments)
            assert made.maker is not None
            made.ops[-1].operands = [made.maker.operands[position]]
            yield cleaned(made)


def cleaned(case: Case, keep: int | None = None) -> Case:
    """The case with one result or all, without the ops and arguments that nothing uses."""
    made = Case(case.module.clone(), case.arguments)
    block, function = made.function.body.block, made.function
    last = block.last_op
    assert isinstance(last, ReturnOp)
    if keep is not None:
        last.operands = [last.operands[keep]]
    for op in reversed(list(block.ops)):
        if op is not last and is_side_effect_free(op) and all(result.first_use is None for result in op.results):
            block.erase_op(op)
    named = _named_symbols(function)
    arguments = [
        value
        for argument, value in list(zip(block.args, case.arguments, strict=True))
        if named or not _erased(argument)
    ]
    function.properties["function_type"] = FunctionType.from_lists(block.arg_types, last.operand_types)
    numbers = storages_of(function)
    if numbers is not None:
        _renumber(function, numbers if keep is None else (numbers[keep],), len(case.arguments))
    return Case(made.module, tuple(arguments))


def _named_symbols(function: FuncOp) -> bool:
    """Whether sizes have names, by position among the arguments: then no argument goes."""
    return any(isinstance(argument.type, IndexType) for argument in function.body.block.args)


def _erased(argument: SSAValue) -> bool:
    if argument.first_use is not None:
        return False
    argument.owner.erase_arg(argument)  # type: ignore[union-attr, arg-type]
    return True


def _renumber(function: FuncOp, numbers: Sequence[int], former: int) -> None:
    """No result is memory of an argument any more, since arguments have changed places."""
    count = len(function.body.block.args)
    function.attributes[STORAGES] = storages_attr(count + former + number for number in numbers)
    function.attributes.pop(OFFSETS, None)


__all__ = ["Case", "reduce"]
