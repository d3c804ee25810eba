"""``[web]``: the HTTP API on TCP, and channels that are called from the web (SPEC OPS-2, SEC-1)."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, SecretStr

from goclaw_py.config.section import Section
from goclaw_py.config.types import Flag, HiddenText, Matching, Names, Whole, allowed

TOKEN: Final = HiddenText(r"[!-~]{16,512}", "16 to 512 characters without blanks and accents")
_HOST: Final = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[?[0-9A-Fa-f:.]{2,45}\]?"


def _host_names(hosts: tuple[str, ...]) -> tuple[str, ...]:
    for host in hosts:
        if not re.fullmatch(_HOST, host):
            raise allowed('must be names without scheme and port, such as ["bot.example.org"]')
    return tuple(dict.fromkeys(host.lower().strip("[]") for host in hosts))


class Web(Section):
    """``[web]``: one address, for the HTTP API and for the hooks of channels (SPEC CHAN-2)."""

    host: Annotated[str, Matching(r"\S+", "a host name or an address such as 127.0.0.1")] = Field(
        default="127.0.0.1",
        description="an address of this machine; a reverse proxy beside it passes requests on",
    )
    port: Annotated[int, Whole(0, 65_535)] = Field(default=8420, description="0: any free one")
    api: Annotated[bool | None, Flag()] = Field(
        default=None,
        description="whether dashboard and HTTP API are served here; unset: if only this machine "
        "reaches them and no channel is called from the web, or if there is a token",
    )
    token: Annotated[SecretStr | None, TOKEN] = Field(
        default=None, description="what callers of the HTTP API have to know"
    )
    token_file: Path | None = Field(default=None, description="a file that holds the token")
    token_env: Annotated[str | None, Matching(r"(?s).*\S.*", "text that is not empty")] = Field(
        default=None, description="the environment variable with the token"
    )
    hosts: Annotated[tuple[str, ...], Names(), AfterValidator(_host_names)] = Field(
        default=(),
        description="names by which it may be called, beside localhost and the address above",
    )

    @property
    def has_token(self) -> bool:
        """Whether callers need a token."""
        return any(each is not None for each in (self.token, self.token_file, self.token_env))

    def serves_api(self, *, has_hooks: bool) -> bool:
        """Whether dashboard and API are served, beside the hooks if there are any (SPEC OPS-2).

        A proxy that passes hooks on may pass everything on, and in the name of this machine: where
        nobody has asked for it, such a proxy finds no API that needs no token.
        """
        if self.api is not None:
            return self.api
        return self.has_token or (self.is_loopback and not has_hooks)

    @property
    def is_chance(self) -> bool:
        """Whether nobody has asked for dashboard and API, nor chosen where they are."""
        return self.api is None and not self.model_fields_set & {"host", "port"}

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it, as far as the name of the host tells."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
