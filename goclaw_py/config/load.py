"""Load the settings from file, environment and defaults, and report every mistake."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from goclaw_py.config.lanes import OF_CHILDREN
from goclaw_py.config.masking import A_TABLE, HIDDEN, Plain, may_have_secrets, printable
from goclaw_py.config.models import AccountSettings, ChannelSettings, Settings
from goclaw_py.config.origins import KeyPath, Origin, Origins
from goclaw_py.config.policies import problems
from goclaw_py.config.sign_in import GroupRules, WebOpenid, WebProxy
from goclaw_py.config.sources import (
    SECTIONS,
    Layer,
    NotToml,
    Tree,
    merged,
    read_environment,
    read_file,
)
from goclaw_py.config.types import ALLOWED, Section, about
from goclaw_py.core.errors import SettingError, SettingErrors
from goclaw_py.core.net.database_url import url_problem
from goclaw_py.core.net.proxies import is_loopback
from goclaw_py.core.session_keys import DEFAULT_ACCOUNT
from goclaw_py.core.text import natural_key, requirement
from goclaw_py.core.web_links import OWN_CHANNELS


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


def load(
    config: Path | None = None, env: Mapping[str, str] | None = None, *, text: str | None = None
) -> Settings:
    """Read the settings. The environment overrides the file, the file overrides the defaults.

    ``config`` overrides ``$GOCLAW_CONFIG``, which overrides ``<home>/goclaw.toml``; with ``text``
    the file need not exist, and has this content. Raises ``SettingError`` with all mistakes, each
    with its origin, key path, value (secrets masked) and what is allowed.
    """
    env = os.environ if env is None else env
    home, file = find_file(config, env)
    top, errors = read_environment(env)
    below = Layer({}, {})
    if file is not None:
        try:
            below = read_file(file, text)
        except NotToml as error:
            raise _together([error, *errors]) from error
        errors += _reserved(below)
    return _validated([top, below], home, file, errors)


def load_edited(base: Settings, edits: Layer) -> Settings:
    """Return settings from the same file and environment, with edits between these two.

    ``base`` was returned by ``load``; neither file nor environment is read again. Raises
    ``SettingError`` as ``load`` does.
    """
    top, *_, below = base.layers
    return _validated([top, edits, below], base.home, base.file, [])


def load_started(base: Settings, gateway: Layer) -> Settings:
    """Return settings of the same file, with what a gateway was given before all else.

    Raises ``SettingError`` as ``load`` does.
    """
    return _validated([gateway, *base.layers], base.home, base.file, [])


def _validated(
    layers: Sequence[Layer], home: Path, file: Path | None, errors: list[SettingError]
) -> Settings:
    """Create settings from layers, the strongest first. Raises ``SettingError``."""
    values: Tree = {}
    found: dict[KeyPath, Origin] = {}
    for layer in layers:
        values, found = merged(values, layer.values), {**layer.origins, **found}
    origins = Origins(found)
    try:
        settings = Settings.model_validate({**values, "home": home, "file": file})
    except ValidationError as error:
        default = str(file) if file else "the defaults"
        errors += [_translate(detail, origins, default) for detail in error.errors()]
        # Pydantic's own text shows the input, which may be a secret: no ``from error``.
        raise _together(errors) from None
    settings.remember(origins, layers)
    errors += _cross_check(settings)
    if errors:
        raise _together(errors)
    return settings


def _together(errors: list[SettingError]) -> SettingError:
    """Return all errors once, those of a file in the order of its lines."""
    unique = list({str(error): error for error in errors}.values())
    unique.sort(key=lambda error: natural_key(error.source))
    return unique[0] if len(unique) == 1 else SettingErrors(unique)


def _reserved(layer: Layer) -> list[SettingError]:
    """Reject ``home`` and ``file``: they are fields of the settings, but not keys of the file."""
    hint = f"unknown key; known here: {', '.join(SECTIONS)}"
    return [
        SettingError(
            key, printable((key,), layer.values[key]), hint, source=layer.origins[(key,)].words
        )
        for key in ("home", "file")
        if key in layer.values
    ]


def _translate(detail: ErrorDetails, origins: Origins, default: str) -> SettingError:
    path = tuple(str(part) for part in detail["loc"] if part != "[key]")
    origin = origins.at(path)
    value = printable(path, detail["input"])
    # A mistyped ``api_key`` is an unknown key with a secret as its value.
    unknown = detail["type"] == "extra_forbidden" and isinstance(detail["input"], str)
    if unknown and may_have_secrets(path):
        value = HIDDEN
    if detail["type"] == "missing":  # its input is the table around it
        value = Plain("(missing)")
    source = origin.words if origin else default
    return SettingError(".".join(path), value, _allowed(detail, path), source=source)


def _allowed(detail: ErrorDetails, path: tuple[str, ...]) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            return unknown_key(path[-1], _keys_at(Settings, path[:-1]))
        case "missing":
            table = _at(Settings, path[:-1])
            what = about(table.model_fields[path[-1]]) if _is_model(table) else ""
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
            allowed = requirement(detail["msg"])
            return allowed[0].lower() + allowed[1:]


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the error text of an unknown key, with the nearest key and all allowed ones."""
    known = sorted(known)
    near = difflib.get_close_matches(key, known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown key{hint}; known here: {', '.join(known)}"


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


def _cross_check(settings: Settings) -> Iterator[SettingError]:
    """Find mistakes that concern several tables."""
    yield from _check_database(settings)
    yield from _check_web(settings)
    for lane in sorted(OF_CHILDREN & settings.shared_lanes):
        what = "must be node: shared by all nodes, runs of this lane could deadlock"
        yield settings.error(("lanes", lane, "scope"), settings.lanes[lane].scope.value, what)
    for problem in problems(settings):
        yield settings.error(*problem)
    for name, source in settings.sources.items():
        yield from _only_one(settings, ("sources", name), source, "token")
    for name, agent in settings.agents.items():
        yield from _only_one(settings, ("agents", name), agent, "api_key")
    for name, channel in settings.channels.items():
        path = ("channels", name)
        yield from _check_account(settings, path, channel)
        for account, section in channel.accounts.items():
            yield from _check_account(settings, (*path, "accounts", account), section)
        if DEFAULT_ACCOUNT in channel.accounts:
            what = f"set it in [channels.{name}] instead"
            yield settings.error((*path, "accounts", DEFAULT_ACCOUNT), A_TABLE, what)
        if name in OWN_CHANNELS:
            yield from _check_own(settings, path, channel)


def _check_own(
    settings: Settings, path: KeyPath, channel: ChannelSettings
) -> Iterator[SettingError]:
    """Check a channel that every gateway has: it has one account, and no options."""
    known = AccountSettings.model_fields.keys() - {"options"}
    for key, value in channel.options.items():
        yield settings.error((*path, key), value, unknown_key(key, known))
    if channel.accounts:
        yield settings.error((*path, "accounts"), A_TABLE, unknown_key("accounts", known))


def _only_one(
    settings: Settings, path: KeyPath, section: Section, key: str
) -> Iterator[SettingError]:
    """Check that a secret is set in only one place: the settings, a file or a variable."""
    keys = (key, f"{key}_file", f"{key}_env")
    given = [each for each in keys if getattr(section, each) is not None]
    for each in given[1:]:
        what = f"{given[0]} is also set; remove one of them"
        yield settings.error((*path, each), getattr(section, each), what)


def _check_web(settings: Settings) -> Iterator[SettingError]:
    web = settings.web
    yield from _only_one(settings, ("web",), web, "token")
    if web.api and not web.is_loopback and not web.has_token:
        what = (
            "anyone who can reach this address could call the HTTP API: set web.token_file "
            "(or web.token_env, web.token), or leave the host at 127.0.0.1"
        )
        yield settings.error(("web", "host"), web.host, what)
    if web.proxy != WebProxy():
        yield from _check_sign_in(settings, "proxy", "addresses", web.proxy)
    if web.openid != WebOpenid():
        yield from _check_sign_in(settings, "openid", "issuer", web.openid)
        yield from _check_openid(settings, web.openid)


def _check_sign_in(
    settings: Settings, name: str, needed: str, rules: GroupRules
) -> Iterator[SettingError]:
    """Check a way to sign in besides the token."""
    path = ("web", name)
    if not getattr(rules, needed):
        yield settings.error((*path, needed), Plain("not set"), f"[web.{name}] needs it")
    if not settings.web.has_token:
        what = "needs a token for programs and emergencies, too: set web.token_file"
        yield settings.error(path, A_TABLE, what)
    roles = rules.admin_groups, rules.operator_groups, rules.viewer_groups, rules.default_role
    if not any(roles):
        what = "nobody would have a role: set admin_groups, operator_groups or viewer_groups"
        yield settings.error(path, A_TABLE, what)


def _check_openid(settings: Settings, given: WebOpenid) -> Iterator[SettingError]:
    path = ("web", "openid")
    yield from _only_one(settings, path, given, "client_secret")
    if given.client_id is None:
        what = "register this gateway at the provider, and set the id that it gets there"
        yield settings.error((*path, "client_id"), Plain("not set"), what)
    parts = urlsplit(given.issuer or "")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        what = "must begin with https://, else anybody on the way can sign in as anybody"
        yield settings.error((*path, "issuer"), given.issuer, what)
    if settings.web.public_url is None:
        what = "[web.openid] needs it: the provider leads browsers back to this address"
        yield settings.error(("web", "public_url"), Plain("not set"), what)


def _check_database(settings: Settings) -> Iterator[SettingError]:
    url = settings.database.url
    if url is None:
        return
    if (problem := url_problem(url.get_secret_value())) is not None:
        yield settings.error(("database", "url"), url, problem)


def _check_account(
    settings: Settings, path: KeyPath, account: AccountSettings
) -> Iterator[SettingError]:
    if account.agent not in settings.agents:
        known = ", ".join(sorted(settings.agents))
        what = f"there is no such agent; use one of: {known}"
        yield settings.error((*path, "agent"), account.agent, what)
