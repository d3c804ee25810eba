"""When runs are traced, and where to (SPEC OPS-5)."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from goclaw_py.app import tracing
from goclaw_py.app.logs import configure
from goclaw_py.config import Settings
from goclaw_py.config.models import Log, LogFormat
from goclaw_py.core.ids import MAIN_AGENT, LaneName, RunId, SessionKey
from goclaw_py.core.outcomes import Ending, Outcome, Trigger
from goclaw_py.records import NewRun
from goclaw_py.runs.run_recorder import RunRecorder
from goclaw_py.runs.tracing_port import NO_SPANS, Tracer
from goclaw_py.testing.clock import START
from tests.support.collector import Collector, collector, texts

pytestmark = pytest.mark.real_time

LANE = LaneName("main")
RUN = NewRun(RunId("run-1"), SessionKey("s"), MAIN_AGENT, Trigger.CHAT, LANE, (), None, START)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def log_file(tmp_path: Path, log_as_before: None) -> Path:
    """The log as a gateway writes it."""
    configure(Settings(log=Log(format=LogFormat.JSON)), file=tmp_path / "log")
    return tmp_path / "log"


@pytest.fixture
def backend() -> Iterator[Collector]:
    with collector() as made:
        yield made


def lines(log_file: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in log_file.read_text().splitlines()]


def work(spans: Tracer) -> None:
    """A run from begin to end."""
    with spans.work(RUN):
        pass
    spans.ended(Ending(RUN.id, Outcome.COMPLETED), RunRecorder(), None)


@pytest.mark.parametrize(("asked", "environ"), [
    (False, {}),
    (False, {"OTEL_SERVICE_NAME": "mine"}),
    (False, {"OTEL_EXPORTER_OTLP_ENDPOINT": " "}),
    (True, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}),
    (True, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}),
    (True, {"OTEL_TRACES_EXPORTER": "console"}),
    (False, {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}),
    (False, {"OTEL_SDK_DISABLED": "True", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}),
    (True, {"OTEL_SDK_DISABLED": "false", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}),
])  # fmt: skip
def test_runs_are_traced_where_variables_ask_for_it(asked: bool, environ: dict[str, str]) -> None:
    assert tracing.is_enabled(environ) is asked


async def test_without_them_nothing_is_traced() -> None:
    async with tracing.tracing("1") as spans:
        assert spans is NO_SPANS
        work(spans)


START_UP = """
import sys, asyncio
import goclaw_py.cli.entry as entry
entry.run(["--help"])
print("HELP", [name for name in sys.modules if name.startswith("opentelemetry")])
import goclaw_py.app.gateway, goclaw_py.app.tracing as tracing
async def main():
    async with tracing.tracing("1"):
        pass
asyncio.run(main())
heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "google", "goclaw_py.observability.opent")
print("GATEWAY", [name for name in sys.modules if name.startswith(heavy)])
"""


@pytest.mark.slow
def test_without_them_nothing_for_it_is_imported() -> None:
    """A start is not slower. Its interface, which is light, comes with FastAPI anyway."""
    environ = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", START_UP], env=environ, capture_output=True, text=True, check=True
    )
    assert "HELP []" in done.stdout
    assert "GATEWAY []" in done.stdout


async def test_spans_reach_a_collector_at_the_latest_at_the_end(
    monkeypatch: pytest.MonkeyPatch, backend: Collector, log_file: Path
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=hunter2")
    async with tracing.tracing("1.2.3") as spans:
        work(spans)
        logging.getLogger("test").info("said", extra={"run_id": RUN.id})
        logging.getLogger("test").info("of nothing", extra={"run_id": "another"})
    (span,) = backend.spans
    assert (span.name, texts(span.attributes)["goclaw.run_id"]) == ("run", RUN.id)
    assert backend.resources[0]["service.name"] == "goclaw"
    assert backend.resources[0]["service.version"] == "1.2.3"
    assert backend.headers[0]["x-key"] == "hunter2"
    assert "hunter2" not in log_file.read_text()
    said = {line["event"]: line.get("trace_id") for line in lines(log_file)}
    assert said["said"] == span.trace_id.hex()
    assert said["of nothing"] is None
    # The process has no provider of ours for the libraries in it.
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_SERVICE_NAME", "mine"), ("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,team=blue")],
)
async def test_the_service_has_the_name_that_it_is_given(
    monkeypatch: pytest.MonkeyPatch, backend: Collector, name: str, value: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", backend.url + "/v1/traces")
    monkeypatch.setenv(name, value)
    async with tracing.tracing("1") as spans:
        work(spans)
    assert backend.resources[0]["service.name"] == "mine"


@pytest.mark.parametrize(("name", "value", "spans_sent"), [
    ("OTEL_TRACES_SAMPLER", "always_off", 0),
    ("OTEL_TRACES_EXPORTER", "otlp, console,otlp", 1),
])  # fmt: skip
async def test_a_sampler_and_several_exporters_are_heard(
    monkeypatch: pytest.MonkeyPatch, backend: Collector, name: str, value: str, spans_sent: int
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.url)
    monkeypatch.setenv(name, value)
    async with tracing.tracing("1") as spans:
        work(spans)
    assert len(backend.spans) == spans_sent


async def test_a_provider_of_the_process_gets_the_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    async with tracing.tracing("1") as spans:
        work(spans)
    assert [span.name for span in memory.get_finished_spans()] == ["run"]


@pytest.mark.parametrize(
    "missing", ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"]
)
async def test_what_is_not_installed_is_a_warning_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, missing: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, missing, None)
    async with tracing.tracing("1") as spans:
        assert spans is NO_SPANS
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "pip install 'goclaw_py[otel]'" in str(vars(record))


@pytest.mark.parametrize(("name", "value"), [
    ("OTEL_TRACES_EXPORTER", "carrier-pigeon"),
    ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
    ("OTEL_BSP_MAX_QUEUE_SIZE", "-1"),
    ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many"),
])  # fmt: skip
async def test_what_cannot_be_used_is_a_warning_and_the_gateway_starts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, value: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    async with tracing.tracing("1") as spans:
        assert spans is NO_SPANS
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.slow
async def test_a_collector_that_does_not_answer_keeps_nothing_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing, "_FLUSH_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "30")
        began = time.monotonic()
        async with tracing.tracing("1") as spans:
            work(spans)
        assert time.monotonic() - began < 15
    assert "spans_not_exported" in caplog.messages
    # It goes on for its two seconds, and must not log in other tests.
    for thread in threading.enumerate():
        if thread.name == "last spans":
            await asyncio.to_thread(thread.join, 20)
