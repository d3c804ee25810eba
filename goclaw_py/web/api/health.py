"""Routes for programs that watch a gateway: probes and Prometheus (SPEC OPS-2).

``/healthz`` and ``/readyz`` need no token over TCP, so they contain only states; ``/metrics`` needs
the token if one is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from goclaw_py.observability.readiness import Health, Readiness, ReadinessCheck
from goclaw_py.web.api.wire import dump

OPENMETRICS = "application/openmetrics-text"
_PLAIN = "text/plain"
_VERSIONS = ("", "0.0.1", "1.0.0")
"""The versions of OpenMetrics that our text conforms to."""

_JSON = "application/json"
_NO_CACHE = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class Ready:
    """The response of a probe if the gateway accepts work."""

    ready: bool
    checks: tuple[ReadinessCheck, ...]


@dataclass(frozen=True, slots=True)
class NotReady:
    """The response if it does not; ``error`` says why in a sentence."""

    error: str
    ready: bool
    checks: tuple[ReadinessCheck, ...]


_READY: dict[int | str, dict[str, Any]] = {503: {"model": NotReady}}
_ALIVE: dict[int | str, dict[str, Any]] = {200: {"content": {_JSON: {"example": {"status": "ok"}}}}}
_METRICS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The figures as text",
        "content": {
            _PLAIN: {
                "schema": {"type": "string"},
                "example": '# TYPE goclaw_lane_slots gauge\ngoclaw_lane_slots{lane="main"} 4.0\n',
            },
            OPENMETRICS: {"schema": {"type": "string"}},
        },
    }
}


def alive_routes() -> APIRouter:
    """Return the routes of every app."""
    api = APIRouter()

    @api.get("/healthz", responses=_ALIVE)
    async def healthz() -> dict[str, str]:
        """Answer while the event loop is running."""
        return {"status": "ok"}

    @api.head("/healthz", include_in_schema=False)
    async def alive() -> Response:
        """Answer without a body, for load balancers."""
        return Response(media_type=_JSON)

    return api


def health_routes(health: Health) -> APIRouter:
    """Return the additional routes of a running gateway."""
    api = APIRouter()

    @api.get("/readyz", response_model=Ready, responses=_READY)
    async def readyz() -> Response:
        """Check whether the gateway accepts work: 200, or 503 with the failed parts."""
        return _response(health.readiness())

    @api.head("/readyz", include_in_schema=False)
    async def is_ready() -> Response:
        """Check the same without a body."""
        code = 200 if health.readiness().ready else 503
        return Response(status_code=code, media_type=_JSON, headers=_NO_CACHE)

    @api.get("/metrics", response_class=Response, responses=_METRICS)
    async def metrics(request: Request) -> Response:
        """Get all metrics for Prometheus, in the OpenMetrics format if that is preferred."""
        wanted = prefers_openmetrics(request.headers.getlist("accept"))
        found = await health.metrics(openmetrics=wanted)
        return Response(
            found.text, media_type=None, headers=_NO_CACHE | {"Content-Type": found.media_type}
        )

    return api


def _response(found: Readiness) -> Response:
    if found.ready:
        body, code = dump(Ready, Ready(ready=True, checks=found.checks)), 200
    else:
        not_ready = NotReady(found.words, ready=False, checks=found.checks)
        body, code = dump(NotReady, not_ready), 503
    return Response(body, status_code=code, media_type=_JSON, headers=_NO_CACHE)


def prefers_openmetrics(accept: list[str]) -> bool:
    """Return whether the ``Accept`` headers prefer OpenMetrics to plain text.

    Invalid headers are ignored. The library's own choice puts parts of the header into the
    response, and fails on some.
    """
    wanted = {OPENMETRICS: 0.0, _PLAIN: 0.0}
    for part in ",".join(accept).split(","):
        media, *rest = (piece.strip().lower() for piece in part.split(";"))
        options = dict(option.partition("=")[::2] for option in rest)
        if media == OPENMETRICS and options.get("version", "") not in _VERSIONS:
            continue
        if media in wanted:
            wanted[media] = max(wanted[media], _quality(options.get("q", "1")))
    return 0 < wanted[OPENMETRICS] >= wanted[_PLAIN]


def _quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0
