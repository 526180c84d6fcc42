"""The functions of NVIDIA's libdevice that stand for ops of `math`: a name on f64, one with an f behind it on f32."""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.ir import Operation

FUNCTIONS: dict[type[Operation], str] = {
    math.ExpOp: "exp", math.Exp2Op: "exp2", math.ExpM1Op: "expm1", math.LogOp: "log", math.Log2Op: "log2",
    math.Log10Op: "log10", math.Log1pOp: "log1p", math.ErfOp: "erf", math.TanhOp: "tanh", math.SinOp: "sin",
    math.CosOp: "cos", math.TanOp: "tan", math.AsinOp: "asin", math.AcosOp: "acos", math.AtanOp: "atan",
    math.Atan2Op: "atan2", math.SinhOp: "sinh", math.CoshOp: "cosh", math.AsinhOp: "asinh", math.AcoshOp: "acosh",
    math.AtanhOp: "atanh", math.CbrtOp: "cbrt", math.PowFOp: "pow", math.CopySignOp: "copysign",
    math.RsqrtOp: "rsqrt", math.TruncOp: "trunc", math.RoundOp: "round", math.RoundEvenOp: "rint",
}  # fmt: skip
"""Op of `math` → function on floats."""

COUNTS: dict[type[Operation], tuple[str, str]] = {
    math.CtPopOp: ("popc", "popcll"),
    math.CountLeadingZerosOp: ("clz", "clzll"),
}
"""Op of `math` → functions on i32 and on i64; both give i32."""


def symbols() -> dict[str, type[Operation]]:
    """Symbol of each function → the op that it stands for."""
    floats = {f"__nv_{name}{suffix}": op for op, name in FUNCTIONS.items() for suffix in ("", "f")}
    return floats | {f"__nv_{name}": op for op, names in COUNTS.items() for name in names}


__all__ = ["COUNTS", "FUNCTIONS", "symbols"]
