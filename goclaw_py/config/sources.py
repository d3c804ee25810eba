"""The sources of settings: the file and the environment.

Both remember the origin of each value, so that errors can name it.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from goclaw_py.config.lanes import lane_tables
from goclaw_py.config.origins import Origin, file_origins
from goclaw_py.config.types import EnvText
from goclaw_py.model.errors import SettingError
from goclaw_py.ports.settings import OriginKind

PREFIX = "GOCLAW_"
SECTIONS = (
    "lanes", "queue", "agents", "channels", "database", "state", "runs", "scheduler", "heartbeat",
    "shutdown", "sources", "web", "log",
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

OWN_NAMES = frozenset({"GOCLAW_HOME", "GOCLAW_CONFIG"})
"""Variables that say where the settings are; they are not settings themselves."""

TEST_PREFIX = "GOCLAW_TEST_"
"""Prefix of variables of the project's own tests, which are ignored."""

# Docker Compose passes variables that are not set as empty ones.
_EMPTY_IS_UNSET = frozenset({"GOCLAW_TELEGRAM_TOKEN", "GOCLAW_DATABASE_URL"})

Path_ = tuple[str, ...]
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
        super().__init__(name, "***", hint, source="environment")

    def __str__(self) -> str:
        """One line with the variable and the nearest existing one."""
        return f"environment: {self.key}: {self.allowed}"


class Source(PydanticBaseSettingsSource):
    """Provides a tree of values; pydantic-settings merges the trees of all sources.

    ``places`` has the origin of each value.
    """

    places: Mapping[Path_, Origin]

    def __init__(self, settings_cls: type[BaseSettings], values: Tree) -> None:
        super().__init__(settings_cls)
        self.values = values

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return one top-level key; called by pydantic-settings."""
        del field
        return self.values.get(field_name), field_name, False

    def __call__(self) -> Tree:
        """Return the whole tree."""
        return self.values


class FileSource(Source):
    """``goclaw.toml``. Raises ``NotToml`` if it cannot be read."""

    def __init__(self, settings_cls: type[BaseSettings], file: Path) -> None:
        text, values = _read(file)
        if isinstance(lanes := values.get("lanes"), dict):
            # Variables and the file may set different keys of the same lane.
            values["lanes"] = lane_tables(lanes)
        super().__init__(settings_cls, _anchored(values, file.parent.resolve()))
        self.places = file_origins(file, text)


class EnvironmentSource(Source):
    """The ``GOCLAW_`` variables. ``origins`` names the variable of each path.

    ``unknown`` has an error for each unknown variable.
    """

    def __init__(self, settings_cls: type[BaseSettings], env: Mapping[str, str]) -> None:
        self.origins: dict[Path_, str] = {}
        self.unknown: list[SettingError] = []
        values: Tree = {}
        for name in sorted(env):
            path = self._path(name, env[name])
            if path and not _put(values, path, EnvText(env[name])):
                self.unknown.append(
                    UnknownVariable(
                        name, f"{'.'.join(path)} is also set by another variable; unset one"
                    )
                )
            elif path:
                self.origins[path] = f"environment variable {name}"
        self.places = {
            path: Origin(OriginKind.ENVIRONMENT, words) for path, words in self.origins.items()
        }
        super().__init__(settings_cls, _anchored(values, Path.cwd()))

    def _path(self, name: str, value: str) -> Path_ | None:
        if not name.startswith(PREFIX) or name in OWN_NAMES or name.startswith(TEST_PREFIX):
            return None
        if name in _EMPTY_IS_UNSET and not value.strip():
            return None
        if short := SHORT_NAMES.get(name):
            return short
        path = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
        if len(path) > 1 and path[0] in SECTIONS and all(path):
            # As in the file, a plain number is the size of a lane; the scope has its own variable.
            return (*path, "size") if path[0] == "lanes" and len(path) == 2 else path
        self.unknown.append(UnknownVariable(name, _nearest(name)))
        return None


def _read(file: Path) -> tuple[str, Tree]:
    text = ""
    try:
        text = file.read_text("utf-8")
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(file, *_where(str(error), text)) from error
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


def _put(tree: Tree, path: Path_, value: EnvText) -> bool:
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
