"""Programs that random search once found to change their meaning, as small as they could be made."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import TensorType, bf16, f32

from stepwell.ir.arithmetic import Array
from stepwell.ir.interpret import interpret
from stepwell.runtime.reference import to_tensor
from stepwell.tests.interpreters.support import assert_same, parse
from stepwell.tests.property.bounds import Reference
from stepwell.tests.property.programs import Program, Trust
from stepwell.tests.property.search import run_natively
from stepwell.tests.property.test_programs import FUSION, after


@dataclass(frozen=True)
class Counterexample:
    """A function's signature, ops and result, and what it is called with."""

    name: str
    signature: str
    ops: str
    arguments: tuple[Array, ...]

    @property
    def text(self) -> str:
        types = self.signature.split("->")[1].strip(" ()")
        names = "%r" if types.count("tensor") == 1 else "%r, %g"
        return f"func.func @main{self.signature} {{\n{self.ops}\nfunc.return {names} : {types}\n}}"


COUNTEREXAMPLES = (
    Counterexample(
        "index_put_of_nothing",  # the loop over the indices ended in the nest that is skipped
        "(%x: tensor<0x2xf32>, %i: tensor<0xi64>) -> tensor<0x2xf32>",
        """%r = graph.index_put %x, %x, %i dims [0] bounds index
             : (tensor<0x2xf32>, tensor<0x2xf32>, tensor<0xi64>) -> tensor<0x2xf32>""",
        (np.zeros((0, 2), "f4"), np.zeros(0, "i8")),
    ),
    Counterexample(
        "insert_slice_of_nothing_by_steps",  # the extent (0 - 1) * 2 + 1 was compared as an unsigned number
        "(%x: tensor<2xf32>, %v: tensor<0xf32>) -> tensor<2xf32>",
        "%r = graph.insert_slice %x, %v from (1) step (2) : (tensor<2xf32>, tensor<0xf32>) -> tensor<2xf32>",
        (np.array([1, 2], "f4"), np.zeros(0, "f4")),
    ),
    Counterexample(
        "guarded_scalar_else_block",  # only the other value of the read varied along lanes
        "(%x: tensor<1x8xf32>, %v: tensor<0x8xf32>) -> tensor<1x8xf32>",
        """%r = graph.insert_slice %x, %v from (1, 0) step (1, 1)
             : (tensor<1x8xf32>, tensor<0x8xf32>) -> tensor<1x8xf32>""",
        (np.arange(8, dtype="f4").reshape(1, 8), np.zeros((0, 8), "f4")),
    ),
    Counterexample(
        "guarded_read_hoisted_from_an_empty_nest",  # the guard held, but the tensor has no element
        "(%x: tensor<2x0xi64>, %i: tensor<2x0xi64>) -> (tensor<2x0xi64>, tensor<2x0xi64>)",
        """%a = graph.add %x, %x : tensor<2x0xi64>
           %s = graph.slice %a from (1, 0) step (1, 1) : (tensor<2x0xi64>) -> tensor<1x0xi64>
           %r = graph.insert_slice %a, %s from (1, 0) step (1, 1)
             : (tensor<2x0xi64>, tensor<1x0xi64>) -> tensor<2x0xi64>
           %g = graph.gather %a, %i dim 1 bounds gather : tensor<2x0xi64>""",
        (np.zeros((2, 0), "i8"), np.zeros((2, 0), "i8")),
    ),
    Counterexample(
        "local_of_unsigned_bytes",  # scratch had an element type that no block has
        "(%x: tensor<1x5x3xui8>, %i: tensor<i64>) -> tensor<5x1xui8>",
        """%a = graph.and %x, %x : tensor<1x5x3xui8>
           %p = graph.permute %a [1, 0, 2]
             : (tensor<1x5x3xui8>) -> tensor<5x1x3xui8, #stepwell.layout<(5, 1, 3), (3, 15, 1)>>
           %r = graph.index %p, %i dims [2] bounds index
             : (tensor<5x1x3xui8, #stepwell.layout<(5, 1, 3), (3, 15, 1)>>, tensor<i64>) -> tensor<5x1xui8>""",
        (np.arange(15, dtype="u1").reshape(1, 5, 3) + 200, np.array(2)),
    ),
    Counterexample(
        "random_numbers_in_a_slice",  # the guard made a seed of each lane's own
        "(%s: tensor<i64>) -> tensor<8xi32>",
        """%z = graph.full i32<0> : tensor<8xi32>
           %a = graph.random %s stream 1 : (tensor<i64>) -> tensor<8xi32>
           %v = graph.slice %a from (2) step (1) : (tensor<8xi32>) -> tensor<6xi32>
           %r = graph.insert_slice %z, %v from (2) step (1) : (tensor<8xi32>, tensor<6xi32>) -> tensor<8xi32>""",
        (np.array(7),),
    ),
    Counterexample(
        "sigmoid_where_exp_overflows",  # 1 / (1 + exp(100)) is 0 in f32, which eager computes in, and 3.8e-44 in f64
        "(%x: tensor<4xf32>) -> tensor<4xf32>",
        "%r = graph.sigmoid %x : tensor<4xf32>",
        (np.array([-100, -88, 0, 100], "f4"),),
    ),
)

