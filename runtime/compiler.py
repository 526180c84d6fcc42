"""One FX graph → one boxed callable: import, passes, machine code, plan. What fails here runs eagerly instead.

Knows the order of the steps and nothing about any of them.
"""

from __future__ import annotations

import gc
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.utils import make_boxed_func
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Dialect
from xdsl.universe import Universe

from ..backends.cpu.emit import emit_kernel
from ..backends.cpu.target import host_target
from ..backends.interface import Backend, Code
from ..backends.native.jit import compile_modules
from ..backends.native.launcher import prepare
from ..backends.native.object_cache import ObjectCache
from ..frontend.autograd import GraphRole
from ..frontend.import_fx import ConstantResult, FunctionResult, ImportedGraph, import_graph, location_of
from ..ir import host, plugins, tile
from ..ir.errors import BackendError, OptionError
from ..ir.graph.attributes import Argument, Arguments, ArgumentsAttr, OperandRef
from ..ir.locations import source_lines
from ..ir.product_schedule import MEASURE
from ..ir.target import TARGET, Target, TargetAttr, target_of
from ..lowering.pipelines import CPU, GPU, PASSES, Stage, make_pass
from ..lowering.pipelines import run as run_pipeline
from .config import ExtraPass, Settings
from .cuda_machine import CudaMachine
from .cuda_tuning import TUNED_AFTER, tune_products
from .memory import POOL
from .observers import CompiledGraph, CompiledKernel, Dump, Recorder, ir_text
from .plan import BoxedCall, Plan, PlanWriter
from .stretch import KernelCode

# -- one compile -------------------------------------------------------------------------------------


@dataclass
class Compilation:
    """The compile of one graph; `step` is what runs at the moment."""

    gm: fx.GraphModule
    inputs: Sequence[Any]
    name: str
    settings: Settings
    recorders: Sequence[Recorder] = ()
    pipeline: Sequence[Stage] | None = None
    gpu: CudaMachine | None = None
    step: str = "import"
    timings: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=perf_counter)

    def run(self) -> BoxedCall:
        self.begin("import")
        return self.compile(import_graph(self.gm, self.inputs))

    def compile(self, imported: ImportedGraph) -> BoxedCall:
        module = imported.module
        self.aim(imported)
        self.lower(module, self.begin_pass(module), self.record)
        return_as_asked(imported)
        kernels = self.kernels(module)
        self.begin("plan")
        plan = self.plan(imported, kernels)
        self.begin("done")
        for recorder in self.recorders:
            recorder.finished(CompiledGraph(self.name, module, plan, kernels, self.timings))
        return plan.function

    def aim(self, imported: ImportedGraph) -> None:
        """Settles on which machine the graph runs."""
        if imported.device.type == "cuda":
            self.gpu = CudaMachine(imported.device, self.settings, objects_for(self.settings))
        target = machine(self.settings) if self.gpu is None else self.gpu.target()
        imported.module.attributes[TARGET] = TargetAttr(target)
        if self.tunes:
            imported.module.attributes[MEASURE] = UnitAttr()

    @property
    def tunes(self) -> bool:
        """Whether products are timed before one of several ways to compute them is taken."""
        return self.gpu is not None and self.settings.mode == "max-autotune"

    def lower(
        self, module: ModuleOp, before: Callable[[str], None], after: Callable[[str, ModuleOp], None] | None
    ) -> None:
        extra = further_passes(self.settings)
        pipeline = self.pipeline or (CPU if self.gpu is None else GPU)
        run_pipeline(make_context(), module, pipeline, extra=extra, before=before, after=after)

    def kernels(self, module: ModuleOp) -> tuple[CompiledKernel, ...]:
        """The machine code of the kernels of a lowered module."""
        if self.gpu is not None:
            self.begin("triton")
            return self.gpu.kernels(module)
        self.begin("emit")
        operations = [op for op in module.body.block.ops if isinstance(op, tile.KernelOp)]
        texts = [emit_kernel(op, target_of(module)) for op in operations]
        self.begin("llvm")
        codes = [kernel_code(op, owner) for op, owner in zip(operations, self.code(operations, texts), strict=True)]
        return tuple(CompiledKernel(*parts) for parts in zip(operations, texts, codes, strict=True))

    def code(self, operations: Sequence[tile.KernelOp], texts: Sequence[str]) -> list[Code]:
        """The code of each kernel: the chosen backend's, or where it has none, that of the LLVM IR."""
        backend = backend_of(self.settings)
        own = [None if backend is None else backend.compile(op, target_of(op)) for op in operations]
        left = [without_comment(text) for text, code in zip(texts, own, strict=True) if code is None]
        native = iter(compile_modules(left, opt_level=self.settings.opt_level, objects=objects_for(self.settings)))
        return [next(native) if code is None else code for code in own]

    def plan(self, imported: ImportedGraph, kernels: Sequence[CompiledKernel]) -> Plan:
        if self.gpu is not None:
            return self.gpu.plan(self.name, imported, len(self.inputs), kernels)
        by_name = {kernel.name: kernel.code for kernel in kernels if isinstance(kernel.code, KernelCode)}
        writer = PlanWriter(self.name, imported, len(self.inputs), by_name, POOL, self.settings.min_parallel_elements)
        return writer.write()

    # -- looking on -------------------------------------------------------------------------------

    def begin(self, step: str) -> None:
        """Ends the step before and starts the clock for this one."""
        now = perf_counter()
        self.timings[self.step] = self.timings.get(self.step, 0.0) + now - self.started
        self.step, self.started = step, now

    def begin_pass(self, module: ModuleOp) -> Callable[[str], None]:
        def begin(name: str) -> None:
            self.check(module)
            for recorder in self.recorders:
                recorder.before(self.name, name, module)
            self.begin(name)

        return begin

    def check(self, module: ModuleOp) -> None:
        if self.settings.verify:
            module.verify()

    def record(self, stage: str, module: ModuleOp) -> None:
        self.check(module)
        if self.gpu is not None and self.tunes and stage == TUNED_AFTER:
            self.begin("tune")
            tune_products(module, self.gpu, make_context)
        for recorder in self.recorders:
            recorder.after(self.name, stage, module)


