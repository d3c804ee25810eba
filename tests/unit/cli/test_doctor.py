"""Every check of ``goclaw doctor``: silent where all is well, with a cure where it is not.

SPEC OPS-4, SEC-2.
"""

from __future__ import annotations

import asyncio
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
from goclaw_py.cli.doctor.database import check_database
from goclaw_py.cli.doctor.finding import DatabaseFacts, DoctorFacts, Finding, Level
from goclaw_py.cli.entry import run
from goclaw_py.config import Settings, load
from goclaw_py.core.errors import (
    ChannelError,
    ChannelRefused,
    MigrationError,
    NotSent,
    StoreError,
    StoreUnavailable,
)
from goclaw_py.core.ids import AgentName, JobId
from goclaw_py.core.messages import PeerKind, Sender, Target
from goclaw_py.core.targets import Maker
from goclaw_py.core.text import count
from goclaw_py.operations.people.operations import PairingApplicant
from goclaw_py.records import Chat
from goclaw_py.schedule.jobs.models import OPERATOR, FixedMessage, Job, JobSpec, JobState
from goclaw_py.schedule.jobs.schedule import Every
from goclaw_py.scheduler.operator_warnings import OperatorWarning
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

BY_ID = {check.id: check for check in CHECKS}
TELEGRAM = '[channels.telegram]\ntoken = "123456789:' + 'AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_"\n'
MANAGED = '[database]\nurl = "postgresql://me@db/goclaw"\n'
WEB = "[web]\napi = true\nport = 0\n"
TOKEN = 'token = "Zx9-Qw3_er7Ty1ui0Op5As8d"\n'
PROXIED = WEB + TOKEN + "[web.proxy]\naddresses = ['10.0.0.7']\nadmin_groups = ['ops']\n"
OPENID = (
    f"{WEB}{TOKEN}public_url = 'https://b.example.org'\n[web.openid]\nclient_id = 'x'\n"
    "issuer = 'https://sso.example.org'\nadmin_groups = ['ops']\n"
)
ANYWHERE = WEB + 'host = "0.0.0.0"\n'
HOOK = TELEGRAM + 'webhook_url = "{}/hook"\n'
ABROAD = HOOK.format("https://b.example.org")
SPEC = JobSpec("tea", Every(timedelta(hours=1)), "UTC", FixedMessage("tea"))
JOB = Job(JobId("j-1"), OPERATOR, Maker.OPERATOR, SPEC, START, START, next_run_at=START)
GROUP = Chat("telegram", "default", "-5", PeerKind.GROUP, "The group", None, "", START, START)
FRESH = replace(STATUS, started_at=datetime.now(UTC) + timedelta(days=1), release="1.0")
ASKS = PairingApplicant("telegram", "default", Sender("7", "Bob"), START, START, "7")
CONNECTED = ChannelView("telegram", "default", ChannelState.CONNECTED, "")
NO_EFFECT = OperatorWarning(
    *("gateway.setting_edit", "The edit of a.b", "has no effect: there is no such agent"),
    command="goclaw config reset a.b",
)
WAITS = Schema(0, 1, ("0001",))

World = Callable[[Place], DoctorFacts]
"""Makes a world in a place."""


@dataclass(frozen=True, slots=True)
class Case:
    """How a world is broken, and what is said of it. ``cure`` "" is a world where all is well."""

    check: str
    make: World
    fact: str
    cure: str = ""
    level: Level = Level.WRONG


def ok(check: str, make: World, fact: str) -> Case:
    return Case(check, make, fact, "", Level.OK)


def hint(check: str, make: World, fact: str, cure: str) -> Case:
    return Case(check, make, fact, cure, Level.HINT)


def plain(at: Place) -> DoctorFacts:
    return at.world()


def says(text: str, **env: str) -> World:
    return lambda at: at.world(text, **env)


def on(**changes: object) -> World:
    return lambda at: machine(at.world(), **changes)


def asked(text: str = MANAGED, **changes: object) -> World:
    return lambda at: server(at.world(text), **changes)


def told(text: str = MANAGED, **changes: object) -> World:
    return lambda at: checkup(at.world(text), **changes)


