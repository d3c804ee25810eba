"""``[agents.NAME.tools]``, and the files with an agent's instructions (SPEC AGENT-6)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from goclaw_py.config.section import Section
from goclaw_py.config.types import Names, allowed
from goclaw_py.model.workspace_paths import BadPath, split_file_path

EVERYBODY: Final = "*"
"""Stands for all other agents in ``delegates``."""


class ToolSettings(Section):
    """What an agent may call. Which names there are is checked where tools are made."""

    allow: Annotated[tuple[str, ...] | None, Names()] = Field(
        default=None,
        description="the tools that it may call; default: files of its workspace, send_file, "
        "spawn_subagent, pin_fact, unpin_fact, heartbeat, and the four that begin with schedule_",
    )
    deny: Annotated[tuple[str, ...], Names()] = Field(
        default=(), description="tools that it may not call all the same"
    )
    delegates: Annotated[tuple[str, ...], Names()] = Field(
        default=(), description='agents that it may give tasks to; "*" is all others'
    )
    send_to: Annotated[tuple[str, ...], Names()] = Field(
        default=(),
        description="chats that it may write to, as channel[.account]:chat[:thread]",
    )


def _in_workspace(paths: tuple[str, ...]) -> tuple[str, ...]:
    for path in paths:
        try:
            split_file_path(path)
        except BadPath as error:
            raise allowed(f"must name files of the workspace; a path {error}") from error
    return paths


WorkspaceFiles = Annotated[tuple[str, ...], Names(), AfterValidator(_in_workspace)]
"""Paths of files, relative to the workspace."""
