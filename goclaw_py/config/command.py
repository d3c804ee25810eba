"""``[agents.NAME.command]``: a program that answers instead of a model (SPEC AGENT-2b)."""

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
    """``usage``: where the output of a program has its usage. Values of several paths are added."""

    input: Annotated[tuple[str, ...], Paths()] = Field(
        default=(),
        description='the paths to the input tokens, such as "type=result '
        'usage.input_tokens"; or a list',
    )
    output: Annotated[tuple[str, ...], Paths()] = Field(
        default=(), description="the paths to the output tokens"
    )
    cost: Annotated[tuple[str, ...], Paths()] = Field(
        default=(), description="the paths to the cost in US dollars"
    )
    turns: Annotated[tuple[str, ...], Paths()] = Field(
        default=(),
        description="the paths to the number of model requests; default: one request for each run",
    )


class Command(Section):
    """``[agents.NAME.command]``."""

    run: Annotated[tuple[str, ...], Words()] = Field(
        default=(),
        description="the program and its arguments. These placeholders are replaced: "
        "{prompt} (if absent, the prompt is sent on standard input), {system} (if absent, "
        "the system prompt is put before the prompt), {session} and {workspace}",
    )
    first: Annotated[tuple[str, ...], Words()] = Field(
        default=(), description="additional arguments for the first run of a conversation"
    )
    later: Annotated[tuple[str, ...], Words()] = Field(
        default=(),
        description="additional arguments for later runs, which continue the conversation",
    )
    output: Literal["text", "jsonl"] = Field(
        default="text",
        description="the output format: text (default), or jsonl: one JSON object for each line",
    )
    text: Annotated[tuple[str, ...], Words()] = Field(
        default=(),
        description="with jsonl: the paths to the pieces of the reply, such as "
        '"type=assistant message.content.*.text"',
    )
    join: str = Field(
        default="", description="with jsonl: the separator between two pieces of the reply"
    )
    result: str = Field(default="", description="with jsonl: the path to the complete reply")
    session: str = Field(
        default="", description="with jsonl: the path to the program's own id of the conversation"
    )
    usage: UsageSettings = Field(default_factory=UsageSettings)
    env: Annotated[tuple[str, ...], Words()] = Field(
        default=(),
        description="environment variables to pass to the program, in addition to PATH, HOME "
        "and similar ones",
    )
    timeout: Annotated[float | None, Duration(1)] = Field(
        default=None,
        description="the time limit of the program; default: the time limit of the run",
    )
