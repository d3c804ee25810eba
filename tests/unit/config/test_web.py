"""``[web]``: where channels listen that are called from the web (SPEC CHAN-2, SEC-1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.config import Settings, load
from goclaw_py.config.sources import SECTIONS
from goclaw_py.core.errors import SettingError


def settings(folder: Path, text: str = "", **env: str) -> Settings:
    (folder / "goclaw.toml").write_text(text, "utf-8")
    return load(env={"GOCLAW_HOME": str(folder), **env})


def test_nobody_else_reaches_the_hooks_unless_it_is_set(tmp_path: Path) -> None:
    """SPEC SEC-1."""
    web = settings(tmp_path).web
    assert (web.host, web.port) == ("127.0.0.1", 8420)


def test_file_and_environment_say_where_to_listen(tmp_path: Path) -> None:
    text = "[web]\nhost = '::'\nport = 65535\n"
    assert settings(tmp_path, text).web.host == "::"
    web = settings(tmp_path, text, GOCLAW_WEB__PORT="0", GOCLAW_WEB__HOST="localhost").web
    assert (web.host, web.port) == ("localhost", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("port = 65536", "web.port = 65536: must be a whole number, at least 0 and at most 65535"),
        ("port = -1", "web.port = -1: must be a whole number"),
        ("port = '8420'", "web.port = '8420': must be a whole number"),
        ("host = ''", "web.host = '': must be a host name or an address such as 127.0.0.1"),
        ("host = '127.0.0.1 '", "web.host = '127.0.0.1 ': must be a host name"),
        ("host = 127", "web.host = 127: must be a host name"),
        ("prot = 1", "did you mean port?"),
    ],
)
def test_a_wrong_value_is_told(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(SettingError) as caught:
        settings(tmp_path, f"[web]\n{text}\n")
    assert expected in str(caught.value)


def test_every_section_can_be_set_by_the_environment() -> None:
    assert set(SECTIONS) == Settings.model_fields.keys() - {"home", "file"}
