"""``channels.telegram.settings`` and the kind that the entry point names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from channels.telegram import factory
from channels.telegram.settings import Library, Streaming, TelegramSettings, read_settings
from goclaw_py.core.errors import SettingError
from goclaw_py.core.net.proxies import Proxy

TOKEN = "4242:AAtest-token_for-tests-only-12345"


def test_a_token_is_enough() -> None:
    assert read_settings({"token": TOKEN}) == TelegramSettings(TOKEN)


def test_every_key_can_be_set() -> None:
    settings = read_settings(
        {
            "token": TOKEN, "base_url": "http://127.0.0.1:8081/", "poll_timeout_s": 10,
            "send_timeout_s": 2.5, "connect_timeout_s": 3, "library": "aiogram",
            "webhook_url": "https://bot.example.org:8443/telegram/one/",
            "webhook_connections": 100, "streaming": "native", "reactions": False,
            "chat_gap_s": 0.5, "group_per_minute": 0, "account_per_second": 1000,
            "download_mb": 2000, "proxy": "socks5://ann:hush@proxy.example",
        }
    )  # fmt: skip
    assert settings == TelegramSettings(
        TOKEN,
        "http://127.0.0.1:8081",
        10,
        2.5,
        3,
        library=Library.AIOGRAM,
        webhook_url="https://bot.example.org:8443/telegram/one",
        webhook_connections=100,
        streaming=Streaming.NATIVE,
        reactions=False,
        chat_gap_s=0.5,
        group_per_minute=0,
        account_per_second=1000,
        download_mb=2000,
        proxy=Proxy("socks5", "proxy.example", 1080, "ann", "hush"),
    )
    assert settings.webhook_path == "/telegram/one"


def test_the_default_is_python_telegram_bot_polling_and_edits() -> None:
    """SPEC CHAN-2, CHAN-4, IO-4."""
    settings = TelegramSettings(TOKEN)
    assert settings.library is Library.PTB
    assert settings.webhook_url == ""
    assert settings.streaming is Streaming.EDIT
    assert settings.reactions
    assert (settings.chat_gap_s, settings.group_per_minute, settings.account_per_second) == (
        1.0,
        20,
        30,
    )


def test_the_environment_names_the_proxy_unless_the_account_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SPEC CHAN-15."""
    monkeypatch.setenv("HTTPS_PROXY", "http://ann:hush@env.example:3128")
    options = {"token": TOKEN}
    assert str(read_settings(options).proxy) == "http://[hidden]@env.example:3128 (HTTPS_PROXY)"
    assert (
        str(read_settings({**options, "proxy": "own.example:80"}).proxy) == "http://own.example:80"
    )
    assert read_settings({**options, "base_url": "http://127.0.0.1:8081"}).proxy is None
    assert "hush" not in repr(read_settings(options))
    monkeypatch.setenv("HTTPS_PROXY", "socks4://ann:hush@env.example")
    with pytest.raises(SettingError, match="the variable HTTPS_PROXY must be") as caught:
        read_settings(options)
    assert "hush" not in str(caught.value)


def test_the_token_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_settings({"token_file": str(file)}).token == TOKEN
    file.write_text(f"{TOKEN}\n", "utf-8-sig")
    assert read_settings({"token_file": str(file)}).token == TOKEN


@pytest.mark.parametrize(
    ("options", "key", "words"),
    [
        ({}, "token", "missing"),
        ({"token": ""}, "token", "not a bot token"),
        ({"token": "hello"}, "token", "not a bot token"),
        ({"token": 5}, "token", "not a bot token"),
        ({"token": TOKEN, "token_file": "x"}, "token_file", "are both set"),
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
        ({"token": TOKEN, "library": "telebot"}, "library", "python-telegram-bot, aiogram"),
        ({"token": TOKEN, "library": ["aiogram"]}, "library", "python-telegram-bot, aiogram"),
        ({"token": TOKEN, "library": "AIOGRAM"}, "library", "python-telegram-bot, aiogram"),
        ({"token": TOKEN, "library": None}, "library", "python-telegram-bot, aiogram"),
        ({"token": TOKEN, "streaming": True}, "streaming", "edit, native, off"),
        ({"token": TOKEN, "reactions": "off"}, "reactions", "true or false"),
        ({"token": TOKEN, "reactions": 0}, "reactions", "true or false"),
        ({"token": TOKEN, "chat_gap_s": -0.1}, "chat_gap_s", "from 0 to 60"),
        ({"token": TOKEN, "chat_gap_s": float("nan")}, "chat_gap_s", "from 0 to 60"),
        ({"token": TOKEN, "group_per_minute": -1}, "group_per_minute", "from 0"),
        ({"token": TOKEN, "group_per_minute": 1.5}, "group_per_minute", "whole number"),
        ({"token": TOKEN, "account_per_second": True}, "account_per_second", "whole number"),
        ({"token": TOKEN, "webhook_connections": 0}, "webhook_connections", "from 1 to 100"),
        ({"token": TOKEN, "webhook_connections": 101}, "webhook_connections", "from 1 to 100"),
        ({"token": TOKEN, "download_mb": 0}, "download_mb", "from 1 to 2000"),
        ({"token": TOKEN, "proxy": 5}, "proxy", "address"),
        ({"token": TOKEN, "proxy": "https://ann:hush@p:1"}, "proxy", "an http or socks5 proxy"),
        ({"token": TOKEN, "proxy": "http://ann:hu#sh@p:1"}, "proxy", "%23"),
        ({"token": TOKEN, "webhook_url": 5}, "webhook_url", "URL"),
        ({"token": TOKEN, "webhook_url": None}, "webhook_url", "URL"),
        ({"token": TOKEN, "webhook_url": "bot.example.org/x"}, "webhook_url", "URL"),
        ({"token": TOKEN, "webhook_url": "https://bot.example.org/x?y"}, "webhook_url", "URL"),
        ({"token": TOKEN, "webhook_url": "https://bot.example.org"}, "webhook_url", "a path"),
        ({"token": TOKEN, "webhook_url": "https://bot.example.org/"}, "webhook_url", "a path"),
        ({"token": TOKEN, "webhook_url": f"https://x.example/{TOKEN.partition(':')[2]}"},
         "webhook_url", "must not contain the token"),
    ],
)  # fmt: skip
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
    with pytest.raises(SettingError, match="it is not a text file"):
        read_settings({"token_file": str(file)})


@pytest.mark.parametrize(
    "options",
    [
        {"token": f"{TOKEN} and more"},
        {"token": TOKEN, "tokne": TOKEN},
        {"token_file": TOKEN, "send_timeout_s": 0},
        {"token": TOKEN, "base_url": f"x{TOKEN}"},
        {"token": TOKEN, "poll_timeout_s": TOKEN},
        {"token": TOKEN, "library": TOKEN},
        {"token": TOKEN, "streaming": TOKEN},
        {"token": TOKEN, "webhook_url": f"https://bot.example.org/{TOKEN}"},
        {"token": TOKEN, "webhook_url": f"https://bot.example.org/{TOKEN.partition(':')[2]}"},
    ],
)
def test_no_error_shows_a_token(options: Mapping[str, object]) -> None:
    """SPEC CHAN-8, SEC-2."""
    with pytest.raises(SettingError) as caught:
        read_settings(options)
    assert TOKEN.partition(":")[2] not in f"{caught.value}{caught.value.value!r}"


def test_settings_do_not_show_their_token() -> None:
    assert TOKEN not in repr(TelegramSettings(TOKEN))


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
        "print(sorted({'telegram', 'aiogram', 'aiohttp', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
