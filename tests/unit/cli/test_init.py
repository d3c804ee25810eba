"""The questions of ``goclaw init``, and the files that it writes (SPEC OPS-10)."""

from __future__ import annotations

import asyncio
import errno
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from goclaw_py.cli import composition
from goclaw_py.cli.system import local_servers
from goclaw_py.cli.system.init import next_steps
from goclaw_py.cli.system.local_servers import LocalModel, LocalServer, find_local_models
from goclaw_py.cli.system.questions import Given, SetupQuestions
from goclaw_py.cli.system.settings_file import Answers, replace_file, settings_text
from goclaw_py.config import Settings, load
from goclaw_py.core.errors import AgentError, ChannelRefused, GoclawError, NotSent, SettingError
from tests.unit.cli.conftest import Shell, lines

TOKEN = "123456789:AAbbCCddEEffGGhhIIjj"
KEY = "sk-0123456789abcdef"
ENV = {"GOCLAW_HOME": "/nowhere", "TZ": "Europe/Berlin"}


class Script:
    """A person whose answers are written down. It notes what it was asked and told."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.hidden: list[str] = []
        self.told: list[str] = []

    def read(self, question: str, *, hidden: bool = False) -> str:
        (self.hidden if hidden else self.asked).append(question)
        return self._answers.pop(0)

    def say(self, line: str) -> None:
        self.told.append(line)

    @property
    def refusals(self) -> list[str]:
        start = "That "
        return [
            line.removeprefix(start).removeprefix("does not work: ")
            for line in self.told
            if line.startswith(start)
        ]

    @property
    def is_over(self) -> bool:
        return not self._answers


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Telegram accepts the token, and the model the key, no others."""

    async def bot_name(settings: Settings) -> str:
        if settings.channels["telegram"].options["token"] != TOKEN:
            raise ChannelRefused("Telegram does not accept this bot token")
        return "AnnBot"

    async def probe_model(settings: Settings) -> None:
        key = settings.agents["main"].api_key
        if key is None or key.get_secret_value() != KEY:
            raise AgentError("", "the provider refuses the key")

    async def find_local_models() -> list[LocalModel]:
        return []

    monkeypatch.setattr(local_servers, "find_local_models", find_local_models)
    monkeypatch.setattr(composition, "bot_name", bot_name)
    monkeypatch.setattr(composition, "probe_model", probe_model)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def ask(
    *answers: str, env: Mapping[str, str] = ENV, **given: Any
) -> tuple[Answers, Script, SetupQuestions]:
    script = Script(*answers)
    questions = SetupQuestions(script, Given(**given), env)
    found = questions.ask()
    assert script.is_over
    return found, script, questions


def test_enter_accepts_the_defaults(servers: None) -> None:
    found, script, questions = ask("", "", "")
    assert found == Answers(timezone="Europe/Berlin")
    assert questions.bot == ""
    assert script.refusals == []
    # Without a bot it does not ask who may talk to it.
    assert [question.partition(" ")[0] for question in script.asked] == ["Model,", "Time"]


def test_answers_are_tried_and_asked_for_again(servers: None) -> None:
    found, script, questions = ask(
        *("no token", TOKEN.replace("A", "X"), TOKEN),
        *("openai", "openai:gpt-4o", "", "sk-wrong", "openai:gpt-4o", KEY),
        *("CET", "", "me", "12, 34"),
    )
    assert found == Answers(
        token=TOKEN,
        model="openai:gpt-4o",
        key=KEY,
        timezone="Europe/Berlin",
        allow=("12", "34"),
    )
    assert questions.bot == "AnnBot"
    assert [refusal[:30] for refusal in script.refusals] == [
        "is not a bot token, for exampl",
        "Telegram does not accept this ",
        "must be PROVIDER:NAME, such as",
        "this model needs a key",
        "the provider refuses the key",
        "must be an IANA time zone such",
        "must be numbers separated by c",
    ]
    assert {question.partition(" ")[0] for question in script.hidden} == {"Telegram", "API"}
    assert KEY not in repr(found)
    assert TOKEN not in repr(found)
    assert not [line for line in script.told if TOKEN in line or KEY in line or "sk-wrong" in line]


