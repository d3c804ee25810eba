"""The commands: what they print, and what their exit code says (SPEC OPS-1).

SPEC DB-2, NODE-1, NODE-2.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from goclaw_py.chat.terminals import Terminals
from goclaw_py.cli import composition
from goclaw_py.config import Settings
from goclaw_py.core.actors import Actor, ActorKind, acting
from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import AgentName, LaneName, NodeId
from goclaw_py.core.run_events import Usage
from goclaw_py.operations.control import Control
from goclaw_py.records import (
    DeadLetterQuery,
    IncomingState,
    MessageFilter,
    OutboxQuery,
    OutboxState,
    SessionQuery,
    SessionState,
)
from goclaw_py.scheduler.views import LaneView, PeerView
from goclaw_py.store.migrate import SchemaStatus as Schema
from tests.unit.cli.conftest import Confirmations, Done, Shell, ThreadGateway
from tests.unit.cli.processes import GOCLAW
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    heavy = "pydantic fastapi asyncpg rich httpx pydantic_ai prompt_toolkit telegram aiogram"
    code = (
        "import sys, goclaw_py.cli.entry as e; e.run(['--help']);"
        f"print('HEAVY', [m for m in {heavy.split()} if m in sys.modules])"
    )
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert got.stdout.endswith("HEAVY []\n")
    assert "Exit codes: 0 success, 1 failed or not found, 2 wrong usage" in got.stdout
    got = subprocess.run([*GOCLAW, "version"], capture_output=True, text=True, check=True)
    assert got.stdout.startswith("goclaw_py ")


@pytest.mark.parametrize("arguments", [
    ["nothing"],
    ["sessions", "show"],
    ["sessions", "show", "  "],
    ["runs", "show", "\udcff"],
    ["sessions", "list", "--limit", "0"],
    *(
        [box, *wrong]
        for box in ("outbox", "inbox")
        for wrong in (
            ["list", "--limit", "1001"],
            ["list", "--state", "lost"],
            ["show"],
            ["show", "x"],
            ["show", str(2**63)],
            *([verb, *ids] for verb in ("retry", "drop") for ids in ([], ["1", "--all"], ["-1"])),
        )
    ),
    ["groups", "allow"],
    ["groups", "deny", " "],
    ["groups", "allow", "-1001", "--chanel", "telegram"],
    ["chat", "--chat", "a:b"],
    ["--config", "/nowhere/goclaw.toml", "status"],
])  # fmt: skip
def test_wrong_usage_is_code_2(goclaw: Shell, database: FakeControl, arguments: list[str]) -> None:
    got = goclaw(*arguments)
    assert got.code == 2
    assert got.err
    assert "Traceback" not in got.err


def test_each_wrong_setting_is_one_line(goclaw: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (goclaw.home / "goclaw.toml").write_text("[lanes]\nmain = 0\n")
    monkeypatch.setenv("GOCLAW_LAEN", "1")
    got = goclaw("status")
    assert got.code == 2
    assert [line.split(":")[0] for line in got.err.splitlines()] == ["goclaw", "goclaw"]


@pytest.mark.parametrize("command", [
    *("runs list", "groups allow -1001", "outbox show 7", "outbox retry 7"),
    *("outbox drop --all", "inbox list", "inbox show 8", "inbox retry 8", "inbox drop --all"),
])  # fmt: skip
def test_a_missing_database_is_code_3(goclaw: Shell, database: FakeControl, command: str) -> None:
    database.failure = fakes.unavailable()
    assert goclaw(*command.split()) == Done(3, "", "goclaw: the database does not answer\n")


def test_what_cannot_be_done_is_told_in_one_line(goclaw: Shell, database: FakeControl) -> None:
    for command in (["status"], ["stop", "console"]):
        got = goclaw(*command)
        assert got.code == 3
        assert got.err.startswith("goclaw: no gateway ")
        assert got.err.count("\n") == 1
    unknown = "goclaw: there is no run 'ffff'; see: goclaw runs list\n"
    assert goclaw("runs", "show", "ffff") == Done(1, "", unknown)
    database.failure = PermissionError(13, "Permission denied", "/x")
    assert goclaw("runs", "list") == Done(1, "", "goclaw: /x: Permission denied\n")


def test_with_a_gateway_its_own_view_is_shown(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("status")
    assert got.code == 0
    for words in (
        "up 2 h",
        "messages    1 unfinished, 0 failed",
        "deliveries  2 waiting, 3 failed",
        "main  1/2",
        "agent:main:console:direct:local",
        "wrong token",
        "warning: The disk is nearly full",
        "df -h",
        "embedded",
        "running",
    ):
        assert words in got.out
    assert gateway.control.calls == [("status",)]
    status = goclaw.data("status")
    assert status["lanes"][0]["name"] == "main"
    assert status["started_at"] == "2026-01-02T01:04:05Z"


def test_status_shows_the_other_gateways_and_emptiness(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    peer = PeerView(NodeId("n2"), "beta", 42, "1.0", "draining", 3, 4, ())
    lane = LaneView(LaneName("cron"), 4, 1, 2, 0, 0, 0, 0, shared=True, elsewhere=3)
    gateway.control.snapshot = replace(fakes.STATUS, lanes=(lane,), peers=(peer,))
    lines = [line.split() for line in goclaw("status").out.splitlines()]
    assert ["cron", "1+3/4", "2", "0", "0", "0", "0"] in lines
    assert ["n2", "beta", "draining", "3", "4", "nothing"] in lines
    gateway.control.snapshot = replace(
        fakes.STATUS, lanes=(), runs=(), channels=(), warnings=(), backlog=None, draining=True
    )
    got = goclaw("status")
    for words in ("nothing is running", "no channels", "unknown", "draining"):
        assert words in got.out


def test_stop_takes_any_unique_part_of_a_session_key(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("stop", "console", "--all")
    assert got.out == "stopped 0190-aaaa; dropped 2 waiting\n"
    assert gateway.control.calls[-1] == ("stop", fakes.SESSION, True)
    assert goclaw("stop", "console").out == "already stopping\n"
    assert goclaw("stop", "agent:main").code == 1


def test_a_stop_names_a_run_by_the_beginning_of_its_id(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    assert goclaw("stop", "console", "--run", "0190-a").code == 0
    assert gateway.control.calls[-1] == ("stop", fakes.SESSION, False, fakes.RUN_ID)
    assert goclaw("stop", "console", "--run", "0190-z").code == 1
    assert goclaw("stop", "console", "--run", "0190-a", "--all").code == 2


def test_a_message_is_sent_into_a_conversation(
    goclaw: Shell, gateway: ThreadGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert goclaw("send", "console", "what is new?", "--queue").out == "0190-aaaa\n"
    assert ("send_message", fakes.SESSION, "what is new?", True) in gateway.control.calls
    busy = goclaw("send", "console", "what is new?")
    said = "goclaw: the session is busy; to queue the message: --queue\n"
    assert (busy.code, busy.err) == (1, said)
    assert goclaw("send", "api", "hello").code == 1
    assert goclaw("send", "nowhere", "hello").code == 1
    assert goclaw("send", "console", " ").code == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe\n"))
    assert goclaw("send", "console", "-", "--queue").code == 0
    assert gateway.control.calls[-1][2] == "from a pipe\n"


@pytest.mark.parametrize(("command", "words"), [
    (["sessions", "list"], [fakes.SESSION, "agent:main:api:a/b c%2F?#", "WAITING"]),
    (["runs", "list"], ["0190-aaaa", "cancelled (stopped)", "1 min 1 s", "0190-bbbb", "running"]),
    (["runs", "list", "--session", "console", "--active"], ["0190-bbbb"]),
])  # fmt: skip
def test_a_list_is_a_table_for_people(
    goclaw: Shell, database: FakeControl, command: list[str], words: list[str]
) -> None:
    got = goclaw(*command)
    assert got.code == 0
    for word in words:
        assert word in got.out


@pytest.mark.parametrize(("command", "call"), [
    ("sessions list --search ann --agent main --channel telegram --state running",
     ("sessions", SessionQuery(agent=AgentName("main"), channel="telegram",
                              state=SessionState.RUNNING, search="ann", limit=51))),
    ("outbox list --state failed --channel telegram --search 100%",
     ("outbox", OutboxQuery(
         OutboxState.FAILED, only=MessageFilter("telegram", text="100%"), limit=51,
     ))),
    ("inbox list --waiting --search a&b --limit 7",
     ("dead_letters",
      DeadLetterQuery(IncomingState.WAITING, only=MessageFilter(text="a&b"), limit=8))),
])  # fmt: skip
def test_a_list_is_filtered_by_the_gateway(
    goclaw: Shell, gateway: ThreadGateway, command: str, call: tuple[object, ...]
) -> None:
    assert goclaw(*command.split()).code == 0
    assert call in gateway.control.calls


def test_sessions_are_shown(goclaw: Shell, database: FakeControl) -> None:
    assert len(goclaw.data("sessions", "list", "--limit", "1")) == 1
    got = goclaw("sessions", "show", "console", "--limit", "5")
    assert "Grüße [2J" in got.out
    assert "\x1b" not in got.out
    assert "node-1" in got.out
    assert ("history", fakes.SESSION, 5, False) in database.calls
    assert "none" in goclaw("sessions", "show", "api").out
    # Any unique part of a key names a session.
    done = goclaw("sessions", "reset", "console", "--yes").out
    assert done == f"reset console local ({fakes.SESSION})\n"
    assert database.calls[-1] == ("reset", fakes.SESSION)


def test_a_reset_is_confirmed_in_a_terminal(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Confirmations(monkeypatch).asked
    assert goclaw("sessions", "reset", "console").code == 1
    assert ("reset", fakes.SESSION) not in database.calls
    assert goclaw("sessions", "reset", "console").code == 0
    assert goclaw("sessions", "reset", "console", "--yes").code == 0
    question = f"Reset console local ({fakes.SESSION})? The agent forgets this conversation."
    assert asked == [question] * 2
    # What cannot be deleted is not asked about.
    got = goclaw("sessions", "delete", "api")
    assert (got.code, len(asked)) == (1, 2)
    assert "is no conversation of the console or the web chat" in got.err
    assert goclaw("sessions", "delete", "console").code == 0
    assert asked[2].startswith(f"Delete console local ({fakes.SESSION}) with ")


def test_a_fork_says_how_it_goes_on(goclaw: Shell, database: FakeControl) -> None:
    """SPEC OPS-8."""
    copied, how = goclaw("sessions", "fork", "console").out.splitlines()
    assert copied == f"copied 2 entries of {fakes.SESSION} to {fakes.FORK}"
    assert how == "to continue: goclaw chat --chat fork-1"
    _, how = goclaw("sessions", "fork", "console", "--at", "0190-a").out.splitlines()
    assert how == f'to continue: goclaw send {fakes.FORK} "TEXT"'
    assert database.calls[-1] == ("fork", fakes.SESSION, "0190-a")
    got = goclaw("sessions", "fork", "console", "--at", "0190-zzzz")
    assert (got.code, got.err) == (1, "goclaw: run 0190-zzzz added nothing\n")


def test_a_run_is_shown_with_everything_that_is_known(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = goclaw("runs", "show", "0190-a").out
    for words in ("20 in (5 cached), 30 out", "$0.0123", "chat", "offline"):
        assert words in out
    for words in ("user\nGrüße [2J\n", "assistant\nyes\n", "failed", "not yet", "chat not found"):
        assert words in out
    usage = Usage(cost_usd=None)
    odd = replace(fakes.ENDED, error="boom", parent=fakes.RUN_ID, usage=usage, model="")
    monkeypatch.setattr(fakes, "ENDED", odd)
    out = goclaw("runs", "show", "0190-a").out
    for words in ("boom", "parent", "cost", "unknown"):
        assert words in out
    out = goclaw("runs", "show", "0190-b").out
    assert "still running" in out
    assert "tokens" not in out


def test_a_pipe_gets_whole_cells(goclaw: Shell, database: FakeControl) -> None:
    long = "agent:main:telegram:direct:" + "9" * 200
    message = replace(fakes.DEAD.message, target=replace(fakes.LOCAL, chat=long))
    database.messages.rows = [replace(fakes.DEAD, message=message)]
    assert f"console/default/{long}" in goclaw("deliveries", "list").out
    database.messages.rows = []
    assert goclaw("deliveries", "list").out == "no messages\n"


class Runs:
    """Stands for the gateway: remembers how it was asked to run."""

    def __init__(self) -> None:
        self.front: object = "never asked"
        self.error: Exception | None = None
        self.by: Actor | None = None

    def __call__(
        self,
        settings: Settings,
        *,
        front: Callable[[Control, Terminals], Awaitable[None]] | None,
        may_migrate: bool,
    ) -> int:
        self.front = front
        self.may_migrate = may_migrate
        self.by = acting()
        if self.error is not None:
            raise self.error
        return 1


def test_run_chats_only_where_asked_to(goclaw: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs()
    monkeypatch.setattr(composition, "run_gateway", runs)
    assert goclaw("run") == Done(1, "", "")
    assert (runs.front, runs.may_migrate) == (None, True)
    goclaw("run", "--no-migrate")
    assert not runs.may_migrate
    goclaw("run", "--console")
    assert callable(runs.front)
    assert runs.by is not None
    assert (runs.by.kind, runs.by.via) == (ActorKind.COMMAND_LINE, "goclaw run --console")
    runs.error = StoreUnavailable("no database")
    assert goclaw("run") == Done(3, "", "goclaw: no database\n")


def test_migrate_does_what_is_pending(goclaw: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    pending = ["0002_more"]

    async def schema(settings: Settings) -> Schema:
        return Schema(1, 2, tuple(pending))

    async def migrate(settings: Settings) -> list[str]:
        done = [f"{name}.up.sql" for name in pending]
        pending.clear()
        return done

    monkeypatch.setattr(composition, "schema", schema)
    monkeypatch.setattr(composition, "migrate", migrate)
    shown = goclaw("migrate", "--status")
    assert (shown.code, "pending 0002_more" in shown.out) == (1, True)
    assert goclaw("migrate").out == "applied 0002_more.up.sql\n"
    assert goclaw("migrate").out == "no pending migrations\n"
    assert goclaw("migrate", "--status").code == 0
