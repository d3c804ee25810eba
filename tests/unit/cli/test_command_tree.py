"""The commands as a whole: help, ``--json``, verbs, exit codes, and the page about them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

from goclaw_py.cli import composition
from goclaw_py.cli.entry import app
from goclaw_py.cli.exits import EXPLAINED, ExitCode
from goclaw_py.config import Settings
from goclaw_py.store.migrate import SchemaStatus as Schema
from tests.unit.cli.conftest import Shell, ThreadGateway
from tests.unit.cli.job_control import JobControl
from tests.unit.web import fakes
from tests.unit.web.fakes import FakeControl

GUIDE = (Path(__file__).parents[3] / "docs" / "guide" / "cli.md").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Command:
    """One that can be called."""

    name: str
    help: str
    parameters: tuple[Any, ...]

    @property
    def options(self) -> set[str]:
        return {name for each in self.parameters for name in each.opts}


def commands() -> Iterator[Command]:
    def below(command: Any, path: tuple[str, ...]) -> Iterator[Command]:
        groups = getattr(command, "commands", {})
        if path and (not groups or command.invoke_without_command):
            yield Command(" ".join(path), command.help or "", tuple(command.params))
        for name, each in groups.items():
            yield from below(each, (*path, name))

    return below(typer.main.get_command(app), ())


ALL = {command.name: command for command in commands()}

GO_ON = {"run", "chat", "top"}
"""They are for a person until the end; there is no answer to make a document of."""

WRITES_JSON = {"cron export", "audit export"}
"""JSON is what it is for."""

WATCHED = {
    *("status", "lanes", "nodes list", "queue", "runs list"),
    *("inbox list", "outbox list", "cron list", "approvals list"),
    "heartbeat status",
}

VERBS = {
    *("list", "show", "add", "edit", "rm", "set", "pause", "resume", "run", "retry", "drop"),
    *(
        "import",
        "sign-out",
        "export",
        "follow",
        "reset",
        "rename",
        "fork",
        "allow",
        "deny",
        "approve",
        "revoke",
        "invite",
        "mute",
        "answer",
        "history",
    ),
    *("on", "off", "auto", "done", "drain", "check", "status", "why", "logs", "next", "path"),
    *("install", "uninstall"),
    *("tokens create", "tokens revoke", "tokens show"),
    *("runs", "people", "events", "grants", "sign-ins", "tokens"),
}
"""Second words. The last line are lists of something else than the noun before them."""


@pytest.mark.parametrize("name", ALL)
def test_every_command_says_what_it_does_and_what_each_word_means(name: str) -> None:
    command = ALL[name]
    assert re.match(r"[A-Z].*[.:]", command.help), "a sentence"
    assert "SPEC" not in command.help
    assert [each.name for each in command.parameters if not each.help] == []
    assert ("--json" in command.options) == (name not in GO_ON | WRITES_JSON)
    if " " in name:
        assert name.partition(" ")[2] in VERBS


def test_help_is_told_for_every_command(goclaw: Shell) -> None:
    assert {"status", "cron add", "lanes", "lanes set", "config show"} <= ALL.keys()
    for name in ALL:
        got = goclaw(*name.split(), "-h")
        assert (got.code, got.err) == (0, ""), name
        assert got.out.startswith(f"Usage: goclaw {name} "), name
        assert "[[" not in got.out.splitlines()[0], name
        assert "-h, --help" in got.out, name


@pytest.mark.parametrize("name", [name for name in ALL if name not in GO_ON | {"init"}])
def test_words_in_another_encoding_are_refused(goclaw: Shell, name: str) -> None:
    """What Python makes of such bytes can be neither sent nor stored."""
    parameters = ALL[name].parameters
    required = [one for one in parameters if one.param_type_name == "argument" and one.required]
    words = name.split() + ["main"] * len(required)
    for option in (one for one in parameters if one.param_type_name == "option"):
        # The value of --watch is optional, and never the next word.
        if option.is_flag or option.name == "watch" or option.type_descriptor.annotation is Path:
            continue
        got = goclaw(*words, option.opts[0], "a\udcff")
        assert (got.code, got.out) in ((1, ""), (2, "")), option.name
        assert got.err.startswith("goclaw: ")


def test_what_changes_by_itself_can_be_watched() -> None:
    assert {name for name, command in ALL.items() if "--watch" in command.options} == WATCHED


GATEWAY = dict.fromkeys(
    [
        *("status", "lanes", "nodes list", "sessions list", "runs list", "inbox list"),
        *("outbox list", "heartbeat status", "heartbeat why", "heartbeat logs", "pairing list"),
        *("pairing people", "groups list", "config path", "config check", "version", "init"),
        "audit",
    ],
    "",
) | {
    "send": "console hello --queue",
    "stop": "console",
    "lanes set": "main 3",
    "nodes show": "here",
    "nodes drain": "here",
    "queue": "console",
    "event": "the build is red",
    "sessions show": "console",
    "sessions reset": "console",
    "sessions rename": "console Plans",
    "sessions rm": "console --yes",
    "sessions fork": "console",
    "runs": "--active",
    "runs show": "0190-a",
    "inbox show": "8",
    "inbox retry": "8",
    "inbox drop": "8 --yes",
    "outbox show": str(fakes.DEAD.id),
    "outbox retry": str(fakes.DEAD.id),
    "outbox drop": f"{fakes.DEAD.id} --yes",
    "heartbeat run": "main --dry-run",
    "heartbeat on": "main",
    "heartbeat off": "main",
    "heartbeat auto": "main",
    "heartbeat mute": "30m",
    "heartbeat show": "main",
    "heartbeat add": "is the build green?",
    "heartbeat done": "1",
    "heartbeat events": "main",
    "pairing approve": "ABCD2345",
    "pairing revoke": "42",
    "pairing deny": "50",
    "pairing allow": "50",
    "web invite": "ann",
    "web list": "",
    "web revoke": "42",
    "web sign-ins": "",
    "web sign-out": "6f2a90c1d4e8",
    "web tokens": "",
    "web tokens create": "ci --role operator --days 90",
    "web tokens revoke": "grafana",
    "approvals list": "",
    "approvals show": "9f8",
    "approvals allow": "9f8 --session",
    "approvals deny": "9f8",
    "approvals answer": "9f0 again",
    "approvals grants": "",
    "approvals revoke": "main pay",
    "why": "0190-aaaa",
    "config show": "lanes",
    "config set": "lanes.main.size 5",
    "config reset": "lanes.main.size",
    "config history": "",
    "agents list": "",
    "models list": "",
    "channels list": "",
}
"""What each command is called with; with a gateway, or without anything."""

JOBS = {
    "cron list": "",
    "cron show": "tea",
    "cron add": "water --every 2h -- drink",
    "cron edit": "tea --every 3h",
    "cron pause": "tea",
    "cron resume": "tea",
    "cron runs": "",
    "cron next": "",
    "cron rm": "tea --yes",
    "cron import": "FILE --dry-run",
    "simulate": "--days 1",
}
DATABASE = {"migrate": "", "groups allow": "-1001", "groups deny": "-1001"}
ELSEWHERE = {
    # What they need is more than a fake: see their own tests.
    *("cron run", "runs follow", "usage", "backup", "restore", "doctor", "open", "logs"),
    "web tokens show",
    *("service install", "service status", "service uninstall"),
}


def test_the_document_of_every_command_is_looked_at() -> None:
    tried = GATEWAY.keys() | JOBS.keys() | DATABASE.keys() | ELSEWHERE
    assert tried == {name for name, command in ALL.items() if "--json" in command.options}


def document(goclaw: Shell, name: str, words: str) -> Any:
    """What a command prints. ``--json`` goes before what is no option any more."""
    before, dashes, after = words.partition("-- ")
    rest = [dashes.strip(), after] if dashes else []
    got = goclaw(*name.split(), "--json", *before.split(), *rest)
    assert got.code == 0, got.err
    return json.loads(got.out)


@pytest.mark.parametrize("name", GATEWAY)
def test_documents_can_be_read(goclaw: Shell, gateway: ThreadGateway, name: str) -> None:
    assert isinstance(document(goclaw, name, GATEWAY[name]), dict | list)


@pytest.mark.parametrize("name", GATEWAY)
def test_a_table_can_be_shown_whole(
    goclaw: Shell, gateway: ThreadGateway, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    out = goclaw(*name.split(), *GATEWAY[name].split()).out
    has_table = "\x1b" in out
    assert has_table <= ("--wide" in ALL[name].options)


@pytest.mark.parametrize("name", JOBS)
def test_documents_about_jobs(goclaw: Shell, cron: JobControl, tmp_path: Path, name: str) -> None:
    assert goclaw("cron", "add", "tea", "--every", "2h", "--", "drink").code == 0
    exported = goclaw("cron", "export")
    assert isinstance(json.loads(exported.out), list)
    (tmp_path / "jobs.json").write_text(exported.out)
    words = JOBS[name].replace("FILE", str(tmp_path / "jobs.json"))
    assert isinstance(document(goclaw, name, words), dict | list)


@pytest.mark.parametrize("name", DATABASE)
def test_the_document_of_a_command_on_the_database_can_be_read(
    goclaw: Shell, database: FakeControl, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async def migrate(_settings: Settings) -> list[str]:
        return ["0001_x.up.sql"]

    async def schema(_settings: Settings) -> Schema:
        return Schema(1, 2, ("0002_y",))

    monkeypatch.setattr(composition, "migrate", migrate)
    monkeypatch.setattr(composition, "schema", schema)
    got = document(goclaw, name, DATABASE[name])
    assert isinstance(got, dict)
    if name == "groups deny":
        assert (got["chat"], got["allowed"]) == ("-1001", False)
    assert goclaw.data("migrate", "--status")["pending"] == ["0002_y"]


def test_what_was_done_is_told_to_programs(goclaw: Shell, gateway: ThreadGateway) -> None:
    stopped = {"stopped": [fakes.RUN_ID], "dropped": ["d1", "d2"]}
    done = stopped | {"already_stopping": False, "unsent": 0, "asking": 0}
    assert goclaw.data("stop", "console", "--all") == done
    assert goclaw.data("sessions", "reset", "console") == {"reset": fakes.SESSION}
    assert goclaw.data("pairing", "revoke", "42")["sender"]["id"] == "42"
    first, again = goclaw.data("init"), goclaw.data("init")
    assert (set(first.values()), set(again.values())) == ({"wrote"}, {"kept"})
    assert str(goclaw.home / "goclaw.toml") in first


def test_the_page_has_exit_codes_and_options() -> None:
    codes = re.findall(r"^\| (\d+) \| (\w+) \| .+ \|$", GUIDE, re.MULTILINE)
    assert [(int(code), name) for code, name in codes] == [
        (code.value, code.name.lower()) for code in ExitCode
    ]
    assert [int(code) for code in re.findall(r"\b(\d+) ", EXPLAINED)] == list(ExitCode)
    for line in GUIDE.splitlines():
        if not line.startswith("$ goclaw "):
            continue
        words = line.removeprefix("$ goclaw ").partition(" | ")[0].split()
        name = next((n for n in (" ".join(words[:2]), words[0]) if n in ALL), None)
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        known = ALL[name].options if name else {"--install-completion", "--show-completion"}
        assert given <= known, line
