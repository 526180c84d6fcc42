"""Makes mutants of Python source: a guard dropped, a pair of operands swapped, a constant one more or less.

Each mutant is the source with one small piece replaced, so that it reads as a diff of one line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Mutant:
    """One change of a source: what was done, where, and the whole text with it."""

    kind: str
    line: int
    column: int
    before: str
    after: str
    text: str

    @property
    def summary(self) -> str:
        return f"{self.line}:{self.column}: {self.kind}: {self.before} → {self.after}"


EXITS = (ast.Return, ast.Continue, ast.Break, ast.Raise)

ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)
"""Operators for which the order of the operands counts."""


CACHES = ("lru_cache",)

COMMUTING_CALLS = {
    "exact_product": range(9),
    "product_of_words": range(9),
    "_join": range(1, 9),
    "fma": range(1),
    "both": range(2, 9),
    "minimum": range(9),
    "maximum": range(9),
    "pure": range(1, 9),
    **dict.fromkeys(
        ("linearize", "linear_offset", "offset_in_memory", "may_replace", "meet", "same_place", "share"), range(1)
    ),
    "_used_in_finish": range(1, 2),
}
"""Functions with the places of arguments that give the same if they change places with the next one: exact products,
the edges of a phi, the factors of a fused sum, a bitwise and, extrema of expressions, which have one form, what an
instruction depends on, sums of products, and questions whether two are alike or meet."""

COMMUTING_BUILTINS = ("min", "max")

COMMUTING_OPS = {
    *(
        "add",
        "mul",
        "and",
        "or",
        "xor",
        "fadd",
        "fmul",
        "eq",
        "ne",
        "oeq",
        "une",
        "uno",
        "smin",
        "smax",
        "umin",
        "umax",
    ),
    *("AddOp", "MulOp", "MaximumOp", "MinimumOp", "AndOp", "OrOp", "XorOp"),
    *("AddiOp", "MuliOp", "AndIOp", "OrIOp", "XOrIOp", "AddfOp", "MulfOp", "MinSIOp", "MaxSIOp", "MinUIOp", "MaxUIOp"),
}
"""Opcodes, predicates and classes of ops which, where one is an argument, say that the two arguments behind it give the
same in either order; so do the two behind a class, or its `make`, that is called."""


class Source:
    """A source with its lines as bytes, as the positions of its syntax tree count."""

    def __init__(self, text: str) -> None:
        self.lines = text.encode().splitlines(keepends=True)
        self.tree = ast.parse(text)

    def offset(self, line: int, column: int) -> int:
        return sum(map(len, self.lines[: line - 1])) + column

    def span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def mutant(self, kind: str, node: ast.expr, *edits: tuple[ast.expr, str]) -> Mutant:
        """With each node replaced by a text; `node` is what the change is about."""
        whole = b"".join(self.lines)
        start, end = self.span(node)
        tail = len(whole) - end
        for part, text in sorted(edits, key=lambda edit: -self.span(edit[0])[0]):
            low, high = self.span(part)
            whole = whole[:low] + text.encode() + whole[high:]
        original = b"".join(self.lines)[start:end].decode()
        changed = whole[start : len(whole) - tail].decode()
        return Mutant(kind, node.lineno, node.col_offset + 1, one_line(original), one_line(changed), whole.decode())

    def text_of(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return b"".join(self.lines)[start:end].decode()


def one_line(text: str) -> str:
    return " ".join(text.split())


def mutants(text: str) -> Iterator[Mutant]:
    """Every mutant of a source, in the order of its lines."""
    source = Source(text)
    ignored = untouched(source.tree)
    found = [mutant for node in ast.walk(source.tree) if id(node) not in ignored for mutant in mutants_of(source, node)]
    yield from sorted(found, key=lambda mutant: mutant.line)


def untouched(tree: ast.Module) -> set[int]:
    """Nodes in which nothing runs, or nothing that a result depends on: annotations, messages, assertions, `__all__`,
    how much a cache keeps."""
    roots: list[ast.AST] = []
    sizes = sizes_of_caches(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            roots += [part for part in (node.returns, node.args) if part is not None]
            roots += caches_of(node)
        elif isinstance(node, ast.AnnAssign):
            roots.append(node.annotation)
        elif isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or assigns(node, "__all__", *sizes):
            roots.append(node)
    return {id(inner) for root in roots for inner in ast.walk(root)}


def caches_of(function: ast.FunctionDef) -> list[ast.expr]:
    """`@lru_cache(…)`"""
    return [part for part in function.decorator_list if isinstance(part, ast.Call) and name_of(part.func) in CACHES]


def sizes_of_caches(tree: ast.Module) -> set[str]:
    """Names that nothing but caches use."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = [id(inner) for function in functions for cache in caches_of(function) for inner in ast.walk(cache)]
    read = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return {node.id for node in read if id(node) in inside} - {node.id for node in read if id(node) not in inside}


def assigns(node: ast.AST, *names: str) -> bool:
    """`__all__ = […]`"""
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets)


def mutants_of(source: Source, node: ast.AST) -> Iterator[Mutant]:
    """Those of one node itself."""
    if isinstance(node, ast.If) and isinstance(node.body[-1], EXITS) and len(node.body) == 1:
        yield source.mutant("guard dropped", node.test, (node.test, "False"))
    elif isinstance(node, ast.BoolOp):
        neutral = "True" if isinstance(node.op, ast.And) else "False"
        for value in node.values:
            yield source.mutant("condition dropped", value, (value, neutral))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ORDERED) and not is_text(node):
        yield swapped(source, node, node.left, node.right)
    elif isinstance(node, ast.Call) and not is_question_of_type(node):
        positional = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
        for place, (first, second) in enumerate(pairwise(positional)):
            if source.text_of(first) != source.text_of(second) and not commute(node, place):
                yield swapped(source, node, first, second)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        for step in (1, -1):
            yield source.mutant("constant", node, (node, str(node.value + step)))


def swapped(source: Source, node: ast.expr, first: ast.expr, second: ast.expr) -> Mutant:
    return source.mutant("swapped", node, (first, source.text_of(second)), (second, source.text_of(first)))


def commute(node: ast.Call, place: int) -> bool:
    """Whether the argument at a place and the next one may change places."""
    called = name_of(node.func)
    if isinstance(node.func, ast.Name) and called in COMMUTING_BUILTINS:
        return not node.keywords
    if place in COMMUTING_CALLS.get(called, ()):
        return True
    made = {called, name_of(node.func.value)} if isinstance(node.func, ast.Attribute) else {called}
    names = made if place == 0 else words_of(node.args[place - 1])
    return bool(names & COMMUTING_OPS) or (place > 1 and words_of(node.args[place - 2]) == {"fma"})


def words_of(argument: ast.expr) -> set[str]:
    """The words of a text, or the name of a class."""
    if isinstance(argument, ast.Constant):
        return set(argument.value.split()) if isinstance(argument.value, str) else set()
    return {name_of(argument)} if isinstance(argument, ast.Attribute) else set()


def name_of(function: ast.expr) -> str:
    """The last part of the name of what is called."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_question_of_type(node: ast.Call) -> bool:
    """Whether the call is of `isinstance`, which no test needs to tell from its reverse."""
    return isinstance(node.func, ast.Name) and node.func.id == "isinstance"


def is_text(node: ast.BinOp) -> bool:
    """Whether an operator formats or joins text or paths."""
    return any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right))
