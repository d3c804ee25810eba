"""Checks of signing in to the dashboard by a proxy or an OpenID provider (SPEC SEC-10)."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from goclaw_py.cli.doctor.finding import DoctorFacts, Finding
from goclaw_py.config import Settings, openid_secret
from goclaw_py.config.sign_in import GroupRules
from goclaw_py.core.actors import AccessRole
from goclaw_py.core.concurrency import in_import_thread
from goclaw_py.core.errors import SettingError
from goclaw_py.web.openid.client import OpenIdClient, OpenIdFailure

if TYPE_CHECKING:
    from goclaw_py.web.openid.provider import OpenIdProvider


async def probe_openid(settings: Settings, env: Mapping[str, str]) -> str | None:
    """Return what is wrong with the OpenID provider, "" if nothing is; None: it was not asked."""
    from goclaw_py.app.listeners import openid_client  # noqa: PLC0415 - for this check only

    try:
        client = openid_client(settings, env)
    except SettingError:
        client = None  # the check reports it
    if client is None:
        return None
    try:
        provider = await in_import_thread(partial(_provider_of, client))
        await provider.description()
    except OpenIdFailure as error:
        return str(error)
    return ""


def _provider_of(client: OpenIdClient) -> OpenIdProvider:
    from goclaw_py.web.openid.provider import OpenIdProvider  # noqa: PLC0415 - takes 0.5 s

    return OpenIdProvider(client, time.time)


def check_sign_in(facts: DoctorFacts) -> Iterator[Finding]:
    """Check who signs people in besides the token."""
    web = facts.settings.web
    if web.proxy.addresses:
        subject = "sign-in by a proxy"
        loopback = [one for one in web.proxy.addresses if ipaddress.ip_network(one).is_loopback]
        whom = ", ".join(web.proxy.addresses)
        fact = f"{whom} says who people are"
        if loopback:
            fact += "; so can every program on this machine"
        yield Finding(subject, fact)
        yield from _check_admins(subject, "proxy", web.proxy)
    if web.openid.issuer is not None:
        yield from _check_openid(facts, web.openid.issuer)
        yield from _check_admins("sign-in by OpenID", "openid", web.openid)
    if not web.proxy.addresses and web.openid.issuer is None:
        yield Finding("sign-in", "by token only")


def _check_openid(facts: DoctorFacts, issuer: str) -> Iterator[Finding]:
    subject = "sign-in by OpenID"
    try:
        openid_secret(facts.settings, facts.env)
    except SettingError as error:
        yield Finding(subject, str(error), "fix this setting")
        return
    if facts.openid:
        cure = f"open {issuer.rstrip('/')}/.well-known/openid-configuration from this machine"
        yield Finding(subject, f"{issuer}: {facts.openid}", cure, is_hint=True)
    elif facts.openid is None:
        yield Finding(subject, f"{issuer}, not asked")
    else:
        yield Finding(subject, f"{issuer} answers")


def _check_admins(subject: str, name: str, rules: GroupRules) -> Iterator[Finding]:
    if not rules.admin_groups and rules.default_role is not AccessRole.ADMIN:
        fact = "nobody becomes an admin: settings and people are changed with the token only"
        yield Finding(subject, fact, f"set web.{name}.admin_groups, if you want", is_hint=True)
    elif rules.default_role is AccessRole.ADMIN:
        fact = "everybody who is signed in there is an admin"
        yield Finding(subject, fact, f"set web.{name}.admin_groups instead", is_hint=True)
