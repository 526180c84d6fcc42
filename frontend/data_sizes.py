"""Sizes that depend on data: which symbols the calls of an FX graph define, and what torch takes for granted of them.

torch gives such a size a name of its own, and under `torch._check` that of another size or even a number: both names
are kept, so that a check compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import sympy
import torch
from torch import SymBool, SymFloat, SymInt, Tensor, fx
from torch.fx.experimental.symbolic_shapes import CallMethodKey, ConvertIntKey, DivideByKey, ShapeEnv
from torch.utils._pytree import SequenceKey

from ..ir.errors import FrontendError
from ..ir.expr import ONE, Expr, const, symbol
from ..ir.shapes import SymbolDefinition
from .conditions import at_least, at_most, equal, expr_of
from .symbols import SymbolTable, guarded_range

ASSERT = torch.ops.aten._assert_scalar.default


def bindings_of(node: fx.Node) -> dict[sympy.Symbol, Sequence[Any]]:
    """torch's symbols that a call brings into being, each with where in its result to find it."""
    return (node.meta.get("unbacked_bindings") or {}) if node.op == "call_function" else {}


@dataclass(frozen=True)
class Check:
    """What must hold at run time, and what the RuntimeError says if it does not."""

    condition: Expr
    message: str


class DataSizes:
    """The symbols that the calls of one graph define; all are declared at the start, behind those of its inputs."""

    def __init__(self, graph: fx.Graph, symbols: SymbolTable) -> None:
        self.symbols = symbols
        self.definitions: dict[fx.Node, list[SymbolDefinition]] = {}
        self._names: dict[fx.Node, dict[sympy.Symbol, str]] = {}
        self._checked: set[Expr] = {ONE}
        self._ahead: set[str | None] = {None}  # what calls to come define; None is what no call of this graph does
        self._waiting: list[sympy.Basic] = []
        for node in graph.nodes:
            if bindings_of(node) and not _is_float(node.meta["val"]):
                self._define(node)
        asserts = graph.find_nodes(op="call_function", target=ASSERT) if self.definitions else []
        self._messages = {self.expr(node.args[0]): node.args[1] for node in asserts}

    def _define(self, node: fx.Node) -> None:
        environment = _environment(node.meta["val"])
        for found, path in bindings_of(node).items():
            name = self.symbols.define(found, environment)
            self._ahead.add(name)
            self._names.setdefault(node, {})[found] = name
            self.definitions.setdefault(node, []).append(_definition(name, path, node))

    # -- expressions -----------------------------------------------------------------------------

    def expr(self, argument: Any) -> Expr | None:
        """An integer or condition of the graph as its nodes compute it; None where floats take part."""
        return expr_of(argument, self._leaf)

    def _leaf(self, node: fx.Node) -> Expr | None:
        measure = _MEASURES.get(node.target)
        defined = (
            self._measured(node, "value") if measure is None else self._measured(node.args[0], measure, *node.args[1:])
        )
        if defined is not None:
            return defined
        value = node.meta.get("val")
        return self.symbols.expr(value) if isinstance(value, SymInt | int) else None

    def _measured(self, node: Any, measure: str, *dims: Any) -> Expr | None:
        """The symbol that a call defines as that measure of its only result."""
        for definition in self.definitions.get(node, ()):
            if definition == SymbolDefinition(definition.name, measure, 0, *dims):
                return symbol(definition.name)
        return None

    # -- checks ----------------------------------------------------------------------------------

    def checks(self, node: fx.Node) -> Iterator[Check]:
        """What has to be checked once a call has run, each condition once in a graph."""
        names = self._names.get(node, {})
        self._ahead.difference_update(names.values())
        for found, name in names.items():
            environment = _environment(node.meta["val"])
            self._waiting += _asserted(found, environment)
            facts = chain(self._facts(found, symbol(name), environment), self._settled())
            yield from self.unmade(Check(condition, self._message(condition, text)) for text, condition in facts)

    def unmade(self, checks: Iterable[Check]) -> Iterator[Check]:
        """Those that can fail and were not made before, which count as made."""
        for check in checks:
            if check.condition not in self._checked:
                self._checked.add(check.condition)
                yield check

    def _message(self, condition: Expr, text: Any) -> str:
        """What an assertion of the graph says of the condition, if there is one."""
        return str(self._messages.get(condition, f"Runtime assertion failed for expression {text}"))

    def _facts(self, found: sympy.Symbol, size: Expr, environment: ShapeEnv) -> Iterator[tuple[Any, Expr]]:
        """What torch found out about a symbol and used since."""
        low, high = guarded_range(environment, found)
        is_number = any(known.measure == "value" and symbol(known.name) == size for known in self._all())
        if low is not None and (is_number or low > 0):
            yield f"{found} >= {low}", at_least(size, const(low))
        if high is not None:
            yield f"{found} <= {high}", at_most(size, const(high))
        replaced = environment.replace(found)
        yield sympy.Eq(found, replaced, evaluate=False), equal(size, self.symbols.translate(replaced))

    def _settled(self) -> Iterator[tuple[Any, Expr]]:
        """What torch asserted of symbols that all have values now. It also compares sizes of results with those of
        their gradients, by names that only the backward graph knows."""
        waiting, self._waiting = self._waiting, []
        for expr in waiting:
            if self._ahead.isdisjoint(self.symbols.names_in(expr)):
                yield expr, self.symbols.translate(expr)
            else:
                self._waiting.append(expr)

    def _all(self) -> Iterator[SymbolDefinition]:
        for definitions in self.definitions.values():
            yield from definitions


