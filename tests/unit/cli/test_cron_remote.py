"""``goclaw cron`` with a gateway: the same answers over its socket (SPEC OPS-1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from goclaw_py.core.jobs import Prompt
from goclaw_py.core.schedule import Every
from goclaw_py.ports.jobs import JobDraft, RunNow
from goclaw_py.store.memory import MemoryStore
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.cli.cron_desk import ANN, OPERATOR, JobControl

pytestmark = pytest.mark.real_time

WEEKDAYS = ("--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin", "--", "What is new?")


@pytest.fixture
def there(home: Path) -> Iterator[JobControl]:
    """What a gateway in a thread has, which answers on the socket."""
    made = ThreadGateway(home)
    made.control = control = JobControl()
    control.gateway = True
    with made.running():
        yield control


def test_a_job_is_made_shown_changed_and_deleted_through_the_gateway(
    goclaw: Shell, there: JobControl
) -> None:
    got = goclaw("cron", "add", "standup", *WEEKDAYS)
    assert (got.code, got.err) == (0, "")
    assert got.out.count(" 09:00:00 ") == 3
    assert set(there.all()) == {"standup"}
    got = goclaw("cron", "list")
    assert (got.code, got.err, len(got.out.splitlines())) == (0, "", 2)
    there.ran("standup", output="all is well")
    assert "all is well" in goclaw("cron", "show", "standup").out
    assert "all is well" in goclaw("cron", "runs").out
    assert "standup" in goclaw("cron", "next", "1").out
    assert goclaw("cron", "edit", "standup", "--max-runs", "3").code == 0
    assert there.one().spec.max_runs == 3
    assert goclaw("cron", "edit", "standup", "--max-runs", "none").code == 0
    assert there.one().spec.max_runs is None
    assert goclaw("cron", "pause", "standup").out.endswith("goclaw cron resume standup\n")
    assert goclaw("cron", "resume", "standup").code == 0
    assert goclaw("cron", "run", "standup").out == "run-1\n"
    there.hand.answer = RunNow.AT_CAPACITY
    assert goclaw("cron", "run", "standup").code == 1
    assert goclaw("cron", "rm", "standup").out == "standup is deleted\n"
    assert there.all() == {}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "../x"], 1, "no job '../x'"),
        (["show", ".."], 1, "no job '..'"),
        (["show", "a?b#c"], 1, "no job 'a?b#c'"),
        (["add", "a", "--every", "0s", "--", "x"], 2, "0s"),
        (["add", "a", "--cron", "0 0 30 2 *", "--", "x"], 2, "30 2"),
        (["add", "a", "--every", "5m", "--source", "jira", "--", "x"], 2, "'jira'"),
        (["add", "a", "--at", "2020-01-01T00:00Z", "--", "x"], 2, "2020-01-01"),
        (["edit", "nothing", "--", "x"], 1, "no job 'nothing'"),
    ],
)
def test_mistakes_have_the_same_words_and_exit_codes(
    goclaw: Shell, there: JobControl, arguments: list[str], code: int, words: str
) -> None:
    got = goclaw("cron", *arguments)
    assert (got.code, got.out) == (code, "")
    assert words in got.err
    assert got.err.count("\n") == 1


def test_an_edit_of_another_revision_is_refused_through_the_gateway(
    goclaw: Shell, there: JobControl
) -> None:
    goclaw("cron", "add", "standup", *WEEKDAYS)
    assert goclaw("cron", "edit", "standup", "--revision", "1", "--", "mine").code == 0
    got = goclaw("cron", "edit", "standup", "--revision", "1", "--", "theirs")
    assert (got.code, "somebody else" in got.err) == (1, True)


def test_jobs_of_all_owners_go_through_the_gateway_to_a_file_and_back(
    goclaw: Shell, there: JobControl, tmp_path: Path
) -> None:
    for by in (ANN, OPERATOR):
        there.make(JobDraft(Every(timedelta(hours=1)), Prompt("x"), slug="a"), by)
    file = tmp_path / "jobs.json"
    assert goclaw("cron", "export", str(file)).code == 0
    there.store = MemoryStore()
    got = goclaw("cron", "import", str(file), "--json")
    assert [one["result"] for one in json.loads(got.out)] == ["new", "new"]
    assert {(job.owner, job.maker) for job in there.stored()} == {
        (by.owner or "operator", by.maker) for by in (ANN, OPERATOR)
    }
    got = goclaw("cron", "import", str(file), "--json")
    assert [one["result"] for one in json.loads(got.out)] == ["unchanged", "unchanged"]
