"""``goclaw jobs add`` and ``edit`` (SPEC CRON-1, CRON-2)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from goclaw_py.cli import completion
from goclaw_py.cli.context import AsJson, answer, choice, named, with_options
from goclaw_py.core.errors import BadJob, NotAccepted, NotFound, SlugTaken
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.targets import TARGET_FORM, parse_target
from goclaw_py.core.time.datetimes import clock_change, parse_moment
from goclaw_py.operations.jobs.command.texts import (
    JobName,
    JobSnapshot,
    next_runs,
    operator,
    routed,
)
from goclaw_py.operations.jobs.models import JobChange, JobDraft
from goclaw_py.schedule.jobs.models import (
    MAX_TEXT_CHARS,
    SLUG,
    FixedMessage,
    Job,
    JobTarget,
    Notify,
    Payload,
    Program,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.policy import DURATIONS, FORMER_KEYS, JobPolicy, policy_with
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule, parse_interval

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control

NONE = "none"
"""Option value that removes a setting of a job, such as ``--until none``."""

_SESSIONS = ("job", "fresh", "main")
_NO_PROMPT = "the prompt is missing; write it at the end, after --"


def _max_runs(text: str | None) -> str | None:
    if text is None or text == NONE or (text.isdecimal() and 1 <= int(text[:20]) <= 10**9):
        return text
    raise typer.BadParameter(f"must be a whole number from 1 to 1000000000, or {NONE}")


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options of both commands; None means that the option was not given."""

    at: Annotated[
        str | None,
        typer.Option(help="Run once: 2026-05-01T09:00, 09:00, 'tomorrow 9:00', 'in 20m'."),
    ] = None
    every: Annotated[str | None, typer.Option(help="Run at an interval: 30s, 10m, 2h, 1d.")] = None
    cron: Annotated[
        str | None,
        typer.Option(help="Cron expression: '0 9 * * 1-5'; six fields start with seconds."),
    ] = None
    tz: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.zones,
            help="Time zone, such as Europe/Berlin (default: the zone that you have chosen, else "
            "scheduler.timezone, else the profile's).",
        ),
    ] = None
    slug: Annotated[str | None, typer.Option(help="Short name: a-z 0-9 _ -.")] = None
    name: Annotated[str | None, typer.Option(help="Display name.")] = None
    agent: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.agents, help="Agent that runs the job (new jobs: main)."
        ),
    ] = None
    to: Annotated[
        str | None,
        typer.Option(help="Delivery target of results: a chat (telegram:123), last, or none."),
    ] = None
    notify: Annotated[
        str | None, choice(Notify, "When to deliver results: always, conditional or never.")
    ] = None
    session: Annotated[
        str | None,
        typer.Option(help="Session of its runs: job, fresh, main (that of the chat), or a key."),
    ] = None
    message: Annotated[
        str | None, typer.Option(help="Deliver this text as it is, without asking a model.")
    ] = None
    command: Annotated[
        bool,
        typer.Option("--command", help="Run the words after -- as a program."),
    ] = False
    model: Annotated[
        str | None,
        typer.Option(help="Model of its runs (default, or with '': the agent's model)."),
    ] = None
    max_runs: Annotated[
        str | None, typer.Option(callback=_max_runs, help="Finish the job after this many runs.")
    ] = None
    until: Annotated[str | None, typer.Option(help="Do not run after this time.")] = None
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Override a [scheduler] setting: retries=0, run_timeout=10m. KEY= resets it.",
        ),
    ] = None
    source: Annotated[
        str | None, typer.Option(help="Work source that supplies the work of each run.")
    ] = None
    wake_heartbeat: Annotated[
        bool | None,
        typer.Option(
            "--wake-heartbeat/--no-wake-heartbeat", help="Run the heartbeat after each run."
        ),
    ] = None


# ---------------------------------------------------------------------------- add, edit


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="-- PROMPT", help="What the agent should do. - reads it from standard input."
    ),
]


