"""Questions about messages and their answers, each provoked (SPEC OPS-4)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from goclaw_py.core.approvals import ApprovalRequest, Decision
from goclaw_py.core.budget import Budget
from goclaw_py.core.display_names import short_id
from goclaw_py.core.errors import (
    AgentError,
    ApprovalNeeded,
    ChatGone,
    MaybeSent,
    NotSent,
    RateLimited,
)
from goclaw_py.core.messages import InboundMessage
from goclaw_py.core.outcomes import Outcome, Reason, Trigger
from goclaw_py.core.run_events import ToolStarted
from goclaw_py.gateway.why import outcomes
from goclaw_py.gateway.why.outcomes import FailedOutcome
from goclaw_py.operations.explanation import Explanation
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.runs.budget_tracker import Limits
from goclaw_py.scheduler.models import Debounce, Drop, Mode, QueuePolicy
from goclaw_py.testing.agents import Block, Do, Emitting, Fail, Ignore, Say, ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel, SendFailure
from tests.support.harness import Ways, a_process, here, message, until
from tests.support.jobs import Wanted, every, make
from tests.support.memory_store import MemoryDatabase
from tests.support.why import Case, Cases, ask, ask_database, check

AT_ONCE = Ways(QueuePolicy())
ANN = "telegram:ann"
CASES = Cases()


async def after_the_answer(agent: ScriptedAgent, ways: Ways = AT_ONCE) -> Explanation:
    """Say something, get the answer, and ask."""
    async with a_process(agent, ways) as gateway:
        await gateway.ask("hello")
        return await ask(gateway, ANN)


async def after(
    wait_s: float,
    *failures: Exception | SendFailure,
    agent: ScriptedAgent | None = None,
    about: str = ANN,
) -> Explanation:
    """Say something, wait, and ask; so many sends go wrong."""
    async with a_process(agent, AT_ONCE) as gateway:
        gateway.channel.fail(*failures, chat="ann")
        await gateway.say("hello")
        await asyncio.sleep(wait_s)
        return await ask(gateway, about)


async def behind(
    *then: str,
    chat: str = "ann",
    step: Step | None = None,
    ways: Ways = AT_ONCE,
    wait_s: float = 5,
    about: str = ANN,
) -> Explanation:
    """Say more while the agent works on something, wait, and ask."""
    async with a_process(ScriptedAgent(step or Block(), step or Block()), ways) as gateway:
        await gateway.say("long", chat=chat)
        await gateway.scripted.until_active(1)
        await gateway.say(*then)
        await asyncio.sleep(wait_s)
        return await ask(gateway, about)


@CASES.answer("waits.gateway", "no gateway is running here", "goclaw run")
async def stored_without_a_gateway() -> Explanation:
    database = MemoryDatabase()
    async with a_process(ScriptedAgent(Block()), AT_ONCE, database=database) as gateway:
        await gateway.say("hello")
        await gateway.shut_down(wait_s=0.1)
        return await ask_database(database, ANN, gateway)


@CASES.question("The bot says that it cannot reach its model")
@CASES.answer("waits.outage", "the message is kept and answered when the provider is back",
              "goclaw doctor")  # fmt: skip
async def provider_down() -> Explanation:
    down = Fail(AgentError("Sorry.", "503 from the model", retryable=True))
    return await after(3, agent=ScriptedAgent(otherwise=lambda _: down))


@CASES.question("The bot says that something went wrong")
@CASES.answer(
    "ended.failed", "failed: AgentError: 401 invalid api key", "goclaw deliveries incoming retry 1"
)
async def failed() -> Explanation:
    return await after_the_answer(ScriptedAgent(Fail(AgentError("Sorry.", "401 invalid api key"))))


def pays(**asked: bool) -> ScriptedAgent:
    """An agent that asks whether it may pay."""
    pay = ApprovalNeeded((ApprovalRequest("c1", "pay", "{}", timeout_s=3600, **asked),))
    return ScriptedAgent(Fail(pay), otherwise=lambda _: Say("paid"))


@CASES.answer("waits.approval", "has asked for approval to call pay 5 s ago and waits for an "
              "answer, for 60 min more", "goclaw approvals allow")  # fmt: skip
async def waits_for_an_approval() -> Explanation:
    return await after(5, agent=pays())


@CASES.answer("waits.approval", "has asked for approval to call pay", "goclaw approvals allow")
async def waits_while_a_later_message_is_answered() -> Explanation:
    async with a_process(pays(), AT_ONCE) as gateway:
        for text in ("hello", "meanwhile"):
            await gateway.say(text)
            await asyncio.sleep(2)
        return await ask(gateway, ANN)


@CASES.answer("waits.approval", "asked whether its interrupted call of pay took effect",
              "goclaw approvals answer")  # fmt: skip
async def waits_for_what_became_of_a_call() -> Explanation:
    return await after(5, agent=pays(uncertain=True), about="message:1")


@CASES.answer("run.asked", "has asked for approval to call pay, and was continued",
              "goclaw runs show ")  # fmt: skip
async def was_approved() -> Explanation:
    async with a_process(pays(), AT_ONCE) as gateway:
        await gateway.say("hello")
        await asyncio.sleep(2)
        (asked,) = await gateway.store.approvals()
        assert (await ask(gateway, f"run:{asked.run_id}")).code == "waits.approval"
        await gateway.control.approvals.decide(asked.id[:6], Decision.ONCE)
        await gateway.channel.until_sent(3)
        assert (await ask(gateway, ANN)).code == "answered"
        found = await ask(gateway, f"run:{asked.run_id}")
        codes = [step.code for step in found.chain]
        assert codes.index("asked_approval") < codes.index("ended_interrupted")
        assert [step.words for step in found.chain if step.code == "answered_approval"] == [
            "pay: ✅ Allowed once by the operator"
        ]
        (last, *_) = await gateway.store.runs()
        assert found.cures[0].link == f"/runs/{last.id}"
        return found


@CASES.answer("late.approval", "it waited 1 min for the answer of a person to a question of run",
              "goclaw why run:")  # fmt: skip
async def was_approved_late() -> Explanation:
    """Found by use: it was said to have waited for a slot."""
    async with a_process(pays(), AT_ONCE) as gateway:
        await gateway.say("hello")
        await asyncio.sleep(60)
        await gateway.say("meanwhile", chat="bob")
        await gateway.channel.until_sent(2)
        (asked,) = await gateway.store.approvals()
        await gateway.control.approvals.decide(asked.id, Decision.ONCE)
        await gateway.channel.until_sent(4)
        return await ask(gateway, "message:1")


@CASES.answer("ended.stopped", "has asked for approval to call pay, and was stopped; nothing "
              "continues", "goclaw deliveries incoming retry 1")  # fmt: skip
async def was_stopped_while_it_asked() -> Explanation:
    async with a_process(pays(), AT_ONCE) as gateway:
        await gateway.say("hello")
        await asyncio.sleep(60)
        await gateway.ask("/stop")
        (run,) = await gateway.store.runs()
        of_run, of_message = await ask(gateway, f"run:{run.id}"), await ask(gateway, "message:1")
        assert (of_run.answer, of_run.cures) == (of_message.answer, of_message.cures)
        assert await gateway.control.deliveries.retry_dead_letters([1])
        await asyncio.sleep(60)
        assert (await ask(gateway, f"run:{run.id}")).answer.endswith("stopped. It was retried.")
        return of_run


async def test_a_turn_that_was_stopped_while_it_asked_and_is_retried_continues_nothing() -> None:
    async with a_process(pays(), AT_ONCE) as gateway:
        await gateway.say("hello")
        await asyncio.sleep(60)
        await gateway.ask("/stop")
        assert await gateway.control.deliveries.retry_dead_letters([1])
        await gateway.channel.until_sent(3)
        await asyncio.sleep(60)
        (run, *_) = await gateway.store.runs()
        assert (await ask(gateway, f"run:{run.id}")).code == "answered"


@CASES.answer("waits.approval", "has asked for approval to call pay", "goclaw approvals deny")
async def child_waits_for_an_approval() -> Explanation:
    async def delegate(request: RunRequest, emit: Emit) -> str:
        return await here(request).children.subagent("pay", "key")

    def choose(request: RunRequest) -> Step:
        pay = Fail(ApprovalNeeded((ApprovalRequest("c1", "pay", "{}"),)))
        return pay if request.prompt == "pay" else Do(delegate)

    async with a_process(ScriptedAgent(otherwise=choose), AT_ONCE) as gateway:
        await gateway.say("hello")
        await asyncio.sleep(2)
        for run in await gateway.store.runs():
            assert (await ask(gateway, f"run:{run.id}")).code == "waits.approval", run
        return await ask(gateway, "message:1")


@CASES.question("The run ended, and no answer came")
@CASES.answer("run.silent", "the agent had nothing to say", "goclaw runs show")
async def nothing_to_say() -> Explanation:
    return await after(2, agent=ScriptedAgent(Say("")))


@CASES.question("The bot says that it crashed each time")
@CASES.answer(
    "ended.crashed", "the gateway crashed at each attempt", "goclaw deliveries incoming retry 1"
)
async def crashed_each_time() -> Explanation:
    database = MemoryDatabase()
    for _ in range(3):
        async with a_process(ScriptedAgent(Block()), AT_ONCE, database=database) as gateway:
            if not database.inbox:
                await gateway.say("hello")
            await gateway.scripted.until_active(1)
            gateway.kill()
            await asyncio.sleep(15)
    async with a_process(ScriptedAgent(Block()), AT_ONCE, database=database) as gateway:
        await asyncio.sleep(20)
        return await ask(gateway, ANN)


async def test_a_run_that_crashed_once_names_the_run_that_answered() -> None:
    """OPS-4: ``kill -9`` during a run, and a restart."""
    database = MemoryDatabase()
    async with a_process(ScriptedAgent(Block()), AT_ONCE, database=database) as gateway:
        await gateway.say("hello")
        await gateway.scripted.until_active(1)
        gateway.kill()
        await asyncio.sleep(15)
    async with a_process(ScriptedAgent(Say("hi")), AT_ONCE, database=database) as gateway:
        await until(lambda: gateway.channel.texts("ann") == ["hi"])
        await asyncio.sleep(1)
        second, first = await gateway.store.runs()
        explained = await ask(gateway, f"run:{first.id}")
    assert explained.code == "ended.crashed"
    assert explained.answer == (
        f"Run {short_id(first.id)} was lost: the gateway crashed. "
        f"Run {short_id(second.id)} answered its messages."
    )
    assert explained.cures[0].command == f"goclaw why run:{second.id}"
    assert "hello" in explained.chain[0].words


async def test_an_approval_is_explained_by_its_run() -> None:
    """OPS-4: lists show the ids of approvals."""
    async with a_process(pays(), AT_ONCE) as gateway:
        await gateway.say("hello")
        await asyncio.sleep(2)
        (asked,) = await gateway.store.approvals()
        for about in (asked.id, asked.id[:-2]):
            explained = await ask(gateway, about)
            assert explained.code == "waits.approval"
            assert explained.subject.id == asked.run_id


@CASES.question("I blocked the bot and want to hear from it again")
@CASES.answer(
    "delivery.chat_gone",
    "could not be delivered: Forbidden: bot was blocked by the user",
    "goclaw deliveries retry 1",
)
async def blocked_the_bot() -> Explanation:
    return await after(2, ChatGone("Forbidden: bot was blocked by the user"), about="delivery:1")


@CASES.question("The answer is written and does not arrive")
@CASES.answer("delivery.retrying", "is tried again in", "goclaw deliveries drop 1")
async def server_does_not_answer() -> Explanation:
    return await after(20, *[NotSent("no route to host")] * 9)


@CASES.question("I edited my message and nothing happened")
@CASES.answer("message.edit_too_late", "it was only noted in the history", "Send the text as a new")
async def edited() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        first = message("hello")
        await gateway.gateway.accept([first])
        await asyncio.sleep(2)
        again = replace(first, external_id=f"{first.external_id}:9", edits=first.external_id)
        await gateway.gateway.accept([replace(again, text="hello again")])
        await asyncio.sleep(2)
        return await ask(gateway, f"telegram:ann/{again.external_id.removeprefix('ann:')}")


@CASES.answer("message.unreadable", "no content that an agent can read (stickers)",
              "Send it as text")  # fmt: skip
async def sticker() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        sent: InboundMessage = replace(message(""), unsupported="stickers")
        await gateway.gateway.accept([sent])
        await asyncio.sleep(2)
        return await ask(gateway, f"telegram:ann/{sent.message_id}")


# ---------------------------------------------------------------------------- late or slow


@CASES.question("My second message waits while the first is worked on")
@CASES.answer("waits.session", "an earlier message of its session; in progress: run",
              "goclaw queue agent:main")  # fmt: skip
async def behind_another_run() -> Explanation:
    return await behind("next")


@CASES.question("My message waits though nothing else runs in my chat")
@CASES.answer("waits.lane", "(Bob), 5 s",
              "goclaw lanes set main 2")  # fmt: skip
async def lane_full() -> Explanation:
    return await behind("next", chat="bob", ways=replace(AT_ONCE, main_lane=1))


@CASES.answer("waits.sender", "more messages of its sender (debounce window)", "goclaw queue")
async def still_typing() -> Explanation:
    async with a_process(ways=Ways()) as gateway:
        await gateway.say("hello")
        await asyncio.sleep(0.1)
        return await ask(gateway, ANN)


@CASES.question("The answer came late: others were served first")
@CASES.answer("late.lane", "(Bob) had; it then", "goclaw lanes set main 2")
async def late_for_the_lane() -> Explanation:
    return await late(replace(AT_ONCE, main_lane=1))


@CASES.answer("late.agent", "for agent main, which had reached its limit",
              "goclaw config show agents.main.max_concurrent")  # fmt: skip
async def late_for_the_agent() -> Explanation:
    return await late(replace(AT_ONCE, agent_runs=1))


@CASES.answer("late.lane", "(Bob) had; it then", "goclaw lanes set main 2")
async def late_while_a_job_of_the_agent_ended() -> Explanation:
    return await late(replace(AT_ONCE, main_lane=1), Wanted(every(20)))


@CASES.answer("late.lane", "(Bob) had; it then", "goclaw lanes set main 2")
async def late_with_a_limit_that_was_not_reached() -> Explanation:
    return await late(replace(AT_ONCE, main_lane=1, agent_runs=3), Wanted(every(20)))


async def late(ways: Ways, job: Wanted | None = None) -> Explanation:
    """Say something while another chat has the slot, get the answer, and ask.

    The run of a job, in its own lane, ends just after the one that has the slot.
    """
    steps = (Say("done", after_s=20), *([Say("done", after_s=0.2)] if job else []))
    async with a_process(ScriptedAgent(*steps), ways) as gateway:
        if job is not None:
            await make(gateway, job)
        await gateway.say("long", chat="bob")
        await gateway.scripted.until_active(1)
        await gateway.ask("next")
        await asyncio.sleep(1)  # the run of the job has ended, too
        return await ask(gateway, ANN)


@CASES.question("The answer came late: my own message was in front")
@CASES.answer("late.session", "for its own conversation, where run", "/queue steer")
async def late_for_the_conversation() -> Explanation:
    async with a_process(ScriptedAgent(Say("done", after_s=20)), AT_ONCE) as gateway:
        await gateway.say("long")
        await gateway.scripted.until_active(1)
        await gateway.say("next")
        await gateway.channel.until_sent(2)
        return await ask(gateway, ANN)


@CASES.question("The answer came late: the agent worked long")
@CASES.answer("late.run", "the run itself took 1 min 30 s", "goclaw runs show")
async def slow_run() -> Explanation:
    return await after_the_answer(ScriptedAgent(Say("done", after_s=90)))


@CASES.question("A run does not end")
@CASES.answer("run.running", "has been running for 5 min; it is calling web_search", "goclaw stop")
async def still_at_work() -> Explanation:
    tool = ToolStarted("1", "web_search", "{}")
    return await behind(step=Emitting((tool,), Block()), wait_s=300)


@CASES.question("The answer was ready and came late")
@CASES.answer("late.delivery", "after it was written, at try 2", "goclaw deliveries show 1")
async def slow_delivery() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.channel.fail(RateLimited("Too Many Requests: retry after 40", 40.0), chat="ann")
        await gateway.ask("hello")
        return await ask(gateway, ANN)


# ---------------------------------------------------------------------------- cut or wrong


def full(drop: Drop) -> Ways:
    return Ways(QueuePolicy(capacity=1, drop=drop))


@CASES.question("The bot says that it dropped my message")
@CASES.answer("ended.queue_dropped", "the queue was full, so the oldest message was dropped",
              "goclaw deliveries incoming retry 2")  # fmt: skip
async def dropped() -> Explanation:
    return await behind("two", "three", ways=full(Drop.OLD), wait_s=30, about="message:2")


@CASES.question("The bot says that it did not take my message")
@CASES.answer("ended.queue_full", "the queue was full, so the new message was rejected",
              "/queue collect")  # fmt: skip
async def not_taken() -> Explanation:
    return await behind("two", "three", ways=full(Drop.NEW), wait_s=30, about="message:3")


@CASES.question("The bot says that a newer message replaced mine")
@CASES.answer("ended.newer_message", "a newer message replaced it", "/queue default")
async def replaced() -> Explanation:
    ways = Ways(QueuePolicy(mode=Mode.INTERRUPT))
    return await behind("two", "three", step=Ignore(5), ways=ways, wait_s=30, about="message:2")


@CASES.question("The answer stopped in the middle")
@CASES.answer(
    "ended.stopped", "was cancelled: stopped by a person", "goclaw deliveries incoming retry 1"
)
async def stopped() -> Explanation:
    return await behind("/stop")


@CASES.question("The bot says that this took too long")
@CASES.answer("ended.run_timeout", "the run took too long (runs.timeout)", "timeout under [runs]")
async def out_of_time() -> Explanation:
    return await after_the_answer(ScriptedAgent(Block()), replace(AT_ONCE, run_timeout_s=60.0))


@CASES.question("The bot says that it could not finish in time")
@CASES.answer("ended.deadline", "its deadline passed (runs.deadline)", "deadline under [runs]")
async def past_its_deadline() -> Explanation:
    ways = replace(AT_ONCE, deadline_s=60.0)
    return await behind("next", ways=ways, wait_s=70, about="message:2")


@CASES.question("A restart cut the answer")
@CASES.answer("ended.shutdown", "was interrupted by a shutdown; its messages run again",
              "goclaw run")  # fmt: skip
async def cut_by_a_restart() -> Explanation:
    database = MemoryDatabase()
    async with a_process(ScriptedAgent(Block()), AT_ONCE, database=database) as gateway:
        await gateway.say("long")
        await gateway.scripted.until_active(1)
        (run,) = gateway.scripted.active
        await gateway.shut_down(wait_s=1)
        return await ask_database(database, run, gateway)


@CASES.question("I said /stop and it still runs")
@CASES.answer("run.stopping", "is being stopped, and its task has not ended for", "cancel_grace")
async def deaf_to_a_stop() -> Explanation:
    return await behind("/stop", step=Ignore(9))


@CASES.answer("delivery.stopped", "was cancelled by /stop before it was sent")
async def stopped_in_the_outbox() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.channel.fail(*[NotSent("no route to host")] * 3, chat="ann")
        await gateway.say("hello")
        await asyncio.sleep(1)
        await gateway.say("/stop")
        await asyncio.sleep(1)
        return await ask(gateway, "delivery:1")


@CASES.answer("delivery.dropped", "was dropped by an operator", "goclaw deliveries retry 1")
async def dropped_in_the_outbox() -> Explanation:
    async with a_process(ways=AT_ONCE) as gateway:
        gateway.channel.fail(*[NotSent("no route to host")] * 3, chat="ann")
        await gateway.say("hello")
        await asyncio.sleep(1)
        await gateway.control.deliveries.drop_outbox([1])
        return await ask(gateway, "delivery:1")


@CASES.question("The bot says that a budget is used up")
@CASES.answer("ended.budget", "a budget was used up", "goclaw usage")
async def over_budget() -> Explanation:
    ways = replace(AT_ONCE, limits=Limits(run=Budget(seconds=10)))
    return await after_the_answer(ScriptedAgent(Block()), ways)


@CASES.question("The bot says that it stopped after ten results of subagents")
@CASES.answer("ended.chain_limit", "too many turns in a row began without a person",
              "goclaw usage")  # fmt: skip
async def chain_ended() -> Explanation:
    async def spawn(request: RunRequest, _emit: Emit) -> str:
        await here(request).children.spawn("work", "part")
        return "and on"

    def choose(request: RunRequest) -> Step:
        return Do(spawn) if request.trigger is Trigger.CHAT else Say("done")

    async with a_process(ScriptedAgent(otherwise=choose), AT_ONCE) as gateway:
        await gateway.say("go")
        await until(lambda: "I stopped here" in "".join(gateway.channel.texts()))
        return await ask(gateway, ANN)


# ---------------------------------------------------------------------------- twice


@CASES.question("The same answer came twice")
@CASES.answer("delivery.possible_duplicate", "may have arrived twice")
async def sent_again() -> Explanation:
    return await after(30, SendFailure(MaybeSent("the connection was lost"), arrives=True))


@CASES.question("The agent did the same thing twice")
@CASES.answer("late.cut", "it was started twice, because run")
async def begun_twice() -> Explanation:
    database = MemoryDatabase()
    async with a_process(ScriptedAgent(Block()), AT_ONCE, database=database) as gateway:
        await gateway.say("hello")
        await gateway.scripted.until_active(1)
        gateway.kill()
    async with a_process(ways=AT_ONCE, database=database) as other:
        await until(lambda: bool(other.channel.sent))
        return await ask(other, ANN)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_question_about_a_message_is_answered(case: Case) -> None:
    await check(case)


async def test_a_single_message_whose_sender_writes_in_bursts_was_collected() -> None:
    """SPEC QUEUE-6: after three restarts messages wait for the debounce window again."""
    agent = ScriptedAgent(*[step for _ in range(3) for step in (Block(), Say("done"))])
    eager = QueuePolicy(debounce_s=0.8, debounce=Debounce.SPECULATIVE)
    async with a_process(agent, Ways(eager)) as gateway:
        for number in range(3):
            await gateway.say("one", "two", apart_s=0.3)
            await gateway.channel.until_sent(number + 1)
            await asyncio.sleep(10)
        await gateway.ask("three")
        found = await ask(gateway, ANN)
    assert "waited 0.8 s for more from its sender (debounce_ms)" in [s.words for s in found.chain]


async def test_a_message_of_the_console_is_received_from_the_operator() -> None:
    """Found by use: its sender was an id made of the time."""
    channels = (RecordingChannel("console"),)
    async with a_process(channels=channels) as gateway:
        await gateway.gateway.accept([message("hello", chat="20261130-14", channel="console")])
        await until(lambda: bool(gateway.channel.texts("20261130-14")))
        told = await ask(gateway, "console:20261130-14")
    assert told.chain[0].words == "received from the operator: “hello”"


@pytest.mark.parametrize(("reason", "has_details"), [
    (None, True), (Reason.DEADLINE, True), (Reason.STOPPED, False), (Reason.STOPPED_ALL, False),
])  # fmt: skip
def test_the_details_of_a_run_are_offered_unless_somebody_stopped_it(
    reason: Reason | None, *, has_details: bool
) -> None:
    end = FailedOutcome(Outcome.CANCELLED, reason)
    commands = [cure.command for cure in outcomes.cures(end, run="r1")]
    assert ("goclaw runs show r1" in commands) is has_details
