"""Names by a part: operations.lookup."""

from __future__ import annotations

import pytest

from goclaw_py.core.errors import NotFound
from goclaw_py.operations.lookup import only


def _found(part: str, *candidates: str) -> str:
    return only(list(candidates), part, str, f"job {part!r}", "jobs list")


def test_a_whole_name_wins_over_names_that_contain_it() -> None:
    assert _found("job-1", "job-10", "job-1", "my-job-1") == "job-1"


def test_a_part_of_one_name_is_enough() -> None:
    assert _found("b-1", "job-1", "run-2") == "job-1"


def test_a_part_of_several_names_lists_them() -> None:
    with pytest.raises(NotFound, match="job 'job' is not unique: job-1, job-2, job-3, …"):
        _found("job", "job-1", "job-2", "job-3", "job-4")


def test_what_no_name_contains_is_not_found() -> None:
    with pytest.raises(NotFound, match="there is no job 'x'; see: goclaw jobs list"):
        _found("x", "job-1")
