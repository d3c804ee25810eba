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

from goclaw_py.cli import composition, tree
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
            if not each.hidden:
                yield from below(each, (*path, name))

    return below(typer.main.get_command(app), ())


ALL = {command.name: command for command in commands()}

GO_ON = {"run", "chat", "top"}
"""They are for a person until the end; there is no answer to make a document of."""

WATCHED = {
    *("status", "lanes", "nodes list", "queue", "runs list"),
    *("deliveries incoming list", "deliveries list", "jobs list", "approvals list"),
    "heartbeat status",
}

VERBS = {
    *("list", "show", "add", "edit", "delete", "set", "pause", "resume", "run", "retry", "drop"),
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
    *("agents", "models", "channels"),
    *("runs", "activity", "events", "grants", "sign-ins", "tokens"),
}
"""Second words, or third ones of groups below a group.

The last line are lists of something else than the noun before them.
"""


@pytest.mark.parametrize("name", ALL)
def test_every_command_says_what_it_does_and_what_each_word_means(name: str) -> None:
    command = ALL[name]
    assert re.match(r"[A-Z].*[.:]", command.help), "a sentence"
    assert "SPEC" not in command.help
    assert [each.name for each in command.parameters if not each.help] == []
    assert ("--json" in command.options) == (name not in GO_ON)
    if " " in name:
        verb = name.partition(" ")[2]
        assert re.sub("^(groups|web|incoming) ", "", verb) in VERBS


def test_help_is_told_for_every_command(goclaw: Shell) -> None:
    assert {"status", "jobs add", "lanes", "lanes set", "config show"} <= ALL.keys()
    for name in ALL:
        got = goclaw(*name.split(), "-h")
        assert (got.code, got.err) == (0, ""), name
        assert got.out.startswith(f"Usage: goclaw {name} "), name
        assert "[[" not in got.out.splitlines()[0], name
        assert "-h, --help" in got.out, name


_PYTHON = re.compile(
    r"Optional|NoneType|None\b|\bTrue\b|\bFalse\b|timedelta|datetime|<class|\bPath\b|range>"
    r"|\b(dict|list|tuple|set)\[|<(str|int|float|bool|path|file|list)\b"
)


def test_no_help_has_types_of_python(goclaw: Shell) -> None:
    names = ["", *ALL, *(name.rpartition(" ")[0] for name in ALL), *tree.OLD_NAMES]
    helps = {name: goclaw(*name.split(), "--help").out for name in dict.fromkeys(names)}
    assert len(helps) > 100
    found = {name: match[0] for name, out in helps.items() if (match := _PYTHON.search(out))}
    assert found == {}


def test_the_help_lists_commands_by_what_they_are_for(goclaw: Shell) -> None:
    out = goclaw("--help").out
    assert re.findall(r"^(\w.*):$", out, re.MULTILINE) == ["Options", *tree.SECTIONS]
    listed = [name for section in tree.SECTIONS.values() for name in section]
    assert re.findall(r"^  ([a-z]+)  ", out, re.MULTILINE) == listed
    assert len(listed) == len(set(listed)) <= 30


def old_commands() -> Iterator[tuple[str, str, Any, Any]]:
    """The old and the new name of each command that has both, and what they stand for."""
    top: Any = typer.main.get_command(app)

    def below(old: str, new: str, was: Any, now: Any) -> Iterator[tuple[str, str, Any, Any]]:
        yield old, new, was, now
        for name, each in getattr(was, "commands", {}).items():
            if hasattr(now, "commands"):
                yield from below(f"{old} {name}", f"{new} {name}", each, now.commands[name])
            else:
                yield from below(f"{old} {name}", new, each, now)

    for old, (new, _) in tree.OLD_NAMES.items():
        now = top
        for word in new.split():
            now = now.commands[word]
        yield from below(old, new, top.old_commands[old], now)


@pytest.mark.parametrize(("old", "new", "was", "now"), list(old_commands()))
def test_an_old_name_has_the_options_of_the_new_one(old: str, new: str, was: Any, now: Any) -> None:
    """Scripts of users go on working until 1.0."""
    assert was.help.endswith(f"\n\nOld name of goclaw {new}; it works until 1.0.")
    if not hasattr(was, "commands"):
        assert [(one.name, one.opts, one.required) for one in was.params] == [
            (one.name, one.opts, one.required) for one in now.params
        ]


