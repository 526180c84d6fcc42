"""Where torch calls us: the `torch.compile` backend of the name `stepwell`, and `stepwell.compile`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from ..frontend.autograd import stepwell_backend
from ..ir.errors import BackendError
from ..lowering.pipelines import further
from .compiler import GraphCompiler, collector_paused, warm_up
from .config import Settings, config
from .observers import Recorder

SERVED = ("cpu", "cuda")
"""The device types that a backend of ours makes code for."""

CompiledCall = Callable[..., Any]


def stepwell(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> CompiledCall:
    """Compiles a graph that Dynamo captured, forward and backward: the backend of `torch.compile`.

    `mode` is one of torch's: "default", "reduce-overhead", "max-autotune". The second replays CUDA graphs; otherwise
    all give the same code. `options` are knobs of `stepwell.config` for this compile; an unknown one raises
    OptionError, which lists all, and an unknown pass or stage LoweringError.
    """
    settings = config.with_options(options, mode)
    further(settings.passes)  # asked for by name: a mistake there must not end as a graph that runs eagerly
    return compile_captured(gm, example_inputs, settings)


def compile_captured(
    gm: fx.GraphModule, example_inputs: Sequence[Any], settings: Settings, *recorders: Recorder
) -> CompiledCall:
    """The same with settings, and with recorders that look on."""
    if devices := unserved_devices(gm, example_inputs):
        return refuse(gm, devices, settings)
    compile_graph = GraphCompiler(settings, recorders)
    with collector_paused():
        return stepwell_backend(gm, example_inputs, compile_graph, fallback_random=settings.fallback_random)


def unserved_devices(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> list[str]:
    """The types of the devices in a graph that nothing here makes code for."""
    values = [*example_inputs, *(node.meta.get("example_value") for node in gm.graph.nodes)]
    found = {value.device.type for value in values if isinstance(value, Tensor)}
    return sorted(found.difference(SERVED))


def refuse(gm: fx.GraphModule, devices: Sequence[str], settings: Settings) -> CompiledCall:
    """The graph itself, after a warning; raises BackendError under `strict`."""
    error = BackendError(
        "stepwell",
        expected=f"tensors on {', '.join(SERVED)}",
        got=f"a graph with tensors on {', '.join(devices)}",
        hint="kernels for other devices are not available yet, so this graph runs eagerly",
    )
    if settings.strict:
        raise error
    warnings.warn(str(error), stacklevel=2)
    return gm.forward


def compile(
    model: Callable[..., Any] | None = None,
    *,
    dynamic: bool | None = None,
    fullgraph: bool = False,
    **options: Any,
) -> Any:
    """`torch.compile` with this backend; `mode` and the knobs of `stepwell.config` are keywords. Also a decorator.

    Raises OptionError at once for a knob, or a value of one, that does not exist.
    """
    config.with_options(options)
    return torch.compile(model, backend=stepwell, dynamic=dynamic, fullgraph=fullgraph, options=options or None)


warm_up(config.snapshot())
