"""``[agents.NAME.command]``: a program that answers (SPEC AGENT-2b)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from goclaw_py.config.section import Section
from goclaw_py.config.types import Duration, Words


class Paths(Words):
    """One path into a line of JSON, or a list of them."""

    def check(self, value: object) -> tuple[str, ...]:
        """Return the paths."""
        return super().check([value] if isinstance(value, str) else value)


class UsageSettings(Section):
    """``usage``: where a program tells what it has used; numbers of several paths are added."""

    input: Annotated[tuple[str, ...], Paths()] = Field(
        default=(),
        description='tokens that went in, such as "type=result usage.input_tokens"; or a list',
    )
    output: Annotated[tuple[str, ...], Paths()] = Field(
        default=(), description="tokens that came out"
    )
    cost: Annotated[tuple[str, ...], Paths()] = Field(default=(), description="US dollars")
    turns: Annotated[tuple[str, ...], Paths()] = Field(
        default=(), description="requests to its model; default: each run is one"
    )


class Command(Section):
    """``[agents.NAME.command]``."""

    run: Annotated[tuple[str, ...], Words()] = Field(
        default=(),
        description="the program and its arguments; {prompt} (else it comes on standard input), "
        "{system} (else it stands before the prompt), {session} and {workspace} are put in",
    )
    first: Annotated[tuple[str, ...], Words()] = Field(
        default=(), description="more arguments for the first run of a conversation"
    )
    later: Annotated[tuple[str, ...], Words()] = Field(
        default=(), description="more arguments for the next ones, which go on with it"
    )
    output: Literal["text", "jsonl"] = Field(
        default="text", description="text (default), or jsonl: a JSON object in each line"
    )
    text: Annotated[tuple[str, ...], Words()] = Field(
        default=(),
        description="with jsonl: where pieces of the reply are, such as "
        '"type=assistant message.content.*.text"',
    )
    join: str = Field(default="", description="with jsonl: what stands between two pieces")
    result: str = Field(default="", description="with jsonl: where the whole reply is")
    session: str = Field(
        default="", description="with jsonl: where the program's own id of the conversation is"
    )
    usage: UsageSettings = Field(default_factory=UsageSettings)
    env: Annotated[tuple[str, ...], Words()] = Field(
        default=(), description="environment variables that it gets beside PATH, HOME and the like"
    )
    timeout: Annotated[float | None, Duration(1)] = Field(
        default=None, description="how long it may take; default as long as any run"
    )
