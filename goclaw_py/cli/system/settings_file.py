"""The settings file of ``goclaw init``: the example, with the answers of a person filled in."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import orjson

SETTINGS_EXAMPLE = Path(__file__).with_name("goclaw.toml.example")
TOKEN_FILE: Final = "telegram-token"  # noqa: S105 - a file name
KEY_FILE: Final = "model-key"
"""The files beside the settings file that contain the secrets."""

_HEADER: Final = re.compile(r"\[([^\]]+)\]")


@dataclass(frozen=True, slots=True)
class Answers:
    """What a person has chosen; empty: the default. Secrets get files of their own."""

    token: str = field(default="", repr=False)
    model: str = ""
    base_url: str = ""
    key: str = field(default="", repr=False)
    timezone: str = ""
    allow: tuple[str, ...] = ()

    @property
    def secrets(self) -> dict[str, str]:
        """Return the contents of the files with secrets, by name."""
        both = {TOKEN_FILE: self.token, KEY_FILE: self.key}
        return {name: secret for name, secret in both.items() if secret}

    @property
    def variables(self) -> dict[str, str]:
        """Return the answers as environment variables, to try them before they are written."""
        known = {
            "GOCLAW_TELEGRAM_TOKEN": self.token,
            "GOCLAW_AGENTS__MAIN__MODEL": self.model,
            "GOCLAW_AGENTS__MAIN__BASE_URL": self.base_url,
            "GOCLAW_AGENTS__MAIN__API_KEY": self.key,
            "GOCLAW_SCHEDULER__TIMEZONE": self.timezone,
        }
        return {name: value for name, value in known.items() if value}


def settings_text(answers: Answers) -> str:
    """Return the example with the answers in place of its commented lines."""
    wanted = _wanted(answers)
    section, lines = "", []
    for line in SETTINGS_EXAMPLE.read_text("utf-8").splitlines():
        bare = line.removeprefix("# ")
        if header := _HEADER.match(bare):
            section = header[1]
            lines.append(bare if wanted.get(section) else line)
        else:
            lines.append(wanted.get(section, {}).get(bare.partition(" = ")[0], line))
    return "\n".join(lines) + "\n"


def _wanted(answers: Answers) -> dict[str, dict[str, str]]:
    """Return the lines to fill in, by section and by the key of the line that they replace."""
    agent = {
        "model": _line("model", answers.model),
        "base_url": _line("base_url", answers.base_url),
    }
    if answers.key:
        agent["api_key_env"] = _line("api_key_file", KEY_FILE)
    telegram = {}
    if answers.token:
        telegram["token"] = _line("token_file", TOKEN_FILE)
    if answers.allow:
        telegram |= {
            "direct": _line("direct", "allowlist"),
            "allow": f"allow = {orjson.dumps(answers.allow).decode()}",
        }
    jobs = {"timezone": _line("timezone", answers.timezone)}
    known = {"agents.main": agent, "channels.telegram": telegram, "scheduler": jobs}
    return {
        section: {key: line for key, line in lines.items() if line}
        for section, lines in known.items()
    }


def _line(key: str, value: str) -> str:
    # A string of JSON is one of TOML, too.
    return f"{key} = {orjson.dumps(value).decode()}" if value else ""


def replace_file(
    file: Path,
    text: str,
    check: Callable[[Path], object] = lambda _: None,
    *,
    back_up: bool = False,
) -> Path | None:
    """Write a file that only its owner can read.

    It is written beside the old one first, and ``check`` may refuse it there by raising. So
    ``file`` is either the old or the new one, whenever the process ends. With ``back_up`` an old
    file with another text is copied; returns the copy.
    """
    file = file.resolve()  # a symbolic link stays one
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError as error:
        # Its own name says nothing to who wants the file.
        raise OSError(error.errno, error.strerror, str(file)) from error
    new = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        check(new)
        differs = back_up and file.exists() and file.read_bytes() != new.read_bytes()
        kept = _copied(file) if differs else None
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
    return kept


def _copied(file: Path) -> Path:
    """Copy a file to a name beside it that is free; only its owner can read the copy."""
    names = (f"{file.name}.bak{number or ''}" for number in count())
    copy = next(path for path in map(file.with_name, names) if not path.exists())
    copy.touch(0o600, exist_ok=False)
    shutil.copyfile(file, copy)
    return copy
