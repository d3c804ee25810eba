"""Metrics for Prometheus: counters since the start, and the present state (SPEC OPS-2).

The only module that uses ``prometheus_client``. Events increase its counters. The state is read
from a ``GatewayStatus`` at a scrape. Names and units follow Prometheus' conventions; labels have
only values from the settings or an enum, so that the number of series is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from functools import cache, partial
from itertools import accumulate

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.openmetrics import exposition as openmetrics_text
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from goclaw_py.core.containers import BOUNDS_S, HistogramView
from goclaw_py.core.ids import AgentName, LaneName
from goclaw_py.core.metrics import Delivery, MetricsRecorder
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.observability.readiness import Exposition
from goclaw_py.schedule.heartbeat.models import OPEN, HeartbeatRunStatus
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus as JobStatus
from goclaw_py.scheduler.views import Backlog, ChannelState, GatewayStatus

# Otherwise each series has a second one with its age.
disable_created_metrics()  # type: ignore[no-untyped-call]

OTHER = "other"
"""Replaces a name that is not in the settings (any more)."""

_NEVER_STORED = (HeartbeatRunStatus.DELIVERY_FAILED, *OPEN)
_BACKLOG = (
    ("inbox_open", "Incoming messages that are not finished.", "inbox"),
    ("outbox_open", "Outgoing messages that are not sent yet.", "outbox"),
    ("outbox_dead", "Outgoing messages that failed.", "failed"),
    ("inbox_unanswered", "Failed incoming messages.", "unanswered"),
    ("approvals_waiting", "Tool calls that wait for an approval.", "approvals"),
)
"""Name, description and field of ``Backlog``."""


class Metrics(MetricsRecorder):
    """Counts for Prometheus.

    Args:
        channels: The names of the channels.
        agents: The names of the agents.
    """

    def __init__(self, channels: Collection[str], agents: Collection[str]) -> None:
        self._channels, self._agents = frozenset(channels), frozenset(agents)
        self.registry = registry = CollectorRegistry()
        self._gathering = _Gathering()
        registry.register(self._gathering)

        # The series of some labels: the library would check and compare the labels at each use,
        # which happens several times for a message.
        def counter(name: str, text: str, labels: tuple[str, ...]) -> Callable[..., Counter]:
            return cache(Counter(name, text, labels, namespace="goclaw", registry=registry).labels)

        histogram = partial(Histogram, namespace="goclaw", registry=registry, buckets=BOUNDS_S)
        self._runs = counter(
            "runs",
            "Requests for runs by outcome; dropped and rejected ones never started.",
            ("lane", "trigger", "outcome"),
        )
        self._tokens = counter(
            "tokens",
            "Tokens of finished runs; cached tokens are also counted as input.",
            ("agent", "kind"),
        )
        self._cost_usd = counter(
            "cost_usd",
            "Cost of finished runs in US dollars, as far as prices are known.",
            ("agent",),
        )
        self._received = counter(
            "messages_received", "Stored messages from people, each counted once.", ("channel",)
        )
        self._deliveries = counter(
            "deliveries",
            "Outgoing messages by result; each attempt is counted.",
            ("channel", "result"),
        )
        delays = histogram(
            "delivery_delay_seconds",
            "Time from the creation of a message to the channel's confirmation.",
            ("channel",),
        )
        self._delays: Callable[[str], Histogram] = cache(delays.labels)
        self._occurrences = counter("occurrences", "Due times of jobs by status.", ("status",))
        self._lag = histogram(
            "occurrence_lag_seconds",
            "Time from the due time of a job to its start; without manual runs.",
        )
        self._heartbeat_runs = counter(
            "heartbeat_runs", "Heartbeat runs by status.", ("agent", "status")
        )
        self._outcomes = cache(self._all_outcomes)
        self._begin_at_nothing()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)

    def _begin_at_nothing(self) -> None:
        """Create all counters at 0: Prometheus does not see a rise from no series to 1."""
        for agent in self._agents:
            self._cost_usd(agent)
            for kind in ("input", "output", "cached"):
                self._tokens(agent, kind)
        for channel in self._channels:
            self._received(channel)
            self._delays(channel)
            for result in Delivery:
                self._deliveries(channel, result)
        for status in JobStatus:
            if status not in (JobStatus.RUNNING, JobStatus.WAITING, JobStatus.INTERRUPTED):
                self._occurrences(status)

    def _all_outcomes(self, lane: LaneName, trigger: Trigger) -> dict[Outcome, Counter]:
        """Create the counters of all outcomes, at 0, with the first run of a kind."""
        return {outcome: self._runs(lane, trigger, outcome) for outcome in Outcome}

    # ------------------------------------------------------------------ what happens

    def run_ended(self, lane: LaneName, trigger: Trigger, outcome: Outcome) -> None:
        self._outcomes(lane, trigger)[outcome].inc()

    def used(self, agent: AgentName, usage: Usage) -> None:
        name = _one_of(self._agents, agent)
        self._tokens(name, "input").inc(usage.input_tokens)
        self._tokens(name, "output").inc(usage.output_tokens)
        self._tokens(name, "cached").inc(usage.cached_tokens)
        if usage.cost_usd is not None:
            self._cost_usd(name).inc(float(usage.cost_usd))

    def received(self, channel: str) -> None:
        self._received(_one_of(self._channels, channel)).inc()

    def delivered(self, channel: str, result: Delivery, delay_s: float | None = None) -> None:
        name = _one_of(self._channels, channel)
        self._deliveries(name, result).inc()
        if delay_s is not None:
            # A clock that was set back makes no time negative.
            self._delays(name).observe(max(delay_s, 0.0))

    def occurrence_ended(self, status: StrEnum, lag_s: float | None = None) -> None:
        self._occurrences(status).inc()
        if lag_s is not None:
            self._lag.observe(max(lag_s, 0.0))

    def heartbeat_ended(self, agent: AgentName, status: StrEnum) -> None:
        name = _one_of(self._agents, agent)
        for one in HeartbeatRunStatus:
            if one not in _NEVER_STORED:
                self._heartbeat_runs(name, one)
        self._heartbeat_runs(name, status).inc()

    def exposition(self, status: GatewayStatus, *, openmetrics: bool) -> Exposition:
        """Return all metrics as text, with the state from ``status``."""
        self._gathering.status = status
        if openmetrics:
            # The library gives this one no types.
            text: bytes = openmetrics_text.generate_latest(self.registry)  # type: ignore[no-untyped-call]
            return Exposition(text, openmetrics_text.CONTENT_TYPE_LATEST)
        return Exposition(generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4)


class _Gathering(Collector):
    """Creates the series of the present state."""

    def __init__(self) -> None:
        self.status: GatewayStatus | None = None

    def collect(self) -> Iterator[Metric]:
        status = self.status
        if status is None:
            return  # the registry asks once, for names, before there is anything to tell
        yield _gauge(
            "build_info", "Always 1; the label is the release.", {(status.release,): 1}, "release"
        )
        yield _plain(
            "start_time_seconds",
            "When this node joined the others, in seconds since 1970.",
            status.started_at.timestamp(),
        )
        yield from _lanes(status)
        waiting = {run.session for run in status.runs if run.waits_for is not None}
        yield _plain("sessions_waiting", "Sessions with a waiting run.", len(waiting))
        yield _gauge(
            "channel_up",
            "1 if this process receives for the account without problems.",
            {
                (one.name, one.account): one.state is ChannelState.CONNECTED
                for one in status.channels
            },
            "channel",
            "account",
        )
        yield from _database(status.backlog)
        yield _plain("warnings", "Warnings in goclaw status.", len(status.warnings))


def _lanes(status: GatewayStatus) -> Iterator[Metric]:
    lanes = {lane.name: lane for lane in status.lanes}
    for name, text, figures in (
        ("slots", "Size of a lane in runs.", {n: one.concurrency for n, one in lanes.items()}),
        ("running", "Runs in progress in a lane.", {n: one.active for n, one in lanes.items()}),
        (
            "waiting",
            "Runs that wait for a slot of a lane.",
            {n: one.waiting for n, one in lanes.items()},
        ),
    ):
        yield _gauge(
            f"lane_{name}", text, {(lane,): value for lane, value in figures.items()}, "lane"
        )
    yield _histogram(
        "run_wait_seconds",
        "Time from joining the queue of a lane to the start of the run.",
        "lane",
        {name: lane.wait_times for name, lane in lanes.items()},
    )
    yield _histogram(
        "run_duration_seconds",
        "Time from the start of a run to its end.",
        "lane",
        {name: lane.run_times for name, lane in lanes.items()},
    )


def _database(backlog: Backlog | None) -> Iterator[Metric]:
    up = backlog is not None
    yield _plain("database_up", "1 if the database answered in time.", up)
    if backlog is not None:
        for name, text, field in _BACKLOG:
            yield _plain(name, text, getattr(backlog, field))


def _plain(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"goclaw_{name}", text, float(value))


def _gauge(name: str, text: str, values: dict[tuple[str, ...], float], *labels: str) -> Metric:
    family = GaugeMetricFamily(f"goclaw_{name}", text, labels=labels)
    for label, value in values.items():
        family.add_metric(label, float(value))
    return family


def _histogram(name: str, text: str, label: str, views: dict[str, HistogramView]) -> Metric:
    family = HistogramMetricFamily(f"goclaw_{name}", text, labels=(label,))
    for value, view in sorted(views.items()):
        # Prometheus wants each bucket to hold the smaller ones too.
        bounds = (*(str(float(bound)) for bound in view.bounds_s), "+Inf")
        sums = map(float, accumulate(view.counts))
        family.add_metric((value,), list(zip(bounds, sums, strict=True)), view.total_s)
    return family


def _one_of(names: Collection[str], name: str) -> str:
    return name if name in names else OTHER
