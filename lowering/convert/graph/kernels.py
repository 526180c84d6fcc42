"""Builds the one `loop.kernel` that a graph op becomes: its nests, its reads through views, its writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, SSAValue

from ....ir import graph, loop
from ....ir.dtypes import compute_type
from ....ir.expr import Expr, dim
from .conversion import widen
from .scalars import Scalars
from .sources import Constant, Values, identity

Place = Sequence[Expr]


class Kernel(Scalars):
    """A kernel with one destination. Dim k of a place is `indices[k]`: those of the nests, then computed ones."""

    def __init__(
        self, values: Values, name: str, type_: Attribute, location: LocationAttr, init: SSAValue | None = None
    ) -> None:
        self.values = values
        self.op = loop.KernelOp.make(name, (type_,), () if init is None else (init,))
        self.op.location = location
        super().__init__(self.op.block, location)
        self.indices: tuple[SSAValue, ...] = ()
        self._rank = 0
        self._reads: dict[SSAValue, SSAValue] = {}

    @staticmethod
    def of(values: Values, op: graph.GraphOp, init: SSAValue | None = None) -> Kernel:
        """The kernel that a graph op becomes."""
        return Kernel(values, op.name.partition(".")[2], SSAValue.get(op).type, op.location, init)

    # -- nests -----------------------------------------------------------------------------------

    def enter_parallel(self, sizes: Sequence[Expr]) -> None:
        """Goes on inside a parallel nest; no dims need none."""
        if sizes:
            nest = loop.ParallelOp.make(sizes)
            self.append(nest)
            self._enter(nest)
        self._rank = len(sizes)

    def enter_inner(self, sizes: Sequence[Expr]) -> None:
        """Goes on inside a further nest, whose indices nobody needs."""
        if sizes:
            nest = loop.ParallelOp.make(sizes)
            self.append(nest)
            self.block = nest.block

    def _enter(self, nest: loop.NestOp) -> None:
        self.block = nest.block
        self.indices = (*self.indices, *nest.indices)
        self._reads = {}

    @contextmanager
    def _inside(self, nest: loop.NestOp) -> Iterator[None]:
        block, indices, reads = self.block, self.indices, self._reads
        self.append(nest)
        self._enter(nest)
        yield
        self.block, self.indices, self._reads = block, indices, reads

    def reduce(
        self,
        sizes: Iterable[Expr],
        combiners: Sequence[str],
        types: Sequence[Attribute],
        body: Callable[[], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """The values of `body` combined over a box."""
        nest = loop.ReduceOp.make(sizes, combiners, types)
        with self._inside(nest):
            self.append(loop.YieldOp.make(body()))
        return nest.results

    def iterate(
        self,
        size: Expr,
        inits: Sequence[SSAValue],
        body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> None:
        """Runs `body` for ascending indices; it takes the carried values and gives the next ones."""
        nest = loop.ForOp.make(size, inits)
        with self._inside(nest):
            carried = body(nest.carried)
            self.block = nest.block  # the body may have gone on inside of a further nest
            self.append(loop.YieldOp.make(carried))

    def computed(self, index: SSAValue) -> Expr:
        """An index that the program computed, for use in places."""
        self.indices = (*self.indices, index)
        return dim(len(self.indices) - 1)

    # -- elements --------------------------------------------------------------------------------

    def read(self, value: SSAValue, place: Place | None = None) -> SSAValue:
        """An element of a tensor value; without a place the one that the leading indices name."""
        if place is not None:
            return self.values.source(value).read(self, self.indices, place)
        known = self._reads.get(value)
        if known is None:
            known = self._reads[value] = self.values.source(value).read(self, self.indices, None)
        return known

    def read_wide(self, value: SSAValue, place: Place | None = None) -> SSAValue:
        """The same in the type that eager computes in."""
        source = self.values.source(value)
        if isinstance(source, Constant):
            return self.constant(source.number, compute_type(loop.scalar_type(source.element)))
        return widen(self, self.read(value, place))

    def read_where(self, guard: SSAValue, value: SSAValue, place: Place, other: SSAValue) -> SSAValue:
        """An element where the guard holds, the other value elsewhere."""
        return self.values.source(value).read_where(self, self.indices, place, guard, other)

    def write(self, value: SSAValue, place: Place | None = None, combiner: str | None = None) -> None:
        """Writes (or combines) an element of the destination; without a place the one that the parallel nest names."""
        place = identity(self._rank) if place is None else place
        self.append(loop.WriteOp.make(value, self.op.block.args[0], self.indices, place, combiner))
