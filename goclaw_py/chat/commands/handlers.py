"""Handlers of chat commands (SPEC CMD-1, CMD-5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from goclaw_py.chat.access.access_requests import AccessRequests
from goclaw_py.chat.channel import Channel
from goclaw_py.chat.commands.command import CommandServices, CommandUse, answer_command
from goclaw_py.chat.commands.queue import press as press_mode
from goclaw_py.chat.commands.registry import COMMANDS, words_read
from goclaw_py.chat.commands.retry import retry
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.stop.answer import author_of, with_unread
from goclaw_py.core.actors import acts
from goclaw_py.core.chat_commands import (
    AccessButton,
    ApprovalButton,
    Command,
    Misspelt,
    PressedCommand,
    QueueButton,
    RetryPressed,
    StopCommand,
    TypedCommand,
    our_command_of,
)
from goclaw_py.core.messages import OutboundMessage
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import ButtonsUsed, PressAnswered
from goclaw_py.records import InboxRow, Place


class CommandHandlers:
    """Carries out commands."""

    def __init__(
        self,
        channels: Mapping[Place, Channel],
        requests: AccessRequests,
        services: CommandServices,
    ) -> None:
        self._channels = channels
        self._requests = requests
        self._services = services

    async def execute(self, row: InboxRow) -> None:
        """Execute a committed command; its row ends with the answer in the outbox.

        A stop has been executed before: only its row ends. A row without text gets a polite line.
        Raises ``StoreUnavailable``: the row is pending then, to be executed again.
        """
        message = row.message
        # Only commands for us become such rows; after a restart our name may not be known yet.
        command = our_command_of(message)
        answer: str | OutboundMessage
        if command is None and not message.addressed:
            answer = ""  # people of a group among themselves
        elif command is None and message.unsupported:
            answer = texts.unsupported(message.unsupported)
        elif command is None:
            answer = texts.EMPTY_MESSAGE
        else:
            with acts(author_of(message)):
                answer = await self._do(command, row)
        if isinstance(answer, str):
            answer = OutboundMessage(message.target, answer)
        if answer.text:
            read = 0 if command is None else words_read(command)
            answer = replace(answer, text=with_unread(answer.text, message, read))
        await self._settle(row, Outcome.COMPLETED, say=[answer] if answer.text else [])

    async def end_cancelled(self, row: InboxRow, reason: Reason) -> None:
        """End a message that a stop cancelled during its commit.

        Raises ``StoreUnavailable``.
        """
        await self._settle(row, Outcome.CANCELLED, reason=reason)

    async def fail(self, row: InboxRow) -> None:
        """End a row after a bug, with a text for its sender. Raises ``StoreUnavailable``."""
        # One short sentence, sent as it is: the bug may lie in the channel's cutting.
        say = [OutboundMessage(row.message.target, texts.FAILED)]
        await self._settle(row, Outcome.FAILED, say=say)

    async def _settle(
        self,
        row: InboxRow,
        outcome: Outcome,
        *,
        reason: Reason | None = None,
        say: Sequence[OutboundMessage] = (),
    ) -> None:
        now, store = self._services.clock.now(), self._services.store
        await store.settle([row.id], outcome, now=now, reason=reason, say=say, node=store.node())

    async def _do(self, command: Command, row: InboxRow) -> str | OutboundMessage:
        match command:
            case StopCommand():
                return ""
            case Misspelt(meant):
                return f"Did you mean /{meant}?"
            case TypedCommand(name):
                use = CommandUse(row, command, self._services)
                answer = await answer_command(COMMANDS[name], use)
                if row.message.press is not None and (below := row.message.reply_to) is not None:
                    target = row.message.target
                    channel = self._channels[target.channel, target.account]
                    channel.signal(ButtonsUsed(target, below))
                return answer
            case _:
                return await self._press(row, command)

    async def _press(self, row: InboxRow, command: PressedCommand) -> str | OutboundMessage:
        match command:
            case ApprovalButton():
                pressed = await self._services.approvals.press(row, command)
            case AccessButton():
                pressed = await self._requests.press(row, command)
            case RetryPressed():
                pressed = await retry(row, command, self._services)
            case QueueButton(mode):
                typed = TypedCommand("queue", mode, mode)
                pressed = await press_mode(CommandUse(row, typed, self._services))
            case _:
                pressed = await self._services.jobs.press(row, command)
        target, below = row.message.target, row.message.reply_to
        channel = self._channels[target.channel, target.account]
        if pressed.toast:
            channel.signal(PressAnswered(target, row.message.external_id, pressed.toast))
        if pressed.is_used and below is not None:
            channel.signal(ButtonsUsed(target, below))
        if pressed.buttons:
            return OutboundMessage(target, pressed.answer, draft=below, buttons=pressed.buttons)
        return pressed.answer
