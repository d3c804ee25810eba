"""What a chat command is. Each has a module of its own in this folder; ``registry`` finds them.

Everybody who gets here may talk to the agent. What else a use of a command needs, its module
declares (``ChatCommand.who``), and ``answer_command`` checks it before the handler is called: a
handler cannot forget it. Everybody in a group reads the answer: ``CommandUse.is_private`` says
whether it may name other chats or machines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.core.chat_commands import TypedCommand
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import OutboundMessage, PeerKind
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import InboxRow
from goclaw_py.records.bound import BoundStore
from goclaw_py.runs.budget_tracker import BudgetTracker
from goclaw_py.runs.session_settings import SessionSettings

if TYPE_CHECKING:
    # These have commands or buttons of their own.
    from goclaw_py.chat.commands.heartbeat import HeartbeatCommands
    from goclaw_py.chat.commands.jobs import JobCommands
    from goclaw_py.chat.inbound.approvals import ToolApprovals
    from goclaw_py.chat.stop.execute import StopExecutor


@dataclass(frozen=True, slots=True)
class CommandServices:
    """What commands may use: each handler gets all of it, by ``CommandUse``, and uses some."""

    store: BoundStore
    clock: Clock
    stops: StopExecutor
    policies: SessionSettings
    access_control: AccessControl
    budget_tracker: BudgetTracker
    jobs: JobCommands
    heartbeats: HeartbeatCommands
    approvals: ToolApprovals
    models: Mapping[AgentName, str]
    """The language model of each agent that has one."""


@dataclass(frozen=True, slots=True)
class CommandUse:
    """A command that somebody has typed."""

    row: InboxRow
    command: TypedCommand
    services: CommandServices

    @property
    def is_by_owner(self) -> bool:
        """Return whether an owner has typed it."""
        message = self.row.message
        rules = self.services.policies.rules(message.target).access
        return self.services.access_control.is_owner(message.target, message.sender.id, rules)

    @property
    def is_private(self) -> bool:
        """Return whether only an owner reads the answer: it may name other chats and machines."""
        return self.is_by_owner and self.row.message.peer is PeerKind.DIRECT


@dataclass(frozen=True, slots=True)
class Everybody:
    """Everybody who may talk to the agent."""


@dataclass(frozen=True, slots=True)
class OwnersOnly:
    """Owners only; others get the ``refusal``.

    Args:
        when: Returns whether a use is for owners only; others are for everybody. None: each use is,
            and guests do not see the command in menus.

    Raises ``ValueError`` for an empty refusal: people would think that the bot is broken.
    """

    refusal: str = "Only an owner can use this command."
    when: Callable[[CommandUse], bool] | None = None

    def __post_init__(self) -> None:
        if not self.refusal.strip():
            raise ValueError("the refusal of a command must not be empty")


@dataclass(frozen=True, slots=True)
class HandlerDecides:
    """The handler has rights of its own: ``clause`` of the specification."""

    clause: str


class HelpGroup(StrEnum):
    """The headings of ``/help``."""

    TASKS = "Running tasks"
    CONVERSATION = "This conversation"
    JOBS = "Jobs and reminders"
    HEARTBEAT = "Background checklist (heartbeat)"


def reads_nothing(_command: TypedCommand) -> int:
    """Return how many words behind it a command without arguments reads."""
    return 0


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """A command; its description for menus is in ``core.chat_commands.MENU``.

    Args:
        who: Who may use it.
        group: Where ``/help`` lists it; None: it does not.
        handler: Returns the answer, "" for none, or one with buttons. Raises ``StoreUnavailable``;
            then it is called again later. None: it is executed when it arrives, before its commit.
        words_read: Returns how many words behind it are read, None for all; of the others the
            answer says that they are not.
    """

    name: str
    who: Everybody | OwnersOnly | HandlerDecides
    group: HelpGroup | None
    handler: Callable[[CommandUse], Awaitable[str | OutboundMessage]] | None
    words_read: Callable[[TypedCommand], int | None] = reads_nothing


async def answer_command(command: ChatCommand, use: CommandUse) -> str | OutboundMessage:
    """Execute a command, if its user may; return the answer. Raises ``StoreUnavailable``."""
    who = command.who
    if isinstance(who, OwnersOnly) and (who.when is None or who.when(use)) and not use.is_by_owner:
        return who.refusal
    return "" if command.handler is None else await command.handler(use)