# -- where a symbol is found -------------------------------------------------------------------------

_METHODS = {"size": "size", "storage_offset": "offset"}
_MEASURES: dict[Any, str] = {torch.ops.aten.sym_size.int: "size", torch.ops.aten.sym_storage_offset.default: "offset"}
"""What a method of a tensor, or an op of an FX graph, measures."""


def _definition(name: str, path: Sequence[Any], node: fx.Node) -> SymbolDefinition:
    """`(CallMethodKey("size"), SequenceKey(0))` is size 0 of the result, `()` the result itself; a SequenceKey in front
    is an element of a result that is a list."""
    leaf, measure, dim, divisor, rest = 0, "value", 0, 1, list(path)
    if rest and isinstance(rest[0], SequenceKey):
        leaf = rest.pop(0).idx
    for key in rest:
        match key:
            case CallMethodKey(method) if method in _METHODS:
                measure = _METHODS[method]
            case ConvertIntKey():
                pass
            case SequenceKey(position):
                dim = position
            case DivideByKey(number):
                divisor = int(number)
            case _:
                raise FrontendError(f"size {name} of {node.target}", expected="a size or a number", got=str(key))
    return SymbolDefinition(name, measure, leaf, dim, divisor)


def _asserted(found: sympy.Symbol, environment: ShapeEnv) -> Iterator[sympy.Basic]:
    """What is to hold of a symbol, by its own name and by that which replaced it."""
    for name in dict.fromkeys((found, environment.replace(found))):
        yield from (known.expr for known in environment.deferred_runtime_asserts.get(name, ()))


def _is_float(value: Any) -> bool:
    return isinstance(value, SymFloat)


def _environment(value: Any) -> ShapeEnv:
    found: ShapeEnv
    for leaf in value if isinstance(value, tuple | list) else (value,):
        if isinstance(leaf, SymInt | SymFloat | SymBool):
            found = leaf.node.shape_env
            return found
        if isinstance(leaf, Tensor):
            found = leaf.fake_mode.shape_env  # type: ignore[attr-defined]
            return found
    raise FrontendError("data-dependent size", expected="a tensor or a number that has it", got=str(value))
