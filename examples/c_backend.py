"""A backend of one's own: prints C for tile kernels and compiles it with the system compiler.

It knows pointwise f32 arithmetic; a kernel with anything else it declines, and the CPU backend takes that.

python examples/c_backend.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from operator import attrgetter
from typing import Any

import torch
from xdsl.dialects import arith

import stepwell
from stepwell.backends.native.shared_library import SharedLibrary
from stepwell.ir import tile
from stepwell.ir.expr import ONE
from stepwell.ir.target import Target

FRAME = """#define min(a, b) ((a) < (b) ? (a) : (b))
#define inf __builtin_inff()
void {name}(long *args, long lo, long hi) {{ for (long program = lo; program < hi; program++) {{
{lines}
}}}}"""

ARITHMETIC = {arith.AddfOp: "+", arith.SubfOp: "-", arith.MulfOp: "*", arith.DivfOp: "/"}
TEMPLATES: dict[Any, str] = {
    tile.ProgramIdOp: "long $result = program;",
    tile.ForOp: "for (long $index = @low; $index < @high; $index++) {",
    tile.YieldOp: "}",
    tile.LoadOp: "float $result = $buffer[@offset];",
    tile.StoreOp: "$buffer[@offset] = $value;",
    tile.BroadcastOp: "float $result = $operand;",
    arith.ConstantOp: "float $result = @value.value.data;",
    **{op: f"float $result = $lhs {c} $rhs;" for op, c in ARITHMETIC.items()},
}
"""Op → C: `$x` is a value of the op, `@x` an attribute. Lanes become iterations, so every block is a scalar."""


def c_text(kernel: tile.KernelOp) -> str:
    names = {argument: f"v{argument.index}" for argument in kernel.block.args}

    def name(value: Any) -> str:
        return names.setdefault(value, f"v{len(names)}")

    def line(op: Any) -> str:
        text = re.sub(r"@([\w.]+)", lambda match: str(attrgetter(match[1])(op)), TEMPLATES[type(op)])
        text = re.sub(r"\bd(\d+)", lambda match: name(op.indices[int(match[1])]), text)  # our expressions are C
        return re.sub(r"\$(\w+)", lambda match: name(getattr(op, match[1])), text)

    lines = [f"float *{names[arg]} = (float *)args[{arg.index + 1}];" for arg in kernel.block.args]
    return FRAME.format(name=kernel.sym_name.data, lines="\n".join([*lines, *map(line, kernel.block.walk())]))


def is_simple(op: Any) -> bool:
    """Whether there is C for an op, and lane l of a loop is the iteration that is l further on."""
    if isinstance(op, tile.LoadOp | tile.StoreOp):
        loop = op.parent_op()
        lane = loop.index if isinstance(loop, tile.ForOp) and loop.lanes > 1 else None
        return list(op.lane_strides) == [ONE for index in op.indices if index is lane] and "div" not in str(op.offset)
    return type(op) in TEMPLATES and not (isinstance(op, tile.ForOp) and op.inits)


class CBackend:
    """Kernels as C."""

    def compile(self, kernel: tile.KernelOp, target: Target) -> SharedLibrary | None:
        f32 = all(str(argument.type) == "memref<?xf32>" for argument in kernel.block.args)
        if not f32 or kernel.finish is not None or not all(map(is_simple, kernel.block.walk())):
            return None
        text = c_text(kernel)
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            command = f"cc -O3 -ffp-contract=off -shared -fPIC -xc - -o {file.name}"
            subprocess.run(command.split(), input=text, text=True, check=True)
            return SharedLibrary(file.name, text)


def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.softmax(x, 0), (x * 2 + y) / (1 + y * y)


def main() -> None:
    if shutil.which("cc") is None:
        return print("skipped: this machine has no system compiler `cc`")
    x, y = torch.randn(1000), torch.randn(1000)
    with stepwell.config.patch(backend=CBackend(), strict=True):
        torch.testing.assert_close(torch.compile(function, backend="stepwell")(x, y), function(x, y))
        codes = {kernel.name: kernel.stages["asm"] for kernel in stepwell.explain(function, x, y).kernels}
    print({name: "C" if "#define" in code else "LLVM" for name, code in codes.items()})


if __name__ == "__main__":
    main()
