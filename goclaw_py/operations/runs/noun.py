"""Runs, for layers that must know of them before they load their routes, pages or commands."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.declare import Noun
from goclaw_py.operations.runs.operations import Runs

RUNS: Final = Noun(
    "runs",
    Runs,
    pages={
        Least.VIEWER: ("GET /runs", "GET /live/runs", "GET /timeline", "GET /live/timeline"),
        Least.TEXT: ("GET /runs/view", "GET /live/run", "GET /runs/{prefix}"),
        Least.OPERATOR: ("POST /runs/retry",),
    },
    plain={"StepView": "name", "StoredRun": "model sender", "ToolCall": "name"},
    text={"StepView": "text", "StoredRun": "error prompt", "ToolCall": "arguments result"},
)
