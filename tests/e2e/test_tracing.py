"""A real gateway that exports its runs to a collector (SPEC OPS-5)."""

from __future__ import annotations

import json
import signal

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.botapi.control import Control
from tests.support.collector import collector, texts
from tests.support.process import Home, wait_for

ANN = 1001


def test_a_run_and_its_subagent_reach_the_collector_as_one_trace(bot: Home, api: Control) -> None:
    with collector() as backend:
        gateway = bot.start(
            OTEL_EXPORTER_OTLP_ENDPOINT=backend.url,
            OTEL_EXPORTER_OTLP_HEADERS="x-key=hunter2",
            OTEL_BSP_SCHEDULE_DELAY="100",
            GOCLAW_LOG__LEVEL="debug",
            GOCLAW_LOG__FORMAT="json",
        )
        api.say(ANN, "ask subagent echo sesame")
        wait_for(lambda: any("sesame" in text for text in api.texts(ANN)), "the answer")
        wait_for(lambda: len(named(backend.spans, "run")) == 2, "both runs")
        # What is left is exported at the end.
        api.say(ANN, "error")
        wait_for(lambda: len(api.texts(ANN)) == 2, "the failure")
        gateway.send(signal.SIGTERM)
        assert gateway.wait() == 0
        runs = named(backend.spans, "run")

    parent, child, failed = sorted(runs, key=lambda span: span.start_time_unix_nano)
    assert child.trace_id == parent.trace_id != failed.trace_id
    assert child.parent_span_id == parent.span_id
    assert parent.parent_span_id == failed.parent_span_id == b""
    assert texts(child.attributes)["goclaw.parent"] == texts(parent.attributes)["goclaw.run_id"]
    assert texts(failed.attributes)["goclaw.outcome"] == "failed"
    (tool,) = named(backend.spans, "execute_tool spawn_subagent")
    assert tool.parent_span_id == parent.span_id
    assert "sesame" not in str(backend.spans)
    assert backend.resources[0]["service.name"] == "goclaw"

    lines = [json.loads(line) for line in gateway.output.splitlines() if line.startswith("{")]
    of_run = [
        line for line in lines if line.get("run_id") == texts(failed.attributes)["goclaw.run_id"]
    ]
    assert {line.get("trace_id") for line in of_run if "failed" in line["event"]} == {
        failed.trace_id.hex()
    }
    assert "hunter2" not in gateway.output


def named(spans: list[Span], name: str) -> list[Span]:
    return [span for span in spans if span.name == name]
