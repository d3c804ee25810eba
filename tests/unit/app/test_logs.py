"""What stands in the log, and what never does (SPEC OPS-5, SEC-2)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import stat
import sys
import threading
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goclaw_py.app.log_values import LONGEST_TEXT
from goclaw_py.app.logs import configure, mark_names
from goclaw_py.app.uncaught import log_the_uncaught
from goclaw_py.config import Settings, load
from goclaw_py.config.models import Log, LogFormat
from goclaw_py.config.secrets import known_secrets
from goclaw_py.core.concurrency import work_on
from goclaw_py.core.ids import LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Ending
from goclaw_py.core.redaction import HIDDEN
from goclaw_py.scheduler.dispatcher import Dispatcher
from goclaw_py.scheduler.models import QueuePolicy, Request
from goclaw_py.scheduler.scheduler import RunScheduler
from tests.support.harness import Ways, a_process, until

TOKEN = "123456789:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_"
PASSWORD = 'p/ss "wörd"\\n@home'
SECRETS = {
    "token": TOKEN,
    "its secret": TOKEN.partition(":")[2],
    "password": PASSWORD,
    "key": "no-known-form-of-a-key",
    "header": "in-a-header-0123",
    "web": "the-web-token-0123",
    "file": "from-a-file-0123",
    "variable": "from-a-variable",
}
FORMS = [LogFormat.CONSOLE, LogFormat.JSON]
lib = logging.getLogger("some.library")

pytestmark = pytest.mark.usefixtures("log_as_before")


@pytest.fixture
def hooks_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)


@pytest.fixture
def secretive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings with a secret wherever one may stand."""
    (tmp_path / "key").write_text(f"{SECRETS['file']}\n")
    (tmp_path / "goclaw.toml").write_text(
        f"""
        [agents.main]
        model = "openai:gpt-4o"
        api_key = "{SECRETS["key"]}"
        headers = {{ X-Mine = "{SECRETS["header"]}" }}
        [agents.other]
        api_key_file = "{tmp_path}/key"
        [channels.telegram]
        token = "{TOKEN}"
        [web]
        token_env = "MY_WEB"
        """
    )
    monkeypatch.setenv("MY_WEB", SECRETS["web"])
    monkeypatch.setenv("OTHER_API_KEY", SECRETS["variable"])
    url = f"postgresql://me:{quote(PASSWORD, safe='')}@db/x"
    env = {"GOCLAW_HOME": str(tmp_path), "GOCLAW_DATABASE_URL": url}
    return load(env={**env, "MY_WEB": SECRETS["web"]})


def as_log(given: Settings, form: LogFormat) -> Settings:
    return given.model_copy(update={"log": Log(format=form)})


def lines(log: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in log.read_bytes().splitlines()]


@pytest.mark.parametrize("form", FORMS)
def test_a_traceback_shows_no_local_variables(tmp_path: Path, form: LogFormat) -> None:
    """SPEC SEC-2: keys are among them."""
    configure(Settings(log=Log(format=form)), file=tmp_path / "log")

    def fail(key: str) -> None:
        raise ValueError(f"{len(key)} characters")

    try:
        fail("-".join(["hunter2"] * 2))
    except ValueError:
        logging.getLogger("goclaw_py.test").exception("it failed")
    text = (tmp_path / "log").read_text()
    assert "it failed" in text
    assert "15 characters" in text
    assert "in fail" in text
    assert "hunter2-hunter2" not in text


def test_every_secret_of_the_settings_is_known(secretive: Settings, tmp_path: Path) -> None:
    known = known_secrets(secretive, {"MY_WEB": SECRETS["web"], "A_KEY": SECRETS["variable"]})
    assert set(SECRETS.values()) <= known
    assert not {"123456789", "openai:gpt-4o", "db", "main"} & known
    # Though ``pwd`` is what some call a password, no traceback would have a path in it.
    env = {"PWD": "/srv/goclaw", "OLDPWD": "/srv/other", "DB_PWD": "hunter2-hunter2"}
    assert known_secrets(Settings(), env) == {"hunter2-hunter2"}
    # A file that cannot be read stops nothing.
    (tmp_path / "goclaw.toml").write_text('[web]\ntoken_file = "/not/there"\n')
    known_secrets(load(env={"GOCLAW_HOME": str(tmp_path)}), {})


