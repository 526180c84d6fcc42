"""The error tree: what a message says, and that errors survive copying between processes."""

from __future__ import annotations

import pickle

import pytest

from stepwell.ir import errors

CLASSES = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, Exception)]


def test_a_message_says_who_expected_what_and_where() -> None:
    error = errors.LoweringError(
        "graph.add", expected="equal shapes", got="4, 5", hint="broadcast first", location="model.py:7"
    )
    assert str(error) == "graph.add: expected equal shapes, got 4, 5; broadcast first\n  at model.py:7"
    assert str(errors.FrontendError("x", expected="a", got="b")) == "x: expected a, got b"


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_is_a_stepwell_error_and_pickles(cls: type[errors.StepwellError]) -> None:
    assert issubclass(cls, errors.StepwellError)
    error = cls("x", expected="a", got="b", hint="c", location="d.py:1")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert vars(copy) == vars(error)
