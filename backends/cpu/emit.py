"""tile → LLVM IR text: one module per kernel, with the functions that the runtime calls.

`void @k(ptr args, i64 lo, i64 hi)` runs programs lo ≤ p < hi, `i64 @k.grid(ptr args)` returns their number, and
`void @k.finish(ptr args)`, if the kernel has a finish region, runs once after all of them. `args` is an array of
i64: the address of the call's error slot, then the kernel's arguments, addresses or index values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, SSAValue

from ...ir import tile
from ...ir.locations import location_text
from ...ir.target import Target
from .builder import Module
from .convert import CONVERT
from .emit_arith import ARITH
from .emit_blocks import BLOCKS
from .emit_control import CONTROL
from .emit_math import MATH
from .emit_memory import MEMORY
from .emit_reduce import REDUCE
from .emitter import Emitter, Table

EMITTERS: Table = {**ARITH, **MATH, **CONVERT, **BLOCKS, **REDUCE, **MEMORY, **CONTROL}


def emit_kernel(kernel: tile.KernelOp, target: Target) -> str:
    """The LLVM module of one kernel."""
    module = Module()
    name = kernel.sym_name.data
    module.functions += [
        _function(kernel, target, module, f"void @{name}(ptr %args, i64 %lo, i64 %hi)", kernel.block, _programs),
        _function(kernel, target, module, f"i64 @{name}.grid(ptr %args)", kernel.block, _grid),
    ]
    if kernel.finish is not None:
        finish = f"void @{name}.finish(ptr %args)"
        module.functions.append(_function(kernel, target, module, finish, kernel.finish.block, _finish))
    place = location_text(kernel)
    return f"; tile.kernel @{name} grid ({kernel.grid_size}){f', {place}' if place else ''}\n{module.text}"


def _function(
    kernel: tile.KernelOp,
    target: Target,
    module: Module,
    signature: str,
    block: Block,
    body: Callable[[Emitter, tile.KernelOp, Block], str],
) -> str:
    names = [f"%{'s' if isinstance(value.type, IndexType) else 'buffer'}.{at}" for at, value in enumerate(block.args)]
    symbols = {known.name: name for known, name in zip(kernel.symbols[::-1], names[::-1], strict=False)}
    ranges = {known.name: (known.low, known.high) for known in kernel.symbols}
    e = Emitter(module, target, EMITTERS, symbols, ranges)
    e.values.update((value, (name,)) for value, name in zip(block.args, names, strict=True))
    result = body(e, kernel, block)
    (scope,) = e.scopes
    lines = "\n".join(scope.lines)
    return f'define {signature} nounwind "no-builtins" {{\nentry:\n{lines}\n  {result}\n}}'


def _load_arguments(e: Emitter, values: Sequence[SSAValue]) -> None:
    """Loads the words of `args`: the error slot, which comes first, and these arguments of the kernel."""
    e.error = "%error"
    e.effect("%error = load ptr, ptr %args, align 8")
    for value in values:
        _load_argument(e, value)


def _load_argument(e: Emitter, value: SSAValue) -> None:
    assert isinstance(value, BlockArgument)
    type_ = "i64" if isinstance(value.type, IndexType) else "ptr"
    slot = e.pure(f"getelementptr i64, ptr %args, i64 {value.index + 1}")
    e.effect(f"{e.scalar(value)} = load {type_}, ptr {slot}, align 8")


def _programs(e: Emitter, kernel: tile.KernelOp, block: Block) -> str:
    _load_arguments(e, block.args)
    e.grid = e.expressions.emit(kernel.grid_size)

    def program(index: str, _: Sequence[str]) -> Sequence[str]:
        e.program = index
        e.expressions.nonnegative.add(index)
        e.emit(block.ops)
        return ()

    e.loop("%lo", "%hi", 1, (), program)
    return "ret void"


def _grid(e: Emitter, kernel: tile.KernelOp, block: Block) -> str:
    for value in block.args[len(block.args) - len(kernel.symbols) :]:
        _load_argument(e, value)
    return f"ret i64 {e.expressions.emit(kernel.grid_size)}"


def _finish(e: Emitter, kernel: tile.KernelOp, block: Block) -> str:
    _load_arguments(e, block.args)
    e.grid = e.expressions.emit(kernel.grid_size)
    e.emit(block.ops)
    return "ret void"
