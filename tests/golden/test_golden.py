"""The compiler makes of every program of the corpus what it made of it before; see docs/testing.md."""

from __future__ import annotations

import pytest

from stepwell.tests.golden.corpus import difference, kept, programs
from stepwell.tests.golden.programs import KINDS

ROWS = [(kind, name) for kind, rows in KINDS.items() for name in rows]


@pytest.mark.parametrize(("kind", "name"), ROWS)
def test_code_is_as_it_was(kind: str, name: str) -> None:
    found = (difference(program, kept(kind).get(program.name)) for program in KINDS[kind][name].programs(name))
    if changed := [what for what in found if what is not None]:
        first = changed[0].partition(":")[0]
        pytest.fail(
            f"{len(changed)} programs differ, first at:\n  " + "\n  ".join(changed) + "\nshow one:"
            f"\n  python -m stepwell.tests.golden.corpus '{first}' --against HEAD"
            f"\nif that is meant:\n  python -m stepwell.tests.golden.corpus --update {kind}",
            pytrace=False,
        )


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_holds_the_programs_of_the_table(kind: str) -> None:
    assert [*kept(kind)] == [program.name for program in programs(kind)]
