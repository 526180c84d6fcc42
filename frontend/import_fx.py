"""FX graphs of ATen ops become the graph dialect, op by op: by the tables of `frontend.aten`, else as externs.

It keeps dtypes, shapes, strides, symbolic sizes, mutations and source lines. It decides nothing about speed.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import string_at
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import SymBool, SymFloat, SymInt, Tensor, fx
from torch._higher_order_ops.effects import with_effects
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, IndexType, IntAttr, LocationAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ..ir.dtypes import FLOAT64, is_native
from ..ir.errors import FrontendError, StepwellError
from ..ir.expr import Expr
from ..ir.graph import (
    Arguments,
    ConstantOp,
    CopyIntoOp,
    DataAttr,
    ExternOp,
    SizeOp,
    WeightOp,
)
from ..ir.graph.storages import OFFSETS, OWN, STORAGES, storages_attr
from ..ir.locations import file_line, source_lines
from ..ir.shapes import SYMBOLS, DefinitionsAttr, SymbolAttr, tensor_type
from . import devices
from .aten import TABLE
from .aten.creation import ALLOCATIONS
from .aten.refusals import overflows, refuses
from .builder import Declined, GraphBuilder, Value, WeakValue, element_for
from .data_sizes import ASSERT, Check, DataSizes, bindings_of
from .externs import CallArguments, HeldObject, ObjectInput, effect_of, target_name
from .formulas import Formulas
from .scalars import number_value
from .symbols import SizeSource, SymbolTable

INDEX = IndexType()
SMALL_CONSTANT = 64
"""A held tensor of at most so many elements is written into the IR."""

# -- what an import gives ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorInput:
    """An argument that is an FX input as it is."""

    input: int


@dataclass(frozen=True)
class NumberInput:
    """An argument of rank 0 that holds a Python float (f64) or bool (i1) which is an FX input."""

    input: int


ArgumentSource: TypeAlias = SizeSource | TensorInput | NumberInput


@dataclass(frozen=True)
class FunctionResult:
    """An output that is a result of the function: a tensor, an index for a SymInt, or the Python number in a tensor."""

    position: int
    item: bool = False


@dataclass(frozen=True)
class ConstantResult:
    """An output that is a Python constant, mostly None, or by its name an input that is an object."""

    value: Any


ResultSource: TypeAlias = FunctionResult | ConstantResult


SAVED = "stepwell_saved"
"""In the `meta` of an output node: how many of the last results only the backward graph takes."""


@dataclass
class ImportedGraph:
    """A module with `func.func @main`, and how its arguments and results meet those of the FX graph.

    `objects` holds what has no text: held tensors by the name of their `graph.weight`, and other attributes of
    the FX module that externs name. `mutated` are the positions of the FX inputs that the function writes. `device` is
    where its kernels run. So many of the last results are `saved` for a graph that was made for their strides.
    """

    module: ModuleOp
    arguments: tuple[ArgumentSource, ...]
    results: tuple[ResultSource, ...]
    objects: dict[str, Any] = field(default_factory=dict)
    mutated: tuple[int, ...] = ()
    device: torch.device = devices.CPU
    saved: int = 0

    @property
    def function(self) -> FuncOp:
        function = self.module.body.block.first_op
        assert isinstance(function, FuncOp)
        return function


def import_graph(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> ImportedGraph:
    """Imports the FX graph; its nodes carry fake values in `meta["val"]`.

    Raises FrontendError for sizes that no input determines.
    """
    return _Importer(gm, example_inputs).run()


# -- types -------------------------------------------------------------------------------------------


def is_empty(value: Any) -> bool:
    """Whether it is a tensor that has no elements whatever the symbols are."""
    return isinstance(value, Tensor) and any(type(size) is int and size == 0 for size in value.shape)


def is_plain(value: Tensor) -> bool:
    """Whether the tensor is dense and strided, so that its layout says where its elements lie."""
    return value.layout == torch.strided and not value.is_quantized


def type_of(value: Tensor, symbols: SymbolTable) -> Attribute:
    """The tensor type with the strides that eager shows; row-major where there are none."""
    shape, strides = tuple(value.shape), value.stride() if is_plain(value) else None
    if all(type(size) is int for size in (*shape, *(strides or ()))):
        return _static_type(value.dtype, shape, strides)
    return tensor_type(
        element_for(value.dtype), symbols.exprs(shape), None if strides is None else symbols.exprs(strides)
    )


@lru_cache(maxsize=1 << 14)
def _static_type(dtype: torch.dtype, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> Attribute:
    return tensor_type(element_for(dtype), shape, strides)


# -- locations ---------------------------------------------------------------------------------------

_FRAME = re.compile(r'File "(.+?)", line (\d+)')
_TORCH = str(Path(torch.__file__).parent)


@lru_cache(maxsize=4096)
def location_of(trace: str | None) -> LocationAttr:
    """The innermost frame of a stack trace that is not torch's own."""
    frames = _FRAME.findall(trace or "")
    if not frames:
        return UNKNOWN_LOC
    own = [frame for frame in frames if not frame[0].startswith(_TORCH)]
    filename, line = (own or frames)[-1]
    return file_line(filename, int(line))


