"""``goclaw jobs`` with a gateway: the same answers over its socket (SPEC OPS-1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from goclaw_py.operations.jobs.models import JobDraft, RunNow
from goclaw_py.schedule.jobs.models import Prompt
from goclaw_py.schedule.jobs.schedule import Every
from tests.support.memory_store import MemoryStore
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.cli.job_control import ANN, OPERATOR, JobControl

WEEKDAYS = ("--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin", "--", "What is new?")


@pytest.fixture
def there(home: Path) -> Iterator[JobControl]:
    """What a gateway in a thread has, which answers on the socket."""
    made = ThreadGateway(home)
    made.control = control = JobControl()
    control.gateway = True
    with made.running():
        yield control


def test_the_life_of_a_job(goclaw: Shell, there: JobControl) -> None:
    got = goclaw("jobs", "add", "standup", *WEEKDAYS)
    assert (got.code, got.err) == (0, "")
    assert got.out.count(" 08:00:00 ") == 3
    assert set(there.all()) == {"standup"}
    got = goclaw("jobs", "list")
    assert (got.code, got.err, len(got.out.splitlines())) == (0, "", 2)
    there.ran("standup", output="all is well")
    assert "all is well" in goclaw("jobs", "show", "standup").out
    assert "all is well" in goclaw("jobs", "runs").out
    assert "standup" in goclaw("jobs", "next", "1").out
    assert goclaw("jobs", "edit", "standup", "--max-runs", "3").code == 0
    assert there.one().spec.max_runs == 3
    assert goclaw("jobs", "edit", "standup", "--max-runs", "none").code == 0
    assert there.one().spec.max_runs is None
    assert goclaw("jobs", "pause", "standup").out.endswith("goclaw jobs resume standup\n")
    assert goclaw("jobs", "resume", "standup").code == 0
    assert goclaw("jobs", "run", "standup").out == "run-1\n"
    there.runner.answer = RunNow.AT_CAPACITY
    assert goclaw("jobs", "run", "standup").code == 1
    assert goclaw("jobs", "delete", "standup", "--yes").out == "deleted standup\n"
    assert there.all() == {}


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (["show", "../x"], 1, "no job '../x'"),
    (["show", ".."], 1, "no job '..'"),
    (["show", "a?b#c"], 1, "no job 'a?b#c'"),
    (["add", "a", "--every", "0s", "--", "x"], 2, "0s"),
    (["add", "a", "--cron", "0 0 30 2 *", "--", "x"], 2, "30 2"),
    (["add", "a", "--every", "5m", "--source", "jira", "--", "x"], 2, "'jira'"),
    (["add", "a", "--at", "2020-01-01T00:00Z", "--", "x"], 2, "2020-01-01"),
    (["edit", "nothing", "--", "x"], 1, "no job 'nothing'"),
])  # fmt: skip
def test_mistakes_have_the_same_words_and_exit_codes(
    goclaw: Shell, there: JobControl, arguments: list[str], code: int, words: str
) -> None:
    got = goclaw("jobs", *arguments)
    assert (got.code, got.out) == (code, "")
    assert words in got.err
    assert got.err.count("\n") == 1


@pytest.mark.parametrize(("changes", "words"), [
    ({"slug": "../x"}, "slug: must be 1 to 64 of"),
    ({"slug": "Upper"}, "slug: must be 1 to 64 of"),
    ({"slug": ""}, "slug: must be 1 to 64 of"),
    ({"prompt": "x" * 100_001}, "at most 100"),
    ({"prompt": "x" * 2_000_000}, "longer than"),
    ({"owner": "o" * 300}, "asker: "),
    ({"session": "s" * 300}, "session: "),
    ({"cron": "0 9 * * " + "1," * 500 + "1"}, "at most 256 characters"),
])  # fmt: skip
def test_what_the_gateway_does_not_take_is_the_failure_of_one_job(
    goclaw: Shell, there: JobControl, tmp_path: Path, changes: dict[str, str], words: str
) -> None:
    jobs = [definition(slug="first"), definition(**changes), definition(slug="last")]
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps(jobs))
    for more in ("--dry-run", "--json"):
        got = goclaw("jobs", "import", str(file), more)
        assert (got.code, words in got.err) == (1, True), got.err
        assert got.err.count("\n") == 1
    assert set(there.all()) == {"first", "last"}


def definition(prompt: str = "x", cron: str = "0 9 * * *", **changes: str) -> dict[str, object]:
    """A job as export writes it."""
    return {
        "slug": "bad",
        "zone": "UTC",
        "schedule": {"kind": "cron", "expression": cron},
        "payload": {"kind": "prompt", "text": prompt},
        **changes,
    }


@pytest.mark.parametrize("length", [257, 1_001, 100_000])
def test_too_long_an_expression(goclaw: Shell, request: pytest.FixtureRequest, length: int) -> None:
    expression = "0 9 * * " + "1" * (length - 8)
    for place in ("cron", "there"):
        control = request.getfixturevalue(place)
        got = goclaw("jobs", "add", "a", "--cron", expression, "--", "x")
        assert (got.code, got.out) == (2, ""), place
        assert "256 characters" in got.err
        assert got.err.count("\n") == 1
        assert control.all() == {}


@pytest.mark.parametrize("letter", ["x", "ü", "💩", "\x01"])
def test_the_longest_prompt_goes_through(goclaw: Shell, there: JobControl, letter: str) -> None:
    assert goclaw("jobs", "add", "a", "--every", "1h", "--", letter * 100_000).code == 0
    assert there.one().spec.payload == Prompt(letter * 100_000)


def test_an_edit_of_another_revision_is_refused(goclaw: Shell, there: JobControl) -> None:
    goclaw("jobs", "add", "standup", *WEEKDAYS)
    assert goclaw("jobs", "edit", "standup", "--revision", "1", "--", "mine").code == 0
    got = goclaw("jobs", "edit", "standup", "--revision", "1", "--", "theirs")
    assert (got.code, "was changed" in got.err) == (1, True)


def test_jobs_go_to_a_file_and_back(goclaw: Shell, there: JobControl, tmp_path: Path) -> None:
    for by in (ANN, OPERATOR):
        there.make(JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="a"), by)
    file = tmp_path / "jobs.json"
    assert goclaw("jobs", "export", str(file)).code == 0
    there.store = MemoryStore()
    loaded = goclaw.data("jobs", "import", str(file))
    assert [one["result"] for one in loaded] == ["new", "new"]
    assert {(job.owner, job.maker) for job in there.stored()} == {
        (by.owner or "operator", by.maker) for by in (ANN, OPERATOR)
    }
    loaded = goclaw.data("jobs", "import", str(file))
    assert [one["result"] for one in loaded] == ["unchanged", "unchanged"]
