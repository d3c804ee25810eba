"""``[web]``: the HTTP API over TCP, and webhooks of channels (SPEC OPS-2, SEC-1)."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, SecretStr

from goclaw_py.config.sign_in import WebOpenid, WebProxy
from goclaw_py.config.types import Flag, HiddenText, Matching, Names, Section, Text, Whole, allowed

TOKEN: Final = HiddenText(r"[!-~]{16,512}", "16 to 512 printable ASCII characters without spaces")
MAX_UPLOADS: Final = 100
"""The largest number of files in a message of the dashboard's chat, as in ``web.api.wire``."""

_HOST: Final = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[?[0-9A-Fa-f:.]{2,45}\]?"


def _host_names(hosts: tuple[str, ...]) -> tuple[str, ...]:
    for host in hosts:
        if not re.fullmatch(_HOST, host):
            raise allowed('must be host names without scheme and port, such as ["bot.example.org"]')
    return tuple(dict.fromkeys(host.lower().strip("[]") for host in hosts))


class Web(Section):
    """``[web]``: one address for the HTTP API and the webhooks of channels (SPEC CHAN-2)."""

    host: Annotated[str, Matching(r"\S+", "a host name or an address such as 127.0.0.1")] = (
        "127.0.0.1"
    )
    """the address to listen on; put a reverse proxy in front of it to reach it from outside"""
    port: Annotated[int, Whole(0, 65_535)] = 8420
    """the TCP port to listen on; 0: any free port"""
    api: Annotated[bool | None, Flag()] = None
    """whether to serve the dashboard and the HTTP API here; if unset: yes if there is a token, or
    if the address is reachable only from this machine and no channel uses webhooks"""
    token: Annotated[SecretStr | None, TOKEN] = None
    """the token that HTTP API clients must send"""
    token_file: Path | None = None
    """a file that contains the token"""
    token_env: Text | None = None
    """the environment variable that contains the token"""
    hosts: Annotated[tuple[str, ...], Names(), AfterValidator(_host_names)] = ()
    """additional host names that clients may use, besides localhost and the address above"""

    public_url: Annotated[
        str | None,
        Matching(
            r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?",
            "a URL without a path such as https://bot.example.org",
        ),
    ] = None
    """the address by which people reach the web server from outside, through a reverse proxy;
    links to the web chat begin with it; clients may use its host name, as those in hosts"""
    upload_mb: Annotated[int, Whole(1, 2000)] = 20
    """the largest file that people can attach to a message in the dashboard's chat, in MB"""
    upload_files: Annotated[int, Whole(1, MAX_UPLOADS)] = 10
    """how many files a message there may have"""
    proxy: WebProxy = WebProxy()
    openid: WebOpenid = WebOpenid()

    @property
    def has_token(self) -> bool:
        """Whether clients need a token."""
        return any(each is not None for each in (self.token, self.token_file, self.token_env))

    def serves_api(self, *, has_hooks: bool) -> bool:
        """Whether dashboard and API are served in addition to webhooks (SPEC OPS-2).

        A reverse proxy for webhooks may forward every path, and its requests come from this
        machine. Therefore an API without a token is not served beside webhooks by default.
        """
        if self.api is not None:
            return self.api
        return self.has_token or (self.is_loopback and not has_hooks)

    @property
    def is_chance(self) -> bool:
        """Whether dashboard and API are served only by default, at the default address."""
        return self.api is None and not self.model_fields_set & {"host", "port"}

    @property
    def is_loopback(self) -> bool:
        """Whether the host is a loopback address, which only this machine can reach."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