def fails(database: str, text: str = "") -> World:
    return lambda at: replace(at.world(text), database=database)


def behind(**changes: object) -> World:
    """A server that waits for a migration."""
    return lambda at: server(checkup(at.world(MANAGED), schema=WAITS), **changes)


def working(text: str = "", **changes: object) -> World:
    return lambda at: replace(at.world(text), work=DatabaseFacts(**changes))  # type: ignore[arg-type]


def job(**changes: object) -> World:
    return working(jobs=[replace(JOB, **changes)])  # type: ignore[arg-type]


def running(text: str = "", **changes: object) -> World:
    gateway = replace(FRESH, **changes)  # type: ignore[arg-type]
    return lambda at: replace(at.world(text), gateway=gateway)


def edited_since(text: str) -> World:
    """A gateway that was started before its file was written."""
    return running(text, started_at=datetime(2000, 1, 1, tzinfo=UTC))


def silent(text: str = "") -> World:
    """A gateway that does not answer."""
    return lambda at: replace(at.world(text), gateway="no answer within 4 s")


def channel_is(state: ChannelState, detail: str = "x", warning: str = "", proxy: str = "") -> World:
    view = ChannelView("telegram", "default", state, detail, warning, proxy)
    return running(TELEGRAM, channels=(view,))


def probed(text: str, answer: str | ChannelError) -> World:
    return lambda at: replace(at.world(text), probes=[("telegram/default", answer)])


def a_file(name: str, mode: int, settings: str = "", *, text: str = "x", state: int = 0) -> World:
    """A file with these rights, in a state folder with those. HOME in settings is the home."""

    def make(at: Place) -> DoctorFacts:
        file = at.home / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        at.state.chmod(state or 0o700)
        return at.world(settings.replace("HOME", str(at.home)))

    return make


def checklist(text: str) -> World:
    return a_file("workspace/HEARTBEAT.md", 0o644, text=text)


def exposed(text: str) -> World:
    """Other users can read the settings."""

    def make(at: Place) -> DoctorFacts:
        world = at.world(text)
        assert world.settings.file is not None
        world.settings.file.chmod(0o644)
        return world

    return make


def no_checklist(at: Place) -> DoctorFacts:
    (at.workspace / "HEARTBEAT.md").unlink()
    return at.world()


def no_workspace(at: Place) -> DoctorFacts:
    (at.workspace / "HEARTBEAT.md").unlink()
    at.workspace.rmdir()
    return at.world()


def a_taken_port(at: Place) -> DoctorFacts:
    taken = socket.create_server(("127.0.0.1", 0))
    HELD.append(taken)
    return at.world(f"[web]\napi = true\nport = {taken.getsockname()[1]}\n")


HELD: list[socket.socket] = []
PRIVATE = "@TheBot; privacy mode is on: in groups it gets only what is for it"
IN_GROUP = TELEGRAM + '[channels.telegram.chats."-5"]\n'
STUCK = "@b; 3 updates wait; Telegram says: 502 from you"
PROGRAM = '[agents.main]\nmodel = "command"\ncommand.run = ["answer"]\n'
BESIDE = PROGRAM.replace("answer", "./answer")
SERVED = '[agents.main.mcp.files]\ncommand = ["serve"]\n'
REMOTE = '[agents.main.mcp.a]\nurl = "https://a.example.org"\n'
TO_CHAT = replace(SPEC, target=Target("telegram", "default", "-5"))
SECRET = '[web]\ntoken_file = "HOME/token"\n'
TO_DISABLED = '[heartbeat]\ntarget = "telegram"\n[channels.telegram]\nenabled = false\n'
GPT = '[agents.main]\nmodel = "openai:gpt-4o"\n'
UNKNOWN = '[agents.main]\nmodel = "openai:nobody-knows"\n'
FALLS_BACK = GPT + 'api_key = "k"\nfallback = ["deepseek:x"]\n'
DAILY = "budget.day.usd = 1\n"
NO_PRICE, ALSO_TOKENS = "day.usd cannot be enforced", "also set agents.main.budget.tokens"
BLOCKED = {"jobs": [replace(JOB, spec=TO_CHAT)], "chats": [replace(GROUP, gone="blocked")]}

