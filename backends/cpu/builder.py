"""Writes the text of one LLVM function: nested scopes, structured loops and branches, code where it is invariant.

Text, not an object model, because LLVM parses a line in about 1 µs while building it through llvmlite costs 20.
This module knows LLVM's syntax and nothing of tile operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.target import Target
from .blocks import INT8, INT16, INT32, INT64, Block, Element, block_of

Typed = tuple[str, str]
"""An LLVM type and an operand of it."""


COUNTER_BITS = 128
"""Width of the shortest comparison of lane numbers: LLVM 20 widens a shorter one, and where the mask guards bytes it
takes the added lanes for off, though nothing says what they are."""

BYTE_NUMBERS = 128
"""Lane numbers that a byte holds."""


def _counter(lanes: int) -> Element:
    """The narrowest integer to compare lane numbers in."""
    if lanes > BYTE_NUMBERS:
        return INT32
    return next((element for element in (INT8, INT16, INT32) if lanes * element.bits >= COUNTER_BITS), INT64)


class Module:
    """What the functions of one LLVM module share: declarations and helper definitions, each once."""

    def __init__(self) -> None:
        self.declarations: dict[str, None] = {}
        self.definitions: dict[str, str] = {}
        self.functions: list[str] = []
        self._intrinsics: set[str] = set()

    def declare(self, line: str) -> None:
        self.declarations[line] = None

    def declare_intrinsic(self, result: str, name: str, arguments: Sequence[Typed]) -> None:
        if name not in self._intrinsics:
            self._intrinsics.add(name)
            self.declare(f"declare {result} @{name}({', '.join([type_ for type_, _ in arguments])})")

    def define(self, name: str, text: str) -> None:
        self.definitions[name] = text

    @property
    def text(self) -> str:
        parts = ["\n".join(sorted(self.declarations)), *self.definitions.values(), *self.functions]
        return "\n\n".join(part for part in parts if part) + "\n"


class Scope:
    """Straight-line code with nested loops inside it: its lines, its pure values by text, its last label."""

    def __init__(self, label: str) -> None:
        self.lines: list[str] = []
        self.known: dict[str, str] = {}
        self.label = label


class Builder:
    """Emits one function. The innermost of `scopes` is where code goes unless it is invariant."""

    def __init__(self, module: Module, target: Target) -> None:
        self.module = module
        self.target = target
        self.scopes = [Scope("entry")]
        self.depths: dict[str, int] = {}
        self.locals: dict[object, str] = {}
        self.count = 0

    # -- instructions ----------------------------------------------------------------------------

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}.{self.count}"

    def named(self, text: str) -> str:
        """A fresh name for the result of an instruction, which begins with the opcode."""
        opcode, _, _ = text.partition(" ")
        return f"%{self.fresh(opcode)}"

    def value(self, text: str) -> str:
        """An instruction's result."""
        name = self.named(text)
        self.scopes[-1].lines.append(f"  {name} = {text}")
        self.depths[name] = len(self.scopes) - 1
        return name

    def effect(self, text: str) -> None:
        self.scopes[-1].lines.append(f"  {text}")

    def comment(self, text: str) -> None:
        self.effect(f"; {text}")

    def depth(self, operand: str) -> int:
        """The scope that an operand is defined in; constants and arguments lie in the outermost."""
        return self.depths.get(operand, 0)

    def pure(self, text: str, *operands: str) -> str:
        """The result of an instruction without effects, made once in the outermost scope that has its operands."""
        depth = max(map(self.depth, operands), default=0)
        scope = self.scopes[depth]
        name = scope.known.get(text)
        if name is None:
            name = scope.known[text] = self.named(text)
            scope.lines.append(f"  {name} = {text}")
            self.depths[name] = depth
        return name

    def call(self, result: str, intrinsic: str, *arguments: Typed) -> str:
        """The result of an intrinsic, which is declared."""
        return self.value(self._call(result, intrinsic, arguments))

    def pure_call(self, result: str, intrinsic: str, *arguments: Typed) -> str:
        return self.pure(self._call(result, intrinsic, arguments), *[operand for _, operand in arguments])

    def call_effect(self, intrinsic: str, *arguments: Typed) -> None:
        self.effect(self._call("void", intrinsic, arguments))

    def _call(self, result: str, intrinsic: str, arguments: Sequence[Typed]) -> str:
        self.module.declare_intrinsic(result, intrinsic, arguments)
        return f"call {result} @{intrinsic}({', '.join([f'{type_} {operand}' for type_, operand in arguments])})"

    def intrinsic(self, name: str, block: Block, *operands: str) -> str:
        """An intrinsic overloaded on one type, which all its operands and its result have."""
        return self.call(block.text, f"llvm.{name}.{block.suffix}", *((block.text, operand) for operand in operands))

    # -- vectors ---------------------------------------------------------------------------------

    def shuffle(self, block: Block, first: str, second: str, lanes: Sequence[int]) -> str:
        """Lanes of two pieces, counted through both; as many as asked for."""
        mask = f"<{len(lanes)} x i32> <{', '.join([f'i32 {lane}' for lane in lanes])}>"
        return self.value(f"shufflevector {block.text} {first}, {block.text} {second}, {mask}")

    def part(self, block: Block, piece: str, first: int, part: Block) -> str:
        """Neighbouring lanes of a piece."""
        if first % part.lanes:
            return self.shuffle(block, piece, "poison", range(first, first + part.lanes))
        name = f"llvm.vector.extract.{part.suffix}.{block.suffix}"
        return self.call(part.text, name, (block.text, piece), ("i64", str(first)))

    def join(self, block: Block, parts: Sequence[str], part: Block) -> str:
        """The piece that consists of those parts, one after the other."""
        if len(parts) == 1:
            (piece,) = parts
            return piece
        name, piece = f"llvm.vector.insert.{block.suffix}.{part.suffix}", "poison"
        for number, lanes in enumerate(parts):
            first = ("i64", str(number * part.lanes))
            piece = self.call(block.text, name, (block.text, piece), (part.text, lanes), first)
        return piece

    def splat(self, block: Block, scalar: str) -> str:
        """A piece with that scalar in every lane."""
        if not block.lanes:
            return scalar
        if not scalar.startswith("%"):
            return block.splat(scalar)
        text = f"insertelement {block.text} poison, {block.element.register} {scalar}, i64 0"
        single = self.pure(text, scalar)
        lanes = block_of(INT32, (block.lanes,)).text
        return self.pure(f"shufflevector {block.text} {single}, {block.text} poison, {lanes} zeroinitializer", single)

    def lane(self, block: Block, piece: str, lane: int | str) -> str:
        """One lane as a scalar."""
        return self.value(f"extractelement {block.text} {piece}, i64 {lane}")

    def assemble(self, block: Block, scalars: Sequence[str]) -> str:
        """A piece from its lanes."""
        piece = "poison"
        for lane, scalar in enumerate(scalars):
            piece = self.value(f"insertelement {block.text} {piece}, {block.element.register} {scalar}, i64 {lane}")
        return piece

    def lane_numbers(self, block: Block) -> str:
        """0, 1, 2, … along the lanes."""
        return self.pure_call(block.text, f"llvm.stepvector.{block.suffix}")

    def first_lanes(self, lanes: int, count: str) -> str:
        """The mask that includes the first `count` of the lanes, where count is an i64 less than `lanes`."""
        if not count.startswith("%"):
            return f"<{', '.join(f'i1 {str(lane < int(count)).lower()}' for lane in range(lanes))}>"
        block = block_of(_counter(lanes), (lanes,))
        narrow = (
            self.pure(f"trunc i64 {count} to {block.element.register}", count) if block.element is not INT64 else count
        )
        limit = self.splat(block, narrow)
        return self.value(f"icmp ult {block.text} {self.lane_numbers(block)}, {limit}")

    def any_lane(self, mask: str, lanes: int) -> str:
        """Whether a mask includes a lane."""
        return self.call("i1", f"llvm.vector.reduce.or.v{lanes}i1", (f"<{lanes} x i1>", mask)) if lanes else mask

    # -- memory ----------------------------------------------------------------------------------

    def local(self, key: object, element: str, size: int) -> str:
        """The address of the local array for that key, allocated once per call of the function."""
        name = self.locals.get(key)
        if name is None:
            name = self.locals[key] = self.fresh("%local")
            self.scopes[0].lines.insert(0, f"  {name} = alloca [{size} x {element}], align 64")
        return name

    def offset(self, element: str, pointer: str, offset: str) -> str:
        if offset == "0":
            return pointer
        return self.pure(f"getelementptr {element}, ptr {pointer}, i64 {offset}", pointer, offset)

    # -- control flow ----------------------------------------------------------------------------

    def loop(
        self,
        low: str,
        high: str,
        step: int,
        inits: Sequence[Typed],
        body: Callable[[str, Sequence[str]], Sequence[str]],
        *,
        entered: bool = False,
    ) -> list[str]:
        """A loop over `low, low + step, … < high` that carries values; `entered` says that it runs at least once."""
        head, exit_, index = self.fresh("loop"), self.fresh("done"), self.fresh("%i")
        carried = [self.fresh("%carried") for _ in inits]
        inner = self._push(head)
        self.depths.update(dict.fromkeys((index, *carried), len(self.scopes) - 1))
        yielded = body(index, carried)
        following = self.value(f"add nsw i64 {index}, {step}")
        more = self.value(f"icmp slt i64 {following}, {high}")
        self.scopes.pop()
        outer = self.scopes[-1]
        entry, latch = outer.label, inner.label
        first = "true" if entered else self.value(f"icmp slt i64 {low}, {high}")
        self._branch(first, head, exit_)
        outer.lines.append(f"{head}:")
        phis = [("i64", index, low, following), *_carry(inits, carried, yielded)]
        outer.lines += [
            f"  {name} = phi {type_} [ {init}, %{entry} ], [ {next_}, %{latch} ]" for type_, name, init, next_ in phis
        ]
        outer.lines += inner.lines
        self.effect(f"br i1 {more}, label %{head}, label %{exit_}")
        self._label(exit_)
        if entered:
            return self._exported(yielded)
        return [self._join(type_, (init, entry), (next_, latch)) for type_, _, init, next_ in phis[1:]]

    def conditional(self, condition: str, otherwise: Sequence[Typed], body: Callable[[], Sequence[str]]) -> list[str]:
        """The values of `body` where the condition holds, else the given ones."""
        then, exit_ = self.fresh("then"), self.fresh("join")
        inner = self._push(then)
        results = body()
        self.scopes.pop()
        outer = self.scopes[-1]
        entry = outer.label
        self._branch(condition, then, exit_)
        outer.lines += [f"{then}:", *inner.lines, f"  br label %{exit_}"]
        self._label(exit_)
        return [
            self._join(type_, (result, inner.label), (other, entry))
            for (type_, other), result in zip(otherwise, results, strict=True)
        ]

    def _push(self, label: str) -> Scope:
        scope = Scope(label)
        self.scopes.append(scope)
        return scope

    def _branch(self, condition: str, then: str, otherwise: str) -> None:
        self.effect(
            f"br label %{then}" if condition == "true" else f"br i1 {condition}, label %{then}, label %{otherwise}"
        )

    def _label(self, label: str) -> None:
        self.scopes[-1].lines.append(f"{label}:")
        self.scopes[-1].label = label

    def _join(self, type_: str, *incoming: tuple[str, str]) -> str:
        edges = ", ".join(f"[ {operand}, %{label} ]" for operand, label in incoming)
        return self.value(f"phi {type_} {edges}")

    def _exported(self, values: Sequence[str]) -> list[str]:
        """Values of a loop as seen after it."""
        self.depths.update({value: len(self.scopes) - 1 for value in values if value.startswith("%")})
        return list(values)


def _carry(inits: Sequence[Typed], carried: Sequence[str], yielded: Sequence[str]) -> list[tuple[str, str, str, str]]:
    return [
        (type_, name, init, following) for (type_, init), name, following in zip(inits, carried, yielded, strict=True)
    ]
