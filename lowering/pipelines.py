"""The table of passes, and the pipelines: ordered lists of pass names, one per target.

The table holds names only, so that `xdsl-opt` can list every pass without importing one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from xdsl.universe import Universe
from xdsl.utils.arg_spec import parse_spec

from ..ir.errors import LoweringError

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

PASSES: dict[str, tuple[str, str]] = {
    "graph-fold-constants": ("graph.fold_constants", "FoldConstants"),
    "graph-simplify-algebra": ("graph.simplify_algebra", "SimplifyAlgebra"),
    "graph-simplify-views": ("graph.simplify_views", "SimplifyViews"),
    "graph-match-bias": ("graph.match_bias", "MatchBias"),
    "graph-match-attention": ("graph.match_attention", "MatchAttention"),
    "convert-graph-to-loop": ("convert.graph_to_loop", "ConvertGraphToLoop"),
    "loop-simplify": ("loop.simplify", "LoopSimplify"),
    "loop-fuse-producers": ("loop.fuse_producers", "LoopFuseProducers"),
    "loop-split-groups": ("loop.split_groups", "LoopSplitGroups"),
    "loop-fold-kernels": ("loop.fold_kernels", "LoopFoldKernels"),
    "loop-fuse-nests": ("loop.fuse_nests", "LoopFuseNests"),
    "loop-fuse-siblings": ("loop.fuse_siblings", "LoopFuseSiblings"),
    "loop-fuse-columns": ("loop.fuse_columns", "LoopFuseColumns"),
    "loop-fuse-leftovers": ("loop.fuse_leftovers", "LoopFuseLeftovers"),
    "loop-shrink-locals": ("loop.shrink_locals", "LoopShrinkLocals"),
    "loop-hoist-invariants": ("loop.hoist_invariants", "LoopHoistInvariants"),
    "loop-keep-precision": ("loop.keep_precision", "LoopKeepPrecision"),
    "loop-coalesce-dims": ("loop.coalesce_dims", "LoopCoalesceDims"),
    "loop-split-phases": ("loop.split_phases", "LoopSplitPhases"),
    "loop-call-products": ("loop.call_products", "LoopCallProducts"),
    "loop-schedule-products": ("loop.schedule_products", "LoopScheduleProducts"),
    "loop-distribute-nests": ("loop.distribute_nests", "LoopDistributeNests"),
    "loop-flatten-rows": ("loop.flatten_rows", "LoopFlattenRows"),
    "loop-split-dependent-reductions": ("loop.split_dependent_reductions", "LoopSplitDependentReductions"),
    "loop-split-reductions": ("loop.split_reductions", "LoopSplitReductions"),
    "convert-loop-to-tile": ("convert.loop_to_tile", "ConvertLoopToTile"),
    "convert-tile-to-tt": ("convert.tile_to_tt", "ConvertTileToTriton"),
    "host-bufferize": ("host.bufferize", "HostBufferize"),
    "host-fold-copies": ("host.fold_copies", "HostFoldCopies"),
    "host-reuse-buffers": ("host.reuse_buffers", "HostReuseBuffers"),
    "host-plan-buffers": ("host.plan_buffers", "HostPlanBuffers"),
    "host-group-stretches": ("host.group_stretches", "HostGroupStretches"),
    "host-batch-runs": ("host.batch_runs", "HostBatchRuns"),
    "host-free-buffers": ("host.free_buffers", "HostFreeBuffers"),
}
"""Pass → module of this package and the class in it: `graph-fold-constants` is `graph.fold_constants`."""

STOCK_PASSES = {
    "cse": "common_subexpression_elimination.CommonSubexpressionElimination",
    "dce": "dead_code_elimination.DeadCodeElimination",
}
"""Passes of xDSL that the pipelines use."""

Stage = tuple[str, tuple[str, ...]]
"""A named stretch of a pipeline. After each stage the IR can be dumped, replaced or extended under that name."""

HOST: Stage = (
    "host",
    (
        "host-bufferize",
        "host-fold-copies",  # before buffers are reused: a fold needs the buffer to itself
        "host-reuse-buffers",
        "host-plan-buffers",
        "host-group-stretches",
        "host-batch-runs",
        "host-free-buffers",  # last: it needs the final order
    ),
)
"""From tensors to memory, and from an order of kernels to native calls."""

FRONT: tuple[Stage, ...] = (
    # Constants first, since algebra asks for them; dead code last, since every pattern leaves some.
    (
        "graph",
        (
            "graph-simplify-views",
            "graph-fold-constants",
            "graph-simplify-algebra",
            "graph-match-bias",
            "cse",  # before attention, which asks for values that have no other use
            "graph-match-attention",
            "dce",
        ),
    ),
    ("loop", ("convert-graph-to-loop",)),
)
"""What every target shares before kernels are fused."""

# Producers first: what moves into its reader needs no buffer. Nests then meet along the indices they share, siblings
# along the tensors that both read; what is left alone is copied to its readers.
_FUSE = (
    "loop-simplify",
    "loop-fuse-producers",
    "loop-fold-kernels",  # not before: what is computed in its readers costs less than data
    "loop-split-groups",  # before nests meet along the indices it makes
    "loop-fuse-nests",
    "loop-fuse-siblings",
    "loop-fuse-leftovers",
)
# Locals shrink once it is settled which nests share their rows.
_TIDY = (
    "loop-shrink-locals",
    "loop-hoist-invariants",
    "loop-simplify",
    "loop-coalesce-dims",
    "loop-split-phases",
)

TILE: Stage = ("tile", ("convert-loop-to-tile",))

CPU: tuple[Stage, ...] = (*FRONT, ("fused", (*_FUSE, "loop-fuse-columns", *_TIDY)), TILE, HOST)
"""From a graph to kernels and a host function, on the CPU."""

GPU: tuple[Stage, ...] = (
    *FRONT,
    ("fused", (*_FUSE, *_TIDY)),
    ("products", ("loop-call-products", "loop-schedule-products")),
    # Programs cannot wait for each other: what they share takes a second kernel.
    (
        "split",
        (
            "loop-distribute-nests",
            "loop-coalesce-dims",
            "loop-flatten-rows",
            "loop-split-dependent-reductions",
            "loop-split-reductions",
        ),
    ),
    TILE,
    HOST,
    ("tt", ("convert-tile-to-tt",)),  # last: what the host passes ask of kernels is said at the tile level
)
"""From a graph to functions of Triton's dialect and a host function that launches them, on a GPU."""


