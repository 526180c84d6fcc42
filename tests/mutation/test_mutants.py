"""The mutants of a small source, and the tests that are chosen for a module."""

from __future__ import annotations

import ast

import pytest

from stepwell.tests.mutation.mutants import mutants
from stepwell.tests.mutation.run import RANDOM, ROOT, TESTS, cases, main, modules

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
        test for tests in (*(row[1] for row in TESTS), RANDOM) for test in tests if not (ROOT / test).exists()
    ] == []


def test_a_sample_repeats_with_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        main(["--list", "--sample", "9", "--seed", seed, "--modules", "lowering/graph"])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]
    assert len(texts[0].splitlines()) == 9
    assert len(cases("lowering/graph")) > 100
