"""``goclaw config``: what it prints, and what it refuses (SPEC OPS-1, SEC-2)."""

from __future__ import annotations

import json
import re

import pytest

from goclaw_py.core.errors import GoclawError, SettingChanged, SettingError
from goclaw_py.operations.settings.models import SettingChange
from tests.unit.cli.conftest import Done, Shell, ThreadGateway, lines

TEXT = '[lanes]\nmain = 3\n[web]\ntoken = "hush-hush-hush-hush"\n[agents.main]\nmodel = "offline"\n'


@pytest.fixture
def file(goclaw: Shell) -> str:
    (goclaw.home / "goclaw.toml").write_text(TEXT)
    return str(goclaw.home / "goclaw.toml")


def test_each_setting_is_a_row(goclaw: Shell, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOCLAW_LANE_CRON", "9")
    got = goclaw("config", "show")
    assert (got.code, got.err) == (0, "")
    rows = {
        line.split()[0]: line.split(maxsplit=2)[1:]
        for line in map(str.rstrip, got.out.splitlines())
    }
    assert rows["lanes.main.size"] == ["3", f"{file}:2"]
    assert rows["lanes.cron.size"] == ["9", "environment variable GOCLAW_LANE_CRON"]
    assert rows["lanes.subagent.size"][1] == "default"
    assert rows["web.token"] == ["[hidden]", f"{file}:4"]
    assert "hush" not in got.out
    assert "queue.mode" not in rows


def test_settings_are_json_and_those_not_set_are_explained(goclaw: Shell, file: str) -> None:
    out = goclaw("config", "show", "queue", "--all").out
    assert "queue.capacity 10 default the maximum number of waiting messages" in " ".join(
        out.split()
    )
    assert "not set" not in goclaw("config", "show", "--all").out
    assert goclaw("config", "show", "queue").out.startswith("no settings in this section")
    _, one = goclaw("config", "show", "agents.main.max_concurrent").out.splitlines()
    assert one.split() == ["agents.main.max_concurrent", "no", "limit", "default"]
    assert goclaw("config", "show", "channels").code == 0
    found = {one["path"]: one for one in goclaw.data("config", "show")}
    assert found["lanes.main.size"] | {"about": ""} == {
        "path": "lanes.main.size",
        "value": 3,
        "kind": "file",
        "origin": f"{file}:2",
        "secret": False,
        "about": "",
        "in_force": "",
    }
    assert found["web.token"]["value"] == "[hidden]"


@pytest.mark.parametrize("section", ["lanes", "lanes.main", "agents.main"])
def test_one_section_shows_that_and_nothing_else(goclaw: Shell, file: str, section: str) -> None:
    _, *rows = goclaw("config", "show", section).out.splitlines()
    assert rows
    for row in rows:
        assert (row.split()[0] + ".").startswith(f"{section}.")


@pytest.mark.parametrize("section", ["lane", "lanes.", "agents.mani", " ", "lanse"])
def test_an_unknown_section_is_wrong_usage(goclaw: Shell, file: str, section: str) -> None:
    got = goclaw("config", "show", section)
    assert (got.code, got.out) == (2, "")
    assert ("did you mean lanes?" in got.err) == (section in ("lane", "lanes.", "lanse"))


def test_wrong_settings_are_told(goclaw: Shell) -> None:
    (goclaw.home / "goclaw.toml").write_text("[lanes]\nmain = 0\n")
    for verb in ("show", "check"):
        got = goclaw("config", verb)
        assert (got.code, got.out) == (2, "")
        assert "lanes.main.size = 0: must be a whole number" in got.err
    # What only a channel can judge is checked, too.
    (goclaw.home / "goclaw.toml").write_text('[channels.telegram]\ntoken = "x"\n')
    got = goclaw("config", "check")
    assert got.code == 2
    assert "channels.telegram.token = [hidden]" in got.err


def test_the_path_is_one_line(goclaw: Shell, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert goclaw("config", "path") == Done(0, f"{file}\n", "")
    (goclaw.home / "goclaw.toml").unlink()
    got = goclaw("config", "path")
    assert (got.out, "goclaw init" in got.err) == (f"{file}\n", True)
    monkeypatch.setenv("GOCLAW_CONFIG", "/x/y.toml")
    found = goclaw.data("config", "path")
    assert (found["file"], found["origin"]) == ("/x/y.toml", "environment variable GOCLAW_CONFIG")
    found = goclaw.data("--config", "/z.toml", "config", "path")
    assert (found["file"], found["exists"], found["origin"]) == ("/z.toml", False, "--config")


def test_a_file_that_is_right_is_said_to_be(goclaw: Shell, file: str) -> None:
    assert goclaw("config", "check") == Done(0, f"{file}: no errors\n", "")


def test_a_model_without_its_key_is_no_error_but_is_said(
    goclaw: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``goclaw init``, ``run``, ``status`` and ``why`` do: the gateway starts all the same."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    other = goclaw.home / "new.toml"
    other.write_text('[agents.main]\nmodel = "openai:gpt-4o"\n')
    got = goclaw("config", "check", str(other))
    assert (got.code, got.out) == (0, f"{other}: no errors\n")
    assert got.err.startswith("warning: openai:gpt-4o: no API key is set")
    assert json.loads(goclaw("config", "check", str(other), "--json").out)["ok"]


def test_another_file_is_checked_without_being_used(goclaw: Shell, file: str) -> None:
    other = goclaw.home / "new.toml"
    other.write_text('[lanes]\nmain = "x"\n[log]\nlevel = "loud"\n')
    got = goclaw("config", "check", str(other))
    assert got.code == 2
    assert [line.split(":")[3].split()[0] for line in got.err.splitlines()] == [
        "lanes.main.size",
        "log.level",
    ]
    found = json.loads(goclaw("config", "check", str(other), "--json").out)
    assert (found["file"], found["ok"], len(found["errors"])) == (str(other), False, 2)


@pytest.mark.parametrize("text", ["[lanes", None])
def test_a_file_that_cannot_be_read_is_one_mistake(goclaw: Shell, text: str | None) -> None:
    file = goclaw.home / "bad.toml"
    if text is not None:
        file.write_text(text)
    got = goclaw("config", "check", str(file))
    assert (got.code, got.err.count("\n")) == (2, 1)


# ---------------------------------------------------------------------- edits at run time


def test_a_setting_is_set_and_reset(goclaw: Shell, gateway: ThreadGateway) -> None:
    """SPEC OPS-11."""
    got = goclaw("config", "set", "lanes.main.size", "5")
    assert (got.code, got.out) == (0, "lanes.main.size: 5 (before: 4)\n")
    got = goclaw("config", "reset", "lanes.main.size")
    assert (got.code, got.out) == (0, "lanes.main.size: not set (before: 5)\n")
    sent = [(change.path, change.value, change.version) for change in changes(gateway)]
    assert sent == [("lanes.main.size", "5", None), ("lanes.main.size", None, None)]
    assert {source for _, source in gateway.control.settings.changes} == {"command line"}


def test_a_model_without_its_key_is_warned_of(
    goclaw: Shell, gateway: ThreadGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (goclaw.home / "goclaw.toml").write_text('[agents.main]\nmodel = "openai:gpt-4o"\n')
    got = goclaw("config", "set", "agents.main.model", "openai:gpt-4o")
    assert got.err.startswith("warning: openai:gpt-4o: no API key is set, as seen from here; set ")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert goclaw("config", "set", "agents.main.model", "openai:gpt-4o").err == ""


def test_a_size_that_a_command_has_given_is_beside_the_settings(
    goclaw: Shell, gateway: ThreadGateway
) -> None:
    (goclaw.home / "goclaw.toml").write_text("[lanes.main]\nsize = 77\n")
    note = r"note: lane main has size \d+ now, by goclaw lanes set\n"
    assert re.search(note, goclaw("config", "show", "lanes").err)
    assert re.search(note, goclaw("config", "set", "lanes.main.size", "77").err)
    assert "note" not in goclaw("config", "show", "web").err


def changes(gateway: ThreadGateway) -> list[SettingChange]:
    return [change for made, _ in gateway.control.settings.changes for change in made]


@pytest.mark.parametrize(("failure", "words"), [
    (SettingError("lanes.main.size", "x", "must be a whole number"), "must be a whole number"),
    (SettingChanged("other settings are being changed right now"), "being changed right now"),
])  # fmt: skip
def test_a_refused_edit_is_told(
    goclaw: Shell, gateway: ThreadGateway, failure: GoclawError, words: str
) -> None:
    gateway.control.settings.failure = failure
    got = goclaw("config", "set", "lanes.main.size", "x")
    assert got.code != 0
    assert words in got.err
    assert got.out == ""


def test_edits_that_a_gateway_knows_are_shown(goclaw: Shell, gateway: ThreadGateway) -> None:
    rows = lines(goclaw("config", "show", "lanes.main").out)
    assert rows[1].startswith("lanes.main.size 4 edited on 2026-01-02")
    assert "lanes.subagent.size 4 default" in lines(goclaw("config", "show", "lanes").out)


def test_the_history_of_edits_is_a_table(goclaw: Shell, gateway: ThreadGateway) -> None:
    got = goclaw("config", "history", "--limit", "2")
    head, first, second = lines(got.out)
    assert head == "WHEN SETTING BEFORE AFTER FROM"
    assert "lanes.main.size not set <img" in first
    assert second.startswith("2026-01-02 03:04")
    assert "\x1b" not in got.out


def test_without_a_database_nothing_is_set(goclaw: Shell) -> None:
    got = goclaw("config", "set", "lanes.main.size", "5")
    assert got.code == 3
    assert "there is no database" in got.err


# ---------------------------------------------------------------------- what run would refuse

TOOLS = "[agents.main.tools]\n"

_SAME_BOT = "channels.telegram.accounts.b = 'b': has the same bot as channels.telegram.accounts.a"


def _same_bot(*webhooks: str) -> str:
    """Return settings with two accounts of one bot; one without a webhook polls."""
    return "".join(
        f'[channels.telegram.accounts.{name}]\ntoken = "42:{name * 35}"\nwebhook_url = "{url}"\n'
        for name, url in zip("ab", webhooks, strict=True)
    )


@pytest.mark.parametrize(("text", "key"), [
    (f'{TOOLS}send_to = ["*"]', "agents.main.tools.send_to"),
    (f'{TOOLS}send_to = ["telegram:5"]', "agents.main.tools.send_to"),
    (f'{TOOLS}allow = ["shell_please"]', "agents.main.tools.allow"),
    (f'{TOOLS}allow = ["send_message"]', "agents.main.tools.allow"),
    (f'{TOOLS}deny = ["shell_please"]', "agents.main.tools.deny"),
    (f'{TOOLS}delegates = ["main"]', "agents.main.tools.delegates"),
    ('[channels.console]\nagent = "nobody"', "channels.console"),
    ('[channels.console.chats.5]\nagent = "nobody"', "channels.console"),
    ('[channels.pigeon]\nagent = "main"', "channels.pigeon"),
    ('[heartbeat]\nmodel = "openai:gpt-4o"', "heartbeat.model"),
    ('[agents.main]\nmodel = "python:no.such:loop"', "agents.main.model"),
    ('[agents.main]\nmodel = "command"', "agents.main.command.run"),
    ('[sources.bugs]\nkind = "github"\nrepo = "a/b"', "sources.bugs"),
    ('[web]\ntoken_file = "/nowhere"', "web.token_file"),
    (_same_bot("", ""), _SAME_BOT),
    (_same_bot("https://a.example/a", "https://b.example/b"), _SAME_BOT),
    (_same_bot("https://a.example/a", ""), _SAME_BOT),
    (_same_bot("", "https://b.example/b"), _SAME_BOT),
    ('[database]\nurl = "postgresql://u@h/x?sslmode=sometimes"', "database.url"),
    ('[database]\nurl = "postgresql://u@h:99999/x"', "database.url"),
    ('[state]\nfolder = "goclaw.toml"', "state.folder"),
    ('[agents.main]\nworkspace = "goclaw.toml"', "agents.main.workspace"),
    ('[log]\nfile = "."', "log.file"),
    ('[sources.bugs]\nkind = "github"\nrepo = "a/b"\ntoken_file = "/nowhere"', "sources.bugs"),
])  # fmt: skip
def test_what_a_gateway_would_refuse_is_an_error(goclaw: Shell, text: str, key: str) -> None:
    """SPEC OPS-1: the check builds everything that ``goclaw run`` builds."""
    file = goclaw.home / "goclaw.toml"
    file.write_text(text + "\n")
    got = goclaw("config", "check")
    assert (got.code, got.out) == (2, "")
    assert key in got.err
    found = json.loads(goclaw("config", "check", "--json").out)
    assert (found["ok"], len(found["errors"])) == (False, 1)