def further_passes(settings: Settings) -> list[ExtraPass]:
    """The passes that run beside the pipeline's own."""
    installed = [cls() for cls in plugins.load("stepwell.passes").values()]
    return [*installed, *settings.passes, *(("loop-keep-precision",) if settings.excess_precision else ())]


def backend_of(settings: Settings) -> Backend | None:
    """The backend that the settings name; None for the CPU backend."""
    if not isinstance(settings.backend, str):
        return settings.backend
    known: dict[str, Backend | None] = {"cpu": None, **plugins.load("stepwell.backends")}
    if settings.backend not in known:
        raise OptionError("backend", expected=f"one of {', '.join(known)}", got=repr(settings.backend))
    return known[settings.backend]


def machine(settings: Settings) -> Target:
    """This machine, with vectors of the width that is asked for."""
    target = host_target()
    return replace(target, vector_bits=settings.vector_bits) if settings.vector_bits else target


def return_as_asked(imported: ImportedGraph) -> None:
    """Gives the return of the host function the constants (mostly None) that stand among the results."""
    last = imported.function.body.block.last_op
    assert isinstance(last, host.ReturnOp)
    returned = last.arguments.data.positional
    results = [
        source.value if isinstance(source, ConstantResult) else _returned(source, returned)
        for source in imported.results
    ]
    last.properties["arguments"] = ArgumentsAttr(Arguments(tuple(results)))


def _returned(source: FunctionResult, returned: Sequence[Argument]) -> Argument:
    """A result of the function, or the number that it holds."""
    argument = returned[source.position]
    return replace(argument, item=True) if source.item and isinstance(argument, OperandRef) else argument


def without_comment(text: str) -> str:
    """LLVM IR without the line that names its source: the same kernel on another line is the same code."""
    return text.partition("\n")[2] if text.startswith(";") else text


def kernel_code(op: tile.KernelOp, owner: Code) -> KernelCode:
    """The addresses of a kernel's functions; a grid that is known needs none."""
    name, grid = op.sym_name.data, op.grid_size
    return KernelCode(
        name,
        owner,
        address=owner.address(name),
        grid=0 if grid.is_constant else owner.address(f"{name}.grid"),
        static_grid=grid.constant if grid.is_constant else 0,
        finish=0 if op.finish is None else owner.address(f"{name}.finish"),
        errors=op.error_table,
    )


@cache
def object_cache(folder: Path) -> ObjectCache:
    """One per folder and process, since it warns once."""
    return ObjectCache(folder)


def objects_for(settings: Settings) -> ObjectCache | None:
    """The cache of compiled kernels that the settings ask for."""
    return None if settings.disable_cache else object_cache(settings.cache_dir)


def make_context() -> Context:
    """A context of this compile alone, in which passes may parse any dialect that they meet."""
    context = Context()
    for name, factory in installed_dialects().items():
        context.register_dialect(name, factory)
    return context


@cache
def installed_dialects() -> dict[str, Callable[[], Dialect]]:
    """Those that `xdsl-opt` knows: xDSL's, ours and other packages'."""
    return Universe.get_multiverse().all_dialects