OPEN_LOG = a_file("state/goclaw.log", 0o644, state=0o755)
SHORT_TOKEN = 'token = "short-0123456789"\n'
OLLAMA = '[agents.main]\nmodel = "ollama:x"\n'
BUDGET = "[agents.main.budget]\ntokens = {}\nday.tokens = {}\n"
NEVER_REACHED = "tokens = 9 is never reached: day.tokens = 5"
A_FILE = '[agents.main]\nworkspace = "HOME/f"\n'
NO_SOUL = '[agents.main]\ninstructions = ["SOUL.md"]\n'
ANN_LACKS = asked(us='"Ann"', lacking={"INSERT": ["inbox"]})
ROOT_OWNS = behind(owners={"root": ["inbox"]})
JOBS_OFF = "[scheduler]\nenabled = false\n"
BROKEN_DOWN = job(state=JobState.DISABLED, last_error="boom")
OF_GONE = replace(SPEC, agent=AgentName("gone"))

CASES = [
    ok("state-folder-rights", plain, "other users cannot read its files"),
    ok("state-folder-rights", a_file("state/goclaw.log", 0o644), "other users cannot read"),
    Case("state-folder-rights", a_file("x", 0o600, state=0o777), "users can write", "chmod 700 "),
    hint("state-folder-rights", OPEN_LOG, "other users can read goclaw.log", "chmod 700 "),
    ok("secret-files", plain, "none in use"),
    ok("secret-files", a_file("token", 0o600, SECRET), "readable by their owner only"),
    Case("secret-files", a_file("token", 0o644, SECRET), "other users can read", "chmod 600 "),
    Case("secret-files", says(SECRET), "HOME/token: No such file", "fix the setting"),
    Case("secret-files", exposed("[web]\n" + TOKEN), "other users can read", "chmod 600 "),
    ok("secret-files", exposed("[lanes]\nmain = 2\n"), "none in use"),
    ok("log", plain, "standard error"),
    ok("log", lambda at: at.world(f'[log]\nfile = "{at.home}/logs/a.log"\n'), "/logs/a.log"),
    Case("log", a_file("f", 0o644, '[log]\nfile = "HOME/f/a"\n'), "is not writable", "log.file"),
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
    hint("channels", probed(IN_GROUP, PRIVATE), "only receives mentions", "/setprivacy"),
    ok("channels", probed(IN_GROUP + "mention = false\n", "@TheBot"), "@TheBot"),
    ok("channels", channel_is(ChannelState.CONNECTED, ""), "connected"),
    ok(
        "channels",
        channel_is(ChannelState.CONNECTED, "", proxy="http://p:1"),
        ", through the proxy h",
    ),
    hint("channels", channel_is(ChannelState.WAITING), "waiting, x", "goclaw nodes"),
    hint("channels", channel_is(ChannelState.CONNECTED, "", "3 calls"), "3 calls", "reverse proxy"),
    Case("channels", channel_is(ChannelState.STOPPED), "stopped, x", "@BotFather"),
    Case("channels", channel_is(ChannelState.UNAUTHORIZED), "unauthorized, x", "@BotFather"),
    Case("channels", channel_is(ChannelState.CONFLICT), "conflict, x", "other program"),
    Case("channels", channel_is(ChannelState.RECONNECTING), "reconnecting, x", "see the log"),
    Case("channels", channel_is(ChannelState.STARTING), "starting, x", "see the log"),
    Case("channels", channel_is(ChannelState.FAILED), "failed, x", "see the log"),
    Case("channels", silent(TELEGRAM), "no answer", "goclaw status"),
    ok("webhooks", plain, "none"),
    ok("webhooks", says(ABROAD), "https://b.example.org"),
    Case("webhooks", says(HOOK.format("http://b.example.org")), "is not https", "https URL"),
    Case("webhooks", says(HOOK.format("https://b.org:9")), "does not call this port", "443"),
    Case("webhooks", says(HOOK.format("https://10.0.0.7")), "from the internet", "use polling"),
    Case("webhooks", probed(ABROAD, STUCK), "502 from you", "reverse proxy"),
    ok("web-address", says(WEB), "is free"),
    ok("web-address", says("[web]\napi = false\n"), "not used"),
    ok("web-address", running(WEB, address="http://127.0.0.1:8555"), "8555, served by the gateway"),
    hint("web-address", running(WEB, address=""), "the gateway serves no dashboard", "restart"),
    ok("web-address", running(ABROAD, address=""), "8420, used by the gateway for webhooks"),
    # What the gateway has from its own variables, this shell cannot know.
    ok("parts", running("[channels.telegram]\n"), "running in the gateway"),
    Case("parts", edited_since("[channels.telegram]\n"), "channels.telegram.token", "fix"),
    hint("models", running(GPT), "in this shell; the gateway may have", "variables of the gateway"),
    Case("models", edited_since(GPT), "no API key is set", "set OPENAI_API_KEY"),
    ok("channels", running(WEB, channels=(CONNECTED,)), "connected"),
    Case("web-address", a_taken_port, "another program already listens there", "set another port"),
    Case("web-address", says(f'{WEB}host = "203.0.113.9"\n{TOKEN}'), "", "127.0"),
    ok("web-token", says(WEB), "not needed"),
    ok("web-token", says(WEB + TOKEN), "long enough"),
    hint("web-token", says(WEB + f'token = "{"a" * 28}"\n'), "easy to guess", "secrets"),
    Case("web-token", says(ANYWHERE + SHORT_TOKEN), "easy to guess", "token_urlsafe"),
    Case("web-token", says(f'{WEB}token_env = "NOT_SET"\n'), "not set", "fix this setting"),
    ok("web-names", says(WEB), "localhost"),
    ok("web-names", says(ANYWHERE + TOKEN + 'hosts = ["b.example.org"]\n'), "b.example.org"),
    hint("web-names", says(ANYWHERE + TOKEN), "are refused", "web.hosts"),
    ok("web-sign-in", says(WEB), "by token only"),
    ok("web-sign-in", says(PROXIED), "10.0.0.7 says who people are"),
    hint("web-sign-in", says(PROXIED.replace("admin", "viewer")), "nobody becomes an admin", "set"),
    ok("web-sign-in", says(OPENID), "https://sso.example.org, not asked"),
    ok("web-sign-in", lambda place: replace(place.world(OPENID), openid=""), "answers"),
    hint(
        "web-sign-in",
        lambda place: replace(place.world(OPENID), openid="it cannot be reached"),
        "https://sso.example.org: it cannot be reached",
        "open https://sso.example.org/.well-known/openid-configuration",
    ),
    Case("web-sign-in", says(OPENID + "client_secret_env = 'NOT_SET'\n"), "is not set", "fix"),
    ok("models", plain, "offline"),
    ok("models", says(GPT, OPENAI_API_KEY="k"), "openai:gpt-4o"),
    ok("models", says(GPT, OPENAI_BASE_URL="http://127.0.0.1:1/v1"), "openai:gpt-4o"),
    Case("models", says(GPT), "no API key", "set OPENAI_API_KEY, or agents.main.api_key_"),
    Case("models", says(GPT, OPENAI_API_KEY=" \n"), "no API key", "OPENAI_API_KEY"),
    Case("models", says(GPT, ANTHROPIC_API_KEY="k"), "no API key", "OPENAI_API_KEY"),
    Case("models", says(GPT, OPENAI_API_KEY="sk-ü"), ": the API key is malformed", "the API key"),
    Case("models", says('[agents.main]\napi_key_env = "X"\n'), "this variable is not set", "fix"),
    ok(
        "models",
        says(GPT, OPENAI_API_KEY="k", ALL_PROXY="socks5://a:hush@p"),
        "through the proxy socks5://[hidden]@p",
    ),
    ok(
        "models",
        says(GPT, OPENAI_API_KEY="k", ALL_PROXY="p:1", NO_PROXY="api.openai.com"),
        "openai:",
    ),
    Case(
        "models",
        says(GPT, OPENAI_API_KEY="k", ALL_PROXY="https://p"),
        "the variable ALL_PROXY",
        "variable",
    ),
    Case("models", says(OLLAMA), "no base URL", "set OLLAMA_BASE_URL, or agents.main.base_url"),
    Case("models", says(FALLS_BACK), "deepseek:x: no API key is set", "set DEEPSEEK_API_KEY"),
    ok("budgets", says(BUDGET.format(5, 9)), "can be enforced"),
    hint("budgets", says(BUDGET.format(9, 5)), NEVER_REACHED, "agents.main.budget.tokens to 5"),
    # SPEC AGENT-5: where a budget of money cannot hold.
    ok("budgets", says(GPT + DAILY), "can be enforced"),
    Case("budgets", says(UNKNOWN + "budget.usd = 1\n"), "is not known", "budget.tokens"),
    Case("budgets", says(UNKNOWN + DAILY), NO_PRICE, ALSO_TOKENS),
    hint("budgets", says(UNKNOWN + DAILY + "budget.tokens = 9\n"), NO_PRICE, ALSO_TOKENS),
    Case("budgets", says(GPT + DAILY + 'base_url = "http://b.org/v1"\n'), NO_PRICE, ALSO_TOKENS),
    hint("budgets", told("", estimated=("main",)), "limits are estimates", "agents.main.budget"),
    ok("programs", plain, "no agent uses a program"),
    ok("programs", a_file("bin/answer", 0o755, PROGRAM), "bin/answer"),
    Case("programs", says(PROGRAM), "answer not found in PATH", "agents.main.command.run"),
    Case("programs", says(BESIDE), "./answer not found in ", "agents.main.command.run"),
    ok("programs", a_file("workspace/answer", 0o755, BESIDE), "answer"),
    ok("tool-servers", plain, "none"),
    ok("tool-servers", a_file("bin/serve", 0o755, SERVED), "bin/serve"),
    ok("tool-servers", says(REMOTE), "at the first run"),
    ok("tool-servers", says(f"{REMOTE}trusted = true\n"), "at the first run; trusted"),
    Case("tool-servers", says(SERVED), "serve not found in PATH", "agents.main.mcp.files.command"),
    ok("workspaces", plain, "workspace"),
    hint("workspaces", no_workspace, "does not exist", "mkdir -p"),
    Case("workspaces", a_file("f", 0o644, A_FILE), "is not a folder", "agents.main.workspace"),
    ok("instructions", plain, "none"),
    ok("instructions", a_file("workspace/AGENTS.md", 0o644, text="Be kind."), "8 characters"),
    Case("instructions", says(NO_SOUL), "SOUL.md", "agents.main.instructions"),
    ok("heartbeats", plain, "every 30 minutes, target last"),
    Case("heartbeats", says(TO_DISABLED), "is disabled", "set channels.telegram.enabled = true"),
    ok("checklists", plain, "1 open items"),
    ok("checklists", checklist("# Title\n"), "empty"),
    hint("checklists", no_checklist, "no such file", "heartbeat runs are skipped"),
    Case("checklists", checklist("a\0b"), "a NUL", "HEARTBEAT.md"),
    hint("checklists", checklist("- every fortnight: a\n"), "item 1: the interval is", "every 2h"),
    ok("database-programs", plain, "PostgreSQL"),
    ok("database-programs", says(MANAGED), "not needed"),
    ok("database", plain, "embedded, schema 1"),
    Case("database", fails("refused", MANAGED), "managed: refused", "start the database, or fix "),
    Case("database", fails("no start"), "embedded: no start", "GOCLAW_DATABASE_URL"),
    ok("migrations", plain, "none pending"),
    hint("migrations", told("", schema=WAITS), "1 pending: 0001", "migrate"),
    ok("database-server", asked(), "PostgreSQL 16"),
    ok("database-server", asked("", version=130_000), "embedded server"),
    Case("database-server", asked(version=130_011), "this server has 13", "PostgreSQL 14 or later"),
    ok("database-rights", asked(), "user goclaw has all rights"),
    ok("database-rights", asked(may_create=False), "has all rights"),
    Case("database-rights", behind(may_create=False), "may not create tables", "USAGE, CREATE ON"),
    Case("database-rights", ANN_LACKS, '"Ann" may not INSERT in inbox', 'SCHEMA public TO "Ann"'),
    Case("database-rights", ROOT_OWNS, "the tables of root (inbox)", "goclaw migrate"),
    Case("database-rights", asked(encoding="SQL_ASCII"), "SQL_ASCII", "ENCODING 'UTF8'"),
    ok("database-writes", asked(), "accepted"),
    Case("database-writes", asked(is_standby=True), "a read-only standby", "primary"),
    Case("database-writes", asked(is_read_only=True), "read-only", "default_transaction_read_only"),
    ok("database-notices", asked(), "NOTIFY works"),
    Case("database-notices", told(notices=False), "a connection pooler", "pool_mode = session"),
    Case("database-notices", told(notices=False, pooled=True), "transaction mode", "= session"),
    ok("database-notices", told(notices=False, server=ServerFacts(is_standby=True)), "a standby"),
    ok("database-clock", asked(), "in sync"),
    ok("database-clock", told(skew_s=1.9), "in sync"),
    hint("database-clock", told(skew_s=300.0), "5 min ahead of this machine", "timedatectl"),
    hint("database-clock", told(skew_s=-60.0), "1 min behind", "timedatectl"),
    ok("database-connections", asked(), "1 of 100"),
    Case("database-connections", asked(used=95), "95 of 100", "max_connections"),
    ok("database-vacuum", asked(), "autovacuum is on"),
    Case("database-vacuum", asked(vacuums=False), "autovacuum is off", "ALTER SYSTEM"),
    Case("database-vacuum", asked(skipped=["inbox"]), "off for inbox", "ALTER TABLE inbox RESET"),
    ok("gateway", running(), "running"),
    hint("gateway", plain, "not running", "goclaw run"),
    Case("gateway", silent(), "no answer", "its log"),
    ok("release", plain, "1.0"),
    ok("release", running(), "1.0"),
    hint("release", running(release="0.9"), "the gateway runs 0.9", "restart the gateway"),
    ok("settings-in-use", plain, "no gateway"),
    ok("settings-in-use", running(), "as in the file"),
    hint("settings-in-use", running(started_at=START), "goclaw.toml", "restart the gateway"),
    hint("settings-in-use", running(warnings=(NO_EFFECT,)), "of a.b", "goclaw config reset a.b"),
    ok("owners", says(TELEGRAM), "Ann"),
    ok("owners", working(TELEGRAM + 'allow = ["1001"]\n'), "1001"),
    hint("owners", working(TELEGRAM), "nobody receives", "goclaw people approve"),
    hint("owners", working(TELEGRAM, asking=[ASKS]), "requests: Bob", "goclaw people approve"),
    ok("groups", plain, "none pending"),
    ok("groups", working(TELEGRAM, chats=[replace(GROUP, allowed=False)]), "none pending"),
    ok("groups", working(TELEGRAM + 'groups = "open"\n', chats=[GROUP]), "none pending"),
    hint("groups", working(TELEGRAM, chats=[GROUP]), "The group", "goclaw people groups allow"),
    ok("jobs", job(), "1, no problems"),
    ok("jobs", job(state=JobState.PAUSED), "1, no problems"),
    hint("jobs", BROKEN_DOWN, "disabled: boom", "goclaw jobs runs j-1"),
    hint("jobs", working(JOBS_OFF, jobs=[JOB]), "jobs are turned off", "scheduler.enabled"),
    hint("jobs", job(spec=OF_GONE), "agent gone does not exist", "goclaw jobs edit j-1 --agent"),
    hint("jobs", job(spec=TO_CHAT), "/default is not configured", "goclaw jobs edit j-1 --to"),
    hint("jobs", working(TELEGRAM, **BLOCKED), "blocked", "--to"),
    hint("jobs", job(next_run_at=None), "no upcoming run", "goclaw jobs show"),
    ok("deliveries", plain, "none failed"),
    hint("deliveries", working(dead=2), "2 could not be delivered", "goclaw deliveries retry"),
    ok("messages", plain, "none failed"),
    hint(
        "messages",
        working(unanswered=3),
        "3 failed and got no answer",
        "goclaw deliveries incoming retry",
    ),
]


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Place]:
    yield place(tmp_path)
    while HELD:
        HELD.pop().close()


