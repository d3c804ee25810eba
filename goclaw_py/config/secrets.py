"""Find secrets in a settings file, and the files that contain secrets (SPEC SEC-2)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from goclaw_py.config.load import is_secret
from goclaw_py.config.models import AccountSettings, Settings


def secrets_in(text: str) -> list[str]:
    """Return the key paths of secrets that are written directly in a settings file.

    An address counts only if it has a password or a query. Raises ``ValueError`` for a text that
    is not TOML.
    """
    return [".".join(path) for path, value in _leaves(tomllib.loads(text)) if _hides(path, value)]


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    elif isinstance(value, list):
        for below in value:
            yield from _leaves(below, path)
    else:
        yield path, value


def _hides(path: tuple[str, ...], value: object) -> bool:
    if isinstance(value, bool) or not str(value).strip() or not is_secret(path):
        return False
    return any(mark in str(value) for mark in "@?") if "url" in path[-1].lower() else True


def secret_files(settings: Settings) -> set[Path]:
    """Return all files that the settings name as containing secrets."""
    found = {settings.web.token_file}
    found |= {source.token_file for source in settings.sources.values()}
    found |= {agent.api_key_file for agent in settings.agents.values()}
    for channel in settings.channels.values():
        for account in channel.by_name.values():
            found |= _named(account)
    return {file for file in found if file is not None}


def _named(account: AccountSettings) -> set[Path | None]:
    return {
        Path(value)
        for key, value in account.options.items()
        if key.endswith("_file") and isinstance(value, str)
    }
