"""Figures for Prometheus: what a gateway has done since its start, and how it stands (SPEC OPS-2).

The only door for ``prometheus_client``. What happened is kept as plain numbers and becomes series
at a scrape, as does what is read from a ``GatewayStatus`` then; nothing is kept of how things
stand. Names and units are those of Prometheus' conventions, and a label has only values that the
settings or an enum name, so that the number of series does not grow with what people do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from decimal import Decimal
from enum import StrEnum

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.openmetrics import exposition as openmetrics_text
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from goclaw_py.common.histogram import Histogram, HistogramView
from goclaw_py.heartbeat.models import OPEN, HeartbeatRunStatus
from goclaw_py.jobs.execution_models import OccurrenceStatus as JobStatus
from goclaw_py.model.ids import AgentName, LaneName
from goclaw_py.model.metrics_port import Delivery
from goclaw_py.model.outcomes import Outcome, Trigger
from goclaw_py.model.run_events import Usage
from goclaw_py.ports.health import Exposition
from goclaw_py.scheduler.views import Backlog, ChannelState, GatewayStatus

OTHER = "other"
"""Stands for a name that is not in the settings any more, or never was."""

_UNBOUNDED = "+Inf"
_NEVER_STORED = (HeartbeatRunStatus.DELIVERY_FAILED, *OPEN)
_BACKLOG = (
    ("inbox_open", "Messages that came in and are not done.", "inbox"),
    ("outbox_open", "Messages that are not sent yet.", "outbox"),
    ("outbox_dead", "Messages that could not be delivered.", "dead"),
    ("inbox_unanswered", "Messages that got no answer.", "unanswered"),
)
"""Name, meaning and field of ``Backlog``."""


class Metrics:
    """Implements ``MetricsRecorder`` for Prometheus.

    Args:
        channels: The names of the channels there are.
        agents: The names of the agents there are.
    """

    def __init__(self, channels: Collection[str], agents: Collection[str]) -> None:
        self._channels, self._agents = frozenset(channels), frozenset(agents)
        self._runs: Counter[tuple[str, ...]] = Counter()
        self._tokens: Counter[tuple[str, ...]] = Counter()
        self._received: Counter[tuple[str, ...]] = Counter()
        self._deliveries: Counter[tuple[str, ...]] = Counter()
        self._beats: Counter[tuple[str, ...]] = Counter()
        self._occurrences: Counter[tuple[str, ...]] = Counter()
        self._cost_usd = dict.fromkeys(self._agents, Decimal())
        self._delays = {channel: Histogram() for channel in self._channels}
        self._lag = Histogram()
        self._begin_at_nothing()
        self._registry = CollectorRegistry()
        self._gathering = _Gathering(self)
        self._registry.register(self._gathering)
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def _begin_at_nothing(self) -> None:
        """Show what has not happened yet: a rise from nothing to 1 is no rise for Prometheus."""
        for agent in self._agents:
            self._tokens.update({(agent, kind): 0 for kind in ("input", "output", "cached")})
        for channel in self._channels:
            self._received[channel,] = 0
            self._deliveries.update({(channel, result): 0 for result in Delivery})
        for status in JobStatus:
            if status not in (JobStatus.RUNNING, JobStatus.WAITING, JobStatus.INTERRUPTED):
                self._occurrences[status,] = 0

    # ------------------------------------------------------------------ what happens

    def run_ended(self, lane: LaneName, trigger: Trigger, outcome: Outcome) -> None:
        """See ``MetricsRecorder``."""
        if (lane, trigger, outcome) not in self._runs:
            self._runs.update({(lane, trigger, one): 0 for one in Outcome})
        self._runs[lane, trigger, outcome] += 1

    def used(self, agent: AgentName, usage: Usage) -> None:
        """See ``MetricsRecorder``."""
        name = _one_of(self._agents, agent)
        self._tokens[name, "input"] += usage.input_tokens
        self._tokens[name, "output"] += usage.output_tokens
        self._tokens[name, "cached"] += usage.cached_tokens
        if usage.cost_usd is not None:
            self._cost_usd[name] = self._cost_usd.get(name, Decimal()) + usage.cost_usd

    def received(self, channel: str) -> None:
        """See ``MetricsRecorder``."""
        self._received[_one_of(self._channels, channel),] += 1

    def delivered(self, channel: str, result: Delivery, delay_s: float | None = None) -> None:
        """See ``MetricsRecorder``."""
        name = _one_of(self._channels, channel)
        self._deliveries[name, result] += 1
        if delay_s is not None:
            # A clock that was set back makes no time negative.
            self._delays.setdefault(name, Histogram()).add(max(delay_s, 0.0))

    def occurrence_ended(self, status: StrEnum, lag_s: float | None = None) -> None:
        """See ``MetricsRecorder``."""
        self._occurrences[status,] += 1
        if lag_s is not None:
            self._lag.add(max(lag_s, 0.0))

    def heartbeat_ended(self, agent: AgentName, status: StrEnum) -> None:
        """See ``MetricsRecorder``."""
        name = _one_of(self._agents, agent)
        if (name, status) not in self._beats:
            self._beats.update(
                {(name, one): 0 for one in HeartbeatRunStatus if one not in _NEVER_STORED}
            )
        self._beats[name, status] += 1

    # ------------------------------------------------------------------ what is shown

    def exposition(self, status: GatewayStatus, *, openmetrics: bool) -> Exposition:
        """All figures as text, with how things stand by ``status``."""
        self._gathering.status = status
        if openmetrics:
            # The library gives this one no types.
            text: bytes = openmetrics_text.generate_latest(self._registry)  # type: ignore[no-untyped-call]
            return Exposition(text, openmetrics_text.CONTENT_TYPE_LATEST)
        return Exposition(generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4)

    def counted(self) -> Iterator[Metric]:
        """What has happened since the start."""
        yield _counter(
            "runs",
            "Requests for runs, by how they ended; some of them never began.",
            ("lane", "trigger", "outcome"),
            self._runs,
        )
        yield _counter(
            "tokens",
            "Tokens that runs have used, once these have ended; those in the cache are input too.",
            ("agent", "kind"),
            self._tokens,
        )
        cost = CounterMetricFamily(
            "goclaw_cost_usd",
            "Money that runs have cost, in US dollars, as far as prices are known.",
            labels=("agent",),
        )
        for agent, usd in sorted(self._cost_usd.items()):
            cost.add_metric((agent,), float(usd))
        yield cost
        yield from self._of_messages()
        yield from self._of_times()

    def _of_messages(self) -> Iterator[Metric]:
        yield _counter(
            "messages_received",
            "Messages from people that were stored, each once.",
            ("channel",),
            self._received,
        )
        yield _counter(
            "deliveries",
            "What became of messages on their way out, each try counted.",
            ("channel", "result"),
            self._deliveries,
        )
        yield _histogram(
            "delivery_delay_seconds",
            "From the making of a message to the channel's confirmation.",
            "channel",
            {channel: delays.view() for channel, delays in self._delays.items()},
        )

    def _of_times(self) -> Iterator[Metric]:
        yield _counter(
            "occurrences",
            "Times that a job was due, by how they ended.",
            ("status",),
            self._occurrences,
        )
        lag = HistogramMetricFamily(
            "goclaw_occurrence_lag_seconds",
            "From the time that a job was due to its begin; not of those run by hand.",
        )
        _add(lag, (), self._lag.view())
        yield lag
        yield _counter(
            "beats",
            "Beats of agents, by how they ended.",
            ("agent", "status"),
            self._beats,
        )


class _Gathering(Collector):
    """Makes the series of one scrape."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.status: GatewayStatus | None = None

    def collect(self) -> Iterator[Metric]:
        status = self.status
        if status is None:
            return  # the registry asks once, for names, before there is anything to tell
        yield _gauge(
            "build_info", "Always 1; tells the release.", {(status.release,): 1}, "release"
        )
        yield _plain(
            "start_time_seconds",
            "When this gateway joined the others, in seconds since 1970.",
            status.started_at.timestamp(),
        )
        yield from _lanes(status)
        waiting = {run.session for run in status.runs if run.waits_for is not None}
        yield _plain("sessions_waiting", "Sessions in which something waits.", len(waiting))
        yield _gauge(
            "channel_up",
            "Whether this process receives for an account and nothing is wrong with it.",
            {
                (one.name, one.account): one.state is ChannelState.CONNECTED
                for one in status.channels
            },
            "channel",
            "account",
        )
        yield from _database(status.backlog)
        yield _plain("warnings", "Warnings that goclaw status shows.", len(status.warnings))
        yield from self._metrics.counted()


