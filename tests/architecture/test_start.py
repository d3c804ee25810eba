"""What a gateway has imported when it is ready: a heavy import is noticed by its name."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.architecture.sources import OURS, ROOT, is_stdlib, modules

_START = """
import asyncio, os, sys
from goclaw_py.cli import composition, entry
from goclaw_py.app import gateway
from goclaw_py.app.parts import build_parts
from goclaw_py.app.warm_up import WarmUp
from goclaw_py.config import load

async def main():
    parts = build_parts(load(None, dict(os.environ)))
    with WarmUp(parts) as warm_up:
        await warm_up.until_channels_are_ready()
        print(*sys.modules)
    for part in (*parts.channels.values(), *parts.agents.values()):
        await part.close()

asyncio.run(main())
"""
_NEVER = {
    "fastapi": "the API is created at the first request",
    "jinja2": "the pages are created at the first request",
    "mcp": "no server is configured",
    "fastmcp": "no server is configured",
    "opentelemetry": "no exporter is configured",
    "prompt_toolkit": "there is no chat in the terminal",
    "anthropic": "no agent uses it",
    "authlib": "nobody signs in by OpenID",
    "openai": "agents are imported once the gateway is ready",
    "pydantic_ai": "agents are imported once the gateway is ready",
    "genai_prices": "agents are imported once the gateway is ready",
    "email_validator": "it comes with FastAPI",
    "segno": "there is no QR code",
    "yaml": "there are no files of jobs",
}
_LIBRARIES = {"python-telegram-bot": ("aiogram", 1_437), "aiogram": ("telegram", 1_900)}
"""The library that stays away, and how many modules there may be beside those of ``_GROWING``."""

_GROWING = ("goclaw_py.chat.commands.", "goclaw_py.operations.")
"""A new command or noun has modules here, which a gateway loads."""


def _loaded(library: str) -> set[str]:
    env = {
        "HOME": str(ROOT / "nowhere"),
        "GOCLAW_HOME": str(ROOT / "nowhere"),
        "GOCLAW_TELEGRAM_TOKEN": "4242:AAsecret-of_this",
        "GOCLAW_CHANNELS__TELEGRAM__LIBRARY": library,
        # Without a key it is not warmed up: the count is what there is when the gateway is ready.
        "GOCLAW_AGENTS__MAIN__MODEL": "openai:x",
    }
    done = subprocess.run(
        [sys.executable, "-c", _START],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.real_time
@pytest.mark.parametrize("library", _LIBRARIES)
def test_a_gateway_is_ready_without_what_it_does_not_need_yet(library: str) -> None:
    other, most = _LIBRARIES[library]
    loaded = _loaded(library)
    early = {name: why for name, why in _NEVER.items() if name in loaded}
    assert early == {}
    assert other not in loaded
    counted = [name for name in loaded if not name.startswith(_GROWING)]
    assert len(counted) <= most, "say in the commit what needs more, and raise the number"


def _deferred() -> Iterator[tuple[str, str]]:
    """Return what functions import: module and name, "" for the module itself."""
    for module in modules():
        for function in ast.walk(module.tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    yield from ((node.module or "", alias.name) for alias in node.names)
                elif isinstance(node, ast.Import):
                    yield from ((alias.name, "") for alias in node.names)


@pytest.mark.slow
def test_whatever_is_imported_later_can_be_imported() -> None:
    """A wrong name in a function would be noticed only by the first who calls it."""
    deferred = {*_deferred()}
    assert ("goclaw_py.agents.models.engine", "Engine") in deferred
    wrong = []
    for name, attribute in sorted(deferred):
        if is_stdlib(name.partition(".")[0]) and name.partition(".")[0] not in OURS:
            continue
        module = import_module(name)
        if attribute and not hasattr(module, attribute):
            try:
                import_module(f"{name}.{attribute}")
            except ImportError:
                wrong.append(f"{name}.{attribute}")
    assert wrong == []
