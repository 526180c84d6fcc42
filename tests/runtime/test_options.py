"""Options of `torch.compile` change what is compiled."""

from __future__ import annotations

import torch


def test_excess_precision_keeps_wide_values_between_fused_ops() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x + 1) * 3

    x = torch.linspace(0, 1, 64, dtype=torch.bfloat16)
    wide = (x.float() + 1) * 3
    rounded = torch.compile(function, backend="stepwell")(x)
    kept = torch.compile(function, backend="stepwell", options={"excess_precision": True})(x)
    assert torch.equal(rounded, function(x))
    assert torch.equal(kept, wide.bfloat16())
    assert not torch.equal(kept, rounded)