# -- failures ----------------------------------------------------------------------------------------


class Replay(Exception):
    """Ends a second run of the pipeline just before the pass at which the first one failed."""


def explain_failure(compilation: Compilation, error: Exception) -> None:
    """Adds to an error what failed, where in the user's program, and how to see it again."""
    error.add_note(f"  while compiling the {compilation.name} graph, in step {compilation.step}")
    location = getattr(error, "location", None)
    if location is None and (location := first_location(compilation.gm)):
        error.add_note(f"  the graph begins at {location}")
    try:
        error.add_note(f"  replay with: {replay_command(compilation)}")
    except Exception as second:  # the first error is the one to report
        error.add_note(f"  no replay: {type(second).__name__}: {second}")


def replay_command(compilation: Compilation) -> str:
    """Writes the input of the failing step to a file; the command that runs that step on it."""
    folder = compilation.settings.dump or Path(tempfile.mkdtemp(prefix="stepwell-"))
    folder.mkdir(parents=True, exist_ok=True)
    if compilation.step not in PASSES:
        path = folder / f"{compilation.name}.py"
        path.write_text(compilation.gm.print_readable(print_output=False))
        return f"less {path}  (the FX graph)"
    path = folder / f"{compilation.name}-before-{compilation.step}.mlir"
    path.write_text(ir_text(module_before(compilation)))
    return f"xdsl-opt -p {compilation.step} {path}"


def module_before(compilation: Compilation) -> ModuleOp:
    """The IR as it was before the failing pass, made once more: the first one may be half rewritten."""
    imported = import_graph(compilation.gm, compilation.inputs)
    compilation.aim(imported)
    module = imported.module

    def stop(name: str) -> None:
        if name == compilation.step:
            raise Replay

    with suppress(Replay):
        compilation.lower(module, stop, None)
    return module


def first_location(gm: fx.GraphModule) -> str | None:
    """The user's line that the first call of the graph comes from."""
    traces = (node.meta.get("stack_trace") for node in gm.graph.nodes if node.op == "call_function")
    lines = (line for trace in traces for line in source_lines(location_of(trace)))
    return next(lines, None)


# -- entry -------------------------------------------------------------------------------------------


FIRST_NEEDED = (
    "functorch.compile",
    "torch._dynamo.repro.after_dynamo",
    "torch._inductor.sizevars",
    "torch.distributed.tensor.experimental",
    "torch.export._trace",
    "torch.fx.experimental.validator",
)
"""What Dynamo and AOTAutograd import while they trace a first graph: a tenth of a second."""


def warm_up(settings: Settings) -> None:
    """Imports the passes and what torch will need, and makes the native driver on another thread: the first compile
    would wait for all of them."""
    Thread(target=_make_driver, args=(objects_for(settings),), name="stepwell-warm-up", daemon=True).start()
    installed_dialects()
    for name in FIRST_NEEDED:
        with suppress(ImportError):  # of builds or versions of torch that lack it, which will not ask for it
            import_module(name)
    for _, names in (*CPU, *(GPU if torch.version.cuda else ())):
        for name in names:
            make_pass(name)


def _make_driver(objects: ObjectCache | None) -> None:
    with suppress(BackendError):  # the first plan will say so
        prepare(objects)


@dataclass(frozen=True)
class GraphCompiler:
    """Compiles the graphs of one `torch.compile`; its settings also hold on autograd's threads."""

    settings: Settings
    recorders: tuple[Recorder, ...] = ()

    def __call__(self, gm: fx.GraphModule, example_inputs: Sequence[Any], role: GraphRole) -> BoxedCall:
        """A boxed callable with the results of `gm`: compiled, or eager after a warning (an error under `strict`)."""
        compilation = Compilation(gm, example_inputs, role.value, self.settings, self._recorders())
        try:
            with collector_paused():
                return compilation.run()
        except Exception as error:
            explain_failure(compilation, error)
            if self.settings.strict:
                raise
            text = f"stepwell runs a graph eagerly, since its compile failed:\n{error_text(error)}"
            warnings.warn(text, stacklevel=2)
            return eager(gm)

    def _recorders(self) -> tuple[Recorder, ...]:
        return self.recorders if self.settings.dump is None else (*self.recorders, Dump(self.settings.dump))


@contextmanager
def collector_paused() -> Iterator[None]:
    """No cyclic garbage collection: each full one walks all of torch; together they took a third of a compile."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def error_text(error: Exception) -> str:
    return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])


def eager(gm: fx.GraphModule) -> BoxedCall:
    """The graph itself, run node by node."""
    function: BoxedCall = make_boxed_func(gm.forward)
    return function
