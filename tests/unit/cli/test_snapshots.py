"""What commands print on terminals of 80, 120 and 200 columns (SPEC OPS-1, SEC-1).

The names and texts are long, of several scripts, or of people who want to fool an operator. After a
change of what commands print, ``SNAPSHOTS=write pytest tests/unit/cli/test_snapshots.py`` writes
the files anew: read them before you commit them.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from rich.cells import cell_len

from goclaw_py.cli.context import STORED_ONLY
from goclaw_py.cli.messages import display
from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import Sender, Target
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.operations.jobs.models import JobDraft
from goclaw_py.records import (
    OutboxState,
    Person,
    RunQuery,
    Session,
    Standing,
    StoredRun,
)
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus
from goclaw_py.schedule.jobs.models import Prompt
from goclaw_py.schedule.jobs.schedule import Cron, Every
from tests.unit.cli.conftest import Shell, give
from tests.unit.cli.job_control import JobControl
from tests.unit.web import fake_names, fakes

FOLDER: Final = Path(__file__).parent / "snapshots"
WIDTHS: Final = (80, 120, 200)
IDS: Final = re.compile(r"019b7e94-[0-9a-f-]{27}")
"""The ids of jobs are random."""

CODES: Final = re.compile(r"\x1b\[[0-9;]*m")

COMMANDS: Final = (
    "status", "lanes", "jobs list", "jobs next", "jobs show weekly-report", "jobs runs",
    "runs list", "runs show 01a20492", "runs --active", "deliveries list",
    "deliveries incoming list", "sessions list", "sessions show local", "queue local",
    "people list", "people groups list", "heartbeat status", "heartbeat status main",
    "why 01a20492", "usage", "usage --by day,sender", "approvals list", "nodes list", "audit",
    "config show lanes",
)  # fmt: skip

LISTS: Final = tuple(
    one for one in COMMANDS if one.endswith("list") or one in ("jobs runs", "audit")
)
AGE: Final = re.compile(r"\b(ago|in \d+ (s|min|h|d))\b|\bnow\b")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( \([^)]*\))?")

CHATS: Final = {
    "42": "Ann",
    "43": "Maximilian-Alexander von und zu Hohenlohe-Schillingsfürst",
    "44": "山田太郎のとても長い表示名です",
    "45": "שלום עולם 123",
    "46": "👩‍👩‍👧 Family 🇩🇪",
    "47": fake_names.FOOL,
}
PROMPTS: Final = (
    "What is new in my inbox?",
    "Compare the three quotes for the roof and say which one you would take, and why " * 3,
    "山田さんの請求書を探して、金額を教えてください" * 3,
    "مرحبا، ما الطقس اليوم؟",
    "🎉🎉 plan the party",
    "two\nlines\x1b[2J",
)


def key(chat: str) -> SessionKey:
    return SessionKey(f"agent:main:telegram:direct:{chat}")


def at(minutes: int) -> datetime:
    """That many minutes ago."""
    return fakes.NOW - timedelta(minutes=minutes)


def run(number: int, chat: str) -> StoredRun:
    began = fakes.NOW - timedelta(minutes=7 * number, seconds=number)
    ends = [
        (Outcome.COMPLETED, None, None),
        (Outcome.FAILED, None, "AgentError: 401 Unauthorized: the key was refused by the provider"),
        (Outcome.CANCELLED, Reason.STOPPED, None),
        (Outcome.TIMED_OUT, Reason.RUN_TIMEOUT, None),
        (Outcome.LOST, Reason.CRASHED, None),
        (None, None, None),
    ]
    outcome, reason, error = ends[number]
    return replace(
        fakes.ENDED,
        id=RunId(f"01a2049{number}-c3f7-7c11-8000-00000000000{number}"),
        session=key(chat),
        trigger=Trigger.CRON if number == 3 else Trigger.CHAT,
        submitted_at=began - timedelta(seconds=2),
        started_at=began,
        first_text_at=None,
        finished_at=None if outcome is None else began + timedelta(seconds=9.97 * 7**number),
        outcome=outcome,
        reason=reason,
        error=error,
        prompt=PROMPTS[number],
    )


def control() -> JobControl:
    made = JobControl()
    made.gateway = True
    runs = [run(number, chat) for number, chat in enumerate(CHATS)]

    async def listed(_query: RunQuery) -> list[StoredRun]:
        return runs

    async def found(prefix: str) -> list[StoredRun]:
        return [one for one in runs if one.id.startswith(prefix)]

    async def prompts(ids: list[RunId]) -> dict[RunId, str]:
        return {one.id: one.prompt for one in runs if one.id in ids}

    stored = made.stored_runs
    stored.runs, stored.find_run, stored.run_prompts = listed, found, prompts  # type: ignore[assignment]
    made.named = KnownNames(
        {Target("telegram", "default", chat): name for chat, name in CHATS.items()}
        | {fakes.LOCAL: "Ann at the desk"}
    )
    chats = [Target("telegram", "default", chat) for chat in CHATS]
    made.snapshot = replace(
        fakes.STATUS,
        runs=tuple(
            replace(fakes.RUNNING, id=one.id, session=one.session, for_s=3.7 * 9**number)
            for number, one in enumerate(runs)
        ),
    )
    made.messages.rows = [
        replace(
            fakes.DEAD,
            id=1000 + number,
            session=key(chat.chat),
            message=replace(fakes.DEAD.message, target=chat, text=PROMPTS[number]),
            state=list(OutboxState)[number % 3],
            error="Forbidden: bot was blocked by the user" if number % 3 == 2 else None,
            sent_at=None,
        )
        for number, chat in enumerate(chats)
    ]
    made.crowd.approved = [
        Person(
            "telegram",
            "default",
            Sender(chat, name, "ann" if chat == "42" else None),
            Standing.OWNER if chat == "42" else Standing.GUEST,
            fakes.NOW - timedelta(days=int(chat)),
        )
        for chat, name in CHATS.items()
    ]
    made.crowd.spoke = [
        replace(fake_names.SPOKE, target=chat, sender_id=chat.chat, at=at(7**n))
        for n, chat in enumerate(chats)
    ]
    drafts = [
        JobDraft(
            Cron("0 9 * * 1-5"), Prompt(PROMPTS[1]), slug="weekly-report", zone="Europe/Berlin"
        ),
        JobDraft(Every(timedelta(minutes=10)), Prompt(PROMPTS[0]), slug="tea"),
        JobDraft(Cron("30 8 1 * *"), Prompt(PROMPTS[2]), slug="invoices"),
        JobDraft(
            Every(timedelta(days=1)),
            Prompt(PROMPTS[4]),
            slug="n" * 40,
            zone="America/Argentina/Buenos_Aires",
        ),
    ]
    for draft in drafts:
        made.make(draft)
    made.ran("weekly-report", output=PROMPTS[1])
    made.clock.at += timedelta(seconds=5)  # occurrences of one instant have no order
    made.ran("tea", OccurrenceStatus.FAILED, error="AgentError: 401 Unauthorized" * 4)
    return made


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, goclaw: Shell) -> Iterator[None]:
    """A terminal without colours, in UTC, where it is always the same time."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(display, "now", lambda: fakes.NOW)
    give(monkeypatch, control())

    async def sessions(_self: object, _query: object = None) -> list[Session]:
        return [
            replace(fakes.FULL, key=key(chat), last_active_at=at(5**n))
            for n, chat in enumerate(CHATS)
        ]

    monkeypatch.setattr(fakes.FakeSessions, "list", sessions)
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("command", LISTS)
def test_times_of_lists_are_ages_on_a_terminal_and_whole_elsewhere(
    goclaw: Shell, terminal: None, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """OPS-1: an age says nothing to a program, nor in a file that is read later."""
    assert not AGE.search(TIME.sub("", goclaw(*command.split()).out))
    assert not AGE.search(TIME.sub("", goclaw(*command.split(), "--wide").out))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    assert not TIME.search(goclaw(*command.split()).out)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_prints_on_a_terminal(
    goclaw: Shell, terminal: None, monkeypatch: pytest.MonkeyPatch, command: str, columns: int
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))
    got = goclaw(*command.split())
    assert (got.code, got.err.replace(f"{STORED_ONLY}\n", "")) == (0, "")
    text = IDS.sub("0" * 36, CODES.sub("", got.out)).replace(str(goclaw.home), "HOME")
    lines = [line.rstrip() for line in text.splitlines()]
    file = FOLDER / f"{re.sub('[^a-z]+', '-', command).strip('-')}.{columns}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        file.write_text("\n".join(lines) + "\n", "utf-8")
    assert lines == file.read_text("utf-8").split("\n")[:-1]
    assert not re.search(r"[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800]", "".join(lines))
    assert [line for line in lines if cell_len(line) > columns] == []
