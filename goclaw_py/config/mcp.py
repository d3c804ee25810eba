"""Servers of tools, and the headers that go to servers of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, SecretStr, model_validator

from goclaw_py.config.section import Section
from goclaw_py.config.types import HiddenText, Matching, Names, Words, allowed

HeaderKey = Annotated[
    str, Matching(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}", "the name of an HTTP header")
]
HeaderText = Annotated[
    SecretStr, HiddenText(r"[\t\x20-\x7e]*", "text without line ends and accents")
]
VariableKey = Annotated[
    str, Matching(r"[A-Za-z_][A-Za-z0-9_]{0,99}", "the name of an environment variable")
]
VariableText = Annotated[SecretStr, HiddenText(r"[^\0]*", "text without NUL")]


class McpServerSettings(Section):
    """``[agents.NAME.mcp.SERVER]``: a server of tools, a program or an address (SPEC AGENT-6)."""

    command: Annotated[tuple[str, ...], Words()] = Field(
        default=(), description="the program and its arguments; it is spoken to on standard input"
    )
    url: Annotated[
        str, Matching(r"(https?://\S+)?", "an address that starts with http:// or https://")
    ] = Field(default="", description="its address, if it is no program")
    env: dict[VariableKey, VariableText] = Field(
        default_factory=dict,
        description="environment variables that the program gets beside PATH, HOME and the like",
    )
    headers: dict[HeaderKey, HeaderText] = Field(
        default_factory=dict, description="HTTP headers sent with every request to the address"
    )
    tools: Annotated[tuple[str, ...], Names()] = Field(
        default=(), description="the tools that may be called; default all of them"
    )

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        has_program = bool(self.command and self.command[0])
        if has_program == bool(self.url):
            raise allowed("must have either a command or a url, not both")
        if (self.headers and has_program) or (self.env and self.url):
            raise allowed("env is only for a command, headers only for a url")
        return self


def reveal(secrets: Mapping[str, SecretStr]) -> dict[str, str]:
    """The texts themselves."""
    return {name: secret.get_secret_value() for name, secret in secrets.items()}
