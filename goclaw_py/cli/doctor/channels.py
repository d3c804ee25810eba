"""Checks of channels, webhooks, the web server, owners and groups."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from goclaw_py.cli.doctor.finding import DoctorFacts, Finding
from goclaw_py.config import ChannelAccount, accounts, web_token
from goclaw_py.core.errors import ChannelError, ChannelRefused, SettingError
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.session_keys import GroupPolicy
from goclaw_py.records import Standing
from goclaw_py.scheduler.views import ChannelState, GatewayStatus
from goclaw_py.web.tcp import CannotListen, listen_tcp

_TELEGRAM_PORTS: Final = frozenset({80, 88, 443, 8443})
_PRIVACY: Final = "privacy mode is on"
_SHORT_TOKEN: Final = 24
_FEW_CHARACTERS: Final = 8
_PROXY: Final = "the proxy "
_TROUBLE: Final = "Telegram says: "
"""Prefix with which a channel's probe reports why its server could not deliver."""


def check_channels(facts: DoctorFacts) -> Iterator[Finding]:
    """Check channels: by the running gateway, otherwise by asking their servers."""
    if isinstance(facts.gateway, str):
        yield Finding("channels", facts.gateway, "goclaw status")
        return
    if "telegram" not in _channel_names(facts):
        is_new = facts.settings.file is None
        place = "give it to goclaw init" if is_new else "set channels.telegram.token_file"
        cure = f"get a token from @BotFather, and {place}"
        yield Finding("telegram", "not configured", cure, is_hint=True)
    if facts.gateway is not None:
        yield from _at_work(facts.gateway)
    else:
        for name, answer in facts.probes or ():
            yield _probed(name, answer)
            if isinstance(answer, str) and _PRIVACY in answer and _wants_groups(facts, name):
                fact = "privacy mode is on, so in groups the bot only receives mentions"
                cure = "@BotFather, /setprivacy, Disable; then add the bot to the groups again"
                yield Finding(f"channel {name}", fact, cure, is_hint=True)


def _wants_groups(facts: DoctorFacts, name: str) -> bool:
    """Return whether an account is in groups and wants messages there without a mention."""
    one = next(one for one in _accounts(facts) if f"{one.channel}/{one.name}" == name)
    if one.settings.groups is GroupPolicy.DISABLED or (
        one.settings.mention and not one.settings.context_messages
    ):
        return False
    known = () if facts.work is None else facts.work.chats
    return (
        one.settings.groups is GroupPolicy.OPEN
        or bool(one.settings.chats)
        or any(
            chat.allowed and chat.peer is PeerKind.GROUP and chat.account == one.name
            for chat in known
        )
    )


def _accounts(facts: DoctorFacts) -> list[ChannelAccount]:
    return list(accounts(facts.settings))


def _channel_names(facts: DoctorFacts) -> list[str]:
    """Return the channels of the gateway; without its answer, those of the settings."""
    if facts.gateway is None or isinstance(facts.gateway, str):
        return [account.channel for account in _accounts(facts)]
    return [view.name for view in facts.gateway.channels]


def _at_work(gateway: GatewayStatus) -> Iterator[Finding]:
    renew = "write a new token from @BotFather into token_file; the gateway reloads it"
    cures = {
        ChannelState.CONNECTED: "",
        ChannelState.WAITING: "see which gateway receives its messages: goclaw nodes list",
        ChannelState.CONFLICT: "stop the other program that uses this token, or use another bot",
        ChannelState.UNAUTHORIZED: renew,
        ChannelState.STOPPED: renew,
    }
    for view in gateway.channels:
        via = f"through the proxy {view.proxy}" if view.proxy else ""
        fact = ", ".join(part for part in (view.state, via, view.detail) if part)
        retried = "see the log of the gateway, which retries automatically" if view.detail else ""
        cure = cures.get(view.state, retried)
        is_hint = view.state is ChannelState.WAITING
        subject = f"channel {view.name}/{view.account}"
        yield Finding(subject, fact, cure, is_hint=is_hint)
        if view.warning:
            yield Finding(subject, view.warning, "see the log of the reverse proxy", is_hint=True)


def _probed(name: str, answer: str | ChannelError) -> Finding:
    match answer:
        case str():
            return Finding(f"channel {name}", answer)
        case ChannelRefused():
            cure = "get a new token from @BotFather and set token or token_file"
        case _ if _PROXY in str(answer):
            cure = f"check channels.{name.partition('/')[0]}.proxy, or the variable that names it"
        case _:
            cure = "check the network connection of this machine, and base_url"
    return Finding(f"channel {name}", str(answer), cure)


