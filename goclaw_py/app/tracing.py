"""OpenTelemetry tracing, if its standard variables enable it (SPEC OPS-5).

Nothing of it is imported where they do not. Only spans of ours are exported, unless the operator
has installed a provider for the whole process (``opentelemetry-instrument``), which then gets them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from goclaw_py.app.logs import mark_traces
from goclaw_py.runs.tracing_port import NO_SPANS, Tracer

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

    from goclaw_py.observability.opentelemetry import Tracing

log = logging.getLogger(__name__)

SERVICE: Final = "goclaw"
EXTRA: Final = "goclaw_py[otel]"

_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_ASKING: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    _EXPORTER,
)
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_OTLP: Final[Mapping[str, str]] = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
"""The entry point group of exporters."""
_EXPORTERS: Final = "opentelemetry_traces_exporter"
_FLUSH_S: Final = 3.0
"""How long the shutdown waits for the export of the last spans."""


def is_enabled(environ: Mapping[str, str]) -> bool:
    """Whether the environment enables tracing."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environ.get(_EXPORTER, "").strip().lower() == "none":
        return False
    return any(environ.get(name, "").strip() for name in _ASKING)


@asynccontextmanager
async def tracing(release: str) -> AsyncIterator[Tracer]:
    """Provide the tracer of runs; the remaining spans are exported at the end.

    Never raises: what is wrong about the variables is a warning in the log, and then nothing is
    traced. Call it when the log has been configured.
    """
    made = _made(release) if is_enabled(os.environ) else None
    if made is None:
        yield NO_SPANS
        return
    spans, shutdown = made
    mark_traces(spans.trace_of)
    try:
        yield spans
    finally:
        # It may wait for a server that does not answer, which cannot be interrupted.
        flushing = threading.Thread(target=shutdown, name="last spans", daemon=True)
        flushing.start()
        await asyncio.to_thread(flushing.join, _FLUSH_S)
        if flushing.is_alive():
            log.warning("spans_not_exported")


def _made(release: str) -> tuple[Tracing, Callable[[], None]] | None:
    try:
        from opentelemetry import trace  # noqa: PLC0415 - slow import, see above

        from goclaw_py.observability.opentelemetry import Tracing  # noqa: PLC0415

        existing = trace.get_tracer_provider()
        if not isinstance(existing, trace.ProxyTracerProvider):
            return Tracing(existing.get_tracer("goclaw_py", release)), lambda: None
        provider = _provider(release)
    except ImportError as error:
        facts = {"missing": error.name, "hint": f"pip install '{EXTRA}'"}
        log.warning("tracing_not_installed", extra=facts)
        return None
    except ValueError as error:
        log.warning("tracing_settings_invalid", extra={"error": str(error)})
        return None
    if provider is None:
        return None
    return Tracing(provider.get_tracer("goclaw_py", release)), provider.shutdown


def _provider(release: str) -> TracerProvider | None:
    """Create the span provider; None if no exporter is available."""
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    exporters = list(_exporters())
    if not exporters:
        return None
    provider = TracerProvider(resource=_resource(release), shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    log.info("tracing_started", extra={"exporters": [type(one).__name__ for one in exporters]})
    return provider


def _resource(release: str) -> Resource:
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415

    given = Resource.create({"service.version": release})
    # The library's default for services without a name.
    if not str(given.attributes.get("service.name", "")).startswith("unknown_service"):
        return given
    return given.merge(Resource({"service.name": SERVICE}))


def _exporters() -> Iterator[SpanExporter]:
    given = os.environ.get(_EXPORTER, "").strip() or "otlp"
    for name in dict.fromkeys(word.strip() for word in given.split(",")):
        offered = _otlp() if name == "otlp" else name
        points = entry_points(group=_EXPORTERS, name=offered)
        if not points:
            facts = {"exporter": offered, "hint": f"pip install '{EXTRA}'"}
            log.warning("span_exporter_missing", extra=facts)
        for point in points:
            exporter: SpanExporter = point.load()()
            yield exporter


def _otlp() -> str:
    protocols = [os.environ.get(name, "").strip() for name in _PROTOCOLS]
    protocol = next(filter(None, protocols), "http/protobuf")
    return _OTLP.get(protocol, protocol)
