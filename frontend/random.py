"""Rewrites random ATen ops of an FX graph into functions of one seed per call and a stream per op.

Done on the joint graph: a mask that the backward pass recomputes is then the forward's. A change of tile size or
of threads cannot change the numbers, since element i depends on (seed, stream, i) only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch._subclasses.fake_tensor import FakeTensor

from .aten.registry import overload
from .random_ops import FRACTION_BITS

_MAX_RANGE = 1 << 24
"""Ranges of integers up to which the remainder of 32 bits is uniform enough."""

_STATE_BYTES = torch.get_rng_state().numel()

STREAMS_PER_OP = 2
"""An op may use its stream and the next one."""


class _Replacement:
    """The place where one random op was: creates the nodes that compute the same from the seed."""

    def __init__(self, node: fx.Node, seed: fx.Node, stream: int) -> None:
        self.node = node
        self.seed = seed
        self.stream = stream

    @property
    def value(self) -> torch.Tensor:
        value = self.node.meta["val"]
        assert isinstance(value, torch.Tensor)
        return value

    def size(self) -> Any:
        """The result's sizes as FX arguments: those of an operand where they are symbolic."""
        sizes = list(self.value.shape)
        if all(isinstance(size, int) for size in sizes):
            return sizes
        listed = [argument for argument in self.node.args if isinstance(argument, list | tuple)]
        if listed:
            return listed[0]
        operand = self.node.args[0]
        return [self.call(torch.ops.aten.sym_size.int, operand, dim) for dim in range(len(sizes))]

    def call(self, target: Any, *arguments: Any) -> fx.Node:
        """A node with its fake value; it keeps what the partitioner noted of the op that it replaces."""
        node = self.node.graph.call_function(target, arguments)
        node.meta = dict(self.node.meta)
        node.meta["val"] = target(*fx.map_arg(arguments, lambda operand: operand.meta["val"]))
        return node

    def draw(self, target: Any, dtype: torch.dtype, *bounds: Any) -> fx.Node:
        return self.call(target, self.seed, *bounds, self.size(), self.stream, dtype)


def _drawing(name: str) -> Callable[[_Replacement], fx.Node | None]:
    def replace(place: _Replacement) -> fx.Node | None:
        if place.value.dtype not in FRACTION_BITS or not place.value.is_contiguous():
            return None
        return place.draw(getattr(torch.ops.stepwell, name).default, place.value.dtype)

    return replace


def _bernoulli(place: _Replacement) -> fx.Node | None:
    """1 with a probability: a number, the second operand, or elementwise, the first. Left to eager where it may refuse
    one: numbers that are not between 0 and 1 or not known, and tensors on the CPU, whose elements it looks at."""
    if not place.value.is_contiguous():
        return None
    arguments = place.node.args
    probability = arguments[1] if len(arguments) > 1 else arguments[0]
    tensor = isinstance(probability, fx.Node) and isinstance(probability.meta["val"], torch.Tensor)
    refusable = place.value.device.type == "cpu" if tensor else not _is_probability(probability)
    if refusable:
        return None
    uniform = place.draw(torch.ops.stepwell.uniform.default, torch.float32)
    below = place.call(torch.ops.aten.lt.Tensor if tensor else torch.ops.aten.lt.Scalar, uniform, probability)
    return place.call(torch.ops.prims.convert_element_type.default, below, place.value.dtype)


def _is_probability(number: Any) -> bool:
    return isinstance(number, int | float) and 0 <= number <= 1


def _integers(place: _Replacement) -> fx.Node | None:
    bounds = [argument for argument in place.node.args if isinstance(argument, int)]
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds[:2] if len(bounds) == 2 else (0, 0)
    if place.value.dtype != torch.int64 or not 0 < high - low <= _MAX_RANGE:
        return None
    return place.draw(torch.ops.stepwell.integers.default, torch.int64, low, high)


