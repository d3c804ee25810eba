"""Creates jobs from drafts, within the settings, without storing them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from goclaw_py.core.errors import BadJob
from goclaw_py.core.ids import MAIN_AGENT, AgentName, JobId, Owner
from goclaw_py.core.messages import Target
from goclaw_py.core.targets import Maker
from goclaw_py.operations.jobs.models import UNCHANGED, JobChange, JobDraft, Requester, Unchanged
from goclaw_py.records import ListedOwner
from goclaw_py.schedule.jobs.authorization import is_own_chat, permit
from goclaw_py.schedule.jobs.models import (
    OPERATOR,
    Job,
    JobSpec,
    JobState,
    Payload,
    Program,
    Prompt,
    TargetKind,
    checked,
    policy_for,
    slug_for,
)
from goclaw_py.schedule.jobs.policy import Anchor, JobPolicy, Profile, SessionKind, normalized
from goclaw_py.schedule.jobs.schedule import Every, check, first_run_at, spaced

_OVER = (JobState.COMPLETED, JobState.FAILED)
_SAID_OF_IT = ("slug", "name", "notify")
"""Fields that a model may change without becoming the job's maker."""


@dataclass(frozen=True, slots=True)
class JobCreationRules:
    """Settings that apply to all jobs.

    Args:
        profile: Its policy is the default of each job.
        enabled: Whether jobs run at all.
        most: The number of jobs of an owner, for chats and models.
        limits_operators: Whether that also applies to operators.
        agents: The existing agents; empty: any name is accepted.
        sources: The existing work sources.
        places: The existing channels and accounts; empty: any target is accepted.
        owners: Returns the owners by the settings, to whom results without a chat go.
        chat_problem: Returns why no chat of a channel can be a target, "" if one can; None: its id
            is not checked.
        model_problem: Returns why runs of an agent cannot use a model, "" if they can; None: any
            model is accepted.
    """

    profile: Profile
    enabled: bool = True
    most: int = 50
    limits_operators: bool = False
    agents: Collection[AgentName] = ()
    sources: Collection[str] = ()
    places: Collection[tuple[str, str]] = ()
    owners: Callable[[], Collection[ListedOwner]] = tuple
    model_problem: Callable[[AgentName, str], str] | None = None
    chat_problem: Callable[[Target], str] | None = None

    @property
    def base(self) -> JobPolicy:
        """The default policy of jobs."""
        return self.profile.policy


def made(
    rules: JobCreationRules,
    draft: JobDraft,
    by: Requester,
    zone: str,
    *,
    job_id: JobId,
    now: datetime,
) -> Job:
    """Create a job from a draft; ``zone`` is its default time zone. Raises ``JobError``."""
    payload = _payload(rules, draft.payload)
    asked: dict[str, Any] = {each.name: getattr(draft, each.name) for each in fields(JobSpec)}
    asked |= {
        "slug": draft.slug or slug_for(draft.name or _words(payload)),
        "zone": draft.zone or zone,
        "payload": payload,
        "agent": draft.agent or by.agent or MAIN_AGENT,
        "target": draft.target if draft.target is not None else _chat(by),
        "peer": draft.peer or by.peer,
        "policy": normalized(draft.policy),
    }
    spec = JobSpec(**asked)
    bare = Job(
        id=job_id,
        owner=by.owner or OPERATOR,
        maker=by.maker,
        spec=spec,
        created_at=now,
        updated_at=now,
        creator=by.creator,
        chained=by.chained,
    )
    permit(spec, rules.base, by)
    _reachable(rules, spec)
    _answerable(rules, spec)
    job = _sound(rules, bare, now, by.maker)
    first = draft.next_run_at or first_run_at(job.timing(rules.base), now=now)
    if draft.paused:
        return replace(job, state=JobState.PAUSED)
    return replace(job, next_run_at=first)


