"""The operations of the loop level.

A kernel computes whole tensors by nests of loops over index spaces. A nest says *for which indices*, its body
computes scalars with `arith` and `math`; the order of iterations is free except in `loop.for`. Sibling nests
of one body run one after the other. Nothing here knows of memory layout, vectors or threads.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence
from functools import cache

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    Signedness,
    StringAttr,
    TensorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    IsTerminator,
    MemoryAllocEffect,
    MemoryEffect,
    MemoryEffectKind,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from ..combiners import COMBINERS
from ..expr import Expr, ExprLike
from ..shapes import (
    IndexMap,
    MapAttr,
    canonical_access,
    expr_list_text,
    parse_access,
    parse_expr_list,
    print_access,
    sizes_of,
)

INDEX = IndexType()


def scalar_type(element: Attribute) -> Attribute:
    """The type of a tensor's element as a scalar of this level: integers lose their signedness."""
    if isinstance(element, IntegerType) and element.signedness.data != Signedness.SIGNLESS:
        return IntegerType(element.width.data)
    return element


class ReadEffect(MemoryEffect):
    """Reading a tensor value has no effect; reading a buffer that the kernel writes is a read of memory."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        if isinstance(op.operands[0].type, MemRefType):
            return {EffectInstance(MemoryEffectKind.READ, op.operands[0])}
        return set()


# -- kernel ------------------------------------------------------------------------------------------


@irdl_op_definition
class KernelOp(IRDLOperation):
    """
    Computes tensors by the nests in its body, which write every element of each destination once, unless the
    destination starts as a copy of an initial value. The body reads tensors of the enclosing function.

    ```mlir
    %y = loop.kernel "double" outs(%o : memref<8xf32>) -> tensor<8xf32> {
      loop.parallel (%i) to (8) {
        %v = loop.read %x[%i] : tensor<8xf32>
        %w = arith.addf %v, %v : f32
        loop.write %w, %o[%i] : memref<8xf32>
      }
    }
    ```
    """

    name = "loop.kernel"

    inits = var_operand_def(TensorType)
    results_ = var_result_def(TensorType)
    kernel_name = prop_def(StringAttr)
    initialized = opt_prop_def(ArrayAttr)
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    @staticmethod
    def make(name: str, result_types: Sequence[Attribute], inits: Sequence[SSAValue | None] = ()) -> KernelOp:
        """An empty kernel; `inits[k]`, if given and not None, is what destination k starts as."""
        block = Block(arg_types=[destination_type(type_) for type_ in result_types])
        given = [value for value in inits if value is not None]
        properties: dict[str, Attribute] = {"kernel_name": StringAttr(name)}
        if given:
            positions = [position for position, value in enumerate(inits) if value is not None]
            properties["initialized"] = ArrayAttr([_index_attr(position) for position in positions])
        return KernelOp.create(
            operands=given, result_types=list(result_types), properties=properties, regions=[Region(block)]
        )

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def init_positions(self) -> tuple[int, ...]:
        """The positions of the results that start as a copy of an operand, in operand order."""
        return () if self.initialized is None else tuple(attr.value.data for attr in self.initialized)

    def init_of(self, position: int) -> SSAValue | None:
        positions = self.init_positions
        return self.operands[positions.index(position)] if position in positions else None

    def verify_(self) -> None:
        if len(self.init_positions) != len(self.operands):
            raise VerifyException(
                f"loop.kernel: expected {len(self.operands)} initialized positions, got {len(self.init_positions)}"
            )
        expected = [destination_type(result.type) for result in self.results]
        found = [argument.type for argument in self.block.args]
        if expected != found:
            raise VerifyException(
                "loop.kernel: expected one destination per result of its shape and element type, got "
                f"{', '.join(map(str, found))} for {', '.join(map(str, expected))}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.kernel_name.data)
        printer.print_string(" outs(")
        inits = {position: self.init_of(position) for position in self.init_positions}
        for position, argument in enumerate(self.block.args):
            if position:
                printer.print_string(", ")
            printer.print_block_argument(argument)
            if (init := inits.get(position)) is not None:
                printer.print_string(" = ")
                printer.print_operand(init)
                if init.type != self.results[position].type:  # in another layout
                    printer.print_string(" : ")
                    printer.print_attribute(init.type)
        printer.print_string(") -> ")
        printer.print_list(self.result_types, printer.print_attribute)
        printer.print_string(" ")
        if self.attributes:
            printer.print_string("attributes ")
            printer.print_attr_dict(self.attributes)
            printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_str_literal()
        parser.parse_keyword("outs")
        inits: list[tuple[UnresolvedOperand, Attribute | None] | None] = []

        def destination() -> Parser.Argument:
            argument = parser.parse_argument()
            equals = parser.parse_optional_punctuation("=")
            inits.append(_parse_init(parser) if equals else None)
            return argument

        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, destination)
        parser.parse_punctuation("->")
        types = [parser.parse_type() for _ in arguments[:1]]
        for _ in arguments[1:]:
            parser.parse_punctuation(",")
            types.append(parser.parse_type())
        values = [
            None if init is None else parser.resolve_operand(init[0], init[1] or type_)
            for init, type_ in zip(inits, types, strict=True)
        ]
        kernel = KernelOp.make(name, types, values)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        kernel.attributes.update({} if attributes is None else attributes.data)
        region = parser.parse_region(arguments)
        kernel.detach_region(kernel.body)
        kernel.add_region(region)
        return kernel


def _parse_init(parser: Parser) -> tuple[UnresolvedOperand, Attribute | None]:
    """An initial value, with its type where that is not the result's."""
    init = parser.parse_unresolved_operand()
    return init, parser.parse_type() if parser.parse_optional_punctuation(":") else None


