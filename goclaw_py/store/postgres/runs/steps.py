"""Conversion of the steps of runs to rows and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from goclaw_py.core.approvals import Decision
from goclaw_py.core.ids import RunId
from goclaw_py.core.run_events import ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import DecisionStep, NewMessagesStep, ResponseStep, RunStep, ValueStep
from goclaw_py.core.storable import storable_json
from goclaw_py.store.postgres.pool import Row
from goclaw_py.store.text import storable


def columns(
    groups: Iterable[tuple[RunId, int, Sequence[RunStep]]],
) -> tuple[list[RunId], list[int], list[str], list[bytes]]:
    """Return the columns of ``run_steps`` for runs, each with the number of its first step."""
    runs, numbers, kinds, payloads = [], [], [], []
    for run, first, steps in groups:
        for number, step in enumerate(steps, first):
            kind, value = _row(storable(step))
            runs.append(run)
            numbers.append(number)
            kinds.append(kind)
            payloads.append(storable_json(value))
    return runs, numbers, kinds, payloads


def payload(step: RunStep) -> bytes:
    """Return the column ``payload`` of a step."""
    return storable_json(_row(storable(step))[1])


def steered_rows(
    groups: Iterable[tuple[RunId, int, Sequence[RunStep]]],
) -> tuple[list[RunId], list[int]]:
    """Return the inbox rows that runs have taken in, each with its run, as columns."""
    pairs = [
        (run, row)
        for run, _, steps in groups
        for step in steps
        if isinstance(step, NewMessagesStep)
        for row in step.rows
    ]
    return [run for run, _ in pairs], [row for _, row in pairs]


def _row(step: RunStep) -> tuple[str, object]:
    match step:
        case ResponseStep(native, usage, is_summary):
            return "response", {
                "native": native.decode(),
                "usage": usage,
                "is_summary": is_summary,
            }
        case ToolStarted():
            return "call", step
        case ToolEnded():
            return "result", step
        case NewMessagesStep():
            return "taken", step
        case ValueStep():
            return "value", step
        case DecisionStep():
            return "decision", step


def read(rows: Iterable[Row]) -> tuple[RunStep, ...] | None:
    """Return steps; None if one cannot be read."""
    found = [read_one(row) for row in rows]
    known = tuple(step for step in found if step is not None)
    return known if len(known) == len(found) else None


def read_one(row: Row) -> RunStep | None:
    """Return a step; None if it is damaged, or was written by another release."""
    try:
        return _step(row["kind"], orjson.loads(row["payload"]))
    except (InvalidOperation, KeyError, TypeError, ValueError):
        return None


def _step(kind: str, given: dict[str, Any]) -> RunStep:
    match kind:
        case "response":
            usage = given["usage"]
            cost = usage["cost_usd"]
            return ResponseStep(
                given["native"].encode(),
                Usage(**usage | {"cost_usd": None if cost is None else Decimal(cost)}),
                given["is_summary"],
            )
        case "call":
            return ToolStarted(**given)
        case "result":
            return ToolEnded(**given)
        case "taken":
            return NewMessagesStep(given["text"], tuple(given.get("rows", ())))
        case "value":
            return ValueStep(**given)
        case "decision":
            return DecisionStep(given["call_id"], Decision(given["decision"]))
        case _:
            raise ValueError(kind)
