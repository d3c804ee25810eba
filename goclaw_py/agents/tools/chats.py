"""The tool that sends messages to other chats."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, create_model

from goclaw_py.agents.tools.arguments import NOT_BLANK, Arguments, one_of
from goclaw_py.agents.tools.permissions import Permissions
from goclaw_py.agents.tools.tool import Tool
from goclaw_py.core.messages import Target
from goclaw_py.core.targets import target_text
from goclaw_py.runs.toolbox import ToolContext

MAX_MESSAGE_CHARS: Final = 4_000


class MessageArguments(Arguments):
    """Arguments of ``send_message``."""

    to: str
    text: Annotated[str, Field(max_length=MAX_MESSAGE_CHARS), NOT_BLANK] = Field(
        description="The text of the message, in Markdown."
    )


class SendMessage(Tool[MessageArguments]):
    """Sends a message to one of the chats that the settings allow."""

    name = "send_message"
    description = (
        "Send a message to another chat. Do not use it for the current conversation, which "
        "receives your answers automatically."
    )

    def __init__(self, targets: tuple[Target, ...] = ()) -> None:
        self._targets = {target_text(target): target for target in targets}
        self.arguments = create_model(
            "MessageArguments",
            __base__=MessageArguments,
            to=(
                one_of(tuple(self._targets)),
                Field(description="The chat to send the message to."),
            ),
        )

    def permitted(self, permissions: Permissions) -> Tool[Any] | None:
        """Return the tool with the chats that this agent may write to."""
        if not permissions.send_to or self.name in permissions.deny:
            return None
        return SendMessage(permissions.send_to)

    async def call(self, arguments: MessageArguments, here: ToolContext) -> str:
        """Put the message into the outbox."""
        await here.post.send(self._targets[arguments.to], arguments.text)
        return f"The message to {arguments.to} is queued for delivery."