_STAGE_OF_LEVEL = {"graph": "graph", "loop": "fused", "tile": "tile", "host": "host", "tt": "tt"}


def make_pass(name: str) -> ModulePass:
    """An instance of the pass of that name: ours, one of xDSL's that a pipeline uses, or any that `xdsl-opt` knows,
    with options as there: `my-pass{width=4}`."""
    if name in PASSES:
        module, cls = PASSES[name]
        found = getattr(import_module(f".{module}", __package__), cls)
    elif name in STOCK_PASSES:
        module, _, cls = STOCK_PASSES[name].rpartition(".")
        found = getattr(import_module(f"xdsl.transforms.{module}"), cls)
    else:
        return _installed_pass(name)
    made: ModulePass = found()
    return made


def _installed_pass(text: str) -> ModulePass:
    """A pass of any package that registers it with xDSL."""
    spec = parse_spec(text)
    factory = Universe.get_multiverse().all_passes.get(spec.name)
    if factory is None:
        raise LoweringError(
            f"pass {spec.name}", expected="a known pass", got="no such name", hint="`xdsl-opt --help` lists all passes"
        )
    return factory().from_spec(spec)


def stage_of(added: ModulePass) -> str:
    """The stage after which a further pass runs: its attribute `stage`, else the one of its name's level."""
    level, *_ = added.name.split("-")
    stage = getattr(added, "stage", None) or _STAGE_OF_LEVEL.get(level)
    if stage is None:
        raise LoweringError(
            f"pass {added.name}",
            expected=f"a name that begins with one of {', '.join(_STAGE_OF_LEVEL)}, or an attribute `stage`",
            got="neither",
        )
    known = dict.fromkeys(name for pipeline in (CPU, GPU) for name, _ in pipeline)
    if stage not in known:
        raise LoweringError(f"pass {added.name}", expected=f"a stage of {', '.join(known)}", got=repr(stage))
    return str(stage)


def run(
    context: Context,
    module: ModuleOp,
    pipeline: Sequence[Stage] = CPU,
    *,
    extra: Sequence[str | ModulePass] = (),
    before: Callable[[str], None] | None = None,
    after: Callable[[str, ModuleOp], None] | None = None,
) -> None:
    """Runs a pipeline in place, further passes after the stages they name.

    `before` is told each pass before it runs, `after` each stage with its IR.
    """
    for stage, passes in instances(pipeline, extra):
        for instance in passes:
            if before is not None:
                before(instance.name)
            instance.apply(context, module)
        if after is not None:
            after(stage, module)


def instances(
    pipeline: Sequence[Stage] = CPU, extra: Sequence[str | ModulePass] = ()
) -> Iterator[tuple[str, list[ModulePass]]]:
    """Each stage with its passes, further passes after its own."""
    added = further(extra)
    for stage, names in pipeline:
        yield stage, [*map(make_pass, names), *(item for item in added if stage_of(item) == stage)]


def further(extra: Sequence[str | ModulePass]) -> list[ModulePass]:
    """Further passes, those given by name made; raises LoweringError for a name or a stage that does not exist."""
    added = [make_pass(item) if isinstance(item, str) else item for item in extra]
    for item in added:
        stage_of(item)
    return added


def names_after(stage: str, pipeline: Sequence[Stage]) -> list[str]:
    """The passes that are left once a stage has ended."""
    position = [name for name, _ in pipeline].index(stage)
    return [name for _, names in pipeline[position + 1 :] for name in names]
