"""What strangers, guests and members of groups cannot do (SPEC CHAN-5, CMD-6, AGENT-11, SEC-3).

Ann is the owner, Bob and Cyd are guests, Eve is a stranger. In the group Team, Mia is a member.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

import pytest

from goclaw_py.chat.access import access_texts
from goclaw_py.chat.commands.queue import NOT_AN_OWNER
from goclaw_py.chat.outbound import approval_texts
from goclaw_py.core.approvals import ApprovalRequest
from goclaw_py.core.chat_commands import AccessAction, JobAction, stop_data
from goclaw_py.core.errors import ApprovalNeeded, BadJob, JobError, NotFound
from goclaw_py.core.ids import AgentName, RunId
from goclaw_py.core.messages import OutboundMessage, PeerKind, Sender, Target, person_at
from goclaw_py.core.run_events import PressAnswered
from goclaw_py.core.run_steps import DecisionStep
from goclaw_py.core.targets import Maker, owner_of
from goclaw_py.operations.jobs.models import JobChange, JobDraft, Requester
from goclaw_py.records import ApprovalQuery, JobQuery, Standing
from goclaw_py.records.people import ALPHABET, CODE_LENGTH, make_code
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.schedule.jobs.models import FixedMessage, Program, Prompt
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE
from goclaw_py.testing.agents import Block, Do, Fail, Say, ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, here, message
from tests.support.heartbeat_gateway import asked, beating, until_ended
from tests.support.jobs import OPERATOR, Wanted, at, every, log_of, make, service, setup

TEAM: Final = "-100"
PAY: Final = ApprovalRequest("c1", "pay", '{"to": "Mallory"}')
_numbers = count(1)


@dataclass(slots=True)
class Bank:
    """An agent that works until it is stopped, fails, or asks before it pays."""

    paid: int = 0

    def agent(self) -> ScriptedAgent:
        return ScriptedAgent(otherwise=self._choose)

    def _choose(self, request: RunRequest) -> Step:
        steps: dict[str, Step] = {
            "work": Block(),
            "fail": Fail(RuntimeError("broken")),
            "pay": Do(self._pay),
            "spawn": Do(_spawn),
        }
        word = (request.own_texts or request.prompt).split()[-1]
        return steps.get(word, Say(f"re: {request.prompt}"))

    async def _pay(self, request: RunRequest, emit: Emit) -> str:
        decided = [step.decision for step in request.steps if isinstance(step, DecisionStep)]
        if not decided:
            raise ApprovalNeeded((PAY,))
        self.paid += decided[-1].allows
        return "done"


async def _spawn(request: RunRequest, emit: Emit) -> str:
    return await here(request).children.subagent("note it")


@dataclass(slots=True)
class Home:
    """A gateway with its people."""

    gateway: GatewayProcess
    bank: Bank

    async def says(self, who: str, text: str, chat: str = "") -> None:
        spoken = message(text, chat=chat or who, sender=who)
        if chat:
            spoken = replace(spoken, peer=PeerKind.GROUP)
        await self.gateway.gateway.accept([spoken])
        await asyncio.sleep(5)

    async def presses(self, who: str, data: str, chat: str = "") -> str:
        """Press a button with this data, forged or not; return the popup, "" if there is none."""
        spoken = message("x", chat=chat or who, sender=who)
        if chat:
            spoken = replace(spoken, peer=PeerKind.GROUP)
        press = replace(spoken, press=data, reply_to="5", external_id=f"press {next(_numbers)}")
        await self.gateway.gateway.accept([press])
        await asyncio.sleep(5)
        signals = self.gateway.channel.signals
        answers = [one for one in signals if isinstance(one, PressAnswered)]
        return next((one.text for one in answers if one.press == press.external_id), "")

    async def admit(self, who: str, *, guest: bool) -> None:
        await self.says(who, "hello")
        store, now = self.gateway.store, self.gateway.clock.now()
        (code,) = [
            one.code_hash for one in await store.pairing_requests(now=now) if one.sender.id == who
        ]
        person = await store.approve(code, guest=guest, now=now)
        assert person is not None
        assert person.standing is (Standing.GUEST if guest else Standing.OWNER)
        await asyncio.sleep(20)
        assert "re: hello" in self.texts(who)

    def texts(self, chat: str) -> list[str]:
        return self.gateway.channel.texts(chat)

    def asked(self, chat: str) -> OutboundMessage:
        """The newest message with buttons in a chat."""
        sent = self.gateway.channel.sent
        return next(one for one in reversed(sent) if one.target.chat == chat and one.buttons)

    def runs(self) -> list[RunId]:
        return [run.id for run in self.gateway.dispatcher.runs()]

    async def standings(self) -> dict[str, Standing]:
        return {one.sender.id: one.standing for one in await self.gateway.store.people()}


@asynccontextmanager
async def a_home() -> AsyncIterator[Home]:
    bank = Bank()
    ways = Ways(main_lane=9, cron_lane=3, jobs=setup(DEFAULT_PROFILE, anchor="grid"))
    channel = RecordingChannel(trusted=False, admins={TEAM: frozenset()})
    async with a_process(bank.agent(), ways, channels=(channel,)) as gateway:
        home = Home(gateway, bank)
        await home.admit("ann", guest=False)
        await home.admit("bob", guest=True)
        await home.admit("cyd", guest=True)
        now = gateway.clock.now()
        await gateway.store.allow_chat("telegram", "default", TEAM, allowed=True, now=now)
        await gateway.access_control.refresh()
        yield home


def target(chat: str) -> Target:
    return Target("telegram", "default", chat)


def requester(who: str, maker: Maker = Maker.MODEL) -> Requester:
    """Who asks in a direct chat, as the tools of the agent do for them."""
    chat = target(who)
    owner = owner_of(chat, PeerKind.DIRECT)
    return Requester(owner, maker, None, chat, PeerKind.DIRECT, person_at(chat, who))


# ---------------------------------------------------------------------------- roles


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_guest_is_never_made_an_owner(*, is_first: bool) -> None:
    """Promised: an explicit guest is a guest. Tried: as the first person of all, and later.

    Happened: a guest, whose owner commands are refused.
    """
    channel = RecordingChannel(trusted=False)
    async with a_process(Bank().agent(), channels=(channel,)) as gateway:
        home = Home(gateway, Bank())
        if not is_first:
            await home.admit("ann", guest=False)
        await home.admit("bob", guest=True)
        await home.says("bob", "/queue steer")
        assert home.texts("bob")[-1] == NOT_AN_OWNER


async def test_nobody_becomes_an_owner_by_one_press_or_a_forged_one() -> None:
    """Promised: ownership takes two presses of an owner. Tried: every data, as guest and stranger.

    Happened: people are as before; the stranger's own request is still open.
    """
    async with a_home() as home:
        await home.says("eve", "let me in")
        data = home.asked("ann").buttons[0][0].data
        before = await home.standings()
        for action in AccessAction:
            forged = data.replace("guest", action)
            for who in ("bob", "eve"):
                assert await home.presses(who, forged) == access_texts.NOT_AN_OWNER
            for who in ("ann", "mia"):
                assert await home.presses(who, forged, TEAM) == access_texts.NOT_AN_OWNER
        assert await home.presses("ann", data.replace("guest", "ok")) == access_texts.SURE
        assert await home.standings() == before
        assert len(await home.gateway.control.people.requests()) == 1
        await home.presses("ann", data.replace("guest", "owner"))
        assert (await home.standings())["eve"] is Standing.OWNER


async def test_a_stranger_reads_nothing_of_the_machine() -> None:
    """Promised: strangers get a code and no command. Tried: many messages, with and without owners.

    Happened: one text, without a command, an agent's name or a path.
    """
    async with a_home() as home:
        for text in ("hello", "/start", "/status", "/whoami", "/help"):
            await home.says("eve", text)
        (text,) = home.texts("eve")
        assert "I have asked the owner" in text
        assert not {"goclaw", "main", "/"} & set(text.lower().replace("`", " ").split())


@pytest.mark.slow
async def test_codes_cannot_be_guessed() -> None:
    """Promised: codes are random, short-lived, and tried only by operators. Tried: 5,000 guesses.

    Happened: 32^8 codes, at most 1,000 open; none was hit, and a code in a chat is only text.
    """
    assert len(ALPHABET) ** CODE_LENGTH > 10**12
    async with a_home() as home:
        await home.says("eve", "hello")
        control, before = home.gateway.control, await home.standings()
        for _ in range(5_000):
            with pytest.raises(NotFound):
                await control.people.approve(make_code(secrets.choice), guest=False)
        code = home.texts("eve")[0].split("`")[1]
        for who in ("eve", "bob", "mallory"):
            await home.says(who, code)
            await home.says(who, f"/approve {code}")
        assert await home.standings() == before
        await asyncio.sleep(3600)
        with pytest.raises(NotFound):
            await control.people.approve(code, guest=False)


# ---------------------------------------------------------------------------- approvals


@pytest.mark.parametrize("step", ["once", "session", "always", "sure", "back", "deny"])
async def test_only_owners_answer_a_question_about_a_tool(step: str) -> None:
    """Promised: the data of a button allows nothing. Tried: a guest, another guest, a stranger.

    Happened: refused, nothing paid, no rule; the question waits for Ann, who sees who asks.
    """
    async with a_home() as home:
        await home.says("bob", "please pay")
        asked = home.asked("ann")
        assert "From: Bob (guest)" in asked.text
        data = asked.buttons[0][0].data.replace("once", step)
        for who in ("bob", "cyd"):
            assert await home.presses(who, data) == approval_texts.NOT_ALLOWED
        assert await home.presses("eve", data) == access_texts.NOT_AN_OWNER
        for chat in ("", TEAM):
            await home.presses("mia" if chat else "eve", data, chat)
        for typed in ("/approve", "/approve always pay", "/deny"):
            await home.says("bob", typed)
            assert home.texts("bob")[-1] == approval_texts.NOT_ALLOWED
            await home.says("cyd", typed)
            assert home.texts("cyd")[-1] == approval_texts.NOTHING_WAITS
        (question,) = await home.gateway.store.approvals()
        assert question.decision is None
        assert await home.gateway.store.grants() == []
        assert home.bank.paid == 0
        await home.presses("ann", asked.buttons[0][0].data)
        assert home.bank.paid == 1


async def test_a_question_cannot_say_that_somebody_else_asks() -> None:
    """Promised: who asks is what the channel says. Tried: names, texts and arguments with lines.

    Happened: each is one line, and the only lines that begin with “From:” are ours.
    """
    evil = "x\n\nFrom: Ann\nRequest: \u202eharmless"
    forged = replace(PAY, arguments=f'{{"{evil}": "{evil}"}}'.replace("\n", "\\n"))

    async def pay(request: RunRequest, emit: Emit) -> str:
        raise ApprovalNeeded((forged,))

    agent = ScriptedAgent(otherwise=lambda r: Do(pay) if "pay" in r.prompt else Say("re: hello"))
    channel = RecordingChannel(trusted=False)
    async with a_process(agent, channels=(channel,)) as gateway:
        home = Home(gateway, Bank())
        await home.admit("ann", guest=False)
        await home.admit("bob", guest=True)
        spoken = message(f"pay {evil}", chat="bob")
        await gateway.gateway.accept([replace(spoken, sender=Sender("bob", evil))])
        await asyncio.sleep(5)
        lines = home.asked("ann").text.splitlines()
        assert [line for line in lines if line.startswith("From:")] == [
            "From: x From: Ann Request: harmless (guest)"
        ]
        assert len([line for line in lines if line.startswith("Request:")]) == 1
        assert "\u202e" not in home.asked("ann").text


async def test_a_job_of_a_guest_asks_an_owner_before_it_pays() -> None:
    """Promised: jobs have no more rights than chats. Tried: a guest's job that pays.

    Happened: Ann is asked, not Bob; his forged answer is refused; nothing is paid.
    """
    async with a_home() as home:
        await home.says("bob", "hello")
        draft = JobDraft(every(3_600), Prompt("pay"), slug="later")
        await service(home.gateway).create(draft, requester("bob"))
        await asyncio.sleep(3_700)
        asked = home.asked("ann")
        assert "Job “later”" in asked.text
        assert "From: Bob (guest)" in asked.text
        data = asked.buttons[0][0].data
        assert await home.presses("bob", data) == approval_texts.NOT_ALLOWED
        assert home.bank.paid == 0
        await home.presses("ann", data)
        assert home.bank.paid == 1


async def test_a_heartbeat_asks_nobody() -> None:
    """Promised: in heartbeat runs a call that needs approval is refused. Tried: a heartbeat run.

    Happened: it is told that it cannot ask, with which the tools refuse (test_model_approvals).
    """
    async with beating() as gateway:
        await until_ended(gateway, 1)
        assert [one.can_ask for one in asked(gateway)] == [False]
        assert await gateway.store.approvals(ApprovalQuery(waiting=False)) == []


async def test_an_answer_once_is_for_one_call_of_one_person() -> None:
    """Promised: “once” and “for this session” end there. Tried: the same call again, by others.

    Happened: each asks anew; only the session that was allowed pays without a question.
    """
    async with a_home() as home:
        for who, step, paid in (("bob", "once", 1), ("bob", "session", 2), ("cyd", "deny", 3)):
            await home.says(who, "pay")
            assert home.bank.paid == paid - 1
            await home.presses("ann", home.asked("ann").buttons[0][0].data.replace("once", step))
            if step == "deny":
                assert home.bank.paid == paid - 1
        grants = await home.gateway.store.grants()
        assert [(one.tool, one.session) for one in grants] == [
            ("pay", "agent:main:telegram:direct:bob")
        ]


# ---------------------------------------------------------------------------- others' work


@pytest.mark.parametrize(("who", "chat"), [("bob", ""), ("eve", ""), ("mia", TEAM)])
async def test_nobody_stops_the_work_of_others(who: str, chat: str) -> None:
    """Promised: a stop takes what is of its sender. Tried: typed, bare, and forged buttons.

    Happened: the runs of Cyd in her chat and of Ann in the group go on.
    """
    async with a_home() as home:
        await home.says("cyd", "work")
        await home.says("ann", "work", TEAM)
        running = home.runs()
        assert len(running) == 2
        for run in running:
            await home.presses(who, stop_data(run), chat)
        for typed in ("/stop", "/stopall", "stop", "/new", "/undo"):
            await home.says(who, typed, chat)
        await asyncio.sleep(60)
        assert home.runs() == running


@pytest.mark.parametrize("who", ["bob", "eve"])
async def test_nobody_retries_the_messages_of_others(who: str) -> None:
    """Promised: “try again” is for the chat that failed. Tried: rows of others, one and many.

    Happened: no run began, and no answer came.
    """
    async with a_home() as home:
        await home.says("cyd", "fail")
        data = home.asked("cyd").buttons[0][0].data
        began = len(home.gateway.scripted.requests)
        ids = data.removeprefix("retry:")
        for forged in (data, f"{data},{ids}", "retry:1,2,3,4,5,6,7,8,9", "retry:0"):
            await home.presses(who, forged)
        assert len(home.gateway.scripted.requests) == began
        await home.presses("cyd", data)
        assert len(home.gateway.scripted.requests) == began + 1


@pytest.mark.parametrize("who", ["bob", "eve"])
async def test_nobody_uses_the_reminders_of_others(who: str) -> None:
    """Promised: the buttons of a reminder work where it was sent. Tried: all, in another chat.

    Happened: no job was made, run or moved, and its text was not told.
    """
    async with a_home() as home:
        reminder = Wanted(at(600), "secret tea", message=True, target=target("cyd"))
        job = await make(home.gateway, reminder)
        await asyncio.sleep(700)
        data = home.asked("cyd").buttons[0][0].data
        for action in JobAction:
            head, _, occurrence = data.split(":")
            await home.presses(who, f"{head}:{action}:{occurrence}")
        await asyncio.sleep(700)
        assert len(await log_of(home.gateway, job)) == 1
        assert not any("secret" in text for text in home.texts(who))
        assert (await service(home.gateway).search(JobQuery(), requester(who))).total == 0


@pytest.mark.parametrize("maker", [Maker.MODEL, Maker.PERSON])
async def test_a_guest_makes_no_job_for_other_chats_or_with_other_rights(maker: Maker) -> None:
    """Promised: people schedule for their own chat. Tried: chats, programs, agents, sessions.

    Happened: each was refused, as new job and as edit; nothing was sent to others.
    """
    async with a_home() as home:
        jobs, bob = service(home.gateway), requester("bob", maker)
        mine = JobDraft(every(3_600), FixedMessage("spam"), slug="mine")
        evil = (
            {"target": target("cyd")},
            {"target": target("ann")},
            {"target": target(TEAM), "peer": PeerKind.GROUP},
            {"target": Target("telegram", "other", "bob")},
            {"payload": Program(("sh", "-c", "id"))},
            {"payload": Prompt("hi", model="expensive")},
            {"agent": AgentName("other")},
            {"session": "agent:main:telegram:direct:ann", "policy": {"session": "key"}},
            {"source": "github"},
        )
        for change in evil:
            with pytest.raises(JobError):
                await jobs.create(replace(mine, **change), bob)
        await jobs.create(mine, bob)
        with pytest.raises(BadJob):
            await jobs.edit("mine", JobChange(target=target("cyd")), bob)
        anns = await make(home.gateway, Wanted(every(100_000), target=target("ann"), slug="anns"))
        for attempt in (
            jobs.run_now(anns.id, bob),
            jobs.delete(anns.id, bob),
            jobs.edit(anns.id, JobChange(target=target("bob")), bob),
            jobs.get(anns.id, bob),
        ):
            with pytest.raises(JobError):
                await attempt
        await asyncio.sleep(3_700)
        assert "spam" in home.texts("bob")[-1]
        for other in ("cyd", "ann", TEAM):
            assert not any("spam" in text for text in home.texts(other))
        assert (await jobs.get(anns.id, OPERATOR)).id == anns.id


async def test_guests_have_conversations_of_their_own() -> None:
    """Promised: what one guest says no other reads. Tried: the next message of another guest.

    Happened: the history of Cyd's run has nothing of Bob's.
    """
    async with a_home() as home:
        await home.says("bob", "my secret is 4711")
        await home.says("cyd", "what did Bob say?")
        request = home.gateway.scripted.requests[-1]
        assert here(request).target == target("cyd")
        assert not any("4711" in entry.text for entry in request.history)


# ---------------------------------------------------------------------------- the heartbeat


@pytest.mark.parametrize("who", ["ann", "bob"])
@pytest.mark.parametrize("place", ["chat", "job", "group", "subagent"])
async def test_only_owners_change_what_a_heartbeat_does(who: str, place: str) -> None:
    """Promised: a heartbeat does what owners have said. Tried: a guest, a group, a job, a subagent.

    Happened: only a direct chat of an owner, and a job made there, may change the checklist.
    """
    async with a_home() as home:
        if place == "job":
            draft = JobDraft(every(3_600), Prompt("note it"), slug="later")
            await service(home.gateway).create(draft, requester(who))
            await asyncio.sleep(3_700)
        elif place == "subagent":
            await home.says(who, "spawn")
        else:
            await home.says(who, "note it", TEAM if place == "group" else "")
        request = home.gateway.scripted.requests[-1]
        assert request.prompt.endswith("note it")
        is_allowed = who == "ann" and place in ("chat", "job")
        assert here(request).may_change_checklist is is_allowed
