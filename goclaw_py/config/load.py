"""Load the settings from file, environment and defaults, and report every mistake."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from goclaw_py.config.heartbeat_plans import problems
from goclaw_py.config.lanes import OF_CHILDREN
from goclaw_py.config.models import AccountSettings, ChannelSettings, Settings
from goclaw_py.config.origins import traced
from goclaw_py.config.section import Section
from goclaw_py.config.sources import SECTIONS, EnvironmentSource, FileSource, NotToml, Source
from goclaw_py.config.types import ALLOWED
from goclaw_py.model.errors import SettingError
from goclaw_py.model.session_keys import DEFAULT_ACCOUNT

_SECRET_WORDS = ("token", "key", "secret", "password", "url", "headers")
_SECTIONS_WITH_SECRETS = ("agents", "channels", "database", "sources", "web")
# A token may stand under a wrong key, where only its looks give it away.
_LOOKS_SECRET = re.compile(r"\S{24}")
_SHOWN_CHARS = 80


class SettingErrors(SettingError):
    """Several settings are wrong. ``errors`` has all of them, ``str()`` one line for each."""

    def __init__(self, errors: Iterable[SettingError]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        super().__init__(first.key, first.value, first.allowed, source=first.source)

    def __str__(self) -> str:
        """All errors, one on each line."""
        return "\n".join(str(error) for error in self.errors)


class _Shown(str):
    """A value described in words: its ``repr`` has no quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


_TABLE = _Shown("(a table)")
_LIST = _Shown("(a list)")
_MASK = _Shown("***")
_NOTHING = _Shown("(missing)")


def find_file(config: Path | None, env: Mapping[str, str]) -> tuple[Path, Path | None]:
    """Return the home folder and the settings file, which is None if there is none.

    A file that is named explicitly is returned even if it does not exist.
    """
    home = Path(env.get("GOCLAW_HOME") or Path.home() / ".goclaw").expanduser().absolute()
    named = config or (Path(env["GOCLAW_CONFIG"]) if env.get("GOCLAW_CONFIG") else None)
    if named is not None:
        return home, named.expanduser().absolute()
    usual = home / "goclaw.toml"
    return home, usual if usual.exists() else None


