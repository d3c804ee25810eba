"""What the audit log has of operations on jobs (SPEC SEC-9)."""

from __future__ import annotations

from typing import Any, Final

from goclaw_py.gateway.audit.facts import digest
from goclaw_py.operations.declare import Arguments, Change
from goclaw_py.operations.jobs.models import RunNow
from goclaw_py.records.audit import OK, Facts
from goclaw_py.schedule.jobs.job_json import plain
from goclaw_py.schedule.jobs.models import FixedMessage, Job, Program, Prompt

_SHOWN: Final = (
    "slug", "name", "schedule", "zone", "agent", "target", "notify", "session", "policy",
    "max_runs", "not_after", "wake_heartbeat", "source",
)  # fmt: skip
"""The fields of a definition that are shown."""


def _facts(job: Job) -> Facts:
    """Return a job's definition and state; of texts only digests, see ``facts.digest``."""
    spec, payload = job.spec, job.spec.payload
    work: Facts
    match payload:
        case Prompt(text, model):
            work = {"kind": "prompt", **digest(text)} | ({"model": model} if model else {})
        case FixedMessage(text):
            work = {"kind": "message", **digest(text)}
        case Program(argv):
            # Its arguments may have secrets in them.
            work = {"kind": "command", "program": argv[0] if argv else ""}
            work |= digest("\0".join(argv))
    shown = {name: plain(getattr(spec, name)) for name in _SHOWN}
    return {"state": job.state.value, **shown, "payload": work}


def _set_only(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if value not in (None, "", {}, False)}


def _job(arguments: Arguments, result: Any) -> str:
    if isinstance(result, Job):
        return f"job {result.spec.slug}"
    job = arguments["job"] if "job" in arguments else arguments["draft"].slug
    return f"job {job.spec.slug if isinstance(job, Job) else job}".rstrip()


async def _whole(jobs: Any, arguments: Arguments) -> Arguments:
    return {"job": await jobs.get(arguments["job"], arguments["by"])}


async def _stored(_jobs: Any, arguments: Arguments) -> Facts | None:
    return _facts(arguments["job"]) if isinstance(arguments["job"], Job) else None


async def _zone(jobs: Any, arguments: Arguments) -> Facts:
    return {"zone": await jobs.zone(arguments["by"])}


CREATE: Final = Change("job.create", _job, told=lambda _, job: _set_only(_facts(job)))
EDIT: Final = Change("job.edit", _job, _stored, lambda _, job: _facts(job), find=_whole)
DELETE: Final = Change("job.delete", _job, _stored, lambda _arguments, _job: {}, find=_whole)
RUN: Final = Change(
    "job.run",
    _job,
    said=lambda result: result.value if isinstance(result, RunNow) else OK,
    find=_whole,
)
CHOOSE_ZONE: Final = Change(
    "zone.choose",
    lambda arguments, _: f"jobs of {arguments['by'].owner or 'operators'}",
    _zone,
    lambda _, zone: {"zone": zone},
)
