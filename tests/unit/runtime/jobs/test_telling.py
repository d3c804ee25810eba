"""Who reads what a job says, and who reads that it has failed (SPEC CRON-13, SEC-3)."""

from __future__ import annotations

import asyncio
import logging

import pytest

from goclaw_py.core.errors import AgentError
from goclaw_py.core.ids import Owner
from goclaw_py.core.jobs import JobState, JobTarget, Maker, Notify, TargetKind, owner_of
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.schedule import Schedule
from goclaw_py.ports.agent import RunRequest
from goclaw_py.ports.jobs import Asker, JobChange
from goclaw_py.testing.agents import Block, Fail, Say, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, Ways, a_process, message, until
from tests.support.jobs import ANN, OPERATOR, Wanted, at, desk, every, make, setup

BROKEN = AgentError("I have no key.", "401")
BY_ANN = Asker(owner_of(ANN, PeerKind.DIRECT), Maker.PERSON)
CREW = Target("telegram", "default", "-7")
BY_CREW = Asker(owner_of(CREW, PeerKind.GROUP), Maker.PERSON)
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


async def in_group(gateway: GatewayProcess, thread: str, chat: str = "-7") -> None:
    """Somebody says something in a thread of a group, and is answered."""
    said = message("hello", chat=chat, sender="cleo", thread=thread, peer=PeerKind.GROUP)
    known = len(gateway.channel.sent)
    await gateway.gateway.accept([said])
    await gateway.channel.until_sent(known + 1)
    # Instants tell which one was the last.
    await asyncio.sleep(1)


def told(gateway: GatewayProcess, chat: str, word: str = "job") -> list[str]:
    """What a chat was told of the job."""
    return [text for text in gateway.channel.texts(chat) if f"“{word}”" in text]


# ---------------------------------------------------------------------- results


async def test_a_persons_result_never_goes_to_who_spoke_last() -> None:
    """SPEC CRON-13, SEC-3: ``last`` is the last place of the owner."""
    async with a_process() as gateway:
        await gateway.ask("hello", chat="ann")
        await make(gateway, wanted(at(600), TargetKind.LAST), BY_ANN)
        await asyncio.sleep(10)
        await gateway.ask("hello", chat="bob")
        await asyncio.sleep(700)
        assert "re: report" in gateway.channel.texts("ann")[-1]
        assert gateway.channel.texts("bob") == ["re: hello"]


async def test_a_person_who_never_spoke_to_the_agent_gets_the_result_all_the_same() -> None:
    """SPEC CRON-13."""
    async with a_process() as gateway:
        await gateway.ask("hello", chat="bob")
        await make(gateway, wanted(at(600), TargetKind.LAST), BY_ANN)
        await gateway.channel.until_sent(2)
        assert [sent.target for sent in gateway.channel.sent[1:]] == [ANN]


async def test_a_groups_result_goes_to_its_thread_that_was_used_last() -> None:
    """SPEC CRON-13."""
    async with a_process() as gateway:
        await make(gateway, wanted(at(600), TargetKind.LAST), BY_CREW)
        for thread, chat in (("1", "-7"), ("2", "-7"), ("3", "-8")):
            await in_group(gateway, thread, chat)
        await gateway.channel.until_sent(4)
        assert gateway.channel.sent[-1].target == Target("telegram", "default", "-7", "2")


async def test_the_result_of_an_owner_that_is_no_chat_goes_nowhere() -> None:
    """SPEC SEC-3."""
    async with a_process() as gateway:
        await gateway.ask("hello", chat="bob")
        by = Asker(Owner("elsewhere"), Maker.PERSON)
        job = await make(gateway, wanted(every(600), TargetKind.LAST), by)
        await asyncio.sleep(700)
        stored = await gateway.store.job(job.id)
        assert stored is not None
        assert stored.runs == 1
        assert gateway.channel.texts() == ["re: hello"]


