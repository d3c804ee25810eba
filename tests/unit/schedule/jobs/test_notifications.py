"""Who reads what a job says, and who reads that it has failed.

SPEC CRON-13, SEC-3, CRON-8, CRON-9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from goclaw_py.core.display_names import short_id
from goclaw_py.core.errors import AgentError, ChatGone, TopicGone
from goclaw_py.core.ids import Owner
from goclaw_py.core.messages import PeerKind, Target, TopicChanged, TopicState
from goclaw_py.core.targets import Maker, owner_of
from goclaw_py.operations.jobs.models import JobChange, Requester
from goclaw_py.runs.agent_loop import RunRequest
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence, OccurrenceStatus
from goclaw_py.schedule.jobs.models import Job, JobState, JobTarget, Notify, TargetKind
from goclaw_py.schedule.jobs.schedule import Schedule
from goclaw_py.testing.agents import Block, Fail, Say, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, Ways, a_process, message, session_of, until
from tests.support.jobs import (
    ANN,
    OPERATOR,
    Wanted,
    at,
    every,
    log_of,
    make,
    service,
    setup,
    stored,
)

BROKEN = AgentError("I have no key.", "401")
BY_ANN = Requester(owner_of(ANN, PeerKind.DIRECT), Maker.PERSON)
CREW = Target("telegram", "default", "-7")
BY_CREW = Requester(owner_of(CREW, PeerKind.GROUP), Maker.PERSON)
NOWHERE = (TargetKind.NONE, TargetKind.LAST)


def broken() -> ScriptedAgent:
    """An agent that answers people and fails in jobs."""

    def answer(request: RunRequest) -> Step:
        return Fail(BROKEN) if request.prompt == "report" else Say("hi")

    return ScriptedAgent(otherwise=answer)


def wanted(
    schedule: Schedule, target: JobTarget, notify: Notify = Notify.ALWAYS, **policy: object
) -> Wanted:
    return Wanted(schedule, target=target, notify=notify, policy=tuple(policy.items()))


async def in_group(gateway: GatewayProcess, thread: str, chat: str) -> None:
    """Somebody says something in a thread of a group, and is answered."""
    said = message("hello", chat=chat, sender="cleo", thread=thread, peer=PeerKind.GROUP)
    known = len(gateway.channel.sent)
    await gateway.gateway.accept([said])
    await gateway.channel.until_sent(known + 1)


def told(gateway: GatewayProcess, chat: str, word: str = "job") -> list[str]:
    """What a chat was told of the job."""
    return [text for text in gateway.channel.texts(chat) if f"“{word}”" in text]


@pytest.mark.parametrize(("by", "spoken", "place"), [
    (BY_ANN, [("ann", ""), ("bob", "")], ANN),
    # Who never spoke to the agent gets the result all the same.
    (BY_ANN, [("bob", "")], ANN),
    (BY_CREW, [("-7", "1"), ("-7", "2"), ("-8", "3")], replace(CREW, thread="2")),
])  # fmt: skip
async def test_a_result_goes_to_the_last_place_of_its_owner_not_to_who_spoke_last(
    by: Requester, spoken: list[tuple[str, str]], place: Target
) -> None:
    """SPEC CRON-13, SEC-3."""
    async with a_process() as gateway:
        await make(gateway, wanted(at(600), TargetKind.LAST), by)
        for chat, thread in spoken:
            await (in_group(gateway, thread, chat) if thread else gateway.ask("hello", chat=chat))
            # Instants tell which one was the last.
            await asyncio.sleep(1)
        await gateway.channel.until_sent(len(spoken) + 1)
        assert [sent.target for sent in gateway.channel.sent[len(spoken) :]] == [place]
        assert "re: report" in gateway.channel.sent[-1].text


async def test_the_result_of_an_owner_that_is_no_chat_goes_nowhere() -> None:
    async with a_process() as gateway:
        await gateway.ask("hello", chat="bob")
        by = Requester(Owner("elsewhere"), Maker.PERSON)
        job = await make(gateway, wanted(every(600), TargetKind.LAST), by)
        await asyncio.sleep(700)
        assert (await stored(gateway, job)).runs == 1
        # Owners are told of it, without its text.
        hello, line = gateway.channel.texts()
        assert (hello, "re: report" in line) == ("re: hello", False)


async def log_row(gateway: GatewayProcess, job: Job) -> LoggedOccurrence:
    (row,) = await log_of(gateway, job)
    return row


@pytest.mark.parametrize("message", [True, False])
async def test_a_result_without_a_chat_is_kept_until_there_is_one(*, message: bool) -> None:
    async with a_process(ScriptedAgent(otherwise=lambda _: Say("Tea!"))) as gateway:
        wish = Wanted(at(60), "Tea!", message=message, target=TargetKind.LAST)
        job = await make(gateway, wish)
        await asyncio.sleep(70)
        row = await log_row(gateway, job)
        nobody = "no owner has spoken to this agent where it could answer"
        assert (row.status, row.error, row.output) == (OccurrenceStatus.NO_ROUTE, nobody, "Tea!")
        kept = await stored(gateway, job)
        assert (kept.state, kept.last_status) == (JobState.COMPLETED, "no_route")
        (warning,) = gateway.container.job_module.warnings()
        assert str(warning) == f"The result of job job could not be delivered: {nobody}"
        assert warning.command == f"goclaw jobs runs {short_id(job.id)}"
        await gateway.ask("hello", chat="bob")
        await asyncio.sleep(5)
        (text,) = told(gateway, "bob")
        assert text.endswith("Tea!")
        assert gateway.container.job_module.warnings() == ()
        await asyncio.sleep(100)
        assert len(told(gateway, "bob")) == 1


async def test_a_result_for_a_channel_that_is_gone_is_told_to_the_owners() -> None:
    async with a_process() as gateway:
        await gateway.ask("hello", chat="bob")
        gone = Target("discord", "default", "7")
        job = await make(gateway, Wanted(at(60), "Tea!", message=True, target=gone))
        await asyncio.sleep(70)
        row = await log_row(gateway, job)
        assert (row.status, row.error) == (OccurrenceStatus.NO_ROUTE, "this channel is not set up")
        assert told(gateway, "bob")[0].endswith("Tea!")


@pytest.mark.parametrize(
    ("by", "target", "with_text"),
    [(OPERATOR, ANN, True), (OPERATOR, TargetKind.LAST, True), (BY_ANN, TargetKind.LAST, False)],
)
async def test_a_result_that_its_chat_refuses_is_told_in_another_one(
    by: Requester, target: JobTarget, *, with_text: bool
) -> None:
    """SPEC CRON-9, SEC-3: what belongs to a chat is for nobody else."""
    async with a_process() as gateway:
        await gateway.ask("hello", chat="bob")
        await asyncio.sleep(1)
        await gateway.ask("hello", chat="ann")
        gateway.channel.fail(ChatGone("bot was blocked by the user"), chat="ann")
        job = await make(gateway, Wanted(at(60), "Tea!", message=True, target=target), by)
        await asyncio.sleep(70)
        row = await log_row(gateway, job)
        assert row.status is OccurrenceStatus.UNDELIVERED
        assert "blocked" in row.error
        (text,) = told(gateway, "bob")
        assert "could not be delivered: a private chat on Telegram had blocked the bot." in text
        assert ("Tea!" in text) is with_text
        assert await gateway.store.job(job.id) is not None
        assert told(gateway, "ann") == []


async def test_each_chat_that_is_told_of_a_refused_result_remembers_it_once() -> None:
    """SPEC AGENT-7: the agent knows in each chat what was said there, and nothing else."""
    async with a_process() as gateway:
        for chat in ("ann", "bob", "cleo"):
            await gateway.ask("hello", chat=chat)
            await asyncio.sleep(1)
        gateway.channel.fail(ChatGone("bot was blocked by the user"), chat="ann")
        await make(gateway, Wanted(at(60), "Tea!", message=True, target=ANN))
        await asyncio.sleep(70)
        for chat in ("bob", "cleo"):
            history = await gateway.store.history(session_of(chat))
            said = "\n".join(one.entry.text for one in history)
            assert (said.count("Tea!"), len(told(gateway, chat))) == (1, 1), chat


async def test_a_result_for_a_closed_topic_comes_in_the_general_one_and_says_so_once() -> None:
    """SPEC CHAN-6; CRON-13: if that is closed too it is told elsewhere, by the topic's name."""
    topic = replace(CREW, thread="5")
    made = TopicChanged(topic, PeerKind.GROUP, "Plans", True, TopicState.OPEN, "Crew")
    closed = replace(made, name="", renamed=False, state=TopicState.CLOSED)
    async with a_process() as gateway:
        await gateway.ask("hello", chat="bob")
        await gateway.gateway.accept([made, closed])
        await make(gateway, Wanted(every(600), "Tea!", message=True, target=topic), OPERATOR)
        await asyncio.sleep(1300)
        sent = [(one.target, one.text) for one in gateway.channel.sent[1:]]
        note = (CREW, "This was for the topic Plans in Crew, which is closed.")
        assert sent == [(CREW, sent[0][1]), note, (CREW, sent[0][1])]
        gateway.channel.fail(TopicGone("TOPIC_CLOSED"), chat=CREW.chat)
        await asyncio.sleep(600)
        (elsewhere,) = told(gateway, "bob")
        assert "to the topic Plans in Crew (the general topic is closed)" in elsewhere


