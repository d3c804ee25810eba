"""The first run as a person meets it, from ``goclaw init`` to the first answer (SPEC OPS-10)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from goclaw_py.chat.access import access_texts
from tests.botapi.control import Control
from tests.e2e.loopback_model import Model
from tests.support.process import Home, home, telegram, wait_for
from tests.support.service_managers import ServiceManager, service_manager
from tests.unit.cli.processes import Person, person_at

ANN = 1001
TOKEN = "Telegram bot token"
MODEL = "Model, such as"
KEY = "API key of openai"
ZONE = "Time zone [Europe/Berlin]"
WHO = "Who may talk"


@pytest.fixture
def systemctl(tmp_path: Path) -> ServiceManager:
    return service_manager(tmp_path / "bin")


@pytest.fixture
def fresh(tmp_path: Path, api: Control, model: Model, systemctl: ServiceManager) -> Iterator[Home]:
    """A home without settings, in which Telegram is the emulator and OpenAI the model server."""
    own = telegram(api, OPENAI_BASE_URL=model.url, TZ="Europe/Berlin", TERM="dumb")
    del own["GOCLAW_TELEGRAM_TOKEN"]
    with home(tmp_path / "home", **own) as place:
        place.env["PATH"] = f"{systemctl.folder}:{place.env['PATH']}"
        place.env["LANG"] = "C.UTF-8"
        yield place


def answer(person: Person, question: str, text: str) -> str:
    """Wait for a question and answer it; returns what was shown before."""
    shown = person.sees(question)
    person.sees(": ")
    person.types(f"{text}\n")
    return shown


def test_a_person_answers_and_gets_a_bot_that_answers(
    fresh: Home, api: Control, model: Model, systemctl: ServiceManager
) -> None:
    answers = (
        (TOKEN, "123456789:AAnot-the-token-of-any-bot"),
        (TOKEN, api.token),
        (MODEL, "opanai:say OK"),
        (MODEL, "openai:status 401"),
        (KEY, "sk-wrong"),
        (MODEL, "openai:say hello"),
        (KEY, "sk-loopback"),
        (ZONE, "Europe/Berlim"),
        (ZONE, ""),
        (WHO, ""),
        ("service that starts at login?", "y"),
    )
    with person_at("init", env=fresh.env) as person:
        shown = "".join(answer(person, *one) for one in answers)
        code, rest = person.sees_it_end()
    shown += rest
    assert code == 0, shown
    for expected in (
        "does not accept this bot token",
        "The bot is @GoclawTestBot.",
        "did you mean openai:say OK?",
        "status_code: 401",
        "The model answers.",
        "did you mean Europe/Berlin, ",
        "https://t.me/GoclawTestBot",
        "\N{FULL BLOCK}",
    ):
        assert expected in shown
    for secret in (api.token, "sk-wrong", "sk-loopback"):
        assert secret not in shown
    for name, secret in {"telegram-token": api.token, "model-key": "sk-loopback"}.items():
        assert (fresh.folder / name).read_text() == f"{secret}\n"
        assert (fresh.folder / name).stat().st_mode & 0o777 == 0o600
    settings = tomllib.loads((fresh.folder / "goclaw.toml").read_text())
    assert settings["agents"]["main"] == {"model": "openai:say hello", "api_key_file": "model-key"}
    assert systemctl.calls[-1] == "systemctl --user restart goclaw.service"
    assert model.seen()[-1]["headers"]["authorization"] == "Bearer sk-loopback"

    assert "WRONG" not in fresh.goclaw("doctor")[1]
    fresh.start("--no-console")
    api.say(ANN, "are you there?")
    (greeting,) = wait_for(lambda: api.texts(ANN), "a pairing code")
    pairing = re.findall(r"\b[A-Z2-9]{8}\b", greeting)[0]
    assert fresh.goclaw("people", "approve", pairing)[0] == 0
    wait_for(lambda: api.texts(ANN)[1:] == [access_texts.WELCOME, "hello"], "greeting and answer")


@pytest.mark.smoke
def test_without_a_terminal_options_answer_and_nothing_is_asked(
    fresh: Home, api: Control, model: Model, systemctl: ServiceManager
) -> None:
    token, key = fresh.folder / "token", fresh.folder / "key"
    token.write_text("123456789:AAnot-the-token-of-any-bot\n")
    key.write_text("sk-loopback\n")
    words = ("init", "--token-file", str(token), "--key-file", str(key), "--model")
    code, output = fresh.goclaw(*words, "openai:say hello")
    assert (code, "does not accept this bot token" in output) == (1, True), output
    token.write_text(f"{api.token}\n")
    code, output = fresh.goclaw(*words, "openai:status 401")
    assert (code, "401" in output, "sk-loopback" in output) == (1, True, False), output
    fresh.env["OPENAI_BASE_URL"] = "http://127.0.0.1:9"
    code, output = fresh.goclaw(*words, "openai:say hello")
    assert (code, "Connection error" in output) == (1, True), output
    assert {path.name for path in fresh.folder.iterdir()} == {"token", "key"}
    fresh.env["OPENAI_BASE_URL"] = model.url
    code, output = fresh.goclaw(*words, "openai:say hello")
    assert (code, "https://t.me/GoclawTestBot" in output) == (0, True), output
    assert "\N{FULL BLOCK}" not in output
    assert systemctl.calls == []
    code, output = fresh.goclaw(*words, "offline", "--force")
    assert (code, "--key-file: needs --model" in output) == (2, True), output
    code, output = fresh.goclaw(*words[:3], "--model", "offline", "--force", "--service")
    assert (code, systemctl.calls[-1].split()[-2:]) == (0, ["restart", "goclaw.service"]), output
    code, output = fresh.goclaw("config", "show", "agents.main")
    assert (code, "offline" in output) == (0, True)


def test_ctrl_c_leaves_nothing(fresh: Home, api: Control) -> None:
    with person_at("init", env=fresh.env) as person:
        answer(person, TOKEN, api.token)
        person.sees(MODEL)
        person.interrupts()
        code, _ = person.sees_it_end()
    assert code == 130
    assert not (fresh.folder / "goclaw.toml").exists()
    assert not (fresh.folder / "telegram-token").exists()
