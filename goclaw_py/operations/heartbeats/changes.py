"""What the audit log has of operations on heartbeats and checklists (SPEC SEC-9)."""

from __future__ import annotations

from typing import Any, Final

from goclaw_py.gateway.audit.facts import digest
from goclaw_py.operations.declare import Arguments, Change, named
from goclaw_py.records.audit import OK, Facts
from goclaw_py.schedule.jobs.job_json import plain


async def _checklist(heartbeats: Any, arguments: Arguments) -> Facts:
    return {"checklist": digest((await heartbeats.checklist(arguments["agent"])).text)}


async def _heartbeat(heartbeats: Any, arguments: Arguments) -> Facts:
    return _facts(await heartbeats.view(arguments["agent"]))


def _facts(view: Any) -> Facts:
    state = view.heartbeat
    return {"on": state.is_on, "chosen": state.switched, "muted_until": plain(state.muted_until)}


def _of_heartbeat(action: str) -> Change:
    return Change(action, _AGENT, _heartbeat, lambda _, view: _facts(view))


def _of_checklist(action: str) -> Change:
    return Change(
        action, _AGENT, _checklist, lambda _, checklist: {"checklist": digest(checklist.text)}
    )


_AGENT: Final = named("agent {agent}")

RUN: Final = Change("heartbeat.run", _AGENT, said=lambda result: getattr(result, "value", OK))
SWITCH: Final = _of_heartbeat("heartbeat.switch")
MUTE: Final = _of_heartbeat("heartbeat.mute")
ADD_EVENT: Final = Change(
    "heartbeat.event",
    _AGENT,
    told=lambda arguments, _: {"wake": arguments["now"], **digest(arguments["text"])},
)
ADD_ITEM: Final = _of_checklist("checklist.add")
COMPLETE_ITEM: Final = _of_checklist("checklist.complete")
WRITE_CHECKLIST: Final = _of_checklist("checklist.write")
