"""Which operations change something, and what is recorded of them (SPEC SEC-9).

One table for each service: method, name of the action, subject, what it was before and what it is
afterwards. Each method of these services is in its table or among ``READS``; a test compares them.
Operations of ``NOUNS`` declare it themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from goclaw_py.core.actors import Actor, ActorKind
from goclaw_py.gateway.audit.facts import digest
from goclaw_py.operations.audit import Actions, Arguments, Change, named
from goclaw_py.operations.jobs import RunNow
from goclaw_py.operations.nouns import NOUNS
from goclaw_py.records import SignInMethod
from goclaw_py.records.audit import OK, Facts
from goclaw_py.records.people import AccessVerdict
from goclaw_py.schedule.jobs.job_json import plain
from goclaw_py.schedule.jobs.models import FixedMessage, Job, Program, Prompt


def _number(name: str) -> Callable[[Arguments, Any], Facts]:
    return lambda _arguments, result: {name: result}


# ---------------------------------------------------------------------------- jobs


_SHOWN: Final = (
    "slug", "name", "schedule", "zone", "agent", "target", "notify", "session", "policy",
    "max_runs", "not_after", "wake_heartbeat", "source",
)  # fmt: skip
"""The fields of a definition that are shown."""


def _job_facts(job: Job) -> Facts:
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
    if "job" in arguments:
        return f"job {arguments['job'].spec.slug}"
    asked = arguments["asked"] if "asked" in arguments else arguments["draft"].slug
    return f"job {asked}".rstrip()


async def _find_job(jobs: Any, arguments: Arguments) -> Arguments:
    return {"job": await jobs.get(arguments["asked"], arguments["by"])}


async def _stored_job(_jobs: Any, arguments: Arguments) -> Facts | None:
    return _job_facts(arguments["job"]) if "job" in arguments else None


async def _zone(jobs: Any, arguments: Arguments) -> Facts:
    return {"zone": await jobs.zone(arguments["by"])}


_JOBS: Final[Actions] = {
    "create": Change("job.create", _job, told=lambda _, job: _set_only(_job_facts(job))),
    "edit": Change("job.edit", _job, _stored_job, lambda _, job: _job_facts(job), find=_find_job),
    "delete": Change("job.delete", _job, _stored_job, lambda _arguments, _job: {}, find=_find_job),
    "run_now": Change(
        "job.run",
        _job,
        said=lambda result: result.value if isinstance(result, RunNow) else OK,
        find=_find_job,
    ),
    "choose_zone": Change(
        "zone.choose",
        lambda arguments, _: f"jobs of {arguments['by'].owner or 'operators'}",
        _zone,
        lambda _, zone: {"zone": zone},
    ),
}

# ---------------------------------------------------------------------------- all operations


async def _lane(control: Any, arguments: Arguments) -> Facts:
    lanes = [use.lane for use in (await control.lanes()).lanes]
    sizes = [lane.concurrency for lane in lanes if lane.name == arguments["name"]]
    return {"size": sizes[0] if sizes else None}


CONTROL: Final[Actions] = {
    "resize_lane": Change(
        "lane.resize", named("lane {name}"), _lane, lambda _, done: {"size": done.lane.concurrency}
    ),
    # The token itself is in the answer only.
    "create_token": Change(
        "token.create",
        named("token {name}"),
        told=lambda arguments, _: {
            "role": plain(arguments["role"]),
            "reads_text": arguments["reads_text"],
            "expires_at": plain(arguments["expires_at"]),
        },
    ),
    "revoke_token": Change("token.revoke", named("token {name}")),
    "end_sign_in": Change("sign_in.end", named("sign-in {sign_in}")),
    "end_sign_ins": Change("sign_in.end_all", named("all browsers"), told=_number("ended")),
}

SERVICES: Final[Mapping[str, Actions]] = {
    "jobs": _JOBS,
    **{noun.name: noun.changes for noun in NOUNS},
}
"""The services within ``Control``, by name."""

_READS: Final[Mapping[str, frozenset[str]]] = {
    service: frozenset(names.split())
    for service, names in {
        "control": """
            jobs status lanes why usage run_times follow sign_ins
            tokens audit_entries
        """,
        "jobs": """
            profile enabled most now get search counts log logged upcoming no_route preview
            stats zone
        """,
    }.items()
}
READS: Final[Mapping[str, frozenset[str]]] = {
    **_READS,
    "control": _READS["control"] | {noun.name for noun in NOUNS},
    **{noun.name: noun.reads for noun in NOUNS},
}
"""Operations that change nothing: they are not recorded, and cost no statement."""

# ---------------------------------------------------------------------------- chats, sign-ins


def _verdict(arguments: Arguments) -> str:
    return "person.deny" if arguments["verdict"] is AccessVerdict.DENY else "person.approve"


def _requester(_arguments: Arguments, request: Any) -> str:
    kind = "chat" if request.is_group else "person"
    return f"{kind} {request.channel}/{request.account}/{request.sender.id}"


def _is_some(_arguments: Arguments, result: object) -> bool:
    return bool(result)


CHATS: Final[Actions] = {
    "decide": Change(
        _verdict,
        _requester,
        told=lambda arguments, one: {
            "name": one.sender.name,
            "verdict": arguments["verdict"].name.lower(),
        },
        is_done=lambda arguments, one: one is not None and one.expires_at > arguments["now"],
    ),
    **{name: change for noun in NOUNS for name, change in noun.chat_changes.items()},
}
"""Methods of the store by which commands and buttons of chats change something.

Jobs and heartbeats are changed by their services there, too, and a stop has its own place: it acts
before anything is stored.
"""


def _browser(arguments: Arguments) -> Actor:
    """Return who signs in: before it, the request is that of nobody."""
    one = arguments["sign_in"]
    kind = _SIGN_IN_KINDS.get(one.method, ActorKind.PERSON)
    return Actor(kind, one.name, one.role, via=one.address)


_SIGN_IN_KINDS: Final = {
    SignInMethod.SETTINGS_TOKEN: ActorKind.SETTINGS_TOKEN,
    SignInMethod.TOKEN: ActorKind.TOKEN,
}


SIGN_INS: Final[Actions] = {
    "begin_sign_in": Change(
        "sign_in.begin",
        lambda arguments, _: f"sign-in {arguments['sign_in'].id}",
        told=lambda arguments, _: {
            "browser": arguments["sign_in"].user_agent,
            "method": arguments["sign_in"].method.value,
        },
        is_done=_is_some,
        actor=_browser,
    ),
    "end_sign_in": Change("sign_in.end", named("sign-in {sign_in}"), is_done=_is_some),
    "use_web_link": Change(
        "guest.join",
        lambda _, link: f"person {link.name}" if link else "",
        is_done=lambda arguments, link: bool(link) and link.cookie_hash == arguments["cookie_hash"],
    ),
}
"""Methods of the store by which browsers are signed in and out."""
