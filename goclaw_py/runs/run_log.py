"""The log line about each run (SPEC OPS-5)."""

from __future__ import annotations

import asyncio
import logging

from goclaw_py.core.ids import MAIN_LANE, RunId
from goclaw_py.core.messages import person_at
from goclaw_py.core.outcomes import Ending, Trigger
from goclaw_py.core.time.clock import Clock
from goclaw_py.records import NewRun
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.runs.turn import Turn

log = logging.getLogger(__name__)


class RunLog:
    """Writes a line when the end of a run is stored, and at level debug one when it starts.

    A request that ends without a start, for example a message dropped from a full queue, gets a
    line too.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started: dict[RunId, tuple[float, float]] = {}
        """The start of each run by the clock of the loop, and how long it had waited for it."""

    def started(self, run: Turn | NewRun) -> None:
        """A run has started."""
        if not log.isEnabledFor(logging.INFO):
            return
        now = self._clock.now()
        asked_at = (run.queued_at if isinstance(run, Turn) else run.submitted_at) or now
        # A job's run may be submitted a moment before it is due.
        waited_s = max(0.0, round((now - asked_at).total_seconds(), 3))
        self._started[run.id] = asyncio.get_running_loop().time(), waited_s
        if log.isEnabledFor(logging.DEBUG):
            log.debug("run_started", extra={**_facts(run), "waited_s": waited_s})

    def ended(self, run: Turn | NewRun, ended: Ending, progress: RunRecorder) -> None:
        """The end of a run is stored, or never will be."""
        started = self._started.pop(run.id, None)
        if not log.isEnabledFor(logging.INFO):
            return
        facts = _facts(run) | {"outcome": ended.outcome.value}
        if ended.reason is not None:
            facts["reason"] = ended.reason
        if started is None:
            log.info("run_not_started", extra=facts)
            return
        began, facts["waited_s"] = started
        facts["duration_s"] = round(asyncio.get_running_loop().time() - began, 3)
        facts["tool_calls"] = len(progress.calls)
        if progress.model:
            facts["model"] = progress.model
        if (usage := progress.usage) is not None:
            facts["input_tokens"] = usage.input_tokens
            facts["output_tokens"] = usage.output_tokens
            if usage.cost_usd is not None:
                facts["cost_usd"] = float(usage.cost_usd)
        log.info("run_ended", extra=facts)


def _facts(run: Turn | NewRun) -> dict[str, object]:
    facts: dict[str, object] = {"run_id": run.id, "session": run.session, "agent": run.agent}
    if isinstance(run, Turn):
        message = run.rows[0].message
        facts |= {
            "trigger": Trigger.CHAT.value,
            "lane": MAIN_LANE,
            "sender": person_at(message.target, message.of_whom),
            "channel": message.target.channel,
            "source": message.source,
        }
    else:
        facts |= {
            "trigger": run.trigger.value,
            "lane": run.lane,
            "parent": run.parent,
            "occurrence": run.occurrence,
            "heartbeat_run": run.heartbeat_run,
        }
    return {name: fact for name, fact in facts.items() if fact}
