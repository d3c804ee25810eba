"""The problems of the gateway as a whole."""

from __future__ import annotations

import re
from typing import Final

from goclaw_py.core.text import count, sentence
from goclaw_py.gateway.why.sources import Sources
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    SubjectKind,
)
from goclaw_py.records import DeadLetterQuery, OutboxQuery, OutboxState
from goclaw_py.scheduler.views import ChannelState, ChannelView, GatewayStatus

GATEWAY: Final = Subject(SubjectKind.GATEWAY, "gateway", "the gateway")

_COMMAND: Final = re.compile(r"see: (goclaw [\w -]+)")
_MANY: Final = 1000


async def explain(src: Sources) -> Explanation:
    """Explain what needs attention now, the worst first."""
    status = await src.status()
    if status is None:
        return await _none(src)
    problems = _problems(status)
    if not problems:
        answer = (
            "The gateway is running, its channels are connected, and no problem needs "
            "your attention."
        )
        return Explanation(GATEWAY, status.now, "gateway.fine", answer, _facts(status))
    code, words, _ = problems[0]
    more = count(len(problems) - 1, "more problem")
    rest = "" if len(problems) == 1 else f" ({more}, below)"
    steps = [ExplanationStep(None, one[0], one[1]) for one in problems]
    found = dict.fromkeys(cure for one in problems for cure in one[2])
    answer = f"{sentence(words).rstrip('.')}{rest}."
    return Explanation(GATEWAY, status.now, code, answer, tuple(steps), tuple(found))


async def _none(src: Sources) -> Explanation:
    """Explain that no gateway is running, and what waits for one."""
    unanswered = DeadLetterQuery(waiting=True, limit=_MANY)
    waiting = len(await src.control.deliveries.dead_letters(unanswered))
    pending = OutboxQuery(OutboxState.PENDING, limit=_MANY)
    unsent = len(await src.control.deliveries.outbox(pending))
    steps = (
        ExplanationStep(None, "inbox", f"{count(waiting, 'message')} waiting for an answer"),
        ExplanationStep(None, "outbox", f"{count(unsent, 'message')} waiting to be sent"),
    )
    answer = (
        "No gateway is running here, so no message is received, answered or sent, and no job runs."
    )
    cures = (
        Cure("Start one", "goclaw run"),
        Cure("If it ends at once: what stops it", "goclaw doctor"),
    )
    return Explanation(GATEWAY, src.now(), "gateway.none", answer, steps, cures)


_Problem = tuple[str, str, tuple[Cure, ...]]
"""A code, a clause, remedies."""


def _problems(status: GatewayStatus) -> list[_Problem]:
    found: list[_Problem] = []
    if status.draining:
        restart = Cure("Start it again when it has ended", "goclaw run")
        found.append(("gateway.draining", "the gateway is shutting down", (restart,)))
    if status.backlog is None:
        words = f"the database ({status.database}) does not answer"
        doctor = Cure("What it answers, and what to change", "goclaw doctor")
        found.append(("gateway.database", words, (doctor,)))
    places = set()
    for view in status.channels:
        if view.detail or view.warning:
            found.append(_channel(view))
            places.add(f"{view.name}/{view.account}: ")
    for warning in status.warnings:
        is_told = any(map(warning.startswith, places))
        if not is_told and (status.backlog is not None or "channels: " not in warning):
            found.append(_warning(warning))
    return found


def _warning(text: str) -> _Problem:
    """Convert a warning of the status; many name the command with details."""
    command = _COMMAND.search(text)
    cures = (Cure("Show them", command[1].strip()),) if command else ()
    for part, code, *extra in _WARNINGS:
        if part in text:
            return code, text, (*cures, Cure(*extra))
    return "gateway.warning", text, cures


_WARNINGS: Final = (
    ("could not be delivered", "gateway.dead_deliveries",
     "Why a message was not delivered", "goclaw why outbox:ID"),
    ("got no answer", "gateway.unanswered",
     "Why a message was not answered", "goclaw why inbox:ID"),
    ("for an approval", "gateway.approvals",
     "Allow one, or deny it", "goclaw approvals allow ID"),
    ("your decision", "gateway.undecided", "Allow the group", "goclaw groups allow ID"),
    ("its provider has been down", "gateway.outage",
     "Check key, address and model of the agent", "goclaw doctor"),
    ("has other settings", "gateway.settings_differ", "What differs", "goclaw nodes show NODE"),
    ("has no effect", "gateway.setting_edit", "Remove the edit", "goclaw config reset SETTING"),
    ("runs release", "gateway.release_differs", "The nodes", "goclaw nodes list"),
    ("the clock of this machine", "gateway.clock",
     "Synchronize the clock", "timedatectl set-ntp true"),
    ("is full", "gateway.lane_full", "Add slots to the lane", "goclaw lanes set LANE N"),
)  # fmt: skip
"""Parts of warnings, their codes, and remedies."""


def _channel(view: ChannelView) -> _Problem:
    place = f"{view.name}/{view.account}"
    words = f"channel {place} ({view.state.value}): {view.detail}"
    if not view.detail:
        words = f"channel {place}: {view.warning}"
        return "channel.warning", words, (Cure("Check what its server says", "goclaw doctor"),)
    return f"channel.{view.state.value}", words, _CHANNEL[view.state]


_NETWORK: Final = Cure("It retries by itself; check the network of this machine", "goclaw doctor")

_CHANNEL: Final[dict[ChannelState, tuple[Cure, ...]]] = {
    ChannelState.STARTING: (_NETWORK,),
    ChannelState.FAILED: (Cure("It starts again by itself; read its error", "goclaw logs"),),
    ChannelState.WAITING: (Cure("Which node receives for it", "goclaw nodes list"),),
    ChannelState.CONNECTED: (),
    ChannelState.RECONNECTING: (_NETWORK,),
    ChannelState.CONFLICT: (
        Cure("Stop the other program that uses this bot's token, or give one of them another bot"),
    ),
    ChannelState.UNAUTHORIZED: (
        Cure(
            "Get the token again from @BotFather (/token) and write it to token_file; a running "
            "gateway reads it again"
        ),
        Cure("Check it", "goclaw doctor"),
    ),
    ChannelState.STOPPED: (
        Cure(
            "Write a valid token to token_file; without a token_file, change goclaw.toml "
            "and restart"
        ),
        Cure("Check it", "goclaw doctor"),
    ),
}


def _facts(status: GatewayStatus) -> tuple[ExplanationStep, ...]:
    lanes = ", ".join(f"{lane.name} {lane.active}/{lane.concurrency}" for lane in status.lanes)
    return (
        ExplanationStep(
            status.started_at, "started", f"node {status.node} started, release {status.release}"
        ),
        ExplanationStep(None, "lanes", f"lanes: {lanes}"),
    )
