"""Names, units and help of all figures by the conventions of Prometheus."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as families

from goclaw_py.core.ids import MAIN_AGENT, MAIN_LANE
from goclaw_py.core.metrics import Delivery
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.run_events import Usage
from goclaw_py.observability.prometheus import Metrics
from goclaw_py.schedule.heartbeat.models import HeartbeatRunStatus
from goclaw_py.schedule.jobs.execution_models import OccurrenceStatus as JobStatus
from goclaw_py.scheduler.views import Backlog
from tests.unit.web.fakes import STATUS

LABELS = {"lane", "trigger", "outcome", "agent", "kind", "channel", "account", "result"}
LABELS |= {"status", "release", "le"}
"""All of them take their values from the settings or from an enum."""

UNITS = ("_seconds", "_bytes", "_info")
HOW_MANY = ("slots", "running", "waiting", "open", "dead", "unanswered", "up", "warnings")
"""Last words of gauges that count or answer yes and no: those have no unit."""


def metrics() -> Metrics:
    """Everything has happened once."""
    made = Metrics(["telegram"], ["main"])
    made.run_ended(MAIN_LANE, Trigger.CHAT, Outcome.COMPLETED)
    made.used(MAIN_AGENT, Usage(1, 1, 1, 1))
    made.received("telegram")
    made.delivered("telegram", Delivery.SENT, timedelta(seconds=2).total_seconds())
    made.occurrence_ended(JobStatus.OK, 0.1)
    made.heartbeat_ended(MAIN_AGENT, HeartbeatRunStatus.OK)
    return made


def shown() -> list[Metric]:
    text = metrics().exposition(STATUS, openmetrics=False).text.decode()
    return [family for family in families(text) if family.name.startswith("goclaw_")]


SHOWN = shown()


parametrized = pytest.mark.parametrize("family", SHOWN, ids=lambda family: family.name)


def labels_of(family: Metric) -> set[str]:
    return {label for sample in family.samples for label in sample.labels}


@parametrized
def test_a_name_ends_in_a_unit_or_tells_what_is_counted(family: Metric) -> None:
    assert re.fullmatch(r"goclaw(_[a-z]+)+", family.name)
    match family.type:
        case "counter":
            assert {sample.name for sample in family.samples} == {f"{family.name}_total"}
        case "histogram":
            assert family.name.endswith("_seconds")
        case kind:
            assert kind == "gauge"
            last = family.name.rpartition("_")[2]
            assert family.name.endswith(UNITS) or last in HOW_MANY
            assert not family.name.endswith(("_total", "_count", "_sum", "_bucket"))


@parametrized
def test_every_figure_has_a_sentence_of_help_and_few_bounded_labels(family: Metric) -> None:
    assert re.fullmatch(r"[A-Z1].{10,}\.", family.documentation)
    assert labels_of(family) <= LABELS
    assert len(labels_of(family) - {"le"}) <= 3


def test_a_gateway_has_few_series() -> None:
    """Three channels, five agents and ten lanes would have some hundreds."""
    assert sum(len(family.samples) for family in SHOWN) < 200


def test_buckets_go_up_and_end_with_all() -> None:
    for family in SHOWN:
        if family.type != "histogram":
            continue
        counts = [one.value for one in family.samples if one.name.endswith("_bucket")]
        bounds = [one.labels["le"] for one in family.samples if one.name.endswith("_bucket")]
        assert counts == sorted(counts)
        assert bounds[-1] == "+Inf"
        assert counts[-1] == next(x.value for x in family.samples if x.name.endswith("_count"))


def test_the_process_and_its_garbage_are_there_too() -> None:
    text = metrics().exposition(STATUS, openmetrics=False).text.decode()
    names = {family.name for family in families(text)}
    assert {"process_resident_memory_bytes", "process_cpu_seconds"} <= names
    assert "python_gc_collections" in names
    assert "_created" not in text


def test_the_format_of_openmetrics_says_the_same() -> None:
    made = metrics()
    plain = made.exposition(STATUS, openmetrics=False)
    rich = made.exposition(STATUS, openmetrics=True)
    assert plain.media_type == "text/plain; version=0.0.4; charset=utf-8"
    assert rich.media_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert rich.text.endswith(b"# EOF\n")

    def ours(found: list[Metric]) -> set[tuple[str, str]]:
        return {(one.name, one.type) for one in found if one.name.startswith("goclaw_")}

    # The library gives this one no types.
    parsed = list(open_families(rich.text.decode()))  # type: ignore[no-untyped-call]
    assert ours(parsed) == ours(SHOWN)


def test_without_a_database_its_figures_are_left_out() -> None:
    """A 0 would say that nothing waits."""
    away = replace(STATUS, backlog=None)
    text = metrics().exposition(away, openmetrics=False).text.decode()
    assert "goclaw_database_up 0.0" in text
    assert not re.search(r"goclaw_(in|out)box_|goclaw_approvals", text)
    there = replace(STATUS, backlog=Backlog(1, 2, 3, 4, approvals=5))
    text = metrics().exposition(there, openmetrics=False).text.decode()
    figures = {"inbox_open": 1, "outbox_open": 2, "outbox_dead": 3, "inbox_unanswered": 4}
    figures["approvals_waiting"] = 5
    assert re.findall(r"^goclaw_(?:(?:in|out)box|approvals)_\w+ .*$", text, re.MULTILINE) == [
        f"goclaw_{name} {value:.1f}" for name, value in figures.items()
    ]
