"""The checklist of an agent's heartbeat, for the agent itself (SPEC AGENT-6, HB-11).

It is there where there are heartbeats. Nothing here can begin or wake a beat.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from goclaw_py.delivery.ok_token import HEARTBEAT_OK
from goclaw_py.heartbeat.chat_texts import added, checklist, done
from goclaw_py.heartbeat.checklist.checklist import ITEM_CHARS, Checklist
from goclaw_py.heartbeat.checklist.items import as_item, open_item
from goclaw_py.heartbeat.status_texts import status_lines
from goclaw_py.model.errors import HeartbeatError, StoreUnavailable, ToolFailed
from goclaw_py.ports.heartbeat import HeartbeatService
from goclaw_py.ports.tools import ToolContext
from goclaw_py.tools.arguments import NOT_BLANK, Arguments, one_line
from goclaw_py.tools.tool import Tool

_LISTED: Final = 50
"""How many items one answer shows."""

TEXT_CHARS: Final = 16_000
"""The longest alert."""

_USES: Final = {"add": ("text",), "done": ("number", "text")}
"""What an action takes: one of these."""


class Use(Arguments):
    """Arguments of ``heartbeat``."""

    action: Literal["show", "add", "done", "status"] = Field(
        description="show: the open items with their numbers. add: one more item, its text. done: "
        "tick an item off, by its number or text. status: when the last heartbeat was, what came "
        "of it and why, and when the next one is due."
    )
    text: Annotated[str, Field(max_length=ITEM_CHARS), NOT_BLANK] | None = Field(
        default=None,
        description="For add: what to look after and when to tell the user, in one sentence that "
        "makes sense by itself. It may begin with an interval of its own: 'every 2h: ...' or "
        "'weekdays 09:00: ...'. For done: the text of the item, as show tells it.",
    )
    number: int | None = Field(
        default=None, ge=1, description="For done: the number of the item, as show tells it."
    )

    @model_validator(mode="after")
    def _what_the_action_takes(self) -> Use:
        given = {name for name in ("text", "number") if getattr(self, name) is not None}
        takes = _USES.get(self.action, ())
        if not given <= set(takes):
            raise ValueError(f"{self.action} takes {' or '.join(takes) or 'nothing else'}")
        if takes and len(given) != 1:
            raise ValueError(f"{self.action} needs {' or '.join(takes)}")
        return self


class HeartbeatTool(Tool[Use]):
    """Shows and changes the checklist of the agent that calls it, of no other one."""

    name = "heartbeat"
    description = (
        "Your checklist, HEARTBEAT.md: what you look after without being asked. At each heartbeat "
        "(every 30 minutes, unless it is set otherwise) you get the items that are due, look at "
        "them, and tell the user only if something needs their attention. Use it when the user "
        "wants you to keep an eye on something; for a task at a certain time use a schedule. Tick "
        "an item off when it is settled for good."
    )
    arguments = Use

    async def call(self, arguments: Use, here: ToolContext) -> str:
        """Do it at the desk."""
        service, agent = here.heartbeats, here.agent
        if service is None:
            raise ToolFailed("there are no heartbeats here")
        try:
            match arguments.action:
                case "show":
                    return _shown(await service.checklist(agent), here)
                case "status":
                    return "\n".join(status_lines(await service.view(agent)))
                case "add":
                    return await _add(service, here, arguments.text or "")
                case "done":
                    return await _done(service, here, arguments)
        except HeartbeatError as error:
            raise ToolFailed(str(error)) from error
        except StoreUnavailable as error:
            raise ToolFailed("the database cannot be reached now; try again later") from error


class DoneArguments(Arguments):
    """Arguments of ``heartbeat_done``."""

    notify: bool = Field(
        description="true: something needs the attention of the people you work for. false: all is "
        "well, and nobody is told."
    )
    text: Annotated[str, Field(max_length=TEXT_CHARS)] = Field(
        default="", description="With notify: what they should read, in Markdown."
    )


class HeartbeatDone(Tool[DoneArguments]):
    """Ends a heartbeat; it is there in heartbeats only. It wins over what the reply says."""

    name = "heartbeat_done"
    description = (
        "End this heartbeat: say whether people are to be told, and what. Call it once, when you "
        f"have looked at everything; then answer {HEARTBEAT_OK}. What you say here counts, "
        "whatever your answer says."
    )
    side_effects = False
    arguments = DoneArguments

    async def call(self, arguments: DoneArguments, here: ToolContext) -> str:
        """Note it for the end of the run."""
        if here.beat_done is None:
            raise ToolFailed("this is no heartbeat")
        if arguments.notify and not arguments.text.strip():
            raise ToolFailed("text: is required with notify")
        here.beat_done(arguments.notify, arguments.text)
        return "Noted. People are told." if arguments.notify else "Noted. Nobody is told."


async def _add(service: HeartbeatService, here: ToolContext, text: str) -> str:
    """Add an item, unless it is open already: agents like to note things again."""
    item = as_item(text)
    if open_item(await service.checklist(here.agent), item) is None:
        await service.add_item(here.agent, text)
    return added(item)


async def _done(service: HeartbeatService, here: ToolContext, arguments: Use) -> str:
    """Tick off what is open under a number or text. Raises ``ToolFailed`` if nothing is."""
    before = await service.checklist(here.agent)
    if arguments.text is not None:
        item = open_item(before, one_line(arguments.text))
    else:
        item = next((item for item in before.items if item.number == arguments.number), None)
    if item is None:
        raise ToolFailed(f"there is no such item. {_shown(before, here)}")
    await service.complete_item(here.agent, item.number, expected=before.version)
    return done(item.text)


def _shown(found: Checklist, here: ToolContext) -> str:
    return checklist(found, here.agent, most=_LISTED, item_chars=ITEM_CHARS)
