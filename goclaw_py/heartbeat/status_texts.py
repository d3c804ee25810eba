"""What people read about a heartbeat: how it stands, and why it was silent (SPEC HB-9, OPS-4)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from goclaw_py.common.durations import in_words
from goclaw_py.common.text import count, cut_text
from goclaw_py.common.time_texts import lasting, named
from goclaw_py.heartbeat.active_hours import ActiveHours
from goclaw_py.heartbeat.decisions import HeartbeatPolicy, Nowhere, is_used_up, priced
from goclaw_py.heartbeat.models import Beat, BeatStatus, Heartbeat, Skip
from goclaw_py.heartbeat.views import HeartbeatView, Rehearsal
from goclaw_py.model.messages import Target
from goclaw_py.model.outcomes import BeatKind
from goclaw_py.model.routes import Route
from goclaw_py.model.run_events import NO_USAGE, Usage
from goclaw_py.model.targets import target_text

_REASON_CHARS: Final = 300
_LATE: Final = timedelta(seconds=60)
"""A beat that is due for longer than this will not come by itself."""

_SEARCHED: Final = 400
"""So many openings of active hours are tried: on a grid of days, all changes of clocks."""

# ---------------------------------------------------------------------------- one beat

_WORDS: Final = {
    BeatStatus.RUNNING: "it is at work",
    BeatStatus.DEFERRED: "it waits, because its agent is busy",
    BeatStatus.OK: "all was well, so nothing was sent",
    BeatStatus.DUPLICATE: "it had something to say that was said within the last 24 hours, so it "
    "was not sent again",
    BeatStatus.NO_ROUTE: "it had something to say, but there was no chat to send it to",
    BeatStatus.CANCELLED: "it was stopped while its agent worked",
    BeatStatus.FAILED: "it failed",
    BeatStatus.LOST: "its process died while its agent worked",
}

_SKIPPED: Final = {
    Skip.DISABLED: "it is off",
    Skip.MUTED: "it is muted",
    Skip.QUIET_HOURS: "it is outside its active hours",
    Skip.NO_FILE: "there is no HEARTBEAT.md",
    Skip.UNREADABLE: "HEARTBEAT.md cannot be read",
    Skip.EMPTY: "HEARTBEAT.md asks for nothing",
    Skip.NOTHING_DUE: "no item of HEARTBEAT.md is due",
    Skip.BUDGET: "its beats have used up what they may use on a day",
}

BY_SETTINGS: Final = (
    "The settings switch the heartbeat off (heartbeat.enabled and heartbeat.interval); only they "
    "can switch it on."
)
_ADD: Final = "/heartbeat add TEXT (goclaw heartbeat add TEXT) gives it something to do."
_ON: Final = "/heartbeat on (goclaw heartbeat on) switches it on."
_BUSY: Final = "somebody talks to the agent"
_UNMUTE: Final = "/mute off (goclaw heartbeat mute off)"

SAME_WAITS: Final = "it said the same as an alert that still waited to be sent, so it sent nothing"
"""How a beat ends whose alert is on its way already."""

_ADVICE: Final = {
    BeatStatus.NO_ROUTE: "Write to the agent in the chat that it should alert, or set "
    "heartbeat.target.",
    BeatStatus.DELIVERY_FAILED: "Write to the agent there, or set another heartbeat.target.",
    BeatStatus.FAILED: "The next beat tries it anew.",
    BeatStatus.LOST: "What it did until then is not known; the next beat comes as usual.",
}

_SKIP_ADVICE: Final = {
    Skip.DISABLED: _ON,
    Skip.MUTED: f"{_UNMUTE} ends that.",
    Skip.NO_FILE: _ADD,
    Skip.UNREADABLE: "Put the file right; it is in the workspace of the agent.",
    Skip.EMPTY: _ADD,
    Skip.NOTHING_DUE: "Items with an interval of their own wait for it.",
    Skip.BUDGET: "The day begins anew at 00:00 UTC; heartbeat.budget.day gives it more.",
}


def outcome_words(beat: Beat) -> str:
    """What came of a beat and why, as a clause without a full stop."""
    if beat.status is BeatStatus.DUPLICATE:
        return SAME_WAITS if beat.detail == SAME_WAITS else _WORDS[beat.status]
    if beat.status is BeatStatus.OK and beat.detail:
        return f"{_WORDS[beat.status]}; {_short(beat.detail)}"
    return _told(beat) or _with_detail(_clause(beat), _cause(beat.skip, beat.detail))


def _cause(skip: Skip | None, detail: str) -> str:
    """What a detail adds to the words about a beat."""
    return "" if skip is Skip.NO_FILE else detail.removeprefix("HEARTBEAT.md: ")


def _clause(beat: Beat) -> str:
    if beat.status is not BeatStatus.SKIPPED:
        return _WORDS[beat.status]
    return "it was skipped" if beat.skip is None else f"it was skipped: {_SKIPPED[beat.skip]}"


def _told(beat: Beat) -> str:
    """What became of an alert, "" if a beat has sent none."""
    if is_undelivered(beat):
        where = f" to {_place(beat.target)}" if beat.target else ""
        said = f"it had something to say, but the message could not be delivered{where}"
        return _with_detail(said, beat.undelivered or beat.detail)
    if beat.status is not BeatStatus.ALERTED:
        return ""
    if beat.target is None:
        return _with_detail("it had something to say, which only the log keeps", beat.detail)
    where = _place(beat.target)
    if beat.delivery == "pending":
        return f"it had something to say, and the message waits to be sent to {where}"
    found = f" ({_short(beat.detail)})" if beat.detail else ""
    return f"it had something to say, and told it in {where}{found}"


def is_undelivered(beat: Beat) -> bool:
    """Whether it alerted and nobody will read that."""
    died = beat.status is BeatStatus.ALERTED and beat.delivery == "dead"
    return died or beat.status is BeatStatus.DELIVERY_FAILED


def advice(beat: Beat, heartbeat: Heartbeat | None = None) -> str:
    """What to do about it, as a sentence; "" if there is nothing to do.

    ``heartbeat``: as it stands, if known: only the settings switch on what they switch off.
    """
    if is_undelivered(beat):
        return _ADVICE[BeatStatus.DELIVERY_FAILED]
    if beat.skip is not None:
        return _skip_advice(beat.skip, heartbeat)
    return _ADVICE.get(beat.status, "")


def _skip_advice(skip: Skip, heartbeat: Heartbeat | None) -> str:
    if skip is Skip.DISABLED and heartbeat is not None and heartbeat.interval is None:
        return BY_SETTINGS
    return _SKIP_ADVICE.get(skip, "")


# ---------------------------------------------------------------------------- why

_ASKED: Final = {
    BeatKind.INTERVAL: "",
    BeatKind.MANUAL: ", by hand",
    BeatKind.EVENT: ", for an event",
    BeatKind.JOB: ", after a job",
}


def why(view: HeartbeatView) -> tuple[str, str]:
    """A line that explains the last beat, and one about the next; in the zone of the heartbeat."""
    return _last(view), " ".join(_coming(view))


def _last(view: HeartbeatView) -> str:
    beat = view.last
    if beat is None:
        return "No heartbeat has run yet."
    # Whether it is off or muted now is told with the next beat.
    advised = "" if beat.skip in (Skip.DISABLED, Skip.MUTED) else advice(beat)
    when = named(beat.claimed_at, view.policy.zone, view.now)
    row = view.heartbeat.failures if beat.status is BeatStatus.FAILED else 0
    again = f"It has failed {row} times in a row." if row > 1 else ""
    parts = [
        f"Last heartbeat run, {when}{_ASKED[beat.kind]}: {_sentence(outcome_words(beat))}",
        advised,
    ]
    return " ".join(filter(None, [*parts, again]))


def _coming(view: HeartbeatView) -> list[str]:
    """When the next beat comes, or why there is none, and what will keep it silent."""
    parts = [_current(view), _next(view)]
    if view.heartbeat.is_on:
        parts += [_wake(view), _budget(view), _unreachable(view)]
    return [part for part in parts if part]


def _current(view: HeartbeatView) -> str:
    beat, zone = view.current, view.policy.zone
    if beat is None:
        return ""
    if beat.status is not BeatStatus.DEFERRED:
        return (
            f"A heartbeat run has been in progress since {named(beat.claimed_at, zone, view.now)}."
        )
    cause = _short(beat.detail) or _BUSY
    latest = view.heartbeat.next_at
    bound = "" if latest is None else f", at the latest {named(latest, zone, view.now)}"
    due = named(beat.due_at, zone, view.now)
    return f"The run that was due {due} waits: {cause}. It comes when that is over{bound}."


def _next(view: HeartbeatView) -> str:
    heartbeat, policy, now = view.heartbeat, view.policy, view.now
    if heartbeat.interval is None:
        return (
            "None is due: the settings switch the heartbeat off (heartbeat.enabled and "
            "heartbeat.interval)."
        )
    if heartbeat.switched is False:
        return f"None is due: the heartbeat was switched off. {_ON}"
    due = heartbeat.next_at
    if due is None:
        return "None is planned yet; a gateway plans them when it starts: goclaw run."
    if now - due > _LATE:
        return (
            f"The next was due {named(due, policy.zone, now)}, and no process has taken it up; is "
            "a gateway running? Start one with: goclaw run."
        )
    muted = heartbeat.muted_until
    silent_until = muted if muted is not None and muted > now else now
    if silent_until <= due and (policy.hours is None or policy.hours.holds(due)):
        return f"The next is due {_when(due, view)}."
    return _after_silence(view, due, silent_until, heartbeat.interval)


def _after_silence(
    view: HeartbeatView, due: datetime, silent_until: datetime, interval: timedelta
) -> str:
    """The next beat that will not be skipped, and what skips those before it."""
    policy, causes = view.policy, []
    if silent_until > due:
        until = named(silent_until, policy.zone, view.now)
        causes.append(f"it is muted until {until}, {_UNMUTE} ends that")
    first = _from(due, max(due, silent_until), interval)
    if policy.hours is not None and not policy.hours.holds(first):
        causes.append(f"its active hours are {policy.hours}")
    spoken = first if policy.hours is None else _within(policy.hours, first, interval)
    because = " and ".join(causes)
    if spoken is None:
        return f"Every beat that lies ahead will be skipped: {because}, and none falls into them."
    return f"The next that will not be skipped is due {_when(spoken, view)}: {because}."


def _within(hours: ActiveHours, first: datetime, interval: timedelta) -> datetime | None:
    """The first point of a grid that lies in active hours; None if none does for long."""
    point = first
    for _ in range(_SEARCHED):
        if hours.holds(point):
            return point
        point = _from(point, hours.next_start(point), interval)
    return None


def _from(point: datetime, earliest: datetime, interval: timedelta) -> datetime:
    """The first point of the grid that is not before ``earliest``."""
    return point - (point - earliest) // interval * interval


def _wake(view: HeartbeatView) -> str:
    """When a beat comes that was asked for; "" if none was, or if it will be skipped."""
    earliest, kind, hours = view.wake_from, view.heartbeat.wake_kind, view.policy.hours
    if earliest is None:
        return ""
    earliest, muted = max(earliest, view.now), view.heartbeat.muted_until
    if (muted is not None and muted > earliest) or (hours and not hours.holds(earliest)):
        return ""
    asked = _ASKED[kind or BeatKind.EVENT].removeprefix(", ")
    when = "soon" if earliest <= view.now else f"{_when(earliest, view)} at the earliest"
    return f"One {asked} comes {when}."


def _budget(view: HeartbeatView) -> str:
    if not is_used_up(view.policy.day, view.today):
        return ""
    return "What its beats may use on a day is used up; they are skipped until 00:00 UTC."


def _unreachable(view: HeartbeatView) -> str:
    if view.policy.target is Nowhere.NONE:
        return ""
    route = view.route
    if route.target is None:
        return _sentence(f"an alert would go nowhere: {_short(route.problem or route.detail)}")
    if route.problem:
        return _sentence(
            f"an alert would not arrive in {_place(route.target)}: {_short(route.problem)}"
        )
    return ""


# ---------------------------------------------------------------------------- status


def status_lines(view: HeartbeatView) -> list[str]:
    """How a heartbeat stands, in a few lines; the two of ``why`` are among them."""
    lines = [f"Heartbeat of {view.heartbeat.agent}: {state_words(view)}.", *why(view)]
    lines.append(_sentence(f"alerts go {route_words(view.route, view.policy)}"))
    lines.append(spent_words(view))
    if view.events:
        noun, verb = ("event", "waits") if view.events == 1 else ("events", "wait")
        lines.append(f"{view.events} {noun} {verb} for the next beat.")
    return lines


def state_words(view: HeartbeatView) -> str:
    """Whether it beats, how often and in which hours, such as ``on, every 30 minutes``."""
    heartbeat, policy = view.heartbeat, view.policy
    if heartbeat.interval is None:
        return "off by the settings"
    words = [in_words(heartbeat.interval)]
    if policy.hours is not None:
        words.append(str(policy.hours))
    if heartbeat.switched is False:
        return f"switched off ({', '.join(words)} when it is on)"
    if heartbeat.muted_until is not None and heartbeat.muted_until > view.now:
        words.append(f"muted until {named(heartbeat.muted_until, policy.zone, view.now)}")
    return ", ".join(["on", *words])


def route_words(route: Route, policy: HeartbeatPolicy | None = None) -> str:
    """Where an alert goes now, and whether it would arrive: ``to telegram:5 (…)``."""
    if policy is not None and policy.target is Nowhere.NONE:
        return "only to the log, as the settings say"
    if route.target is None:
        return _with_detail("nowhere", route.problem or route.detail)
    found = f" ({_short(route.detail)})" if route.detail else ""
    where = f"to {_place(route.target)}{found}"
    return _with_detail(f"{where}, but would not arrive", route.problem) if route.problem else where


def spent_words(view: HeartbeatView) -> str:
    """What its beats have used today and this month, and what they may use on a day."""
    counts = priced(view.policy.day, view.today)
    limits = [f"${counts.usd:.2f}"] if counts.usd is not None else []
    if counts.tokens is not None and (not limits or _is_unpriced(view.today)):
        limits = [f"{counts.tokens:,} tokens"]
    most = f", of {limits[0]} a day" if limits else ""
    return f"Used today (UTC): {_used(view.today)}{most}; this month: {_used(view.month)}."


def _is_unpriced(used: Usage | None) -> bool:
    return used is not None and used.cost_usd is None and used.tokens > 0


def _used(used: Usage | None) -> str:
    if used is None or used == NO_USAGE:
        return "nothing"
    tokens = count(used.tokens, "token")
    return tokens if used.cost_usd is None else f"{money(used)} ({tokens})"


def money(used: Usage) -> str:
    """What it cost, "" where that is not known; an amount below a cent is shown as it is."""
    cost = used.cost_usd
    if cost is None:
        return ""
    return f"${cost:.2f}" if cost == 0 or cost >= 1 else f"${cost:.4f}"


# ---------------------------------------------------------------------------- rehearsal


def rehearsal_lines(rehearsal: Rehearsal, heartbeat: Heartbeat | None = None) -> list[str]:
    """What would happen if it were run now, and what the agent would read.

    ``heartbeat``: see ``advice``.
    """
    lines = [_verdict(rehearsal, heartbeat)]
    lines.append(_sentence(f"an alert would go {route_words(rehearsal.route)}"))
    if rehearsal.prompt:
        lines += ["The agent would read:", *rehearsal.prompt.splitlines()]
    return lines


def _verdict(rehearsal: Rehearsal, heartbeat: Heartbeat | None) -> str:
    match rehearsal.status:
        case BeatStatus.SKIPPED if rehearsal.skip is not None:
            words = f"it would be skipped: {_SKIPPED[rehearsal.skip]}"
            said = _sentence(_with_detail(words, _cause(rehearsal.skip, rehearsal.detail)))
            return " ".join(filter(None, [said, _skip_advice(rehearsal.skip, heartbeat)]))
        case BeatStatus.DEFERRED:
            cause = _short(rehearsal.detail) or _BUSY
            return _sentence(f"it would wait: {cause}")
        case _:
            return _sentence(_with_detail("its agent would be asked", rehearsal.detail))


# ---------------------------------------------------------------------------- inside


def _when(instant: datetime, view: HeartbeatView) -> str:
    ahead = instant - view.now
    away = f", in {lasting(ahead)}" if ahead >= timedelta(seconds=1) else ", now"
    return f"{named(instant, view.policy.zone, view.now)}{away}"


def _place(target: Target) -> str:
    return cut_text(target_text(target), _REASON_CHARS)


def _with_detail(words: str, detail: str) -> str:
    short = _short(detail)
    return f"{words}: {short}" if short else words


def _short(text: str) -> str:
    return cut_text(" ".join(text.split()), _REASON_CHARS).rstrip(".")


def _sentence(words: str) -> str:
    end = "" if words.endswith((".", "!", "?", "…")) else "."
    return words[:1].upper() + words[1:] + end
