"""``channels.telegram.settings`` and the kind that the entry point names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from channels.telegram import factory
from channels.telegram.settings import Settings, read_settings
from goclaw_py.core.errors import SettingError

TOKEN = "4242:AAtest-token_for-tests-only-12345"


def test_a_token_is_enough() -> None:
    assert read_settings({"token": TOKEN}) == Settings(TOKEN)


def test_every_key_can_be_set() -> None:
    settings = read_settings(
        {
            "token": TOKEN,
            "base_url": "http://127.0.0.1:8081/",
            "poll_timeout_s": 10,
            "send_timeout_s": 2.5,
            "connect_timeout_s": 3,
        }
    )
    assert settings == Settings(TOKEN, "http://127.0.0.1:8081", 10, 2.5, 3)


def test_the_token_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_settings({"token_file": str(file)}).token == TOKEN


@pytest.mark.parametrize(
    ("options", "key", "words"),
    [
        ({}, "token", "missing"),
        ({"token": ""}, "token", "no bot token"),
        ({"token": "hello"}, "token", "no bot token"),
        ({"token": 5}, "token", "no bot token"),
        ({"token": TOKEN, "token_file": "x"}, "token_file", "not both"),
        ({"token_file": "/nowhere/at/all"}, "token_file", "cannot be read: No such file"),
        ({"token_file": 5}, "token_file", "path"),
        ({"token_file": ""}, "token_file", "path"),
        ({"token": TOKEN, "tokne": "x"}, "tokne", "token, token_file, base_url"),
        ({"token": TOKEN, "base_url": 5}, "base_url", "URL"),
        ({"token": TOKEN, "base_url": "api.telegram.org"}, "base_url", "URL"),
        ({"token": TOKEN, "base_url": "ftp://x"}, "base_url", "URL"),
        ({"token": TOKEN, "base_url": "http://x:99999"}, "base_url", "URL"),
        ({"token": TOKEN, "base_url": "http://{token}/"}, "base_url", "URL"),
        ({"token": TOKEN, "poll_timeout_s": 0}, "poll_timeout_s", "whole number of seconds"),
        ({"token": TOKEN, "poll_timeout_s": 51}, "poll_timeout_s", "from 1 to 50"),
        ({"token": TOKEN, "poll_timeout_s": 1.5}, "poll_timeout_s", "whole"),
        ({"token": TOKEN, "poll_timeout_s": True}, "poll_timeout_s", "whole"),
        ({"token": TOKEN, "send_timeout_s": "5"}, "send_timeout_s", "a number"),
        ({"token": TOKEN, "connect_timeout_s": 61}, "connect_timeout_s", "from 1 to 60"),
    ],
)
def test_a_wrong_setting_names_key_and_what_is_allowed(
    options: Mapping[str, object], key: str, words: str
) -> None:
    with pytest.raises(SettingError) as caught:
        factory.build("default", options)
    assert caught.value.key == key
    assert words in caught.value.allowed


def test_a_file_that_is_no_text_is_no_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingError, match="it is no text"):
        read_settings({"token_file": str(file)})


@pytest.mark.parametrize(
    "options",
    [
        {"token": f"{TOKEN} and more"},
        {"token": TOKEN, "tokne": TOKEN},
        {"token_file": TOKEN, "send_timeout_s": 0},
        {"token": TOKEN, "base_url": f"x{TOKEN}"},
        {"token": TOKEN, "poll_timeout_s": TOKEN},
    ],
)
def test_no_error_shows_a_token(options: Mapping[str, object]) -> None:
    """SPEC CHAN-8, SEC-2."""
    with pytest.raises(SettingError) as caught:
        read_settings(options)
    assert TOKEN.partition(":")[2] not in f"{caught.value}{caught.value.value!r}"


def test_settings_do_not_show_their_token() -> None:
    assert TOKEN not in repr(Settings(TOKEN))


def test_a_built_channel_knows_its_names() -> None:
    channel = factory.build("work", {"token": TOKEN})
    assert factory.name == channel.name == "telegram"
    assert (channel.account, channel.lease, channel.trusted) == ("work", "telegram:4242", False)
    assert channel.handle is None
    assert channel.reaches("7")


def test_importing_the_channel_imports_no_library() -> None:
    """A process that does not use Telegram never pays for its libraries."""
    code = (
        "import sys; from channels.telegram import factory;"
        "factory.build('default', {'token': '42:' + 'A' * 35});"
        "print(sorted({'telegram', 'aiohttp', 'httpx', 'orjson'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
