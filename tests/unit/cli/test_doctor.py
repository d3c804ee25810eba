"""Every check of ``goclaw doctor``: silent where all is well, with a cure where it is not."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goclaw_py.cli import composition
from goclaw_py.cli.doctor import gather as gathering
from goclaw_py.cli.doctor.checks import CHECKS, FIRST, DoctorCheck, found
from goclaw_py.cli.doctor.finding import DatabaseFacts, DoctorFacts, Finding, Level
from goclaw_py.cli.entry import run
from goclaw_py.config import Settings, load
from goclaw_py.jobs.models import OPERATOR, FixedMessage, Job, JobSpec, JobState
from goclaw_py.jobs.schedule import Every
from goclaw_py.model.errors import ChannelError, ChannelRefused, NotSent, StoreUnavailable
from goclaw_py.model.ids import AgentName, JobId
from goclaw_py.model.messages import PeerKind, Sender, Target
from goclaw_py.model.owners import Maker
from goclaw_py.ports.control import PairingApplicant
from goclaw_py.ports.store import Chat
from goclaw_py.scheduler.views import ChannelState, ChannelView
from goclaw_py.store import embedded_files
from goclaw_py.store.migrate import SchemaStatus as Schema
from goclaw_py.store.postgres.checkup import Checkup
from goclaw_py.store.postgres.fitness import ServerFacts
from goclaw_py.testing.clock import START
from tests.support.doctor import CHECKUP, MACHINE, Place, checkup, machine, place, server
from tests.support.guides import ROOT
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.web.fakes import STATUS

pytestmark = pytest.mark.real_time

BY_ID = {check.id: check for check in CHECKS}
TELEGRAM = '[channels.telegram]\ntoken = "123456789:' + 'AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_"\n'
MANAGED = '[database]\nurl = "postgresql://me@db/goclaw"\n'
WEB = "[web]\napi = true\nport = 0\n"
GOOD_TOKEN = "Zx9-Qw3_er7Ty1ui0Op5As8d"
HOOK = TELEGRAM + 'webhook_url = "{}/hook"\n'
JOB = Job(
    JobId("j-1"),
    OPERATOR,
    Maker.OPERATOR,
    JobSpec("tea", Every(timedelta(hours=1)), "UTC", FixedMessage("tea")),
    START,
    START,
    next_run_at=START,
)
GROUP = Chat("telegram", "default", "-5", PeerKind.GROUP, "The group", None, "", START, START)
FRESH = replace(STATUS, started_at=datetime.now(UTC) + timedelta(days=1), release="1.0")
ASKS = PairingApplicant("telegram", "default", Sender("7", "Bob"), START, START, "7")


@dataclass(frozen=True, slots=True)
class Case:
    """How a world is broken, and what is said of it. ``cure`` "" is a world where all is well."""

    check: str
    make: Callable[[Place], DoctorFacts]
    fact: str
    cure: str = ""
    level: Level = Level.WRONG


def ok(check: str, make: Callable[[Place], DoctorFacts], fact: str) -> Case:
    return Case(check, make, fact, "", Level.OK)


def hint(check: str, make: Callable[[Place], DoctorFacts], fact: str, cure: str) -> Case:
    return Case(check, make, fact, cure, Level.HINT)


def plain(at: Place) -> DoctorFacts:
    return at.world()


def says(text: str, **env: str) -> Callable[[Place], DoctorFacts]:
    return lambda at: at.world(text, **env)


def on(**changes: object) -> Callable[[Place], DoctorFacts]:
    return lambda at: machine(at.world(), **changes)


def asked(text: str = MANAGED, **changes: object) -> Callable[[Place], DoctorFacts]:
    return lambda at: server(at.world(text), **changes)


def told(text: str = MANAGED, **changes: object) -> Callable[[Place], DoctorFacts]:
    return lambda at: checkup(at.world(text), **changes)


def behind(**changes: object) -> Callable[[Place], DoctorFacts]:
    """A server that waits for a migration."""
    waits = Schema(0, 1, ("0001",))
    return lambda at: server(checkup(at.world(MANAGED), schema=waits), **changes)


def working(text: str = "", **changes: object) -> Callable[[Place], DoctorFacts]:
    return lambda at: replace(at.world(text), work=DatabaseFacts(**changes))  # type: ignore[arg-type]


def running(text: str = "", **changes: object) -> Callable[[Place], DoctorFacts]:
    return lambda at: replace(
        at.world(text),
        gateway=replace(FRESH, **changes),  # type: ignore[arg-type]
    )


def channel_is(
    state: ChannelState, detail: str = "x", warning: str = ""
) -> Callable[[Place], DoctorFacts]:
    view = ChannelView("telegram", "default", state, detail, warning)
    return running(TELEGRAM, channels=(view,))


def probed(text: str, answer: str | ChannelError) -> Callable[[Place], DoctorFacts]:
    return lambda at: replace(at.world(text), probes=[("telegram/default", answer)])


def a_file(name: str, mode: int, text: str = "x") -> Callable[[Place], None]:
    def write(at: Place) -> None:
        file = at.home / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    return write


def after(*steps: Callable[[Place], None], text: str = "") -> Callable[[Place], DoctorFacts]:
    def make(at: Place) -> DoctorFacts:
        for step in steps:
            step(at)
        return at.world(text.replace("HOME", str(at.home)))

    return make


def open_to_all(at: Place) -> None:
    at.state.chmod(0o777)


def readable(at: Place) -> None:
    at.state.chmod(0o755)


def no_workspace(at: Place) -> None:
    (at.workspace / "HEARTBEAT.md").unlink()
    at.workspace.rmdir()


def no_checklist(at: Place) -> None:
    (at.workspace / "HEARTBEAT.md").unlink()


def a_taken_port(at: Place) -> DoctorFacts:
    taken = socket.create_server(("127.0.0.1", 0))
    HELD.append(taken)
    return at.world(f"[web]\napi = true\nport = {taken.getsockname()[1]}\n")


HELD: list[socket.socket] = []
PRIVATE = "@TheBot; privacy mode is on: in groups it gets only what is for it"
IN_GROUP = '[channels.telegram.chats."-5"]\n'
PROGRAM = '[agents.main]\nmodel = "command"\ncommand.run = ["answer"]\n'
BESIDE = '[agents.main]\nmodel = "command"\ncommand.run = ["./answer"]\n'
SERVED = '[agents.main.mcp.files]\ncommand = ["serve"]\n'
TO_CHAT = replace(JOB.spec, target=Target("telegram", "default", "-5"))

CASES = [
    ok("state-folder-rights", plain, "other users cannot read its files"),
    ok("state-folder-rights", after(a_file("state/goclaw.log", 0o644)), "other users cannot read"),
    Case("state-folder-rights", after(open_to_all), "other users can write", "chmod 700 "),
    hint(
        "state-folder-rights",
        after(readable, a_file("state/goclaw.log", 0o644)),
        "other users can read goclaw.log",
        "chmod 700 ",
    ),
    ok("secret-files", plain, "in the environment"),
    ok(
        "secret-files",
        after(a_file("token", 0o600), text='[web]\ntoken_file = "HOME/token"\n'),
        "readable by their owner only",
    ),
    Case(
        "secret-files",
        after(a_file("token", 0o644), text='[web]\ntoken_file = "HOME/token"\n'),
        "other users can read",
        "chmod 600 ",
    ),
    Case(
        "secret-files",
        says('[web]\ntoken_file = "/not/there"\n'),
        "/not/there: No such file",
        "fix the setting",
    ),
    Case(
        "secret-files",
        lambda at: _open(at.world(f'[web]\ntoken = "{GOOD_TOKEN}"\n')),
        "other users can read",
        "chmod 600 ",
    ),
    ok("secret-files", lambda at: _open(at.world("[lanes]\nmain = 2\n")), "environment"),
    ok("log", plain, "standard error"),
    ok("log", lambda at: at.world(f'[log]\nfile = "{at.home}/logs/a.log"\n'), "/logs/a.log"),
    Case(
        "log",
        after(a_file("f", 0o644), text='[log]\nfile = "HOME/f/a.log"\n'),
        "is not writable",
        "log.file",
    ),
    ok("time-zones", plain, "500 installed; jobs use UTC"),
    Case("time-zones", on(zones=0), "none installed", "pip install tzdata"),
    ok("open-files", plain, "at most 4096"),
    ok("open-files", on(open_files=-1), "no limit"),
    hint("open-files", on(open_files=512), "at most 512", "ulimit -n 4096"),
    Case("open-files", on(open_files=64), "at most 64", "LimitNOFILE"),
    ok("memory", plain, "16384 MB available"),
    ok("memory", on(memory=None), "not reported"),
    hint("memory", on(memory=50 << 20), "50 MB available", "add memory or swap"),
    ok("user", plain, "not root"),
    ok("user", on(is_root=True, in_container=True), "in a container"),
    hint("user", on(is_root=True), "root", "a separate user"),
    ok("event-loop", plain, "uvloop"),
    hint("event-loop", on(has_uvloop=False), "asyncio", "pip install uvloop"),
    ok("parts", plain, "agent main"),
    Case("parts", says("[channels.nothing]\n"), "no such channel", "fix this setting"),
    hint("channels", plain, "not configured", "@BotFather"),
    ok("channels", probed(TELEGRAM, "@TheBot"), "@TheBot"),
    Case("channels", probed(TELEGRAM, ChannelRefused("refused")), "refused", "@BotFather"),
    Case("channels", probed(TELEGRAM, NotSent("no answer")), "no answer", "check the network"),
    ok("channels", probed(TELEGRAM, PRIVATE), PRIVATE),
    hint("channels", probed(TELEGRAM + IN_GROUP, PRIVATE), "only receives mentions", "/setprivacy"),
    ok("channels", probed(TELEGRAM + IN_GROUP + "mention = false\n", "@TheBot"), "@TheBot"),
    ok("channels", channel_is(ChannelState.CONNECTED, ""), "connected"),
    hint("channels", channel_is(ChannelState.WAITING), "waiting, x", "goclaw nodes"),
    hint(
        "channels",
        channel_is(ChannelState.CONNECTED, "", "3 calls with a wrong secret"),
        "3 calls with a wrong secret",
        "reverse proxy",
    ),
    Case("channels", channel_is(ChannelState.STOPPED), "stopped, x", "@BotFather"),
    Case("channels", channel_is(ChannelState.UNAUTHORIZED), "unauthorized, x", "@BotFather"),
    Case("channels", channel_is(ChannelState.CONFLICT), "conflict, x", "other program"),
    Case("channels", channel_is(ChannelState.RECONNECTING), "reconnecting, x", "see the log"),
    Case(
        "channels",
        lambda at: replace(at.world(TELEGRAM), gateway="no answer within 4 s"),
        "no answer",
        "goclaw status",
    ),
    ok("webhooks", plain, "none"),
    ok("webhooks", says(HOOK.format("https://bot.example.org")), "https://bot.example.org"),
    Case("webhooks", says(HOOK.format("http://b.example.org")), "is not https", "https URL"),
    Case(
        "webhooks", says(HOOK.format("https://b.example.org:9")), "does not call this port", "443"
    ),
    Case("webhooks", says(HOOK.format("https://10.0.0.7")), "from the internet", "use polling"),
    Case(
        "webhooks",
        probed(
            HOOK.format("https://b.example.org"), "@b; 3 updates wait; Telegram says: 502 from you"
        ),
        "502 from you",
        "reverse proxy",
    ),
    ok("web-address", says(WEB), "is free"),
    ok("web-address", says("[web]\napi = false\n"), "not used"),
    ok("web-address", running(WEB), "used by the gateway"),
    Case("web-address", a_taken_port, "another program already listens there", "set another port"),
    Case("web-address", says(f'{WEB}host = "203.0.113.9"\ntoken = "{GOOD_TOKEN}"\n'), "", "127.0"),
    ok("web-token", says(WEB), "not needed"),
    ok("web-token", says(f'{WEB}token = "{GOOD_TOKEN}"\n'), "long enough"),
    hint(
        "web-token",
        says(f'{WEB}token = "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"\n'),
        "easy to guess",
        "secrets",
    ),
    Case(
        "web-token",
        says(f'{WEB}host = "0.0.0.0"\ntoken = "short-0123456789"\n'),
        "easy to guess",
        "token_urlsafe",
    ),
    Case("web-token", says(f'{WEB}token_env = "NOT_SET"\n'), "not set", "fix this setting"),
    ok("web-names", says(WEB), "localhost"),
    ok(
        "web-names",
        says(f'{WEB}host = "0.0.0.0"\ntoken = "{GOOD_TOKEN}"\nhosts = ["b.example.org"]\n'),
        "b.example.org",
    ),
    hint(
        "web-names",
        says(f'{WEB}host = "0.0.0.0"\ntoken = "{GOOD_TOKEN}"\n'),
        "are refused",
        "web.hosts",
    ),
    ok("models", plain, "offline"),
    Case("models", says('[agents.main]\nmodel = "openai:x"\n'), "no API key", "OPENAI_API_KEY"),
    ok("models", says('[agents.main]\nmodel = "openai:x"\n', OPENAI_API_KEY="k"), "openai:x"),
    ok("budgets", says("[agents.main.budget]\ntokens = 5\nday.tokens = 9\n"), "can be enforced"),
    hint(
        "budgets",
        says("[agents.main.budget]\ntokens = 9\nday.tokens = 5\n"),
        "tokens = 9 is never reached: day.tokens = 5",
        "agents.main.budget.tokens to 5",
    ),
    Case(
        "budgets",
        says('[agents.main]\nmodel = "openai:nobody-knows"\nbudget.usd = 1\n'),
        "is not known",
        "budget.tokens",
    ),
    ok("programs", plain, "no agent uses a program"),
    ok("programs", after(a_file("bin/answer", 0o755), text=PROGRAM), "bin/answer"),
    Case("programs", says(PROGRAM), "answer not found in PATH", "agents.main.command.run"),
    Case("programs", says(BESIDE), "./answer not found in ", "agents.main.command.run"),
    ok("programs", after(a_file("workspace/answer", 0o755), text=BESIDE), "answer"),
    ok("tool-servers", plain, "none"),
    ok("tool-servers", after(a_file("bin/serve", 0o755), text=SERVED), "bin/serve"),
    ok(
        "tool-servers",
        says('[agents.main.mcp.a]\nurl = "https://a.example.org"\n'),
        "at the first run",
    ),
    Case("tool-servers", says(SERVED), "serve not found in PATH", "agents.main.mcp.files.command"),
    ok("workspaces", plain, "workspace"),
    hint("workspaces", after(no_workspace), "does not exist", "mkdir -p"),
    Case(
        "workspaces",
        after(a_file("f", 0o644), text='[agents.main]\nworkspace = "HOME/f"\n'),
        "is not a folder",
        "agents.main.workspace",
    ),
    ok("instructions", plain, "none"),
    ok("instructions", after(a_file("workspace/AGENTS.md", 0o644, "Be kind.")), "8 characters"),
    Case(
        "instructions",
        says('[agents.main]\ninstructions = ["SOUL.md"]\n'),
        "SOUL.md",
        "agents.main.instructions",
    ),
    ok("heartbeats", plain, "every 30 minutes, target last"),
    Case(
        "heartbeats",
        says('[heartbeat]\ntarget = "telegram"\n[channels.telegram]\nenabled = false\n'),
        "which is disabled",
        "set channels.telegram.enabled = true",
    ),
    ok("checklists", plain, "1 open items"),
    ok("checklists", after(a_file("workspace/HEARTBEAT.md", 0o644, "# Title\n")), "empty"),
    hint("checklists", after(no_checklist), "no such file", "heartbeat runs are skipped"),
    Case(
        "checklists",
        after(a_file("workspace/HEARTBEAT.md", 0o644, "a\0b")),
        "a NUL",
        "HEARTBEAT.md",
    ),
    hint(
        "checklists",
        after(a_file("workspace/HEARTBEAT.md", 0o644, "- every fortnight: the mail\n")),
        "item 1: the interval is not understood",
        "every 2h",
    ),
    ok("database-programs", plain, "PostgreSQL"),
    ok("database-programs", says(MANAGED), "not needed"),
    ok("database", plain, "embedded, schema 1"),
    Case(
        "database",
        lambda at: replace(at.world(MANAGED), database="connection refused"),
        "managed: connection refused",
        "database.url",
    ),
    Case(
        "database",
        lambda at: replace(at.world(), database="it does not start"),
        "embedded: it does not start",
        "GOCLAW_DATABASE_URL",
    ),
    ok("migrations", plain, "none pending"),
    hint("migrations", told("", schema=Schema(0, 1, ("0001",))), "1 pending: 0001", "migrate"),
    ok("database-server", asked(), "PostgreSQL 16"),
    ok("database-server", asked("", version=130_000), "embedded server"),
    Case("database-server", asked(version=130_011), "this server has 13", "PostgreSQL 14 or later"),
    ok("database-rights", asked(), "user goclaw has all rights"),
    ok("database-rights", asked(may_create=False), "has all rights"),
    Case(
        "database-rights",
        behind(may_create=False),
        "may not create tables",
        "GRANT USAGE, CREATE ON SCHEMA",
    ),
    Case(
        "database-rights",
        asked(us='"Ann"', lacking={"INSERT": ["inbox"]}),
        'the user "Ann" may not INSERT in inbox',
        'ON ALL TABLES IN SCHEMA public TO "Ann"',
    ),
    Case(
        "database-rights",
        behind(owners={"root": ["inbox"]}),
        "may not migrate the tables of root (inbox)",
        "goclaw migrate",
    ),
    Case("database-rights", asked(encoding="SQL_ASCII"), "SQL_ASCII", "ENCODING 'UTF8'"),
    ok("database-writes", asked(), "accepted"),
    Case("database-writes", asked(is_standby=True), "a read-only standby", "primary"),
    Case("database-writes", asked(is_read_only=True), "read-only", "default_transaction_read_only"),
    ok("database-notices", asked(), "NOTIFY works"),
    Case("database-notices", told(notices=False), "a connection pooler", "pool_mode = session"),
    Case(
        "database-notices",
        told(notices=False, pooled=True),
        "transaction mode",
        "pool_mode = session",
    ),
    ok("database-notices", told(notices=False, server=ServerFacts(is_standby=True)), "a standby"),
    ok("database-clock", asked(), "in sync"),
    ok("database-clock", told(skew_s=1.9), "in sync"),
    hint("database-clock", told(skew_s=300.0), "300.0 s ahead of this machine", "timedatectl"),
    hint("database-clock", told(skew_s=-60.0), "60.0 s behind", "timedatectl"),
    ok("database-connections", asked(), "1 of 100"),
    Case("database-connections", asked(used=95), "95 of 100", "max_connections"),
    ok("gateway", running(), "running"),
    hint("gateway", plain, "not running", "goclaw run"),
    Case("gateway", lambda at: replace(at.world(), gateway="no answer"), "no answer", "its log"),
    ok("release", plain, "1.0"),
    ok("release", running(), "1.0"),
    hint("release", running(release="0.9"), "the gateway runs 0.9", "restart the gateway"),
    ok("settings-in-use", plain, "no gateway"),
    ok("settings-in-use", running(), "as in the file"),
    hint("settings-in-use", running(started_at=START), "goclaw.toml", "restart the gateway"),
    ok("owners", says(TELEGRAM), "Ann"),
    hint("owners", working(TELEGRAM), "nobody receives", "goclaw pairing approve"),
    hint(
        "owners",
        working(TELEGRAM, asking=[ASKS]),
        "pending requests: Bob",
        "goclaw pairing approve",
    ),
    ok("groups", plain, "none pending"),
    ok("groups", working(TELEGRAM, chats=[replace(GROUP, allowed=False)]), "none pending"),
    ok("groups", working(TELEGRAM + 'groups = "open"\n', chats=[GROUP]), "none pending"),
    hint("groups", working(TELEGRAM, chats=[GROUP]), "The group", "goclaw groups allow"),
    ok("jobs", working(jobs=[JOB]), "1, no problems"),
    ok("jobs", working(jobs=[replace(JOB, state=JobState.PAUSED)]), "1, no problems"),
    hint(
        "jobs",
        working(jobs=[replace(JOB, state=JobState.DISABLED, last_error="boom")]),
        "disabled: boom",
        "goclaw cron runs --job tea",
    ),
    hint(
        "jobs",
        working("[scheduler]\nenabled = false\n", jobs=[JOB]),
        "jobs are turned off",
        "scheduler.enabled",
    ),
    hint(
        "jobs",
        working(jobs=[replace(JOB, spec=replace(JOB.spec, agent=AgentName("gone")))]),
        "agent gone does not exist",
        "goclaw cron edit tea --agent",
    ),
    hint(
        "jobs",
        working(jobs=[replace(JOB, spec=TO_CHAT)]),
        "telegram/default is not configured",
        "goclaw cron edit tea --to",
    ),
    hint(
        "jobs",
        working(
            TELEGRAM, jobs=[replace(JOB, spec=TO_CHAT)], chats=[replace(GROUP, gone="blocked")]
        ),
        "blocked",
        "--to",
    ),
    hint(
        "jobs",
        working(jobs=[replace(JOB, next_run_at=None)]),
        "no upcoming run",
        "goclaw cron show",
    ),
    ok("deliveries", plain, "none failed"),
    hint("deliveries", working(dead=2), "2 could not be delivered", "goclaw outbox retry"),
    ok("messages", plain, "none failed"),
    hint("messages", working(unanswered=3), "3 failed and got no answer", "goclaw inbox retry"),
]


def _open(world: DoctorFacts) -> DoctorFacts:
    assert world.settings.file is not None
    world.settings.file.chmod(0o644)
    return world


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Place]:
    yield place(tmp_path)
    while HELD:
        HELD.pop().close()


def named(case: Case) -> str:
    return f"{case.check}, {case.level}: {case.fact}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_each_check_says_what_is_so_and_what_to_do(whole: Place, case: Case) -> None:
    """SPEC OPS-4."""
    findings = found(BY_ID[case.check], case.make(whole))
    (finding,) = [one for one in findings if one.level is case.level and case.fact in one.fact]
    assert case.cure in finding.cure
    if case.level is Level.OK:
        assert [one for one in findings if one.cure] == []


def test_the_disk_is_judged_by_what_is_free(whole: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, level in ((1 << 34, Level.OK), (500 << 20, Level.HINT), (1 << 20, Level.WRONG)):
        usage = type("Usage", (), {"free": free})
        monkeypatch.setattr("shutil.disk_usage", lambda path, usage=usage: usage)
        (finding,) = found(BY_ID["disk"], whole.world())
        assert finding.level is level
        assert ("free space" in finding.cure) is (level is not Level.OK)


def test_the_programs_of_the_embedded_server_are_looked_for(
    whole: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_files, "_PACKAGE", "not_there")
    (finding,) = found(BY_ID["database-programs"], whole.world())
    assert "is not installed" in finding.fact
    assert "pip install" in finding.cure


def test_every_check_is_tried_in_a_world_that_is_well_and_in_one_that_is_not() -> None:
    tried = {(case.check, case.level is Level.OK) for case in CASES}
    apart = {"disk": {True, False}, "database-programs": {False}}
    for check in CHECKS:
        ways = {is_ok for id_, is_ok in tried if id_ == check.id} | apart.get(check.id, set())
        assert ways == {True, False}, check.id


def test_there_are_twenty_checks_with_names_that_stay() -> None:
    ids = [*FIRST, *(check.id for check in CHECKS)]
    assert len(set(ids)) == len(ids) >= 20
    assert [id_ for id_ in ids if not re.fullmatch("[a-z]+(-[a-z]+)*", id_)] == []


def test_the_guide_describes_every_check() -> None:
    guide = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `([a-z-]+)` \|", guide, re.MULTILINE)
    assert described == [*FIRST, *(check.id for check in CHECKS)]


COMMAND = re.compile(r"goclaw ((?:[a-z]+ ?){1,2})((?: ?--[a-z-]+)*)")


def commands() -> list[str]:
    """Those that the guide names, and those that are cures."""
    guide = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text(encoding="utf-8")
    folder = ROOT / "goclaw_py" / "cli" / "doctor"
    cures = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    named = re.findall(r"`(goclaw [^`]+)`", guide) + re.findall(
        r'(goclaw (?:cron|outbox|inbox|groups|pairing) [^";,]+)', cures
    )
    return sorted(set(named))


@pytest.mark.parametrize("command", commands())
def test_every_command_that_is_named_exists_with_its_options(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command.split()[1:]
    path: list[str] = []
    for word in words:
        if not re.fullmatch("[a-z]+", word) or run([*path, word, "--help"]) != 0:
            break
        path.append(word)
    assert path, command
    capsys.readouterr()
    run([*path, "--help"])
    help_text = capsys.readouterr().out
    for option in re.findall(r"--[a-z-]+", command):
        assert option in help_text, option


def test_a_check_that_breaks_is_a_finding_and_the_others_come(whole: Place) -> None:
    def broken(world: DoctorFacts) -> Iterator[Finding]:
        yield Finding("so far", "so good")
        raise RuntimeError("a bug")

    (finding,) = found(DoctorCheck("broken", broken), whole.world())
    assert finding.fact == "this check failed with a bug: RuntimeError: a bug"
    assert finding.level is Level.HINT


@pytest.mark.parametrize("text", ["", TELEGRAM, MANAGED, WEB, HOOK.format("https://a.b")])
def test_nothing_breaks_where_nobody_answers(whole: Place, text: str) -> None:
    world = replace(whole.world(text), database="away", work=None, probes=None)
    said = [one.fact for check in CHECKS for one in found(check, world)]
    assert [fact for fact in said if "broke" in fact] == []


# ---------------------------------------------------------------------------- asking


def test_the_machine_is_this_one() -> None:
    here = gathering.this_machine()
    assert here.python >= (3, 11)
    assert here.zones > 300
    assert here.memory is None or here.memory > 0
    assert MACHINE.release != here.release


async def never(*_: object, **__: object) -> object:
    return await asyncio.Event().wait()


def test_those_who_never_answer_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is asked for a limited time, and all of them at once."""
    monkeypatch.setattr(gathering, "LIMIT_S", 0.05)
    monkeypatch.setattr(composition, "check_up", never)
    monkeypatch.setattr("channels.telegram.adapter.TelegramChannel.probe", never)
    settings = Place(tmp_path).world(TELEGRAM + MANAGED).settings
    world = asyncio.run(gathering.look_around(settings, {}, MACHINE))
    assert world.database == "no answer within 0 s"
    assert world.probes is not None
    ((name, answer),) = world.probes
    assert (name, isinstance(answer, NotSent)) == ("telegram/default", True)
    assert (world.gateway, world.work) == (None, None)


