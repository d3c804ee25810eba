"""Reading what runs did step by step, and going back: undo and forks (SPEC OPS-8, CMD-7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, Protocol

from goclaw_py.core.ids import NodeId, RunId, SessionKey
from goclaw_py.core.messages import InboundMessage, OutboundMessage, Target
from goclaw_py.core.run_steps import RunStep
from goclaw_py.records.tool_calls import ToolCall

NO_MESSAGES: Final[Mapping[int, InboundMessage]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step of a run. ``step`` is None if it cannot be read: damaged, or of another release."""

    run: RunId
    number: int
    """Its number within the run, from 1."""
    step: RunStep | None


@dataclass(frozen=True, slots=True)
class LastTurn:
    """The newest turn in a session's history that was not undone.

    Args:
        run: The run that wrote it.
        prompt: Its prompt.
        calls: Its tool calls, and those of the interrupted runs that it continued.
        is_summarized: Whether a summary stands for its entries, or for some of them.
    """

    run: RunId
    prompt: str
    calls: tuple[ToolCall, ...] = ()
    is_summarized: bool = False


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The end of a command: its inbox row, and the messages that answer it."""

    row: int
    say: tuple[OutboundMessage, ...] = ()


class RewindStore(Protocol):
    """The steps of runs, and changes of what a session remembers."""

    async def run_steps(self, run: RunId) -> tuple[StoredStep, ...]:
        """Return the steps of a run, in order, without those of interrupted runs before it."""

    async def last_turn(self, key: SessionKey) -> LastTurn | None:
        """Return the last turn since the last reset; None if there is none."""

    async def undo_turn(
        self,
        key: SessionKey,
        run: RunId,
        *,
        answer: CommandAnswer,
        again: Mapping[int, InboundMessage] = NO_MESSAGES,
        now: datetime,
        node: NodeId,
    ) -> bool:
        """Remove the entries of a run from what is read of a session's history.

        In the same transaction the inbox row of the command ends with its ``answer``, so that a
        command that is executed again after a crash undoes nothing more. The messages
        ``again`` of the run, by row, wait once more, with this content and as one turn.

        Returns False and changes nothing if ``run`` is not that of the last turn, a summary stands
        for it, the session has a run in progress, another node owns it, or the command has ended.
        """

    async def fork_session(
        self,
        key: SessionKey,
        new: SessionKey,
        target: Target,
        *,
        run: RunId | None = None,
        now: datetime,
    ) -> int:
        """Create session ``new`` with a copy of a session's history; return its number of entries.

        With ``run``, a run of the session, the copy is what was remembered at the end of this run:
        what the run read, and its own entries. Summary and pinned facts are copied if they belong
        to the copied entries. The original is unchanged.
        """

    async def delete_session(self, key: SessionKey) -> bool:
        """Delete a conversation: its history, messages, grants, title, and what its runs did.

        Its runs stay as rows of the usage, without prompts, steps and tool calls. Returns False and
        changes nothing while a run is in progress or a message waits; True if there is no such
        session.
        """