def changed(
    rules: JobCreationRules, job: Job, change: JobChange, by: Requester, *, now: datetime
) -> Job:
    """Apply an edit to a job. Raises ``JobError``.

    The next run is computed if the schedule changed or the job becomes active. A job whose schedule
    is over becomes active only with a new schedule. If a model changes what a job does or when, the
    job becomes a model's, with the limits for these (SPEC CRON-8, CRON-15).
    """
    spec = _changed_spec(job.spec, change)
    permit(spec, rules.base, by, job.spec)
    rescheduled = (spec.schedule, spec.zone) != (job.spec.schedule, job.spec.zone)
    state = _changed_state(job, change, by, rescheduled=rescheduled)
    resumed = state is JobState.ACTIVE and job.state is not JobState.ACTIVE
    maker = job.maker
    if by.maker is Maker.MODEL and (resumed or _does_else(spec, job.spec)):
        maker = Maker.MODEL
    after = replace(job, spec=spec, maker=maker, state=state, updated_at=now)
    retimed = rescheduled or _timing_of(rules, after) != _timing_of(rules, job)
    if retimed or resumed:
        # A person who only resumes it makes it no more frequent than it was allowed to be.
        checker = by.maker if retimed else maker
        after = _sound(rules, after, now, checker)
        rescheduled = True
    elif spec != job.spec:
        after = replace(after, spec=checked(spec))
        _known(rules, after)
    _reachable(rules, spec, job.spec)
    _answerable(rules, spec, job.spec)
    if resumed:
        # A resumed job starts with zero failures (SPEC CRON-8).
        after = replace(after, failures=0)
    if state is not JobState.ACTIVE:
        return replace(after, next_run_at=None)
    if rescheduled:
        return replace(after, next_run_at=first_run_at(after.timing(rules.base), now=now))
    return after


def reschedules(rules: JobCreationRules, before: Job, after: Job) -> bool:
    """Return whether an edit lets an active job run at other times, or at all."""
    if after.state is not JobState.ACTIVE:
        return False
    resumes = before.state is not JobState.ACTIVE
    return resumes or _timing_of(rules, after) != _timing_of(rules, before)


def _changed_state(job: Job, change: JobChange, by: Requester, *, rescheduled: bool) -> JobState:
    """Return the state that an edit requests. Raises ``BadJob``."""
    state = change.state
    if isinstance(state, Unchanged):
        return JobState.ACTIVE if rescheduled and job.state in _OVER else job.state
    if state is job.state:
        return state
    if state not in (JobState.ACTIVE, JobState.PAUSED):
        raise BadJob("state", "must be active or paused")
    if rescheduled:
        return state
    if state is JobState.PAUSED and job.state in _OVER:
        raise BadJob("state", "the job has finished; give it a new schedule to run it again")
    if state is JobState.PAUSED and job.state is JobState.DISABLED:
        raise BadJob("state", "the job has finished; it was disabled after failures")
    if job.state is JobState.DISABLED and by.maker is Maker.MODEL:
        # Else a model would undo what stops jobs that fail for ever (SPEC CRON-8).
        raise BadJob(
            "state",
            "the job was disabled after failures; give it a new schedule, not the same one, or ask "
            "the user to resume it: /jobs resume NUMBER",
        )
    return state


def _does_else(spec: JobSpec, before: JobSpec) -> bool:
    """Return whether more than the description of a job has changed."""
    same = {key: getattr(spec, key) for key in _SAID_OF_IT}
    return replace(before, **same) != spec


def _timing_of(rules: JobCreationRules, job: Job) -> object:
    """Return everything that determines its next run, and whether that is allowed."""
    policy = job.policy(rules.base)
    return job.timing(rules.base), policy.min_interval, policy.on_short


def _sound(rules: JobCreationRules, job: Job, now: datetime, by: Maker) -> Job:
    """Return the job if it is valid, with its interval extended if the policy says so."""
    spec = checked(job.spec)
    policy = job.policy(rules.base)
    every = spec.schedule
    if isinstance(every, Every) and every.origin is None and policy.anchor is Anchor.GRID:
        origin = now - timedelta(microseconds=now.microsecond)
        spec = replace(spec, schedule=replace(every, origin=origin))
    job = replace(job, spec=spec)
    _known(rules, job)
    timing = job.timing(rules.base)
    check(timing, now=now, cron_fields=rules.profile.cron_fields)
    # The person who makes it more frequent needs the right to, not only its maker.
    strict = policy_for(rules.base, spec.policy, by)
    least = timedelta(seconds=max(policy.min_interval, strict.min_interval))
    timing = spaced(timing, least, policy.on_short, now=now)
    return replace(job, spec=replace(spec, schedule=timing.schedule))


