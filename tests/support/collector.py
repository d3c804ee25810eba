"""A collector of OpenTelemetry spans on loopback, over OTLP/HTTP."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(slots=True)
class Collector:
    """What has come in. ``url`` is for ``OTEL_EXPORTER_OTLP_ENDPOINT``."""

    url: str
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        """Take a request that a client has made."""
        request = ExportTraceServiceRequest.FromString(body)
        self.headers.append(headers)
        for group in request.resource_spans:
            self.resources.append(texts(group.resource.attributes))
            for scope in group.scope_spans:
                self.spans.extend(scope.spans)


def texts(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """The attributes that are texts."""
    return {one.key: one.value.string_value for one in attributes if one.value.string_value}


@contextmanager
def collector() -> Iterator[Collector]:
    """One that listens until this is left."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            made.take(body, {key.lower(): value for key, value in self.headers.items()})
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
