"""The facts of an entry of the audit log: what differs (SPEC SEC-9)."""

from __future__ import annotations

import pytest

from goclaw_py.gateway.audit.facts import changed
from goclaw_py.records.audit import Facts


@pytest.mark.parametrize(("before", "after", "differs"), [
    ({"a": 1, "b": 2}, {"a": 1, "b": 3}, ({"b": 2}, {"b": 3})),
    ({"a": 1}, {"a": 1, "b": 3}, ({}, {"b": 3})),
    ({"a": 1, "b": 2}, {"a": 1}, ({"b": 2}, {})),
    ({"a": 1}, {"a": 1}, ({}, {})),
    (None, {"a": 1}, (None, {"a": 1})),
    ({"a": 1}, None, ({"a": 1}, None)),
    (None, None, (None, None)),
])  # fmt: skip
def test_what_stays_the_same_is_left_out(
    before: Facts | None, after: Facts | None, differs: tuple[Facts | None, Facts | None]
) -> None:
    assert changed(before, after) == differs