def _known(rules: JobCreationRules, job: Job) -> None:
    """Raise ``BadJob`` if it names something that does not exist or that its maker may not have."""
    spec = job.spec
    if rules.agents and spec.agent not in rules.agents:
        raise BadJob("agent", f"there is no agent {spec.agent!r}; {_list(rules.agents)}")
    if spec.source and spec.source not in rules.sources:
        there = _list(rules.sources) if rules.sources else "no source is set"
        raise BadJob("source", f"there is no work source {spec.source!r}; {there}")
    if isinstance(spec.payload, Program) and job.maker is not Maker.OPERATOR:
        raise BadJob("command", "only operators can create jobs that run programs")
    kind = job.policy(rules.base).session
    if kind is SessionKind.MAIN and not isinstance(spec.target, Target):
        raise BadJob("session", 'session = "main" needs a chat as target')
    if spec.source and not isinstance(spec.payload, Prompt):
        raise BadJob("source", "only a prompt job can have a work source")


def _reachable(rules: JobCreationRules, spec: JobSpec, before: JobSpec | None = None) -> None:
    """Raise ``BadJob`` for a new target on a channel or account that this gateway does not have.

    Also for one that no chat of its channel can be.
    """
    target = spec.target
    if not rules.places or not isinstance(target, Target):
        return
    if before is not None and target == before.target:
        return
    if (target.channel, target.account) in rules.places:
        problem = "" if rules.chat_problem is None else rules.chat_problem(target)
        if problem:
            raise BadJob("target", f"there is no chat {target.chat!r}: {problem}")
        return
    accounts = {account for channel, account in rules.places if channel == target.channel}
    if accounts:
        said = f"the channel {target.channel!r} has no account {target.account!r}"
        raise BadJob("target", f"{said}; {_list(accounts)}")
    channels = _list({channel for channel, _ in rules.places})
    raise BadJob("target", f"there is no channel {target.channel!r}; {channels}")


def _answerable(rules: JobCreationRules, spec: JobSpec, before: JobSpec | None = None) -> None:
    """Raise ``BadJob`` for a new model that runs of the agent cannot use."""
    model = _model(spec)
    if rules.model_problem is None or not model:
        return
    if before is not None and (spec.agent, model) == (before.agent, _model(before)):
        return
    if problem := rules.model_problem(spec.agent, model):
        raise BadJob("model", problem)


def _model(spec: JobSpec) -> str:
    return spec.payload.model if isinstance(spec.payload, Prompt) else ""


def _list(names: Collection[str]) -> str:
    there = "there is only" if len(names) == 1 else "there are"
    return f"{there} {', '.join(sorted(names))}"


def _payload(rules: JobCreationRules, payload: Payload | None) -> Payload:
    if payload is not None:
        return payload
    if not rules.profile.default_prompt:
        raise BadJob("prompt", "is required")
    return Prompt(rules.profile.default_prompt)


def _words(payload: Payload) -> str:
    return " ".join(payload.argv[:1]) if isinstance(payload, Program) else payload.text


def _changed_spec(spec: JobSpec, change: JobChange) -> JobSpec:
    given: dict[str, Any] = {
        each.name: value
        for each in fields(spec)
        if (value := getattr(change, each.name)) is not UNCHANGED
    }
    if not isinstance(change.policy, Unchanged):
        given["policy"] = _merged(spec.policy, change.policy)
    return replace(spec, **given)


def _merged(before: Mapping[str, object], change: Mapping[str, object]) -> dict[str, object]:
    """Return policy keys with changes applied; None removes a key."""
    merged = {**before, **normalized(change)}
    return {key: value for key, value in merged.items() if value is not None}


def _chat(by: Requester) -> Target | TargetKind:
    """Return the default target of the requester's jobs: the chat of the request.

    For a run it is the target of its job, which may not be a chat of its owner.
    """
    if by.chat is None:
        return TargetKind.LAST
    trusted = by.maker is Maker.OPERATOR or is_own_chat(by.chat, by.peer, by)
    return by.chat if trusted else TargetKind.LAST


def owner_for(by: Requester) -> Owner:
    """Return the owner of the requester's jobs."""
    return by.owner or OPERATOR
