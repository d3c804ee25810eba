"""``[web.proxy]`` and ``[web.openid]``: who signs people in besides the token (SPEC SEC-10)."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, SecretStr

from goclaw_py.config.types import (
    Flag,
    HiddenText,
    Matching,
    Names,
    Section,
    Text,
    WebAddress,
    allowed,
)
from goclaw_py.core.actors import AccessRole

CLIENT_SECRET: Final = HiddenText(r"[!-~]{1,1024}", "printable ASCII characters without spaces")

HeaderName = Annotated[
    str, Matching(r"[A-Za-z0-9-]{1,64}", "the name of an HTTP header, such as Remote-User")
]


def _networks(given: tuple[str, ...]) -> tuple[str, ...]:
    for each in given:
        try:
            network = ipaddress.ip_network(each)
        except ValueError:
            network = None
        if network is None or not network.prefixlen:
            raise allowed('must be addresses or networks of proxies, such as ["10.0.0.7"]')
    return given


class GroupRules(Section):
    """Which groups have which role. Somebody in several groups has the highest of their roles."""

    admin_groups: Annotated[tuple[str, ...], Names()] = ()
    """groups of people who may do everything"""
    operator_groups: Annotated[tuple[str, ...], Names()] = ()
    """groups of people who may act: stop, send, answer, run and edit jobs"""
    viewer_groups: Annotated[tuple[str, ...], Names()] = ()
    """groups of people who may read"""
    default_role: AccessRole | None = None
    """the role of people in none of these groups: viewer, operator or admin; default: they are
    refused"""
    viewers_read_text: Annotated[bool, Flag()] = False
    """whether viewers also see the text of messages"""


class WebProxy(GroupRules):
    """``[web.proxy]``: reverse proxies that sign people in, and say who they are in headers."""

    addresses: Annotated[tuple[str, ...], Names(), AfterValidator(_networks)] = ()
    """addresses or networks of the trusted proxies; headers of anybody else are ignored"""
    user_header: HeaderName = "Remote-User"
    """the header with the name of the person"""
    groups_header: HeaderName = "Remote-Groups"
    """the header with the groups of the person, separated by commas"""
    sign_out_url: WebAddress | None = None
    """the address where people sign out of the proxy"""


class WebOpenid(GroupRules):
    """``[web.openid]``: an OpenID provider where people sign in."""

    issuer: WebAddress | None = None
    """the address of the provider, as in its description below /.well-known/openid-configuration"""
    client_id: Text | None = None
    """the id of this gateway at the provider"""
    client_secret: Annotated[SecretStr | None, CLIENT_SECRET] = None
    """the secret of this gateway at the provider; if none is set: a public client"""
    client_secret_file: Path | None = None
    """a file that contains the secret"""
    client_secret_env: Text | None = None
    """the environment variable that contains the secret"""
    name: Annotated[str, Matching(r"[^\W_][\w .-]{0,39}", "a name of up to 40 letters")] = "OpenID"
    """what people call the provider; the button says: Sign in with NAME"""
    scopes: Annotated[tuple[str, ...], Names()] = ("openid", "profile", "email")
    """what the gateway asks the provider for; some need "groups", too"""
    groups_claim: Text = "groups"
    """the claim with the groups of a person; with dots one within others: realm_access.roles"""
    name_claim: Text = "preferred_username"
    """the claim with the name of a person"""
    emails: Annotated[tuple[str, ...], Names()] = ()
    """verified addresses such as "ann@example.org", and domains such as "@example.org", of people
    who may sign in; default: all with a role"""
