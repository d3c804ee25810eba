"""``/queue``: show or change how messages wait in a chat (CMD-5)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, HelpGroup, OwnersOnly
from goclaw_py.chat.outbound import texts
from goclaw_py.core.chat_commands import Pressed, TypedCommand, queue_data
from goclaw_py.core.messages import Button, OutboundMessage
from goclaw_py.scheduler.models import Drop, Mode, QueuePolicy
from goclaw_py.scheduler.views import RunView

log = logging.getLogger(__name__)

NOT_AN_OWNER: Final = "Only an owner can change the queue mode of this chat."
_NOTICED_S: Final = 0.5
"""The shortest time within which people send several messages."""
_MODES: Mapping[str, Mode | None] = {**{mode.value: mode for mode in Mode}, "default": None}


async def _queue(use: CommandUse) -> OutboundMessage:
    """Show the queue mode of a chat, with buttons that choose another; or change it."""
    word = use.command.action
    text = await _choose(use, word) if word in _MODES else ""
    if word:
        return OutboundMessage(use.row.message.target, text or unknown_mode(word))
    buttons = _buttons(use) if use.is_by_owner else ()
    return OutboundMessage(use.row.message.target, _state(use), buttons=buttons)


async def press(use: CommandUse) -> Pressed:
    """Choose the mode that a button names, and show the new state in its message.

    The data of a press can be forged, and in a group everybody can press.
    """
    if use.command.action not in _MODES:
        return Pressed("", is_used=False)
    if not use.is_by_owner:
        return Pressed("", is_used=False, toast=NOT_AN_OWNER)
    toast = await _choose(use, use.command.action)
    return Pressed(_state(use), is_used=False, toast=toast, buttons=_buttons(use))


def _state(use: CommandUse) -> str:
    session, policies = use.row.session, use.services.policies
    return queue(
        policies.policy(session, use.row.message),
        use.services.stops.local.runs(session),
        len(use.services.stops.local.in_outage(session)),
        chosen=policies.chosen(session) is not None,
        full=policies.contexts.is_full(session),
        owner=use.is_by_owner,
    )


def _buttons(use: CommandUse) -> tuple[tuple[Button, ...], ...]:
    """Return a button for each mode, two in a row; the present one is marked."""
    chosen = use.services.policies.chosen(use.row.session)
    buttons = [
        Button(f"✅ {word}" if mode is chosen else word, queue_data(word))
        for word, mode in _MODES.items()
        if mode is not Mode.FOLLOWUP  # the same as queue
    ]
    return tuple(tuple(buttons[first : first + 2]) for first in range(0, len(buttons), 2))


async def _choose(use: CommandUse, word: str) -> str:
    """Set the mode of the chat; return the answer."""
    session, message = use.row.session, use.row.message
    policies, mode = use.services.policies, _MODES[word]
    await use.services.store.choose_mode(session, mode)
    policies.choose(session, mode)
    now = policies.policy(session, message).mode
    log.info("queue_mode_changed", extra={"session": session, "mode": word})
    return queue_changed(now, chosen=mode is not None)


def _changes(use: CommandUse) -> bool:
    return use.command.action in _MODES


def _words_read(_command: TypedCommand) -> int:
    return 1


def queue(
    policy: QueuePolicy,
    runs: Sequence[RunView],
    in_outage: int = 0,
    *,
    chosen: bool,
    full: bool,
    owner: bool = True,
) -> str:
    """Return the answer to ``/queue``.

    ``in_outage``: the number of turns that wait for the provider of the agent.
    ``chosen``: the mode was set in this chat; ``full``: the conversation uses so much of the
    context that only one run at a time may start (SPEC QUEUE-7); ``owner``: the reader may change
    the mode.
    """
    not_started = sum(run.state.is_waiting for run in runs)
    waiting = not_started + in_outage
    origin = "chosen in this chat" if chosen else "from the settings"
    at_once = "1 at a time, because this conversation is long"
    if not full:
        at_once = f"{policy.concurrency} at a time"
    last = "the oldest is dropped" if policy.drop is Drop.OLD else "new ones are rejected"
    burst = f"messages sent within {policy.debounce_s:g} s are merged"
    return "\n".join(
        [
            f"Mode: {policy.mode.value} ({origin}): {_MEANING[policy.mode]}",
            f"Running: {len(runs) - not_started} (at most {at_once})",
            f"Waiting: {waiting} (at most {policy.capacity}; when the queue is full, {last})",
            *([f"Bursts: {burst}"] if policy.debounce_s >= _NOTICED_S else []),
            *(_others(policy.mode, chosen=chosen) if owner else []),
        ]
    )


def queue_changed(mode: Mode, *, chosen: bool) -> str:
    """Return the answer to ``/queue MODE``; the mode applies to later messages."""
    origin = "Queue mode" if chosen else "Queue mode, as in the settings"
    return f"{origin}: {mode.value}, {_MEANING[mode]}."


def unknown_mode(word: str) -> str:
    """Return the answer to ``/queue`` with a word that is not a mode."""
    names = ", ".join(mode for mode in Mode if mode is not Mode.FOLLOWUP)
    modes = f"Modes: {names}; /queue default restores the settings."
    return f"There is no queue mode “{texts.snippet(word)}”. {modes}"


def _others(present: Mode, *, chosen: bool) -> list[str]:
    """Return what the other modes are for, a line for each, and the way back if there is one."""
    others = [mode for mode in Mode if mode not in (Mode.FOLLOWUP, present)]
    lines = [f"- {mode.value}: {_MEANING[mode]}" for mode in others]
    back = ["/queue default restores the settings."] if chosen else []
    return ["Other modes:", *lines, *back]


_MEANING: Mapping[Mode, str] = {
    Mode.QUEUE: "messages wait for their turn",
    Mode.FOLLOWUP: "messages wait for their turn",
    Mode.INTERRUPT: "a new message stops the running task and replaces waiting messages",
    Mode.COLLECT: "waiting messages are merged into one turn",
    Mode.STEER: "a new message is added to the running task if possible, otherwise it waits",
}


COMMANDS = (
    ChatCommand("queue", OwnersOnly(NOT_AN_OWNER, _changes), HelpGroup.TASKS, _queue, _words_read),
)