def load(config: Path | None = None, env: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. The environment overrides the file, the file overrides the defaults.

    ``config`` overrides ``$GOCLAW_CONFIG``, which overrides ``<home>/goclaw.toml``. Raises
    ``SettingError`` with all mistakes, each with its origin, key path, value (secrets masked) and
    what is allowed.
    """
    env = os.environ if env is None else env
    home, file = find_file(config, env)
    environment = EnvironmentSource(Settings, env)
    sources: list[Source] = [environment]
    errors = list(environment.unknown)
    if file is not None:
        try:
            from_file = FileSource(Settings, file)
        except NotToml as error:
            raise _together([error, *errors]) from error
        errors += _reserved(from_file.values, str(file))
        sources.append(from_file)
    try:
        settings = _from_sources(sources)(home=home, file=file)
    except ValidationError as error:
        default = str(file) if file else "the defaults"
        details = error.errors(include_url=False)
        errors += [_translate(detail, environment.origins, default) for detail in details]
        # Pydantic's own text shows the input, which may be a secret: no ``from error``.
        raise _together(errors) from None
    settings.remember(environment.origins, traced(source.places for source in sources))
    errors += _cross_check(settings)
    if errors:
        raise _together(errors)
    return settings


def _from_sources(sources: list[Source]) -> type[Settings]:
    class Loaded(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            del settings_cls, env_settings, dotenv_settings, file_secret_settings
            return (init_settings, *sources)

    return Loaded


def _together(errors: list[SettingError]) -> SettingError:
    unique = list({str(error): error for error in errors}.values())
    return unique[0] if len(unique) == 1 else SettingErrors(unique)


def _reserved(values: Mapping[str, object], source: str) -> list[SettingError]:
    """Reject ``home`` and ``file``: they are fields of the settings, but not keys of the file."""
    found = [key for key in ("home", "file") if key in values]
    hint = f"unknown key; known here: {', '.join(SECTIONS)}"
    return [SettingError(key, _shown((key,), values[key]), hint, source=source) for key in found]


def _translate(
    detail: ErrorDetails, origins: Mapping[tuple[str, ...], str], default: str
) -> SettingError:
    path = tuple(str(part) for part in detail["loc"] if part != "[key]")
    source = next(
        (origins[path[:n]] for n in range(len(path), 0, -1) if path[:n] in origins), default
    )
    value = _shown(path, detail["input"])
    # A mistyped ``api_key`` is an unknown key with a secret as its value.
    unknown = detail["type"] == "extra_forbidden" and isinstance(detail["input"], str)
    if unknown and path[0] in _SECTIONS_WITH_SECRETS:
        value = _MASK
    if detail["type"] == "missing":  # its input is the table around it
        value = _NOTHING
    return SettingError(".".join(path), value, _allowed(detail, path), source=source)


def _allowed(detail: ErrorDetails, path: tuple[str, ...]) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            return unknown_key(path[-1], _keys_at(Settings, path[:-1]))
        case "missing":
            table = _at(Settings, path[:-1])
            what = table.model_fields[path[-1]].description if _is_model(table) else ""
            return f"is required: {what}"
        case "enum" | "literal_error":
            return f"must be {context['expected']}"
        case kind if kind == ALLOWED:
            return str(context["allowed"])
        case "model_type" | "model_attributes_type" | "dict_type":
            return "must be a table"
        case "string_type" | "path_type":
            return "must be text"
        case _:
            return detail["msg"][0].lower() + detail["msg"][1:]


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the error text of an unknown key, with the allowed keys and the nearest one."""
    known = sorted(known)
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"unknown key; known here: {', '.join(known)}{hint}"


def _keys_at(model: type[BaseModel], path: tuple[str, ...]) -> list[str]:
    """Return the keys that a table of the file may have."""
    here = _at(model, path)
    return list(_fields(here)) if _is_model(here) else []


def _at(model: type[BaseModel], path: tuple[str, ...]) -> Any:
    """Return the type of the value at a path, None if there is no such path."""
    here: Any = model
    for part in path:
        if _is_model(here):
            field = _fields(here).get(part)
            here = None if field is None else field
        else:
            # A table of tables: its last type argument is the type of each of them.
            here = (get_args(here) or (None,))[-1]
    return here


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    hidden = {"home", "file"} if model is Settings else {"options"}
    return {
        field.alias or name: field.annotation
        for name, field in model.model_fields.items()
        if name not in hidden
    }


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _shown(path: tuple[str, ...], value: object) -> object:
    """Return a value for an error message: secrets masked, long text cut, no table contents."""
    if isinstance(value, _Shown):
        return value
    if isinstance(value, Mapping):
        return _TABLE
    if is_secret(path) or (path[0] in _SECTIONS_WITH_SECRETS and _LOOKS_SECRET.search(str(value))):
        return _MASK
    if isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        return _LIST
    if isinstance(value, str):
        return str(value) if len(value) <= _SHOWN_CHARS else value[:_SHOWN_CHARS] + "…"
    return _Shown(repr(value)[:_SHOWN_CHARS])


def is_secret(path: tuple[str, ...]) -> bool:
    """Whether the value at a path must never be shown (SPEC SEC-2)."""
    # A number of tokens is not a secret.
    if path[-1] == "tokens" and "budget" in path:
        return False
    # Most environment variables of MCP servers are API keys, whatever their names.
    return path[4:5] == ("env",) or any(
        word in part.lower()
        for part in path[1:]
        for word in _SECRET_WORDS
        if not part.lower().endswith(("_file", "_env"))
    )


def _cross_check(settings: Settings) -> list[SettingError]:
    """Find mistakes that concern several tables."""
    errors = _check_database(settings) + _check_web(settings) + _check_lanes(settings)
    errors += [wrong(settings, *problem) for problem in problems(settings)]
    for name, source in settings.sources.items():
        errors += _only_one(settings, ("sources", name), source, "token")
    errors += [error for name in settings.agents for error in _check_agent(settings, name)]
    for name, channel in settings.channels.items():
        path = ("channels", name)
        errors += _check_account(settings, path, channel)
        for account, section in channel.accounts.items():
            errors += _check_account(settings, (*path, "accounts", account), section)
        if DEFAULT_ACCOUNT in channel.accounts:
            where = (*path, "accounts", DEFAULT_ACCOUNT)
            errors.append(wrong(settings, where, _TABLE, f"set it in [channels.{name}] instead"))
    return errors


def _check_agent(settings: Settings, name: str) -> list[SettingError]:
    return _only_one(settings, ("agents", name), settings.agents[name], "api_key")


def _only_one(
    settings: Settings, path: tuple[str, ...], section: Section, key: str
) -> list[SettingError]:
    """Check that a secret is set in only one place: the settings, a file or a variable."""
    given = [
        each for each in (key, f"{key}_file", f"{key}_env") if getattr(section, each) is not None
    ]
    return [
        wrong(
            settings,
            (*path, each),
            getattr(section, each),
            f"{given[0]} is also set; remove one of them",
        )
        for each in given[1:]
    ]


def _check_lanes(settings: Settings) -> list[SettingError]:
    what = "must be node: shared by all nodes, runs of this lane could deadlock"
    return [
        wrong(settings, ("lanes", lane, "scope"), settings.lanes[lane].scope.value, what)
        for lane in sorted(OF_CHILDREN & settings.shared_lanes)
    ]


def _check_web(settings: Settings) -> list[SettingError]:
    web = settings.web
    errors = _only_one(settings, ("web",), web, "token")
    if web.api and not web.is_loopback and not web.has_token:
        what = (
            "anyone who can reach this address could call the HTTP API: set web.token_file "
            "(or web.token_env, web.token), or leave the host at 127.0.0.1"
        )
        errors.append(wrong(settings, ("web", "host"), web.host, what))
    return errors


def _check_database(settings: Settings) -> list[SettingError]:
    url = settings.database.url
    if url is None:
        return []
    path = ("database", "url")
    if not url.get_secret_value().startswith(("postgresql://", "postgres://")):
        return [wrong(settings, path, url, "must start with postgresql://")]
    try:
        parts = urlsplit(url.get_secret_value())
        readable = parts.port != 0 and not parts.fragment
    except ValueError:
        readable = False
    if readable:
        return []
    what = "is not a valid URL; characters such as / # ? @ in a password must be percent-encoded"
    return [wrong(settings, path, url, what)]


def _check_account(
    settings: Settings, path: tuple[str, ...], account: AccountSettings | ChannelSettings
) -> list[SettingError]:
    if account.agent in settings.agents:
        return []
    known = ", ".join(sorted(settings.agents))
    return [
        wrong(
            settings,
            (*path, "agent"),
            account.agent,
            f"there is no such agent; use one of: {known}",
        )
    ]


def wrong(settings: Settings, path: tuple[str, ...], value: object, allowed: str) -> SettingError:
    """Create the error of a setting that is found to be wrong after loading."""
    return SettingError(".".join(path), _shown(path, value), allowed, source=settings.origin(path))
