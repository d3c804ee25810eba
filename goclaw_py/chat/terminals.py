"""The console channel, seen from its terminals: ``goclaw chat``, and the chat of the dashboard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from goclaw_py.core.ids import AgentName, RunId
from goclaw_py.core.messages import Attachment, Button, OutFile
from goclaw_py.core.run_events import (
    ButtonsUsed,
    LineReceived,
    PressAnswered,
    RunEnded,
    RunStarted,
    RunText,
    RunTool,
    RunWaiting,
)


@dataclass(frozen=True, slots=True)
class TerminalMessage:
    """A message for a terminal, which confirms it by ``receipt`` once it is shown.

    ``file`` is a file with ``text`` as its caption. ``buttons`` are pressed with ``press``.
    ``replaces`` is the receipt of an earlier message in whose place it stands, if there is one.
    ``rich``: ``text`` is Markdown; else, as of answers to commands, it is shown as it is.
    """

    receipt: str
    text: str
    run_id: RunId | None
    file: OutFile | None = None
    buttons: tuple[tuple[Button, ...], ...] = ()
    replaces: str | None = None
    rich: bool = False

    @property
    def data(self) -> list[str]:
        """What its buttons stand for, whatever is written on them."""
        return [button.data for row in self.buttons for button in row]


@dataclass(frozen=True, slots=True)
class OpenButtons:
    """A message with unused buttons that was shown before this terminal attached."""

    message: TerminalMessage


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that was uploaded for a message: ``ref`` identifies it, ``name`` is shown."""

    ref: str
    name: str


ChatEvent = (
    RunStarted
    | RunText
    | RunTool
    | RunWaiting
    | RunEnded
    | TerminalMessage
    | OpenButtons
    | LineReceived
    | ButtonsUsed
    | PressAnswered
)


@runtime_checkable
class Terminals(Protocol):
    """The console channel, seen from the terminal's side (SPEC CHAN-9)."""

    def attach(self, chat: str) -> AsyncIterator[ChatEvent]:
        """Yield the events for a terminal until the iterator is closed.

        ``TerminalMessage`` events of ``chat`` go to the terminal that attached last, and wait while
        none is attached. An event that a terminal did not confirm is sent to the next one.
        """

    async def say(
        self,
        chat: str,
        message_id: str,
        text: str,
        *,
        agent: AgentName | None = None,
        files: Sequence[UploadedFile] = (),
    ) -> None:
        """Store a line from the terminal; a ``message_id`` that is stored already is ignored.

        ``agent`` answers it, in a session of its own with this chat; None: that of the settings.
        Raises ``StoreUnavailable``, and ``NotFound`` for a file that is no longer stored.
        """

    async def press(
        self,
        chat: str,
        press_id: str,
        *,
        receipt: str,
        data: str,
        agent: AgentName | None = None,
    ) -> None:
        """Store that a button of a message was pressed; a repeated ``press_id`` is ignored.

        ``agent``: that of the conversation, as in ``say``. Raises ``StoreUnavailable``.
        """

    def confirm(self, receipt: str) -> None:
        """Confirm that a message was shown. An unknown receipt is ignored."""


@runtime_checkable
class Uploads(Protocol):
    """Files for messages of terminals (SPEC CHAN-9)."""

    @property
    def max_files(self) -> int:
        """The largest number of files in a message."""

    @property
    def max_bytes(self) -> int:
        """The size of the largest file."""

    async def upload(self, name: str, body: AsyncIterator[bytes], *, guest: str = "") -> Attachment:
        """Store a file, which a message then names; return its kind, id and cleaned name.

        ``guest`` is the invited person who sends it, "" the operator: each has room of their own.
        The id of a guest's file begins with their name and a dot: only they can attach it.
        Raises ``BadUpload``, and whatever ``body`` raises; then nothing is left of the file.
        """
