"""``goclaw doctor``: what is wrong, and what to do about it."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import goclaw_py
from goclaw_py.cli.context import Cli, cli
from goclaw_py.cli.exits import ExitCode
from goclaw_py.cli.output import plain
from goclaw_py.core.errors import ChannelRefused, GoclawError, SettingError

if TYPE_CHECKING:
    from goclaw_py.config import Settings
    from goclaw_py.core.status import ChannelView

OLDEST = (3, 11)
FIRST_TOO_NEW = (3, 15)


@dataclass(frozen=True, slots=True)
class Finding:
    """One check. ``cure`` is empty when nothing is wrong; a problem without one is a hint."""

    subject: str
    fact: str
    cure: str = ""
    is_hint: bool = False


def doctor(
    ctx: typer.Context,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Check the installation, the settings and what they lead to."""
    findings = list(examine(cli(ctx)))
    if as_json:
        from goclaw_py.cli.output import show_json  # noqa: PLC0415

        show_json(list[Finding], findings)
    else:
        for finding in findings:
            typer.echo(_words(finding))
    if any(finding.cure and not finding.is_hint for finding in findings):
        raise typer.Exit(ExitCode.FAILED)


def _words(finding: Finding) -> str:
    mark = "ok   " if not finding.cure else "hint " if finding.is_hint else "WRONG"
    text = f"{mark}  {finding.subject}: {plain(finding.fact)}"
    return f"{text}\n       → {plain(finding.cure)}" if finding.cure else text


def examine(options: Cli) -> Iterator[Finding]:
    """All checks, those that others depend on first."""
    yield check_python(sys.version_info[:2])
    yield check_channels_package()
    try:
        settings = options.settings()
    except SettingError as error:
        for line in str(error).splitlines():
            yield Finding("settings", line, "correct this setting")
        return
    yield Finding("settings", str(settings.file or "none, the defaults are used"))
    yield check_folder(settings.state_folder)
    yield check_parts(settings)
    yield from check_telegram(settings)
    yield from check_keys(settings)
    yield from check_prices(settings)
    yield from check_heartbeats(settings)
    yield from check_database(settings)
    yield check_gateway(settings)


def check_python(version: tuple[int, int]) -> Finding:
    """The release of Python."""
    fact = ".".join(str(part) for part in version)
    if OLDEST <= version < FIRST_TOO_NEW:
        return Finding("python", fact)
    return Finding("python", fact, "install Python 3.11 to 3.14 and make a new environment with it")


def check_channels_package() -> Finding:
    """Whether ``channels`` is ours: Django Channels has the same import name."""
    ours = Path(goclaw_py.__file__).resolve().parent.parent / "channels"
    spec = importlib.util.find_spec("channels")
    places = (
        [] if spec is None else [Path(p).resolve() for p in spec.submodule_search_locations or ()]
    )
    if ours in places:
        return Finding("channels package", str(ours))
    found = ", ".join(str(place) for place in places) or "missing"
    cure = "install goclaw_py into an environment of its own"
    return Finding("channels package", f"{found} instead of {ours}", cure)