# ---------------------------------------------------------------------- failures


@pytest.mark.parametrize("target", NOWHERE)
@pytest.mark.parametrize(
    ("notify", "schedule", "after_s"),
    [
        (Notify.ALWAYS, every(600), 700),
        (Notify.NEVER, at(600), 700),
        (Notify.NEVER, every(600), 1900),
        (Notify.CONDITIONAL, every(600), 1900),
    ],
)
async def test_a_persons_failure_is_told_to_that_person_and_to_nobody_else(
    target: JobTarget, notify: Notify, schedule: Schedule, after_s: float
) -> None:
    """SPEC CRON-13, SEC-3."""
    async with a_process(broken()) as gateway:
        await make(gateway, wanted(schedule, target, notify), BY_ANN)
        await asyncio.sleep(10)
        await gateway.ask("hello", chat="bob")
        await asyncio.sleep(after_s)
        (text,) = told(gateway, "ann")
        assert "I have no key." in text
        assert gateway.channel.texts("bob") == ["hi"]


@pytest.mark.parametrize("target", [TargetKind.LAST, CREW])
async def test_the_failure_of_an_operators_job_is_told_in_its_chat_or_the_last_one(
    target: JobTarget,
) -> None:
    """SPEC CRON-13."""
    async with a_process(broken()) as gateway:
        await gateway.ask("hello", chat="bob")
        await make(gateway, wanted(every(600), target), OPERATOR)
        await asyncio.sleep(700)
        assert len(told(gateway, "bob")) == (target is TargetKind.LAST)
        assert len(told(gateway, "-7")) == (target == CREW)


async def test_where_nobody_can_be_told_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """SPEC CRON-13, SEC-3."""
    async with a_process(broken()) as gateway:
        await gateway.ask("hello", chat="bob")
        by = Asker(Owner("elsewhere"), Maker.PERSON)
        with caplog.at_level(logging.WARNING, "goclaw_py.runtime.jobs.telling"):
            await make(gateway, wanted(every(600), TargetKind.NONE), by)
            await asyncio.sleep(700)
        assert [record.message for record in caplog.records].count(
            "nobody could be told that a job failed"
        ) == 1
        assert gateway.channel.texts() == ["hi"]


# ---------------------------------------------------------------------- switched off


@pytest.mark.parametrize("notify", Notify)
async def test_a_job_that_is_switched_off_is_told_to_its_owner_whatever_else_is_told(
    notify: Notify,
) -> None:
    """SPEC CRON-8, CRON-13."""
    async with a_process(broken()) as gateway:
        await make(
            gateway, wanted(every(600), TargetKind.NONE, notify, auto_disable_after=2), BY_ANN
        )
        await asyncio.sleep(1300)
        assert "has failed 2 times in a row, so it is switched off" in told(gateway, "ann")[-1]
        assert len(told(gateway, "ann")) == 1 + (notify is Notify.ALWAYS)


async def test_a_job_that_was_resumed_during_its_run_goes_on_with_one_failure() -> None:
    """SPEC CRON-8, CRON-11: whoever resumes it is not overruled by what was known before."""
    agent = ScriptedAgent(Fail(BROKEN), Block("late"))
    async with a_process(agent, Ways(jobs=setup(retries=0, run_timeout_s=100.0))) as gateway:
        job = await make(gateway, wanted(every(600), ANN, auto_disable_after=2), BY_ANN)
        await until(lambda: len(agent.requests) == 2, within_s=1300)
        for state in (JobState.PAUSED, JobState.ACTIVE):
            await desk(gateway).edit(job.id, JobChange(state=state), BY_ANN)
        await asyncio.sleep(200)
        stored = await gateway.store.job(job.id)
        assert stored is not None
        assert (stored.state, stored.failures) == (JobState.ACTIVE, 1)
        assert "unless somebody has changed it meanwhile" in told(gateway, "ann")[-1]
