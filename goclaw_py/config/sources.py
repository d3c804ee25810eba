"""Read settings from the file and from the environment, each value with its origin."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goclaw_py.config.lanes import lane_tables
from goclaw_py.config.origins import KeyPath, Origin, key_lines
from goclaw_py.config.types import EnvText
from goclaw_py.core.errors import SettingError
from goclaw_py.core.redaction import HIDDEN
from goclaw_py.core.text import natural_key
from goclaw_py.operations.settings.models import OriginKind

PREFIX = "GOCLAW_"
SECTIONS = (
    "lanes", "queue", "agents", "channels", "database", "state", "runs", "scheduler", "heartbeat",
    "shutdown", "sources", "web", "log", "audit",
)  # fmt: skip

SHORT_NAMES: Mapping[str, tuple[str, ...]] = {
    "GOCLAW_LANE_MAIN": ("lanes", "main", "size"),
    "GOCLAW_LANE_SUBAGENT": ("lanes", "subagent", "size"),
    "GOCLAW_LANE_DELEGATE": ("lanes", "delegate", "size"),
    "GOCLAW_LANE_CRON": ("lanes", "cron", "size"),
    "GOCLAW_TELEGRAM_TOKEN": ("channels", "telegram", "token"),
    "GOCLAW_DATABASE_URL": ("database", "url"),
}
"""Variables with short names. Any other setting is ``GOCLAW_<SECTION>__<KEY>``."""

OWN_NAMES = frozenset({"GOCLAW_HOME", "GOCLAW_CONFIG", "GOCLAW_PROGRESS"})
"""Variables that are not settings: where these are, and whether commands show their progress."""

TEST_PREFIX = "GOCLAW_TEST_"
"""Prefix of variables of the project's own tests, which are ignored."""

# Docker Compose passes variables that are not set as empty ones.
_EMPTY_IS_UNSET = frozenset({"GOCLAW_TELEGRAM_TOKEN", "GOCLAW_DATABASE_URL"})

Tree = dict[str, Any]


class NotToml(SettingError):
    """The file cannot be read as TOML; ``value`` is the line number, or None."""

    def __init__(self, file: Path, line: int | None, problem: str) -> None:
        super().__init__("", line, problem, source=str(file))

    def __str__(self) -> str:
        """One line with file, line and problem."""
        line = f":{self.value}" if self.value is not None else ""
        return f"{self.source}{line}: {self.allowed}"