@pytest.mark.parametrize("target", NOWHERE)
@pytest.mark.parametrize(("notify", "schedule", "after_s"), [
    (Notify.ALWAYS, every(600), 700),
    (Notify.NEVER, at(600), 700),
    (Notify.NEVER, every(600), 1900),
    (Notify.CONDITIONAL, every(600), 1900),
])  # fmt: skip
async def test_a_persons_failure_is_told_to_that_person_and_to_nobody_else(
    target: JobTarget, notify: Notify, schedule: Schedule, after_s: float
) -> None:
    async with a_process(broken()) as gateway:
        await make(gateway, wanted(schedule, target, notify), BY_ANN)
        await asyncio.sleep(10)
        await gateway.ask("hello", chat="bob")
        await asyncio.sleep(after_s)
        (text,) = told(gateway, "ann")
        assert "I have no key." in text
        assert gateway.channel.texts("bob") == ["hi"]


@pytest.mark.parametrize("target", [TargetKind.LAST, CREW])
async def test_failures_of_an_operators_job_are_told_in_its_chat_or_the_last(
    target: JobTarget,
) -> None:
    async with a_process(broken()) as gateway:
        await gateway.ask("hello", chat="bob")
        await make(gateway, wanted(every(600), target), OPERATOR)
        await asyncio.sleep(700)
        assert len(told(gateway, "bob")) == (target is TargetKind.LAST)
        assert len(told(gateway, "-7")) == (target == CREW)