@cache
def _index_attr(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, 64)


@cache
def destination_type(tensor: Attribute) -> MemRefType[Attribute]:
    """The buffer type under which a kernel's body writes a result of that tensor type."""
    assert isinstance(tensor, TensorType)
    return MemRefType(tensor.element_type, tensor.get_shape())


# -- nests -------------------------------------------------------------------------------------------


class NestOp(IRDLOperation, ABC):
    """A loop over the box `[0, extents)`; its block's leading arguments are the indices."""

    @property
    def block(self) -> Block:
        return self.regions[0].block

    @property
    def sizes(self) -> tuple[Expr, ...]:
        attr = self.properties["extents"]
        assert isinstance(attr, MapAttr)
        return attr.results

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def indices(self) -> Sequence[SSAValue]:
        return self.block.args[: self.rank]

    def verify_(self) -> None:
        attr = self.properties["extents"]
        if not isinstance(attr, MapAttr) or attr.data.rank:
            raise VerifyException(f"{self.name}: expected extents over symbols only, got {attr}")
        types = [argument.type for argument in self.block.args[: self.rank]]
        if len(types) != self.rank or any(type_ != INDEX for type_ in types):
            raise VerifyException(f"{self.name}: expected {self.rank} leading index arguments, got {types}")


def extents_attr(sizes: Iterable[ExprLike]) -> MapAttr:
    """The extents of a nest as an attribute."""
    return _extents(tuple(sizes))


@cache
def _extents(sizes: tuple[ExprLike, ...]) -> MapAttr:
    return MapAttr.of(0, sizes)


def _print_space(printer: Printer, op: NestOp) -> None:
    printer.print_string(" (")
    printer.print_list(op.indices, lambda index: printer.print_block_argument(index, print_type=False))  # type: ignore[arg-type]
    printer.print_string(f") to {expr_list_text(op.sizes)}")


def _parse_space(parser: Parser) -> tuple[list[Parser.Argument], MapAttr]:
    names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False))
    parser.parse_keyword("to")
    return [name.resolve(INDEX) for name in names], extents_attr(parse_expr_list(parser))


@irdl_op_definition
class ParallelOp(NestOp):
    """
    Runs its body for every index, in any order, possibly at once.

    ```mlir
    loop.parallel (%i, %j) to (4, s0) {
      %v = loop.read %x[%j, %i] : tensor<?x4xf32, #stepwell.layout<(s0, 4), (4, 1)>>
      loop.write %v, %o[%i, %j] : memref<4x?xf32>
    }
    ```
    """

    name = "loop.parallel"

    extents = prop_def(MapAttr)
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    @staticmethod
    def make(sizes: Iterable[ExprLike]) -> ParallelOp:
        extents = extents_attr(sizes)
        block = Block(arg_types=[INDEX] * len(extents.results))
        return ParallelOp.create(properties={"extents": extents}, regions=[Region(block)])

    def print(self, printer: Printer) -> None:
        _print_space(printer, self)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> ParallelOp:
        arguments, extents = _parse_space(parser)
        return cls.create(properties={"extents": extents}, regions=[parser.parse_region(arguments)])


