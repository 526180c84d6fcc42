"""Finds what makes a compiled program differ from eager: the graph, the first pass, the step of that pass.

Each graph runs in the reference interpreters after every pass; what they cannot run, the host level and machine code,
is compiled and called. The program of the guilty graph is then reduced by `reduction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils._pytree import tree_leaves
from xdsl.passes import ModulePass

from ..frontend.autograd import GraphRole, stepwell_backend
from ..frontend.import_fx import ImportedGraph, import_graph
from ..ir.arithmetic import Array
from ..ir.errors import BackendError
from ..ir.target import TARGET, TargetAttr
from ..lowering.applications import limited
from ..lowering.pipelines import CPU, HOST, instances
from .capture import call, fresh, run_backward
from .compiler import Compilation, eager, further_passes, machine, make_context
from .config import Settings, config
from .plan import BoxedCall
from .reduction import Case, reduce
from .reference import Reference, arguments_of, difference, results_of

IMPORT, CODE = "import", "machine code"

OPTIONAL = ("host-fold-copies", "host-reuse-buffers", "host-plan-buffers")
"""Passes of the host level without which a program still runs, so that leaving one out shows whether it is at fault."""


@dataclass(frozen=True)
class Fault:
    """What makes one graph differ.

    `step` is a pass, "import" or "machine code"; `application` describes the rewrite of that pass, number `number` of
    those it does, where they are counted. `difference` is in multiples of what rounding may make. `program` is the
    reduced graph IR on which the step still goes wrong, with the commands that show it.
    """

    graph: str
    step: str
    difference: float
    application: str | None = None
    number: int = 0
    program: str = field(default="", repr=False)

    def __str__(self) -> str:
        lines = [f"{self.graph} graph: {self.step} changes a result by {self.difference:.3g} times what rounding may"]
        if self.application is not None:
            lines.append(f"application {self.number} of it: {self.application}")
        return "\n".join([*lines, *(["reduced program:", self.program] if self.program else [])])


# -- graphs ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Captured:
    """A graph of ATen ops with the inputs of its first call."""

    gm: fx.GraphModule
    examples: Sequence[Any]
    role: str
    inputs: list[Any]


def captured_graphs(function: Callable[..., Any], args: Sequence[Any], settings: Settings) -> list[Captured]:
    """The graphs of a function, forward and backward, with what they are called with."""
    found: list[Captured] = []

    def record(gm: fx.GraphModule, examples: Sequence[Any], role: GraphRole) -> BoxedCall:
        run = eager(gm)

        def call(inputs: list[Any]) -> list[Any]:
            if all(known.gm is not gm for known in found):
                found.append(Captured(gm, examples, role.value, copies(inputs)))
            return run(inputs)

        return call

    compiled = torch.compile(
        fresh(function),
        backend=lambda gm, inputs: stepwell_backend(gm, inputs, record, fallback_random=settings.fallback_random),
    )
    run_backward(call(compiled, function, args, {}))
    return found


def copies(inputs: Sequence[Any]) -> list[Any]:
    """Inputs that a call may write to, strides kept."""
    return [_copy(value) if isinstance(value, Tensor) else value for value in inputs]


def _copy(value: Tensor) -> Tensor:
    made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    return made.copy_(value.detach())


# -- one graph ---------------------------------------------------------------------------------------


class Examination:
    """Looks for the fault of one graph."""

    def __init__(self, captured: Captured, settings: Settings) -> None:
        self.captured = captured
        self.settings = settings
        self.imported = self.import_again()
        self.reference = Reference(self.imported.objects)
        self.arguments = arguments_of(self.imported, captured.inputs)
        self.case = Case(self.imported.module, tuple(self.arguments))

    def import_again(self) -> ImportedGraph:
        imported = import_graph(self.captured.gm, self.captured.examples)
        imported.module.attributes[TARGET] = TargetAttr(machine(self.settings))
        return imported

    def fault(self) -> Fault | None:
        expected = self.call(eager(self.captured.gm))
        if (wrong := worst(self.reference.run(self.imported.module, self.arguments), expected)) > 1:
            return Fault(self.captured.role, IMPORT, wrong, self.first_wrong_node())
        found = self.guilty_pass() or self.guilty_code(expected)
        return None if found is None else self.explained(found)

    def call(self, function: BoxedCall) -> list[Array]:
        inputs = copies(self.captured.inputs)
        torch.manual_seed(0)
        with torch.no_grad():
            outputs = function(list(inputs))
        return results_of(self.imported, outputs, inputs)

    def first_wrong_node(self) -> str | None:
        """The first node of the FX graph whose import gives something else than eager."""
        for node in self.captured.gm.graph.nodes:
            if node.op != "call_function" or not isinstance(node.meta.get("val"), Tensor):
                continue
            part = self.until(node)
            examination = Examination(replace(self.captured, gm=part), self.settings)
            expected = examination.call(eager(part))
            if worst(examination.reference.run(examination.imported.module, self.arguments), expected) > 1:
                return str(node.format_node())
        return None

    def until(self, node: fx.Node) -> fx.GraphModule:
        """The graph that returns what a node gives."""
        copied = fx.Graph()
        values: dict[fx.Node, Any] = {}
        for each in self.captured.gm.graph.nodes:
            if each.op == "output":
                break
            values[each] = copied.node_copy(each, values.__getitem__)
        copied.output([values[node]])
        copied.eliminate_dead_code()
        return fx.GraphModule(self.captured.gm, copied)

    # -- passes ------------------------------------------------------------------------------------

    def guilty_pass(self) -> tuple[str, float] | None:
        """The first pass that changes what the interpreters compute."""
        module, before = self.case.module.clone(), self.reference.run(self.case.module, self.arguments)
        for instance in self.passes():
            try:
                instance.apply(make_context(), module)
                module.verify()
                results = self.reference.run(module, self.arguments)
            except Exception as error:
                raise self.noted(error, instance.name) from error
            if (wrong := worst(results, before)) > 1:
                return instance.name, wrong
            before = results
        return None

    def noted(self, error: Exception, name: str) -> Exception:
        error.add_note(f"  in the {self.captured.role} graph after {name}")
        return error

    def passes(self) -> Iterator[ModulePass]:
        """Those after which the interpreters can run the program."""
        for stage, passes in instances(CPU, further_passes(self.settings)):
            if stage != HOST[0]:
                yield from passes

    def broken_by(self, name: str, case: Case, limit: int | None = None) -> float:
        """How far the results are from right after that pass, of which only so many steps are done."""
        module = case.module.clone()
        before: list[Array] = []
        for instance in self.passes():
            if instance.name != name:
                instance.apply(make_context(), module)
                continue
            before = before or self.reference.run(module, case.arguments)
            with limited(limit):
                instance.apply(make_context(), module)
            if (wrong := worst(self.reference.run(module, case.arguments), before)) > 1:
                return wrong
        return 0.0

    def guilty_step(self, name: str) -> tuple[str, int] | None:
        """The first step of the pass with which the results are wrong; None where its steps are not counted."""
        with limited() as steps:
            module = self.case.module.clone()
            for instance in self.passes():
                counted = len(steps.done)
                instance.apply(make_context(), module)
                if instance.name == name:
                    break
        low, high = 0, len(steps.done) - counted
        if high == 0:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.broken_by(name, self.case, middle) else (middle, high)
        return steps.done[counted + high - 1], high

    # -- machine code ------------------------------------------------------------------------------

    def guilty_code(self, expected: Sequence[Array]) -> tuple[str, float] | None:
        """Machine code, or a pass of the host level that makes the difference."""
        wrong = worst(self.call(self.compiled()), expected)
        if wrong <= 1:
            return None
        for name in OPTIONAL:
            if worst(self.call(self.compiled(without=name)), expected) <= 1:
                return name, wrong
        return CODE, wrong

    def compiled(self, without: str = "") -> BoxedCall:
        return self.compilation(without).compile(self.import_again())

    def compilation(self, without: str = "") -> Compilation:
        pipeline = [(stage, tuple(name for name in names if name != without)) for stage, names in CPU]
        return Compilation(self.captured.gm, self.captured.inputs, self.captured.role, self.settings, pipeline=pipeline)

    def miscompiled(self, case: Case) -> float:
        imported, inputs = case.as_import(self.imported.objects, TargetAttr(machine(self.settings)))
        compilation = replace(self.compilation(), inputs=inputs)
        expected = self.reference.run(case.module, case.arguments)
        given = copies(inputs)
        found = results_of(imported, compilation.compile(imported)(list(given)), given)
        return worst(found, expected)

    # -- the report --------------------------------------------------------------------------------

    def explained(self, found: tuple[str, float]) -> Fault:
        step, wrong = found
        interpreted = any(step == instance.name for instance in self.passes())
        guilty = self.guilty_step(step) if interpreted else None

        def fails(case: Case) -> bool:
            return (self.broken_by(step, case) if interpreted else self.miscompiled(case)) > 1

        reduced = reduce(self.case, fails, self.reference)
        names = [instance.name for instance in self.passes()]
        program = reduced.text(names[: names.index(step) + 1] if interpreted else names)
        application, number = guilty or (None, 0)
        return Fault(self.captured.role, step, wrong, application, number, program)


def worst(found: Sequence[Array], expected: Sequence[Array]) -> float:
    """The greatest difference of any result, in multiples of what rounding may make."""
    return max((difference(one, other) for one, other in zip(found, expected, strict=True)), default=0.0)


def bisect(function: Callable[..., Any], *args: Any, settings: Settings | None = None) -> list[Fault]:
    """The fault of each graph of a function or module that computes something else than eager, for these arguments.

    Draws random numbers as the compiler does, which are not eager's; so these make no difference.
    """
    settings = replace(settings or config.snapshot(), strict=True)
    elsewhere = {leaf.device.type for leaf in tree_leaves(args) if isinstance(leaf, Tensor)} - {"cpu"}
    if elsewhere:
        hint = "give the arguments on the CPU: passes down to kernels are the same"
        raise BackendError("bisect", expected="tensors on the CPU", got=", ".join(sorted(elsewhere)), hint=hint)
    graphs = captured_graphs(function, args, settings)
    faults = (Examination(captured, settings).fault() for captured in graphs)
    return [fault for fault in faults if fault is not None]


__all__ = ["CODE", "IMPORT", "Fault", "bisect"]