@pytest.mark.parametrize("evil", ["offline\x1b[2J", "off\nline", "a\u202eb", "\udcff", "\x00"])
def test_characters_that_cannot_be_seen_are_refused(servers: None, evil: str) -> None:
    for answers in ((evil, "", "", ""), ("", evil, "", ""), ("", "", evil, "")):
        _, script, _ = ask(*answers)
        assert script.refusals == ["has characters that cannot be printed"]


def test_a_quote_ends_no_string_of_the_file(tmp_path: Path) -> None:
    model = 'openai:"\\ # \u00fc\U0001f600\n[lanes]'
    file = tmp_path / "goclaw.toml"
    file.write_text(settings_text(Answers(model=model)), encoding="utf-8")
    assert load(file, {"GOCLAW_HOME": str(tmp_path)}).agents["main"].model == model


@pytest.mark.parametrize("option", ["key_file", "base_url"])
def test_what_belongs_to_a_model_needs_one(servers: None, tmp_path: Path, option: str) -> None:
    """It was dropped without a word."""
    (tmp_path / "key").write_text(KEY)
    given: dict[str, Any] = {"key_file": tmp_path / "key", "base_url": "http://127.0.0.1:1/v1"}
    for model in (None, "offline"):
        with pytest.raises(typer.BadParameter, match="needs --model"):
            SetupQuestions(None, Given(model=model, **{option: given[option]}), {}).ask()


def test_what_the_command_line_says_is_not_asked(servers: None, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "key").write_text(KEY)
    options: dict[str, Any] = {
        "token_file": tmp_path / "token",
        "model": "openai:gpt-4o",
        "key_file": tmp_path / "key",
        "timezone": "UTC",
        "allow": "12",
    }
    found, script, _ = ask(**options)
    assert (script.asked, script.hidden) == ([], [])
    assert script.told == ["The bot is @AnnBot.", "The model answers."]
    assert found == Answers(TOKEN, "openai:gpt-4o", "", KEY, "UTC", ("12",))
    with pytest.raises(GoclawError, match="add --key-file FILE, or set OPENAI_API_KEY"):
        SetupQuestions(None, Given(**options | {"key_file": None}), {}).ask()
    # A wrong key of a file is not asked for again and again.
    (tmp_path / "key").write_text("sk-wrong")
    with pytest.raises(AgentError, match="refuses the key"):
        ask(**options)
    # But one that was typed is.
    found, script, _ = ask("sk-wrong", KEY, **options | {"key_file": None})
    assert script.refusals == ["the provider refuses the key"]
    assert found.key == KEY


@pytest.mark.parametrize(("given", "expected"), [
    ({"timezone": "Mars"}, "IANA time zone"),
    ({"model": "nothing:at-all"}, "must be PROVIDER:NAME"),
    ({"token_file": Path("/nowhere/at/all")}, "cannot be read: No such file"),
    ({"token_file": Path(os.devnull)}, "is empty"),
    ({"allow": "12"}, "needs --token-file"),
    ({"model": "openai:x", "base_url": "ftp://x"}, "http"),
])  # fmt: skip
def test_wrong_options_are_refused(servers: None, given: dict[str, Any], expected: str) -> None:
    with pytest.raises(typer.BadParameter, match=expected):
        SetupQuestions(None, Given(**given), ENV).ask()


def test_tests_can_be_left_out(servers: None) -> None:
    found, script, questions = ask(TOKEN[:-1], "openai:gpt-4o", "sk-wrong", "", "", test=False)
    assert (found.token, found.key) == (TOKEN[:-1], "sk-wrong")
    assert (questions.bot, script.refusals) == ("", [])


