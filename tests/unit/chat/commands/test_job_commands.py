"""What people in a chat do with jobs (SPEC CMD-5, CRON-4, CRON-13, SEC-3, CRON-11, CRON-2)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from goclaw_py.chat.commands.jobs import JobCommands, asker
from goclaw_py.core.chat_commands import JobAction, JobButton, command_of, job_buttons, our_command
from goclaw_py.core.errors import UnknownJob
from goclaw_py.core.ids import MAIN_AGENT, AgentName, JobId, NodeId, OccurrenceId, Owner, RunId
from goclaw_py.core.messages import Button, InboundMessage, OutboundMessage, PeerKind, Target
from goclaw_py.core.run_events import ButtonsUsed
from goclaw_py.core.targets import Maker, owner_of
from goclaw_py.core.time.clocks import new_id
from goclaw_py.operations.jobs.models import JobDraft, Requester, RunNow, StartedNow
from goclaw_py.operations.jobs.operations import JobService
from goclaw_py.records import InboxKind, InboxRow, JobQuery, Node
from goclaw_py.schedule.jobs import texts
from goclaw_py.schedule.jobs.creation import JobCreationRules
from goclaw_py.schedule.jobs.execution_models import (
    JobUpdate,
    OccurrenceClaim,
    OccurrenceEnd,
    OccurrenceStatus,
)
from goclaw_py.schedule.jobs.models import (
    OPERATOR,
    FixedMessage,
    Job,
    JobState,
    Notify,
    Payload,
    Program,
    Prompt,
    TargetKind,
)
from goclaw_py.schedule.jobs.policy import PROFILES
from goclaw_py.schedule.jobs.schedule import At, Cron, Every, Schedule
from goclaw_py.testing.clock import LoopClock
from tests.support.harness import GatewayProcess, a_process, message, session_of, until
from tests.support.memory_store import MemoryStore

ANN = Target("telegram", "default", "ann")
BOB = Target("telegram", "default", "bob")
ANNS, BOBS = owner_of(ANN, PeerKind.DIRECT), owner_of(BOB, PeerKind.DIRECT)
NODE = NodeId("a")
UNKNOWN = OccurrenceId("019b7ca9-8c88-71d9-baa8-d70b2c79b8e7")
PROFILE = PROFILES["goclaw"]

WATER = Every(timedelta(hours=2))

_rows = count(1)


@dataclass
class FakeJobRunner:
    """Runs jobs by hand; only writes down which."""

    store: MemoryStore
    ran: list[JobId] = field(default_factory=list)
    answer: RunNow | None = None
    at_once: bool = False

    async def run_now(self, job: Job) -> StartedNow | RunNow:
        if await self.store.job(job.id) is None:
            raise UnknownJob(job.id)
        if self.answer is not None:
            return self.answer
        self.ran.append(job.id)
        return StartedNow(UNKNOWN, None if self.at_once else RunId("r"))


class Chats:
    """Some chats of a gateway, with the real job service."""

    def __init__(self, rules: JobCreationRules | None = None) -> None:
        self.store = MemoryStore()
        self.clock = LoopClock()
        self.runner = FakeJobRunner(self.store)
        self.rules = rules or JobCreationRules(PROFILE)
        self.service = JobService(
            self.store, self.clock, self.rules, run_now=self.runner.run_now, gateway=self.store
        )
        self.commands = JobCommands(self.service, self.store)
        self.buttons: tuple[tuple[Button, ...], ...] = ()

    async def ask(self, said: str | InboundMessage, target: Target = ANN) -> str:
        """Type a command, or press a button; what comes back."""
        asked = replace(message(said), target=target) if isinstance(said, str) else said
        command = our_command(asked.text) if asked.press is None else command_of(asked, None)
        assert command is not None
        if isinstance(command, JobButton):
            return (await self.commands.press(row(asked), command)).answer
        answer = await self.commands.answer(row(asked), command)  # type: ignore[arg-type]
        self.buttons = () if isinstance(answer, str) else answer.buttons
        return answer if isinstance(answer, str) else answer.text

    async def delete(self, asked: str) -> str:
        """Delete a job by a command and, after the question, the same command."""
        assert "? It cannot be restored." in await self.ask(f"/jobs delete {asked}")
        return await self.ask(f"/jobs delete {asked}")

    async def press(self, action: JobAction, occurrence: OccurrenceId, target: Target = ANN) -> str:
        """Press a button as the chat shows it."""
        return await self.ask(pressed(action, job_buttons(occurrence), target))

    async def make(
        self,
        schedule: Schedule,
        name: str = "tea",
        payload: Payload | None = None,
        *,
        target: Target | TargetKind = ANN,
        by: Requester | None = None,
        **more: object,
    ) -> Job:
        """A job of a chat, as its model would make it."""
        own = target if isinstance(target, Target) else ANN
        chat = by or Requester(owner_of(own, PeerKind.DIRECT), Maker.MODEL, MAIN_AGENT, own)
        drawn = JobDraft(schedule, payload or FixedMessage("Drink tea"), name=name, target=target)
        return await self.service.create(replace(drawn, **more), chat)  # type: ignore[arg-type]

    async def happened(
        self,
        job: Job,
        *,
        deleted: bool = True,
        status: OccurrenceStatus = OccurrenceStatus.OK,
        output: str = "",
        told: Target | None = None,
    ) -> OccurrenceClaim:
        """Let a job become due, run and end; it tells its ``output`` where it says, or ``told``."""
        assert job.next_run_at is not None
        await asyncio.sleep((job.next_run_at - self.clock.now()).total_seconds())
        now = self.clock.now()
        if not await self.store.nodes():
            await self.store.join(Node(NODE, "host", 1, "1.0", now, now + timedelta(days=9)))
        fresh = [OccurrenceId(new_id(self.clock)) for _ in range(9)]
        claims = await self.store.claim_due(NODE, now=now, ids=fresh)
        (claimed,) = [one for one in claims if one.job.id == job.id]
        state = JobState.COMPLETED if status is OccurrenceStatus.OK else JobState.FAILED
        update = JobUpdate(None, state, ran=True, delete=deleted)
        end = OccurrenceEnd(claimed.id, job.id, job.revision, status, now, update, output=output)
        target = told or job.spec.target
        say = (OutboundMessage(target, "⏰ …"),) if isinstance(target, Target) else ()
        await self.store.end_occurrence(end, say, node=NODE)
        return claimed

    async def reminded(self, *, deleted: bool = True, **more: Any) -> OccurrenceId:
        """Let a reminder come that is made as ``make`` makes it."""
        return (await self.happened(await self.make(self.soon(), **more), deleted=deleted)).id

    async def snoozed(self, occurrence: OccurrenceId) -> Job:
        """Snooze it for ten minutes; the only job that ann has then."""
        answer = await self.press(JobAction.SNOOZE_10M, occurrence)
        assert answer.startswith("💤 I will remind you of ")
        (again,) = await self.all(ANNS)
        return again

    async def all(self, owner: Owner | None = None) -> list[Job]:
        """Every job there is, of one owner or of all."""
        return list((await self.store.jobs(JobQuery(owner=owner))).jobs)

    def soon(self, seconds: float = 60) -> At:
        """A schedule that is due in a moment."""
        return At(self.clock.now() + timedelta(seconds=seconds))


def row(asked: InboundMessage) -> InboxRow:
    session, now = session_of(asked.target.chat), datetime.now(UTC)
    return InboxRow(next(_rows), asked, session, MAIN_AGENT, InboxKind.COMMAND, 0, now)


def pressed(
    action: JobAction, buttons: Sequence[Sequence[Button]], target: Target = ANN
) -> InboundMessage:
    """A press of the button with an action among those below a message."""
    (button,) = [one for line in buttons for one in line if f":{action}:" in one.data]
    return replace(message(button.text), target=target, press=button.data)


@pytest.fixture
async def chats() -> Chats:
    return Chats()


def test_who_speaks_in_a_chat_asks_as_that_chat() -> None:
    """SPEC SEC-3: whatever thread and whoever it is."""
    in_group = message("/jobs", chat="-5", sender="ann", peer=PeerKind.GROUP)
    asked = replace(in_group, target=Target("telegram", "work", "-5", "7"))
    by = asker(row(asked))
    assert by.owner == "telegram.work:group:-5"
    assert (by.maker, by.agent, by.chat) == (Maker.PERSON, MAIN_AGENT, asked.target)
    assert by.peer is PeerKind.GROUP


async def test_jobs_lists_what_is_the_chats_own_and_nothing_else(chats: Chats) -> None:
    assert await chats.ask("/jobs") == texts.NO_JOBS
    await chats.make(WATER, "water")
    await chats.make(Cron("0 9 * * 1-5"), "news")
    await chats.make(Cron("0 9 * * 1-5"), "secret", target=BOB)
    await chats.make(Cron("0 9 * * 1-5"), "backup", by=Requester(None))
    first, second, _, how = (await chats.ask("/jobs")).splitlines()
    assert first.startswith("1. water: ")
    assert second.startswith("2. news: ")
    assert how == texts.HOW


async def test_at_most_twenty_are_shown_and_the_others_counted(chats: Chats) -> None:
    for number in range(23):
        await chats.make(Every(timedelta(hours=2 + number)), f"n{number}")
    lines = (await chats.ask("/jobs")).splitlines()
    assert lines[19].startswith("20. n19: ")
    assert lines[20] == "… and 3 more."


async def test_what_is_done_is_not_listed_but_what_has_failed_is(chats: Chats) -> None:
    """SPEC CRON-9: both are kept."""
    await chats.reminded(name="done", deleted=False)
    assert await chats.ask("/jobs") == texts.NO_JOBS
    broken = await chats.make(chats.soon(), "broken")
    await chats.happened(broken, deleted=False, status=OccurrenceStatus.FAILED)
    first, *_ = (await chats.ask("/jobs")).splitlines()
    assert first.startswith("1. broken: ")
    assert "; failed" in first


async def test_a_number_pauses_resumes_runs_and_deletes(chats: Chats) -> None:
    job = await chats.make(WATER, "water")
    await chats.ask("/jobs")
    assert await chats.ask("/jobs pause 1") == "“water” is paused."
    assert (await chats.service.get("water", Requester(None))).state is JobState.PAUSED
    assert "; paused" in await chats.ask("/jobs")
    assert (await chats.ask("/jobs resume 1")).startswith("“water” is active. It runs next ")
    assert await chats.ask("/jobs run 1") == "Started “water”."
    assert chats.runner.ran == [job.id]
    assert await chats.delete("1") == "Deleted “water”."
    assert await chats.all() == []


async def test_a_number_means_what_it_meant_in_the_list_that_was_shown(chats: Chats) -> None:
    """Else a job that has come or gone since would let the wrong one be deleted."""
    await chats.make(WATER, "water")
    await chats.make(Every(timedelta(hours=3)), "news")
    await chats.ask("/jobs")
    await chats.make(Every(timedelta(hours=1)), "first now")
    assert await chats.delete("1") == "Deleted “water”."
    assert await chats.delete("2") == "Deleted “news”."
    assert [job.spec.name for job in await chats.all()] == ["first now"]
    _, *lines = (await chats.ask("/jobs delete 1")).splitlines()
    assert lines[0].startswith("1. first now: "), "the list as it is, and no id of what has gone"
    assert await chats.delete("1") == "Deleted “first now”."
    assert await chats.ask("/jobs delete 1") == texts.NO_JOBS


async def test_a_number_without_a_list_is_answered_with_the_list(chats: Chats) -> None:
    """After a restart nobody knows which list somebody has before them."""
    await chats.make(WATER, "water")
    answer = await chats.ask("/jobs delete 1")
    assert answer.splitlines()[1].startswith("1. water: ")
    assert (await chats.ask("/jobs delete 1", BOB)).endswith(texts.NO_JOBS), "each chat has its own"
    assert len(await chats.all()) == 1
    assert await chats.delete("1") == "Deleted “water”."


async def test_a_job_is_deleted_after_a_question_about_this_job(chats: Chats) -> None:
    """CMD-5: it cannot be undone. A crash repeats the same command, which answers nothing."""
    await chats.make(WATER, "water")
    await chats.make(WATER, "news")
    first = message("/jobs delete water")
    for _ in range(2):
        assert (await chats.ask(first)).startswith("Delete “water”? ")
    assert (await chats.ask("/jobs delete news")).startswith("Delete “news”? ")
    assert (await chats.ask("/jobs delete water")).startswith("Delete “water”? "), "asked last"
    assert len(await chats.all()) == 2
    ((button,),) = chats.buttons
    assert len(button.data) <= 64
    press = replace(message(button.text), target=ANN, press=button.data)
    assert await chats.ask(replace(press, target=BOB)) == texts.NO_JOB_ANY_MORE
    assert await chats.ask(press) == "Deleted “water”."
    assert await chats.ask(press) == texts.NO_JOB_ANY_MORE, "found by use: it said the id"
    assert [job.spec.name for job in await chats.all()] == ["news"]


async def test_another_number_or_word_finds_nothing(chats: Chats) -> None:
    await chats.make(WATER, "water")
    await chats.ask("/jobs")
    for number in ("0", "2", "21", "9" * 5000, "00"):
        assert "\n1. water: " in await chats.ask(f"/jobs delete {number}")
    for word in ("wat", "-1", "²", "٣", "../x", "%", "x" * 5000):
        answer = await chats.ask(f"/jobs delete {word}")
        assert answer.startswith("There is no job “")
        assert len(answer) < 100
    assert await chats.delete("WATER") == "Deleted “water”."


async def test_a_chat_without_jobs_is_not_asked_to_choose_one(chats: Chats) -> None:
    assert await chats.ask("/jobs pause 9") == texts.NO_JOBS


async def test_a_finished_job_takes_no_precedence_over_open_ones_of_its_name(chats: Chats) -> None:
    """CRON-11: a name that several open jobs have is a question, which lists them by slug."""
    finished = await chats.make(chats.soon(), "stretch")
    await chats.happened(finished, deleted=False)
    await chats.make(WATER, "Stretch")
    assert await chats.ask("/jobs pause stretch") == "“Stretch” is paused."
    await chats.make(WATER, "Stretch", FixedMessage("legs"))
    answer = await chats.ask("/jobs delete stretch")
    question, *lines = answer.splitlines()
    assert question == "Which “stretch” do you mean? Please use its number:"
    assert [line.split(":")[0] for line in lines[:2]] == [
        "1. Stretch (stretch-3)",
        "2. Stretch (stretch-2)",
    ]
    assert len(await chats.all()) == 3
    sure = await chats.ask("/jobs delete 2")
    assert sure.startswith("Delete “Stretch” (stretch-2)? "), "found by use: which one?"
    assert await chats.delete("1") == "Deleted “Stretch”."
    assert await chats.delete("stretch") == "Deleted “Stretch”."
    assert [job.id for job in await chats.all()] == [finished.id]
    assert await chats.delete("stretch") == "Deleted “stretch”."


async def test_operators_select_an_open_job_by_its_slug_whatever_others_are_called(
    chats: Chats,
) -> None:
    finished = await chats.make(chats.soon(), "tea")
    await chats.happened(finished, deleted=False)
    operator = Requester(None)
    assert (await chats.service.get("tea", operator)).id == finished.id
    second = await chats.make(WATER, "Tea")
    assert (await chats.service.get("tea", operator)).id == second.id
    assert (await chats.service.get("tea", operator, is_slug=True)).id == finished.id
    await chats.make(WATER, "Tea")
    with pytest.raises(UnknownJob, match=r"job 'tea' is not unique: tea-2 \(.*, tea-3 \("):
        await chats.service.get("tea", operator)
    assert (await chats.service.get("tea-2", operator)).id == second.id


async def test_a_foreign_job_is_no_job_by_name_or_by_id(chats: Chats) -> None:
    secret = await chats.make(WATER, "secret", target=BOB)
    for asked in (secret.spec.slug, secret.id, secret.id[:13]):
        for action in ("pause", "resume", "run", "delete"):
            answer = await chats.ask(f"/jobs {action} {asked}")
            assert answer == f"There is no job “{asked}”."
    assert (await chats.all())[0].state is JobState.ACTIVE
    assert chats.runner.ran == []


async def test_half_a_command_tells_how_it_goes(chats: Chats) -> None:
    for text in ("/jobs burn", "/jobs 1"):
        assert (await chats.ask(text)).startswith(f"There is no command “{text}”. ")
    assert (await chats.ask("/jobs pause")).startswith(texts.HOW)


async def test_a_run_that_does_not_begin_says_why(chats: Chats) -> None:
    await chats.make(WATER, "water")
    for chats.runner.answer, words in (
        (RunNow.ALREADY_RUNNING, texts.IS_RUNNING),
        (RunNow.AT_CAPACITY, texts.NO_ROOM),
        (RunNow.NO_WORK, texts.NO_WORK),
        (RunNow.OFF, texts.NOT_CARRIED_OUT),
    ):
        assert await chats.ask("/jobs run water") == words


async def test_what_cannot_be_resumed_says_why(chats: Chats) -> None:
    reminder = await chats.make(chats.soon())
    await chats.happened(reminder, deleted=False)
    assert (await chats.ask(f"/jobs resume {reminder.spec.slug}")).endswith(".")
    assert (await chats.service.get(reminder.id, Requester(None))).state is JobState.COMPLETED


async def test_the_status_names_the_three_jobs_that_run_next(chats: Chats) -> None:
    asked = row(message("/status"))
    assert await chats.commands.coming(asked) == []
    for number in (4, 2, 3, 1):
        await chats.make(Every(timedelta(hours=number)), f"n{number}")
    await chats.make(Every(timedelta(minutes=5)), "foreign", target=BOB)
    await chats.make(Every(timedelta(minutes=5)), "quiet", paused=True)
    head, *lines, zone = await chats.commands.coming(asked)
    assert head == "Next jobs:"
    assert [line.split(":")[0] for line in lines] == ["- n1", "- n2", "- n3"]
    assert zone.startswith("Times are in UTC.")


async def test_a_chat_chooses_its_time_zone_and_reads_its_clock(chats: Chats) -> None:
    """SPEC CMD-5, CRON-1."""
    not_chosen = "You have not chosen a time zone. Times are in UTC, where it is Fri 03:04."
    assert (await chats.ask("/timezone")).startswith(not_chosen)
    answer = await chats.ask("/timezone Asia/Kolkata")
    assert answer.startswith("Your time zone is now Asia/Kolkata, where it is Fri 08:34.")
    assert (await chats.ask("/timezone")).startswith("Your time zone is Asia/Kolkata, ")
    assert (await chats.ask("/timezone", BOB)).startswith(not_chosen)
    assert (await chats.make(Cron("0 9 * * *"))).spec.zone == "Asia/Kolkata"
    assert (await chats.ask("/timezone Default")).startswith("Your time zone is now UTC, ")


async def test_what_is_no_zone_is_refused_with_a_hint(chats: Chats) -> None:
    for zone in ("Berlin", "CEST", "+02:00", "../etc/passwd", "x" * 3000):
        answer = await chats.ask(f"/timezone {zone}")
        assert answer.startswith("Unknown time zone ")
        assert "(" in answer
        assert len(answer) < 250
    assert (await chats.ask("/timezone")).startswith("You have not chosen a time zone. ")


async def test_where_jobs_are_switched_off_they_can_only_be_edited() -> None:
    chats = Chats(JobCreationRules(PROFILE, enabled=False))
    assert await chats.ask("/jobs") == texts.OFF
    ran = await chats.reminded()
    await chats.make(WATER, "water")
    assert (await chats.ask("/jobs")).splitlines()[0] == texts.OFF
    assert await chats.ask("/jobs run water") == texts.OFF
    assert await chats.commands.coming(row(message("/status"))) == [texts.OFF]
    for action in (JobAction.SNOOZE_10M, JobAction.AGAIN):
        assert await chats.press(action, ran) == texts.OFF
    assert [job.spec.name for job in await chats.all()] == ["water"]
    assert await chats.ask("/jobs pause water") == "“water” is paused."
    assert await chats.delete("water") == "Deleted “water”."


@pytest.mark.parametrize(
    ("action", "after", "day"),
    [
        (JobAction.SNOOZE_10M, timedelta(minutes=10), "today"),
        (JobAction.SNOOZE_1H, timedelta(hours=1), "today"),
        (JobAction.SNOOZE_TOMORROW, timedelta(days=1), "tomorrow"),
    ],
)
async def test_a_snooze_makes_the_same_reminder_again_where_its_button_was_pressed(
    chats: Chats, action: JobAction, after: timedelta, day: str
) -> None:
    """SPEC CRON-13, CRON-14, CRON-17."""
    await chats.ask("/timezone Asia/Kolkata")
    policy = {"session": "fresh", "retries": 1}
    ran = await chats.reminded(name="Tea time", payload=Prompt("Say tea"), policy=policy)
    thread, before = replace(ANN, thread="7"), chats.clock.now()
    answer = await chats.press(action, ran, thread)
    assert answer.startswith(f"💤 I will remind you of “Tea time” again {day} ")
    (again,) = await chats.all()
    spec = again.spec
    assert again.next_run_at == before + after
    assert (spec.title, spec.payload, spec.policy) == ("Tea time", Prompt("Say tea"), policy)
    assert (spec.zone, spec.target) == ("Asia/Kolkata", thread)
    assert (again.owner, again.maker) == (ANNS, Maker.PERSON)


@pytest.mark.parametrize("action", [a for a in JobAction if a is not JobAction.DONE])
async def test_a_second_press_makes_no_second_reminder(chats: Chats, action: JobAction) -> None:
    """SPEC CRON-13, NODE-1: also to another process."""
    ran = await chats.reminded()
    await chats.press(action, ran)
    (once,) = await chats.all()
    await asyncio.sleep(0.5)
    assert "already" in await chats.press(action, ran)
    elsewhere = JobService(chats.store, chats.clock, JobCreationRules(PROFILE))
    chats.commands = JobCommands(elsewhere, chats.store)
    assert "already" in await chats.press(action, ran)
    assert await chats.all() == [once]


@pytest.mark.parametrize("second", [JobAction.SNOOZE_TOMORROW, JobAction.AGAIN, JobAction.DONE])
async def test_the_buttons_of_a_reminder_act_once(chats: Chats, second: JobAction) -> None:
    ran = await chats.reminded()
    await chats.press(JobAction.SNOOZE_10M, ran)
    assert await chats.press(second, ran) == texts.ANSWERED
    assert len(await chats.all()) == 1


async def test_a_press_that_a_crash_repeats_does_the_same(chats: Chats) -> None:
    """SPEC IO-2."""
    press = pressed(JobAction.DONE, job_buttons(await chats.reminded()))
    assert await chats.ask(press) == await chats.ask(press) == "✅ Done: tea"
    assert await chats.all() == []


async def test_buttons_stay_when_a_press_could_not_be_carried_out() -> None:
    """SPEC CRON-15."""
    chats = Chats(JobCreationRules(PROFILE, most=1))
    ran = await chats.reminded()
    await chats.make(WATER, "water")
    press = row(pressed(JobAction.SNOOZE_10M, job_buttons(ran)))
    result = await chats.commands.press(press, JobButton(JobAction.SNOOZE_10M, ran))
    assert result.answer == "The limit of 1 job is reached. Delete a job first."
    assert not result.is_used


async def test_a_press_after_the_snoozed_one_is_over_snoozes_again(chats: Chats) -> None:
    """SPEC CRON-13: oxydra and halo keep what has run."""
    ran = await chats.reminded()
    once = await chats.snoozed(ran)
    for state in (JobState.COMPLETED, JobState.PAUSED):
        if state is JobState.PAUSED:
            await chats.ask(f"/jobs pause {once.spec.slug}")
        else:
            await chats.happened(once, deleted=False)
        due = chats.clock.now() + timedelta(minutes=10)
        again = await chats.snoozed(ran)
        assert (again.id, again.state, again.next_run_at) == (once.id, JobState.ACTIVE, due)


async def test_a_snoozed_reminder_can_be_snoozed_in_its_turn(chats: Chats) -> None:
    first = await chats.snoozed(await chats.reminded())
    second = await chats.snoozed((await chats.happened(first)).id)
    assert (second.spec.title, second.spec.payload) == (first.spec.title, first.spec.payload)


async def test_again_runs_the_job_itself_while_there_is_one(chats: Chats) -> None:
    job = await chats.make(chats.soon())
    ran = await chats.happened(job, deleted=False)
    chats.runner.at_once = True
    assert await chats.press(JobAction.AGAIN, ran.id) == "“tea” has run."
    assert chats.runner.ran == [job.id]
    assert len(await chats.all()) == 1


async def test_again_makes_a_job_of_the_next_second_when_it_is_gone(chats: Chats) -> None:
    ran, before = await chats.reminded(), chats.clock.now()
    assert await chats.press(JobAction.AGAIN, ran) == "Started “tea”."
    (again,) = await chats.all()
    assert again.next_run_at == before + timedelta(seconds=1)
    assert chats.runner.ran == []


async def test_a_button_of_something_unknown_or_foreign_gets_one_polite_line(chats: Chats) -> None:
    """SPEC SEC-3: what a press brings can be made up."""
    bobs = [await chats.reminded(target=BOB, deleted=deleted) for deleted in (True, False)]
    operators = await chats.reminded(target=BOB, by=Requester(None))
    for action in JobAction:
        for ran in (UNKNOWN, *bobs, operators):
            assert await chats.press(action, ran) == texts.GONE
    assert await chats.all(ANNS) == []
    assert chats.runner.ran == []


async def test_what_an_operators_job_has_said_here_can_be_snoozed_here(chats: Chats) -> None:
    """SPEC CRON-13: a button that is shown works."""
    policy = {"usd": 9, "retries": 0}
    operators = await chats.make(chats.soon(), "Standup", by=Requester(None), policy=policy)
    assert operators.owner == OPERATOR
    again = await chats.snoozed((await chats.happened(operators, deleted=False)).id)
    assert (again.maker, again.spec.payload) == (Maker.PERSON, FixedMessage("Drink tea"))
    assert again.spec.policy == {}, "what operators grant to their jobs is theirs"


async def test_an_operators_job_is_run_by_no_button_but_says_it_again(chats: Chats) -> None:
    ran = await chats.reminded(by=Requester(None), deleted=False)
    assert await chats.press(JobAction.AGAIN, ran) == "Started “tea”."
    assert chats.runner.ran == []
    assert len(await chats.all(ANNS)) == 1


"""An operator who makes a job for a chat, with limits of its own."""


@pytest.mark.parametrize(
    ("job", "output", "says"),
    [
        ({"payload": Program(("backup", "--all"))}, "All is saved.", "All is saved."),
        ({"payload": Prompt("Fine?", "openai:best"), "agent": AgentName("ops")}, "Yes.", "Yes."),
        ({"payload": Prompt("?"), "notify": Notify.CONDITIONAL}, "[NOTIFY] It rains.", "It rains."),
        # An operator can make a job for a chat, with limits of its own.
        ({"payload": Prompt("?"), "policy": {"turns": 500}, "by": Requester(ANNS)}, "No.", "No."),
    ],
    ids=["program", "another agent and model", "conditional", "granted to the chat"],
)
@pytest.mark.parametrize("action", [JobAction.SNOOZE_10M, JobAction.AGAIN])
async def test_of_what_a_chat_could_not_make_itself_only_the_words_come_again(
    chats: Chats, action: JobAction, job: dict[str, Any], output: str, says: str
) -> None:
    """SPEC CRON-0, CRON-13, SEC-3."""
    made = await chats.make(chats.soon(), **{"by": Requester(None), **job})
    ran = await chats.happened(made, output=output)
    await chats.press(action, ran.id)
    (again,) = await chats.all(ANNS)
    spec = again.spec
    assert (spec.payload, spec.policy, spec.agent) == (FixedMessage(says), {}, MAIN_AGENT)
    assert spec.notify is Notify.ALWAYS
    assert "already" in await chats.press(action, ran.id)
    assert chats.runner.ran == []


async def test_buttons_work_where_a_job_was_told_for_whoever_spoke_last(chats: Chats) -> None:
    """SPEC CRON-13: in a thread, too."""
    for action in JobAction:
        job = await chats.make(chats.soon(), by=Requester(None), target=TargetKind.LAST)
        ran = await chats.happened(job, deleted=False, told=replace(ANN, thread="7"))
        assert await chats.press(action, ran.id) != texts.GONE
        assert await chats.press(action, ran.id, BOB) == texts.GONE
    assert await chats.all(BOBS) == []


async def test_a_definition_that_cannot_be_read_is_unknown(chats: Chats) -> None:
    """An older release may have written it."""
    ran = await chats.reminded()
    logs = chats.store._db.cron.logs
    logs[ran] = replace(logs[ran], definition={"spec": 7})
    assert await chats.press(JobAction.SNOOZE_10M, ran) == texts.GONE


async def reminded(gateway: GatewayProcess) -> OutboundMessage:
    """The message of a reminder, as it stands in the chat."""
    service = gateway.container.job_module.service
    soon = At(service.clock.now() + timedelta(seconds=5))
    by = Requester(ANNS, Maker.MODEL, MAIN_AGENT, ANN)
    await service.create(JobDraft(soon, FixedMessage("Drink tea"), name="Tea time"), by)
    await gateway.channel.until_sent(len(gateway.channel.sent) + 1)
    return gateway.channel.sent[-1]


async def press(gateway: GatewayProcess, below: OutboundMessage, action: JobAction) -> str:
    """Press one of its buttons; what comes back."""
    known = len(gateway.channel.texts())
    await gateway.gateway.accept([replace(pressed(action, below.buttons), reply_to="7")])
    await until(lambda: len(gateway.channel.texts()) > known)
    return gateway.channel.texts()[known]


async def test_a_reminder_is_snoozed_and_comes_again_with_buttons_of_its_own() -> None:
    """SPEC CMD-5, CRON-13: no press and no command is a question for the agent."""
    async with a_process() as gateway:
        assert await gateway.ask("/jobs") == texts.NO_JOBS
        assert (await gateway.ask("/timezone UTC")).startswith("Your time zone is now ")
        first = await reminded(gateway)
        assert first.text == "⏰ Drink tea"
        answer = await press(gateway, first, JobAction.SNOOZE_10M)
        assert answer.startswith("💤 I will remind you of “Tea time” again ")
        assert "; next" not in await gateway.ask("/jobs")
        assert "- Tea time: today 03:14\n" in await gateway.ask("/status")
        before = gateway.clock.now()
        await until(lambda: gateway.channel.texts()[-1] == "⏰ Drink tea", within_s=601)
        assert gateway.clock.now() - before > timedelta(minutes=9)
        second = gateway.channel.sent[-1]
        assert await press(gateway, second, JobAction.DONE) == "✅ Done: Tea time"
        assert await press(gateway, first, JobAction.DONE) == texts.ANSWERED
        used = [one for one in gateway.channel.signals if isinstance(one, ButtonsUsed)]
        assert {(one.target, one.message) for one in used} == {(first.target, "7")}
        for action in JobAction:
            await press(gateway, second, action)
        assert gateway.scripted.prompts == []


async def test_the_same_press_that_comes_again_is_answered_once() -> None:
    """SPEC IO-1."""
    async with a_process() as gateway:
        press = pressed(JobAction.DONE, (await reminded(gateway)).buttons)
        for _ in range(3):
            await gateway.gateway.accept([press])
        await asyncio.sleep(60)
        assert gateway.channel.texts() == ["⏰ Drink tea", "✅ Done: Tea time"]


async def test_while_the_database_is_away_a_press_waits_and_makes_one_reminder() -> None:
    """SPEC DB-4, CRON-13: also if only the answer to the commit was lost."""
    async with a_process() as gateway:
        below = await reminded(gateway)
        gateway.store.lose_answer["add_job"] = 1
        answer = await press(gateway, below, JobAction.SNOOZE_1H)
        assert answer.startswith("💤 “Tea time” is already snoozed until ")
        coming = JobQuery(states=(JobState.ACTIVE,))
        service = gateway.container.job_module.service
        assert (await service.search(coming, Requester(None))).total == 1
