"""What /metrics offers, from the registry itself, and what a query of Prometheus asks for."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from prometheus_client.parser import text_string_to_metric_families

from goclaw_py.core.ids import AgentName, LaneName, NodeId
from goclaw_py.core.metrics import Delivery
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.observability.prometheus import Metrics
from goclaw_py.schedule.heartbeat.models import HeartbeatRunStatus
from goclaw_py.scheduler.views import Backlog, ChannelState, ChannelView, GatewayStatus, LaneView

OF_PROMETHEUS = {"up": {"job": set[str](), "instance": set[str]()}}
"""Series that Prometheus makes itself for a target."""

FREE = frozenset({"lane", "agent", "channel", "account", "release", "le", "job", "instance"})
"""Labels whose values an operator chooses, or that are no words."""

_KEYWORDS = frozenset({"and", "or", "unless", "on", "offset", "bool"})
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')


@cache
def exposition() -> str:
    """The text of a gateway in which everything has happened once."""
    metrics = Metrics(["telegram"], ["main"])
    for trigger in Trigger:
        metrics.run_ended(LaneName("main"), trigger, Outcome.COMPLETED)
    metrics.used(AgentName("main"), Usage())
    metrics.received("telegram")
    metrics.delivered("telegram", Delivery.SENT, 0.5)
    metrics.heartbeat_ended(AgentName("main"), HeartbeatRunStatus.OK)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    status = GatewayStatus(
        node=NodeId("a"),
        release="1.2.3",
        pid=1,
        started_at=at,
        now=at,
        database="managed",
        draining=False,
        lanes=(LaneView(LaneName("main"), 2, 0, 0, 0, 0, 0, 0),),
        runs=(),
        channels=(ChannelView("telegram", "default", ChannelState.CONNECTED, ""),),
        backlog=Backlog(0, 0, 0, 0),
        warnings=(),
    )
    return metrics.exposition(status, openmetrics=False).text.decode()


@cache
def series() -> Mapping[str, Mapping[str, set[str]]]:
    """Each series by its name, with the values of each of its labels."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for family in text_string_to_metric_families(exposition()):
        for sample in family.samples:
            labels = found[sample.name]
            for label, value in {**sample.labels, "job": "", "instance": ""}.items():
                labels[label].add(value)
    return {**found, **OF_PROMETHEUS}


@dataclass(frozen=True, slots=True)
class Query:
    """An expression of PromQL, taken apart as far as these tests need it."""

    text: str

    @property
    def names(self) -> set[str]:
        """The series that it asks for."""
        return {name for name, _ in self._selectors()}

    @property
    def groups(self) -> set[str]:
        """The labels by which it groups."""
        lists = [found.split(",") for found in _GROUPING.findall(_without_texts(self.text))]
        return {label.strip() for labels in lists for label in labels} - {""}

    def mistakes(self) -> list[str]:
        """What no series offers: names, labels, and values of labels."""
        wrong = [f"no series {name}" for name in self.names - set(series())]
        known = {label for name in self.names & set(series()) for label in series()[name]}
        wrong += [f"no label {label} to group by" for label in self.groups - known]
        for name, matchers in self._selectors():
            for label, operator, wanted in _MATCHER.findall(matchers):
                values = series().get(name, {}).get(label)
                if values is None:
                    wrong.append(f"{name} has no label {label}")
                elif label not in FREE:
                    words = wanted.split("|") if "~" in operator else [wanted]
                    wrong += [f"{name}: no {label} {word}" for word in words if word not in values]
        return wrong

    def _selectors(self) -> Iterator[tuple[str, str]]:
        # What stands in braces follows its name; everything else in there is no name.
        bare = _GROUPING.sub(" ", self.text)
        bare = re.sub(r"\[[^\]]*\]", " ", bare)
        for name, matchers in re.findall(
            r"\b([A-Za-z_]\w*)\b(?!\s*\()\s*(\{[^}]*\})?", _safe(bare)
        ):
            if name not in _KEYWORDS:
                yield name, matchers


def _without_texts(text: str) -> str:
    return re.sub(r'"[^"]*"', '""', text)


def _safe(text: str) -> str:
    """Without the texts that stand outside of braces."""
    pieces = re.split(r"(\{[^}]*\})", text)
    return "".join(piece if piece.startswith("{") else _without_texts(piece) for piece in pieces)
