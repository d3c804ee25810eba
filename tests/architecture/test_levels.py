"""Levels, and what a light process must not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT

LINTER = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports({options}))"

HEAVY = {
    "goclaw_py.cli": {"telegram", "aiogram", "pydantic_ai", "fastapi", "asyncpg", "rich"},
    "goclaw_py.cli.entry": {"telegram", "aiogram", "pydantic_ai", "fastapi", "asyncpg"},
    "goclaw_py.app.gateway": {"telegram", "aiogram", "pydantic_ai"},
    "channels.telegram": {"telegram", "aiogram", "aiohttp"},
    "channels.console": {"telegram", "aiogram", "aiohttp"},
}


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.real_time
def test_every_module_imports_from_lower_levels_only() -> None:
    """The contracts stand in pyproject.toml."""
    result = python(LINTER.format(options="no_cache=True, is_debug_mode=False"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.real_time
@pytest.mark.parametrize("name", HEAVY)
def test_importing_it_loads_no_heavy_library(name: str) -> None:
    result = python(f"import sys, {name}; print(*sys.modules)")
    assert result.returncode == 0, result.stderr
    loaded = set(result.stdout.split())
    assert name in loaded
    assert loaded & HEAVY[name] == set()