STAGES = (
    ("convert-graph-to-loop",),
    ("convert-graph-to-loop", "convert-loop-to-tile"),
    ("convert-graph-to-loop", *FUSION, "convert-loop-to-tile"),
)


@pytest.mark.parametrize("stage", STAGES, ids=["loop", "tile", "fused"])
@pytest.mark.parametrize("example", COUNTEREXAMPLES, ids=lambda example: example.name)
def test_the_meaning_stays(example: Counterexample, stage: tuple[str, ...]) -> None:
    module = parse(example.text)
    expected = interpret(module, example.arguments)
    for found, value in zip(interpret(after(module, *stage), example.arguments), expected, strict=True):
        assert_same(found, value)


@dataclass(frozen=True)
class Product:
    """Operands of a product of matrices whose terms are below the least normal number of f32."""

    name: str
    lhs: Array
    rhs: Array

    @property
    def program(self) -> Program:
        types = [TensorType(ELEMENTS[value.dtype.name], value.shape) for value in (self.lhs, self.rhs)]
        result = TensorType(types[0].element_type, (self.lhs.shape[0], self.rhs.shape[1]))
        text = f"""func.func @main(%x: {types[0]}, %y: {types[1]}) -> {result} {{
            %r = graph.matmul %x, %y : ({types[0]}, {types[1]}) -> {result}
            func.return %r : {result}
        }}"""
        return Program(parse(text), [self.lhs, self.rhs], [Trust.BOUND], exact_functions=False)


ELEMENTS = {"float32": f32, "bfloat16": bf16}

PRODUCTS = (
    Product(  # where the processor multiplies bf16, a library takes the operand for 0
        "denormal_operand", np.full((64, 2), 1e-39, ml_dtypes.bfloat16), np.full((2, 64), 1e3, ml_dtypes.bfloat16)
    ),
    Product(  # and the product, too
        "denormal_term", np.full((64, 2), 1e-20, ml_dtypes.bfloat16), np.full((2, 64), 1e-19, ml_dtypes.bfloat16)
    ),
    Product(  # 8 times half of the least number: rounded one by one to an even number they are 0
        "terms_below_the_least_number", np.full((64, 8), 2.0**-75, "f4"), np.full((8, 64), 2.0**-75, "f4")
    ),
)


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_a_product_of_tiny_numbers_is_eagers(product: Product) -> None:
    (found,) = run_natively(product.program)
    assert_same(found, to_tensor(product.lhs) @ to_tensor(product.rhs))
    Reference(product.program).check([found])


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_no_more_than_tiny_numbers_may_be_lost(product: Product) -> None:
    """A normal term of the same size of operands is not in doubt."""
    program = product.program
    program.arguments = [np.ones_like(product.lhs), np.ones_like(product.rhs)]
    reference = Reference(program)
    with pytest.raises(AssertionError):
        reference.check([np.zeros_like(reference.results[0])])


def test_sigmoid_is_eagers_where_exp_overflows() -> None:
    x = np.array([-1e3, -100, -88, 100, np.nan], "f4")
    module = parse("""func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
        %r = graph.sigmoid %x : tensor<5xf32>
        func.return %r : tensor<5xf32>
    }""")
    assert_same(interpret(module, [x])[0], torch.sigmoid(torch.from_numpy(x)), 1e-6)
