"""Tables on terminals of any width and in pipes, with display names (SPEC OPS-1, OPS-9)."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from rich.cells import cell_len

from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Column, clock, full_width, table_text
from goclaw_py.core.display_names import KnownNames
from goclaw_py.core.ids import RunId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.operations.explanation import Cure, Explanation, ExplanationStep
from goclaw_py.records import AuditEntry, AuditFilter, RunQuery, StoredRun
from tests.unit.cli.conftest import Shell
from tests.unit.web import fake_names, fakes
from tests.unit.web.fakes import FakeControl

RUN = RunId("01a20492-c3f7-7c11-9172-d769006fc43e")
KEY = fakes.SESSION
FAMILY = Target("telegram", "work", "-1001")
CODES = re.compile(r"\x1b\[[0-9;]*m")

At = Callable[[int], None]


@pytest.fixture
def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[At]:
    """Standard output is a terminal of this width, in UTC, and it is always the same time."""

    def made(columns: int) -> None:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(display, "now", lambda: fakes.NOW)
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC")
        time.tzset()
        yield made
    time.tzset()


def shown(text: str) -> list[str]:
    """The lines of a table without colours and without the blanks at their ends."""
    return [CODES.sub("", line).rstrip() for line in text.splitlines()]


AUDITED = AuditEntry(
    1, fakes.NOW, "command", "operator-of-this-machine", "admin",
    "goclaw sessions rename 7 Teatime-of-the-family --json",
    "019b2c1e-77aa-7d20-8f11-4a5b6c7d8e9f", "sessions.rename", "session agent:main:telegram:7",
    {"title": "tea"}, {"title": "Teatime-of-the-family"}, "ok",
)  # fmt: skip


@pytest.mark.parametrize(("columns", "heads"), [
    (80, "TIME WHO ACTION SUBJECT RESULT"),
    (120, "TIME WHO ACTION SUBJECT RESULT CHANGE"),
])  # fmt: skip
def test_the_audit_log_shows_what_was_done_to_what(
    database: FakeControl,
    goclaw: Shell,
    terminal_of: At,
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    heads: str,
) -> None:
    """Not the id of the node, which is the longest cell."""

    async def listed(*, limit: int, only: AuditFilter) -> list[AuditEntry]:
        del limit, only
        return [AUDITED]

    monkeypatch.setattr(database.audit, "list", listed)
    terminal_of(columns)
    head, row, _ = shown(goclaw("audit").out)
    assert " ".join(head.split()) == heads
    assert "sessions.rename  session agent:main:t" in row


@pytest.fixture
def runs(database: FakeControl, monkeypatch: pytest.MonkeyPatch) -> FakeControl:
    async def listed(_query: RunQuery) -> list[StoredRun]:
        return [
            replace(fakes.ENDED, id=RUN),
            replace(fakes.ACTIVE, session=SessionKey("agent:main:cron:x")),
        ]

    monkeypatch.setattr(database.stored_runs, "runs", listed)
    database.named = KnownNames({fakes.LOCAL: "Ann", FAMILY: "Family <b>"})
    return database


def test_wide_cells_are_folded(goclaw: Shell, runs: FakeControl, terminal_of: At) -> None:
    """What a terminal gets without it: test_snapshots.py."""
    terminal_of(84)
    assert (
        shown(goclaw("sessions", "list", "--wide").out)
        == """
SESSION         AGENT  LAST ACTIVE          WAITING  ENTRIES  KEY
Ann             main   2026-01-02 03:04:05  1        2        agent:main:console:dir
                                                              ect:local
API a/b c%2F?#  main   2026-01-02 03:04:05  0        0        agent:main:api:a/b
                                                              c%2F?#""".strip().splitlines()
    )


def test_facts_have_the_name_first_and_then_the_key(goclaw: Shell, runs: FakeControl) -> None:
    assert goclaw("sessions", "show", KEY).out.startswith(f"session      Ann ({KEY})\n")
    out = goclaw("deliveries", "incoming", "show", "8").out
    assert f"session      Family <b> / topic 7 ({fake_names.KEY})\n" in out