def check_webhooks(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that webhook URLs are valid and can be reached (SPEC CHAN-2)."""
    is_used = False
    answers = dict(facts.probes or ())
    for account in _accounts(facts):
        url = account.options.get("webhook_url")
        if not isinstance(url, str) or not url:
            continue
        is_used = True
        name = f"{account.channel}/{account.name}"
        said = answers.get(name, "")
        yield _check_webhook(f"webhook of {name}", url, said if isinstance(said, str) else "")
    if not is_used:
        yield Finding("webhooks", "none: channels poll for new messages")


def _check_webhook(subject: str, url: str, error: str) -> Finding:
    read = urlsplit(url)
    place = f"{read.scheme}://{read.netloc}"
    if read.scheme != "https":
        return Finding(subject, f"{place} is not https", "set webhook_url to an https URL")
    if (read.port or 443) not in _TELEGRAM_PORTS:
        ports = ", ".join(map(str, sorted(_TELEGRAM_PORTS)))
        return Finding(subject, f"{place}: Telegram does not call this port", f"use one of {ports}")
    if _is_private(read.hostname or ""):
        cure = "set a public name of your reverse proxy, or remove webhook_url to use polling"
        return Finding(subject, f"{place} cannot be reached from the internet", cure)
    if _TROUBLE in error:
        cure = "make the reverse proxy forward this path to web.host:web.port; see its log"
        return Finding(subject, error.partition(_TROUBLE)[2], cure)
    return Finding(subject, place)


def _is_private(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host == "localhost" or "." not in host


# ---------------------------------------------------------------------------- the web address


def check_address(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the gateway can listen on web.host and web.port."""
    web = facts.settings.web
    has_hooks = any(account.options.get("webhook_url") for account in _accounts(facts))
    shown = f"{web.host}:{web.port}"
    if isinstance(facts.gateway, GatewayStatus) and facts.gateway.address:
        yield Finding("web address", f"{facts.gateway.address}, served by the gateway")
    elif not web.serves_api(has_hooks=has_hooks) and not has_hooks:
        yield Finding("web address", "not used: the API is only on the local socket")
    elif facts.gateway is not None and web.serves_api(has_hooks=has_hooks):
        cure = "see its log: another program may have had the address; then restart the gateway"
        yield Finding("web address", "the gateway serves no dashboard", cure, is_hint=True)
    elif facts.gateway is not None:
        yield Finding("web address", f"{shown}, used by the gateway for webhooks")
    else:
        try:
            listen_tcp(web.host, web.port).close()
        except CannotListen as error:
            fact, _, cure = str(error).rpartition("; ")
            cure = cure or "set web.host = 127.0.0.1 and another web.port"
            yield Finding("web address", fact or str(error), cure, is_hint=web.is_chance)
        else:
            yield Finding("web address", f"{shown} is free")


def check_token(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that the API needs a token, and that it is hard to guess (SPEC SEC-1)."""
    web = facts.settings.web
    try:
        token = web_token(facts.settings, facts.env)
    except SettingError as error:
        yield Finding("web token", str(error), "fix this setting")
        return
    new = 'generate one: python -c "import secrets; print(secrets.token_urlsafe(32))"'
    if token is None:
        outside = bool(web.api) and not web.is_loopback
        fact = f"none, but {web.host} is reachable from other machines" if outside else "not needed"
        yield Finding("web token", fact, new if outside else "")
        return
    text = token.get_secret_value()
    if len(text) < _SHORT_TOKEN or len(set(text)) < _FEW_CHARACTERS:
        yield Finding("web token", "easy to guess", new, is_hint=web.is_loopback)
    else:
        yield Finding("web token", "long enough")


def check_names(facts: DoctorFacts) -> Iterator[Finding]:
    """Check the host names that the API accepts; it refuses requests by others (SPEC OPS-2)."""
    web = facts.settings.web
    public = urlsplit(web.public_url or "").hostname
    names = web.hosts if public is None else (*web.hosts, public)
    if not web.api or web.is_loopback:
        yield Finding("web names", ", ".join(("localhost", *names)))
        return
    if names:
        yield Finding("web names", ", ".join((web.host, *names)))
        return
    cure = 'list the names of this server: web.hosts = ["bot.example.org"]'
    fact = f"no host names for {web.host}: requests to any name but localhost are refused"
    yield Finding("web names", fact, cure, is_hint=True)


# ---------------------------------------------------------------------------- people


def check_owners(facts: DoctorFacts) -> Iterator[Finding]:
    """Check that there is an owner, who receives alerts (SPEC CHAN-5, CHAN-10)."""
    if facts.work is None or not _accounts(facts):
        return
    approved = (one for one in facts.work.people if one.standing is Standing.OWNER)
    listed = (sender for account in _accounts(facts) for sender in account.settings.allow)
    owners = dict.fromkeys((*(one.sender.name or one.sender.id for one in approved), *listed))
    if owners:
        yield Finding("owners", ", ".join(owners))
    elif facts.work.asking:
        who = ", ".join(one.sender.name or one.sender.id for one in facts.work.asking)
        cure = "goclaw people approve CODE, with the code that the bot sent them"
        yield Finding("owners", f"none; pending requests: {who}", cure, is_hint=True)
    else:
        cure = "write to the bot and approve the code in its reply: goclaw people approve CODE"
        yield Finding("owners", "none, so nobody receives alerts", cure, is_hint=True)


def check_groups(facts: DoctorFacts) -> Iterator[Finding]:
    """Check for groups that are neither allowed nor denied yet (SPEC CHAN-5)."""
    if facts.work is None:
        return
    asked = {
        (one.channel, one.name): one
        for one in _accounts(facts)
        if one.settings.groups is GroupPolicy.ALLOWLIST
    }
    waiting = [
        chat.name or chat.chat
        for chat in facts.work.chats
        if chat.peer is PeerKind.GROUP
        and chat.allowed is None
        and not chat.gone
        and (account := asked.get((chat.channel, chat.account))) is not None
        and chat.chat not in account.settings.chats
    ]
    fact = f"pending decision: {', '.join(waiting[:5])}" if waiting else "none pending"
    cure = "goclaw people groups list, then goclaw people groups allow or deny" if waiting else ""
    yield Finding("groups", fact, cure, is_hint=True)
