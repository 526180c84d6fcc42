"""The mutants of a small source, and the tests that are chosen for a module."""

from __future__ import annotations

import ast

import pytest

from stepwell.tests.mutation.mutants import mutants
from stepwell.tests.mutation.run import GOLDEN, LIMITS, RANDOM, ROOT, TESTS, cases, main, modules

SOURCE = '''\
"""A docstring with 1."""


def rewrite(op: int, limit: list[3] = 4) -> int:
    if op > 2 and op.ok:
        return 7
    if not op:
        raise ValueError(5, 6)
    return make(op, limit - 1, *rest)
'''


def summaries(kind: str) -> list[str]:
    return [mutant.summary.replace(f" {kind}:", "") for mutant in mutants(SOURCE) if mutant.kind == kind]


def test_each_kind_of_mutant_is_made_where_code_runs() -> None:
    assert summaries("guard dropped") == ["5:8: op > 2 and op.ok → False", "7:8: not op → False"]
    assert summaries("condition dropped") == ["5:8: op > 2 → True", "5:19: op.ok → True"]
    assert summaries("swapped") == [
        "9:12: make(op, limit - 1, *rest) → make(limit - 1, op, *rest)",
        "9:21: limit - 1 → 1 - limit",
    ]
    assert summaries("constant") == [
        "5:13: 2 → 3", "5:13: 2 → 1", "6:16: 7 → 8", "6:16: 7 → 6", "9:29: 1 → 2", "9:29: 1 → 0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "swaps"),
    [
        ("exact_product(x, y)", 0),
        ("exact_sum(x, y)", 1),
        ("algebra.exact_product(x, y)", 0),
        ("self._join(type_, (a, b), (c, d))", 1),  # the type with the first edge
        ('binary("add nsw", x, y)', 1),  # the opcode with x
        ('binary("sub nsw", x, y)', 2),
        ('compare("eq", x, y)', 1),
        ("self.binary(arith.AddiOp, x, y)", 1),
        ("self.binary(arith.SubiOp, x, y)", 2),
        ("arith.AndIOp(x, y)", 0),
        ("arith.SubiOp(x, y)", 1),
        ('choose("eq", x, y, z)', 2),  # the second with the third
        ('compare("fcmp oeq", x, y)', 1),
        ('compare("fcmp olt", x, y)', 2),
        ("max(x, y)", 0),
        ("max(x, y, key=f)", 1),  # which of two that are alike
        ("numpy.max(x, y)", 1),
        ("minimum(x, y)", 0),
        ("fma(x, y, z)", 1),  # a factor with the sum
        ('intrinsic("fma", block, x, y, z)', 3),
        ('intrinsic("copysign", block, x, y)', 3),
        ("both(e, block, x, y)", 2),
        ("self.use.share(x, y)", 0),
        ("graph.MulOp.make(x, y)", 0),
        ("graph.MulOp.make(x, y, type_)", 1),
        ("graph.SubOp.make(x, y)", 1),
    ],
)
def test_operands_that_commute_are_not_swapped(text: str, swaps: int) -> None:
    assert sum(mutant.kind == "swapped" for mutant in mutants(text)) == swaps


def test_what_a_cache_keeps_is_no_mutant() -> None:
    assert [m.summary for m in mutants("@lru_cache(maxsize=1 << 14)\ndef f(x):\n    return x + 5\n")] == [
        "3:16: constant: 5 → 6",
        "3:16: constant: 5 → 4",
    ]
    named = "KEPT = 7\n@lru_cache(maxsize=KEPT)\ndef f(x):\n    return x"
    assert [m.summary for m in mutants(named)] == []
    assert [m.summary for m in mutants(named + " + KEPT")] == ["1:8: constant: 7 → 8", "1:8: constant: 7 → 6"]


def test_a_mutant_is_the_source_with_one_change() -> None:
    for mutant in mutants(SOURCE):
        ast.parse(mutant.text)
        assert mutant.text != SOURCE
        changed = [a for a, b in zip(SOURCE.splitlines(), mutant.text.splitlines(), strict=True) if a != b]
        assert len(changed) == 1


def test_every_module_has_tests_that_exist() -> None:
    assert len(modules("")) > 60
    for path in modules(""):
        assert any(path.startswith(start) for start, _ in TESTS), path
    assert [
        test
        for tests in (*(row[1] for row in TESTS), (LIMITS, GOLDEN), RANDOM)
        for test in tests
        if not (ROOT / test).exists()
    ] == []


def test_a_sample_repeats_with_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        main(["--list", "--sample", "9", "--seed", seed, "--modules", "lowering/graph"])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]
    assert len(texts[0].splitlines()) == 9
    assert len(cases("lowering/graph")) > 100