class UnknownVariable(SettingError):
    """An unknown ``GOCLAW_`` variable. Its value is not shown, because it may be a secret."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(name, HIDDEN, hint, source="environment")

    def __str__(self) -> str:
        """One line with the variable and the nearest existing one."""
        return f"environment: {self.key}: {self.allowed}"


@dataclass(frozen=True, slots=True)
class Layer:
    """The values of a source, and what set each of them."""

    values: Tree
    origins: Mapping[KeyPath, Origin]


def read_file(file: Path, text: str | None = None) -> Layer:
    """Read ``goclaw.toml``, or its ``text``. Raises ``NotToml`` if it cannot be read."""
    text, values = _read(file, text)
    if isinstance(lanes := values.get("lanes"), dict):
        # Variables and the file may set different keys of the same lane.
        values["lanes"] = lane_tables(lanes)
    origins = {
        path: Origin(OriginKind.FILE, f"{file}:{line}") for path, line in key_lines(text).items()
    }
    return Layer(_anchored(values, file.parent.resolve()), origins)


def read_environment(env: Mapping[str, str]) -> tuple[Layer, list[SettingError]]:
    """Read the ``GOCLAW_`` variables; return also an error for each unknown variable."""
    values: Tree = {}
    origins: dict[KeyPath, Origin] = {}
    errors: list[SettingError] = []
    for name in sorted(filter(_is_setting, env), key=natural_key):
        if name in _EMPTY_IS_UNSET and not env[name].strip():
            continue
        path = _path(name)
        if path is None:
            errors.append(UnknownVariable(name, _nearest(name)))
        elif not _insert(values, path, EnvText(env[name])):
            twice = f"{'.'.join(path)} is also set by another variable; unset one"
            errors.append(UnknownVariable(name, twice))
        else:
            origins[path] = Origin(OriginKind.ENVIRONMENT, f"environment variable {name}")
    return Layer(_anchored(values, Path.cwd()), origins), errors


def merged(over: Tree, below: Tree) -> Tree:
    """Return both trees in one. Tables are merged; of two other values the first one wins."""
    found = below | over
    for key in over.keys() & below.keys():
        if isinstance(over[key], dict) and isinstance(below[key], dict):
            found[key] = merged(over[key], below[key])
    return found


def _is_setting(name: str) -> bool:
    is_ours = name.startswith(PREFIX) and not name.startswith(TEST_PREFIX)
    return is_ours and name not in OWN_NAMES


def _path(name: str) -> KeyPath | None:
    if short := SHORT_NAMES.get(name):
        return short
    path = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
    if len(path) < 2 or path[0] not in SECTIONS or not all(path):
        return None
    # As in the file, a plain number is the size of a lane; the scope has its own variable.
    return (*path, "size") if path[0] == "lanes" and len(path) == 2 else path


def _read(file: Path, text: str | None) -> tuple[str, Tree]:
    try:
        text = file.read_text("utf-8-sig") if text is None else text
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(file, *_where(str(error), text or "")) from error
    except RecursionError as error:
        raise NotToml(file, None, "its lists or tables are nested too deeply") from error
    except UnicodeDecodeError as error:
        raise NotToml(file, None, "this is not UTF-8 text; save the file as UTF-8") from error
    except OSError as error:
        raise NotToml(file, None, f"cannot be read: {error.strerror}") from error


def _where(message: str, text: str) -> tuple[int, str]:
    """Parse line and problem from a message of ``tomllib``, which has no attributes before 3.14."""
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    line = int(found[1]) if found and found[1] else max(1, len(text.splitlines()))
    if twice := re.match(r"Cannot declare \((.*)\) twice", message):
        section = "[" + ".".join(re.findall(r"'([^']*)'", twice[1])) + "]"
        lines = [one.partition("#")[0].strip() for one in text.splitlines()]
        first = f" (line {lines.index(section) + 1})" if section in lines else ""
        return line, f"the section {section} is defined twice{first}: put its keys into one section"
    return line, f"this is not valid TOML: {message[: found.start()] if found else message}"


def _insert(tree: Tree, path: KeyPath, value: EnvText) -> bool:
    """Insert a value at its path. Return False if there already is another value."""
    for key in path[:-1]:
        below = tree.setdefault(key, {})
        if not isinstance(below, dict):
            return False
        tree = below
    return tree.setdefault(path[-1], value) is value


def _nearest(name: str) -> str:
    for section in SECTIONS:
        # One underscore instead of two.
        start, key = f"{PREFIX}{section.upper()}_", name.partition(f"{section.upper()}_")[2]
        if name == f"{start}{key}" and key[:1].isalpha():
            return f"unknown variable; did you mean {start}_{key}?"
    known = [*SHORT_NAMES, *OWN_NAMES, *(f"{PREFIX}{section.upper()}__" for section in SECTIONS)]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = near[0] + ("<KEY>" if near[0].endswith("__") else "") if near else ""
    return f"unknown variable; did you mean {hint}?" if near else "unknown variable"


def _anchored(values: Tree, folder: Path) -> Tree:
    """Make file paths in the settings absolute, relative to ``folder``; expand ``~``."""
    for table, key in _paths(values):
        value = table[key]
        if isinstance(value, str) and value.strip():
            table[key] = str(folder / Path(value).expanduser())
    return values


def _paths(values: Tree) -> Iterator[tuple[Tree, str]]:
    """Find settings that are paths: by name in our own sections, by suffix in channels."""
    for table, keys in (
        *((section, ("folder",)) for section in _tables(values, "state")),
        *((section, ("file",)) for section in _tables(values, "log")),
        *((section, ("token_file",)) for section in _tables(values, "web")),
        *((section, ("client_secret_file",)) for section in _tables(values, "web", "openid")),
        *((source, ("token_file",)) for source in _tables(values, "sources", "*")),
        *((agent, ("workspace", "api_key_file")) for agent in _tables(values, "agents", "*")),
    ):
        yield from ((table, key) for key in keys if key in table)
    for account in (
        *_tables(values, "channels", "*"), *_tables(values, "channels", "*", "accounts", "*"),
    ):  # fmt: skip
        yield from ((account, key) for key in account if key.endswith(("_file", "_folder")))


def _tables(tree: object, *path: str) -> Iterator[Tree]:
    """Find the tables at a path; ``*`` matches every key."""
    if not isinstance(tree, dict):
        return
    if not path:
        yield tree
        return
    keys = list(tree) if path[0] == "*" else [path[0]] if path[0] in tree else []
    for key in keys:
        yield from _tables(tree[key], *path[1:])
