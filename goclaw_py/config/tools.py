"""``[agents.NAME.tools]``, and the files with an agent's instructions (SPEC AGENT-6)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from goclaw_py.config.section import Section
from goclaw_py.config.types import Names, allowed
from goclaw_py.model.workspace_paths import BadPath, split_file_path

EVERYBODY: Final = "*"
"""Means all other agents in ``delegates``."""


class ToolSettings(Section):
    """What an agent may call. Tool names are checked when the tools are created."""

    allow: Annotated[tuple[str, ...] | None, Names()] = Field(
        default=None,
        description="the tools that the agent may call; default: the workspace file tools, "
        "send_file, spawn_subagent, pin_fact, unpin_fact, heartbeat, and the four tools "
        "whose names begin with schedule_",
    )
    deny: Annotated[tuple[str, ...], Names()] = Field(
        default=(), description="tools that the agent may not call, even if allow contains them"
    )
    delegates: Annotated[tuple[str, ...], Names()] = Field(
        default=(),
        description='the agents to which the agent may delegate tasks; "*": all other agents',
    )
    send_to: Annotated[tuple[str, ...], Names()] = Field(
        default=(),
        description="the chats to which the agent may send messages, as "
        "channel[.account]:chat[:thread]",
    )


def _in_workspace(paths: tuple[str, ...]) -> tuple[str, ...]:
    for path in paths:
        try:
            split_file_path(path)
        except BadPath as error:
            raise allowed(f"must be paths of files in the workspace; a path {error}") from error
    return paths


WorkspaceFiles = Annotated[tuple[str, ...], Names(), AfterValidator(_in_workspace)]
"""Paths of files, relative to the workspace."""
