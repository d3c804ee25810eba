"""Writing to other chats."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, create_model

from goclaw_py.model.messages import Target
from goclaw_py.model.targets import target_text
from goclaw_py.ports.tools import ToolContext
from goclaw_py.tools.arguments import NOT_BLANK, Arguments, one_of
from goclaw_py.tools.permissions import Permissions
from goclaw_py.tools.tool import Tool

MAX_MESSAGE_CHARS: Final = 4_000


class MessageArguments(Arguments):
    """Arguments of ``send_message``."""

    to: str
    text: Annotated[str, Field(max_length=MAX_MESSAGE_CHARS), NOT_BLANK] = Field(
        description="What the message says, in Markdown."
    )


class SendMessage(Tool[MessageArguments]):
    """Writes to one of the places that the settings name."""

    name = "send_message"
    description = (
        "Send a message to another chat. The conversation that you are in gets your answers by "
        "itself; this tool is not for it."
    )

    def __init__(self, targets: tuple[Target, ...] = ()) -> None:
        self._targets = {target_text(target): target for target in targets}
        self.arguments = create_model(
            "MessageArguments",
            __base__=MessageArguments,
            to=(one_of(tuple(self._targets)), Field(description="The chat that it is sent to.")),
        )

    def permitted(self, permissions: Permissions) -> Tool[Any] | None:
        """The tool with the places of this agent."""
        if not permissions.send_to or self.name in permissions.deny:
            return None
        return SendMessage(permissions.send_to)

    async def call(self, arguments: MessageArguments, here: ToolContext) -> str:
        """Put it into the outbox."""
        await here.post.send(self._targets[arguments.to], arguments.text)
        return f"It is on its way to {arguments.to}."
