"""What is served over TCP is what the settings say (SPEC OPS-2, SEC-1)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from goclaw_py.app.listeners import listen_web
from goclaw_py.config import Settings
from goclaw_py.config.web import Web
from goclaw_py.core.errors import SettingError
from goclaw_py.ports.channel import Hook, WebAnswer, WebRequest
from goclaw_py.web.front import Access

TOKEN = "0123456789abcdef"


async def _hooked(_request: WebRequest) -> WebAnswer:
    return WebAnswer(200)


HOOK = Hook("/x", _hooked, 10)


def settings(home: Path, **web: object) -> Settings:
    return Settings(home=home, web=Web.model_validate({"port": 0, **web}))


def test_without_hooks_and_api_nobody_listens(tmp_path: Path) -> None:
    assert listen_web(settings(tmp_path), [], {}) is None


def test_hooks_alone_open_nothing_else(tmp_path: Path) -> None:
    listener = listen_web(settings(tmp_path, token=TOKEN), [HOOK], {})
    assert listener is not None
    with closing(listener):
        assert listener.access is None
        assert listener.socket.getsockname()[0] == "127.0.0.1"


def test_the_api_is_opened_with_its_names_and_its_token(tmp_path: Path) -> None:
    web = {"api": True, "hosts": ["bot.example.org"], "token_env": "MINE"}
    listener = listen_web(settings(tmp_path, **web), [], {"MINE": TOKEN})
    assert listener is not None
    with closing(listener):
        assert listener.access == Access("127.0.0.1", ("bot.example.org",), TOKEN)
    with pytest.raises(SettingError, match="MINE"):
        listen_web(settings(tmp_path, **web), [], {})


def test_the_token_is_not_shown_with_the_listener(tmp_path: Path) -> None:
    """SPEC SEC-2: nobody logs it by accident."""
    listener = listen_web(settings(tmp_path, api=True, token=TOKEN), [], {})
    assert listener is not None
    with closing(listener):
        assert TOKEN not in repr(listener)
