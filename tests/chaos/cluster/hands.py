"""What an operator does in a round: over the socket of a gateway."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from goclaw_py.web.sockets import short_path, socket_path

_TRIES: Final = 100
_BETWEEN_S: Final = 0.2


def ask(home: Path, method: str, path: str, body: object = None) -> Any:
    """What the gateway of a home answers; asked again while it or its database is just back."""
    said = ""
    for _ in range(_TRIES):
        try:
            answer = _once(home, method, path, body)
        except httpx.TransportError as error:
            said = repr(error)
        else:
            if answer.is_success:
                return answer.json()
            said = answer.text
            assert answer.status_code >= 500, said
        time.sleep(_BETWEEN_S)
    raise AssertionError(f"{method} {path}: {said}")


def make(home: Path, job: object) -> None:
    """Make a job. One that is there already was made by a request whose answer was lost."""
    try:
        ask(home, "POST", "jobs", job)
    except AssertionError as refused:
        if "SlugTaken" not in str(refused):
            raise


def quieten(home: Path, agents: Sequence[str], jobs: Sequence[str]) -> None:
    """Let nothing come due any more."""
    for job in jobs:
        ask(home, "PATCH", f"jobs/{job}", {"state": "paused"})
    for agent in agents:
        ask(home, "PUT", f"heartbeats/{agent}/switch", {"on": False})


def _once(home: Path, method: str, path: str, body: object) -> httpx.Response:
    with (
        short_path(socket_path(home / "state")) as name,
        httpx.Client(
            transport=httpx.HTTPTransport(uds=name), base_url="http://goclaw", trust_env=False
        ) as client,
    ):
        return client.request(method, f"/api/{path}", json=body, timeout=30)
