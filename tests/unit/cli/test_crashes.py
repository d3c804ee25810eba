"""How a command ends by an error that nobody expected (SPEC SEC-2)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from goclaw_py.cli import entry as crashes

KEY = "a-key-of-no-known-form"


@pytest.fixture(autouse=True)
def hook_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


def crash(text: str) -> None:
    try:
        raise RuntimeError(f"nobody expected {text}")
    except RuntimeError as error:
        sys.excepthook(RuntimeError, error, error.__traceback__)


def test_its_traceback_shows_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "goclaw.toml"
    file.write_text(f'[agents.main]\nmodel = "openai:gpt-4o"\napi_key = "{KEY}"\n')
    crashes.hide_secrets(file)
    crash(KEY)
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "RuntimeError: nobody expected [hidden]" in told
    assert KEY not in told


def test_settings_that_cannot_be_read_hide_what_the_environment_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)
    (tmp_path / "goclaw.toml").write_text("this is no TOML")
    crashes.hide_secrets(tmp_path / "goclaw.toml")
    crash(KEY)
    told = capsys.readouterr().err
    assert "nobody expected [hidden]" in told
    assert KEY not in told


def test_where_nothing_can_be_hidden_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python would print the error as it is."""

    def broken(_config: Path | None) -> None:
        raise ValueError(KEY)

    monkeypatch.setattr(crashes, "_hider", broken)
    crashes.hide_secrets(None)
    crash(KEY)
    assert capsys.readouterr().err == "goclaw: RuntimeError\n"