_RULES: dict[str, Callable[[_Replacement], fx.Node | None]] = {
    "aten.rand.default": _drawing("uniform"),
    "aten.rand_like.default": _drawing("uniform"),
    "aten.randn.default": _drawing("normal"),
    "aten.randn_like.default": _drawing("normal"),
    "aten.bernoulli.p": _bernoulli,
    "aten.bernoulli.default": _bernoulli,
    "aten.bernoulli.Tensor": _bernoulli,
    "aten.randint.default": _integers,
    "aten.randint.low": _integers,
    "aten.randint_like.default": _integers,
    "aten.randint_like.low_dtype": _integers,
}
"""Overload → how it is computed from a seed; None from a rule leaves the op as it is."""

RULES = {target: rule for name, rule in _RULES.items() if (target := overload(name)) is not None}


def replace_random(gm: fx.GraphModule) -> None:
    """Rewrites the random ops of a graph (the joint one, where there is a backward pass) in place."""
    nodes = [node for node in gm.graph.nodes if node.target in RULES and _has_own_generator(node)]
    if not nodes:
        return
    seeds: dict[torch.device, fx.Node] = {}
    replaced = [_replace(gm.graph, node, seeds, stream) for stream, node in enumerate(nodes)]
    if any(replaced):
        gm.graph.eliminate_dead_code()
        gm.recompile()


# -- eager's own numbers -----------------------------------------------------------------------------


def split_saved_states(forward: fx.GraphModule, backward: fx.GraphModule) -> None:
    """torch makes a recomputed random op repeat its numbers by calls that save and restore the generator's state.

    The former become two ordinary ops, the latter get the fake values that torch leaves out.
    """
    for node in forward.graph.find_nodes(op="call_function", target=run_and_save_rng_state):
        _split(forward.graph, node)
    for node in backward.graph.find_nodes(op="call_function", target=run_with_rng_state):
        _, target, *arguments = node.args
        fakes = fx.map_arg((arguments, node.kwargs), lambda operand: operand.meta["val"])
        with _first_fake(backward).fake_mode:
            node.meta["val"] = target(*fakes[0], **fakes[1])


def _split(graph: fx.Graph, node: fx.Node) -> None:
    parts = {user.args[1]: user for user in node.users}
    target, *arguments = node.args
    with graph.inserting_before(node):
        value = parts[1].meta["val"]
        first = value[0] if isinstance(value, tuple | list) else value
        state = graph.call_function(torch.ops.stepwell.rng_state.default, (first.device,))
        result = graph.call_function(target, tuple(arguments), node.kwargs)  # type: ignore[arg-type]
    for position, replacement in ((0, state), (1, result)):
        replacement.meta = dict(parts[position].meta)
        parts[position].replace_all_uses_with(replacement)
        graph.erase_node(parts[position])
    graph.erase_node(node)
    with first.fake_mode:  # torch gives the state a symbol for its size
        state.meta["val"] = torch.empty(_STATE_BYTES, dtype=torch.uint8)


def _first_fake(gm: fx.GraphModule) -> Any:
    values = (node.meta.get("val") for node in gm.graph.find_nodes(op="placeholder"))
    return next(value for value in values if isinstance(value, FakeTensor))


def _has_own_generator(node: fx.Node) -> bool:
    """Whether it draws from the default generator, which is what the seed is drawn from."""
    return node.kwargs.get("generator") is None


def _replace(graph: fx.Graph, node: fx.Node, seeds: dict[torch.device, fx.Node], stream: int) -> bool:
    device = node.meta["val"].device
    if device not in seeds:
        seeds[device] = _seed(graph, node, device)
    with graph.inserting_before(node):
        found = RULES[node.target](_Replacement(node, seeds[device], stream * STREAMS_PER_OP))  # type: ignore[index]
    if found is None:
        return False
    node.replace_all_uses_with(found)
    graph.erase_node(node)
    return True


def _seed(graph: fx.Graph, node: fx.Node, device: torch.device) -> fx.Node:
    """The seed of one device, drawn at the start of the graph."""
    first = next(other for other in graph.nodes if other.op != "placeholder")
    with graph.inserting_before(first):
        seed = graph.call_function(torch.ops.stepwell.seed.default, (device,))
    with node.meta["val"].fake_mode:
        seed.meta["val"] = torch.empty((), dtype=torch.int64, device=device)
    seed.meta["stack_trace"] = node.meta.get("stack_trace")
    return seed
