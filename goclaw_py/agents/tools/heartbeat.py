"""The tools with which agents edit their heartbeat checklist (SPEC AGENT-6, HB-11).

They are offered if there is a heartbeat. No tool can start a heartbeat run.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from goclaw_py.agents.tools.arguments import NOT_BLANK, Arguments, one_line
from goclaw_py.agents.tools.tool import CHECKLIST_IS_OF_OWNERS, Tool
from goclaw_py.chat.outbound.ok_token import HEARTBEAT_OK
from goclaw_py.core.errors import HeartbeatError, StoreUnavailable, ToolFailed
from goclaw_py.operations.heartbeats.operations import HeartbeatService
from goclaw_py.runs.toolbox import ToolContext
from goclaw_py.schedule.heartbeat.chat_texts import added, checklist, done
from goclaw_py.schedule.heartbeat.checklist.checklist import (
    ITEM_CHARS,
    Checklist,
    as_item,
    open_item,
)
from goclaw_py.schedule.heartbeat.status_texts import status_lines

_LISTED: Final = 50
"""The maximum number of items in one answer."""

TEXT_CHARS: Final = 16_000
"""The maximum length of an alert."""

_USES: Final = {"add": ("text",), "done": ("number", "text")}
"""The arguments of each action, exactly one of which must be given."""


class Use(Arguments):
    """Arguments of ``heartbeat``."""

    action: Literal["show", "add", "done", "status"] = Field(
        description="show: list the open items with their numbers. add: add an item with the "
        "given text. done: mark an item as done, by its number or text. status: show when "
        "the last heartbeat ran, its result and the reason, and when the next one is due."
    )
    text: Annotated[str, Field(max_length=ITEM_CHARS), NOT_BLANK] | None = Field(
        default=None,
        description="For add: what to check and when to tell the user, in one sentence that "
        "makes sense without context. It may begin with its own interval: 'every 2h: ...' "
        "or 'weekdays 09:00: ...'. For done: the text of the item, as listed by show.",
    )
    number: int | None = Field(
        default=None, ge=1, description="For done: the number of the item, as listed by show."
    )

    @model_validator(mode="after")
    def _what_the_action_takes(self) -> Use:
        given = {name for name in ("text", "number") if getattr(self, name) is not None}
        takes = _USES.get(self.action, ())
        if not given <= set(takes):
            raise ValueError(f"{self.action} takes {' or '.join(takes) or 'no other arguments'}")
        if takes and len(given) != 1:
            raise ValueError(f"{self.action} needs {' or '.join(takes)}")
        return self


class HeartbeatTool(Tool[Use]):
    """Shows and changes the checklist of the calling agent only."""

    name = "heartbeat"
    description = (
        "Show or change your checklist, HEARTBEAT.md: things that you check regularly without "
        "being asked. At each heartbeat (every 30 minutes by default) you get the items that are "
        "due, check them, and message the user only if something needs attention. Use this tool "
        "when the user asks you to watch something; for a task at a certain time, use a schedule. "
        "Mark an item as done when it never needs to be checked again."
    )
    arguments = Use

    async def call(self, arguments: Use, here: ToolContext) -> str:
        """Execute the action with the heartbeat service."""
        service, agent = here.heartbeats, here.agent
        if service is None:
            raise ToolFailed("the heartbeat is not available here")
        try:
            if arguments.action in _USES and not here.may_change_checklist:
                raise ToolFailed(CHECKLIST_IS_OF_OWNERS)
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
            raise ToolFailed("the database cannot be reached; try again later") from error


class DoneArguments(Arguments):
    """Arguments of ``heartbeat_done``."""

    notify: bool = Field(
        description="true: something needs the attention of the people you work for; send "
        "them the text. false: there is nothing to report; send no message."
    )
    text: Annotated[str, Field(max_length=TEXT_CHARS)] = Field(
        default="", description="With notify: the message to send, in Markdown."
    )


class HeartbeatDone(Tool[DoneArguments]):
    """Ends a heartbeat run; offered only there. It overrides the reply."""

    name = "heartbeat_done"
    description = (
        "End this heartbeat and decide whether to notify people. Call it once, after you have "
        f"checked everything, then answer {HEARTBEAT_OK}. This call decides, whatever your answer "
        "says."
    )
    side_effects = False
    acts_on_run = True
    arguments = DoneArguments

    async def call(self, arguments: DoneArguments, here: ToolContext) -> str:
        """Store the decision for the end of the run."""
        if here.heartbeat_run_done is None:
            raise ToolFailed("this is not a heartbeat run")
        if arguments.notify and not arguments.text.strip():
            raise ToolFailed("text: is required if notify is true")
        here.heartbeat_run_done(arguments.notify, arguments.text)
        return (
            "Done. A message will be sent."
            if arguments.notify
            else "Done. No message will be sent."
        )


async def _add(service: HeartbeatService, here: ToolContext, text: str) -> str:
    """Add an item unless it is already open, because agents often add the same item again."""
    item = as_item(text)
    if open_item(await service.checklist(here.agent), item) is None:
        await service.add_item(here.agent, text)
    return added(item)


async def _done(service: HeartbeatService, here: ToolContext, arguments: Use) -> str:
    """Mark an open item as done, by number or text. Raises ``ToolFailed`` if there is none."""
    before = await service.checklist(here.agent)
    if arguments.text is not None:
        item = open_item(before, one_line(arguments.text))
    else:
        item = next((item for item in before.items if item.number == arguments.number), None)
    if item is None:
        raise ToolFailed(f"there is no such item. {_shown(before, here)}")
    await service.complete_item(here.agent, item.number, version=before.version)
    return done(item.text)


def _shown(found: Checklist, here: ToolContext) -> str:
    return checklist(found, here.agent, most=_LISTED, item_chars=ITEM_CHARS)