def test_secrets_of_the_environment(servers: None, tmp_path: Path) -> None:
    """The key is copied if the person agrees. A second token would be an error later."""
    both = {"GOCLAW_TELEGRAM_TOKEN": TOKEN, "OPENAI_API_KEY": KEY}
    found, script, questions = ask("openai:gpt-4o", "", "", "", env=ENV | both)
    assert (found.token, found.key, questions.bot) == ("", KEY, "AnnBot")
    assert "a copy of the one in OPENAI_API_KEY" in script.hidden[0]
    (tmp_path / "token").write_text(TOKEN)
    with pytest.raises(typer.BadParameter, match="environment also has a token"):
        SetupQuestions(None, Given(token_file=tmp_path / "token"), ENV | both).ask()
    wrong = {"GOCLAW_LANE_MAIN": "0"}
    with pytest.raises(SettingError, match="GOCLAW_LANE_MAIN"):
        SetupQuestions(Script(), Given(), ENV | wrong)


def test_the_address_of_a_server_is_asked_where_there_is_no_default(servers: None) -> None:
    url = "http://127.0.0.1:11434/v1"
    found, script, _ = ask("", "ollama:llama", "", "localhost", url, "", test=False)
    assert (found.model, found.base_url, found.key) == ("ollama:llama", url, "")
    assert len(script.refusals) == 2


# ---------------------------------------------------------------------------- without a network


