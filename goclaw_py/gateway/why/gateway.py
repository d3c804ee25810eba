"""The problems of the gateway as a whole."""

from __future__ import annotations

from collections.abc import Mapping
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
from goclaw_py.records import DeadLetterQuery, IncomingState, OutboxQuery, OutboxState
from goclaw_py.scheduler.snapshots import lane_uses
from goclaw_py.scheduler.views import ChannelState, ChannelView, GatewayStatus

GATEWAY: Final = Subject(SubjectKind.GATEWAY, "gateway", "the gateway")

_MANY: Final = 1000


async def explain(src: Sources) -> Explanation:
    """Explain what needs attention now, the worst first."""
    status = await src.status()
    if status is None:
        return await _none(src)
    problems = _problems(status, await _more_cures(src, status))
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
    # A run of a process that has ended answers nothing any more.
    waiting = sum(
        [
            len(await src.control.deliveries.dead_letters(DeadLetterQuery(state, limit=_MANY)))
            for state in (IncomingState.WAITING, IncomingState.RUNNING)
        ]
    )
    pending = OutboxQuery(OutboxState.WAITING, limit=_MANY)
    unsent = len(await src.control.deliveries.outbox(pending))
    steps = (
        ExplanationStep(None, "messages", f"{count(waiting, 'message')} waiting for an answer"),
        ExplanationStep(None, "deliveries", f"{count(unsent, 'message')} waiting to be sent"),
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


def _problems(status: GatewayStatus, more: Mapping[str, tuple[Cure, ...]]) -> list[_Problem]:
    found: list[_Problem] = []
    if status.draining:
        restart = Cure("Start it again when it has ended", "goclaw run")
        found.append(("gateway.draining", "the gateway is shutting down", (restart,)))
    found += [_channel(view) for view in status.channels if view.detail or view.warning]
    for warning in status.warnings:
        if not warning.code.startswith("channel."):
            shown = Cure(WARNING_CURES[warning.code], warning.command, warning.link)
            found.append((warning.code, str(warning), (shown, *more.get(warning.code, ()))))
    return found


async def _more_cures(src: Sources, status: GatewayStatus) -> dict[str, tuple[Cure, ...]]:
    """Return the cures of warnings whose commands name a row, by code: those of the newest row."""
    found: dict[str, tuple[Cure, ...]] = {}
    codes = {warning.code for warning in status.warnings}
    if "gateway.dead_deliveries" in codes:
        for row in await src.control.deliveries.outbox(OutboxQuery(OutboxState.FAILED, limit=1)):
            why = Cure("Why the newest was not delivered", f"goclaw why delivery:{row.id}")
            found["gateway.dead_deliveries"] = (why,)
    if "gateway.unanswered" in codes:
        for letter in await src.control.deliveries.dead_letters(DeadLetterQuery(limit=1)):
            why = Cure("Why the newest was not answered", f"goclaw why message:{letter.row.id}")
            found["gateway.unanswered"] = (why,)
    if "gateway.approvals" in codes:
        for asked in (await src.control.approvals.list())[:1]:
            show = Cure("The newest, with its arguments", f"goclaw approvals show {asked.id}")
            found["gateway.approvals"] = (show,)
    if "gateway.lane_full" in codes:
        for use in lane_uses(status.lanes, status.runs):
            if use.waiting and use.lane.used >= use.lane.concurrency:
                found["gateway.lane_full"] = src.wider(use.lane.name)[1:]
                break
    return found


WARNING_CURES: Final = {
    "gateway.approvals": "All tool calls that wait for an approval",
    "gateway.clock": "Synchronize the clock",
    "gateway.database": "What it answers, and what to change",
    "gateway.dead_deliveries": "All messages that could not be delivered",
    "gateway.heartbeat": "Why, and what to do",
    "gateway.jobs_off": "Turn jobs on: enabled = true under [scheduler] in goclaw.toml",
    "gateway.lane_full": "Which runs are in the lane, and which wait",
    "gateway.model": "What the agent lacks, and what to do",
    "gateway.outage": "Check key, address and model of the agent",
    "gateway.release_differs": "What differs",
    "gateway.results": "The runs with these results",
    "gateway.setting_edit": "Remove the edit",
    "gateway.settings_differ": "What differs",
    "gateway.unanswered": "All messages without an answer",
    "gateway.unattended": "All runs that were lost",
    "gateway.unserved": "These messages; to send them, set up the account and restart",
    "gateway.undecided": "All groups, to allow or deny them",
    "gateway.usage_estimated": "What was used, by agent",
}
"""What the command and the page of a warning show or do, by code."""


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