def named(case: Case) -> str:
    return f"{case.check}, {case.level}: {case.fact}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_each_check_says_what_is_so_and_what_to_do(whole: Place, case: Case) -> None:
    findings = found(BY_ID[case.check], case.make(whole))
    (finding,) = [one for one in findings if one.level is case.level and case.fact in one.fact]
    assert case.cure in finding.cure
    if case.level is Level.OK:
        assert [one for one in findings if one.cure] == []


def test_the_disk_and_the_programs_of_the_server_are_looked_at(
    whole: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for free, level in ((1 << 34, Level.OK), (500 << 20, Level.HINT), (1 << 20, Level.WRONG)):
        usage = type("Usage", (), {"free": free})
        monkeypatch.setattr("shutil.disk_usage", lambda path, usage=usage: usage)
        (finding,) = found(BY_ID["disk"], whole.world())
        assert finding.level is level
        assert ("free space" in finding.cure) is (level is not Level.OK)
    monkeypatch.setattr(embedded_files, "_PACKAGE", "not_there")
    (finding,) = found(BY_ID["database-programs"], whole.world())
    assert "is not installed" in finding.fact
    assert "pip install" in finding.cure


def test_every_check_is_tried_described_and_named() -> None:
    tried = {(case.check, case.level is Level.OK) for case in CASES}
    apart = {"disk": {True, False}, "database-programs": {False}}
    for check in CHECKS:
        ways = {is_ok for id_, is_ok in tried if id_ == check.id} | apart.get(check.id, set())
        assert ways == {True, False}, check.id
    ids = [*FIRST, *(check.id for check in CHECKS)]
    assert len(set(ids)) == len(ids) >= 20
    assert [id_ for id_ in ids if not re.fullmatch("[a-z]+(-[a-z]+)*", id_)] == []
    assert (
        re.findall(r"`([a-z-]+)`(?:, | \|)", GUIDE.read_text("utf-8").partition("## The checks")[2])
        == ids
    )


GUIDE = ROOT / "docs" / "guide" / "troubleshooting.md"


def commands() -> list[str]:
    """Those that the guide names, and those that are cures."""
    folder = ROOT / "goclaw_py" / "cli" / "doctor"
    cures = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    named = re.findall(r"`(goclaw [^`]+)`", GUIDE.read_text("utf-8")) + re.findall(
        r'(goclaw (?:cron|outbox|inbox|groups|pairing) [^";,]+)', cures
    )
    return sorted(set(named))


@pytest.mark.parametrize("command", commands())
def test_every_command_that_is_named(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    path: list[str] = []
    for word in command.split()[1:]:
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


@pytest.mark.parametrize("text", ["", TELEGRAM, MANAGED, WEB, ABROAD])
def test_nothing_breaks_where_nobody_answers(whole: Place, text: str) -> None:
    world = replace(whole.world(text), database="away", work=None, probes=None)
    said = [one.fact for check in CHECKS for one in found(check, world)]
    assert [fact for fact in said if "a bug" in fact] == []


# ---------------------------------------------------------------------------- asking


def database_says(monkeypatch: pytest.MonkeyPatch, answer: Checkup | Exception) -> None:
    async def check_up(settings: Settings) -> Checkup:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(composition, "check_up", check_up)


def look_around(settings: Settings) -> DoctorFacts:
    return asyncio.run(gathering.gather(settings, {}, MACHINE))


def test_the_machine_is_this_one() -> None:
    here = gathering.this_machine()
    assert here.python >= (3, 11)
    assert here.zones > 300
    assert here.memory is None or here.memory > 0
    assert MACHINE.release != here.release


async def never(*_: object, **__: object) -> object:
    return await asyncio.Event().wait()


def test_silence_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is asked for a limited time, and all of them at once: two rounds take below 10 s."""
    assert 2 * gathering.LIMIT_S < 10
    monkeypatch.setattr(gathering, "LIMIT_S", 0.05)
    monkeypatch.setattr(composition, "check_up", never)
    monkeypatch.setattr("channels.telegram.adapter.TelegramChannel.probe", never)
    world = look_around(Place(tmp_path).world(TELEGRAM + MANAGED).settings)
    assert world.database == "no answer within 0 s"
    assert world.probes is not None
    ((name, answer),) = world.probes
    assert (name, isinstance(answer, NotSent)) == ("telegram/default", True)
    assert (world.gateway, world.work) == (None, None)


@pytest.mark.parametrize("error", [StoreUnavailable("away"), ValueError("a bug")])
def test_a_lost_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    database_says(monkeypatch, error)
    world = look_around(load(env={"GOCLAW_HOME": str(tmp_path)}))
    assert isinstance(world.database, str)
    assert str(error) in world.database


def test_the_doctor_migrates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_control(settings: Settings, *, create: bool) -> None:
        raise AssertionError("opening it migrates it")

    database_says(monkeypatch, replace(CHECKUP, schema=WAITS))
    monkeypatch.setattr(composition, "open_control", open_control)
    assert look_around(load(env={"GOCLAW_HOME": str(tmp_path)})).work is None


def test_no_finding_has_a_secret_in_it(goclaw: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://me:hunter2-hunter2@db"
    database_says(monkeypatch, StoreUnavailable(f"cannot connect to {url}"))
    monkeypatch.setenv("GOCLAW_DATABASE_URL", f"{url}/x")
    for flags in ((), ("--json",)):
        got = goclaw("doctor", *flags)
        assert got.code == 1
        assert "hunter2" not in got.out
        assert "postgresql://me:[hidden]@db" in got.out


def test_problems_come_first_and_are_counted(
    goclaw: Shell, gateway: ThreadGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    database_says(monkeypatch, StoreUnavailable("it is gone"))
    *findings, blank, summary = goclaw("doctor").out.splitlines()
    levels = [line.split()[0] for line in findings if not line.startswith(" ")]
    assert levels == sorted(levels, key=["WRONG", "hint", "ok"].index)
    problems, hints = levels.count("WRONG"), levels.count("hint")
    assert problems >= 1
    assert (blank, summary) == ("", f"{count(problems, 'problem')}, {count(hints, 'hint')}.")


def test_programs_read_ids_and_levels(
    goclaw: Shell, gateway: ThreadGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    database_says(monkeypatch, CHECKUP)
    reports = goclaw.data("doctor")
    assert {tuple(report) for report in reports} == {("id", "level", "subject", "fact", "cure")}
    assert {report["level"] for report in reports} <= {"ok", "hint", "wrong"}
    by_id = {report["id"]: report for report in reports}
    assert "owners" not in by_id  # nobody can write here
    assert {"python", "jobs"} <= by_id.keys()
    assert {"level": "ok", "subject": "python"}.items() <= reports[0].items()
    assert by_id["gateway"]["level"] == "ok"
    assert by_id["gateway"]["fact"].startswith("running")


@pytest.mark.parametrize(
    ("error", "said", "cure"),
    [
        (None, "no answer within", "again when this machine, its network and the server are idle"),
        (MigrationError("made by a newer release"), "made by a newer release", "use the release"),
        (MigrationError("newer", "install it"), "newer", "install it"),
        (StoreUnavailable("too many clients", "end programs"), "too many clients", "end programs"),
        (StoreError("refused", "correct the password"), "refused", "correct the password"),
        (StoreUnavailable("not there"), "not there", "start the database, or fix database.url"),
    ],
    ids=["slow", "refused schema", "newer schema", "full", "refused", "not there"],
)
def test_only_a_database_that_is_not_there_is_to_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception | None, said: str, cure: str
) -> None:
    if error is None:
        monkeypatch.setattr(gathering, "LIMIT_S", 0.01)
        monkeypatch.setattr(composition, "check_up", never)
    else:
        database_says(monkeypatch, error)
    (told,) = check_database(look_around(Place(tmp_path).world(MANAGED).settings))
    assert said in told.fact
    assert cure in told.cure
    assert cure not in told.fact
