"""The command line around its commands: release, errors, signals, imports, crashes (SPEC SEC-2)."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer.main

from goclaw_py.cli import entry as crashes
from goclaw_py.cli.context import Cli, waited_for
from goclaw_py.cli.entry import app
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import table_text
from goclaw_py.cli.terminal import fail_without_reader
from goclaw_py.cli.tree import SECTIONS, CommandTree
from goclaw_py.config import Settings
from goclaw_py.core.errors import NoGateway, UnknownJob
from tests.unit.cli.conftest import Shell
from tests.unit.web.fakes import FakeControl

pytestmark = pytest.mark.real_time

PLACES = {name: place for section in SECTIONS.values() for name, place in section.items()}


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_release_is_an_option_too(goclaw: Shell, option: str) -> None:
    got = goclaw(option)
    assert (got.code, got.out) == (0, goclaw("version").out)


def test_only_the_module_of_a_command_is_imported() -> None:
    code = (
        "import sys, goclaw_py.cli.entry as e; e.run(['version']);"
        "print(*(n.removeprefix('goclaw_py.cli.') for n in sys.modules if 'goclaw_py.' in n))"
    )
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(got.stdout.splitlines()[-1].split())
    places = {place.partition(":")[0] for place, _ in PLACES.values()}
    assert imported & places == {"system.gateway"}


def test_the_help_has_all_commands_in_their_order_uncut() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, CommandTree)
    assert group.list_commands(None) == list(PLACES)
    names = [command.name for command in group.commands.values()]
    assert names == [*PLACES, "version"]
    cut = [name for name, words in short_helps().items() if words.endswith("...")]
    assert [name for name in cut if not name.startswith(("jobs ", "heartbeat "))] == []


def short_helps() -> dict[str, str]:
    """What stands beside each command in the help on a terminal of 80 columns."""

    def below(group: Any, path: str) -> dict[str, str]:
        found: dict[str, str] = {}
        commands = getattr(group, "commands", {})
        room = 78 - 6 - max(map(len, commands), default=0)
        for name, command in commands.items():
            found[f"{path}{name}"] = command.get_short_help_str(room)
            found |= below(command, f"{path}{name} ")
        return found

    return below(typer.main.get_command(app), "")


def test_help_is_a_word_too(goclaw: Shell) -> None:
    for words in ((), ("jobs",), ("jobs", "add")):
        assert goclaw("help", *words) == goclaw(*words, "--help")


@pytest.mark.parametrize(("words", "said"), [
    ("rnus", "no such command 'rnus'. Did you mean 'runs'? See: goclaw --help"),
    ("runs show", "missing argument 'RUN'. See: goclaw runs show --help"),
    ("status --config x", "--config must come before the command: goclaw --config …"),
    ("runs list --active --outcome lost", "--active excludes --outcome"),
    ("runs list --trigger x", "invalid value for '--trigger': 'x' is not one of 'chat', "),
])  # fmt: skip
def test_wrong_usage_says_what_would_be_right(goclaw: Shell, words: str, said: str) -> None:
    got = goclaw(*words.split())
    assert (got.code, got.out) == (ExitCode.USAGE, "")
    assert got.err.startswith(f"goclaw: {said}")
    assert got.err.count("\n") == 1


@pytest.mark.parametrize(("noun", "default"), [
    ("deliveries", "list"),
    ("deliveries incoming", "list"),
    ("jobs", "list"),
    ("people groups", "list"),
    ("runs", "list"),
    ("sessions", "list"),
    ("config", "show"),
])  # fmt: skip
def test_a_noun_alone_lists(goclaw: Shell, database: FakeControl, noun: str, default: str) -> None:
    for option in ("", "--json", "--help"):
        rest = [option] if option else []
        whole = goclaw(*noun.split(), default, *rest)
        alone = goclaw(*noun.split(), *rest)
        if option == "--help":
            assert "Commands:" in alone.out
        elif (noun, option) != ("runs", "--json"):  # it belongs to --active
            assert alone == whole
            assert alone.code == 0


def test_a_closed_output_is_one_that_nobody_reads() -> None:
    command = f"exec {sys.executable} -m goclaw_py nothing >&- 2>&- <&-"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == ExitCode.USAGE


def test_a_command_that_is_terminated_takes_back_what_it_has_begun() -> None:
    undone: list[str] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            undone.append("all of it")

    with pytest.raises(SystemExit) as ended:
        waited_for(work())
    assert (ended.value.code, undone) == (ExitCode.TERMINATED, ["all of it"])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_a_writer_learns_that_its_reader_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = os.pipe()
    with os.fdopen(there, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        asyncio.get_running_loop().call_later(0.01, os.close, here)
        with pytest.raises(BrokenPipeError), fail_without_reader():
            await asyncio.sleep(60)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_file_always_has_a_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with fail_without_reader():
            await asyncio.sleep(0)


async def test_another_cancellation_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = os.pipe()
    with os.fdopen(here), os.fdopen(there, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)

        async def wait() -> None:
            with fail_without_reader():
                await asyncio.sleep(60)

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()


def test_a_table_in_a_pipe_has_no_blanks_at_the_end_of_its_lines() -> None:
    text = table_text(("A", "B"), [("long", "b"), ("x", "")], empty="")
    assert text.splitlines() == ["A     B", "long  b", "x"]


@pytest.mark.parametrize("name", PLACES)
def test_the_list_of_commands_says_of_each_what_its_own_help_says(name: str) -> None:
    command = CommandTree().commands[name]
    assert PLACES[name][1] == command.get_short_help_str(limit=200)


KEY = "a-key-of-no-known-form"


@pytest.fixture(autouse=True)
def hook_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


def crash(text: str) -> None:
    try:
        raise RuntimeError(f"nobody expected {text}")
    except RuntimeError as error:
        sys.excepthook(RuntimeError, error, error.__traceback__)


def test_its_traceback_shows_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "goclaw.toml"
    file.write_text(f'[agents.main]\nmodel = "openai:gpt-4o"\napi_key = "{KEY}"\n')
    crashes.hide_secrets(file)
    crash(KEY)
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "RuntimeError: nobody expected [hidden]" in told
    assert KEY not in told


def test_settings_that_cannot_be_read_hide_what_the_environment_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)
    (tmp_path / "goclaw.toml").write_text("this is no TOML")
    crashes.hide_secrets(tmp_path / "goclaw.toml")
    crash(KEY)
    told = capsys.readouterr().err
    assert "nobody expected [hidden]" in told
    assert KEY not in told


def test_where_nothing_can_be_hidden_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python would print the error as it is."""

    def broken(_config: Path | None) -> None:
        raise ValueError(KEY)

    monkeypatch.setattr(crashes, "_hider", broken)
    crashes.hide_secrets(None)
    crash(KEY)
    assert capsys.readouterr().err == "goclaw: RuntimeError\n"


@pytest.mark.parametrize(("error", "said"), [
    (UnknownJob("nope"), "no job 'nope'; to list jobs: goclaw jobs list"),
    (NoGateway("it is gone"), "it is gone; to start one: goclaw run"),
    # It is not said twice.
    (NoGateway("none; start it with: goclaw run"), "none; start it with: goclaw run"),
    (OSError(errno.EROFS, "Read-only file system", "/x/state"),
     ("/x/state: Read-only file system; make it writable, or set GOCLAW_HOME to a folder that "
      "is")),
    (OSError(errno.ENOSPC, "No space left on device"), "No space left on device; free some space"),
    (OSError(errno.EISDIR, "Is a directory", "/x"), "/x: Is a directory"),
])  # fmt: skip
def test_an_error_names_the_command_that_helps(
    goclaw: Shell, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(cli: Cli) -> Settings:
        raise error

    monkeypatch.setattr(Cli, "settings", fail)
    assert goclaw("status").err == f"goclaw: {said}\n"
