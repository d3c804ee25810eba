"""Why a message was or was not delivered."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from goclaw_py.core.display_names import short_id
from goclaw_py.core.messages import Target
from goclaw_py.core.session_keys import CONSOLE
from goclaw_py.core.text import count
from goclaw_py.core.web_links import OWN_CHANNELS, guest_of
from goclaw_py.gateway.why.sources import Sources, Verdict, between, brief, conclude, quoted
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    SubjectKind,
)
from goclaw_py.records import OutboxQuery, OutboxRow, OutboxState
from goclaw_py.scheduler.operator_warnings import shell_command
from goclaw_py.scheduler.views import ChannelState, GatewayStatus

LATE: Final = timedelta(seconds=10)
"""A delivery that took longer is called late."""

_SEARCHED: Final = 1000
_STOPPED: Final = "stopped"
"""The error of a message that a ``/stop`` has dropped."""


def subject(row: OutboxRow) -> Subject:
    """Return the delivery as a subject."""
    return Subject(SubjectKind.DELIVERY, str(row.id), quoted(row.message.text))


async def explain(src: Sources, row: OutboxRow) -> Explanation:
    """Explain the result of an outgoing message."""
    fate = await fate_of(src, row)
    run = row.message.run_id
    cures = [Cure("Why it was written", f"goclaw why run:{run}")] if run is not None else []
    where = await src.place(row.message.target)
    answer = f"Delivery {row.id} to {where} {fate.answer}."
    found = conclude(fate.code, answer, *fate.cures, *cures)
    return found.explanation(subject(row), src.now(), steps(row, where))


def steps(row: OutboxRow, where: str) -> list[ExplanationStep]:
    """Return the history of a message to the chat ``where``, in order."""
    run = f" by run {short_id(row.message.run_id)}" if row.message.run_id else ""
    found = [
        ExplanationStep(row.created_at, "written", f"delivery {row.id} to {where} was written{run}")
    ]
    if row.state is OutboxState.SENT:
        tries = f", at try {row.attempts}" if row.attempts > 1 else ""
        unsure = " (an earlier attempt may have arrived too)" if row.possible_duplicate else ""
        found.append(
            ExplanationStep(row.sent_at, "sent", f"the channel confirmed it{tries}{unsure}")
        )
        return found
    failed = ""
    if row.error and row.error != _STOPPED:
        tries = f"try {row.attempts} failed" if row.attempts else "it failed"
        failed = f"; {tries}: {brief(row.error)}"  # no time of its own: when is not stored
    if row.state is OutboxState.WAITING:
        next_try = f"the next try is due{failed}"
        found.append(ExplanationStep(row.next_attempt_at, "next_try", next_try))
    else:
        found.append(ExplanationStep(None, row.state.value, f"{_STATES[row.state]}{failed}"))
    return found


_STATES: Final = {
    OutboxState.WAITING: "it waits to be sent",
    OutboxState.SENDING: "it is being sent",
    OutboxState.SENT: "it was sent",
    OutboxState.FAILED: "it will not be retried automatically",
    OutboxState.DROPPED: "it was cancelled",
}


async def fate_of(src: Sources, row: OutboxRow) -> Verdict:
    """Return the result of a message, and its remedies."""
    retry = Cure("Send it again", f"goclaw deliveries retry {row.id}")
    match row.state:
        case OutboxState.SENT:
            return sent(row)
        case OutboxState.FAILED:
            return await _failed(src, row, retry)
        case OutboxState.DROPPED if row.error == _STOPPED:
            return conclude("delivery.stopped", "was cancelled by /stop before it was sent")
        case OutboxState.DROPPED:
            return conclude("delivery.dropped", "was dropped by an operator", retry)
        case _:
            return await _unsent(src, row)


def sent(row: OutboxRow) -> Verdict:
    """Return the result of a sent message."""
    took = between(row.created_at, row.sent_at) if row.sent_at else "some time"
    if row.possible_duplicate:
        error = f" ({brief(row.error)})" if row.error else ""
        clause = (
            "may have arrived twice: the first attempt was not confirmed, so it was sent "
            f"again{error}"
        )
        other = Cure("If all answers come twice: is another program at this bot?", "goclaw doctor")
        return conclude("delivery.possible_duplicate", clause, other)
    if row.sent_at is not None and row.sent_at - row.created_at > LATE:
        because = f", at try {row.attempts}" if row.attempts > 1 else ""
        last = f" (last error: {brief(row.error)})" if row.error else ""
        sent = f"/deliveries?show=sent#out-{row.id}"
        show = Cure("Its attempts and the last error", f"goclaw deliveries show {row.id}", sent)
        return conclude(
            "delivery.late", f"was sent {took} after it was written{because}{last}", show
        )
    return conclude("delivery.sent", f"was sent {took} after it was written")


async def _failed(src: Sources, row: OutboxRow, retry: Cure) -> Verdict:
    why = brief(row.error or "the channel refused it")
    target = row.message.target
    chat = await src.store.chat(target)
    gone = chat is not None and bool(chat.gone)
    cures = [retry, Cure("Or drop it", f"goclaw deliveries drop {row.id}")]
    if gone:
        again = "First unblock the bot in that chat or add it again, and send it a message"
        cures.insert(0, Cure(again))
    code = "delivery.chat_gone" if gone else "delivery.failed"
    return conclude(code, f"could not be delivered: {why}", *cures)


async def _unsent(src: Sources, row: OutboxRow) -> Verdict:
    """Return why a message is not sent yet."""
    now, target = src.now(), row.message.target
    status = await src.status()
    if status is None:
        start = Cure("Start a gateway; it sends what waits", "goclaw run")
        return conclude("delivery.no_gateway", "waits to be sent, and no gateway runs here", start)
    if target.channel in OWN_CHANNELS:
        return _unopened(target)
    if row.state is OutboxState.SENDING:
        return conclude("delivery.sending", "is being sent right now")
    waits = between(row.created_at, now)
    before = await _before(src, row)
    if before is not None:
        see = Cure("Why that one waits", f"goclaw why delivery:{before.id}")
        clause = f"waits behind delivery {before.id} to the same chat, which is not sent yet"
        return conclude("delivery.behind", clause, see)
    if row.error:
        soon = "now" if row.next_attempt_at <= now else f"in {between(now, row.next_attempt_at)}"
        often = count(row.attempts, "time")
        clause = f"has failed {often} and is tried again {soon}: {brief(row.error)}"
        waiting = f"/deliveries?show=waiting#out-{row.id}"
        drop = Cure("Cancel it", f"goclaw deliveries drop {row.id}", waiting)
        return conclude("delivery.retrying", clause, *_channel_cures(status, row), drop)
    see = Cure("The state of its channel", "goclaw status")
    clause = f"has waited {waits} for its turn on {target.channel}/{target.account}"
    return conclude("delivery.waits", clause, see)


def _unopened(target: Target) -> Verdict:
    """Explain a message to a chat that is shown only where it is open."""
    opened = shell_command("chat", "--chat", target.chat)
    cure = Cure("Open it", opened, f"/chat?{urlencode({'name': target.chat})}")
    if target.channel != CONSOLE:
        cure = Cure(f"{guest_of(target.chat)} gets it as soon as they open their chat")
    clause = "waits until somebody opens its chat: it is open nowhere now"
    return conclude("delivery.unopened", clause, cure)


def _channel_cures(status: GatewayStatus, row: OutboxRow) -> list[Cure]:
    target, fine = row.message.target, (ChannelState.CONNECTED, ChannelState.WAITING)
    is_down = any(
        (view.name, view.account) == (target.channel, target.account) and view.state not in fine
        for view in status.channels
    )
    return [Cure("Its channel is not connected", "goclaw why")] if is_down else []


async def _before(src: Sources, row: OutboxRow) -> OutboxRow | None:
    """Return the oldest unsent message to the same chat, if it is another one."""
    target = row.message.target
    key = target.channel, target.account, target.chat
    unsent = [
        one
        for state in (OutboxState.WAITING, OutboxState.SENDING)
        for one in await src.control.deliveries.outbox(OutboxQuery(limit=_SEARCHED, state=state))
        if (one.message.target.channel, one.message.target.account, one.message.target.chat) == key
        and one.id < row.id
    ]
    return min(unsent, key=lambda one: one.id, default=None)


async def find(src: Sources, channel: str, account: str, chat: str, name: str) -> list[OutboxRow]:
    """Return messages to a chat by the channel's id, among the newest."""
    rows = await src.control.deliveries.outbox(OutboxQuery(limit=_SEARCHED))
    return [
        row
        for row in rows
        if (row.message.target.channel, row.message.target.account) == (channel, account)
        and row.message.target.chat == chat
        and row.external_id is not None
        and name in (row.external_id, row.external_id.rpartition(":")[2])
    ]
