"""Messages that come into the session of a chat from outside of it (SPEC CRON-19)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from goclaw_py.core.errors import NoGateway, NotAChat, NotFound, SessionBusy, StoreUnavailable
from goclaw_py.core.ids import MAIN_AGENT, RunId
from goclaw_py.core.messages import Role
from goclaw_py.core.outcomes import Outcome, Trigger
from goclaw_py.core.session_keys import child_session, job_session
from goclaw_py.operations.jobs.models import JobDraft, Requester
from goclaw_py.operations.sessions.operations import Sessions
from goclaw_py.records import RunQuery
from goclaw_py.schedule.jobs.models import Prompt
from goclaw_py.schedule.jobs.schedule import Every
from goclaw_py.testing.agents import Block, ScriptedAgent, echo
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, a_process, message, session_of, until
from tests.support.memory_store import MemoryDatabase
from tests.support.stores import new_run


@pytest.fixture
async def gateway() -> AsyncIterator[GatewayProcess]:
    """One in which Ann was answered; its agent never ends what is called "block"."""
    async with a_process(blocking()) as made:
        await made.ask("hello")
        yield made


def blocking() -> ScriptedAgent:
    block = Block()
    return ScriptedAgent(otherwise=lambda asked: block if asked.prompt == "block" else echo(asked))


async def answers(gateway: GatewayProcess, count: int) -> list[str]:
    """What Ann was told, once it is so much."""
    await until(lambda: len(gateway.channel.texts("ann")) == count)
    return gateway.channel.texts("ann")


async def test_the_answer_goes_to_the_chat_and_into_its_history(gateway: GatewayProcess) -> None:
    sent = await gateway.control.sessions.send_message(
        session_of(), "and from outside", queue=False
    )
    assert await answers(gateway, 2) == ["re: hello", "re: and from outside"]
    assert (await gateway.history())[2] == (Role.USER, "and from outside")
    (newest, _) = await gateway.store.runs()
    assert (newest.id, newest.session) == (sent.run, sent.session)


async def test_it_is_no_command_and_waits_for_no_burst(gateway: GatewayProcess) -> None:
    began = asyncio.get_running_loop().time()
    await gateway.control.sessions.send_message(session_of(), "/stop", queue=False)
    assert (await answers(gateway, 2))[1] == "re: /stop"
    assert asyncio.get_running_loop().time() - began < 0.8


async def test_a_session_in_which_something_waits_or_works_is_busy(gateway: GatewayProcess) -> None:
    await gateway.say("block")
    with pytest.raises(SessionBusy, match=r"^Session is busy processing another message$"):
        await gateway.control.sessions.send_message(session_of(), "now?", queue=False)
    await asyncio.sleep(2)
    async with a_process(database=gateway.database) as other:
        for one in (gateway, other):
            with pytest.raises(SessionBusy):
                await one.control.sessions.send_message(session_of(), "now?", queue=False)
    assert gateway.pending == ["block"]
    queued = await gateway.control.sessions.send_message(session_of(), "later", queue=True)
    assert gateway.pending == ["block", "later"]
    await gateway.control.sessions.stop(session_of(), everything=False)
    await until(lambda: "re: later" in gateway.channel.texts("ann"))
    assert (await gateway.store.runs(RunQuery(limit=1)))[0].id == queued.run


async def test_of_two_at_once_one_finds_the_session_free(gateway: GatewayProcess) -> None:
    send = gateway.control.sessions.send_message
    sending = [send(session_of(), text, queue=False) for text in ("one", "two", "three")]
    results = await asyncio.gather(*sending, return_exceptions=True)
    assert [type(each) for each in results].count(SessionBusy) == 2
    await answers(gateway, 2)
    await send(session_of(), "again", queue=False)
    await answers(gateway, 3)


async def test_a_session_that_nobody_can_answer_in_is_refused(gateway: GatewayProcess) -> None:
    send = gateway.control.sessions.send_message
    for key in ("ann", "nobody", "", f"{session_of()}:thread:1"):
        with pytest.raises(NotFound, match="there is no session"):
            await send(key, "x", queue=True)
    session = child_session(MAIN_AGENT, Trigger.SUBAGENT, RunId("0190-run"))
    run = replace(new_run("0190-run"), session=session, trigger=Trigger.SUBAGENT, target=None)
    await gateway.store.begin_run(run, node=gateway.node())
    with pytest.raises(NotAChat, match="belongs to no chat"):
        await send(session, "x", queue=True)
    assert gateway.pending == []
    with pytest.raises(NoGateway):
        await Sessions(gateway.store, gateway.clock).send_message(session_of(), "x", queue=True)


EVERY: Final = Every(timedelta(hours=1))


@pytest.mark.parametrize("told", ["in a chat", "nowhere", "deleted"])
async def test_the_session_of_a_job_can_be_asked(told: str) -> None:
    """The answer goes where the job tells its results now, and always into the history."""
    async with a_process(ScriptedAgent(otherwise=echo)) as gateway:
        if told == "in a chat":
            await gateway.ask("hello")
        service = gateway.control.jobs
        job = await service.create(JobDraft(EVERY, Prompt("look"), slug="look"), Requester(None))
        session = job_session(MAIN_AGENT, job.id)
        await service.run_now(job.id, Requester(None))
        await until(lambda: gateway.dispatcher.runs() == ())
        if told == "deleted":
            await service.delete(job.id, Requester(None))
        before = len(gateway.channel.texts("ann"))
        sent = await gateway.control.sessions.send_message(session, "and now?", queue=False)
        assert sent.session == session
        await until(lambda: gateway.dispatcher.runs() == ())
        history = [entry.entry.text for entry in await gateway.store.history(session, limit=9)]
        assert history[-2:] == ["and now?", "re: and now?"]
        (run,) = await gateway.store.runs(RunQuery(limit=1))
        assert (run.id, run.outcome) == (sent.run, Outcome.COMPLETED)
        said = ["re: and now?"] if told == "in a chat" else []
        assert gateway.channel.texts("ann")[before:] == said


async def test_a_message_into_the_session_of_a_job_outlives_a_crash() -> None:
    """SPEC IO-1."""
    database = MemoryDatabase()
    async with a_process(blocking(), database=database) as first:
        service = first.control.jobs
        job = await service.create(JobDraft(EVERY, Prompt("block"), slug="look"), Requester(None))
        session = job_session(MAIN_AGENT, job.id)
        await service.run_now(job.id, Requester(None))
        await asyncio.sleep(2)
        with pytest.raises(SessionBusy):
            await first.control.sessions.send_message(session, "keep me", queue=False)
        await first.control.sessions.send_message(session, "keep me", queue=True)
        first.kill()
        await first.bury()
        agent = ScriptedAgent(otherwise=echo)
        async with a_process(agent, database=database):
            await until(lambda: "keep me" in agent.prompts)


async def test_a_chat_of_a_channel_that_is_elsewhere_is_refused_in_words() -> None:
    database = MemoryDatabase()
    other = RecordingChannel(name="elsewhere")
    async with a_process(database=database, channels=(other,)) as there:
        await there.gateway.accept([message("hello", channel="elsewhere")])
        await until(lambda: bool(other.texts("ann")))
        (session,) = await there.store.sessions()
        async with a_process(database=database) as here:
            with pytest.raises(NotAChat, match="elsewhere/default does not run here"):
                await here.control.sessions.send_message(session.key, "x", queue=True)


async def test_what_was_accepted_outlives_a_crash() -> None:
    """SPEC IO-1."""
    database = MemoryDatabase()
    async with a_process(blocking(), database=database) as first:
        await first.ask("hello")
        await first.say("block")
        await asyncio.sleep(2)
        await first.control.sessions.send_message(session_of(), "keep me", queue=True)
        first.kill()
        await first.bury()
        async with a_process(database=database) as second:
            await until(lambda: "re: keep me" in second.channel.texts("ann"))


async def test_what_cannot_be_stored_is_not_accepted(gateway: GatewayProcess) -> None:
    gateway.store.away = True
    with pytest.raises(StoreUnavailable):
        await gateway.control.sessions.send_message(session_of(), "x", queue=True)
    gateway.store.away = False
    await gateway.control.sessions.send_message(session_of(), "y", queue=False)
    await answers(gateway, 2)
    assert await gateway.outcomes() == [Outcome.COMPLETED, Outcome.COMPLETED]
