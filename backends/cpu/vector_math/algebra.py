"""The value algebra: typed expressions over LLVM vectors that print themselves as IR.

`x * x + 1.0` appends two instructions to the function being written and stands for the second; the functions of
this package read as formulas because of it. It knows none of them and leaves all optimisation to LLVM.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Self, TypeAlias, TypeVar, TypeVarTuple, Union, cast, overload

from .formats import F64, Format

FloatLike: TypeAlias = Union["Float", float]
IntLike: TypeAlias = Union["Int", int]
V = TypeVar("V", bound="Value")
Values = TypeVarTuple("Values")


@dataclass(frozen=True)
class MathFunction:
    """One function for one vector type as LLVM IR, and what must stand beside it in a module, once."""

    name: str
    text: str
    declares: tuple[str, ...] = ()
    requires: tuple[MathFunction, ...] = ()


def vector_type(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


def function_name(function: str, format: Format, lanes: int) -> str:
    return f"sw.{function}.{format.name}.v{lanes}"


@dataclass
class Body:
    """The function being written: its lines so far, and the declarations and functions that they use."""

    lanes: int
    lines: list[str] = field(default_factory=list)
    declares: dict[str, None] = field(default_factory=dict)
    requires: dict[str, MathFunction] = field(default_factory=dict)
    block: str = "entry"
    values: int = 0

    def emit(self, instruction: str) -> str:
        """Append the instruction and return the name of its result."""
        name = f"%v{self.values}"
        self.values += 1
        self.lines.append(f"  {name} = {instruction}")
        return name

    def call(self, function: MathFunction, result_type: str, *operands: Value) -> str:
        self.requires[function.name] = function
        return self.emit(f"call {result_type} @{function.name}({_typed(operands)})")

    def intrinsic(self, name: str, result: V, *operands: Value) -> V:
        """Call an LLVM intrinsic overloaded on its result, which has the type of `result`."""
        element = {"float": "f32", "double": "f64"}.get(result.element, result.element)
        mangled = f"llvm.{name}.{element if self.lanes == 1 else f'v{self.lanes}{element}'}"
        types = ", ".join(operand.type for operand in operands)
        self.declares[f"declare {result.type} @{mangled}({types})"] = None
        return result.renamed(self.emit(f"call {result.type} @{mangled}({_typed(operands)})"))

    def rarely(self, condition: Mask, rare: Callable[[], tuple[*Values]], usual: tuple[*Values]) -> tuple[*Values]:
        """`usual`, but where `condition` holds in any lane, what `rare` computes behind a branch."""
        before, number = self.block, self.values
        self.lines.append(f"  br i1 {condition.any()}, label %rare{number}, label %join{number}")
        self._open(f"rare{number}")
        computed = cast(tuple[Value, ...], rare())
        after = self.block
        self.lines.append(f"  br label %join{number}")
        self._open(f"join{number}")
        pairs = zip(computed, cast(tuple[Value, ...], usual), strict=True)
        merged = tuple(new.merged(after, old, before) for new, old in pairs)
        return cast(tuple[*Values], merged)

    def function(
        self, name: str, parameters: Sequence[Value], result_type: str, result: str, attributes: str
    ) -> MathFunction:
        """The finished function."""
        head = f"define internal {result_type} @{name}({_typed(parameters)}) {attributes} {{"
        text = "\n".join([head, "entry:", *self.lines, f"  ret {result_type} {result}", "}"])
        return MathFunction(name, text, tuple(self.declares), tuple(self.requires.values()))

    def _open(self, block: str) -> None:
        self.lines.append(f"{block}:")
        self.block = block


def _typed(operands: Sequence[Value]) -> str:
    return ", ".join(f"{operand.type} {operand.name}" for operand in operands)


@dataclass(frozen=True, eq=False)
class Value:
    """An LLVM value of `body.lanes` lanes: a name, or a constant spelled out."""

    body: Body
    name: str
    element: str

    @property
    def type(self) -> str:
        return vector_type(self.element, self.body.lanes)

    def renamed(self, name: str) -> Self:
        return replace(self, name=name)

    def merged(self, block: str, other: Self, other_block: str) -> Self:
        edges = f"[ {self.name}, %{block} ], [ {other.name}, %{other_block} ]"
        return self.renamed(self.body.emit(f"phi {self.type} {edges}"))

    def _splat(self, literal: str) -> Self:
        return self.renamed(literal if self.body.lanes == 1 else f"splat ({self.element} {literal})")

    def _binary(self, operation: str, lhs: Self, rhs: Self) -> Self:
        return self.renamed(self.body.emit(f"{operation} {self.type} {lhs.name}, {rhs.name}"))

    def _compare(self, predicate: str, rhs: Value) -> Mask:
        return Mask(self.body, self.body.emit(f"{predicate} {self.type} {self.name}, {rhs.name}"), "i1")

    def _cast(self, operation: str, element: str) -> str:
        return self.body.emit(f"{operation} {self.type} {self.name} to {vector_type(element, self.body.lanes)}")


@dataclass(frozen=True, eq=False)
class Mask(Value):
    """A truth value a lane."""

    def __and__(self, other: Mask) -> Mask:
        return self._binary("and", self, other)

    def __or__(self, other: Mask) -> Mask:
        return self._binary("or", self, other)

    def any(self) -> str:
        """The name of an i1: does the mask hold in any lane?"""
        if self.body.lanes == 1:
            return self.name
        intrinsic = f"@llvm.vector.reduce.or.v{self.body.lanes}i1"
        self.body.declares[f"declare i1 {intrinsic}({self.type})"] = None
        return self.body.emit(f"call i1 {intrinsic}({self.type} {self.name})")

    @overload
    def choose(self, yes: Float, no: FloatLike) -> Float: ...
    @overload
    def choose(self, yes: float, no: Float) -> Float: ...
    @overload
    def choose(self, yes: Int, no: IntLike) -> Int: ...
    def choose(self, yes: FloatLike | Int, no: FloatLike | Int) -> Float | Int:
        """`yes` in the lanes where the mask holds, `no` in the others."""
        like = yes if isinstance(yes, Value) else no
        assert isinstance(like, Float | Int)
        first, second = like.lift(yes), like.lift(no)
        operands = f"{self.type} {self.name}, {like.type} {first.name}, {like.type} {second.name}"
        return like.renamed(self.body.emit(f"select {operands}"))


@dataclass(frozen=True, eq=False)
class Float(Value):
    """A number a lane. Comparisons are ordered: false where an operand is NaN."""

    format: Format

    @classmethod
    def named(cls, body: Body, name: str, format: Format) -> Float:
        return cls(body, name, format.llvm, format)

    def lift(self, other: object) -> Float:
        """`other` itself, or a Python number as a constant, which the format must hold exactly."""
        if isinstance(other, Float):
            return other
        assert isinstance(other, float | int)
        assert self.format.holds(other), other
        return self._splat(f"0x{struct.unpack('<Q', struct.pack('<d', other))[0]:016X}")

    def __add__(self, other: FloatLike) -> Float:
        return self._binary("fadd", self, self.lift(other))

    def __sub__(self, other: FloatLike) -> Float:
        return self._binary("fsub", self, self.lift(other))

    def __rsub__(self, other: float) -> Float:
        return self._binary("fsub", self.lift(other), self)

    def __mul__(self, other: FloatLike) -> Float:
        return self._binary("fmul", self, self.lift(other))

    def __truediv__(self, other: FloatLike) -> Float:
        return self._binary("fdiv", self, self.lift(other))

    def __rtruediv__(self, other: float) -> Float:
        return self._binary("fdiv", self.lift(other), self)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Float:
        return self.renamed(self.body.emit(f"fneg {self.type} {self.name}"))

    def __abs__(self) -> Float:
        return self.body.intrinsic("fabs", self, self)

    def __lt__(self, other: FloatLike) -> Mask:
        return self._compare("fcmp olt", self.lift(other))

    def __le__(self, other: FloatLike) -> Mask:
        return self._compare("fcmp ole", self.lift(other))

    def __gt__(self, other: FloatLike) -> Mask:
        return self._compare("fcmp ogt", self.lift(other))

    def __ge__(self, other: FloatLike) -> Mask:
        return self._compare("fcmp oge", self.lift(other))

    def equals(self, other: FloatLike) -> Mask:
        return self._compare("fcmp oeq", self.lift(other))

    def differs(self, other: FloatLike) -> Mask:
        """Not equal, or either is NaN."""
        return self._compare("fcmp une", self.lift(other))

    def is_nan(self) -> Mask:
        return self.differs(self)

    def at_most(self, bound: float) -> Float:
        """The smaller of both; NaN stays NaN."""
        return (self > bound).choose(bound, self)

    def at_least(self, bound: float) -> Float:
        """The larger of both; NaN stays NaN."""
        return (self < bound).choose(bound, self)

    def sqrt(self) -> Float:
        return self.body.intrinsic("sqrt", self, self)

    def to_nearest_integer(self) -> Float:
        return self.body.intrinsic("roundeven", self, self)

    def with_sign_of(self, sign: Float) -> Float:
        return self.body.intrinsic("copysign", self, self, sign)

    def flipped_by(self, sign: Int) -> Float:
        """Negated where the sign bit of `sign` is set; its other bits must be clear."""
        return (self.bits() ^ sign).as_float(self.format)

    def bits(self) -> Int:
        return Int.named(self.body, self._cast("bitcast", self.format.integer), self.format.bits)

    def sign(self) -> Int:
        """The sign bit in its place, all others clear."""
        return self.bits() & self.format.sign_bit

    def to_format(self, format: Format) -> Float:
        if format.bits == self.format.bits:
            return self
        operation = "fpext" if format.bits > self.format.bits else "fptrunc"
        return Float.named(self.body, self._cast(operation, format.llvm), format)


@dataclass(frozen=True, eq=False)
class Int(Value):
    """An integer of any width a lane, in two's complement."""

    width: int

    @classmethod
    def named(cls, body: Body, name: str, width: int) -> Int:
        return cls(body, name, f"i{width}", width)

    def lift(self, other: object) -> Int:
        if isinstance(other, Int):
            return other
        assert isinstance(other, int)
        return self._splat(str(other))

    def __add__(self, other: IntLike) -> Int:
        return self._binary("add", self, self.lift(other))

    def __sub__(self, other: IntLike) -> Int:
        return self._binary("sub", self, self.lift(other))

    def __rsub__(self, other: int) -> Int:
        return self._binary("sub", self.lift(other), self)

    def __mul__(self, other: IntLike) -> Int:
        return self._binary("mul", self, self.lift(other))

    def __and__(self, other: IntLike) -> Int:
        return self._binary("and", self, self.lift(other))

    def __or__(self, other: IntLike) -> Int:
        return self._binary("or", self, self.lift(other))

    def __xor__(self, other: IntLike) -> Int:
        return self._binary("xor", self, self.lift(other))

    def __lshift__(self, count: IntLike) -> Int:
        return self._binary("shl", self, self.lift(count))

    def __rshift__(self, count: IntLike) -> Int:
        return self._binary("ashr", self, self.lift(count))

    def logical_shift_right(self, count: IntLike) -> Int:
        return self._binary("lshr", self, self.lift(count))

    def equals(self, other: IntLike) -> Mask:
        return self._compare("icmp eq", self.lift(other))

    def __lt__(self, other: IntLike) -> Mask:
        return self._compare("icmp slt", self.lift(other))

    def __gt__(self, other: IntLike) -> Mask:
        return self._compare("icmp sgt", self.lift(other))

    def unsigned_at_least(self, other: IntLike) -> Mask:
        return self._compare("icmp uge", self.lift(other))

    def has_bit(self, bit: int) -> Mask:
        """Is the bit of this weight set?"""
        return (self & bit).equals(bit)

    def leading_zeros(self) -> Int:
        zero_allowed = Mask(self.body, "false", "i1")  # a scalar also for vectors
        return self.body.intrinsic("ctlz", self, self, zero_allowed)

    def to_width(self, width: int) -> Int:
        """Zero-extended or truncated."""
        if width == self.width:
            return self
        operation = "zext" if width > self.width else "trunc"
        return Int.named(self.body, self._cast(operation, f"i{width}"), width)

    def to_float(self, format: Format) -> Float:
        return Float.named(self.body, self._cast("sitofp", format.llvm), format)

    def as_float(self, format: Format) -> Float:
        """The number that has these bits."""
        return Float.named(self.body, self._cast("bitcast", format.llvm), format)