@with_options(JobOptions)
def add(
    ctx: typer.Context,
    wish: JobOptions,
    called: Annotated[str, typer.Argument(metavar="NAME", callback=named, help="Name of the job.")],
    words: Words = None,
    *,
    paused: Annotated[bool, typer.Option("--paused", help="Create the job paused.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a job. Give one of --at, --every or --cron, and the prompt after --.

    Example: goclaw jobs add standup --cron "0 9 * * 1-5" --tz Europe/Berlin -- What is new?
    """
    if wish.at is None and wish.every is None and wish.cron is None:
        raise typer.BadParameter("give a schedule: --at, --every or --cron")
    wish = _named(wish, called)
    payload = _payload(wish, words)

    async def ask(control: Control) -> JobSnapshot:
        zone = wish.tz or await control.jobs.zone(operator())
        fields = await _given(wish, control, payload, zone=zone, new=True)
        if wish.model and payload is None:
            raise typer.BadParameter(_NO_PROMPT)
        draft = JobDraft(**{**fields, "zone": zone, "paused": paused})  # type: ignore[arg-type]
        try:
            job = await control.jobs.create(draft, operator())
        except SlugTaken as error:
            raise NotAccepted(f"{error}; to change it: goclaw jobs edit {error.slug}") from error
        except BadJob as error:
            if error.key == "prompt" and payload is None:
                raise typer.BadParameter(_NO_PROMPT) from error
            raise
        return await _described(control, wish, job)

    answer(ctx, ask, next_runs(ctx, as_json=as_json), create=True)


def _named(wish: JobOptions, name: str) -> JobOptions:
    """Take the name as the job's slug if it has that form, else as its display name."""
    if wish.slug is None and SLUG.fullmatch(name):
        return replace(wish, slug=name)
    return replace(wish, name=wish.name or name)


# ---------------------------------------------------------------------------- edit


@with_options(JobOptions)
def edit(
    ctx: typer.Context,
    wish: JobOptions,
    job: JobName,
    words: Words = None,
    *,
    revision: Annotated[
        int | None, typer.Option(min=1, help="Fail unless the job still has this revision.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change a job. Options that you leave out stay unchanged.

    --until none and --max-runs none remove these limits.
    """
    if wish == JobOptions() and not words:
        raise typer.BadParameter("nothing to change: give at least one option or a prompt")
    payload = _payload(wish, words)

    async def ask(control: Control) -> JobSnapshot:
        service, by = control.jobs, operator()
        before = await service.get(job, by)
        new, from_old = _completed(wish, payload, before)
        zone = wish.tz or before.spec.zone
        fields = await _given(wish, control, new, zone=zone, new=False)
        # Part of the new payload was copied from this revision: fail if the job changed since.
        expected = revision or (before.revision if from_old else None)
        change = JobChange(**fields, revision=expected)  # type: ignore[arg-type]
        return await _described(control, wish, await service.edit(before.id, change, by))

    answer(ctx, ask, next_runs(ctx, as_json=as_json))


async def _described(control: Control, wish: JobOptions, job: Job) -> JobSnapshot:
    """Describe a job after a change, and whether the session that was given exists."""
    found = await routed(control.jobs, job)
    if not job.spec.session or wish.session != job.spec.session:
        return found
    try:
        session = (await control.sessions.get(job.spec.session)).key
    except NotFound:
        return replace(found, new_session=True)
    if session == job.spec.session:
        return found
    return replace(found, new_session=True, similar_session=session)


def _completed(
    wish: JobOptions, payload: Payload | None, before: Job
) -> tuple[Payload | None, bool]:
    """Return the new payload, and whether a part of it was copied from the old one."""
    old = before.spec.payload
    if isinstance(old, Prompt):
        if payload is None and wish.model is not None:
            return replace(old, model=wish.model), True
        if isinstance(payload, Prompt) and wish.model is None:
            return replace(payload, model=old.model), True
    if payload is None and wish.model is not None:
        raise typer.BadParameter("--model is only for jobs with a prompt")
    return payload, False


async def _given(
    wish: JobOptions, control: Control, payload: Payload | None, *, zone: str, new: bool
) -> dict[str, object]:
    """Return the fields of a job for which an option was given.

    ``zone``: of times without one. ``new``: the job does not exist yet. Raises ``BadParameter``,
    ``BadJob`` and ``BadSchedule``.
    """
    now = (await control.jobs.scheduler()).now
    target, peer = await _target(wish, control)
    fields: dict[str, object] = {
        "slug": wish.slug,
        "name": wish.name,
        "schedule": _schedule(wish, now=now, zone=zone),
        "zone": wish.tz,
        "payload": payload,
        "agent": None if wish.agent is None else AgentName(wish.agent),
        "target": target,
        "peer": peer,
        "notify": None if wish.notify is None else Notify(wish.notify),
        "session": "" if wish.session in _SESSIONS else wish.session,
        "policy": _policy(wish, new=new) or None,
        "wake_heartbeat": wish.wake_heartbeat,
        "source": "" if wish.source == NONE else wish.source,
    }
    fields = {key: value for key, value in fields.items() if value is not None}
    # For these two None is a value: it removes the limit.
    if wish.max_runs is not None:
        fields["max_runs"] = None if wish.max_runs == NONE else int(wish.max_runs)
    if wish.until is not None:
        is_none = wish.until == NONE
        fields["not_after"] = None if is_none else parse_moment(wish.until, now=now, zone=zone)
    return fields


# ---------------------------------------------------------------------------- when


def _schedule(wish: JobOptions, *, now: datetime, zone: str) -> Schedule | None:
    times = [text for text in (wish.at, wish.every, wish.cron) if text is not None]
    if len(times) > 1:
        raise typer.BadParameter(f"give one of --at, --every and --cron, not {len(times)}")
    if wish.at is not None:
        at = parse_moment(wish.at, now=now, zone=zone)
        if change := clock_change(wish.at, at, zone=zone):
            typer.echo(f"note: {change}", err=True)
        return At(at)
    if wish.every is not None:
        return Every(parse_interval(wish.every))
    return None if wish.cron is None else Cron(wish.cron.strip())


# ---------------------------------------------------------------------------- what


def _payload(wish: JobOptions, words: list[str] | None) -> Payload | None:
    """Return the payload (prompt, message or program); None if no option gives one.

    With ``--model`` alone the prompt is missing, which the caller handles. Raises
    ``BadParameter`` if several are given, and ``BadJob`` for text that is too long.
    """
    if wish.message is not None and (words or wish.command):
        raise typer.BadParameter("give only one of a prompt, --message and --command")
    if wish.model and (wish.message is not None or wish.command):
        raise typer.BadParameter("--model is only for jobs with a prompt")
    if wish.command:
        if not words:
            raise typer.BadParameter("the program is missing: --command -- PROGRAM ARGUMENT…")
        return Program(tuple(words))
    if wish.message is not None:
        return FixedMessage(_bounded("message", wish.message))
    if not words:
        return None
    return Prompt(_bounded("prompt", _prompt(words)), wish.model or "")


def _prompt(words: list[str]) -> str:
    if words != ["-"]:
        return " ".join(words)

    # Reading one character more than allowed is enough to detect a text that is too long.
    return sys.stdin.read(MAX_TEXT_CHARS + 1)


def _bounded(key: str, text: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        raise BadJob(key, f"may have at most {MAX_TEXT_CHARS:,} characters")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise BadJob(key, "is not text in the encoding of this terminal")
    return text


# ---------------------------------------------------------------------------- where


async def _target(wish: JobOptions, control: Control) -> tuple[JobTarget | None, PeerKind | None]:
    """Return the delivery target and the kind of its chat."""
    if wish.to is None:
        return None, None
    if wish.to in tuple(TargetKind):
        return TargetKind(wish.to), PeerKind.DIRECT
    target = parse_target(wish.to)
    if target is None:
        raise typer.BadParameter(f"--to must be last, none, or {TARGET_FORM}")
    place = (target.channel, target.account, target.chat)
    for chat in await control.people.chats():
        if (chat.channel, chat.account, chat.chat) == place:
            return target, chat.peer
    return target, PeerKind.DIRECT


# ---------------------------------------------------------------------------- how


def _policy(wish: JobOptions, *, new: bool) -> dict[str, object]:
    """Return the policy keys that are given. Raises ``BadParameter`` and ``BadJob``.

    The value None means no limit for a new job; for an edit it resets the key to the settings.
    """
    policy: dict[str, object] = {}
    for key, text in _policy_pairs(wish.policy or ()):
        if text == NONE and not new:
            raise typer.BadParameter(
                f"an edit cannot remove {key}: give a large number, or {key}= to use the "
                "value in the settings"
            )
        if text:
            policy[key] = None if text == NONE else _value(key, text)
            policy_with(JobPolicy(), {key: policy[key]})
        else:
            # This reports an unknown key, although there is no value to check.
            policy_with(JobPolicy(), {key: getattr(JobPolicy(), key, None)})
            policy |= {} if new else {key: None}
    if wish.session is not None:
        policy["session"] = wish.session if wish.session in _SESSIONS else "key"
    return policy


def _policy_pairs(given: Iterable[str]) -> Iterable[tuple[str, str]]:
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"--policy must be KEY=VALUE, not {pair!r}")
        key = key.strip()
        yield FORMER_KEYS.get(key, key), value.strip()


_WORDS: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}


def _value(key: str, text: str) -> object:
    """Convert a value to the type that the policy takes; the policy validates it."""
    if key in DURATIONS:
        return text if key != "backoff" else [each.strip() for each in text.split(",")]
    if text in _WORDS:
        return _WORDS[text]
    if text.isdecimal() and len(text) <= 18:
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
