"""`loop-shrink-locals`: makes a local buffer no larger than what one iteration of the nest around its uses needs.

Fusion leaves locals of a whole tensor's shape at the start of a kernel; here they become rows, kept hot.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...ir import loop
from ...ir.expr import ONE, ZERO, Atom, Expr, dim
from ...ir.loop.ops import AccessOp
from ..analysis.accesses import ancestor_in, extent_of, index_operands, only, set_access
from ..analysis.kernels import functions_with_kernels
from ..analysis.sizes import Sizes
from .moves import erase

Outer = dict[SSAValue, Expr]
"""A sum of indices from outside of a block, each with its coefficient."""


def common_block(accesses: Sequence[AccessOp]) -> Block:
    """The innermost block that holds all the accesses."""
    first, *_ = accesses
    block = first.parent
    assert block is not None
    while not all(ancestor_in(block, access) for access in accesses):
        parent = block.parent_op()
        assert parent is not None
        assert parent.parent is not None
        block = parent.parent
    return block


def is_outside(index: SSAValue, block: Block) -> bool:
    """Whether an index keeps its value throughout one run of the block."""
    owner = index.owner
    defined_in = owner.parent if isinstance(owner, Operation) else owner
    assert defined_in is not None
    return defined_in.is_ancestor(block)


class Shrinker:
    """Shrinks one local to the rows that `block` needs."""

    def __init__(self, local: loop.LocalOp, accesses: Sequence[AccessOp], block: Block):
        self.sizes = Sizes.at(local)
        self.local = local
        self.accesses = accesses
        self.block = block

    def run(self) -> None:
        """`%b[%i * 4 + %j, %k]  →  %b[%j, %k]` where `%i` is an index around all accesses."""
        dimensions: list[tuple[Expr, list[Expr]]] = []
        for position in range(len(self.local.sizes)):
            dimension = self.inner_dimension(position)
            if dimension is None:
                return
            if dimension[0] != ONE:
                dimensions.append(dimension)
        made = loop.LocalOp.make(self.local.buffer.type.element_type, [size for size, _ in dimensions])
        made.location = self.local.location
        made.buffer.name_hint = self.local.buffer.name_hint
        for number, access in enumerate(self.accesses):
            set_access(access, list(index_operands(access)), [exprs[number] for _, exprs in dimensions], self.sizes)
        self.local.buffer.replace_all_uses_with(made.buffer)
        start = self.block.first_op
        assert start is not None
        self.block.insert_op_before(made, start)
        erase(self.local)

    def inner_dimension(self, position: int) -> tuple[Expr, list[Expr]] | None:
        """The size of a dimension without its outer part, and each access's expression in it; None if accesses
        differ in their outer parts or need the whole."""
        outers: list[Outer] = []
        inners: list[Expr] = []
        for access in self.accesses:
            outer, inner = self.parts(access, access.map.results[position])
            if any(is_outside(index_operands(access)[k], self.block) for k in inner.dims):
                return None
            outers.append(outer)
            inners.append(inner)
        shared, *others = outers
        if any(outer != shared for outer in others):
            return None
        if not shared:
            return self.local.sizes[position], inners
        bound, *different = {self.bound(access, inner) for access, inner in zip(self.accesses, inners, strict=True)}
        return None if different or bound is None else (bound, inners)

    def parts(self, access: AccessOp, expr: Expr) -> tuple[Outer, Expr]:
        """The terms linear in outer indices, and the rest."""
        indices = index_operands(access)
        outer: Outer = {}
        rest = expr
        for monomial, coefficient in expr.terms:
            dims = [atom for atom in monomial if atom.kind == "dim"]
            if (only_dim := only(dims)) is not None and is_outside(index := indices[only_dim.name], self.block):
                others: tuple[Atom, ...] = tuple(atom for atom in monomial if atom is not only_dim)
                outer[index] = outer.get(index, ZERO) + Expr.from_terms({others: coefficient})
                rest = rest - Expr(((monomial, coefficient),))
        return outer, rest

    def bound(self, access: AccessOp, expr: Expr) -> Expr | None:
        """One more than the greatest value of a sum of indices that grows with each: one that counts down holds a
        constant as well, since no place is negative."""
        indices = index_operands(access)
        total = ONE
        for position in sorted(expr.dims):
            extent, factor = extent_of(indices[position]), expr.coefficient(position)
            if extent is None or factor is None:
                return None
            total = total + (extent - 1) * factor
            expr = expr - factor * dim(position)
        return total if not expr.terms else None


class LoopShrinkLocals(ModulePass):
    """Make each local buffer as small as one iteration of the nest around its uses needs."""

    name = "loop-shrink-locals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _, kernels in functions_with_kernels(op):
            for kernel in kernels:
                for local in [inner for inner in kernel.block.ops if isinstance(inner, loop.LocalOp)]:
                    shrink(local)


def shrink(local: loop.LocalOp) -> None:
    accesses = [use.operation for use in local.buffer.uses if isinstance(use.operation, AccessOp)]
    if accesses:
        block = common_block(accesses)
        if block is not local.parent:
            Shrinker(local, accesses, block).run()
