"""Settings in documents are settings: a gateway would start with them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from goclaw_py.cli import composition
from goclaw_py.cli.system.settings_file import Answers, settings_text
from goclaw_py.config import load
from goclaw_py.core.errors import SettingError
from tests.guides.reading import READ_BY_USERS, Block, blocks

TOKEN = "123456789:AA-for-tests-only"
TOML = [block for block in blocks(READ_BY_USERS, "toml") if "[project" not in block.text]
OF_ITS_OWN_CHANNEL = "[channels.folder]"
"""The guide to channels makes one, which is not installed here."""


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What documents take to be there: files with tokens, keys in the environment."""
    for name in (
        "telegram-token",
        "telegram-token.txt",
        "model-key",
        "key.txt",
        "github-token.txt",
    ):
        (tmp_path / name).write_text(TOKEN)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "key-for-tests-only")
    return {"GOCLAW_HOME": str(tmp_path), "GOCLAW_TELEGRAM_TOKEN": TOKEN}


async def check(text: str, env: dict[str, str]) -> None:
    file = Path(env["GOCLAW_HOME"]) / "goclaw.toml"
    # Agents that a block names are defined by other blocks.
    named = [name for name in ("researcher", "helper") if f'"{name}"' in text]
    missing = [name for name in named if f"[agents.{name}]" not in text]
    # Files of tokens must be there.
    for path in set(re.findall(r'"(/etc/goclaw/[\w-]+)"', text)):
        (token := file.with_name(Path(path).name)).write_text("0123456789abcdef0123456789abcdef")
        token.chmod(0o600)
        text = text.replace(path, str(token))
    file.write_text(text + "".join(f'\n[agents.{name}]\nmodel = "offline"\n' for name in missing))
    settings = load(file, env if "token_file" not in text else {**env, "GOCLAW_TELEGRAM_TOKEN": ""})
    if OF_ITS_OWN_CHANNEL not in text:
        await composition.check_parts(settings)


@pytest.mark.parametrize("block", TOML, ids=str)
async def test_a_gateway_takes_every_block(block: Block, surroundings: dict[str, str]) -> None:
    await check(block.text, surroundings)


async def test_a_wrong_key_in_a_block_is_found(surroundings: dict[str, str]) -> None:
    with pytest.raises(SettingError, match="lane"):
        await check("[lane]\nmain = 4\n", surroundings)
    with pytest.raises(SettingError, match="tokn"):
        await check('[channels.telegram]\ntokn = "a"\n', surroundings)


async def test_the_first_bot_is_set_up_in_the_file_of_init(surroundings: dict[str, str]) -> None:
    """The guide shows what is filled in there, and a budget."""
    model, telegram = (tomllib.loads(one.text) for one in TOML if one.file.name == "first-bot.md")
    written = settings_text(Answers(TOKEN, model["agents"]["main"]["model"], key="a-key"))
    await check(written, surroundings)
    settings = tomllib.loads(written)
    assert settings["channels"] == telegram["channels"]
    assert model["agents"]["main"].pop("budget")
    assert settings["agents"] == model["agents"]


def variables() -> list[tuple[str, str]]:
    """Those of ours that documents name, with their value where one is shown."""
    text = "\n".join(file.read_text("utf-8") for file in READ_BY_USERS)
    found = re.findall(r"\b(GOCLAW_[A-Z0-9_]+)(?:=([\w./:@-]+))?", text)
    return sorted(set(found))


@pytest.mark.parametrize(("name", "value"), variables(), ids="=".join)
def test_every_variable_is_one_of_ours(name: str, value: str, tmp_path: Path) -> None:
    env = {"GOCLAW_HOME": str(tmp_path), name: value or "4"}
    if name == "GOCLAW_CONFIG":
        (tmp_path / "goclaw.toml").touch()
        env[name] = str(tmp_path / "goclaw.toml")
    if value:
        load(None, env)
    else:
        # A dummy may be wrong; the name may not.
        assert "unknown" not in complaint(env)


def complaint(env: dict[str, str]) -> str:
    """What is wrong with an environment, "" if nothing."""
    try:
        load(None, env)
    except SettingError as error:
        return str(error)
    return ""


def test_a_variable_that_is_not_ours_is_found(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="unknown"):
        load(None, {"GOCLAW_HOME": str(tmp_path), "GOCLAW_LANES_MAIN": "4"})
