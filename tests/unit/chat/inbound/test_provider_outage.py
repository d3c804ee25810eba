"""The provider of a model is down: messages are kept and answered later (SPEC AGENT-8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from goclaw_py.chat.outbound import texts
from goclaw_py.chat.outbound.texts import NEW_SESSION
from goclaw_py.core.errors import AgentError, StoreUnavailable
from goclaw_py.core.messages import Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import TextDelta, ToolEnded, ToolStarted, Usage
from goclaw_py.core.run_steps import ResponseStep
from goclaw_py.records import RunQuery
from goclaw_py.runs.agent_loop import Emit, ModelStep, RunRequest
from goclaw_py.schedule.jobs.models import Prompt
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Do, Fail, Say, ScriptedAgent, Step
from tests.support.harness import GatewayProcess, Ways, a_process, here, message, until, working
from tests.support.jobs import OPERATOR, Wanted, every, make, service, setup
from tests.support.memory_store import MemoryDatabase

DOWN = AgentError("The model does not answer.", "503", retryable=True)
WRONG = AgentError("The key is wrong.", "401")


@dataclass
class Provider:
    """Answers unless it is down; with tools of side effects if it ``acts`` before it fails."""

    down: AgentError | None = None
    acts: bool = False
    continues: bool = False
    fails_after_s: float = 0.0
    asked: list[str] = field(default_factory=list)

    async def answer(self, request: RunRequest, emit: Emit) -> str:
        self.asked.append(request.prompt)
        if self.continues:
            emit(ModelStep(Usage(1), response=ResponseStep(b"[]", Usage(1))))
        if self.acts:
            emit(ToolStarted("1", "pay", "{}", side_effects=True))
            emit(ToolEnded("1", "pay", ok=True))
            await request.recorded()
        if self.down is not None:
            await asyncio.sleep(self.fails_after_s)
            raise self.down
        return f"re: {request.prompt}"

    def agent(self) -> ScriptedAgent:
        return ScriptedAgent(otherwise=lambda _: Do(self.answer))


@asynccontextmanager
async def outage(ways: Ways | None = None) -> AsyncIterator[tuple[GatewayProcess, Provider]]:
    provider = Provider(DOWN)
    async with a_process(provider.agent(), ways) as gateway:
        yield gateway, provider


async def test_a_message_is_kept_and_answered_when_the_provider_is_back() -> None:
    """Its session stays with its node as long, and the status tells of the outage."""
    async with outage() as (gateway, provider):
        assert await gateway.ask("hello") == texts.KEPT
        await asyncio.sleep(300)
        assert gateway.channel.texts() == [texts.KEPT]
        assert gateway.pending == ["hello"]
        (view,) = gateway.container.outages.views()
        assert (view.agent, view.kept, view.cause) == ("main", 1, "503")
        provider.down = None
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts() == [texts.KEPT, "re: hello"]
        assert gateway.pending == []
        runs = await gateway.store.runs()
        assert runs[0].outcome is Outcome.COMPLETED
        assert {run.reason for run in runs[1:]} == {Reason.OUTAGE}
        await asyncio.sleep(30)
        (session,) = await gateway.store.sessions()
        assert session.owner is None


async def test_it_is_tried_ever_more_seldom_at_most_a_minute_apart() -> None:
    async with outage() as (gateway, provider):
        await gateway.say("hello")
        await asyncio.sleep(600)
        assert 10 <= len(provider.asked) <= 16


async def test_what_comes_meanwhile_waits_without_asking_in_its_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with outage() as (gateway, provider):
        await gateway.ask("one")
        await gateway.say("two", "three", apart_s=2)
        await gateway.say("other", chat="bob")
        await until(lambda: len(gateway.channel.texts("bob")) == 1)
        await gateway.say("more", chat="cyd")
        await until(lambda: len(gateway.channel.texts("cyd")) == 1)
        # The second session shows that it is an outage.
        assert set(provider.asked) == {"one", "other"}
        await asyncio.sleep(300)
        begun = [one for one in caplog.records if one.message == "provider_outage_started"]
        assert len(begun) == 1, "a line of the log for each try"
        provider.down = None
        await gateway.channel.until_sent(8)
        anns = ["re: one", "re: two", "re: three"]
        assert gateway.channel.texts("ann") == [texts.KEPT, *anns]
        assert gateway.channel.texts("bob") == [texts.KEPT, "re: other"]
        assert gateway.pending == []


async def test_a_message_that_was_kept_for_too_long_fails_with_one_sentence() -> None:
    """One that arrived later is kept for its own time."""
    async with outage(Ways(outage_hold_s=600)) as (gateway, provider):
        await gateway.say("first")
        await asyncio.sleep(400)
        await gateway.say("second", chat="bob")
        await asyncio.sleep(400)
        assert gateway.channel.texts("ann") == [texts.KEPT, DOWN.friendly]
        assert gateway.pending == ["second"]
        provider.down = None
        await until(lambda: len(gateway.channel.texts("bob")) == 2)
        assert gateway.channel.texts("bob") == [texts.KEPT, "re: second"]
        provider.down = DOWN
        await gateway.say("third", chat="cyd", apart_s=700)  # now nothing else is kept
        assert gateway.channel.texts("cyd") == [texts.KEPT, DOWN.friendly]
        assert gateway.pending == []


async def test_a_session_stays_here_until_the_end_of_a_held_message_is_stored() -> None:
    """Otherwise its message, which fails, would be answered too."""
    async with outage(Ways(outage_hold_s=10)) as (gateway, provider):
        await gateway.ask("hello")
        gateway.store.broken = {"settle"}
        await asyncio.sleep(60)
        (session,) = await gateway.store.sessions()
        assert session.owner is not None
        provider.down = None
        gateway.store.broken = set()
        await asyncio.sleep(60)
        (session,) = await gateway.store.sessions()
        assert session.owner is None
        assert gateway.channel.texts() == [texts.KEPT, DOWN.friendly]


@pytest.mark.parametrize(
    ("provider", "hold_s"),
    [(Provider(DOWN), 0), (Provider(WRONG), 1800), (Provider(DOWN, acts=True), 1800)],
    ids=["switched off", "an error that stays", "has acted already"],
)
async def test_what_is_not_kept_is_told_at_once(provider: Provider, hold_s: float) -> None:
    """SPEC CRON-7 has the same rule about what has acted for jobs."""
    async with a_process(provider.agent(), Ways(outage_hold_s=hold_s)) as gateway:
        assert provider.down is not None
        assert await gateway.ask("hello") == provider.down.friendly
        assert gateway.pending == []


async def test_an_outage_that_turns_into_another_error_lets_all_go() -> None:
    async with outage() as (gateway, provider):
        await gateway.ask("one")
        await gateway.say("two")
        provider.down = WRONG
        await gateway.channel.until_sent(3)
        assert gateway.channel.texts() == [texts.KEPT, WRONG.friendly, WRONG.friendly]


async def test_what_has_acted_goes_on_after_its_last_step_when_the_provider_is_back() -> None:
    provider = Provider(DOWN, acts=True, continues=True)
    agent = provider.agent()
    async with a_process(agent) as gateway:
        assert await gateway.ask("pay") == texts.KEPT
        provider.down, provider.acts, provider.continues = None, False, False
        await gateway.channel.until_sent(2)
        steps = agent.requests[-1].steps
        assert [type(step) for step in steps] == [ResponseStep, ToolStarted, ToolEnded]
        assert len(agent.requests) == 2


async def test_a_stop_takes_back_the_oldest_that_is_kept() -> None:
    async with outage() as (gateway, provider):
        await gateway.ask("one")
        await gateway.say("two", apart_s=2)
        await gateway.say("/stop")
        await until(lambda: len(gateway.channel.texts()) == 2)
        assert gateway.channel.texts()[1] == "Dropped 1 waiting message: “one”."
        await until(lambda: gateway.pending == ["two"])
        provider.down = None
        await gateway.channel.until_sent(3)
        assert gateway.channel.texts()[2] == "re: two"


async def test_a_new_conversation_forgets_what_was_kept() -> None:
    async with outage() as (gateway, provider):
        await gateway.ask("one")
        assert await gateway.ask("/new") == NEW_SESSION
        assert gateway.pending == []
        provider.down = None
        await gateway.ask("two")
        assert gateway.channel.texts() == [texts.KEPT, NEW_SESSION, "re: two"]


async def test_a_restart_tries_at_once() -> None:
    provider, database = Provider(DOWN), MemoryDatabase()
    async with a_process(provider.agent(), database=database) as gateway:
        await gateway.ask("hello")
        await asyncio.sleep(1)
        await gateway.shut_down()
    provider.down = None
    async with a_process(provider.agent(), database=database) as gateway:
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == ["re: hello"]


async def test_a_draft_that_an_outage_has_cut_goes_on_when_the_provider_is_back() -> None:
    broken = True

    async def answer(request: RunRequest, emit: Emit) -> str:
        emit(TextDelta("half "))
        await asyncio.sleep(3)
        if broken:
            raise DOWN
        return "whole"

    async with working(
        "hello", agent=ScriptedAgent(otherwise=lambda _: Do(answer)), ways=Ways()
    ) as gateway:
        await gateway.scripted.until_active(0)
        broken = False
        await gateway.scripted.until_started(2)
        await until(lambda: not gateway.pending)
        assert gateway.channel.texts()[-1] in ("whole", texts.KEPT)


def failing(*bad: str, after_s: float = 0.5) -> ScriptedAgent:
    """An agent whose provider always answers these messages with 503."""

    def choose(request: RunRequest) -> Step:
        if request.prompt in bad:
            return Fail(DOWN, after_s=after_s)
        return Say(f"re: {request.prompt}", after_s=0.5)

    return ScriptedAgent(otherwise=choose)


async def test_a_message_that_its_provider_always_refuses_fails_by_itself() -> None:
    """SPEC AGENT-8: others do not wait, and it can be sent again by a button."""
    async with a_process(failing("bad")) as gateway:
        await gateway.say("bad", chat="bob")
        await gateway.channel.until_sent(1)
        await gateway.say("hello", chat="ann", apart_s=2)
        assert gateway.channel.texts("ann") == ["re: hello"]
        await asyncio.sleep(10)
        assert gateway.channel.texts("bob") == [texts.KEPT, DOWN.friendly]
        assert gateway.channel.sent[-1].buttons
        assert gateway.pending == []
        assert gateway.container.outages.views() == ()


async def test_three_such_messages_among_many_chats_keep_nobody_waiting() -> None:
    bad = ["bad 1", "bad 2", "bad 3"]
    async with a_process(failing(*bad), Ways(main_lane=8)) as gateway:
        for text in bad:
            await gateway.say(text, chat=text, apart_s=0)
        for number in range(60):
            await gateway.say(f"m{number}", chat=f"chat {number % 20}", apart_s=0.5)
        await asyncio.sleep(30)
        answers = [text for text in gateway.channel.texts() if text.startswith("re: ")]
        assert len(answers) == 60
        for text in bad:
            assert gateway.channel.texts(text) == [texts.KEPT, DOWN.friendly]
        runs = [
            run
            for run in await gateway.store.runs(RunQuery(limit=200))
            if run.reason is Reason.OUTAGE
        ]
        assert len(runs) <= 3 * len(bad)


async def test_two_such_messages_hold_up_a_third_session_for_seconds_only() -> None:
    async with a_process(failing("bad", "worse")) as gateway:
        await gateway.say("bad", chat="bob")
        await gateway.say("worse", chat="cyd", apart_s=300)
        await gateway.say("hello", chat="ann", apart_s=2)
        assert gateway.channel.texts("ann") == [texts.KEPT, "re: hello"]
        await asyncio.sleep(10)
        assert gateway.pending == []


async def test_who_writes_while_such_a_message_is_tried_waits_for_seconds_only() -> None:
    """The next try came a minute later."""
    agent = failing("bad", "worse", after_s=20)
    async with a_process(agent, Ways(main_lane=4)) as gateway:
        await gateway.say("bad", chat="bob")
        await gateway.say("worse", chat="cyd", apart_s=300)
        await agent.until_active(0)
        await agent.until_active(1)
        await gateway.say("hello", chat="ann", apart_s=50)
        assert gateway.channel.texts("ann") == [texts.KEPT, "re: hello"]


async def test_two_such_messages_fail_by_themselves_where_only_jobs_succeed() -> None:
    """They waited for half an hour for a provider that answered each job."""
    async with a_process(failing("bad", "worse"), Ways(main_lane=4, jobs=setup())) as gateway:
        await make(gateway, Wanted(every(10)))
        await gateway.say("bad", chat="bob")
        await gateway.say("worse", chat="cyd", apart_s=30)
        assert gateway.channel.texts("bob") == [texts.KEPT, DOWN.friendly]
        assert gateway.channel.texts("cyd") == [texts.KEPT, DOWN.friendly]
        assert gateway.pending == []
        assert gateway.container.outages.views() == ()


async def test_a_job_with_another_model_says_nothing_about_the_provider() -> None:
    async with a_process(failing("bad", "worse"), Ways(main_lane=4, jobs=setup())) as gateway:
        job = Wanted(every(10)).draft()
        await service(gateway).create(replace(job, payload=Prompt("report", "openai:b")), OPERATOR)
        await gateway.say("bad", chat="bob")
        await gateway.say("worse", chat="cyd", apart_s=300)
        assert gateway.channel.texts("bob") == [texts.KEPT]


async def test_one_bad_conversation_holds_up_no_other() -> None:
    """Nor itself for long, once another one has been answered."""

    def choose(request: RunRequest) -> Step:
        return Fail(DOWN) if "bad" in request.session else Say(f"re: {request.prompt}")

    async with a_process(ScriptedAgent(otherwise=choose)) as gateway:
        await gateway.say("x", chat="bad", apart_s=3)
        await gateway.say("hello", apart_s=60)
        assert gateway.channel.texts("ann") == ["re: hello"]
        assert gateway.channel.texts("bad") == [texts.KEPT, DOWN.friendly]


async def test_later_messages_of_its_session_wait_in_their_order() -> None:
    async with a_process(failing("bad")) as gateway:
        await gateway.say("bad", "after it", apart_s=2)
        assert gateway.pending == ["bad", "after it"]
        await gateway.say("hello", chat="bob")
        await gateway.channel.until_sent(4)
        anns = [texts.KEPT, DOWN.friendly, "re: after it"]
        assert gateway.channel.texts("ann") == anns


async def test_a_run_that_began_before_an_outage_proves_nothing() -> None:
    def choose(request: RunRequest) -> Step:
        return Say("long", after_s=20) if request.prompt == "long" else Fail(DOWN)

    async with a_process(ScriptedAgent(otherwise=choose), Ways(main_lane=4)) as gateway:
        await gateway.say("long", chat="bob", apart_s=1)
        await gateway.say("hello", apart_s=120)
        assert gateway.channel.texts("ann") == [texts.KEPT]


async def test_what_waited_in_the_queue_keeps_its_place() -> None:
    agent = ScriptedAgent(Fail(DOWN, after_s=5))
    async with a_process(agent) as gateway:
        await gateway.say("one", "two", apart_s=2)
        await gateway.channel.until_sent(3)
        assert gateway.channel.texts() == [texts.KEPT, "re: one", "re: two"]
        assert await gateway.texts_in_history() == ["one", "re: one", "two", "re: two"]


async def test_what_waited_behind_a_held_message_stays_behind_when_the_outage_ends() -> None:
    """Another session shows that the provider is back before the queue of this one moves."""
    agent, ways = ScriptedAgent(Fail(DOWN, after_s=5)), Ways(QueuePolicy(), main_lane=1)
    async with a_process(agent, ways) as gateway:
        await gateway.gateway.accept([message("one"), message("two")])
        await gateway.ask("other", chat="bob")
        await until(lambda: gateway.pending == [])
        assert agent.prompts == ["one", "other", "one", "two"]


async def test_one_at_a_time_asks_a_provider_that_is_down() -> None:
    provider = Provider(DOWN, fails_after_s=5)
    async with a_process(provider.agent()) as gateway:
        for number in range(12):
            await gateway.say("x", chat=f"chat {number}")
        await asyncio.sleep(60)
        assert len(provider.asked) <= 7


async def test_as_many_are_kept_as_may_wait_and_none_of_those_is_dropped_later() -> None:
    """SPEC QUEUE-5."""
    async with outage(Ways(QueuePolicy(capacity=3))) as (gateway, provider):
        await gateway.ask("m0")
        await asyncio.sleep(1)
        await gateway.say(*(f"m{number}" for number in range(1, 6)), apart_s=2)
        await asyncio.sleep(120)
        provider.down = None
        await asyncio.sleep(120)
        answers = [text for text in gateway.channel.texts() if text.startswith("re:")]
        assert len(answers) >= 3
        assert answers[-3:] == ["re: m3", "re: m4", "re: m5"]
        assert any("I dropped" in text for text in gateway.channel.texts())
        assert gateway.pending == []


async def test_a_text_that_the_channel_cut_stays_one() -> None:
    """SPEC QUEUE-6."""
    async with outage() as (gateway, provider):
        await gateway.ask("first", chat="bob")
        await gateway.ask("second", chat="cyd")
        await gateway.gateway.accept([message("part 1 ", cut=True)])
        await gateway.gateway.accept([message("part 2")])
        provider.down = None
        await asyncio.sleep(120)
        assert gateway.channel.texts("ann") == [texts.KEPT, "re: part 1 part 2"]


async def test_a_stop_holds_while_the_database_is_away() -> None:
    """SPEC CMD-1."""
    async with outage() as (gateway, provider):
        await gateway.ask("one")
        gateway.store.away = True
        stop = message("/stop")
        with pytest.raises(StoreUnavailable):
            await gateway.gateway.accept([stop])
        gateway.store.away, provider.down = False, None
        await asyncio.sleep(30)
        await gateway.gateway.accept([stop])
        await asyncio.sleep(60)
        assert gateway.channel.texts() == [texts.KEPT, "Dropped 1 waiting message: “one”."]
        assert gateway.pending == []


@pytest.mark.parametrize("word", ["/stop", "/stopall", "/new"])
async def test_what_is_stopped_while_its_run_is_put_away_does_not_come_back(word: str) -> None:
    async with outage() as (gateway, provider):
        gateway.store.slow_before_s["finish_run"] = 3
        await gateway.say("one")
        await asyncio.sleep(1.5)
        await gateway.say(word)
        gateway.store.slow_before_s["finish_run"] = 0
        await asyncio.sleep(4)
        provider.down = None
        await asyncio.sleep(120)
        assert not any(text.startswith("re:") for text in gateway.channel.texts())
        assert gateway.pending == []


async def test_one_that_another_node_owns_by_now_blocks_nobody() -> None:
    provider, other = Provider(DOWN), ScriptedAgent(Block())
    async with (
        a_process(provider.agent()) as gateway,
        a_process(other, database=gateway.database) as second,
    ):
        await gateway.ask("one")
        await second.say("busy", chat="new")
        await other.until_active(1)
        now = second.clock.now()
        await second.store.move_chat("telegram", "default", old="ann", new="new", now=now)
        provider.down = None
        await asyncio.sleep(30)
        other.release()
        await gateway.say("hello", chat="bob")
        await asyncio.sleep(120)
        assert gateway.channel.texts("bob")[-1] == "re: hello"
        assert gateway.container.outages.views() == ()


async def test_a_try_that_joins_a_running_turn_blocks_nobody() -> None:
    """SPEC QUEUE-4: in mode steer."""
    provider = Provider(DOWN, fails_after_s=2)

    async def slow(request: RunRequest, emit: Emit) -> str:
        await asyncio.sleep(12)
        request.take_messages()
        await asyncio.sleep(3)
        if provider.down is not None:
            raise DOWN
        return "slow done"

    usual = provider.agent().otherwise
    agent = ScriptedAgent(
        otherwise=lambda asked: Do(slow) if "slow" in asked.prompt else usual(asked)
    )
    async with a_process(agent, Ways(QueuePolicy(mode=Mode.STEER))) as gateway:
        await gateway.say("one", "slow two")
        await asyncio.sleep(60)
        provider.down = None
        await gateway.say("hello", chat="bob")
        await asyncio.sleep(300)
        assert gateway.channel.texts("bob")[-1] == "re: hello"
        assert gateway.pending == []


async def test_what_was_stopped_sends_no_messages() -> None:
    """SPEC QUEUE-2: nothing that it still says reaches a chat."""

    async def ignore(request: RunRequest, emit: Emit) -> str:
        for _ in range(2):
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                continue
        await here(request).post.send(Target("telegram", "default", "boss"), "still here")
        return "never"

    async with working(
        "go", agent=ScriptedAgent(otherwise=lambda _: Do(ignore)), ways=Ways()
    ) as gateway:
        await gateway.say("/stop")
        await asyncio.sleep(100)
        assert gateway.channel.texts("boss") == []