def _lanes(status: GatewayStatus) -> Iterator[Metric]:
    lanes = {lane.name: lane for lane in status.lanes}
    for name, text, figures in (
        ("slots", "How many runs a lane takes.", {n: one.concurrency for n, one in lanes.items()}),
        ("running", "Runs in a lane.", {n: one.active for n, one in lanes.items()}),
        ("waiting", "Runs that wait for a slot.", {n: one.waiting for n, one in lanes.items()}),
    ):
        yield _gauge(
            f"lane_{name}", text, {(lane,): value for lane, value in figures.items()}, "lane"
        )
    yield _histogram(
        "run_wait_seconds",
        "From a run's place in the line of its lane to its start.",
        "lane",
        {name: lane.wait_times for name, lane in lanes.items()},
    )
    yield _histogram(
        "run_duration_seconds",
        "From the start of a run to the end of its work.",
        "lane",
        {name: lane.run_times for name, lane in lanes.items()},
    )


def _database(backlog: Backlog | None) -> Iterator[Metric]:
    up = backlog is not None
    yield _plain("database_up", "Whether the database answers.", up)
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


def _counter(
    name: str, text: str, labels: tuple[str, ...], counts: Counter[tuple[str, ...]]
) -> Metric:
    family = CounterMetricFamily(f"goclaw_{name}", text, labels=labels)
    for label, count in sorted(counts.items()):
        family.add_metric(label, count)
    return family


def _histogram(name: str, text: str, label: str, views: dict[str, HistogramView]) -> Metric:
    family = HistogramMetricFamily(f"goclaw_{name}", text, labels=(label,))
    for value, view in sorted(views.items()):
        _add(family, (value,), view)
    return family


def _add(family: HistogramMetricFamily, labels: tuple[str, ...], view: HistogramView) -> None:
    """Add what was measured; Prometheus wants each bucket to hold the smaller ones too."""
    buckets, seen = [], 0
    for bound, count in zip((*view.bounds_s, float("inf")), view.counts, strict=True):
        seen += count
        buckets.append((_UNBOUNDED if bound == float("inf") else str(float(bound)), float(seen)))
    family.add_metric(labels, buckets, view.total_s)


def _one_of(names: Collection[str], name: str) -> str:
    return name if name in names else OTHER
