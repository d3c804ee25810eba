"""Texts about a heartbeat: its status and its last result (SPEC HB-9, OPS-4)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.run_events import NO_USAGE, Usage
from goclaw_py.core.targets import Route
from goclaw_py.core.text import clause, count, sentence, usd
from goclaw_py.core.time.durations import in_words
from goclaw_py.core.time.texts import age
from goclaw_py.core.time.zones import utc_day
from goclaw_py.schedule.heartbeat.active_hours import ActiveHours
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy, NoTarget, is_used_up, priced
from goclaw_py.schedule.heartbeat.models import Heartbeat, HeartbeatRun, HeartbeatRunStatus, Skip
from goclaw_py.schedule.heartbeat.views import OPERATOR, DryRunReport, HeartbeatView, Reader

_REASON_CHARS: Final = 300
_LATE: Final = timedelta(seconds=60)
"""A run that is overdue for longer than this will not start by itself."""

_SEARCHED: Final = 400
"""The number of openings of active hours to try: enough for all clock changes of a year."""

# ---------------------------------------------------------------------------- one heartbeat run

_WORDS: Final = {
    HeartbeatRunStatus.RUNNING: "it is running",
    HeartbeatRunStatus.DEFERRED: "it is waiting, because its agent is busy",
    HeartbeatRunStatus.ALERTED: "it had an alert",
    HeartbeatRunStatus.LOGGED: "it had an alert, which was only written to the log",
    HeartbeatRunStatus.OK: "nothing needed attention, so no message was sent",
    HeartbeatRunStatus.DUPLICATE: (
        "it repeated an alert of the last 24 hours, which was not sent again"
    ),
    HeartbeatRunStatus.NO_ROUTE: "it had an alert, but there was no chat to send it to",
    HeartbeatRunStatus.CANCELLED: "it was cancelled while it was running",
    HeartbeatRunStatus.FAILED: "it failed",
    HeartbeatRunStatus.LOST: "its gateway process ended during the run",
}

_SKIPPED: Final = {
    Skip.DISABLED: ("the heartbeat is off", "the heartbeat was off"),
    Skip.MUTED: ("the heartbeat is muted", "the heartbeat was muted"),
    Skip.QUIET_HOURS: (
        "the time is outside the active hours",
        "the time was outside the active hours",
    ),
    Skip.NO_FILE: ("there is no HEARTBEAT.md", "there was no HEARTBEAT.md"),
    Skip.UNREADABLE: ("HEARTBEAT.md cannot be read", "HEARTBEAT.md could not be read"),
    Skip.EMPTY: ("HEARTBEAT.md has nothing to check", "HEARTBEAT.md had nothing to check"),
    Skip.NOTHING_DUE: ("no item of HEARTBEAT.md is due", "no item of HEARTBEAT.md was due"),
    Skip.BUDGET: (
        "the daily budget of the heartbeat is used up",
        "the daily budget of the heartbeat was used up",
    ),
}
"""Why a run would be skipped now, and why one was: since then it may have changed."""

_BUSY: Final = "someone is talking to the agent"

SAME_WAITS: Final = "it repeated an alert that still waits to be sent, so nothing was sent"
"""The detail of a run whose alert is already in the outbox."""

_ADVICE: Final = {
    HeartbeatRunStatus.FAILED: "The next run tries again.",
    HeartbeatRunStatus.LOST: "What it had done by then is unknown; the next run comes as usual.",
}


def outcome_words(heartbeat_run: HeartbeatRun, reader: Reader = OPERATOR) -> str:
    """Return the result of a heartbeat run and its reason, as a clause without a full stop."""
    if heartbeat_run.status is HeartbeatRunStatus.DUPLICATE:
        return SAME_WAITS if heartbeat_run.detail == SAME_WAITS else _WORDS[heartbeat_run.status]
    if heartbeat_run.status is HeartbeatRunStatus.OK and heartbeat_run.detail:
        return f"{_WORDS[heartbeat_run.status]}; {_short(heartbeat_run.detail)}"
    return _delivery_state(heartbeat_run, reader) or _with_detail(
        _clause(heartbeat_run), _cause(heartbeat_run.skip, heartbeat_run.detail)
    )


def _cause(skip: Skip | None, detail: str) -> str:
    """Return the detail of a run without what the other words already say."""
    return "" if skip is Skip.NO_FILE else detail.removeprefix("HEARTBEAT.md: ")


def _clause(heartbeat_run: HeartbeatRun) -> str:
    if heartbeat_run.status is not HeartbeatRunStatus.SKIPPED:
        return _WORDS[heartbeat_run.status]
    return (
        "it was skipped"
        if heartbeat_run.skip is None
        else f"it was skipped: {_skipped(heartbeat_run.skip)}"
    )


def _skipped(skip: Skip) -> str:
    """Return why a run was skipped; a later release may have stored another word."""
    return _SKIPPED[skip][1] if skip in _SKIPPED else skip.value


def _delivery_state(heartbeat_run: HeartbeatRun, reader: Reader) -> str:
    """Return the delivery state of an alert, "" if the run has sent none."""
    if is_undelivered(heartbeat_run):
        where = f" to {reader.place(heartbeat_run.target)}" if heartbeat_run.target else ""
        said = f"it had an alert, but the message could not be delivered{where}"
        return _with_detail(said, heartbeat_run.undelivered or heartbeat_run.detail)
    if heartbeat_run.status is not HeartbeatRunStatus.ALERTED or heartbeat_run.target is None:
        return ""
    where = reader.place(heartbeat_run.target)
    if heartbeat_run.delivery == "waiting":
        return f"it had an alert, which waits to be sent to {where}"
    found = _in_brackets(heartbeat_run.detail, reader)
    return f"it sent an alert to {where}{found}"


def is_undelivered(heartbeat_run: HeartbeatRun) -> bool:
    """Return whether the run had an alert that could not be delivered."""
    died = heartbeat_run.status is HeartbeatRunStatus.ALERTED and heartbeat_run.delivery == "failed"
    return died or heartbeat_run.status is HeartbeatRunStatus.DELIVERY_FAILED


def advice(
    heartbeat_run: HeartbeatRun, heartbeat: Heartbeat | None = None, reader: Reader = OPERATOR
) -> str:
    """Return what to do about a result, as a sentence; "" if there is nothing to do.

    ``heartbeat``: its current state, if known; one that is off in the settings needs other advice.
    """
    if is_undelivered(heartbeat_run) or heartbeat_run.status is HeartbeatRunStatus.NO_ROUTE:
        return reader.redirect
    if heartbeat_run.skip in (Skip.NO_FILE, Skip.EMPTY):
        return f"If it is still so, {reader.add_item[:1].lower()}{reader.add_item[1:]}"
    if heartbeat_run.skip is not None:
        return _skip_advice(heartbeat_run.skip, heartbeat, reader)
    return _ADVICE.get(heartbeat_run.status, "")


def _skip_advice(skip: Skip, heartbeat: Heartbeat | None, reader: Reader) -> str:
    match skip:
        case Skip.DISABLED if heartbeat is not None and heartbeat.interval is None:
            return reader.off_by_settings
        case Skip.DISABLED:
            return reader.turn_on
        case Skip.MUTED:
            return reader.unmute
        case Skip.NO_FILE | Skip.EMPTY:
            return reader.add_item
        case Skip.UNREADABLE:
            return reader.unreadable
        case Skip.NOTHING_DUE:
            return "Items with their own interval wait until it has passed."
        case Skip.BUDGET:
            return reader.over_budget
        case Skip.QUIET_HOURS:
            return ""


# ---------------------------------------------------------------------------- why

_ASKED: Final = {
    HeartbeatRunKind.INTERVAL: "",
    HeartbeatRunKind.MANUAL: ", by hand",
    HeartbeatRunKind.EVENT: ", for an event",
    HeartbeatRunKind.JOB: ", after a job",
}


def _question(kind: HeartbeatRunKind) -> str:
    return _ASKED.get(kind, f", {kind.value}")


def why(view: HeartbeatView, reader: Reader = OPERATOR) -> tuple[str, str]:
    """Return a line about the last run and one about the next, in the zone of the heartbeat."""
    return _last(view, reader), " ".join(_coming(view, reader))


def _last(view: HeartbeatView, reader: Reader) -> str:
    heartbeat_run = view.last
    if heartbeat_run is None:
        return "There has been no heartbeat run yet."
    # The line about the next run says whether the heartbeat is off or muted now.
    advised = (
        ""
        if heartbeat_run.skip in (Skip.DISABLED, Skip.MUTED)
        else advice(heartbeat_run, None, reader)
    )
    when = reader.time(heartbeat_run.claimed_at, view.policy.zone, view.now)
    row = view.heartbeat.failures if heartbeat_run.status is HeartbeatRunStatus.FAILED else 0
    again = f"It has failed {row} times in a row." if row > 1 else ""
    outcome = sentence(outcome_words(heartbeat_run, reader))
    parts = [
        f"Last heartbeat run, {when}{_question(heartbeat_run.kind)}: {outcome}",
        advised,
    ]
    return " ".join(filter(None, [*parts, again]))


def silence(view: HeartbeatView, reader: Reader = OPERATOR) -> str:
    """Return why a run that is requested now will be skipped, "" if it will not; events wait."""
    heartbeat, policy = view.heartbeat, view.policy
    start = max(view.now, view.wake_from or view.now)
    if heartbeat.interval is None:
        return "the heartbeat is off in the settings"
    if heartbeat.switched is False:
        return "the heartbeat was turned off"
    if heartbeat.muted_until is not None and heartbeat.muted_until > start:
        until = reader.time(heartbeat.muted_until, policy.zone, view.now)
        return f"the heartbeat is muted until {until}"
    if policy.hours is not None and not policy.hours.holds(start):
        return f"its active hours are {policy.hours}"
    return "the daily budget is used up" if is_used_up(policy.day, view.today) else ""


def _coming(view: HeartbeatView, reader: Reader) -> list[str]:
    """Return when the next run comes, or why none does, and what will keep it silent."""
    parts = [current_run(view, reader), _next(view, reader)]
    if view.heartbeat.is_on:
        parts += [_wake(view, reader), _budget(view, reader), _unreachable(view, reader)]
    return [part for part in parts if part]


def current_run(view: HeartbeatView, reader: Reader = OPERATOR) -> str:
    """Return that a run is in progress, or waits and for what; "" if there is none."""
    heartbeat_run, zone = view.current, view.policy.zone
    if heartbeat_run is None:
        return ""
    if heartbeat_run.status is not HeartbeatRunStatus.DEFERRED:
        since = reader.time(heartbeat_run.claimed_at, zone, view.now)
        return f"A heartbeat run has been in progress since {since}."
    cause = _short(heartbeat_run.detail) or _BUSY
    latest = view.heartbeat.next_at
    bound = "" if latest is None else f", at the latest {reader.time(latest, zone, view.now)}"
    due = reader.time(heartbeat_run.due_at, zone, view.now)
    if latest is not None and latest <= view.now:
        return f"The run that was due {due} has waited: {cause}. It starts now."
    return f"The run that was due {due} is waiting: {cause}. It starts when that is over{bound}."


def _next(view: HeartbeatView, reader: Reader) -> str:
    heartbeat, policy, now = view.heartbeat, view.policy, view.now
    if heartbeat.interval is None:
        return f"No run is planned. {reader.off_by_settings}"
    if heartbeat.switched is False:
        return f"No run is planned: the heartbeat was turned off. {reader.turn_on}"
    due = heartbeat.next_at
    if due is None:
        return f"No run is planned yet. {reader.unplanned}"
    was_due = reader.time(due, policy.zone, now)
    if due <= now and view.current is not None:
        if view.current.status is HeartbeatRunStatus.DEFERRED:
            return ""  # The one that waits is this one too.
        return f"The next run was due {was_due}; it starts after this one."
    if now - due > _LATE:
        return f"The next run was due {was_due}, {reader.overdue}"
    if next_run(view) == due:
        return f"The next run is due {_when(due, view, reader)}."
    return _after_silence(view, due, heartbeat.interval, reader)


def _after_silence(view: HeartbeatView, due: datetime, interval: timedelta, reader: Reader) -> str:
    """Return the next run that will not be skipped, and why the runs before it will be."""
    hours, muted, causes = view.policy.hours, view.heartbeat.muted_until, []
    is_muted = muted is not None and muted > max(due, view.now)
    if muted is not None and is_muted:
        causes.append(f"it is muted until {reader.time(muted, view.policy.zone, view.now)}")
    if hours is not None and not hours.holds(_unmuted(view, due, interval)):
        causes.append(f"its active hours are {hours}")
    because, spoken = " and ".join(causes), next_run(view)
    if spoken is None:
        return f"All coming runs will be skipped: {because}, and no run falls within those hours."
    then = f"The next run that will not be skipped is due {_when(spoken, view, reader)}: {because}."
    return f"{then} {reader.unmute}" if is_muted else then


def next_run(view: HeartbeatView) -> datetime | None:
    """Return when the next scheduled run is due that mute and active hours let through.

    None if no run is planned, or none falls within the active hours. One that is due now may be
    past.
    """
    heartbeat, hours = view.heartbeat, view.policy.hours
    due, interval = heartbeat.next_at, heartbeat.interval
    if due is None or interval is None or not heartbeat.is_on:
        return None
    start, muted = max(due, view.now), heartbeat.muted_until
    if (muted is None or muted <= start) and (hours is None or hours.holds(start)):
        return due
    first = _unmuted(view, due, interval)
    return first if hours is None else _within(hours, first, interval)


def _unmuted(view: HeartbeatView, due: datetime, interval: timedelta) -> datetime:
    """Return the first point of the grid that is neither past nor muted."""
    return _from(due, max(due, view.now, view.heartbeat.muted_until or due), interval)


def _within(hours: ActiveHours, first: datetime, interval: timedelta) -> datetime | None:
    """Return the first grid point within active hours; None if none is found."""
    point = first
    for _ in range(_SEARCHED):
        if hours.holds(point):
            return point
        point = _from(point, hours.next_start(point), interval)
    return None


def _from(point: datetime, earliest: datetime, interval: timedelta) -> datetime:
    """Return the first point of the grid that is not before ``earliest``."""
    return point - (point - earliest) // interval * interval


def _wake(view: HeartbeatView, reader: Reader) -> str:
    """Return when a requested run comes; "" if none was requested, or it will be skipped."""
    if view.wake_from is None or silence(view, reader):
        return ""
    earliest = max(view.wake_from, view.now)
    asked = _question(view.heartbeat.wake_kind or HeartbeatRunKind.EVENT).removeprefix(", ")
    when = "soon" if earliest <= view.now else f"{_when(earliest, view, reader)} at the earliest"
    return f"A run {asked} starts {when}."


def _budget(view: HeartbeatView, reader: Reader) -> str:
    if not is_used_up(view.policy.day, view.today):
        return ""
    tomorrow = utc_day(view.now) + timedelta(days=1)
    until = reader.time(tomorrow, view.policy.zone, view.now)
    return f"The daily budget of the heartbeat is used up; runs are skipped until {until}."


def _unreachable(view: HeartbeatView, reader: Reader) -> str:
    if view.policy.target is NoTarget.NONE:
        return ""
    route = view.route
    if route.target is None:
        return sentence(f"alerts cannot be sent: {_short(route.problem or route.detail)}")
    if route.problem:
        return sentence(
            f"alerts to {reader.place(route.target)} cannot be delivered: {_short(route.problem)}"
        )
    return ""


# ---------------------------------------------------------------------------- status


def status_lines(view: HeartbeatView, reader: Reader = OPERATOR) -> list[str]:
    """Return the status of a heartbeat in a few lines, which include those of ``why``."""
    last, coming = why(view, reader)
    state = state_words(view, reader, beside=coming)
    lines = [f"Heartbeat of {view.heartbeat.agent}: {state}.", last, coming]
    if not _unreachable(view, reader):
        lines.append(sentence(f"alerts go {route_words(view.route, view.policy, reader)}"))
    lines.append(spent_words(view, reader))
    if view.events:
        noun, verb = ("event", "waits") if view.events == 1 else ("events", "wait")
        lines.append(f"{view.events} {noun} {verb} for the next heartbeat run.")
    return lines


def state_words(view: HeartbeatView, reader: Reader = OPERATOR, *, beside: str = "") -> str:
    """Return whether it is on, how often and in which hours, such as ``on, every 30 minutes``.

    ``beside``: what stands there, and need not be repeated.
    """
    heartbeat, policy = view.heartbeat, view.policy
    if heartbeat.interval is None:
        return "off in the settings"
    words = [in_words(heartbeat.interval)]
    if policy.hours is not None:
        words.append(str(policy.hours))
    if heartbeat.switched is False:
        return f"off ({', '.join(words)} when it is on)"
    if heartbeat.muted_until is not None and heartbeat.muted_until > view.now:
        muted = f"muted until {reader.time(heartbeat.muted_until, policy.zone, view.now)}"
        words.append("muted" if muted in beside else muted)
    return ", ".join(["on", *words])


def route_words(
    route: Route, policy: HeartbeatPolicy | None = None, reader: Reader = OPERATOR
) -> str:
    """Return where alerts go now, and any delivery problem: ``to telegram:5 (…)``."""
    if policy is not None and policy.target is NoTarget.NONE:
        return reader.only_logged
    if route.target is None:
        return _with_detail("nowhere", route.problem or route.detail)
    where = f"to {reader.place(route.target)}{_in_brackets(route.detail, reader)}"
    return (
        _with_detail(f"{where}, but cannot be delivered", route.problem) if route.problem else where
    )


def spent_words(view: HeartbeatView, reader: Reader = OPERATOR) -> str:
    """Return the usage of its runs today and this month, and the daily limit."""
    counts = priced(view.policy.day, view.today)
    limits = [f"${counts.usd:.2f}"] if counts.usd is not None else []
    if counts.tokens is not None and (not limits or _is_unpriced(view.today)):
        limits = [f"{counts.tokens:,} tokens"]
    most = f", of at most {limits[0]} a day" if limits else ""
    since = "today (UTC)"
    if reader.in_chat:
        since = f"since {reader.time(utc_day(view.now), view.policy.zone, view.now)}"
    return f"Used {since}: {_used(view.today)}{most}; this month: {_used(view.month)}."


def _is_unpriced(used: Usage | None) -> bool:
    return used is not None and used.cost_usd is None and used.tokens > 0


def _used(used: Usage | None) -> str:
    if used is None or used == NO_USAGE:
        return "nothing"
    tokens = count(used.tokens, "token")
    return tokens if used.cost_usd is None else f"{usd(used.cost_usd)} ({tokens})"


# ---------------------------------------------------------------------------- dry run


def dry_run_lines(
    report: DryRunReport, heartbeat: Heartbeat | None = None, reader: Reader = OPERATOR
) -> list[str]:
    """Return what a heartbeat run would do now, and the prompt that the agent would read.

    ``heartbeat``: see ``advice``.
    """
    lines = [_verdict(report, heartbeat)]
    lines.append(sentence(f"an alert would go {route_words(report.route, reader=reader)}"))
    if report.prompt:
        lines += ["The agent would read:", *report.prompt.splitlines()]
    return lines


def _verdict(report: DryRunReport, heartbeat: Heartbeat | None) -> str:
    match report.status:
        case HeartbeatRunStatus.SKIPPED if report.skip is not None:
            words = f"it would be skipped: {_SKIPPED[report.skip][0]}"
            said = sentence(_with_detail(words, _cause(report.skip, report.detail)))
            return " ".join(filter(None, [said, _skip_advice(report.skip, heartbeat, OPERATOR)]))
        case HeartbeatRunStatus.DEFERRED:
            cause = _short(report.detail) or _BUSY
            return sentence(f"it would wait: {cause}")
        case _:
            return sentence(_with_detail("it would ask its agent", report.detail))


# ---------------------------------------------------------------------------- inside


def _when(instant: datetime, view: HeartbeatView, reader: Reader) -> str:
    away = age(max(instant, view.now), view.now)
    return f"{reader.time(instant, view.policy.zone, view.now)}, {away}"


def _in_brackets(how: str, reader: Reader) -> str:
    """Return how a target was found; people in a chat need only its name."""
    return f" ({_short(how)})" if how and not reader.in_chat else ""


def _with_detail(words: str, detail: str) -> str:
    short = _short(detail)
    return f"{words}: {short}" if short else words


def _short(text: str) -> str:
    return clause(text, _REASON_CHARS)