async def test_a_result_that_nobody_can_be_told_of_stays_a_warning() -> None:
    async with a_process() as gateway:
        await gateway.ask("hello", chat="ann")
        gateway.channel.fail(ChatGone("bot was blocked by the user"), chat="ann")
        await make(gateway, Wanted(at(60), "Tea!", message=True))
        await asyncio.sleep(70)
        (warning,) = gateway.container.job_module.warnings()
        assert str(warning).startswith("The result of job job could not be delivered: ")
        assert warning.text.endswith("had blocked the bot")


async def test_where_nobody_can_be_told_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with a_process(broken()) as gateway:
        await gateway.ask("hello", chat="bob")
        by = Requester(Owner("elsewhere"), Maker.PERSON)
        with caplog.at_level(logging.WARNING, "goclaw_py.schedule.jobs.notifications"):
            await make(gateway, wanted(every(600), TargetKind.NONE), by)
            await asyncio.sleep(700)
        assert [record.message for record in caplog.records].count("job_failure_not_reported") == 1
        assert gateway.channel.texts() == ["hi"]


@pytest.mark.parametrize("notify", Notify)
async def test_a_job_that_is_switched_off_is_told_to_its_owner_in_any_case(notify: Notify) -> None:
    async with a_process(broken()) as gateway:
        wish = wanted(every(600), TargetKind.NONE, notify, auto_disable_after=2)
        await make(gateway, wish, BY_ANN)
        await asyncio.sleep(1300)
        assert "has failed 2 times in a row. I disabled it" in told(gateway, "ann")[-1]
        assert len(told(gateway, "ann")) == 1 + (notify is Notify.ALWAYS)


