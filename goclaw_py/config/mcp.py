"""Settings of MCP servers, and types of HTTP headers and environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, SecretStr, model_validator

from goclaw_py.config.section import Section
from goclaw_py.config.types import HiddenText, Matching, Names, Words, allowed

HeaderKey = Annotated[
    str, Matching(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}", "the name of an HTTP header")
]
HeaderText = Annotated[SecretStr, HiddenText(r"[\t\x20-\x7e]*", "ASCII text without line breaks")]
VariableKey = Annotated[
    str, Matching(r"[A-Za-z_][A-Za-z0-9_]{0,99}", "the name of an environment variable")
]
VariableText = Annotated[SecretStr, HiddenText(r"[^\0]*", "text without NUL characters")]


class McpServerSettings(Section):
    """``[agents.NAME.mcp.SERVER]``: an MCP server: a program or an address (SPEC AGENT-6)."""

    command: Annotated[tuple[str, ...], Words()] = Field(
        default=(),
        description="the program and its arguments; goclaw talks to it over standard input "
        "and output",
    )
    url: Annotated[
        str, Matching(r"(https?://\S+)?", "an address that starts with http:// or https://")
    ] = Field(default="", description="the address of the server, if it is not a program")
    env: dict[VariableKey, VariableText] = Field(
        default_factory=dict,
        description="environment variables to pass to the program, in addition to PATH, HOME "
        "and similar ones",
    )
    headers: dict[HeaderKey, HeaderText] = Field(
        default_factory=dict, description="HTTP headers sent with every request to the address"
    )
    tools: Annotated[tuple[str, ...], Names()] = Field(
        default=(),
        description="the tools that the agent may call; default: all tools of the server",
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
    """Return the secrets as plain text."""
    return {name: secret.get_secret_value() for name, secret in secrets.items()}
