"""From the host function in IR to one Python function: what runs at every call, and nothing else.

The source is meant to be read: `explain` and `dump` show it. All decisions were taken by the passes of the host
level; here each op becomes a line or two, and each object that a line needs becomes a global.
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch._C._autograd import _profiler_enabled as profiler_enabled
from torch._C._dynamo import guards
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from ..frontend.import_fx import ArgumentSource, ImportedGraph, NumberInput, TensorInput
from ..frontend.symbols import SizeSource
from ..ir import host
from ..ir.definitions import definitions_of
from ..ir.dtypes import dtype_name, is_integer, is_native
from ..ir.expr import ZERO, Expr
from ..ir.graph.attributes import Argument, Named, OperandRef
from ..ir.locations import location_text
from ..ir.shapes import SymbolDefinition, symbol_ranges
from .extern import DIRECT, as_promised, constant_tensor, leaves_of, named_object, resolve, result_shape, tensors_like
from .memory import MIN_POOLED_BYTES, POOL, Pool
from .python_text import Names, argument_text, expr_text, list_text, sizes_text, tuple_text
from .stretch import KernelCode, Separator, StretchCall, raise_error

INDENT = "    "

empty_strided_cpu, reinterpret = guards._empty_strided_cpu, guards._reinterpret_tensor  # type: ignore[attr-defined]
"""0.5 and 0.7 µs, half of what their public forms take."""

BoxedCall: TypeAlias = Callable[[list[Any]], list[Any]]

_numbers = count()


@dataclass(frozen=True)
class Plan:
    """The function of one compiled graph, and the text it was made from."""

    function: BoxedCall
    source: str
    stretches: tuple[StretchCall, ...]


class PlanWriter:
    """Writes the Python function of one host function, op by op. `reserved` are further names that it may not give."""

    def __init__(
        self,
        name: str,
        imported: ImportedGraph,
        input_count: int,
        codes: Mapping[str, KernelCode],
        pool: Pool = POOL,
        min_parallel_elements: int = 1,
        reserved: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.func = imported.function
        self.arguments = imported.arguments
        self.objects = imported.objects
        self.saved = imported.saved
        self.inputs = ["_"] * input_count
        self.codes = codes
        self.pool = pool
        self.min_parallel_elements = min_parallel_elements
        self.names = Names((*symbol_ranges(self.func), "args", "error", "profiling", "_", *reserved))
        self.values: dict[SSAValue, str] = {}
        self.addresses: dict[SSAValue, str] = {}
        """The variables of addresses that were asked for, since asking a tensor takes longer than passing a number."""
        self.as_eager: set[SSAValue] = set()
        self.globals: dict[str, Any] = {}
        self.bound: dict[Any, str] = {}
        self.lines: list[str] = []
        self.stretches: list[StretchCall] = []
        self.native_calls = 0
        self.place: str | None = None

    def write(self) -> Plan:
        name = self.names.take(self.name, "graph")
        self.unpack()
        for op in self.func.body.block.ops:
            self.note_place(op)
            getattr(self, WRITERS[type(op)])(op)
        body = "\n".join(INDENT + line for line in self.finished_lines())
        source = f"def {name}(args):\n{body}\n"
        return Plan(self.compile(name, source), source, tuple(self.stretches))

    def finished_lines(self) -> list[str]:
        """The lines, with what they presuppose before them."""
        if not self.native_calls:
            return self.lines
        return [f"profiling = {self.bind('profiler_enabled', profiler_enabled)}()", *self.lines]

    def compile(self, name: str, source: str) -> BoxedCall:
        """The function, its text known to tracebacks and debuggers."""
        filename = f"<stepwell {name} {next(_numbers)}>"
        exec(compile(source, filename, "exec"), self.globals)
        function: BoxedCall = self.globals.pop(name)  # or it would keep itself alive
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        weakref.finalize(function, linecache.cache.pop, filename, None)
        return function

    # -- helpers ----------------------------------------------------------------------------------

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def note_place(self, op: Operation) -> None:
        """The user's source line as a comment, where it changes."""
        place = location_text(op)
        if place is not None and place != self.place:
            self.place = place
            self.emit(f"# {place}")

    def bind(self, wish: str, value: Any, key: Any = None) -> str:
        """The global that holds an object; one name per object, or per key where objects are made anew."""
        key = id(value) if key is None else key
        if key not in self.bound:
            self.bound[key] = self.names.take(wish, "value")
            self.globals[self.bound[key]] = value
        return self.bound[key]

    def define(self, value: SSAValue, otherwise: str) -> str:
        self.values[value] = self.names.take(value.name_hint, otherwise)
        return self.values[value]

    def dtype(self, type_: host.BufferType) -> str:
        return self.bind(dtype_name(type_.element), _torch_dtype(type_))

    # -- arguments --------------------------------------------------------------------------------

    def unpack(self) -> None:
        """Names the inputs, drops the references in the caller's list, evaluates symbols and numbers."""
        for position in (*(source.input for source in self.arguments), *self._object_inputs()):
            self.inputs[position] = self.names.take(f"input_{position}", "input")
        for argument, source in self._sources():
            if isinstance(source, TensorInput):
                self.inputs[source.input] = self.define(argument, "input")
        if self.inputs:
            self.emit(f"{list_text(self.inputs)} = args")
        self.emit("args.clear()")
        for argument, source in self._sources():
            if isinstance(source, SizeSource):
                self.emit(f"{argument.name_hint} = {self._size_text(source)}")
            elif isinstance(source, NumberInput):
                self._number(argument, source)
        if "_" in self.inputs:
            self.emit("del _")

    def _object_inputs(self) -> Iterator[int]:
        """The positions of the inputs that calls and the return name as they are."""
        for op in self.func.body.block.ops:
            if isinstance(op, host.ExternOp | host.ReturnOp):
                for argument in op.arguments.data.flat():
                    if isinstance(argument, Named) and argument.kind == "input":
                        yield int(argument.name)

    def _sources(self) -> Iterator[tuple[SSAValue, ArgumentSource]]:
        return zip(self.func.body.block.args, self.arguments, strict=True)

    def _size_text(self, source: SizeSource) -> str:
        text = self.inputs[source.input]
        text += "" if source.dim is None else f".{source.measure}({source.dim})"
        text = f"({text} - {source.offset})" if source.offset else text
        return text if source.factor == 1 else f"{text} // {source.factor}"

    def _number(self, argument: SSAValue, source: NumberInput) -> None:
        """A Python float or bool, which kernels read from memory."""
        assert isinstance(argument.type, host.BufferType)
        name, make = self.define(argument, "number"), self.bind("scalar_tensor", torch.scalar_tensor)
        place = f"dtype={self.dtype(argument.type)}{self.number_device()}"
        self.emit(f"{name} = {make}({self.inputs[source.input]}, {place})")

    def number_device(self) -> str:
        """The argument that says where a number is put, if it is not the CPU."""
        return ""

    # -- memory -----------------------------------------------------------------------------------

    def alloc(self, op: host.AllocOp) -> None:
        type_ = op.buffer.type
        assert isinstance(type_, host.BufferType)
        layout = f"{sizes_text(type_.sizes)}, {sizes_text(type_.strides)}"
        self.emit(f"{self.define(op.buffer, 'buffer')} = {self.maker(type_)}({layout}, {self.dtype(type_)})")

    def maker(self, type_: host.BufferType) -> str:
        """What allocates: of small tensors it is known already that the pool does not keep them."""
        if is_native(type_.element) and type_.byte_span.is_constant and type_.byte_span.constant < MIN_POOLED_BYTES:
            return self.bind("empty_strided_cpu", empty_strided_cpu)
        return self.bind("empty_strided", self.pool.empty_strided, "empty_strided")

    def workspace(self, op: host.WorkspaceOp) -> None:
        make = self.bind("take_workspace", self.pool.workspace, "workspace")
        self.emit(f"{self.define(op.workspace, 'workspace')} = {make}({expr_text(op.byte_size)})")

    def slot(self, op: host.SlotOp) -> None:
        """Nothing at run time: the stretch that uses the slot adds its offset."""

    def view(self, op: host.ViewOp) -> None:
        type_, source = op.result.type, self.values[op.source]
        assert isinstance(type_, host.BufferType)
        layout, offset = f"{sizes_text(type_.sizes)}, {sizes_text(type_.strides)}", expr_text(op.element_offset)
        if all(_only_reads(use.operation) for use in op.result.uses):
            make = self.bind("reinterpret", reinterpret)
            self.emit(f"{self.define(op.result, 'view')} = {make}({source}, {layout}, {offset})")
            return
        offset = "" if op.element_offset == ZERO else f", {source}.storage_offset() + {offset}"
        self.emit(f"{self.define(op.result, 'view')} = {source}.as_strided({layout}{offset})")

    def copy(self, op: host.CopyOp) -> None:
        self.emit(f"{self.values[op.target]}.copy_({self.values[op.source]})")

    def separate(self, op: host.SeparateOp) -> None:
        results = [self.define(value, "argument") for value in op.results]
        asked = (*op.results, *op.written)
        self.addresses.update({value: self.names.take(f"{self.values[value]}_at", "address") for value in asked})
        found = list_text([*results, *(self.addresses[value] for value in asked)])
        lists = ", ".join(text for values in (op.sources, op.written) for text in self._with_spans(values))
        self.emit(f"{found} = {self.bind('separate', Separator(), op)}({lists})")

    def _with_spans(self, values: Sequence[SSAValue]) -> tuple[str, str]:
        """The tensors, and the bytes that each spans."""
        types = [value.type for value in values]
        spans = [expr_text(_byte_span(type_)) for type_ in types if isinstance(type_, host.BufferType)]
        return tuple_text(self.values[value] for value in values), tuple_text(spans)

    def free(self, op: host.FreeOp) -> None:
        self.emit(f"del {', '.join(self.values[value] for value in op.buffers)}")

    def weight(self, op: host.WeightOp) -> None:
        name = op.weight.data
        self.values[op.buffer] = self.bind(name.replace(".", "_"), self.objects[name], ("weight", name))

    def constant(self, op: host.ConstantOp) -> None:
        self.values[op.buffer] = self.bind(op.buffer.name_hint or "constant", self.constant_value(op), op)

    def constant_value(self, op: host.ConstantOp) -> Tensor:
        assert isinstance(op.buffer.type, host.BufferType)
        return constant_tensor(op.value, [size.constant for size in op.buffer.type.sizes])

    # -- calls ------------------------------------------------------------------------------------

    def stretch(self, op: host.StretchOp) -> None:
        call = StretchCall.of(op, self.codes, self.min_parallel_elements, self.addresses.keys())
        self.stretches.append(call)
        run, profiled = self.bind_call(call.native.call, call.run_profiled)
        arguments = "".join(f", {text}" for text in call.argument_texts(self.values | self.addresses))
        for first, last in call.parts:
            text = f"({profiled} if profiling else {run})({first}, {last}{arguments})"
            failing = call.failing(first, last)
            self.emit(text if failing is None else f"error = {text}")
            if failing is not None:
                self.check(failing)

    def bind_call(self, *ways: Callable[..., Any]) -> list[str]:
        """The globals that hold the ways of running one more native call: plainly, profiled, and after a stop."""
        number = self.native_calls
        self.native_calls += 1
        names = ("stretch", "profiled", "go_on")[: len(ways)]
        return [self.bind(f"{name}_{number}", way, (name, number)) for name, way in zip(names, ways, strict=True)]

    def check(self, code: KernelCode) -> None:
        errors = self.bind(f"errors_of_{code.name}", code.errors, ("errors", code.name))
        fail = self.bind("raise_error", raise_error)
        self.emit(f"if error is not None: {fail}({errors}, error)")

    def extern(self, op: host.ExternOp) -> None:
        target, arguments = op.target.data, op.arguments.data
        operands = [self.values[value] for value in op.operands]
        call = self.bind(target.replace(".", "_"), resolve(target), target)
        frozen = target.startswith("higher_order.")  # whose lists are traced as tuples, and must be such again

        def text(argument: Argument) -> str:
            return argument_text(argument, operands, self.named, frozen)

        texts = [text(argument) for argument in arguments.positional]
        texts += [f"{name}={text(value)}" for name, value in arguments.keywords]
        results = [self.define(value, "result") for value in op.results]
        self.emit(self._assignment(op, results, f"{call}({', '.join(texts)})"))
        for definition in definitions_of(op):
            self.emit(f"{definition.name} = {_definition_text(definition, results[definition.result])}")
        for value in op.results:
            if any(_needs_promise(use.operation) for use in value.uses):
                self.emit_promise(value)
            elif isinstance(value.type, host.BufferType):
                self.as_eager.add(value)

    def _assignment(self, op: host.ExternOp, results: Sequence[str], call: str) -> str:
        if not results:
            return call
        if any(isinstance(value.type, IndexType) for value in op.results):
            return f"{list_text(results)} = {self.bind('leaves_of', leaves_of)}({call})"
        shape = result_shape(op.target.data, len(results))
        if shape == "mixed":
            types = [value.type for value in op.results]
            wanted = [f"({self.dtype(t)}, {len(t.sizes)})" for t in types if isinstance(t, host.BufferType)]
            call = f"{self.bind('tensors_like', tensors_like)}({call}, {tuple_text(wanted)})"
        return f"{results[0] if shape == 'one' else list_text(results)} = {call}"

    def emit_promise(self, value: SSAValue) -> None:
        """Later code was made for the strides and the type that the fake tensor had."""
        type_, name = value.type, self.values[value]
        if isinstance(type_, host.BufferType):
            broken = f"{name}.stride() != {sizes_text(type_.strides)} or " if type_.strides else ""
            self.emit(f"if {broken}{name}.dtype is not {self.dtype(type_)}: {name} = {self.promised(name, type_)}")

    def promised(self, name: str, type_: host.BufferType) -> str:
        keep = self.bind("as_promised", as_promised)
        return f"{keep}({name}, {sizes_text(type_.sizes)}, {sizes_text(type_.strides)}, {self.dtype(type_)})"

    def named(self, named: Named) -> str:
        if named.kind == "input":
            return self.inputs[int(named.name)]
        return self.bind(named.name.replace(":", "_"), named_object(named, self.objects), named)

    def finish(self, op: host.ReturnOp) -> None:
        """A tensor that is returned twice is returned as two objects: autograd marks one and not the other. Not so
        integers, which it marks never; by the object that holds its offsets a nested tensor is known."""
        operands = [
            f"{self.values[value]}.view_as({self.values[value]})"
            if value in op.operands[:position] and not _holds_integers(value)
            else self.values[value]
            for position, value in enumerate(op.operands)
        ]
        arguments = op.arguments.data.positional
        for argument in arguments[len(arguments) - self.saved :]:  # for a graph that relies on their strides
            if isinstance(argument, OperandRef) and (value := op.operands[argument.position]) in self.as_eager:
                assert isinstance(value.type, host.BufferType)
                operands[argument.position] = self.promised(operands[argument.position], value.type)
        results = [argument_text(argument, operands, self.named) for argument in arguments]
        self.emit(f"return [{', '.join(results)}]")


