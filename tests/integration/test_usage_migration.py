"""What the step that keeps who asked for a run finds out of runs that are there already."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from goclaw_py.store import migrate as m
from goclaw_py.store.postgres import Connection, connection
from tests.support.postgres import Database

pytestmark = pytest.mark.real_time

(STEP,) = [step.version for step in m.known() if step.name == "usage"]

_RUN = (
    "insert into runs (id, session, agent, trigger, lane, node, fence, epoch, model, parent, "
    "occurrence, started_at) values ('{id}', 's', 'main', 'chat', 'main', 'n', 1, 0, '', "
    "{parent}, {occurrence}, 'epoch');"
)
_MESSAGE = (
    "insert into inbox (channel, account, external_id, session, agent, kind, state, message, "
    "run_id, received_at, finished_at, outcome) values ('telegram', 'work', '{id}', 's', 'main', "
    """'message', 'done', '{{"sender": {{"id": "{sender}"}}{more}}}', '{run}', 'epoch', """
    "'epoch', 'completed');"
)
_LOG = (
    "insert into cron_run_logs (id, job, slug, owner, scheduled_at, claimed_at, finished_at, "
    "status, definition) values ('o', 'j', 'tea', 'x', 'epoch', 'epoch', 'epoch', 'ok', '{}');"
)


def run(name: str, *, parent: str | None = None, occurrence: str | None = None) -> str:
    quoted = ["null" if one is None else f"'{one}'" for one in (parent, occurrence)]
    return _RUN.format(id=name, parent=quoted[0], occurrence=quoted[1])


def message(name: str, run_id: str, *, sender: str = "7", source: str = "") -> str:
    more = f', "source": "{source}"' if source else ""
    return _MESSAGE.format(id=name, run=run_id, sender=sender, more=more)


@pytest.fixture
async def before(empty_database: Database) -> AsyncIterator[Connection]:
    """The schema before the step."""
    async with connection(empty_database.address) as opened:
        await m.migrate(opened, to=STEP - 1)
        yield opened


async def asked(opened: Connection) -> dict[str, tuple[str | None, str | None]]:
    await m.migrate(opened, to=STEP)
    rows = await opened.fetch("select id, sender, job from runs")
    return {row["id"]: (row["sender"], row["job"]) for row in rows}


async def test_runs_get_the_sender_of_their_first_message(before: Connection) -> None:
    await before.script(
        run("r")
        + run("api")
        + run("nobodys")
        + message("1", "r")
        + message("2", "r", sender="8")
        + message("3", "api", sender="api", source="api")
    )
    assert await asked(before) == {
        "r": ("telegram/work/7", None),
        "api": ("api", None),
        "nobodys": (None, None),
    }


async def test_runs_of_jobs_get_their_job_and_children_what_is_above_them(
    before: Connection,
) -> None:
    await before.script(
        _LOG
        + run("job", occurrence="o")
        + run("job-child", parent="job")
        + run("pruned", occurrence="gone")
        + run("chat")
        + message("1", "chat")
        + run("child", parent="chat")
        + run("grandchild", parent="child")
        + run("orphan", parent="gone")
    )
    assert await asked(before) == {
        "job": (None, "j"),
        "job-child": (None, "j"),
        "pruned": (None, None),
        "chat": ("telegram/work/7", None),
        "child": ("telegram/work/7", None),
        "grandchild": ("telegram/work/7", None),
        "orphan": (None, None),
    }


async def test_a_run_that_reads_a_subagents_result_gets_whom_that_worked_for(
    before: Connection,
) -> None:
    await before.script(
        run("chat")
        + message("1", "chat")
        + run("child", parent="chat")
        + run("reads")
        + message("subagent:child", "reads", sender="subagent", source="subagent")
        + run("lost")
        + message("subagent:gone", "lost", sender="subagent", source="subagent")
    )
    found = await asked(before)
    assert (found["reads"], found["lost"]) == (("telegram/work/7", None), (None, None))


async def test_the_step_can_be_taken_back_and_taken_again(before: Connection) -> None:
    await before.script(run("r") + message("1", "r"))
    assert await asked(before) == {"r": ("telegram/work/7", None)}
    await m.migrate(before, to=STEP - 1)
    assert not await before.fetch(
        "select from information_schema.columns "
        "where table_name = 'runs' and column_name in ('sender', 'job')"
    )
    assert not await before.fetch("select from pg_indexes where indexname = 'runs_used'")
    assert await asked(before) == {"r": ("telegram/work/7", None)}
