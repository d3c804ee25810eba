"""Shows the events of runs live, one line per event."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, assert_never

from goclaw_py.cli.context import connected
from goclaw_py.cli.output import clock, one_line
from goclaw_py.cli.terminal import fail_without_reader, until_interrupted
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.outcomes import outcome_text
from goclaw_py.core.run_events import Usage
from goclaw_py.core.text import count, usd
from goclaw_py.core.time.texts import duration
from goclaw_py.runs.events.live import (
    LiveEnded,
    LiveEvent,
    LiveJoined,
    LiveMissed,
    LiveNow,
    LiveRequested,
    LiveStarted,
    LiveText,
    LiveTool,
    LiveUsage,
    RunEvent,
)
from goclaw_py.scheduler.texts import waits_for
from goclaw_py.scheduler.views import RunView

if TYPE_CHECKING:
    from goclaw_py.config import Settings

_ALL: Final = sys.maxsize
"""No limit: lines are not truncated."""


def follow_runs(settings: Settings, session: str | None, *, as_json: bool) -> None:
    """Show events until Ctrl-C. Raises ``NoGateway``, also when the gateway shuts down."""
    with until_interrupted():
        asyncio.run(_follow(settings, session, as_json=as_json))


async def _follow(settings: Settings, session: str | None, *, as_json: bool) -> None:
    async with connected(settings) as control, aclosing(control.follow(session)) as events:
        with fail_without_reader():
            async for event in events:
                for line in [_json(event)] if as_json else lines(event):
                    sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


def _json(event: LiveEvent) -> str:
    from goclaw_py.web.api.wire import dump  # noqa: PLC0415

    return dump(type(event), event).decode()


def lines(event: LiveEvent) -> Iterator[str]:
    """Yield the lines that show an event."""
    match event:
        case LiveNow():
            yield from _now(event)
        case LiveMissed(at, number):
            lost = "1 event was" if number == 1 else f"{number} events were"
            yield f"{clock(at)}  {lost} lost, because output is read too slowly"
        case LiveText(text=text) if not text.strip():
            return
        case _:
            yield _line(event.at, event.run.agent, event.run.session, _what(event))


def _now(event: LiveNow) -> Iterator[str]:
    whom = "all sessions" if event.session is None else one_line(event.session, _ALL)
    yield f"{clock(event.at)}  following {whom}; press Ctrl-C to quit"
    for run in event.runs:
        since = event.at - timedelta(seconds=run.for_s)
        yield _line(since, run.agent, run.session, _state(run))


def _state(run: RunView) -> str:
    waits = waits_for(run)
    what = f"waiting for {waits}" if waits else run.state.value
    return f"{what}, for {duration(run.for_s)} (run {run.id})"


def _what(event: RunEvent) -> str:
    match event:
        case LiveRequested(run=run):
            below = f" by run {run.parent}" if run.parent else ""
            return f"submitted{below} (run {run.id})"
        case LiveJoined(run=run, into=into):
            return f"run {run.id} was merged into run {into}"
        case LiveStarted(run=run):
            return f"started (run {run.id})"
        case LiveText(text=text):
            return f"says: {text}"
        case LiveTool(name=name, ok=ok):
            return {None: f"calls {name}", True: f"{name} returned", False: f"{name} failed"}[ok]
        case LiveUsage(usage=usage, model=model):
            by = f" by {model}" if model else ""
            return f"used {_used(usage)} so far{by}"
        case LiveEnded(run=run, outcome=outcome, reason=reason, usage=usage):
            why = f" ({outcome_text(reason)})" if reason else ""
            used = f", used {_used(usage)}" if usage and usage.requests else ""
            return f"{outcome_text(outcome)}{why}{used} (run {run.id})"
        case _:
            assert_never(event)


def _used(usage: Usage) -> str:
    requests = count(usage.requests, "model request")
    cost = "" if usage.cost_usd is None else f", {usd(usage.cost_usd)}"
    return f"{requests}, {usage.input_tokens} tokens in, {usage.output_tokens} out{cost}"


def _line(at: datetime, agent: AgentName, session: SessionKey, what: str) -> str:
    # The agent is already in its own column.
    short = session.removeprefix(f"agent:{agent}:")
    return f"{clock(at)}  {'  '.join(one_line(word, _ALL) for word in (agent, short, what))}"