@irdl_op_definition
class ReduceOp(NestOp):
    """
    Combines the values that its body yields over all indices, in any order; an empty space gives the identity.
    The body may also write. `argmax` and `argmin` combine two yielded values, a key and its index.

    ```mlir
    %m, %s = loop.reduce (%j) to (2048) [max, add] -> f32, f32 {
      %v = loop.read %x[%i, %j] : tensor<4x2048xf32>
      loop.yield %v, %v : f32, f32
    }
    ```
    """

    name = "loop.reduce"

    extents = prop_def(MapAttr)
    combiners = prop_def(ArrayAttr)
    results_ = var_result_def()
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    @staticmethod
    def make(sizes: Iterable[ExprLike], combiners: Sequence[str], types: Sequence[Attribute]) -> ReduceOp:
        """An empty reduction; its body still needs its `loop.yield`."""
        extents = extents_attr(sizes)
        block = Block(arg_types=[INDEX] * len(extents.results))
        return ReduceOp.create(
            properties={"extents": extents, "combiners": combiners_attr(combiners)},
            result_types=types,
            regions=[Region(block)],
        )

    @property
    def combiner_names(self) -> tuple[str, ...]:
        return tuple(attr.data for attr in self.combiners)

    @property
    def yielded(self) -> YieldOp:
        return _yield_of(self)

    def verify_(self) -> None:
        super().verify_()
        _verify_yield(self)
        unknown = [name for name in self.combiner_names if name not in COMBINERS]
        if unknown:
            raise VerifyException(f"loop.reduce: expected combiners of {', '.join(COMBINERS)}, got {unknown[0]}")
        needed = sum(COMBINERS[name].arity for name in self.combiner_names)
        if needed != len(self.results):
            raise VerifyException(f"loop.reduce: expected {needed} results for its combiners, got {len(self.results)}")

    def print(self, printer: Printer) -> None:
        _print_space(printer, self)
        printer.print_string(f" [{', '.join(self.combiner_names)}] -> ")
        printer.print_list(self.result_types, printer.print_attribute)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        arguments, extents = _parse_space(parser)
        names = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
        parser.parse_punctuation("->")
        types = parser.parse_optional_undelimited_comma_separated_list(parser.parse_optional_type, parser.parse_type)
        region = parser.parse_region(arguments)
        return cls.create(
            properties={"extents": extents, "combiners": combiners_attr(names)},
            result_types=types or [],
            regions=[region],
        )


def combiners_attr(names: Iterable[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name) for name in names])


