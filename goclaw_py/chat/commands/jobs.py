"""Chat commands for jobs, and buttons below reminders (CMD-5, CRON-13)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from goclaw_py.chat.commands.command import ChatCommand, CommandUse, Everybody, HelpGroup
from goclaw_py.core.chat_commands import (
    JobAction,
    JobButton,
    Pressed,
    TypedCommand,
    delete_buttons,
)
from goclaw_py.core.containers import LruCache
from goclaw_py.core.errors import (
    BadJob,
    BadSchedule,
    JobError,
    NotYours,
    SlugTaken,
    UnknownJob,
    UnknownZone,
)
from goclaw_py.core.ids import JobId, OccurrenceId
from goclaw_py.core.messages import (
    ExternalId,
    InboundMessage,
    OutboundMessage,
    Target,
    external_id,
    person_at,
)
from goclaw_py.core.targets import Maker, owner_of
from goclaw_py.core.time.texts import ChatZone
from goclaw_py.operations.jobs.models import JobChange, JobDraft, Requester, RunNow
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import GatewayJobStore, InboxRow, JobQuery
from goclaw_py.schedule.jobs import texts
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence
from goclaw_py.schedule.jobs.job_json import job_of
from goclaw_py.schedule.jobs.models import OPEN, FixedMessage, JobSpec, JobState
from goclaw_py.schedule.jobs.reminders import again_at
from goclaw_py.schedule.jobs.schedule import At

log = logging.getLogger(__name__)

LISTED = 20
"""The number of jobs in an answer."""

COMING = 3
"""The number of next jobs that ``/status`` shows."""

_LISTS = 1000
"""The number of chats whose last list is stored."""

_NOT_RUN: Mapping[RunNow, str] = {
    RunNow.ALREADY_RUNNING: texts.IS_RUNNING,
    RunNow.AT_CAPACITY: texts.NO_ROOM,
    RunNow.NO_WORK: texts.NO_WORK,
}


@dataclass(frozen=True, slots=True)
class _Ran:
    """The job whose message has the button that was pressed, as the job was at that time."""

    job: JobId
    spec: JobSpec
    due_at: datetime
    said: str
    """The text that it sent, as far as it is stored."""
    own: bool
    """Whether the job belongs to the requester; otherwise it only sent a message to their chat."""


class JobCommands:
    """Executes these commands for everybody with access: jobs of a chat belong to it.

    Every method may raise ``StoreUnavailable``.
    """

    def __init__(self, service: JobService, store: GatewayJobStore) -> None:
        self._service = service
        self._store = store
        self._lists: LruCache[Target, tuple[JobId, ...]] = LruCache(_LISTS)
        """The lists that chats saw last, because jobs may have been added or removed since."""
        self._pressed: LruCache[tuple[OccurrenceId, Target], tuple[JobAction, ExternalId]] = (
            LruCache(_LISTS)
        )
        """The press that has used the buttons of a job's message in a chat."""
        self._acts: Mapping[str, Callable[[str, Requester], Awaitable[str]]] = {
            "pause": self._pause,
            "resume": self._resume,
            "run": self._run,
        }
        self._deletes: LruCache[Target, tuple[JobId, ExternalId]] = LruCache(_LISTS)
        """The job that a chat was last asked about, and the command that wanted to delete it."""

    async def answer(self, row: InboxRow, command: TypedCommand) -> str | OutboundMessage:
        """Execute ``/jobs`` or ``/timezone``; return the answer."""
        if command.name == "timezone":
            return await self._timezone(asker(row), command.line)
        return await self._jobs(asker(row), row.message, command)

    async def press(self, row: InboxRow, button: JobButton) -> Pressed:
        """Execute a button, unless another button of the message was used."""
        there = button.occurrence, row.message.target
        this = button.action, external_id(row.message)
        first = self._pressed.get(there)
        # The same wish once more changes nothing, but for AGAIN; a crash repeats the same press.
        if first not in (None, this) and (button.action in (JobAction.AGAIN, JobAction.DONE)):
            return Pressed(texts.ANSWERED, is_used=True)
        if first is not None and first[0] is not button.action:
            return Pressed(texts.ANSWERED, is_used=True)
        pressed = await self._press(asker(row), button)
        if pressed.is_used and pressed.answer != texts.GONE:
            self._pressed[there] = this
        return pressed

    # ------------------------------------------------------------------ commands

    async def _jobs(
        self, by: Requester, message: InboundMessage, command: TypedCommand
    ) -> str | OutboundMessage:
        action, chat = command.action, message.target
        if not action:
            return await self._list(by, chat)
        if action != "delete" and action not in self._acts:
            return texts.unknown_action(action)
        asked = command.line.partition(" ")[2].strip()
        if is_number := asked.isascii() and asked.isdigit():
            numbered = self._lists.get(chat, ())
            # 0 and any other number outside of the list name no job.
            asked = dict(enumerate(numbered, 1)).get(int(asked[:9]), JobId(""))
        try:
            if not asked:
                return await self._choose(by, chat) if is_number else texts.HOW
            if action == "delete":
                return await self._delete(asked, by, message)
            return await self._acts[action](asked, by)
        except JobError as error:
            if is_number and isinstance(error, UnknownJob):
                return await self._choose(by, chat)
            if isinstance(error, UnknownJob) and error.several:
                return texts.which_one(asked, await self._list(by, chat))
            # A button names the job by its id, which says nothing to people.
            return texts.refused(error) if message.press is None else texts.NO_JOB_ANY_MORE

    async def _choose(self, by: Requester, chat: Target) -> str:
        """Return the answer to a number that names no job any more: the list, if there are any."""
        listed = await self._list(by, chat)
        return texts.list_again(listed) if self._lists[chat] else listed

    async def _timezone(self, by: Requester, named: str) -> str:
        now = self._service.clock.now()
        if not named:
            return texts.timezone(await self.zone(by), now)
        chosen = None if named.casefold() == "default" else named
        try:
            zone = await self._service.choose_zone(chosen, by)
        except UnknownZone as error:
            return texts.refused(error)
        log.info("time_zone_changed", extra={"owner": by.owner, "zone": zone})
        return texts.timezone_changed(zone, now)

    async def zone(self, by: Requester) -> ChatZone:
        """Return the time zone of a chat."""
        chosen = None if by.owner is None else await self._store.zone_of(by.owner)
        usual = self._service.rules.profile.zone or "UTC"
        return ChatZone(chosen or usual, is_chosen=chosen is not None)

    async def coming(self, row: InboxRow) -> list[str]:
        """Return the lines of ``/status`` about the next jobs."""
        query = JobQuery(states=(JobState.ACTIVE,), limit=COMING)
        page = await self._service.search(query, by := asker(row))
        zone = await self.zone(by)
        enabled = self._service.rules.enabled
        return texts.next_jobs(page.jobs, zone, self._service.clock.now(), enabled=enabled)

    async def _list(self, by: Requester, chat: Target) -> str:
        page = await self._service.search(JobQuery(states=OPEN, limit=LISTED), by)
        self._lists[chat] = tuple(job.id for job in page.jobs)
        zone, enabled = await self.zone(by), self._service.rules.enabled
        return texts.jobs(page.jobs, page.total, zone, self._service.clock.now(), enabled=enabled)

    async def _pause(self, name: str, by: Requester) -> str:
        job = await self._service.edit(name, JobChange(state=JobState.PAUSED), by)
        return texts.paused(job.spec.title)

    async def _resume(self, name: str, by: Requester) -> str:
        job = await self._service.edit(name, JobChange(state=JobState.ACTIVE), by)
        return texts.resumed(job, await self.zone(by), self._service.clock.now())

    async def _delete(
        self, name: str, by: Requester, message: InboundMessage
    ) -> str | OutboundMessage:
        """Delete a job, after a question: a second command or the button answers it."""
        job, chat, this = await self._service.get(name, by), message.target, external_id(message)
        asked, first = self._deletes.get(chat, (None, this))
        # A crash repeats the same command, which does not answer its own question.
        if message.press is None and (asked != job.id or first == this):
            self._deletes[chat] = job.id, this
            named = JobQuery(states=OPEN, name=job.spec.title, limit=LISTED)
            others = (one for one in (await self._service.search(named, by)).jobs if one != job)
            is_one = job.spec.title.casefold() not in (one.spec.title.casefold() for one in others)
            text = texts.sure_to_delete(job.spec.title, "" if is_one else job.spec.slug)
            return OutboundMessage(chat, text, buttons=delete_buttons(job.id))
        return texts.deleted((await self._service.delete(job.id, by)).spec.title)

    async def _run(self, name: str, by: Requester) -> str:
        title = (await self._service.get(name, by)).spec.title
        started = await self._service.run_now(name, by)
        if isinstance(started, RunNow):
            return _NOT_RUN.get(started) or self._off()
        if started.run is None:
            return texts.ran_now(title)
        return texts.runs_now(title)

    def _off(self) -> str:
        return texts.NOT_CARRIED_OUT if self._service.rules.enabled else texts.OFF

    # ------------------------------------------------------------------ buttons

    async def _press(self, by: Requester, button: JobButton) -> Pressed:
        ran = await self._ran(button.occurrence, by)
        if ran is None:
            return Pressed(texts.GONE, is_used=True)
        if button.action is JobAction.DONE:
            return Pressed(texts.done(ran.spec.title), is_used=True)
        if not self._service.rules.enabled:
            return Pressed(texts.OFF, is_used=False)
        try:
            if button.action is JobAction.AGAIN and ran.own:
                said = await self._run(ran.job, by)
                return Pressed(said, is_used=said not in _NOT_RUN.values())
        except UnknownJob:
            pass  # it has run and is gone: what it did is made anew
        try:
            return Pressed(await self._again(button, ran, by), is_used=True)
        except JobError as error:
            return Pressed(texts.refused(error), is_used=False)

    async def _ran(self, occurrence: OccurrenceId, by: Requester) -> _Ran | None:
        """Return the run whose message has the button; None if not stored, or of another chat.

        A message that an operator's job sent to this chat can be snoozed here too. Whether it was
        sent here is looked up, because the target of the job may be the chat used last.
        """
        try:
            return _ran(await self._service.logged(occurrence, by), own=True)
        except (UnknownJob, NotYours):
            pass
        try:
            ran = _ran(await self._service.logged(occurrence, replace(by, owner=None)), own=False)
        except UnknownJob:
            return None
        if ran is None or by.chat is None:
            return None
        return ran if await self._store.was_notified_in(occurrence, by.chat) else None

    async def _again(self, button: JobButton, ran: _Ran, by: Requester) -> str:
        """Create a new job that repeats it. Raises ``JobError``."""
        spec, action = ran.spec, button.action
        here = await self.zone(by)
        at = again_at(action, due=ran.due_at, now=self._service.clock.now(), zone=spec.zone)
        # A second press has the same name, also in another process or after a crash.
        slug = f"again-{button.occurrence.replace('-', '')}-{action}"
        try:
            await self._copy(ran, slug, at, by)
        except SlugTaken:
            there = await self._service.get(slug, by, is_slug=True)
            if there.state is JobState.ACTIVE and there.next_run_at is not None:
                at = there.next_run_at
                if action is JobAction.AGAIN:
                    return texts.IS_RUNNING
                return texts.already_snoozed(spec.title, at, here, self._service.clock.now())
            change = JobChange(schedule=At(at), state=JobState.ACTIVE)
            await self._service.edit(slug, change, by)
        if action is JobAction.AGAIN:
            return texts.runs_now(spec.title)
        return texts.snoozed(spec.title, at, here, self._service.clock.now())

    async def _copy(self, ran: _Ran, slug: str, at: datetime, by: Requester) -> None:
        """Create a copy of the job. It sends its result to the chat where the button was pressed.

        The copy does the same work only if the requester could have created the job. Otherwise
        they would get the agent or the limits of an operator's job; so the copy only sends the
        text of the message again. Raises ``JobError``.
        """
        spec = ran.spec
        said = JobDraft(At(at), _message_text(ran), slug, spec.title, spec.zone)
        if not ran.own:
            await self._service.create(said, by)
            return
        works = replace(
            said,
            payload=spec.payload,
            agent=spec.agent,
            notify=spec.notify,
            session=spec.session,
            policy=spec.policy,
        )
        try:
            await self._service.create(works, by)
        except BadJob:
            await self._service.create(said, by)


