"""Custom ops for random numbers that are functions of (seed, stream, index), with an eager form of each.

They stand in FX graphs in place of torch's own, so that a value recomputed in the backward pass is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

_WORD = np.uint64(0xFFFFFFFF)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10

FRACTION_BITS = {torch.float32: 24, torch.bfloat16: 8, torch.float16: 11, torch.float64: 53}
"""How many random bits a number in [0, 1) has in each type, so that none rounds to 1."""


def philox(seed: int, count: int, stream: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The first word of Philox4x32-10 (Salmon et al., SC'11) for the counters 0 to count - 1: the seed is the key,
    the counter the low and the stream the high half of the counter block."""
    counter = np.arange(count, dtype=np.uint64)
    words = [counter & _WORD, counter >> np.uint64(32)]
    words += [np.full(count, half, np.uint64) for half in (stream & 0xFFFFFFFF, stream >> 32)]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(_ROUNDS):
        first, second = words[0] * _MULTIPLIERS[0], words[2] * _MULTIPLIERS[1]
        words = [
            (second >> np.uint64(32)) ^ words[1] ^ np.uint64(key[0]),
            second & _WORD,
            (first >> np.uint64(32)) ^ words[3] ^ np.uint64(key[1]),
            first & _WORD,
        ]
        key = [(part + step) & 0xFFFFFFFF for part, step in zip(key, _WEYL, strict=True)]
    return words[0]


def _low_bits(seed: Tensor, size: Sequence[int], stream: int, width: int) -> Tensor:
    words = philox(int(seed), math.prod(size), stream) & np.uint64((1 << width) - 1)
    return torch.from_numpy(words.astype(np.int64)).reshape(tuple(size)).to(seed.device)


def _fraction(seed: Tensor, size: Sequence[int], stream: int, width: int) -> Tensor:
    return _low_bits(seed, size, stream, width).to(torch.float32) * 2.0**-width


# -- the ops -----------------------------------------------------------------------------------------


def _seed(device: torch.device) -> Tensor:
    return torch.randint(-(2**63), 2**63 - 1, (), device=device)


def _state(device: torch.device) -> Tensor:
    return torch.get_rng_state() if device.type == "cpu" else torch.get_device_module(device).get_rng_state(device)


def _uniform(seed: Tensor, size: Sequence[int], stream: int, dtype: torch.dtype) -> Tensor:
    if dtype != torch.float64:
        return _fraction(seed, size, stream, FRACTION_BITS[dtype]).to(dtype)
    high, low = _low_bits(seed, size, stream, 26), _low_bits(seed, size, stream + 1, 27)
    return (high.to(dtype) * 2.0**27 + low.to(dtype)) * 2.0**-53


def _normal(seed: Tensor, size: Sequence[int], stream: int, dtype: torch.dtype) -> Tensor:
    """By Box and Muller's transform."""
    radius = torch.sqrt(-2.0 * torch.log(1.0 - _fraction(seed, size, stream, 24)))
    return (radius * torch.cos(_fraction(seed, size, stream + 1, 24) * (2 * math.pi))).to(dtype)


def _integers(seed: Tensor, low: int, high: int, size: Sequence[int], stream: int, dtype: torch.dtype) -> Tensor:
    return (_low_bits(seed, size, stream, 32) % (high - low) + low).to(dtype)


def _fake_seed(device: torch.device) -> Tensor:
    return torch.empty((), dtype=torch.int64, device=device)


def _fake_state(device: torch.device) -> Tensor:
    return torch.empty_like(torch.get_rng_state())


def _fake_numbers(seed: Tensor, *arguments: Any) -> Tensor:
    *_, size, _stream, dtype = arguments
    return torch.empty(size, dtype=dtype, device=seed.device)


_OPS: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "seed(Device device) -> Tensor": (_seed, _fake_seed),
    "rng_state(Device device) -> Tensor": (_state, _fake_state),
    "uniform(Tensor seed, SymInt[] size, int stream, ScalarType dtype) -> Tensor": (_uniform, _fake_numbers),
    "normal(Tensor seed, SymInt[] size, int stream, ScalarType dtype) -> Tensor": (_normal, _fake_numbers),
    "integers(Tensor seed, int low, int high, SymInt[] size, int stream, ScalarType dtype) -> Tensor": (
        _integers,
        _fake_numbers,
    ),
}
"""Schema → eager form and fake form. `seed` draws a seed from torch's generator, as an i64 of rank 0; `rng_state` is
the state of that generator, as bytes; `uniform` numbers lie in [0, 1), `normal` ones have mean 0 and deviation 1,
`integers` lie in [low, high)."""

# A plain library: the wrapper `torch.library.custom_op` would cost 1 ms a call.
LIBRARY = torch.library.Library("stepwell", "DEF")

for _schema, (_eager, _fake) in _OPS.items():
    _name = _schema.partition("(")[0]
    LIBRARY.define(_schema, tags=(torch.Tag.nondeterministic_seeded,) if _name in ("seed", "rng_state") else ())
    LIBRARY.impl(_name, _eager, "CompositeExplicitAutograd")
    torch.library.register_fake(f"stepwell::{_name}", _fake, lib=LIBRARY)