@irdl_op_definition
class ForOp(NestOp):
    """
    Runs its body for every index of a one-dimensional space in ascending order, carrying values along.

    ```mlir
    %last = loop.for (%j) to (16) carry (%sum = %zero : f32) {
      %v = loop.read %x[%j] : tensor<16xf32>
      %next = arith.addf %sum, %v : f32
      loop.write %next, %o[%j] : memref<16xf32>
      loop.yield %next : f32
    }
    ```
    """

    name = "loop.for"

    inits = var_operand_def()
    extents = prop_def(MapAttr)
    results_ = var_result_def()
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    @staticmethod
    def make(size: ExprLike, inits: Sequence[SSAValue]) -> ForOp:
        """An empty loop; its body still needs its `loop.yield`."""
        types = [init.type for init in inits]
        return ForOp.create(
            operands=list(inits),
            properties={"extents": extents_attr([size])},
            result_types=types,
            regions=[Region(Block(arg_types=[INDEX, *types]))],
        )

    @property
    def carried(self) -> Sequence[SSAValue]:
        return self.block.args[1:]

    @property
    def yielded(self) -> YieldOp:
        return _yield_of(self)

    def verify_(self) -> None:
        super().verify_()
        _verify_yield(self)
        if self.rank != 1:
            raise VerifyException(f"loop.for: expected one dimension, got {self.rank}")

    def print(self, printer: Printer) -> None:
        _print_space(printer, self)
        printer.print_string(" carry (")
        for position, (argument, init) in enumerate(zip(self.carried, self.operands, strict=True)):
            printer.print_string(", " if position else "")
            printer.print_block_argument(argument, print_type=False)  # type: ignore[arg-type]
            printer.print_string(" = ")
            printer.print_operand(init)
            printer.print_string(" : ")
            printer.print_attribute(argument.type)
        printer.print_string(") ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        arguments, extents = _parse_space(parser)
        parser.parse_keyword("carry")
        inits: list[SSAValue] = []

        def carried() -> Parser.Argument:
            name = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            init = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            type_ = parser.parse_type()
            inits.append(parser.resolve_operand(init, type_))
            return name.resolve(type_)

        arguments += parser.parse_comma_separated_list(parser.Delimiter.PAREN, carried)
        region = parser.parse_region(arguments)
        return cls.create(
            operands=inits,
            properties={"extents": extents},
            result_types=[init.type for init in inits],
            regions=[region],
        )


@irdl_op_definition
class YieldOp(IRDLOperation):
    """
    Ends one iteration of `loop.reduce` (the values to combine) or `loop.for` (the values to carry on).

    ```mlir
    loop.yield %v : f32
    ```
    """

    name = "loop.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "$values `:` type($values) attr-dict"

    @staticmethod
    def make(values: Sequence[SSAValue]) -> YieldOp:
        return YieldOp.create(operands=list(values))


def _yield_of(op: NestOp) -> YieldOp:
    last = op.block.last_op
    assert isinstance(last, YieldOp)
    return last


def _verify_yield(op: NestOp) -> None:
    last = op.block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException(f"{op.name}: expected its body to end in loop.yield")
    found = [value.type for value in last.operands]
    expected = list(op.result_types)
    if found != expected:
        raise VerifyException(
            f"{op.name}: expected to yield ({', '.join(map(str, expected))}), got ({', '.join(map(str, found))})"
        )


# -- buffers and accesses ----------------------------------------------------------------------------


@irdl_op_definition
class LocalOp(IRDLOperation):
    """
    A buffer private to one iteration of the nest it stands in, kept hot between sibling nests.

    ```mlir
    %row = loop.local (2048) : memref<2048xf32>
    ```
    """

    name = "loop.local"

    extents = prop_def(MapAttr)
    buffer = result_def(MemRefType)

    traits = traits_def(MemoryAllocEffect())

    @staticmethod
    def make(element: Attribute, sizes: Iterable[ExprLike]) -> LocalOp:
        extents = extents_attr(sizes)
        shape = [size.constant if size.is_constant else DYNAMIC_INDEX for size in extents.results]
        return LocalOp.create(properties={"extents": extents}, result_types=[MemRefType(element, shape)])

    @property
    def sizes(self) -> tuple[Expr, ...]:
        return self.extents.results

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {expr_list_text(self.sizes)} : ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> LocalOp:
        extents = extents_attr(parse_expr_list(parser))
        parser.parse_punctuation(":")
        return cls.create(properties={"extents": extents}, result_types=[parser.parse_type()])


class AccessOp(IRDLOperation, ABC):
    """An op that addresses a tensor or buffer by expressions over index values; `access` maps them."""

    @property
    def map(self) -> IndexMap:
        attr = self.properties["access"]
        assert isinstance(attr, MapAttr)
        return attr.data

    def verify_access(self, rank: int, indices: Sequence[SSAValue]) -> None:
        if self.map.rank != len(indices):
            raise VerifyException(f"{self.name}: expected {self.map.rank} indices for its map, got {len(indices)}")
        if len(self.map.results) != rank:
            raise VerifyException(f"{self.name}: expected {rank} index expressions, got {len(self.map.results)}")


def _rank(type_: Attribute) -> int:
    assert isinstance(type_, TensorType | MemRefType)
    return len(type_.get_shape())


@irdl_op_definition
class ReadOp(AccessOp):
    """
    Reads one element. Under a guard it reads only where the guard holds and gives the other value elsewhere.
    Without a guard, every index must be in bounds.

    ```mlir
    %v = loop.read %x[%i * 2 + 1, %j] : tensor<16x8xf32>
    %w = loop.read %x[%i - 1, %j] if %inside else %zero : tensor<16x8xf32>
    ```
    """

    name = "loop.read"

    source = operand_def(TensorType.constr() | MemRefType.constr())
    indices = var_operand_def(INDEX)
    guard = opt_operand_def(i1)
    other = opt_operand_def()
    access = prop_def(MapAttr)
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(ReadEffect())

    @staticmethod
    def make(
        source: SSAValue,
        indices: Sequence[SSAValue],
        access: Sequence[Expr],
        guard: SSAValue | None = None,
        other: SSAValue | None = None,
    ) -> ReadOp:
        used, map_ = canonical_access(indices, access)
        guarded = [] if guard is None or other is None else [guard, other]
        element = source.type.element_type  # type: ignore[attr-defined]
        return ReadOp.create(
            operands=[source, *used, *guarded],
            properties={
                "access": MapAttr(map_),
                "operandSegmentSizes": _segments(1, len(used), len(guarded) // 2, len(guarded) // 2),
            },
            result_types=[scalar_type(element)],
        )

    def verify_(self) -> None:
        self.verify_access(_rank(self.source.type), list(self.indices))
        element = scalar_type(self.source.type.element_type)  # type: ignore[attr-defined]
        if self.result.type != element:
            raise VerifyException(f"loop.read: expected a result of type {element}, got {self.result.type}")
        if (self.guard is None) != (self.other is None):
            raise VerifyException("loop.read: expected a guard and an other value together")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        print_access(printer, self.indices, self.map)
        if self.guard is not None and self.other is not None:
            printer.print_string(" if ")
            printer.print_operand(self.guard)
            printer.print_string(" else ")
            printer.print_operand(self.other)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)

    @classmethod
    def parse(cls, parser: Parser) -> ReadOp:
        source = parser.parse_unresolved_operand()
        indices, map_ = parse_access(parser)
        guard = parser.parse_operand(i1) if parser.parse_optional_keyword("if") else None
        if guard is not None:
            parser.parse_keyword("else")
        other = parser.parse_unresolved_operand() if guard is not None else None
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        value = parser.resolve_operand(source, type_)
        element = scalar_type(type_.element_type)  # type: ignore[attr-defined]
        resolved = None if other is None else parser.resolve_operand(other, element)
        return ReadOp.make(value, indices, map_.results, guard, resolved)


@cache
def _segments(*sizes: int) -> Attribute:
    return DenseArrayBase.from_list(i32, list(sizes))


_OF_ONE_VALUE = {name for name, combiner in COMBINERS.items() if combiner.arity == 1}


@irdl_op_definition
class WriteOp(AccessOp):
    """
    Writes one element of a destination or local buffer, or combines it into what is there.

    ```mlir
    loop.write %v, %o[%i, %j] : memref<16x8xf32>
    loop.write %v, %o[%row, %j] add : memref<16x8xf32>
    ```
    """

    name = "loop.write"

    value = operand_def(AnyAttr())
    target = operand_def(MemRefType)
    indices = var_operand_def(INDEX)
    access = prop_def(MapAttr)
    combiner = opt_prop_def(StringAttr)

    traits = traits_def(MemoryWriteEffect())

    @staticmethod
    def make(
        value: SSAValue,
        target: SSAValue,
        indices: Sequence[SSAValue],
        access: Sequence[Expr],
        combiner: str | None = None,
    ) -> WriteOp:
        used, map_ = canonical_access(indices, access)
        properties: dict[str, Attribute] = {"access": MapAttr(map_)}
        if combiner is not None:
            properties["combiner"] = StringAttr(combiner)
        return WriteOp.create(operands=[value, target, *used], properties=properties)

    def verify_(self) -> None:
        self.verify_access(_rank(self.target.type), list(self.indices))
        element = scalar_type(self.target.type.element_type)  # type: ignore[attr-defined]
        if self.value.type != element:
            raise VerifyException(f"loop.write: expected a value of type {element}, got {self.value.type}")
        if self.combiner is not None and self.combiner.data not in _OF_ONE_VALUE:
            raise VerifyException(f"loop.write: expected a combiner of single values, got {self.combiner.data}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(", ")
        printer.print_operand(self.target)
        print_access(printer, self.indices, self.map)
        if self.combiner is not None:
            printer.print_string(f" {self.combiner.data}")
        printer.print_string(" : ")
        printer.print_attribute(self.target.type)

    @classmethod
    def parse(cls, parser: Parser) -> WriteOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        target = parser.parse_unresolved_operand()
        indices, map_ = parse_access(parser)
        combiner = parser.parse_optional_keyword_in(tuple(COMBINERS))
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        element = scalar_type(type_.element_type)  # type: ignore[attr-defined]
        buffer = parser.resolve_operand(target, type_)
        return WriteOp.make(parser.resolve_operand(value, element), buffer, indices, map_.results, combiner)


@irdl_op_definition
class IndexOp(AccessOp):
    """
    The value of an index expression, as an i64 for arithmetic or as an index for accesses. An i64 value that
    the program computed becomes an index by `arith.index_cast`.

    ```mlir
    %n = loop.index [%i * 64 + %j] : i64
    ```
    """

    name = "loop.index"

    indices = var_operand_def(INDEX)
    access = prop_def(MapAttr)
    result = result_def()

    traits = traits_def(Pure())

    @staticmethod
    def make(indices: Sequence[SSAValue], expr: Expr, type_: Attribute = i64) -> IndexOp:
        used, map_ = canonical_access(indices, [expr])
        return IndexOp.create(operands=used, properties={"access": MapAttr(map_)}, result_types=[type_])

    def verify_(self) -> None:
        self.verify_access(1, list(self.indices))
        if self.result.type not in (i64, INDEX):
            raise VerifyException(f"loop.index: expected a result of type i64 or index, got {self.result.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_access(printer, self.indices, self.map)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        indices, map_ = parse_access(parser)
        parser.parse_punctuation(":")
        return IndexOp.make(indices, map_.results[0], parser.parse_type())


@irdl_op_definition
class AssertOp(IRDLOperation):
    """
    Where the condition fails, records the error for the call to raise once the kernel has ended, as the named
    exception of eager; `{}` in the message stands for the value. Computation goes on, so what follows must be
    safe (a clamped index, a divisor that is not 0).

    ```mlir
    loop.assert %inside, %index, "IndexError", "index {} is out of range"
    ```
    """

    name = "loop.assert"

    condition = operand_def(i1)
    value = operand_def(i64)
    exception = prop_def(StringAttr)
    message = prop_def(StringAttr)

    traits = traits_def(MemoryWriteEffect())

    assembly_format = "$condition `,` $value `,` $exception `,` $message attr-dict"

    @staticmethod
    def make(condition: SSAValue, value: SSAValue, exception: str, message: str) -> AssertOp:
        return AssertOp.create(
            operands=[condition, value],
            properties={"exception": StringAttr(exception), "message": StringAttr(message)},
        )


@irdl_op_definition
class PhiloxOp(IRDLOperation):
    """
    32 random bits: the first word of Philox4x32-10 (Salmon et al., SC'11) with the seed as key and the counter
    as the low half of the counter block; the high half is the stream.

    ```mlir
    %bits = loop.philox %seed, %counter stream 3 : i32
    ```
    """

    name = "loop.philox"

    seed = operand_def(i64)
    counter = operand_def(i64)
    stream = prop_def(Attribute)
    bits = result_def(i32)

    traits = traits_def(Pure())

    @staticmethod
    def make(seed: SSAValue, counter: SSAValue, stream: int) -> PhiloxOp:
        return PhiloxOp.create(operands=[seed, counter], properties={"stream": _index_attr(stream)}, result_types=[i32])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.seed)
        printer.print_string(", ")
        printer.print_operand(self.counter)
        printer.print_string(f" stream {self.stream.value.data} : i32")  # type: ignore[attr-defined]

    @classmethod
    def parse(cls, parser: Parser) -> PhiloxOp:
        seed = parser.parse_operand(i64)
        parser.parse_punctuation(",")
        counter = parser.parse_operand(i64)
        parser.parse_keyword("stream")
        stream = parser.parse_integer()
        parser.parse_punctuation(":")
        parser.parse_type()
        return PhiloxOp.make(seed, counter, stream)


__all__ = [
    "INDEX", "AccessOp", "AssertOp", "ForOp", "IndexOp", "KernelOp", "LocalOp", "NestOp", "ParallelOp",
    "PhiloxOp", "ReadOp", "ReduceOp", "WriteOp", "YieldOp", "destination_type", "extents_attr", "scalar_type",
    "sizes_of",
]  # fmt: skip
