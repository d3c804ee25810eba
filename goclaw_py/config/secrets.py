"""Find secrets: in a settings file, in files that it names, and in the environment (SPEC SEC-2)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, SecretStr

from goclaw_py.config.masking import is_secret
from goclaw_py.config.models import Settings
from goclaw_py.config.origins import KeyPath
from goclaw_py.core.redaction import LONGEST_SECRET, MIN_SECRET, is_name_of_secret

_LONG_LINE = 16
_NO_SECRETS = frozenset({"PWD", "OLDPWD"})
"""Variables of every shell that are named like passwords (``PWD``) but are folders."""
_KEY_VARIABLE = re.compile(r"(?i)(?:_|^)key$")
_LIKE_A_KEY = re.compile(r"(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[\w-]{20,}")
"""A part of the path of an address: some MCP servers expect their key there."""


def secrets_in(text: str) -> list[str]:
    """Return the key paths of secrets that are written directly in a settings file.

    An address counts only if it has a password or a query. Raises ``ValueError`` for a text that
    is not TOML.
    """
    leaves = _leaves((), tomllib.loads(text))
    return [".".join(path) for path, value in leaves if _hides(path, value)]


def _hides(path: KeyPath, value: object) -> bool:
    if isinstance(value, bool) or not str(value).strip() or not is_secret(path):
        return False
    is_address = any(word in path[-1].lower() for word in ("url", "proxy"))
    return any(mark in str(value) for mark in "@?") if is_address else True


def secret_files(settings: Settings) -> set[Path]:
    """Return all files that the settings name as containing secrets."""
    return {
        Path(value)
        for path, value in _leaves((), settings)
        if path[-1].endswith("_file") and isinstance(value, str | Path)
    }


def setting_values(settings: Settings) -> Iterator[tuple[KeyPath, object]]:
    """Iterate over all values with their key paths; one of a list has the path of the list."""
    return _leaves((), settings)


def known_secrets(settings: Settings, env: Mapping[str, str]) -> frozenset[str]:
    """Return every text that must not be shown.

    Reads the files that contain secrets. Files that cannot be read are left out; the code that
    needs them reports the error.
    """
    found = {secret for given in _given(settings, env) for secret in _parts(given)}
    return frozenset(one for one in found if len(one) >= MIN_SECRET)


def _given(settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    for path, value in _leaves((), settings):
        name = path[-1]
        if isinstance(value, SecretStr):
            yield value.get_secret_value()
        elif name.endswith("_env") and isinstance(value, str):
            yield env.get(value, "")
        elif name.endswith("_file") and is_secret((*path[:-1], name.removesuffix("_file"))):
            yield from _from_file(Path(str(value)))
        elif isinstance(value, str) and len(path) > 1 and is_secret(path):
            yield value
    for name, value in env.items():
        if name in _NO_SECRETS:
            continue
        if is_name_of_secret(name) or _KEY_VARIABLE.search(name) or "://" in value:
            yield value


def _leaves(path: KeyPath, value: object) -> Iterator[tuple[KeyPath, object]]:
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            # Options of a channel are at the same level as the settings of all channels.
            below = path if name == "options" else (*path, name)
            yield from _leaves(below, getattr(value, name))
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from _leaves((*path, str(name)), one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(path, one)
    elif path:
        yield path, value


def _from_file(file: Path) -> Iterator[str]:
    with suppress(OSError, ValueError), file.expanduser().open(encoding="utf-8-sig") as opened:
        yield opened.read(LONGEST_SECRET)


def _parts(given: str) -> Iterator[str]:
    """Return the secret parts: password and keys of an address, otherwise the whole text."""
    given = given.strip()
    if re.match(r"[a-z][a-z0-9+.-]{0,20}://", given):
        yield from _of_address(given)
        return
    yield given
    number, _, secret = given.partition(":")
    if number.isdigit():
        # A bot token: the number before the colon is not secret.
        yield secret
    if "\n" in given:
        yield from (line for line in given.splitlines() if len(line) >= _LONG_LINE)


def _of_address(address: str) -> Iterator[str]:
    with suppress(ValueError):
        read = urlsplit(address)
        if read.password:
            yield read.password
            yield unquote(read.password)
        yield from (part for part in read.path.split("/") if _LIKE_A_KEY.fullmatch(part))
        for name, value in parse_qsl(read.query):
            if is_name_of_secret(name) or name == "key" or _LIKE_A_KEY.fullmatch(value):
                yield value