@pytest.mark.parametrize("error", ["refused", "refused, request {}"])
@pytest.mark.parametrize(("policy", "state"), [
    ({}, JobState.DISABLED),
    ({"auto_disable_after": 0}, JobState.ACTIVE),
    ({"auto_disable_after": 11}, JobState.ACTIVE),
])  # fmt: skip
async def test_an_operators_job_is_disabled_after_ten_failures_in_a_row(
    error: str, policy: dict[str, object], state: JobState
) -> None:
    """SPEC CRON-8: a success starts the count again, and so does a resume."""
    bad = [Fail(AgentError("Bad request.", error.format(number))) for number in range(10)]
    agent = ScriptedAgent(Say("hi"), *bad[:9], Say("fine"), *bad)
    async with a_process(agent) as gateway:
        await gateway.ask("hello", chat="ann")
        job = await make(gateway, wanted(every(60), TargetKind.NONE, Notify.NEVER, **policy))
        await until(lambda: len(agent.requests) == 21, within_s=1300)
        await asyncio.sleep(30)
        now = await stored(gateway, job)
        assert (now.state, now.failures) == (state, 10)
        told_so = "“job” has failed 10 times in a row. I disabled it"
        assert (told_so in told(gateway, "ann")[-1]) == (state is JobState.DISABLED)
        if state is JobState.DISABLED:
            now = await service(gateway).edit(job.id, JobChange(state=JobState.ACTIVE), OPERATOR)
            assert (now.state, now.failures) == (JobState.ACTIVE, 0)


async def test_a_job_that_was_resumed_during_its_run_goes_on_with_one_failure() -> None:
    """SPEC CRON-8, CRON-11: whoever resumes it is not overruled by what was known before."""
    agent = ScriptedAgent(Fail(BROKEN), Block("late"))
    async with a_process(agent, Ways(jobs=setup(retries=0, run_timeout=100.0))) as gateway:
        job = await make(gateway, wanted(every(600), ANN, auto_disable_after=2), BY_ANN)
        await until(lambda: len(agent.requests) == 2, within_s=1300)
        for state in (JobState.PAUSED, JobState.ACTIVE):
            await service(gateway).edit(job.id, JobChange(state=state), BY_ANN)
        await asyncio.sleep(200)
        now = await stored(gateway, job)
        assert (now.state, now.failures) == (JobState.ACTIVE, 1)
        assert "unless someone has changed it in the meantime" in told(gateway, "ann")[-1]


async def paused_meanwhile(gateway: GatewayProcess, job: Job) -> None:
    await service(gateway).edit(job.id, JobChange(state=JobState.PAUSED), OPERATOR)


async def deleted_meanwhile(gateway: GatewayProcess, job: Job) -> None:
    await service(gateway).delete(job.id, OPERATOR)