@pytest.fixture
def away(servers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing outside of this machine can be reached."""

    async def bot_name(settings: Settings) -> str:
        raise NotSent("no connection to the Bot API")

    async def probe_model(settings: Settings) -> None:
        raise AgentError("", "no connection", retryable=True)

    monkeypatch.setattr(composition, "bot_name", bot_name)
    monkeypatch.setattr(composition, "probe_model", probe_model)


def test_what_cannot_be_tested_may_be_kept(away: None) -> None:
    found, script, questions = ask(TOKEN, "y", "openai:gpt-4o", KEY, "maybe", "yes", "", "")
    assert (found.token, found.model, found.key) == (TOKEN, "openai:gpt-4o", KEY)
    assert (questions.bot, questions.has_bot) == ("", True)
    assert script.asked.count("Keep it untested? [y/N]: ") == 3
    start = "It cannot be tested now: "
    assert [line for line in script.told if line.startswith(start)] == [
        f"{start}{reason}." for reason in ("no connection to the Bot API", "no connection")
    ]


def test_by_default_it_is_asked_for_again(away: None) -> None:
    found, script, _ = ask(TOKEN, "", "", "openai:gpt-4o", KEY, "n", "offline", "")
    assert (found.token, found.model) == ("", "")
    assert script.refusals == []  # the reasons were above the questions


@pytest.mark.parametrize("wrong", [{"model": "bogus:1"}, {"timezone": "Mars"}])
def test_a_wrong_option_is_refused_before_the_first_question(wrong: dict[str, str]) -> None:
    script = Script()
    with pytest.raises(typer.BadParameter):
        SetupQuestions(script, Given(**wrong), ENV).ask()  # type: ignore[arg-type]
    assert script.asked == []


def test_without_a_terminal_nothing_is_kept_untested(away: None, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    with pytest.raises(GoclawError, match=r"no connection to .* To keep it untested: --no-test"):
        SetupQuestions(None, Given(token_file=tmp_path / "token"), ENV).ask()


def test_the_name_of_a_class_is_not_shown(servers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    async def probe_model(settings: Settings) -> None:
        raise AgentError("", "ModelConnectionError: Connection error.", retryable=True)

    monkeypatch.setattr(composition, "probe_model", probe_model)
    url = "http://127.0.0.1:1/v1"
    _, script, _ = ask("", "", "y", "", model="openai:x", base_url=url)
    assert f"It cannot be tested now: {url}: Connection error." in script.told


def test_a_local_model_is_chosen_by_number_or_name(local: None) -> None:
    found, script, _ = ask("", "3", "qwen3:8b", "")
    assert script.refusals == ["there is no number 3: choose 1 or 2"]
    assert found.model == "ollama:qwen3:8b"
    assert found.base_url == OLLAMA.base_url


# ---------------------------------------------------------------------------- this machine

OLLAMA = LocalServer("Ollama", "ollama", 11434)


@pytest.fixture
def local(servers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    async def find() -> list[LocalModel]:
        return [LocalModel(OLLAMA, "llama3"), LocalModel(OLLAMA, "qwen3:8b")]

    async def probe_model(settings: Settings) -> None:
        if settings.agents["main"].model != "ollama:qwen3:8b":
            raise AgentError("", "out of memory")

    monkeypatch.setattr(local_servers, "find_local_models", find)
    monkeypatch.setattr(composition, "probe_model", probe_model)


def test_models_of_this_machine_are_chosen_by_number(local: None) -> None:
    found, script, _ = ask("", "1", "3", "2", "")
    assert (found.model, found.base_url) == ("ollama:qwen3:8b", OLLAMA.base_url)
    assert script.told[1:4] == [
        "Models on this machine:",
        "  1  ollama:llama3    Ollama, http://127.0.0.1:11434/v1",
        "  2  ollama:qwen3:8b  Ollama, http://127.0.0.1:11434/v1",
    ]
    assert script.refusals[0] == "out of memory"
    assert script.asked[1].endswith("[1]: ")
    assert len(script.refusals) == 2


def test_another_model_can_be_typed(local: None) -> None:
    found, script, _ = ask("", "offline", "")
    assert (found.model, found.base_url, script.refusals) == ("", "", [])


@pytest.mark.real_time
@pytest.mark.parametrize(("body", "names"), [
    (b'{"data": [{"id": "a"}, {"id": "b/c"}]}', ["a", "b/c"]),
    (b'{"data": [{"id": "\\u001b[2J"}, {"id": 7}, {"id": ""}, {"id": "b"}]}', ["b"]),
    (b'{"data": {}}', []),
    (b"[1]", []),
    (b"<html>", []),
    (b" " * 2_000_000, []),
    (None, []),
])  # fmt: skip
async def test_a_server_may_answer_anything(body: bytes | None, names: list[str]) -> None:
    """Another program may listen there: what it says is not trusted, and not waited for."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if body is not None:
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
        await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        found = await find_local_models([LocalServer("test", "openai", port)])
        assert [model.name for model in found] == names
    assert await find_local_models([LocalServer("closed", "openai", port)]) == []


def test_the_next_steps_are_those_of_the_answers(servers: None) -> None:
    def steps(*answers: str, is_running: bool = False) -> list[str]:
        *_, questions = ask(*answers)
        return [command for command, _ in next_steps(questions, is_running=is_running)]

    assert steps("", "", "") == ["goclaw run", "goclaw open", "goclaw doctor"]
    link = "https://t.me/AnnBot"
    approve = "goclaw people approve CODE"
    assert steps(TOKEN, "", "", "") == ["goclaw run --no-console", link, approve]
    assert steps(TOKEN, "", "", "12", is_running=True) == ["goclaw status", link, "goclaw open"]


def test_the_written_file_is_the_example_with_the_answers(tmp_path: Path) -> None:
    url = "https://example.com/v1"
    answers = Answers(TOKEN, "openai:gpt-4o", url, KEY, "Europe/Berlin", ("12", "34"))
    text = settings_text(answers)
    tables = {name: table for name, table in tomllib.loads(text).items() if table}
    agent = {"model": "openai:gpt-4o", "base_url": url, "api_key_file": "model-key"}
    telegram = {"token_file": "telegram-token", "direct": "allowlist", "allow": ["12", "34"]}
    assert tables == {
        "agents": {"main": agent},
        "channels": {"telegram": telegram},
        "scheduler": {"timezone": "Europe/Berlin"},
    }
    assert len(text.splitlines()) == len(settings_text(Answers()).splitlines())
    assert not [secret for secret in (TOKEN, KEY) if secret in text]


def test_a_file_is_replaced_as_a_whole_and_its_copy_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.toml"
    assert replace_file(file, "none") is None
    assert file.stat().st_mode & 0o777 == 0o600
    assert replace_file(file, "one") is None
    file.chmod(0o644)
    assert replace_file(file, "one", back_up=True) is None, "the same needs no copy"
    copies = [replace_file(file, text, back_up=True) for text in ("two", "three")]
    assert copies == [tmp_path / "a.toml.bak", tmp_path / "a.toml.bak1"]
    assert [copy.read_text() for copy in copies if copy] == ["one", "two"]
    assert {copy.stat().st_mode & 0o777 for copy in copies if copy} == {0o600}

    def refuse(new: Path) -> None:
        assert new.read_text() == "four"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(file, "four", refuse, back_up=True)
    assert file.read_text() == "three"
    assert len(list(tmp_path.iterdir())) == 3
    monkeypatch.setattr("tempfile.mkstemp", no_room)
    with pytest.raises(OSError, match="Read-only") as caught:
        replace_file(file, "five")
    assert caught.value.filename == str(file)


def no_room(**_given: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system", "/x/.a.toml.tmp")


def test_a_link_to_the_settings_stays_one(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    link = tmp_path / "goclaw.toml"
    link.symlink_to(tmp_path / "dotfiles" / "goclaw.toml")
    replace_file(link, "one")
    assert link.is_symlink()
    assert (tmp_path / "dotfiles" / "goclaw.toml").read_text() == "one"


def test_nothing_is_replaced_without_force(goclaw: Shell) -> None:
    file = goclaw.home / "goclaw.toml"
    assert goclaw("init", "--timezone", "Europe/Paris").code == 0
    assert load(file).scheduler.timezone == "Europe/Paris"
    refused = goclaw("init", "--timezone", "UTC")
    assert (refused.code, "init --force" in refused.err) == (1, True)
    assert load(file).scheduler.timezone == "Europe/Paris"
    again = goclaw("init", "--timezone", "UTC", "--force")
    assert again.code == 0
    assert f"copied {file}.bak" in again.out
    assert load(file).scheduler.timezone == "UTC"
    assert load(goclaw.home / "goclaw.toml.bak").scheduler.timezone == "Europe/Paris"
    # A file that is wrong can be replaced, too.
    file.write_text("[lanes]\nmain = 0\n")
    assert goclaw("init").code == 2
    assert goclaw("init", "--force").code == 0
    assert goclaw("config", "check").code == 0


def test_a_model_whose_key_is_missing_is_said_to_be(
    goclaw: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    got = goclaw("init", "--model", "openai:gpt-4o", "--no-test")
    assert got.code == 0
    assert got.err.startswith("warning: openai:gpt-4o: no API key is set")
    assert goclaw("init", "--force").err == ""


def test_a_service_that_cannot_be_installed_does_not_undo_the_settings(
    goclaw: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(goclaw.home))
    monkeypatch.setenv("PATH", "/nowhere")
    got = goclaw("init", "--service")
    assert (got.code, "cannot be reached for this user" in got.err) == (1, True)
    assert lines(got.out)[-4:] == [
        "Next:",
        "1. goclaw run start the gateway, and chat here",
        "2. goclaw open open the dashboard in a browser",
        "3. goclaw doctor see what else can be set up, such as Telegram",
    ]
    assert (goclaw.home / "goclaw.toml").exists()


def test_a_wrong_option_writes_nothing(goclaw: Shell) -> None:
    wrong = goclaw("init", "--timezone", "Mars")
    assert wrong.code == 2
    assert "invalid value for --timezone: must be an IANA time zone" in wrong.err
    assert list(goclaw.home.iterdir()) == []
