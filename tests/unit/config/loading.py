"""Settings for tests: loaded from a file with a text, and from an environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.config import Settings, load
from goclaw_py.core.errors import SettingError


def settings(folder: Path, text: str | None = None, **env: str) -> Settings:
    """Load from a home folder, with this ``goclaw.toml`` if there is a text."""
    if text is not None:
        (folder / "goclaw.toml").write_text(text, "utf-8")
    return load(env={"GOCLAW_HOME": str(folder), **env})


def refused(folder: Path, text: str | None = None, **env: str) -> str:
    """The error that loading ends with."""
    with pytest.raises(SettingError) as caught:
        settings(folder, text, **env)
    return str(caught.value)