def test_nobody_else_may_read_a_log_file(tmp_path: Path) -> None:
    file = tmp_path / "state" / "goclaw.log"
    configure(Settings(), file=file)
    logging.getLogger("goclaw_py").info("ready")
    assert "ready" in file.read_text("utf-8")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]


def an_exception(text: str) -> None:
    try:
        raise ValueError(f"https://api.test/bot{text}/x") from KeyError(text)
    except ValueError:
        lib.exception("it failed")


def a_warning(text: str) -> None:
    warnings.simplefilter("always")
    warnings.warn(text, stacklevel=1)


def an_error_of_a_task(text: str) -> None:
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        context = {"message": f"never retrieved: {text}", "exception": ValueError(text)}
        loop.call_exception_handler(context)


def an_error_of_a_thread(text: str) -> None:
    def fail() -> None:
        raise ValueError(text)

    thread = threading.Thread(target=fail, name=text)
    thread.start()
    thread.join()


class Leaving:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __del__(self) -> None:
        raise ValueError(self.text)


def an_error_that_ends_the_process(text: str) -> None:
    try:
        raise ValueError(text)
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)


SAYS: dict[str, Callable[[str], object]] = {
    "message": lambda text: lib.warning("it said: %s", text),
    "fact": lambda text: lib.warning("it said", extra={"said": text}),
    "deep": lambda text: lib.warning("it said", extra={"said": {"all": [(text,), {text: text}]}}),
    "object": lambda text: lib.warning("it said", extra={"said": ValueError(text)}),
    "exception": an_exception,
    "message that cannot be put together": lambda text: lib.warning("%s %s", text),
    "warning": a_warning,
    "error of a task": an_error_of_a_task,
    "error of a thread": an_error_of_a_thread,
    "error that cannot be raised": Leaving,
    "error that ends the process": an_error_that_ends_the_process,
    "name": lambda text: logging.getLogger(text.replace(".", "")).warning("it said"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("says", SAYS.values(), ids=SAYS)
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.usefixtures("hooks_as_before")
def test_no_secret_is_logged_whoever_says_it(
    tmp_path: Path,
    secretive: Settings,
    form: LogFormat,
    says: Callable[[str], object],
    secret: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure(as_log(secretive, form), file=tmp_path / "log")
    log_the_uncaught()
    with warnings.catch_warnings():
        says(SECRETS[secret])
    text = (tmp_path / "log").read_text()
    assert text
    text += "".join(capfd.readouterr())
    for spelled in (SECRETS[secret], repr(SECRETS[secret])[1:-1], quote(SECRETS[secret])):
        assert spelled not in text


@pytest.mark.parametrize("form", FORMS)
@given(before=st.text(max_size=80), after=st.text(max_size=80), secret=st.sampled_from([*SECRETS]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_secret_is_logged_whatever_is_around_it(
    tmp_path: Path, secretive: Settings, form: LogFormat, before: str, after: str, secret: str
) -> None:
    (tmp_path / "log").unlink(missing_ok=True)
    configure(as_log(secretive, form), file=tmp_path / "log")
    lib.warning("%s", before + SECRETS[secret] + after, extra={"said": before + SECRETS[secret]})
    text = (tmp_path / "log").read_text()
    assert SECRETS[secret] not in text
    assert repr(SECRETS[secret])[1:-1] not in text
    assert HIDDEN in text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", range(-60, 60, 7))
def test_a_secret_that_is_cut_is_cut_off_whole(
    tmp_path: Path, secretive: Settings, form: LogFormat, place: int
) -> None:
    configure(as_log(secretive, form), file=tmp_path / "log")
    for many in (1, 200):
        filling = f"{TOKEN} " * many + "x " * LONGEST_TEXT
        lib.warning("%s", filling[: LONGEST_TEXT + place] + TOKEN)
    text = (tmp_path / "log").read_text()
    assert TOKEN[:14] not in text
    assert TOKEN[-14:] not in text
    assert f"{LONGEST_TEXT + place + len(TOKEN)} characters" in text or place < -len(TOKEN)


SPLIT: dict[str, dict[str, object]] = {
    "over two fields": {"one": TOKEN[:20], "two": TOKEN[20:]},
    "over three": {"one": f"it is {TOKEN[:15]}", "two": TOKEN[15:30], "three": f"{TOKEN[30:]}!"},
    "over a list": {"all": [TOKEN[:20], TOKEN[20:]]},
    "over a list and a field": {"all": {"deep": ["x", TOKEN[:20]]}, "two": TOKEN[20:]},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("said", SPLIT.values(), ids=SPLIT)
def test_a_secret_that_is_split_over_values_is_hidden(
    tmp_path: Path, secretive: Settings, form: LogFormat, said: dict[str, object]
) -> None:
    configure(as_log(secretive, form), file=tmp_path / "log")
    lib.warning("it said", extra={**said, "number": 5, "other": "stays"})
    lib.warning("%s%s", TOKEN[:20], TOKEN[20:])
    text = (tmp_path / "log").read_text()
    assert TOKEN[:15] not in text
    assert TOKEN[30:] not in text
    assert "stays" in text


class Full(StringIO):
    def write(self, text: str) -> int:
        raise OSError("the disk is full")


def test_a_line_that_cannot_be_written_is_not_shown_elsewhere(
    tmp_path: Path, secretive: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    """As on a full disk: the logging module would print message and facts."""
    configure(as_log(secretive, LogFormat.JSON), file=tmp_path / "log")
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(Full())
    lib.warning("it said: %s", TOKEN)
    handler.setStream(before)
    assert capfd.readouterr().err == "goclaw: not logged: OSError\n"


def test_a_line_has_the_name_of_its_session_where_it_is_known(tmp_path: Path) -> None:
    """SPEC OPS-9. A fault of what names sessions loses no line."""
    configure(Settings(log=Log(format=LogFormat.JSON)), file=tmp_path / "log")

    def name_of(session: str) -> str | None:
        if session == "bad":
            raise RuntimeError("no name")
        return {"agent:main:telegram:direct:5": "Ann"}.get(session)

    mark_names(name_of)
    work_on(run_id="1", session="agent:main:telegram:direct:5")
    lib.warning("bound")
    work_on()
    for session in ("agent:main:telegram:direct:6", "bad", 7, None):
        lib.warning("named", extra={"session": session})
    lib.warning("without")
    assert [line.get("session_name") for line in lines(tmp_path / "log")] == ["Ann", *[None] * 5]


@pytest.mark.usefixtures("hooks_as_before")
def test_what_ends_the_process_is_told_once_on_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: told.append(error[0]))
    log_the_uncaught()
    configure(Settings(), file=tmp_path / "log")
    an_error_that_ends_the_process("in a file")
    assert told == [ValueError]
    configure(Settings(), file=None)
    an_error_that_ends_the_process("on the terminal")
    assert told == [ValueError]


@pytest.mark.usefixtures("hooks_as_before")
def test_a_thread_that_is_meant_to_end_is_no_error(tmp_path: Path) -> None:
    configure(Settings(), file=tmp_path / "log")
    log_the_uncaught()
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()
    assert (tmp_path / "log").read_text() == ""


VALUES = st.recursive(st.text() | st.floats() | st.binary(), st.lists, max_leaves=8)


class Broken:
    def __repr__(self) -> NoReturn:
        raise RuntimeError("no words")


class Colour(Enum):
    RED = "red"


CYCLE: list[object] = []
CYCLE.append(CYCLE)
CONTENTS: list[object] = [
    "\ud800 half", "\x00\x1b[31m\r\n\u2028\u202e", b"\xff\x00", float("nan"), -float("inf"),
    1 << 200_000, Broken(), Colour.RED, datetime(2026, 1, 1, tzinfo=UTC),
    {1: 2, None: Broken(), ("a", "\udfff"): {3, 4}}, CYCLE, [[0] * 1000] * 1000,
    "x" * 10_000_000, object, sys,
]  # fmt: skip


@pytest.mark.parametrize("said", CONTENTS, ids=lambda said: type(said).__name__)
def test_a_line_of_json_is_one_whatever_is_said(tmp_path: Path, said: object) -> None:
    configure(Settings(log=Log(format=LogFormat.JSON)), file=tmp_path / "log")
    lib.warning("it said", extra={"said": said})
    with contextlib.suppress(ValueError, RuntimeError):
        lib.warning("it said %s", said)
    line = lines(tmp_path / "log")[0]
    assert (line["event"], line["level"], line["logger"]) == ("it said", "warning", "some.library")
    assert (tmp_path / "log").stat().st_size < 200_000


@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_lines_of_json_parse(tmp_path: Path, said: dict[str, object]) -> None:
    (tmp_path / "log").unlink(missing_ok=True)
    configure(Settings(log=Log(format=LogFormat.JSON)), file=tmp_path / "log")
    lib.warning("it said", extra={"said": said})
    (line,) = lines(tmp_path / "log")
    assert isinstance(line["said"], dict)


def test_what_is_said_cannot_look_like_another_line_for_people(tmp_path: Path) -> None:
    configure(Settings(log=Log(format=LogFormat.CONSOLE)), file=tmp_path / "log")
    lib.warning("it said: %s", "\n2026-01-01 [error] all is lost", extra={"s": "\x1b[2J"})
    text = (tmp_path / "log").read_text()
    assert len([line for line in text.splitlines() if not line.startswith(" ")]) == 1
    assert "\x1b" not in text


@pytest.mark.parametrize("form", FORMS)
def test_no_line_has_characters_that_a_terminal_obeys(tmp_path: Path, form: LogFormat) -> None:
    configure(Settings(log=Log(format=form)), file=tmp_path / "log")
    control = "\x1b[2J \x9b2J \u202e \u2028"
    lib.warning(control, extra={"said": control, "exception": f"{control}\n2026 [error] fake"})
    text = (tmp_path / "log").read_text()
    assert not set("\x1b\x9b\u202e\u2028") & set(text)
    assert "\n2026" not in text


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)],
)
def test_a_terminal_has_colours_unless_it_is_asked_for_none(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], coloured: bool
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    configure(Settings(), file=None)
    lib.warning("it said")
    assert "it said" in terminal.getvalue()
    assert ("\x1b[" in terminal.getvalue()) is coloured


class Working:
    """A host whose runs log as a library would that knows nothing of runs."""

    async def work(self, run_id: RunId) -> None:
        lib.warning("working")
        await asyncio.to_thread(lib.warning, "in a thread")
        raise ValueError("broken")

    async def record(self, ended: Ending, error: BaseException | None) -> None:
        lib.warning("recording")
        lib.warning("of another", extra={"run_id": "another"})
        lib.warning("half of it", extra={"run_id": None, "step": 1})

    def joined(self, request_id: RunId, into: RunId) -> None: ...

    def restarted(self, run_id: RunId, into: RunId) -> None: ...

    def offered(self, request_id: RunId, run_id: RunId) -> None: ...


async def test_every_line_of_a_run_has_its_id_and_its_session(tmp_path: Path) -> None:
    """SPEC OPS-5: also those of libraries, and of a run that begins where another ends."""
    configure(Settings(log=Log(format=LogFormat.JSON)), file=tmp_path / "log")
    main = LaneName("main")
    dispatcher = Dispatcher(RunScheduler({main: 1}), Working())
    names = ("a", "b", "c")
    for name in names:
        session = SessionKey(f"session {name}")
        dispatcher.submit(Request(RunId(name), session, main, policy=QueuePolicy()))
    while dispatcher.runs():
        await asyncio.sleep(1)
    written = lines(tmp_path / "log")
    for event in ("working", "in a thread", "recording", "half of it"):
        about = [(one["run_id"], one["session"]) for one in written if one["event"] == event]
        assert about == [(name, f"session {name}") for name in names]
    others = [one for one in written if one["event"] == "of another"]
    assert [(one["run_id"], "session" in one) for one in others] == [("another", False)] * 3
    lib.warning("outside")
    assert "run_id" not in lines(tmp_path / "log")[-1]


async def test_an_answered_message_costs_one_line(tmp_path: Path) -> None:
    """SPEC OPS-5: at level info, which is the default. What costs more belongs to level debug."""
    async with a_process(ways=Ways(QueuePolicy())) as gateway:
        configure(Settings(log=Log(format=LogFormat.JSON)), file=tmp_path / "log")
        await gateway.ask("hello")
        await until(lambda: not gateway.dispatcher.runs())
        written = lines(tmp_path / "log")
    assert [line["event"] for line in written] == ["run_ended"]
    assert (tmp_path / "log").stat().st_size < 600


async def test_what_a_task_works_on_is_not_seen_by_others(tmp_path: Path) -> None:
    configure(Settings(log=Log(format=LogFormat.JSON)), file=tmp_path / "log")

    async def deliver(number: int) -> None:
        work_on(outbox=number, run_id=None)
        await asyncio.sleep(1)
        lib.warning("sent")

    await asyncio.gather(*map(deliver, (1, 2)))
    assert [one["outbox"] for one in lines(tmp_path / "log")] == [1, 2]
    assert "run_id" not in lines(tmp_path / "log")[0]
