"""The draft of a run: a message of the chat that grows while the agent speaks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound.ok_token import conversation_text
from goclaw_py.core.errors import ChannelError
from goclaw_py.core.ids import NodeId, RunId
from goclaw_py.core.messages import LostDraft, Target
from goclaw_py.core.values import value
from goclaw_py.runs.replies.wait_line import WaitLine

MOST_CHARS = 16_000
"""The length of a draft; no message of a channel is longer. It is formatted at each edit."""


@value(frozen=True, slots=True)
class OrphanedReply:
    """The draft that is in the chat when a run ends.

    Args:
        id: The channel's id of the draft, None if there is none.
        shown: The text that it shows.
        lost: A draft that may be there with an unknown id.
    """

    id: str | None = None
    shown: str = ""
    lost: LostDraft | None = None


@dataclass(slots=True, eq=False)
class ReplyDraft:
    """The draft of a run; ``streaming`` updates it."""

    run_id: RunId
    target: Target
    reply_to: str | None
    channel: Channel
    id: str | None
    lost: LostDraft
    """How to search for it."""
    unsure: bool
    """It may be in the chat, and its id is unknown."""
    node: NodeId
    """The scheduler that a run belongs to."""
    wait: WaitLine
    """What the run waits for."""
    looks: int = 0
    """The number of searches without result."""
    said: list[str] = field(default_factory=list)
    room: int = MOST_CHARS
    """How many more characters it shows."""
    shown: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    kept: bool = False
    """Whether its id is stored."""
    task: asyncio.Task[None] | None = None
    request: asyncio.Task[ChannelError | None] | None = None
    """The request in progress. A post is never cancelled, because its outcome must be known."""

    @property
    def text(self) -> str:
        return conversation_text("".join(self.said), growing=True)

    @property
    def view(self) -> str:
        """Return what people see: the text, and what the run waits for."""
        text = self.text if self.text.strip() else ""
        return "\n\n".join(filter(None, [text, self.wait.text]))

    @property
    def left(self) -> OrphanedReply:
        """Return what is in the chat now, as far as known."""
        return OrphanedReply(self.id, self.shown, self.lost if self.unsure else None)
