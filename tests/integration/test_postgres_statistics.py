"""No statement reads more because statistics are older than the rows of a table (SPEC DB-6).

A burst fills tables that were nearly empty, and autovacuum has not looked at them since.
Connections have plans from before, or make new ones with what the server believes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import orjson
import pytest
import pytest_asyncio

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.store.postgres import Connection, connection
from goclaw_py.store.sql import queries
from tests.support import large_tables
from tests.support.postgres import Server, run_sql
from tests.support.statement_arguments import sample_arguments
from tests.unit.store.test_sql import FILES

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

DATABASE: Final = "statistics"

FEW_ROWS: Final = 300
ROWS_FOR_EACH: Final = 10
FEW_PAGES: Final = 300
PAGES_FOR_EACH: Final = 40
"""What a statement may read in any case, and for each row that it returns or changes. It reads
pages of indexes too, which are counted with those of the table."""

MOST_MS: Final = 5_000
ENDLESS: Final = 1_000_000_000
"""What counts for a statement that does not end."""

WHOLE: Final = 110_000
"""All rows of a table."""

ONCE_PER_CHAT = "once in the life of a chat"
PAGE = "a page that people open: it counts or searches all rows"
RANGE = "it sums a range of time"

READS_MORE: Final[dict[str, tuple[int, str]]] = {
    "approvals.rename": (WHOLE, ONCE_PER_CHAT),
    "approvals.retarget": (WHOLE, ONCE_PER_CHAT),
    "checkup.estimated": (1_000, "it reads the newest 1,000 runs, for the check of an operator"),
    "dead_letters.counts": (21_000, PAGE),
    "drafts.abandoned": (1_000, "it reads all drafts, as many as replies are growing"),
    "drafts.newest_before": (12_000, "it searches the newest 5,000 messages, out and in"),
    "drafts.own_messages": (12_000, "it searches the newest 5,000 messages, out and in"),
    "heartbeat_runs.list": (1_000, "it reads all heartbeats, as many as agents"),
    "heartbeat_runs.lock_claimed": (1_000, "it reads all heartbeats, as many as agents"),
    "heartbeat_runs.lock_unknown": (1_000, "it reads all heartbeats, as many as agents"),
    "heartbeat_runs.log_with_skip": (WHOLE, PAGE),
    "heartbeat_runs.retarget": (WHOLE, ONCE_PER_CHAT),
    "heartbeat_runs.sweep_items": (WHOLE, "it reads the items of all checklists, once an hour"),
    "jobs.all": (1_000, "it counts up to a limit"),
    "jobs.all_of_owner": (1_000, "it counts up to a limit"),
    "jobs.all_of_state": (1_000, "it counts up to a limit"),
    "jobs.counts": (WHOLE, PAGE),
    "jobs.lock_of_chat": (WHOLE, ONCE_PER_CHAT),
    "jobs.search": (WHOLE, PAGE),
    "inbox.lock_waiting_sessions": (7_000, "it looks at each session in which messages wait"),
    "lanes.grant": (2_000, "it reads the queue of a lane"),
    "moves.remember_moves": (WHOLE, ONCE_PER_CHAT),
    "moves.retarget_sessions": (WHOLE, ONCE_PER_CHAT),
    "moves.sessions_of": (WHOLE, ONCE_PER_CHAT),
    "occurrences.mark_undelivered": (600, "it reads the messages that died in a few days"),
    "heartbeat_runs.undelivered": (600, "it reads the messages that died in a few days"),
    "occurrences.not_claimed_by": (1_000, "it reads what waits, when everything is stopped"),
    "occurrences.stats": (1_000, RANGE),
    "nodes.free_outbox": (11_000, "it reads what is unsent, to find what a lost node was sending"),
    "outbox.advance": (WHOLE, "only once the clock has gone back"),
    "outbox.newest_sending": (11_000, "it reads what is unsent"),
    "outbox.backlog": (40_000, "it counts what waits, for the status"),
    "outbox.counts": (WHOLE, PAGE),
    "outbox.newest_sent": (16_000, "it skips what is not sent"),
    "people.requests": (WHOLE, "it reads all requests, of which a limited number waits"),
    "people.pop_request_of_chat": (WHOLE, "it reads all requests, when somebody decides"),
    "records.counts": (3_000, "it counts up to a limit"),
    "records.in_order": (3_000, "it sorts up to a limit"),
    "records.density": (1_500, RANGE),
    "records.newest_with_outcome": (WHOLE, PAGE),
    "records.newest_with_text": (41_000, "it searches the prompts of the newest 10,000 runs"),
    "records.search": (1_000_000, PAGE),
    "records.spent": (500, RANGE),
    "rewind.delete": (410_000, "once in the life of a conversation"),
    "settings.sweep": (WHOLE, "it reads all edits of settings, once an hour"),
    "upkeep.end_unread": (11_000, "it reads what is unsent in consoles, once an hour"),
    "upkeep.lock_idle_sessions": (1_000, "it skips sessions of jobs that exist"),
    "upkeep.sweep_incidents": (WHOLE, "it reads all incidents, of which there are few"),
    "upkeep.sweep_requests": (WHOLE, "it reads all requests, of which a limited number waits"),
    "usage.messages": (1_500, RANGE),
    "usage.times": (500, RANGE),
    "usage.usage": (WHOLE, "it reads the names of all people"),
    "web_links.sweep": (2_000, "it reads all links of guests"),
    "work.claim": (WHOLE, "it reads what waits in the queue"),
    "work.work": (WHOLE, PAGE),
}  # fmt: skip
"""Statements that read more by their nature: how many rows, and why."""

NOT_MENDED: Final = {"occurrences.ahead", "records.interrupted_subagents"}
"""Statements that still depend on statistics: once at a start, and once a minute."""

_COUNTERS = """
select
    coalesce((
        select sum(pg_stat_get_xact_tuples_returned(oid)) from pg_class
        where relkind in ('r', 'i') and relnamespace = 'public'::regnamespace
    ), 0)::bigint as read,
    (
        select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) from pg_stat_xact_user_tables
    )::bigint as written
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a statement has read: rows of tables and entries of indexes, and pages of both."""

    rows: int
    pages: int
    results: int
    plan: str

    def is_much(self, more: int) -> bool:
        return (
            self.rows > FEW_ROWS + ROWS_FOR_EACH * self.results + more
            or self.pages > FEW_PAGES + PAGES_FOR_EACH * self.results + more
        )

    def __str__(self) -> str:
        return f"reads {self.rows} rows, {self.pages} pages for {self.results}\n{self.plan}"


def statements() -> dict[str, str]:
    """The text of each statement but those that only lock a table, which have no plan."""
    found = {f"{file}.{name}": text for file in FILES for name, text in queries(file).items()}
    return {name: text for name, text in found.items() if "\nlock table " not in text}


async def prepare_all(opened: Connection, samples: dict[str, str]) -> None:
    """Prepare each statement, and run it once: the first run makes the plan."""
    for name, text in statements().items():
        await opened.script(f'prepare "{name}" as {text}')
        await read(opened, name, samples[name])


async def read(opened: Connection, name: str, arguments: str) -> Reading:
    """Run a prepared statement, undo it, and return what it has read; triggers are included."""
    await opened.script(f"begin; set local statement_timeout = {MOST_MS}")
    try:
        before = await opened.row(_COUNTERS)
        row = await opened.row(
            f'explain (analyze, buffers, timing off, format json) execute "{name}" {arguments}'
        )
        after = await opened.row(_COUNTERS)
    except StoreUnavailable as error:
        if "statement timeout" not in str(error):
            raise
        return Reading(ENDLESS, ENDLESS, 0, "")
    finally:
        await opened.script("rollback")
    assert before is not None
    assert after is not None
    assert row is not None
    plan = orjson.loads(row["QUERY PLAN"])[0]["Plan"]
    return Reading(
        after["read"] - before["read"],
        int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]),
        after["written"] - before["written"] + int(plan["Actual Rows"]),
        "\n".join(_lines(plan)),
    )


def _lines(node: dict[str, Any], depth: int = 1) -> list[str]:
    names = (
        "Node Type",
        "Index Name",
        "Relation Name",
        "Actual Rows",
        "Actual Loops",
        "Index Cond",
    )
    shown = " ".join(f"{node[name]}" for name in names if name in node)
    return [
        "  " * depth + shown,
        *(line for part in node.get("Plans", ()) for line in _lines(part, depth + 1)),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def readings(postgres_server: Server) -> AsyncIterator[dict[str, dict[str, Reading]]]:
    """What each statement reads, with a plan from before the burst and with a new one."""
    samples = sample_arguments()
    await run_sql(
        postgres_server.address, f"create database {DATABASE} template {postgres_server.template}"
    )
    at = postgres_server.at(DATABASE)
    async with connection(at) as early, connection(at) as direct:
        await large_tables.make_small(direct)
        await prepare_all(early, samples)
        await large_tables.make_large(direct)
        async with connection(at) as late:
            await prepare_all(late, samples)
            yield {
                when: {name: await read(opened, name, samples[name]) for name in statements()}
                for when, opened in (("earlier", early), ("new", late))
            }
    await run_sql(postgres_server.address, f"drop database {DATABASE} with (force)")


def test_each_statement_has_sample_arguments() -> None:
    samples = sample_arguments()
    for name in statements():
        assert name in samples, f"statement {name} has no sample arguments"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("when", ["earlier", "new"])
async def test_no_statement_reads_more_than_it_needs(
    readings: dict[str, dict[str, Reading]], when: str
) -> None:
    much = {
        name: reading
        for name, reading in readings[when].items()
        if name not in NOT_MENDED and reading.is_much(READS_MORE.get(name, (0, ""))[0])
    }
    assert not much, "\n".join(f"{name} {reading}" for name, reading in much.items())
