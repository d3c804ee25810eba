"""Authorization of job changes: operators may do all, others only in their chat (SEC-3)."""

from __future__ import annotations

import math
from dataclasses import fields, replace

from goclaw_py.core.errors import BadJob
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.targets import Maker, owner_of
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.schedule.jobs.models import OPERATOR, JobSpec, Program, Prompt
from goclaw_py.schedule.jobs.policy import JobPolicy, SessionKind, for_model, policy_with

_BOUND_TO_AGENT = ("payload", "agent", "source", "session")
"""Fields of another agent's job that must not change, because that agent would get new work."""

_MOST = ("retries", "history_keep")
"""Policy keys whose value may not exceed that of the settings."""
_MOST_OR_NONE = ("turns", "usd", "max_per_agent")
"""Policy keys whose value may not exceed that of the settings; None means no limit."""


def permit(spec: JobSpec, base: JobPolicy, by: Requester, before: JobSpec | None = None) -> None:
    """Raise ``BadJob`` if the requester may not create or edit this job; operators may do all.

    ``base`` is the policy of the settings. ``before`` is the job before an edit: unchanged fields
    keep the permissions that an operator has granted, unless the edit changes the payload.
    """
    if by.maker is Maker.OPERATOR:
        return
    if before is not None:
        _permit_change(spec, before, by)
        if spec.payload != before.payload:
            before = None
    if before is None:
        _permit_payload(spec)
    if before is None or spec.agent != before.agent:
        _permit_agent(spec, by)
    if before is None or (spec.target, spec.peer) != (before.target, before.peer):
        _permit_target(spec, by)
    if spec.source and (before is None or spec.source != before.source):
        raise BadJob("source", "only operators can give a job a work source")
    _permit_policy(spec, base, by, before)


def is_own_chat(target: Target, peer: PeerKind, by: Requester) -> bool:
    """Return whether a chat, or a thread of it, belongs to the requester.

    The owner decides, not the chat that the requester names. Jobs that an operator's job creates
    belong to no chat; they must keep the target of that job.
    """
    if by.owner in (None, OPERATOR):
        here = None if by.chat is None else (by.chat.whole_chat, by.peer)
        return here == (target.whole_chat, peer)
    return owner_of(target, peer) == by.owner


def _permit_change(spec: JobSpec, before: JobSpec, by: Requester) -> None:
    if before.agent == (by.agent or MAIN_AGENT):
        return
    for key in _BOUND_TO_AGENT:
        if getattr(spec, key) != getattr(before, key):
            part = "prompt" if key == "payload" else key
            raise BadJob(
                part, f"only operators can change it in a job of the agent {before.agent!r}"
            )


def _permit_payload(spec: JobSpec) -> None:
    if isinstance(spec.payload, Program):
        raise BadJob("command", "only operators can create jobs that run programs")
    if isinstance(spec.payload, Prompt) and spec.payload.model:
        raise BadJob("model", "only operators can choose another model than that of the agent")


def _permit_agent(spec: JobSpec, by: Requester) -> None:
    own = by.agent or MAIN_AGENT
    if spec.agent != own:
        raise BadJob("agent", f"only operators can create jobs for another agent than {own!r}")


def _permit_target(spec: JobSpec, by: Requester) -> None:
    target = spec.target
    if not isinstance(target, Target) or is_own_chat(target, spec.peer, by):
        return
    if any(is_own_chat(target, peer, by) for peer in PeerKind):
        raise BadJob("peer", f"the chat is not one of the kind {spec.peer.value}")
    raise BadJob(
        "target", "must be this chat, last or none; only operators can send to other chats"
    )


def _permit_policy(spec: JobSpec, base: JobPolicy, by: Requester, before: JobSpec | None) -> None:
    strict = for_model(base) if by.maker is Maker.MODEL else base
    limits = replace(base, auto_disable_after=strict.auto_disable_after)
    wanted = policy_with(strict, spec.policy)
    known = strict if before is None else policy_with(strict, before.policy)
    if wanted.session is SessionKind.KEY and (
        before is None or (known.session, before.session) != (wanted.session, spec.session)
    ):
        raise BadJob("session", "only operators can choose the session of a job")
    for key in (field.name for field in fields(JobPolicy)):
        if getattr(wanted, key) != getattr(known, key) and _is_looser(key, wanted, limits):
            raise BadJob(key, "only operators can exceed the limits of the settings")


def _is_looser(key: str, wanted: JobPolicy, limits: JobPolicy) -> bool:
    """Return whether the wanted policy allows more than the limits for this key."""
    given, limit = getattr(wanted, key), getattr(limits, key)
    match key:
        case "tools_in_runs" | "retry_after_effects":
            return bool(given and not limit)
        case "min_interval":
            return bool(given < limit)
        case "error_retry":
            return bool(given and (not limit or given < limit))
        case "run_timeout" | "auto_disable_after":
            return bool((given or math.inf) > (limit or math.inf))
        case _ if key in _MOST_OR_NONE:
            return limit is not None and (given is None or given > limit)
        case _:
            return key in _MOST and given > limit