def check_folder(folder: Path) -> Finding:
    """Whether the state folder can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Finding("state folder", str(folder))
    except OSError as error:
        cure = "make it writable, or set state.folder"
        return Finding("state folder", f"{folder}: {error.strerror}", cure)


def check_parts(settings: Settings) -> Finding:
    """What only a channel or an agent can judge about its settings."""
    from goclaw_py.cli import composition  # noqa: PLC0415

    try:
        asyncio.run(composition.check_parts(settings))
    except GoclawError as error:
        return Finding("channels and agents", str(error), "correct this setting")
    names = [*settings.channels, *(f"agent {name}" for name in settings.agents)]
    return Finding("channels and agents", ", ".join(names))


def check_telegram(settings: Settings) -> Iterator[Finding]:
    """What the running gateway says of its channels, or else what their servers say."""
    from goclaw_py.config import accounts  # noqa: PLC0415
    from goclaw_py.web.sockets import is_answered, socket_path  # noqa: PLC0415

    if not any(account.channel == "telegram" for account in accounts(settings)):
        cure = "get a token from @BotFather, set GOCLAW_TELEGRAM_TOKEN or channels.telegram.token"
        yield Finding("telegram", "not set up", cure, is_hint=True)
    elif is_answered(socket_path(settings.state_folder)):
        yield from _channels_at_work(settings)
    else:
        yield from _channels_asked(settings)


def _channels_at_work(settings: Settings) -> Iterator[Finding]:
    from goclaw_py.cli.context import connected  # noqa: PLC0415

    async def views() -> tuple[ChannelView, ...]:
        async with connected(settings) as control:
            return (await control.status()).channels

    try:
        channels = asyncio.run(views())
    except GoclawError as error:
        yield Finding("channels", str(error), "goclaw status")
        return
    for view in channels:
        fact = f"{view.state}{', ' if view.detail else ''}{view.detail}"
        is_hint = view.state == "waiting"
        cure = "see the log of the gateway; it tries again by itself" if view.detail else ""
        if view.state == "stopped":
            cure = "correct the token and start the gateway again"
        yield Finding(f"channel {view.name}/{view.account}", fact, cure, is_hint=is_hint)


def _channels_asked(settings: Settings) -> Iterator[Finding]:
    from goclaw_py.cli import composition  # noqa: PLC0415

    try:
        answers = asyncio.run(composition.probe_channels(settings))
    except GoclawError:
        return  # ``check_parts`` has said it
    for name, answer in answers:
        match answer:
            case str():
                yield Finding(f"channel {name}", answer)
            case ChannelRefused():
                cure = "get a token from @BotFather and correct token or token_file"
                yield Finding(f"channel {name}", str(answer), cure)
            case _:
                cure = "check the network of this machine, and base_url"
                yield Finding(f"channel {name}", str(answer), cure)


def check_keys(settings: Settings) -> Iterator[Finding]:
    """Whether every model of an agent has a library, and a key or a server that may need none."""
    from goclaw_py.config import api_key  # noqa: PLC0415
    from goclaw_py.core.ids import AgentName  # noqa: PLC0415

    for name, agent in settings.agents.items():
        subject, place = f"agent {name}", f"agents.{name}"
        try:
            key = api_key(settings, AgentName(name), os.environ)
        except SettingError as error:
            yield Finding(subject, str(error), "correct this setting")
            continue
        given = None if key is None else key.get_secret_value()
        yield _check_model(subject, agent.model, given, agent.base_url, place)
        for other in agent.fallback:
            yield _check_model(f"{subject}, fallback", other, None, None)


def _check_model(
    subject: str, model: str, key: str | None, base_url: str | None, place: str = ""
) -> Finding:
    """One model. ``place``: where the settings may hold its key and its address."""
    from goclaw_py.agents.models import (  # noqa: PLC0415
        find_key,
        find_url,
        is_sendable,
        lacks,
        read_model,
    )

    read = read_model(model)
    if read is None:
        # ``check_parts`` has judged it.
        return Finding(subject, model)
    provider = read[0]
    if not provider.is_installed:
        return Finding(subject, f"{model} without its library", provider.install)
    found = find_key(provider, key, os.environ)
    missing = lacks(provider, found, find_url(provider, base_url, os.environ))
    if missing is not None:
        is_key = missing in provider.key_variables
        what, setting = ("a key", "api_key_file") if is_key else ("an address", "base_url")
        cure = f"set {missing}, or {place}.{setting}" if place else f"set {missing}"
        return Finding(subject, f"{model} without {what}", cure)
    if not is_sendable(found):
        return Finding(subject, f"{model} with a key that is none", "correct the key")
    return Finding(subject, model)


def check_prices(settings: Settings) -> Iterator[Finding]:
    """Whether budgets of money can hold (SPEC AGENT-5)."""
    from goclaw_py.agents.models import find_url, is_priced, read_model  # noqa: PLC0415

    for name, agent in settings.agents.items():
        budget = agent.budget
        parts = (("", budget), ("session_day.", budget.session_day), ("day.", budget.day))
        in_usd = [f"{part}usd" for part, one in parts if one.usd is not None]
        for place, model in enumerate((agent.model, *agent.fallback)):
            read = read_model(model)
            if read is None or not in_usd:
                continue
            url = find_url(read[0], None if place else agent.base_url, os.environ)
            if not is_priced(*read, url):
                fact = f"the price of {model} is not known, so {', '.join(in_usd)} cannot hold"
                cure = f"set agents.{name}.budget.tokens too"
                yield Finding(f"agent {name}, budget", fact, cure, is_hint=bool(budget.tokens))


def check_heartbeats(settings: Settings) -> Iterator[Finding]:
    """How each agent beats, and whether the channel of its alerts is switched on (SPEC HB-8)."""
    from goclaw_py.config import heartbeat_policy, switched_off  # noqa: PLC0415
    from goclaw_py.core.heartbeat_target import heartbeat_target_text  # noqa: PLC0415
    from goclaw_py.core.ids import AgentName  # noqa: PLC0415
    from goclaw_py.core.intervals import in_words  # noqa: PLC0415

    for name in map(AgentName, settings.agents):
        policy = heartbeat_policy(settings, name)
        subject = f"agent {name}, heartbeat"
        if policy.interval is None:
            yield Finding(subject, "off")
            continue
        hours = "" if policy.hours is None else f", {policy.hours}"
        to = heartbeat_target_text(policy.target)
        fact = f"{in_words(policy.interval)}{hours}, target {to}"
        off = switched_off(settings, policy.target)
        cure = f"set {off} = true, or another target" if off else ""
        yield Finding(subject, f"{fact}, which is switched off" if off else fact, cure)


def check_database(settings: Settings) -> Iterator[Finding]:
    """Whether the database answers and has this release's schema."""
    from goclaw_py.cli import composition  # noqa: PLC0415

    kind = "embedded" if settings.database.url is None else "managed"
    try:
        status = asyncio.run(composition.schema(settings))
    except GoclawError as error:
        cure = (
            "see the log in the state folder, or set GOCLAW_DATABASE_URL"
            if kind == "embedded"
            else "start the database, or correct database.url"
        )
        yield Finding("database", f"{kind}: {error}", cure)
        return
    yield Finding("database", f"{kind}, version {status.current}")
    if status.pending:
        # ``goclaw run`` does it by itself.
        fact = f"{len(status.pending)} pending: {', '.join(status.pending)}"
        yield Finding(
            "migrations", fact, "goclaw run applies them, or: goclaw migrate", is_hint=True
        )


def check_gateway(settings: Settings) -> Finding:
    """Whether a gateway runs."""
    from goclaw_py.web.sockets import is_answered, socket_path  # noqa: PLC0415

    path = socket_path(settings.state_folder)
    if is_answered(path):
        return Finding("gateway", f"runs, {path}")
    return Finding("gateway", "does not run", "goclaw run", is_hint=True)
