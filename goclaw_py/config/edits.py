"""Edits at run time: which settings allow them, and what they change (SPEC OPS-11).

A value is written as in an environment variable, so that one parser reads both.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from goclaw_py.config.agents import RunBudget
from goclaw_py.config.heartbeat import HeartbeatSettings
from goclaw_py.config.lanes import Queue
from goclaw_py.config.load import load_edited, load_started
from goclaw_py.config.models import Settings
from goclaw_py.config.origins import KeyPath, Origin
from goclaw_py.config.show import dotted, shown
from goclaw_py.config.sources import Layer, Tree
from goclaw_py.config.types import EnvText, Flag
from goclaw_py.core.session_keys import CONSOLE, DEFAULT_ACCOUNT
from goclaw_py.operations.settings.models import MASK, OriginKind, Setting, SettingValue

MAX_PATH_CHARS: Final = 300
MAX_VALUE_CHARS: Final = 1_000

_NAMED: Final = "*"
"""Stands for a key that users chose."""

_KEY: Final = re.compile(r'[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)+"')


def _keys(model: type[BaseModel], *above: str) -> Iterator[KeyPath]:
    """Return the paths of all settings of a section."""
    for name, field in model.model_fields.items():
        here = (*above, field.alias or name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys(field.annotation, *here)
        else:
            yield here


def _editable() -> Iterator[KeyPath]:
    yield ("lanes", _NAMED, "size")
    yield from _keys(Queue, "queue")
    yield from _keys(HeartbeatSettings, "heartbeat")
    agent = ("agents", _NAMED)
    for key in ("model", "fallback", "context_window", "temperature", "thinking", "max_concurrent"):
        yield (*agent, key)
    yield from _keys(RunBudget, *agent, "budget")
    yield from _keys(HeartbeatSettings, *agent, "heartbeat")
    yield from _keys(Queue, *agent, "queue")
    channel = ("channels", _NAMED)
    for account in (channel, (*channel, "accounts", _NAMED)):
        chat = (*account, "chats", _NAMED)
        for place in (account, chat, (*chat, "threads", _NAMED)):
            for key in ("agent", "mention", "context_messages"):
                yield (*place, key)
            yield from _keys(Queue, *place, "queue")
        yield (*account, "groups")
        yield (*chat, "enabled")


_EDITABLE: Final = frozenset(_editable())


# ---------------------------------------------------------------------------- paths


def parse_path(text: str) -> KeyPath | None:
    """Read a path such as ``channels.telegram.chats."-100".agent``; None if it is not one."""
    keys: list[str] = []
    place = 0
    while (found := _KEY.match(text, place)) is not None and len(text) <= MAX_PATH_CHARS:
        word = found[0]
        try:
            keys.append(json.loads(word) if word.startswith('"') else word)
        except ValueError:
            return None
        place = found.end()
        if place == len(text):
            return tuple(keys) if all(map(str.isprintable, keys)) else None
        if text[place] != ".":
            return None
        place += 1
    return None


def is_editable(path: KeyPath) -> bool:
    """Return whether a setting can be edited at run time, unless a variable sets it."""
    kinds, _ = _walk(path)
    return kinds in _EDITABLE


def refusal(base: Settings, path: KeyPath) -> str:
    """Return why a setting cannot be edited, "" if it can. ``base`` is without edits."""
    kinds, _ = _walk(path)
    if not kinds or kinds[-1] == _NAMED:
        return "there is no such setting" + _nearest(base, path)
    if kinds not in _EDITABLE:
        return (
            "this setting cannot be changed at run time; change it in the settings file or a "
            "variable, which a gateway reads when it starts"
        )
    if missing := _missing(base, path):
        return missing
    origin = base.place(path)
    if origin.kind is OriginKind.ENVIRONMENT:
        return f"{origin.words} sets it, and overrides edits"
    return ""


def value_refusal(base: Settings, path: KeyPath, value: str) -> str:
    """Return why a value cannot be stored, "" if it can; its meaning is not checked."""
    if len(value) > MAX_VALUE_CHARS:
        return f"must have at most {MAX_VALUE_CHARS:,} characters, not {len(value):,}"
    if not value.isprintable():
        return "must be one line of text without control characters"
    kinds, _ = _walk(path)
    # Who may use the dashboard must not thereby be able to run any function of this machine.
    is_code = kinds == ("agents", _NAMED, "model") and value.strip().startswith("python:")
    if is_code and value.strip() != base.agents[path[1]].model.strip():
        return "an agent in Python code can be chosen only in the settings file"
    return ""


def choices(path: KeyPath) -> tuple[str, ...]:
    """Return the words that a setting allows; () if it allows other values too."""
    _, field = _walk(path)
    return () if field is None else tuple(_words(field.annotation, field.metadata))


def _walk(path: KeyPath) -> tuple[KeyPath, FieldInfo | None]:
    """Return the path with ``*`` for keys that users chose, () if there is no such setting."""
    here: Any = Settings
    kinds: list[str] = []
    field: FieldInfo | None = None
    for key in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            fields = {one.alias or name: one for name, one in here.model_fields.items()}
            field = fields.get(key)
            if field is None:
                return (), None
            kinds.append(key)
            here = field.annotation
        elif get_origin(here) is dict:
            kinds.append(_NAMED)
            here, field = get_args(here)[1], None
        else:
            return (), None
    return tuple(kinds), field


def _words(annotation: Any, metadata: Iterable[object] = ()) -> Iterator[str]:
    origin = get_origin(annotation)
    if annotation is bool or any(isinstance(one, Flag) for one in metadata):
        yield from ("true", "false")
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (str(one.value) for one in annotation)
    elif origin is Literal:
        yield from map(str, get_args(annotation))
    elif origin is Annotated:
        kind, *more = get_args(annotation)
        yield from _words(kind, more)
    elif origin in (Union, UnionType):
        for one in get_args(annotation):
            yield from _words(one)


def _missing(base: Settings, path: KeyPath) -> str:
    """Return which agent, lane, channel or account of a path does not exist, "" if all do."""
    section, name = path[0], path[1]
    if section in ("lanes", "agents"):
        names = list(base.lanes if section == "lanes" else base.agents)
        noun = section.removesuffix("s")
        return "" if name in names else f"there is no such {noun}; use one of {', '.join(names)}"
    if section != "channels" or name == CONSOLE:
        return ""
    if name not in base.channels:
        known = ", ".join([*base.channels, CONSOLE])
        return f"there is no such channel; use one of {known}"
    accounts = base.channels[name].by_name
    account = path[3] if path[2] == "accounts" else DEFAULT_ACCOUNT
    if account in accounts:
        return ""
    return f"there is no such account; use one of {', '.join(accounts)}"


def _nearest(base: Settings, path: KeyPath) -> str:
    near = difflib.get_close_matches(dotted(path), [one.path for one in shown(base)], n=1)
    return f"; did you mean {near[0]}?" if near else ""


# ---------------------------------------------------------------------------- values


def with_values(base: Settings, edits: Iterable[tuple[str, str, str]]) -> Settings:
    """Return the settings with values in place of those of the file.

    ``edits`` are editable paths, values, and where these are from, for people. Raises
    ``SettingError`` as ``load`` does.
    """
    given = [(path, value, Origin(OriginKind.EDIT, origin)) for path, value, origin in edits]
    return load_edited(base, _layer(given)) if given else base


def as_in_gateway(base: Settings, listed: Iterable[Setting]) -> Settings:
    """Return the settings with the variables and edits of a gateway, which ``listed`` its settings.

    It may have been started with other variables than ``base`` was read with. Its secrets stay
    unknown. Raises ``SettingError`` as ``load`` does.
    """
    ours = base.layers[0].origins
    given = [
        (one.path, value_text(one.value), Origin(one.kind, one.origin))
        for one in listed
        if not (one.secret or one.value is None or MASK in str(one.value))
        if one.kind in (OriginKind.ENVIRONMENT, OriginKind.EDIT) or parse_path(one.path) in ours
    ]
    return load_started(base, _layer(given)) if given else base


def _layer(given: Iterable[tuple[str, str, Origin]]) -> Layer:
    values: Tree = {}
    origins: dict[KeyPath, Origin] = {}
    for text, value, origin in given:
        path = parse_path(text)
        assert path is not None, text
        table = values
        for key in path[:-1]:
            table = table.setdefault(key, {})
        table[path[-1]] = EnvText(value)
        origins[path] = origin
    return Layer(values, origins)


def value_text(value: SettingValue) -> str:
    """Write a value as in an environment variable; "" if it is not set."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return f"{Decimal(str(value)):f}".removesuffix(".0")
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def normal_path(path: KeyPath) -> str:
    """Write a path as ``goclaw config show`` does."""
    return dotted(path)