# -- the importer ------------------------------------------------------------------------------------


class _Importer:
    """The import of one graph."""

    def __init__(self, gm: fx.GraphModule, example_inputs: Sequence[Any]) -> None:
        self.gm = gm
        self.placeholders = gm.graph.find_nodes(op="placeholder")
        self.inputs = [
            node.meta.get("val", example) for node, example in zip(self.placeholders, example_inputs, strict=True)
        ]
        self.symbols = SymbolTable()
        self.builder = GraphBuilder(Block(), self.symbols)
        self.values: dict[fx.Node, Any] = {}
        self.home = devices.home_device(gm.graph)
        self.formulas = Formulas(self.builder, self.home)
        self.brought: dict[fx.Node, Value] = {}
        self.numbers: dict[fx.Node, DataAttr] = {}
        self.objects: dict[str, Any] = {}
        self.mutated: list[int] = []
        self.sizes: DataSizes
        self.written: dict[
            fx.Node, fx.Node
        ] = {}  # what `copy_` returns is its target: as an output it is no new tensor
        self.own = count()
        returned = Counter(map(_storage, gm.graph.output_node().all_input_nodes))
        self.shared = {memory for memory, times in returned.items() if times > 1}
        self.shown = {node for result in gm.graph.output_node().all_input_nodes for node in _open_views(result)}
        self.results: list[ResultSource] = []
        self.storages: list[int] = []
        self.offsets: list[int] = []

    def run(self) -> ImportedGraph:
        arguments = self._arguments()
        returned: list[SSAValue] = []
        saved = 0
        for node in self.gm.graph.nodes:
            if node.op == "output":
                returned, saved = self._outputs(node.args[0]), node.meta.get(SAVED, 0)
            elif node.op != "placeholder":
                self.values[node] = self._import(node)
        return ImportedGraph(
            self._module(returned),
            tuple(arguments),
            tuple(self.results),
            self.objects,
            tuple(self.mutated),
            self.home,
            saved,
        )

    def _module(self, returned: list[SSAValue]) -> ModuleOp:
        block = self.builder.block
        block.add_op(ReturnOp(*returned))
        types = ([*block.arg_types], [value.type for value in returned])
        function = FuncOp("main", types, Region(block))
        if self.symbols.ranges:
            function.attributes[SYMBOLS] = ArrayAttr([SymbolAttr(known) for known in self.symbols.ranges])
        function.attributes[STORAGES] = storages_attr(self.storages)
        if len(set(self.storages)) < len(self.storages):
            function.attributes[OFFSETS] = storages_attr(self.offsets)
        return ModuleOp([function])

    # -- inputs and outputs ----------------------------------------------------------------------

    def _arguments(self) -> list[ArgumentSource]:
        """Declares the function's arguments: symbols first, then what the inputs hold."""
        self.symbols.declare(self.inputs)
        arguments: list[ArgumentSource] = list(self.symbols.sources)
        for known in self.symbols.ranges:
            self._argument(INDEX, known.name)
        self.sizes = DataSizes(self.gm.graph, self.symbols)
        for position, (node, value) in enumerate(zip(self.placeholders, self.inputs, strict=True)):
            if _is_token(node):
                self.values[node] = None
            elif isinstance(value, Tensor):
                arguments.append(TensorInput(position))
                argument = self._argument(type_of(value, self.symbols), node.name)
                self.values[node] = Value(self.builder, argument)
            elif isinstance(value, SymFloat | SymBool):
                arguments.append(NumberInput(position))
                element = FLOAT64 if isinstance(value, SymFloat) else element_for(torch.bool)
                number = WeakValue(self.builder, self._argument(tensor_type(element, ()), node.name))
                self.values[node] = self.builder.numbers[value.node.expr] = number
            elif value is None or isinstance(value, SymInt | int | float | str):
                self.values[node] = self._constant(value)
            else:
                self.values[node] = ObjectInput(position)
        self.symbols.formula = self.formulas.integer
        return arguments

    def _argument(self, type_: Attribute, name: str) -> SSAValue:
        block = self.builder.block
        argument = block.insert_arg(type_, len(block.args))
        argument.name_hint = name
        return argument

    def _constant(self, value: Any) -> Any:
        """A size as an int or an expression, another symbolic number as a value; everything else as it is."""
        if isinstance(value, SymFloat | SymBool):
            return number_value(self.builder, self.formulas, value.node.expr)
        if not isinstance(value, SymInt):
            return value
        expr = self.symbols.expr(value)
        return expr.constant if expr.is_constant else expr

    def _outputs(self, outputs: Any) -> list[SSAValue]:
        returned: list[SSAValue] = []
        numbers = self._argument_storages()
        for output in outputs if isinstance(outputs, tuple | list) else (outputs,):
            output = self.written.get(output, output)
            value = self._argument_value(output)
            if isinstance(value, Expr):
                self.results.append(FunctionResult(len(returned)))
                returned.append(self.builder.emit(SizeOp.make(value, INDEX)).ssa)
                self.storages.append(-1)
                self.offsets.append(-1)
            elif isinstance(value, Value):
                self.results.append(FunctionResult(len(returned), item=value.WEAK))
                returned.append(value.ssa)
                fresh = len(self.builder.block.args) + len(numbers)
                self.storages.append(
                    value.ssa.index  # even where two arguments share memory
                    if isinstance(value.ssa, BlockArgument)
                    else numbers.setdefault(_storage(output), fresh)
                )
                self.offsets.append(_offset(output))
            else:
                self.results.append(ConstantResult(value.named if isinstance(value, ObjectInput) else value))
        return returned

    def _argument_storages(self) -> dict[int, int]:
        """The memory of each tensor argument, by the argument's position in the function."""
        owned = [(node, self.values[node]) for node in self.placeholders]
        return {
            _storage(node): value.ssa.index
            for node, value in owned
            if isinstance(value, Value) and isinstance(value.ssa, BlockArgument)
        }

    def _argument_value(self, argument: Any) -> Any:
        """An FX argument with nodes replaced by their values, lists kept."""
        if isinstance(argument, fx.Node):
            return self._argument_value(self.values[argument])
        if isinstance(argument, tuple | list):
            return [self._argument_value(item) for item in argument]
        if isinstance(argument, dict):
            return {name: self._argument_value(item) for name, item in argument.items()}
        return self._constant(argument)

    # -- nodes -----------------------------------------------------------------------------------

    def _import(self, node: fx.Node) -> Any:
        """The value of a node: a Value, a size, a list of such, or None."""
        location = self.builder.location = location_of(node.meta.get("stack_trace"))
        try:
            if node.op == "get_attr":
                return self._attribute(node, location)
            return self._call(node, location)
        except StepwellError as error:
            error.location = error.location or next(iter(source_lines(location)), None)
            raise
        except Exception as error:
            raise FrontendError(
                f"import of {node.target}",
                expected="a graph op",
                got=f"{type(error).__name__}: {error}",
                location=next(iter(source_lines(location)), None),
            ) from error

    def _attribute(self, node: fx.Node, location: LocationAttr) -> Any:
        name = str(node.target)
        value = operator.attrgetter(name)(self.gm)
        if not isinstance(value, Tensor):
            self.objects[name] = value
            return HeldObject(name)
        type_ = type_of(value, self.symbols)
        self.builder.begin(node, (type_,), location)
        constant = _small_constant(value)
        if constant is not None and devices.is_away(self.home, value):
            self.numbers[node] = constant
        elif constant is not None:
            return self._named(self.builder.emit(ConstantOp.make(constant, type_)), node)
        self.objects[name] = value
        return self._named(self.builder.emit(WeightOp.make(name, type_)), node)

    def _call(self, node: fx.Node, location: LocationAttr) -> Any:
        result = node.meta.get("val")
        if isinstance(result, SymInt | SymFloat | SymBool | int | float) and not bindings_of(node):
            return result  # what its users make of it
        if node.target is ASSERT and (condition := self.sizes.expr(node.args[0])) is not None:
            return self._check(self.sizes.unmade([Check(condition, str(node.args[1]))]))
        arguments = self._argument_value(node.args)
        if node.target is operator.getitem:
            return arguments[0][arguments[1]]
        if isinstance(result, SymFloat):
            return self._number(node, self._brought_home(node.args[0]))
        keywords = self._argument_value(node.kwargs)
        if node.target is with_effects:
            return self._ordered(node, location, arguments, keywords)
        target = node.args[0] if node.args else None
        if node.target is torch.ops.aten.copy_.default and isinstance(target, fx.Node) and target.op == "placeholder":
            return self._mutation(node, target, arguments[1], location)
        self.builder.begin(node, tuple(self._result_types(result)), location)
        may_be_native = node not in self.sizes.definitions and devices.runs_at(self.home, node)
        may_be_native = may_be_native and not _computes_nothing(node) and not _sees_negated(node)
        may_be_native = may_be_native and node not in self.shown
        may_be_native = may_be_native and not (node.target is VIEW_DTYPE and _storage(node) in self.shared)
        if may_be_native and self._is_native(result, (arguments, keywords)):
            try:
                return self._native(node, self._brought_home(node.args), self._brought_home(node.kwargs))
            except Declined:
                pass
        return self._extern(node, node.target, result, arguments, keywords)

    def _mutation(self, node: fx.Node, target: fx.Node, value: Value, location: LocationAttr) -> Value:
        """The write of a mutated input; later readers take the value that was written."""
        argument: Value = self.values[target]
        self.builder.begin(node, (argument.ssa.type,), location)
        value = value.to(argument.element).broadcast(argument.sizes)
        if _is_negated(target):
            self._extern(node, node.target, node.meta["val"], [argument, value], {})
        else:
            self.builder.append(CopyIntoOp.make(value.ssa, argument.ssa))
        self.mutated.append(self.placeholders.index(target))
        self.written[node] = target
        return value

    # -- sizes and numbers that depend on data ---------------------------------------------------

    def _number(self, node: fx.Node, tensor: Value) -> Any:
        """The float in a tensor, which stays there."""
        self.builder.begin(node, (), self.builder.location)
        for found in bindings_of(node):
            for name in (found, node.meta["val"].node.shape_env.replace(found)):
                self.builder.numbers[name] = tensor.reshape(()).to(FLOAT64)
        return node.meta["val"]

    def _check(self, checks: Iterable[Check]) -> None:
        for check in checks:
            arguments = Arguments((check.condition, check.message))
            self.builder.append(ExternOp.make(target_name(ASSERT), (), arguments, (), effect_of(ASSERT)))

    # -- devices ---------------------------------------------------------------------------------

    def _brought_home(self, argument: Any) -> Any:
        """An FX argument as `_argument_value` gives it, tensors elsewhere brought to the home device."""
        return self._argument_value(fx.map_arg(argument, self._at_home))

    def _at_home(self, node: fx.Node) -> Any:
        """The value of a node for a kernel: a number that lies elsewhere as a constant, or copied once."""
        if not devices.is_away(self.home, node.meta.get("val")):
            return self.values[node]
        if node not in self.brought:
            self.brought[node] = Value(self.builder, self._bring(node))
        return self.brought[node]

    def _bring(self, node: fx.Node) -> SSAValue:
        value = self.values[node]
        if node in self.numbers:
            return self.builder.emit(ConstantOp.make(self.numbers[node], value.ssa.type)).ssa
        call = CallArguments(self.objects)
        arguments = call.convert([value], {"device": self.home})
        copy = torch.ops.aten._to_copy.default
        op = ExternOp.make(target_name(copy), call.inputs, arguments, [value.ssa.type], effect_of(copy))
        self.builder.append(op)
        return op.results[0]

    def _keep_number(self, node: fx.Node) -> None:
        """Notes what a copy of a known number holds."""
        source = node.args[0] if node.target is torch.ops.aten.lift_fresh_copy.default else None
        if isinstance(source, fx.Node) and source in self.numbers:
            self.numbers[node] = self.numbers[source]

    # -- native ops ------------------------------------------------------------------------------

    def _result_types(self, result: Any) -> Iterator[Attribute | None]:
        for leaf in devices.leaves_of(result):
            yield type_of(leaf, self.symbols) if isinstance(leaf, Tensor) else None

    def _is_native(self, result: Any, operands: Any) -> bool:
        """Whether all tensors are plain and of native element types."""
        if not all(is_plain(leaf) for leaf in devices.leaves_of(result) if isinstance(leaf, Tensor)):
            return False
        types = (type_ for type_ in self.builder.results if type_ is not None)
        return all(is_native(type_.element_type) for type_ in types) and all(  # type: ignore[attr-defined]
            is_native(value.element) for value in _tensors(operands)
        )

    def _native(self, node: fx.Node, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        single = _single(node.target)
        if single is not None:
            return self._each(node, single, arguments, keywords)
        value = self._row(node.target, arguments, keywords)(self.builder, *arguments, **keywords)
        if isinstance(value, tuple | list):
            return [self._finished(node, one, wanted) for one, wanted in zip(value, self.builder.results, strict=True)]
        return self._finished(node, value, self.builder.type)

    def _row(self, target: Any, arguments: list[Any], keywords: dict[str, Any]) -> Callable[..., Any]:
        """The row of an overload; raises Declined where it has none, or eager refuses the types of its tensors or may
        refuse its numbers."""
        elements = [value.element for value in _tensors(arguments)]
        if target not in TABLE or (elements and refuses(target, elements)):
            raise Declined
        if overflows(self.builder, target, arguments, keywords):
            raise Declined
        return TABLE[target]

    def _finished(self, node: fx.Node, value: Value | None, wanted: Attribute | None) -> Value | None:
        if value is None or wanted is None:
            return None
        finished = self.builder.finish(value, wanted, _gives_alias(node.target))
        return self._named(Value(self.builder, finished.ssa), node)  # a tensor, whatever number it was made of

    def _each(self, node: fx.Node, target: OpOverload, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """A `_foreach_` op: that of single tensors for each element of its lists. Numbers that one of these refuses in
        some types, bools and complex ones, are left to eager: torch does not ask on behalf of lists."""
        wanted, location = self.builder.results, self.builder.location
        values = []
        try:
            for position, type_ in enumerate(wanted):
                self.builder.begin(node, (type_,), location)
                one = [argument[position] if isinstance(argument, list) else argument for argument in arguments]
                if any(isinstance(argument, bool | complex) for argument in (*one, *keywords.values())):
                    raise Declined
                value = self._row(target, one, keywords)(self.builder, *one, **keywords)
                values.append(self._finished(node, value, type_))
        finally:
            self.builder.begin(node, wanted, location)
        return values

    def _named(self, value: Value, node: fx.Node) -> Value:
        value.ssa.name_hint = node.name
        return value

    # -- externs ---------------------------------------------------------------------------------

    def _extern(self, node: fx.Node, target: Any, result: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """The eager op with all its arguments."""
        call = CallArguments(self.objects)
        converted = call.convert(arguments, keywords)
        if _gives_alias(target):
            self._keep_apart(call.inputs)
        types, defines = self._results_of_extern(node, result)
        self._keep_number(node)
        op = ExternOp.make(
            self._name_of(node, target),
            call.inputs,
            converted,
            types,
            effect_of(target),
            self.builder.location,
            defines,
        )
        self.builder.append(op)
        self._check(self.sizes.checks(node))
        values = (value for value in op.results if value.type != INDEX)

        def take(part: Any) -> Any:
            if isinstance(part, dict):
                return {name: take(inner) for name, inner in part.items()}
            if isinstance(part, tuple | list):
                return [take(inner) for inner in part]
            return self._named(Value(self.builder, next(values)), node) if isinstance(part, Tensor) else part

        return take(result)

    def _keep_apart(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            if isinstance(value.owner, Operation):
                value.owner.attributes.setdefault(OWN, IntAttr(next(self.own)))

    def _name_of(self, node: fx.Node, target: Any) -> str:
        """An operator whose results lie elsewhere is named in full: no pass knows it, or gives it memory at home."""
        away = any(devices.is_away(self.home, value) for value in devices.tensors_of(node))
        return f"torch.ops.{target_name(target)}" if away and isinstance(target, OpOverload) else target_name(target)

    def _results_of_extern(self, node: fx.Node, result: Any) -> tuple[list[Attribute], DefinitionsAttr | None]:
        """The types of a call's results, and the symbols that these define: its tensors, and, if some symbol is a
        number that it gives, all its numbers."""
        definitions = self.sizes.definitions.get(node, ())
        types = list(self.builder.results)
        if any(known.measure == "value" for known in definitions):
            numbers = [isinstance(leaf, SymInt | SymBool | int) for leaf in devices.leaves_of(result)]
            types = [INDEX if number else type_ for number, type_ in zip(numbers, types, strict=True)]
        placed = [
            replace(known, result=sum(type_ is not None for type_ in types[: known.result])) for known in definitions
        ]
        present = [type_ for type_ in types if type_ is not None]
        return present, DefinitionsAttr(tuple(placed)) if placed else None

    def _ordered(self, node: fx.Node, location: LocationAttr, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """`with_effects(token, op, …)` is a call of the op; its declared effect keeps its place, so that tokens,
        which AOTAutograd passes as None, are not needed."""
        result = node.meta["val"][1:]
        self.builder.begin(node, tuple(self._result_types(result)), location)
        return [None, *self._extern(node, node.args[1], result, arguments[2:], keywords)]


def _tensors(arguments: Any) -> Iterator[Value]:
    if isinstance(arguments, Value):
        yield arguments
    elif isinstance(arguments, tuple | list):
        for argument in arguments:
            yield from _tensors(argument)
    elif isinstance(arguments, dict):
        yield from _tensors([*arguments.values()])


def _small_constant(value: Tensor) -> DataAttr | None:
    """The elements of a small tensor that holds some."""
    element = element_for(value.dtype)
    plain = type(value) is Tensor and value.device.type == "cpu" and is_plain(value) and value.is_contiguous()
    if not plain or not is_native(element) or not 0 < value.numel() <= SMALL_CONSTANT:
        return None
    # Read from memory, because under a fake mode no tensor op would give the real elements.
    return DataAttr.packed(element, string_at(value.data_ptr(), value.numel() * value.element_size()))


_OF_NUMBERS = ("default", "Tensor_Scalar", "Scalar")
_SINGLE = {"List": ("Tensor",), "Scalar": _OF_NUMBERS, "ScalarList": _OF_NUMBERS, "ScalarAndTensor": ("Scalar",)}
"""Overload of a `_foreach_` op → those of the op for one element of its lists, of which there is one."""


@lru_cache(maxsize=4096)
def _single(target: Any) -> OpOverload | None:
    """Of a `_foreach_` op that of single tensors, if that has a row."""
    if target in TABLE or not isinstance(target, OpOverload) or "_foreach_" not in target.name():
        return None
    packet = getattr(torch.ops.aten, target.name().removeprefix("aten::_foreach_").partition(".")[0], None)
    names = (*_SINGLE.get(target._overloadname, ()), "default", target._overloadname)
    found = [getattr(packet, name, None) for name in names]
    return next((one for one in found if one in TABLE), None)


VIEW_DTYPE = torch.ops.aten.view.dtype
"""Natively it computes a tensor of its own, which is not to be where two results share its memory."""

_SILENT_VIEWS = {torch.ops.aten.unsafe_split, torch.ops.aten.unsafe_split_with_sizes}
"""Ops whose schemas do not say that they give views."""


@lru_cache(maxsize=4096)
def _gives_alias(target: Any) -> bool:
    """Whether the op's result shares its operand's memory."""
    return isinstance(target, OpOverload) and (target.is_view or target.overloadpacket in _SILENT_VIEWS)


_SIZED_VIEWS = {torch.ops.aten.expand.default, torch.ops.aten.view.default}
"""Views whose strides hang on whether sizes are 0, 1 or more."""


def _open_views(node: fx.Node) -> list[fx.Node]:
    """The views that lead to a result, if their sizes depend on data and decide its strides: of those only eager's own
    operators know at run time what they are."""
    views = []
    while _gives_alias(node.target) and free_unbacked_symbols(node.meta["val"].shape):
        views.append(node)
        (node, *_) = node.all_input_nodes
    return views if any(view.target in _SIZED_VIEWS for view in views) else []


def _computes_nothing(node: fx.Node) -> bool:
    """Whether the first operand, or all results, have no elements: eager's operator then says how the result is laid
    out, or refuses the call, and no kernel is compiled for it."""
    if node.target in ALLOCATIONS:
        return False
    first = node.args[0] if node.args else None
    results = devices.tensors_of(node)
    return (isinstance(first, fx.Node) and is_empty(first.meta.get("val"))) or (
        bool(results) and all(map(is_empty, results))
    )


def _sees_negated(node: fx.Node) -> bool:
    """Whether a tensor that it takes or gives lies in memory with the other sign, as the imaginary part of a conjugate
    does. Eager's operators know; of others' operands torch makes copies, by operators that take such tensors."""
    return any(map(_is_negated, (node, *node.all_input_nodes)))


def _is_negated(node: fx.Node) -> bool:
    return any(leaf.is_neg() for leaf in devices.tensors_of(node))


def _storage(node: Any) -> int:
    """A number for the memory that a node's tensor has in eager."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if isinstance(value, Tensor) and value.layout is torch.strided:
        return int(value.untyped_storage()._cdata)
    return id(node)


def _offset(node: Any) -> int:
    """Where in its memory a node's tensor begins; -1 where sizes decide."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    offset = value.storage_offset() if isinstance(value, Tensor) and value.layout is torch.strided else 0
    return offset if type(offset) is int else -1


def _is_token(placeholder: fx.Node) -> bool:
    """Whether the input only orders effects."""
    users = placeholder.users
    return bool(users) and all(user.target is with_effects and user.args[0] is placeholder for user in users)