_MEASURED = {"value": "int({})", "size": "{}.size({})", "offset": "{}.storage_offset()"}


def _definition_text(definition: SymbolDefinition, result: str) -> str:
    """A symbol's value, read from the variable of the result that has it."""
    text = _MEASURED[definition.measure].format(result, definition.dim)
    return text if definition.divisor == 1 else f"{text} // {definition.divisor}"


_VIEWS = ("aten.view.default", "aten._unsafe_view.default", "aten.as_strided.default")
"""Operators that were chosen, or whose arguments were computed, for the strides that were promised."""


def _needs_promise(op: Operation) -> bool:
    """Whether an op was compiled for the strides of its operands. Eager's operators take any, and what they give then
    is eager's, too; results of the graph are eager's as they are, but for those that are saved."""
    if isinstance(op, host.ExternOp):
        return not op.target.data.startswith("aten.") or op.target.data in _VIEWS
    return not isinstance(op, host.FreeOp | host.ReturnOp)


def _torch_dtype(type_: host.BufferType) -> torch.dtype:
    dtype = getattr(torch, dtype_name(type_.element))
    assert isinstance(dtype, torch.dtype)
    return dtype


def _byte_span(type_: host.BufferType) -> Expr:
    """Bytes from the first element to the end of the last, of any type that torch has."""
    return type_.element_span * _torch_dtype(type_).itemsize


def _only_reads(op: Operation) -> bool:
    """Whether an op neither keeps a tensor nor gives a view of it: then a view need not know of its base."""
    return isinstance(op, host.RunOp | host.FreeOp) or (isinstance(op, host.ExternOp) and op.target.data in DIRECT)


def _holds_integers(value: SSAValue) -> bool:
    return isinstance(value.type, host.BufferType) and is_integer(value.type.element)


WRITERS: dict[type[Operation], str] = {
    host.AllocOp: "alloc",
    host.WorkspaceOp: "workspace",
    host.SlotOp: "slot",
    host.ViewOp: "view",
    host.CopyOp: "copy",
    host.SeparateOp: "separate",
    host.FreeOp: "free",
    host.WeightOp: "weight",
    host.ConstantOp: "constant",
    host.StretchOp: "stretch",
    host.ExternOp: "extern",
    host.ReturnOp: "finish",
}
"""The ops of the buffer form, and the method that says each in Python."""
