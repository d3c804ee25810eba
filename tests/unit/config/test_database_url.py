"""Addresses of databases that cannot be read (SPEC SEC-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.config import load
from goclaw_py.model.errors import SettingError


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:s3cr/et@localhost/x", "postgresql://me:s3#cret@localhost/x"],
    ids=["slash", "hash"],
)
def test_a_password_with_special_characters_is_refused_without_showing_it(
    tmp_path: Path, url: str
) -> None:
    env = {"HOME": str(tmp_path), "GOCLAW_HOME": str(tmp_path), "GOCLAW_DATABASE_URL": url}
    with pytest.raises(SettingError, match="percent-encoded") as caught:
        load(None, env)
    assert "s3" not in str(caught.value)


def test_a_socket_folder_may_be_given_as_host(tmp_path: Path) -> None:
    url = "postgresql://goclaw@/goclaw?host=/run/postgresql"
    env = {"HOME": str(tmp_path), "GOCLAW_HOME": str(tmp_path), "GOCLAW_DATABASE_URL": url}
    settings = load(None, env)
    assert settings.database.url is not None
    assert settings.database.url.get_secret_value() == url
