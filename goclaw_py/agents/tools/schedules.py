"""The schedule tools: ``schedule_create``, ``_search``, ``_edit`` and ``_delete``.

Source: SPEC AGENT-6, CRON-2, SEC-3. They are offered to runs that may use the job service.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from goclaw_py.agents.tools.arguments import one_line
from goclaw_py.agents.tools.schedule_arguments import (
    FEW_RESULTS,
    MAX_OFFSET,
    MOST_RESULTS,
    CadenceType,
    Creation,
    Deletion,
    Edit,
    Figures,
    Search,
    bad_cadence,
    creation,
    read_cadence,
)
from goclaw_py.agents.tools.schedule_results import entry, found, in_words, made, over, written
from goclaw_py.agents.tools.tool import A, Tool
from goclaw_py.core.errors import BadMoment, ToolFailed, UnknownJob
from goclaw_py.core.targets import Maker
from goclaw_py.core.time.datetimes import any_moment
from goclaw_py.core.time.zones import zone
from goclaw_py.operations.jobs.models import JobChange, JobDraft, Requester, Unchanged
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import JobQuery
from goclaw_py.runs.toolbox import ToolContext
from goclaw_py.schedule.jobs.models import (
    MAX_NAME_CHARS,
    NOT_IN_NAMES,
    FixedMessage,
    Job,
    JobState,
    Notify,
    Payload,
    Program,
    Prompt,
)
from goclaw_py.schedule.jobs.policy import OnShort
from goclaw_py.schedule.jobs.schedule import Cron, Timing, check, spaced

_KINDS: Final[dict[CadenceType, str]] = {"cron": "cron", "once": "at", "interval": "every"}
_OVER: Final = (JobState.COMPLETED, JobState.FAILED, JobState.DISABLED)


class ScheduleTool(Tool[A]):
    """A tool that uses the job service."""

    def __init__(self, figures: Figures | None = None) -> None:
        self._figures = figures or Figures()


def service_of(here: ToolContext) -> tuple[JobService, Requester] | None:
    """Return the job service and the requester of a run; None if jobs are not available to it."""
    if here.jobs is None or here.asker is None or not here.jobs.rules.enabled:
        return None
    return here.jobs, here.asker


class ScheduleCreate(ScheduleTool[Creation]):
    """Creates a schedule."""

    name = "schedule_create"
    description = (
        "Create a scheduled task that runs once or repeatedly, each time as a separate agent turn. "
        "Returns its id and its next run times; tell the user when it runs. Without a timezone, "
        "cron expressions use the one that the user has chosen, or else the default."
    )

    def __init__(self, figures: Figures | None = None) -> None:
        super().__init__(figures)
        self.arguments = creation(self._figures)

    async def call(self, arguments: Creation, here: ToolContext) -> str:
        """Validate the arguments and store the schedule."""
        service, asker = _service(here)
        kind = arguments.cadence_type
        with in_words():
            now = await _local_now(service, asker)
            cadence = read_cadence(kind, arguments.cadence_value, now=now, figures=self._figures)
            draft = JobDraft(
                schedule=cadence,
                payload=Prompt(arguments.goal),
                name=one_line(arguments.name or ""),
                zone=(arguments.timezone or "").strip() if isinstance(cadence, Cron) else "",
                notify=Notify(arguments.notification or Notify.ALWAYS),
            )
            return written(made(await service.create(draft, asker), service))


class ScheduleSearch(ScheduleTool[Search]):
    """Lists schedules."""

    name = "schedule_search"
    description = (
        "List the user's scheduled tasks, sorted by next run time. Without filters, list all of "
        "them. Also returns the current time and the user's timezone."
    )
    side_effects = False
    arguments = Search

    async def call(self, arguments: Search, here: ToolContext) -> str:
        """Return one page of schedules."""
        service, asker = _service(here)
        limit = _within(arguments.limit, "limit", FEW_RESULTS, 1)
        offset = _within(arguments.offset, "offset", 0, 0)
        if offset > MAX_OFFSET:
            raise ToolFailed(f"offset: must be at most {MAX_OFFSET}")
        with in_words():
            now = await _local_now(service, asker)
            query = JobQuery(
                name=one_line(arguments.name or ""),
                states=(JobState(arguments.status),) if arguments.status else (),
                kinds=(_KINDS[arguments.cadence_type],) if arguments.cadence_type else (),
                notify=Notify(arguments.notification) if arguments.notification else None,
                created_after=_time("created_after", arguments.created_after, now),
                created_before=_time("created_before", arguments.created_before, now),
                next_run_before=_time("next_run_before", arguments.next_run_before, now),
                limit=min(limit, MOST_RESULTS),
                offset=offset,
            )
            page = await service.search(query, asker)
            return written(found(page, offset=offset, limit=query.limit, now=now))


class ScheduleEdit(ScheduleTool[Edit]):
    """Changes, pauses or resumes a schedule."""

    name = "schedule_edit"
    description = (
        "Change, pause or resume a scheduled task. Fields that are not given stay unchanged. "
        "Returns the task with its next run times."
    )
    arguments = Edit

    async def call(self, arguments: Edit, here: ToolContext) -> str:
        """Apply the changes, unless the schedule was changed in the meantime."""
        service, asker = _service(here)
        given = arguments.model_dump(exclude_none=True, exclude={"schedule_id"})
        if not given:
            raise ToolFailed("nothing to change: give at least one field besides schedule_id")
        if (arguments.cadence_type is None) != (arguments.cadence_value is None):
            raise bad_cadence("cadence_type and cadence_value must be given together")
        with in_words():
            before = await service.get(_id(arguments.schedule_id), asker)
            now = await _local_now(service, asker)
            change = self._change(arguments, before, now)
            self._check_spacing(change, before, service)
            return written(made(await service.edit(before.id, change, asker), service))

    def _change(self, arguments: Edit, before: Job, now: datetime) -> JobChange:
        """Return the requested changes. Raises ``ToolFailed``."""
        change = JobChange(revision=before.revision)
        kind, value = arguments.cadence_type, arguments.cadence_value
        schedule = before.spec.schedule
        if kind is not None and value is not None:
            schedule = read_cadence(kind, value, now=now, figures=self._figures)
            change = replace(change, schedule=schedule)
        if arguments.timezone is not None:
            if isinstance(schedule, Cron):
                change = replace(change, zone=arguments.timezone.strip())
            elif kind is None:
                raise bad_cadence("only a cron schedule has a timezone")
        if arguments.name is not None:
            change = replace(change, name=one_line(arguments.name))
        if arguments.goal is not None:
            change = replace(change, payload=_with_goal(before.spec.payload, arguments.goal))
        if arguments.notification is not None:
            change = replace(change, notify=Notify(arguments.notification))
        if arguments.status is not None:
            if arguments.status == "active" and before.state in _OVER and kind is None:
                raise over(before.state)
            change = replace(change, state=JobState(arguments.status))
        return change

    def _check_spacing(self, change: JobChange, before: Job, service: JobService) -> None:
        """Raise ``TooFrequent`` if a model could not create this schedule (SPEC CRON-15).

        The job service applies the limits of the job's creator, which may be higher.
        """
        schedule = (
            before.spec.schedule if isinstance(change.schedule, Unchanged) else change.schedule
        )
        name = before.spec.zone if isinstance(change.zone, Unchanged) else change.zone
        if before.maker is Maker.MODEL or (schedule, name) == (
            before.spec.schedule,
            before.spec.zone,
        ):
            return
        timing, now = Timing(schedule, name), service.clock.now()
        check(timing, now=now, cron_fields=service.rules.profile.cron_fields)
        least = timedelta(seconds=self._figures.minimum_s)
        spaced(timing, least, OnShort.REJECT, now=now)


class ScheduleDelete(ScheduleTool[Deletion]):
    """Deletes a schedule."""

    name = "schedule_delete"
    description = (
        "Delete a scheduled task permanently. To stop it temporarily, pause it with schedule_edit."
    )
    arguments = Deletion

    async def call(self, arguments: Deletion, here: ToolContext) -> str:
        """Delete the schedule and return it."""
        service, asker = _service(here)
        with in_words():
            job = await service.delete(_id(arguments.schedule_id), asker)
        return written(entry(job) | {"status": "deleted", "next_run_at": None})


@cache
def schedule_tools(figures: Figures) -> tuple[ScheduleTool[Any], ...]:
    """Return the four tools, with these values in their descriptions."""
    kinds = (ScheduleCreate, ScheduleSearch, ScheduleEdit, ScheduleDelete)
    return tuple(kind(figures) for kind in kinds)


_USES: Final = {
    ScheduleCreate.name: "Use schedule_create to set up one-off or recurring tasks.",
    ScheduleSearch.name: "Use schedule_search to find existing schedules (supports filtering and "
    "pagination).",
    ScheduleEdit.name: "Use schedule_edit to modify, pause, or resume schedules.",
    ScheduleDelete.name: "Use schedule_delete to permanently remove a schedule.",
}
_BEGIN: Final = "You can create and manage scheduled tasks that run automatically."
_END: Final = """\
Each scheduled task executes as an independent agent turn with its own context.
Write goals as complete, self-contained instructions — scheduled tasks run
without conversational history from this session."""


def guidance(names: Collection[str]) -> tuple[str, ...]:
    """Return instructions for the schedule tools that a model has; none if it has none."""
    uses = [f"- {use}" for name, use in _USES.items() if name in names]
    if not uses:
        return ()
    return ("\n".join([_BEGIN, *uses]) + f"\n\n{_END}",)


def _service(here: ToolContext) -> tuple[JobService, Requester]:
    found_service = service_of(here)
    if found_service is None:
        raise ToolFailed("schedules are not available in this run")
    return found_service


async def _local_now(service: JobService, asker: Requester) -> datetime:
    return service.clock.now().astimezone(zone(await service.zone(asker)))


def _id(given: str) -> str:
    """Return a stripped id, slug or name. Raises ``UnknownJob`` for anything else (SPEC SEC-3)."""
    asked = given.strip()
    if not asked or len(asked) > MAX_NAME_CHARS or NOT_IN_NAMES.search(asked):
        raise UnknownJob(asked)
    return asked


def _within(given: int | None, name: str, usual: int, least: int) -> int:
    if given is None:
        return usual
    if given < least:
        raise ToolFailed(f"{name}: must be at least {least}")
    return given


def _time(name: str, given: str | None, now: datetime) -> datetime | None:
    """Return the time of a filter, None without one. Raises ``ToolFailed``."""
    if given is None or not given.strip():
        return None
    try:
        return any_moment(given, now=now, zone=str(now.tzinfo))
    except BadMoment as error:
        raise ToolFailed(f"{name}: {error}") from error


def _with_goal(payload: Payload, goal: str) -> Payload:
    """Return the payload with another text. Raises ``ToolFailed`` for a program."""
    match payload:
        case Prompt():
            return replace(payload, text=goal)
        case FixedMessage():
            return FixedMessage(goal)
        case Program():
            raise ToolFailed("goal: this schedule runs a program, which only operators can change")
