"""A message goes into the run that works, or what waits becomes one turn (SPEC QUEUE-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from goclaw_py.agents.offline import OfflineAgent
from goclaw_py.chat.outbound import texts
from goclaw_py.chat.outbound import texts as wording
from goclaw_py.core.errors import AgentError
from goclaw_py.core.messages import PeerKind, Role
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.runs.agent_loop import AgentResult, Emit, MessagePart, RunRequest
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.agents import Block, ScriptedAgent
from tests.support.harness import (
    GatewayProcess,
    Ways,
    a_process,
    message,
    session_of,
    until,
    working,
)
from tests.support.memory_store import MemoryDatabase

STEER = QueuePolicy(mode=Mode.STEER)
WAYS = Ways(direct=STEER, group=STEER)


@dataclass(slots=True)
class Asking:
    """Takes what came each time it may go on, and ends in its own way when it is told to."""

    end: Callable[[], str] = lambda: "done"
    stubborn: bool = False
    """Goes on when it is cancelled."""
    taken: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    finish: bool = False

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        self.prompts.append(request.prompt)
        while not self.finish:
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise
            self.go_on.clear()
            self.taken += [part.text for part in request.take_messages()]
        return AgentResult(self.end())

    async def take(self) -> None:
        """Let it ask once more."""
        self.go_on.set()
        await asyncio.sleep(0.01)

    async def stop_asking(self) -> None:
        """Let all its runs end, this one and those to come."""
        self.finish = True
        await self.take()
        self.go_on.set()

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


async def test_a_message_goes_into_the_run_that_works_and_gets_no_run_of_its_own() -> None:
    async with a_process(OfflineAgent(), WAYS) as gateway:
        await gateway.say("count to 4", apart_s=1.5)
        await gateway.say("hello")
        await gateway.channel.until_sent(1)
        await asyncio.sleep(60)
        answer = "1 2 (you said: hello) 3 4"
        assert gateway.channel.texts() == [answer]
        assert await gateway.outcomes() == [Outcome.COMPLETED]
        assert gateway.pending == []
        entries = [(Role.USER, "count to 4\nhello"), (Role.ASSISTANT, answer)]
        assert await gateway.history() == entries


async def test_a_loop_that_takes_nothing_leaves_the_message_a_turn_of_its_own() -> None:
    """SPEC QUEUE-4: else queued."""
    agent = ScriptedAgent(Block("first"))
    async with working("works", "waits", agent=agent, ways=WAYS) as gateway:
        agent.release()
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts() == ["first", "re: waits"]


async def test_a_message_that_comes_after_the_last_look_gets_a_turn_of_its_own() -> None:
    async with a_process(OfflineAgent(), WAYS) as gateway:
        await gateway.say("slow 5", apart_s=1)
        await gateway.say("echo later")
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts()[1] == "later"


async def test_what_an_agent_has_left_behind_takes_nothing_in_once_its_answer_is_complete() -> None:
    taken: list[MessagePart] = []

    class Forgetful(Asking):
        async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
            self.prompts.append(request.prompt)
            await self.go_on.wait()
            # The run returns, and this comes before anybody has heard of its end.
            asyncio.get_running_loop().call_soon(lambda: taken.extend(request.take_messages()))
            return AgentResult(f"re: {request.prompt}")

    agent = Forgetful()
    async with a_process(agent, WAYS) as gateway:
        await gateway.say("first")
        await gateway.say("second")
        agent.go_on.set()
        await gateway.channel.until_sent(2)
        assert gateway.channel.texts() == ["re: first", "re: second"]
        assert taken == []


async def test_several_messages_are_taken_in_their_order_each_once() -> None:
    agent = Asking()
    async with a_process(agent, WAYS) as gateway:
        await gateway.say("works", "a", "b")
        await agent.take()
        await gateway.say("c")
        await agent.take()
        await agent.take()
        assert agent.taken == ["a", "b", "c"]


@pytest.mark.parametrize("mode", [Mode.QUEUE, Mode.FOLLOWUP, Mode.COLLECT])
async def test_only_a_message_in_mode_steer_is_taken_in(mode: Mode) -> None:
    agent = Asking()
    async with a_process(agent, Ways(direct=QueuePolicy(mode=mode))) as gateway:
        await gateway.say("works", "waits")
        await agent.take()
        assert agent.taken == []


async def test_a_message_that_was_dropped_meanwhile_is_not_taken_in() -> None:
    """SPEC QUEUE-5."""
    agent = Asking()
    one_waits = QueuePolicy(mode=Mode.STEER, capacity=1)
    async with a_process(agent, Ways(direct=one_waits)) as gateway:
        await gateway.say("works", "old", "new")
        await agent.take()
        assert agent.taken == ["new"]
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == [texts.dropped(["old"], Reason.QUEUE_DROPPED)]


async def test_in_a_group_a_message_that_is_taken_in_bears_its_senders_name() -> None:
    agent = Asking()
    async with a_process(agent, WAYS) as gateway:
        last = message("not so", sender="bob", peer=PeerKind.GROUP)
        for one in (message("works", sender="ann", peer=PeerKind.GROUP), last):
            await gateway.gateway.accept([one])
        await agent.take()
        assert (agent.prompts, agent.taken) == (["Ann (id ann): works"], ["Bob (id bob): not so"])
        await agent.stop_asking()
        await gateway.channel.until_sent(1)
        assert gateway.channel.sent[0].reply_to == last.message_id


@asynccontextmanager
async def taken_in(
    agent: Asking, database: MemoryDatabase | None = None
) -> AsyncIterator[GatewayProcess]:
    """Its run has taken in a message."""
    async with a_process(agent, WAYS, database=database) as gateway:
        await gateway.say("works", "taken")
        await agent.take()
        yield gateway


async def answers_after(database: MemoryDatabase) -> list[str]:
    """What another process answers."""
    async with a_process(ScriptedAgent(), WAYS, database=database) as gateway:
        await gateway.channel.until_sent(2)
        return gateway.channel.texts()


def attempts(database: MemoryDatabase) -> dict[str, int]:
    return {row.message.text: row.attempts for row in database.pending.values()}


async def test_a_stop_ends_what_was_taken_in_with_its_run() -> None:
    """SPEC QUEUE-8."""
    agent = Asking()
    async with taken_in(agent) as gateway:
        await gateway.say("/stop")
        await until(lambda: gateway.pending == [])
        ended = await gateway.store.unanswered(session_of(), ended=True)
        ends = [(row.message.text, row.outcome) for row in ended]
        assert ends == [("taken", Outcome.CANCELLED), ("works", Outcome.CANCELLED)]
        await asyncio.sleep(60)
        assert agent.prompts == ["works"]
        assert gateway.channel.texts() == ["Stopped."]


async def test_a_run_that_was_stopped_takes_nothing_in() -> None:
    """SPEC QUEUE-2, QUEUE-4: what it would take is answered by the next run."""
    agent = Asking(stubborn=True)
    async with a_process(agent, Ways(direct=STEER, cancel_grace_s=60)) as gateway:
        await gateway.say("works", "waits")
        await until(lambda: agent.prompts == ["works"])
        await gateway.say("/stop")
        await agent.take()
        assert agent.taken == []
        await agent.stop_asking()
        await until(lambda: agent.prompts == ["works", "waits"])


async def test_a_run_that_was_given_up_takes_nothing_in() -> None:
    """SPEC QUEUE-2: the fence."""
    agent = Asking(stubborn=True)
    async with a_process(agent, Ways(direct=STEER, cancel_grace_s=1)) as gateway:
        await gateway.say("works", "/stop", apart_s=0.1)
        await asyncio.sleep(5)
        agent.stubborn = False
        await gateway.say("next")
        await until(lambda: agent.prompts == ["works", "next"])
        await gateway.say("for the second")
        await agent.take()
        assert agent.taken == ["for the second"]


@pytest.mark.parametrize("told", ["It broke.", texts.FAILED])
async def test_a_failure_is_told_once_for_all_that_the_run_took_in(told: str) -> None:
    """Also where the end cannot be stored as it is."""

    def fail() -> str:
        raise AgentError("It broke.", "because")

    agent = Asking() if told == texts.FAILED else Asking(end=fail)
    async with taken_in(agent) as gateway:
        if told == texts.FAILED:
            gateway.store.errors["finish_run"] = ValueError("a bug")
        await agent.stop_asking()
        await gateway.channel.until_sent(1)
        await asyncio.sleep(60)
        assert gateway.channel.texts() == [told]
        assert gateway.pending == []


async def test_a_crash_after_the_take_in_loses_nothing() -> None:
    """SPEC IO-2: both run again; only the run that had begun counted as an attempt."""
    database, agent = MemoryDatabase(), Asking()
    async with taken_in(agent, database) as first:
        assert agent.taken == ["taken"]
        first.kill()
    assert attempts(database) == {"works": 1, "taken": 0}
    await asyncio.sleep(60)
    assert await answers_after(database) == ["re: works", "re: taken"]


async def test_a_shutdown_releases_what_joined_a_run_too() -> None:
    """SPEC QUEUE-11: no attempt is counted."""
    database = MemoryDatabase()
    async with taken_in(Asking(), database) as first:
        await first.shut_down(wait_s=1)
    assert attempts(database) == {"works": 0, "taken": 0}
    assert await answers_after(database) == ["re: works", "re: taken"]


async def test_what_another_process_took_over_is_answered_there() -> None:
    """SPEC NODE-1: a late end of the first one covers nothing."""
    database, agent, other = MemoryDatabase(), Asking(stubborn=True), ScriptedAgent()
    async with taken_in(agent, database) as first, a_process(other, WAYS, database=database):
        first.store.away = True
        await until(lambda: other.prompts == ["works", "taken"])
        first.store.away = False
        await agent.stop_asking()
        await asyncio.sleep(60)
        assert first.channel.texts() == []


COLLECT = QueuePolicy(mode=Mode.COLLECT)
COLLECTING = Ways(direct=COLLECT, group=COLLECT)


async def in_group(gateway: GatewayProcess, *said: tuple[str, str], cut: bool = False) -> str:
    """What these people say; the id of the last message."""
    last_id = ""
    for sender, text in said:
        one = message(text, chat="club", sender=sender, peer=PeerKind.GROUP, cut=cut)
        await gateway.gateway.accept([one])
        last_id = one.message_id or ""
    return last_id


async def go_on(agent: ScriptedAgent, gateway: GatewayProcess) -> None:
    """Let the first run end, and the next."""
    await agent.until_active(1)
    agent.release()
    await gateway.channel.until_sent(2)


async def test_what_waited_during_a_run_is_one_turn_and_one_entry_in_its_order() -> None:
    agent = ScriptedAgent(Block("first"))
    async with a_process(agent, COLLECTING) as gateway:
        await gateway.say("works", "b", "a", "c")
        await go_on(agent, gateway)
        assert agent.prompts == ["works", "b\na\nc"]
        assert gateway.channel.texts() == ["first", "re: b\na\nc"]
        assert await gateway.outcomes() == [Outcome.COMPLETED] * 2
        assert gateway.pending == []
        turn = [(Role.USER, "b\na\nc"), (Role.ASSISTANT, "re: b\na\nc")]
        assert (await gateway.history())[2:] == turn


async def test_in_a_group_each_text_of_a_collected_turn_has_its_senders_name() -> None:
    """And the answer replies to the last of them."""
    agent = ScriptedAgent(Block("first"))
    async with a_process(agent, COLLECTING) as gateway:
        last = await in_group(gateway, ("ann", "works"), ("bob", "x"), ("ann", "y"), ("bob", "z"))
        await go_on(agent, gateway)
        said = ["Bob (id bob): x", "Ann (id ann): y", "Bob (id bob): z"]
        assert agent.prompts[1] == "\n".join(said)
        assert [part.text for part in agent.requests[1].parts] == said
        entries = await gateway.store.history(session_of("club", peer=PeerKind.GROUP))
        assert entries[2].entry.text == "\n".join(said)
        assert gateway.channel.sent[1].reply_to == last


async def test_a_cut_text_is_whole_again_and_never_glued_to_somebody_elses() -> None:
    agent = ScriptedAgent(Block("first"))
    async with a_process(agent, COLLECTING) as gateway:
        await in_group(gateway, ("ann", "works"))
        await in_group(gateway, ("bob", "long te"), cut=True)
        await in_group(gateway, ("bob", "xt"), ("cid", "hi"))
        await in_group(gateway, ("dan", "its rest is lost "), cut=True)
        await in_group(gateway, ("bob", "bye"))
        await asyncio.sleep(5)  # the rest of the second cut text is waited for no more
        assert len(gateway.dispatcher.runs()) == 5
        await go_on(agent, gateway)
        assert sorted(agent.prompts[1].splitlines()) == [
            "Bob (id bob): bye",
            "Bob (id bob): long text",
            "Cid (id cid): hi",
            "Dan (id dan): its rest is lost",
        ]


@pytest.mark.parametrize("waiting", [1, 3])
async def test_stopping_everything_counts_each_collected_message(waiting: int) -> None:
    """SPEC CMD-1: what waits is dropped one by one."""
    agent = ScriptedAgent(Block("first"))
    async with a_process(agent, COLLECTING) as gateway:
        await gateway.say("works", *"abc"[:waiting], "/stopall")
        await gateway.channel.until_sent(1)
        assert f"dropped {waiting} waiting message" in gateway.channel.texts()[0]


async def test_a_flood_becomes_turns_of_a_bounded_size_and_its_sender_is_told() -> None:
    async with a_process() as gateway:
        texts = [str(number) for number in range(120)]
        await gateway.gateway.accept([message(text) for text in texts])
        await gateway.channel.until_sent(4)
        prompts = gateway.scripted.prompts
        assert [len(prompt.split("\n")) for prompt in prompts] == [50, 50, 20]
        assert "\n".join(prompts).split("\n") == texts
        told = [text for text in gateway.channel.texts() if not text.startswith("re: ")]
        assert told == [wording.overflowed(["50"])]