def fma(x: FloatLike, y: FloatLike, z: FloatLike) -> Float:
    """x·y + z, rounded once."""
    like = next(operand for operand in (x, y, z) if isinstance(operand, Float))
    return like.body.intrinsic("fma", like, like.lift(x), like.lift(y), like.lift(z))


LONG = 10
"""Coefficients from which on a polynomial in f64 is evaluated in two halves: erf, erfc and the logarithms take 15 to
20 % less. In f32 the longest one, that of erf, gains nothing."""
CHAINED = 2
"""How many of the lowest coefficients stay in one chain all the same."""


def polynomial(x: Float, coefficients: Sequence[float]) -> Float:
    """Σ coefficients[k] · xᵏ by Horner's rule, the fewest operations; a long chain in two halves, for one product more.

    Out-of-order cores overlap the chains of neighbouring blocks, but those of long ones do not fit their window. Of
    rounding errors those of the lowest coefficients count, those of the halves next to nothing.
    """
    if x.format is not F64 or len(coefficients) < LONG:
        return _horner(coefficients, x)
    square, (lowest, high) = x * x, (coefficients[:CHAINED], coefficients[CHAINED:])
    return _horner(lowest, x, fma(_horner(high[1::2], square), x, _horner(high[::2], square)))


def _horner(coefficients: Sequence[float], x: Float, start: Float | None = None) -> Float:
    """Σ coefficients[k] · xᵏ + start · xⁿ."""
    if start is None:
        coefficients, start = coefficients[:-1], x.lift(coefficients[-1])
    return reduce(lambda total, coefficient: fma(total, x, coefficient), reversed(coefficients), start)


def exact_product(x: FloatLike, y: Float) -> tuple[Float, Float]:
    """(h, l) with h + l = x·y exactly, h the rounded product."""
    high = y * x
    return high, fma(x, y, -high)


def exact_sum(x: FloatLike, y: Float) -> tuple[Float, Float]:
    """(h, l) with h + l = x + y exactly, h the rounded sum, for |x| ≥ |y| or x = 0 (Dekker)."""
    high = y + x
    return high, y - (high - x)
