"""Random programs of kernels, seeded: whatever fusion does to them, their results and errors stay the same."""

from __future__ import annotations

import random

import pytest

from stepwell.tests.lowering.loop_programs import Program, Tensor
from stepwell.tests.lowering.loop_text import transform_and_compare
from stepwell.tests.lowering.test_loop_fusion import PASSES

UNARY = ("math.tanh", "arith.negf", "math.exp")
BINARY = ("arith.addf", "arith.subf", "arith.mulf", "arith.maximumf")


class RandomProgram:
    """Grows a program over a few related shapes by random ops."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.program = Program()
        self.rows, self.columns = self.random.choice([(2, 3), (4, 6), (6, 4), (1, 5)])
        self.values = [self.program.input(self.rows, self.columns) for _ in range(2)]
        self.values += [self.program.input(self.columns), self.program.input(self.rows)]

    def grow(self, count: int) -> str:
        for _ in range(count):
            step = self.random.choice([self.unary, self.binary, self.binary, self.broadcast, self.reduce, self.view])
            made = step()
            if made is not None:
                self.values.append(made)
        computed = self.values[4:]
        chosen = self.random.sample(computed, min(len(computed), 1 + self.random.randrange(4)))
        return self.program.text(*dict.fromkeys([*chosen, computed[-1]]))

    def pick(self, rank: int | None = None) -> Tensor:
        fitting = [value for value in self.values if rank is None or len(value.sizes) == rank]
        return self.random.choice(fitting[-6:] if self.random.random() < 0.7 else fitting)

    def unary(self) -> Tensor:
        return self.program.pointwise(self.random.choice(UNARY), self.bounded(self.pick()))

    def bounded(self, value: Tensor) -> Tensor:
        """Keeps exponentials from overflowing."""
        return self.program.pointwise("math.tanh", value)

    def binary(self) -> Tensor:
        first = self.pick()
        others = [value for value in self.values if value.sizes == first.sizes]
        return self.program.pointwise(self.random.choice(BINARY), first, self.random.choice(others))

    def broadcast(self) -> Tensor:
        matrix, vector = self.pick(2), self.pick(1)
        along = [k for k in range(2) if matrix.sizes[k] == vector.sizes[0]]
        if not along:
            return self.unary()
        return self.program.pointwise(self.random.choice(BINARY), matrix, vector.at(f"i{self.random.choice(along)}"))

    def reduce(self) -> Tensor | None:
        value = self.pick()
        if not value.sizes:
            return None
        dims = self.random.choice([(-1,), (0,), tuple(range(len(value.sizes)))])
        return self.program.reduce(self.random.choice(("add", "max")), value, dims)

    def view(self) -> Tensor | None:
        """A permuted, reshaped, flattened, sliced or flipped copy."""
        value = self.pick(2)
        rows, columns = value.sizes
        assert isinstance(rows, int)
        assert isinstance(columns, int)
        offset = f"(i0 * {rows} + i1)"
        choices: list[tuple[tuple[str, ...], tuple[int, ...]]] = [
            (("i1", "i0"), (columns, rows)),
            ((f"{offset} floordiv {columns}", f"{offset} mod {columns}"), (columns, rows)),
            ((f"i0 floordiv {columns}", f"i0 mod {columns}"), (rows * columns,)),
            (("i0", f"{columns - 1} - i1"), (rows, columns)),
            (("0", "i0"), (columns,)),
        ]
        indices, sizes = self.random.choice(choices)
        return self.program.pointwise("arith.negf", value.at(*indices), sizes=sizes)


@pytest.mark.parametrize("seed", range(60))
def test_results_stay_the_same(seed: int) -> None:
    made = RandomProgram(seed)
    text = made.grow(6 + seed % 9)
    transform_and_compare(text, PASSES, rtol=1e-5)