async def rescheduled_meanwhile(gateway: GatewayProcess, job: Job) -> None:
    await service(gateway).edit(job.id, JobChange(schedule=every(7200)), OPERATOR)


async def renamed_meanwhile(gateway: GatewayProcess, job: Job) -> None:
    await service(gateway).edit(job.id, JobChange(name="new"), OPERATOR)


@pytest.mark.parametrize("manual", [False, True])
@pytest.mark.parametrize(("schedule", "change", "runs", "scheduled", "by_hand"), [
    (every(600), None, None, "Next run", "Next run"),
    (every(600), None, 1, "It will not run again.", "Next run"),
    (every(600), renamed_meanwhile, None, "Next run", "Next run"),
    (every(600), rescheduled_meanwhile, None, "Next run", "Next run"),
    (every(600), paused_meanwhile, None, "The job is paused.", "The job is paused."),
    (every(600), deleted_meanwhile, None, "It will not run again.", "It will not run again."),
    (at(600), None, None, "It will not run again.", "Next run"),
])  # fmt: skip
async def test_a_failure_is_told_with_the_next_run_of_the_job(
    schedule: Schedule,
    change: Callable[[GatewayProcess, Job], Awaitable[None]] | None,
    runs: int | None,
    scheduled: str,
    by_hand: str,
    manual: bool,
) -> None:
    """SPEC CRON-11, CRON-13: a manual run changes neither state nor next run."""
    agent = ScriptedAgent(otherwise=lambda _: Fail(BROKEN, 60))
    async with a_process(agent) as gateway:
        draft = replace(Wanted(schedule, target=ANN).draft(), max_runs=runs)
        job = await service(gateway).create(draft, OPERATOR)
        if manual:
            await service(gateway).run_now(job.id, OPERATOR)
        await until(lambda: bool(agent.active), within_s=4000)
        if change is not None:
            await change(gateway, job)
        await until(lambda: bool(told(gateway, "ann")))
        (line,) = told(gateway, "ann")
        assert (by_hand if manual else scheduled) in line
        after = await gateway.store.job(job.id)
        ahead = None if after is None else after.next_run_at
        assert ("Next run: " in line) == (ahead is not None)
        if ahead is not None:
            assert f"{ahead:%H:%M}" in line


async def test_a_manual_failure_is_not_the_third_in_a_row() -> None:
    """SPEC CRON-11, CRON-13."""
    async with a_process(broken()) as gateway:
        await gateway.ask("hello", chat="ann")
        job = await make(gateway, wanted(every(600), ANN, Notify.CONDITIONAL, retries=0))
        await asyncio.sleep(1300)
        assert (await stored(gateway, job)).failures == 2
        await service(gateway).run_now(job.id, OPERATOR)
        await asyncio.sleep(60)
        assert not any("three times" in text for text in gateway.channel.texts())


async def test_results_that_people_refuse_are_one_warning_with_their_names() -> None:
    """Two people call their job the same, so a command names a job by its id."""
    async with a_process() as gateway:
        made = []
        for chat in ("ann", "bob"):
            await gateway.ask("hello", chat=chat)
            gateway.channel.fail(ChatGone("bot was blocked by the user"), chat=chat)
            by = Requester(Owner(f"telegram:direct:{chat}"), Maker.PERSON)
            wish = Wanted(at(60), "Tea!", message=True, slug="tea", target=TargetKind.LAST)
            made.append(await make(gateway, wish, by))
        assert {job.spec.slug for job in made} == {"tea"}
        await asyncio.sleep(70)
        (warning,) = gateway.container.job_module.warnings()
        assert warning.subject == "Results of 2 jobs"
        assert warning.text.startswith("could not be delivered: ")
        assert warning.text.endswith(" had blocked the bot")
        assert warning.text.count(" and ") == 1
        for job in made:
            found = await gateway.control.jobs.get(short_id(job.id), OPERATOR)
            assert found.id == job.id
