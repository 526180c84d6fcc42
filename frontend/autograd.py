"""AOTAutograd: from Dynamo's graph to functional ATen graphs for forward and backward, each compiled by a callback.

Everything here is wiring; what the graphs mean is for `import_fx`, what they become for the callback.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from functools import lru_cache, partial
from typing import Any, TypeAlias

from torch import Tensor, fx, ops, zeros_like
from torch._dynamo import disable
from torch._dynamo.utils import counters, flatten_graph_inputs
from torch._functorch import config as functorch_config
from torch._functorch import partitioners
from torch._functorch._aot_autograd.schemas import AOTDispatchCompiler
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import OpTypes, get_default_op_list
from torch.utils.checkpoint import CheckpointPolicy

from .aten import TABLE
from .aten.products import PRODUCTS
from .decompositions import decomposition_table
from .devices import home_device
from .equal_calls import merge_equal_calls
from .fakes import correct_fakes
from .import_fx import SAVED
from .random import replace_random, split_saved_states
from .saved_norms import recompute_norms
from .strided_views import look_at_owners


class GraphRole(Enum):
    """Which of a function's graphs it is."""

    FORWARD = "forward"
    BACKWARD = "backward"
    INFERENCE = "inference"


BoxedCallable: TypeAlias = Callable[[list[Any]], Sequence[Any]]
"""Takes its inputs as one list, which it empties, and returns a list of outputs."""

CompileGraph: TypeAlias = Callable[[fx.GraphModule, Sequence[Any], GraphRole], BoxedCallable]


def stepwell_backend(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    compile_graph: CompileGraph,
    *,
    fallback_random: bool = False,
) -> Callable[..., Any]:
    """Compiles Dynamo's graph; `compile_graph` is called once for each functional graph of ATen ops.

    With `fallback_random` random ops stay eager's and give eager's numbers.
    """

    def compiler(role: GraphRole) -> AOTDispatchCompiler:
        def compile_one(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> BoxedCallable:
            if role is GraphRole.INFERENCE:
                correct_fakes(gm)
                if not fallback_random:
                    replace_random(gm)
            return _boxed(compile_graph(gm, example_inputs, role))

        return compile_one

    def compile_backward(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> BoxedCallable:
        """Hidden from Dynamo, which may be tracing where a backward is compiled: when it first runs."""
        compiled: BoxedCallable = disable(disable(compiler(GraphRole.BACKWARD))(gm, example_inputs))
        return compiled

    def backend(gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """As torch's `aot_autograd`, but for its import of Inductor: a quarter of a small graph's first call."""
        if any(isinstance(value, list | tuple | dict) for value in inputs):
            flat: Callable[..., Any] = flatten_graph_inputs(gm, inputs, backend)
            return flat
        counters["aot_autograd"]["total"] += 1
        compiled = aot_module_simplified(
            gm,
            inputs,
            fw_compiler=compiler(GraphRole.FORWARD),
            bw_compiler=compile_backward,
            inference_compiler=compiler(GraphRole.INFERENCE),
            partition_fn=partial(partition, fallback_random=fallback_random),
            decompositions=decomposition_table(fallback_random),
            keep_inference_input_mutations=True,
        )
        counters["aot_autograd"]["ok"] += 1
        hidden: Callable[..., Any] = disable(compiled, reason="its graphs are compiled")
        return hidden

    look_at_owners(gm.graph)
    empty = [
        place for place, value in enumerate(example_inputs) if isinstance(value, Tensor) and value._is_zerotensor()
    ]
    if empty:
        return _with_memory(backend(gm, _filled(example_inputs, empty)), empty)
    return backend(gm, example_inputs)


def _with_memory(function: Callable[..., Any], places: Sequence[int]) -> Callable[..., Any]:
    """The function for arguments of which those at some places are zeros that have no memory."""

    def filled(*arguments: Any) -> Any:
        return function(*_filled(arguments, places))

    return filled


def _filled(values: Sequence[Any], places: Sequence[int]) -> list[Any]:
    return [zeros_like(value) if place in places else value for place, value in enumerate(values)]


def _boxed(function: BoxedCallable) -> BoxedCallable:
    """Marks the callable as boxed, in place where it allows that."""
    try:
        function._boxed_call = True  # type: ignore[attr-defined]
        return function
    except AttributeError:

        def boxed(inputs: list[Any]) -> Sequence[Any]:
            return function(inputs)

        boxed._boxed_call = True  # type: ignore[attr-defined]
        return boxed


# -- partition ---------------------------------------------------------------------------------------


def partition(
    joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, fallback_random: bool = False, **options: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Splits the joint graph into forward and backward where the least has to be saved."""
    correct_fakes(joint)
    if not fallback_random:
        replace_random(joint)
    if functorch_config.cse:
        merge_equal_calls(joint.graph)
    recompute_norms(joint, num_fwd_outputs)
    _save_copies(joint.graph)
    with _our_op_types(home_device(joint.graph).type), functorch_config.patch(cse=False):
        forward, backward = partitioners.min_cut_rematerialization_partition(
            joint, inputs, num_fwd_outputs=num_fwd_outputs, **options
        )
    split_saved_states(forward, backward)
    results = forward.graph.output_node()
    results.meta[SAVED] = len(results.args[0]) - num_fwd_outputs  # type: ignore[arg-type]
    return forward, backward


def _save_copies(graph: fx.Graph) -> None:
    """Has the copies saved that AOTAutograd makes, at no line of the user's, of inputs that will be written: when the
    backward runs, they can no longer be copied."""
    for node in graph.find_nodes(op="call_function", target=ops.aten.clone.default):
        if node.args[0].op == "placeholder" and "stack_trace" not in node.meta:
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE


@contextmanager
def _our_op_types(device: str) -> Iterator[None]:
    """Tells the partitioner what fuses here; it has no parameter for that. Dynamo compiles under a lock."""
    partitioners.get_default_op_list = partial(_op_types, device)
    try:
        yield
    finally:
        partitioners.get_default_op_list = get_default_op_list


RECOMPUTED: dict[str, Collection[Any]] = {"cuda": [ops.aten._log_softmax]}
"""Type of device → what is computed again in the backward rather than saved. A loss reads few elements of a log
softmax, and the gradient reads its rows or what they were made from. On a CPU the second exponential takes longer than
the bytes that it saves."""


@lru_cache(maxsize=2)
def _op_types(device: str) -> OpTypes:
    """torch's lists, with everything that has a row as fusible, products aside."""
    types = get_default_op_list()
    fusible = types.fusible_ops | ({target.overloadpacket for target in TABLE} - PRODUCTS)
    return replace(types, fusible_ops=fusible, recomputable_ops=types.recomputable_ops | {*RECOMPUTED.get(device, ())})


__all__ = ["BoxedCallable", "CompileGraph", "GraphRole", "partition", "stepwell_backend"]