@pytest.mark.parametrize(("old", "new"), list({
    "cron next": "jobs next",
    "pairing list": "people list",
    "pairing people": "people activity",
    "groups list": "people groups list",
    "web list": "people web list",
    "inbox list": "deliveries incoming list",
    "outbox list": "deliveries list",
    "agents list": "config agents",
    "models list": "config models",
    "channels list": "config channels",
}.items()))  # fmt: skip
def test_an_old_name_prints_the_same(
    goclaw: Shell, gateway: ThreadGateway, old: str, new: str
) -> None:
    for options in ([], ["--json"]):
        assert goclaw(*old.split(), *options) == goclaw(*new.split(), *options)


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
        *(
            "status",
            "lanes",
            "nodes list",
            "sessions list",
            "runs list",
            "deliveries incoming list",
        ),
        *("deliveries list", "heartbeat status", "heartbeat why", "heartbeat runs", "people list"),
        *(
            "people activity",
            "people groups list",
            "config path",
            "config check",
            "version",
            "init",
        ),
        "audit",
    ],
    "",
) | {
    "send": "console hello --queue",
    "stop": "console",
    "lanes set": "main 3",
    "nodes show": "here",
    "nodes drain": "here --yes",
    "queue": "console",
    "event": "the build is red",
    "sessions show": "console",
    "sessions reset": "console --yes",
    "sessions rename": "console Plans",
    "sessions delete": "console --yes",
    "sessions fork": "console",
    "runs": "--active",
    "runs show": "0190-a",
    "deliveries incoming show": "8",
    "deliveries incoming retry": "8",
    "deliveries incoming drop": "8 --yes",
    "deliveries show": str(fakes.DEAD.id),
    "deliveries retry": str(fakes.DEAD.id),
    "deliveries drop": f"{fakes.DEAD.id} --yes",
    "heartbeat run": "main --dry-run",
    "heartbeat on": "main",
    "heartbeat off": "main",
    "heartbeat auto": "main",
    "heartbeat mute": "30m",
    "heartbeat show": "main",
    "heartbeat add": "is the build green?",
    "heartbeat done": "1",
    "heartbeat events": "main",
    "people approve": "ABCD2345 --yes",
    "people revoke": "42 --yes",
    "people deny": "50",
    "people allow": "50",
    "people web invite": "ann",
    "people web list": "",
    "people web revoke": "42",
    "people web sign-ins": "",
    "people web sign-out": "6f2a90c1d4e8",
    "people web tokens": "",
    "people web tokens create": "ci --role operator --days 90",
    "people web tokens revoke": "grafana",
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
    "config agents": "",
    "config models": "",
    "config channels": "",
}
"""What each command is called with; with a gateway, or without anything."""

JOBS = {
    "jobs list": "",
    "jobs show": "tea",
    "jobs add": "water --every 2h -- drink",
    "jobs edit": "tea --every 3h",
    "jobs pause": "tea",
    "jobs resume": "tea",
    "jobs runs": "",
    "jobs next": "",
    "jobs delete": "tea --yes",
    "jobs import": "FILE --dry-run",
    "jobs export": "",
    "simulate": "--days 1",
}
DATABASE = {"migrate": "", "people groups allow": "-1001", "people groups deny": "-1001"}
ELSEWHERE = {
    # What they need is more than a fake: see their own tests.
    *("jobs run", "runs follow", "usage", "backup", "restore", "doctor", "open", "logs"),
    *("people web tokens show", "audit export"),
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
    assert goclaw("jobs", "add", "tea", "--every", "2h", "--", "drink").code == 0
    exported = goclaw("jobs", "export")
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
    if name == "people groups deny":
        assert (got["chat"], got["allowed"]) == ("-1001", False)
    assert goclaw.data("migrate", "--status")["pending"] == ["0002_y"]


def test_what_was_done_is_told_to_programs(goclaw: Shell, gateway: ThreadGateway) -> None:
    stopped = {"stopped": [fakes.RUN_ID], "dropped": ["d1", "d2"]}
    done = stopped | {"already_stopping": False, "unsent": 0, "asking": 0}
    assert goclaw.data("stop", "console", "--all") == done
    assert goclaw.data("sessions", "reset", "console", "--yes") == {"reset": fakes.SESSION}
    assert goclaw.data("people", "revoke", "42", "--yes")["sender"]["id"] == "42"
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
