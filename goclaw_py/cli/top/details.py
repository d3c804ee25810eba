"""The lines about one run, which Enter opens in ``goclaw top``, and those of its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from goclaw_py.cli.names import DisplayNames
from goclaw_py.cli.output import plain
from goclaw_py.cli.runs.why import explanation_parts
from goclaw_py.cli.system.logs import log_line
from goclaw_py.core.display_names import SHORT_ID
from goclaw_py.core.messages import Role
from goclaw_py.core.time.texts import duration
from goclaw_py.operations.explanation import Explanation
from goclaw_py.operations.runs.command import facts_of, step_text
from goclaw_py.operations.runs.operations import RunRecord
from goclaw_py.scheduler.texts import waits_for
from goclaw_py.scheduler.views import RunView

_RESULT: Final = ("outcome", "status", "reason", "error", "agent", "duration_s")
_IDS: Final = ("run_id", "session", "sender", "parent", "node", "heartbeat_run", "trace_id")


def details(
    record: RunRecord | None, live: RunView | None, why: Explanation | None, names: DisplayNames
) -> list[str]:
    """Return what is known of a run; without a record it waits, and is not stored yet."""
    lines = [] if why is None else [*map("".join, explanation_parts(why)), ""]
    if record is not None:
        lines += [f"{name:<11} {value}" for name, value in facts_of(record.run, names)]
    elif live is not None:
        lines += [
            f"{'run':<11} {live.id}",
            f"{'session':<11} {names.with_key(live.session)}",
            f"{'waiting':<11} for {duration(live.for_s)}: {waits_for(live)}",
        ]
    lines += _section("Prompt", _prompt(record, live))
    if record is not None:
        lines += _section("Steps", (step_text(step) for step in record.steps))
        answers = (one.entry.text for one in record.entries if one.entry.role is Role.ASSISTANT)
        lines += _section("Answer", answers)
    return plain("\n".join(lines)).replace("\t", " ").splitlines()


def brief_log(lines: Iterable[Mapping[str, Any]], now: str) -> list[str]:
    """Return log lines that say the most at their beginning: the end of the screen cuts them.

    ``now`` is the time as ``clock`` formats it: lines of today have no date.
    """
    day = now.partition(" ")[0]
    return [log_line(_ranked(facts)).removeprefix(f"{day} ") for facts in lines]


def _ranked(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a line with the result first, and ids short and last."""
    own = [n for n in facts if n not in (*_RESULT, *_IDS, "logger")]
    names = [*(n for n in _RESULT if n in facts), *own, *(n for n in _IDS if facts.get(n))]
    return {n: str(facts[n])[:SHORT_ID] if n == "run_id" else facts[n] for n in names}


def _prompt(record: RunRecord | None, live: RunView | None) -> Iterator[str]:
    if record is not None and record.entries:
        yield from (one.entry.text for one in record.entries if one.entry.role is Role.USER)
    elif live is not None and live.activity is not None:
        yield live.activity.prompt


def _section(title: str, texts: Iterator[str]) -> list[str]:
    found = list(texts)
    return ["", title, *found] if found else []