def asker(row: InboxRow) -> Requester:
    """Return the requester for the sender of a message, with the rights of its chat."""
    message = row.message
    return Requester(
        owner_of(message.target, message.peer),
        Maker.PERSON,
        row.agent,
        message.target,
        message.peer,
        person_at(message.target, message.of_whom),
    )


def _ran(logged: LoggedOccurrence, *, own: bool) -> _Ran | None:
    try:
        spec = job_of(logged.definition).spec
    except (BadJob, BadSchedule):
        return None  # an older release has written it otherwise
    return _Ran(logged.job, spec, logged.scheduled_at, logged.output, own)


def _message_text(ran: _Ran) -> FixedMessage:
    """Return the text that was sent, as a fixed message; the job's title if it is not stored."""
    payload = ran.spec.payload
    said = payload.text if isinstance(payload, FixedMessage) else ran.said
    text, _ = texts.notify_text(said, ran.spec.notify)
    return FixedMessage(text or ran.spec.title)


async def _answer(use: CommandUse) -> str | OutboundMessage:
    return await use.services.jobs.answer(use.row, use.command)


def _words_read(command: TypedCommand) -> int:
    return len(command.line.split())  # names of jobs have any number of words


COMMANDS = (
    ChatCommand("jobs", Everybody(), HelpGroup.JOBS, _answer, _words_read),
    ChatCommand("timezone", Everybody(), HelpGroup.JOBS, _answer, _words_read),
)