def test_two_rounds_of_questions_take_less_than_ten_seconds() -> None:
    assert 2 * gathering.LIMIT_S < 10


@pytest.mark.parametrize("error", [StoreUnavailable("away"), ValueError("a bug")])
def test_what_a_database_raises_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def check_up(settings: Settings) -> Checkup:
        raise error

    monkeypatch.setattr(composition, "check_up", check_up)
    settings = load(env={"GOCLAW_HOME": str(tmp_path)})
    world = asyncio.run(gathering.look_around(settings, {}, MACHINE))
    assert isinstance(world.database, str)
    assert str(error) in world.database


def test_a_database_that_waits_for_its_migration_is_not_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check_up(settings: Settings) -> Checkup:
        return replace(CHECKUP, schema=Schema(0, 1, ("0001",)))

    def open_control(settings: Settings, *, create: bool) -> None:
        raise AssertionError("opening it migrates it")

    monkeypatch.setattr(composition, "check_up", check_up)
    monkeypatch.setattr(composition, "open_control", open_control)
    settings = load(env={"GOCLAW_HOME": str(tmp_path)})
    assert asyncio.run(gathering.look_around(settings, {}, MACHINE)).work is None


def test_no_finding_has_a_secret_in_it(goclaw: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """SPEC SEC-2."""

    async def check_up(settings: Settings) -> Checkup:
        raise StoreUnavailable("cannot connect to postgresql://me:hunter2-hunter2@db")

    monkeypatch.setattr(composition, "check_up", check_up)
    monkeypatch.setenv("GOCLAW_DATABASE_URL", "postgresql://me:hunter2-hunter2@db/x")
    for flags in ((), ("--json",)):
        got = goclaw("doctor", *flags)
        assert got.code == 1
        assert "hunter2" not in got.out
        assert "postgresql://me:[hidden]@db" in got.out


def test_programs_read_ids_and_levels(
    goclaw: Shell, gateway: ThreadGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check_up(settings: Settings) -> Checkup:
        return CHECKUP

    monkeypatch.setattr(composition, "check_up", check_up)
    reports = json.loads(goclaw("doctor", "--json").out)
    assert {tuple(report) for report in reports} == {("id", "level", "subject", "fact", "cure")}
    assert {report["level"] for report in reports} <= {"ok", "hint", "wrong"}
    assert {"gateway", "python", "owners", "jobs"} - {report["id"] for report in reports} == {
        "owners"  # nobody can write here
    }