def test_a_pipe_gets_all_columns_whole_and_json_has_no_names(
    goclaw: Shell, runs: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = goclaw("runs", "list").out
    assert out == goclaw("runs", "list", "--wide").out
    head, ended, _ = out.splitlines()
    columns = ["RUN", "SESSION", "TRIGGER", "STARTED", "TOOK", "OUTCOME", "PROMPT", "KEY"]
    assert head.split() == columns
    assert ended.startswith(f"{RUN}  Ann  ")
    assert ended.endswith(f"  {KEY}")
    assert "  cancelled (stopped)  Gr" in ended
    assert "\x1b" not in out
    assert "Ann" not in goclaw("runs", "list", "--json").out


HOSTILE = [
    "<script>alert(1)</script> [bold]x[/] &amp; " + "n" * 60,
    "\u202eevil\u202c " + "שלום עולם " * 20,
    "👩‍👩‍👧 🇩🇪 é " * 30,
    "日本語" * 1366,
    "n" * 4096,
    "two\nlines\r\nthree\u2028four\x1b[2J\x1b]0;owned\x07\t.\ud800",
]


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_breaks_a_table(
    goclaw: Shell, runs: FakeControl, terminal_of: At, name: str, columns: int
) -> None:
    """SEC-1. A row takes one line, which ends within the terminal wherever ids leave room."""
    runs.named = KnownNames({fakes.LOCAL: name})
    terminal_of(columns)
    for command in ("runs", "inbox", "outbox", "sessions"):
        lines = [CODES.sub("", line) for line in goclaw(command, "list").out.splitlines()]
        assert len([line for line in lines if line != "more columns: --wide"]) in (2, 3)
        assert not re.search(r"[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800]", "".join(lines))
        assert max(map(cell_len, lines)) <= max(columns, 80)


CELLS = [("01a20492", "日本語 one two three four", "failed (why)", "x")]
HEADS = ("ID", Column("TEXT", least=8), Column("STATE", state=True), Column("COUNT", drop=1))


@pytest.mark.parametrize(("columns", "line"), [
    (60, "01a20492  日本語 one two three four  failed (why)  x"),
    (52, "01a20492  日本語 one two three…  failed (why)  x"),
    (40, "01a20492  日本語 o…  failed (why)  x"),
    (38, "01a20492  日本語 one tw…  failed (why)"),
    (20, "01a20492  日本語…  failed (why)"),
])  # fmt: skip
def test_columns_are_left_out_before_text_is_cut_and_states_are_never_cut(
    terminal_of: At, columns: int, line: str
) -> None:
    terminal_of(columns)
    lines = shown(table_text(HEADS, CELLS, empty=""))
    assert lines[1] == line
    assert ("more columns: --wide" in lines) == (columns < 40)


def test_the_last_column_is_cut_where_no_other_is_named(terminal_of: At) -> None:
    terminal_of(40)
    text = table_text(("ID", "TEXT"), [("1" * 30, "word " * 9)], empty="")
    assert shown(text)[1] == f"{'1' * 30}  word word word word wor…"


@pytest.mark.parametrize(("state", "code"), [
    ("failed", 31), ("timed_out", 31), ("expired", 31), ("lost: why", 31), ("failed_not", None),
    ("pending", 33), ("paused: why", 33), ("draining", 33), ("completed (x)", 32), ("sent", 32),
    ("", None), ("cancelled", None), ("unfailed", None),
])  # fmt: skip
def test_states_have_colours_by_their_whole_word(
    terminal_of: At, monkeypatch: pytest.MonkeyPatch, state: str, code: int | None
) -> None:
    def row() -> str:
        # Only the column of states has colours.
        columns = (Column("STATE", state=True), "TEXT")
        return table_text(columns, [(state, "failed")], empty="").splitlines()[1]

    plain = row()
    assert "\x1b" not in plain
    terminal_of(80)
    coloured = row()
    assert re.findall(r"\x1b\[(\d\d)m", coloured) == ([] if code is None else [str(code)])
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[3", row())
    with full_width(wide=True):
        assert not re.search(r"\x1b\[3", row())


def test_wide_belongs_to_the_subcommand(goclaw: Shell, database: FakeControl) -> None:
    got = goclaw("runs", "--wide", "list")
    assert got.code == 2
    assert "put --wide after the subcommand" in got.err


def test_an_explanation_breaks_between_words(
    goclaw: Shell, database: FakeControl, terminal_of: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "Person Number 1 has blocked the bot, so nothing can be sent there until they come back"
    step = ExplanationStep(fakes.NOW, "blocked", words)

    async def why(_about: str | None = None, *, zone: str = "") -> Explanation:
        del zone
        return replace(fakes.WHY, chain=(step,), cures=(Cure("Retry", "goclaw " + "x" * 90),))

    monkeypatch.setattr(database, "why", why)
    terminal_of(80)
    out = shown(goclaw("why", "x").out)
    begin = next(number for number, line in enumerate(out) if line.startswith("  1. "))
    assert out[begin : begin + 2] == [
        f"  1. {clock(fakes.NOW)}  Person Number 1 has blocked the bot, so nothing can be",
        " " * 26 + "sent there until they come back",
    ]
    assert out[-1] == "      goclaw " + "x" * 90  # it can be copied


def test_a_reason_takes_more_lines_where_it_is_too_wide(terminal_of: At) -> None:
    """Cut, it would end before what to do."""
    terminal_of(40)
    columns = ("RUN", Column("STATE", state=True), Column("WAITS FOR", least=20, wraps=True))
    reason = "a slot of lane main, behind the run of Ann"
    table = shown(table_text(columns, [("r1", "timed out (deadline)", reason)], empty=""))
    assert " ".join(" ".join(table[1:]).split()) == f"r1 timed out (deadline) {reason}"
    assert len(table) == 4
