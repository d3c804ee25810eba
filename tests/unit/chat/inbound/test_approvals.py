"""Runs that wait for the decision of a person about a tool call (SPEC AGENT-11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from goclaw_py.chat.outbound import approval_texts
from goclaw_py.core.approvals import ApprovalRequest, Decision
from goclaw_py.core.errors import ApprovalNeeded
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import InboundMessage, OutboundMessage, PeerKind, Sender
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_events import PressAnswered, TextDelta
from goclaw_py.core.run_steps import DecisionStep
from goclaw_py.records import ApprovalQuery, Standing
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.testing.agents import Do, Say, ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel
from tests.support.drafting import replying
from tests.support.harness import GatewayProcess, Ways, a_process, here, message, session_of, until
from tests.support.memory_store import MemoryDatabase

PAY = ApprovalRequest("c1", "pay", '{"to": "Bob", "amount": 5}', timeout_s=3600.0)
CALL = "🔐 May I call this tool?\n\npay\n  to: Bob\n  amount: 5\n\n"


def asked_for(request: str, person: str = "", before: str = "") -> str:
    """The question about ``PAY`` in a direct chat: that of who asks, or of others."""
    who = f"From: {person}\nChat: direct chat (telegram)\n" if person else ""
    return f"{CALL}{who}Request: {request}" + (f"\nBefore: {before}" if before else "")


WAITS = "⏳ I need an approval before I can go on: pay."
QUESTION = asked_for("pay Bob")
ASKS = Ways(main_lane=1)


def agent_that_asks(*requests: ApprovalRequest) -> ScriptedAgent:
    """An agent that asks for ``pay``, and echoes everything else."""

    async def pay(request: RunRequest, emit: Emit) -> str:
        decided = [step.decision for step in request.steps if isinstance(step, DecisionStep)]
        if not decided:
            raise ApprovalNeeded(requests or (PAY,))
        return f"paid: {', '.join(decided)}"

    async def spawn(request: RunRequest, emit: Emit) -> str:
        task = "delegate" if "child" in request.prompt else "pay"
        assert await here(request).children.spawn(task, "bills") is not None
        return "started"

    async def delegate(request: RunRequest, emit: Emit) -> str:
        return f"child says: {await here(request).children.subagent('pay', 'key')}"

    def choose(request: RunRequest) -> Step:
        word = (request.own_texts or request.prompt).split()[0]
        steps = {"pay": Do(pay), "delegate": Do(delegate), "spawn": Do(spawn)}
        return steps.get(word, Say(f"re: {request.prompt}"))

    return ScriptedAgent(otherwise=choose)


@asynccontextmanager
async def nodes(
    count: int = 1, *, trusted: bool = True, agent: ScriptedAgent | None = None
) -> AsyncIterator[list[GatewayProcess]]:
    database, agent = MemoryDatabase(), agent or agent_that_asks()
    async with AsyncExitStack() as stack:
        channels = (RecordingChannel(trusted=trusted),)
        yield [
            await stack.enter_async_context(
                a_process(agent, ASKS, channels=channels, database=database)
                if number == 0
                else a_process(agent, ASKS, channels=(RecordingChannel(),), database=database)
            )
            for number in range(count)
        ]


def press(below: OutboundMessage, label: str, by: str = "") -> InboundMessage:
    (data,) = [b.data for row in below.buttons for b in row if label in b.text]
    chat = below.target.chat
    pressed = replace(message(label, chat=chat, sender=by or None), press=data, reply_to="5")
    return replace(pressed, sender=Sender(by or chat, (by or chat).title()))


def texts(gateway: GatewayProcess, chat: str = "ann") -> list[str]:
    return gateway.channel.texts(chat)


async def question(gateway: GatewayProcess, chat: str = "ann") -> OutboundMessage:
    def found() -> list[OutboundMessage]:
        sent = gateway.channel.sent
        return [one for one in sent if one.target.chat == chat and one.text.startswith("🔐")]

    await until(lambda: bool(found()))
    return found()[-1]


def toasts(gateway: GatewayProcess) -> list[str]:
    return [one.text for one in gateway.channel.signals if isinstance(one, PressAnswered)]


async def test_a_call_is_asked_about_with_buttons_and_goes_on_after_the_answer() -> None:
    async with nodes() as (gateway,):
        await gateway.say("pay Bob")
        asked = await question(gateway)
        assert asked.text == QUESTION
        assert [[button.text for button in row] for row in asked.buttons] == [
            ["✅ Allow once"], ["✅ Allow for this conversation"], ["✅ Always allow"], ["🚫 Deny"],
        ]  # fmt: skip
        await gateway.gateway.accept([press(asked, "once")])
        await until(lambda: "paid: once" in texts(gateway))
        assert texts(gateway) == [QUESTION, f"{QUESTION}\n\n✅ Allowed once by Ann.", "paid: once"]
        assert toasts(gateway) == ["✅ Allowed once by Ann."]
        assert await gateway.texts_in_history() == ["pay Bob", "paid: once"]
        runs = await gateway.store.runs()
        assert [run.reason for run in runs] == [None, Reason.APPROVAL]
        (lane,) = [one for one in gateway.dispatcher.lanes() if one.name == "main"]
        assert (lane.finished, lane.failed, lane.cancelled) == (2, 0, 0)
        assert gateway.pending == []


async def test_the_answer_after_a_decision_is_a_message_of_its_own() -> None:
    """People would overlook an edit of what was shown before the question, perhaps a day ago."""

    async def pay(request: RunRequest, emit: Emit) -> str:
        emit(TextDelta("let me see"))
        await asyncio.sleep(5)
        if not any(isinstance(step, DecisionStep) for step in request.steps):
            raise ApprovalNeeded((PAY,))
        return "let me see: paid"

    async with replying(ScriptedAgent(otherwise=lambda _: Do(pay))) as (gateway, channel):
        await until(lambda: bool(channel.sent))
        (asked,) = channel.sent
        (stored,) = await gateway.store.approvals()
        assert stored.context.said == "let me see", "a page shows it while the run waits"
        await until(lambda: channel.deleted == {"draft-1"})
        await gateway.gateway.accept([press(asked, "once")])
        await until(lambda: "let me see: paid" in channel.visible())


async def test_what_waits_holds_no_slot_and_other_messages_are_answered_meanwhile() -> None:
    """Also in its own session, and after a restart."""
    database, agent = MemoryDatabase(), agent_that_asks()
    async with a_process(agent, ASKS, database=database) as gateway:
        for number in range(100):
            await gateway.say("pay Bob", chat=f"chat{number}")
        await until(lambda: len(gateway.channel.sent) == 100)
        assert gateway.dispatcher.runs() == ()
        assert await gateway.ask("hello") == "re: hello"
        assert await gateway.ask("hello", chat="chat7") == "re: hello"
        asked = await question(gateway, "chat7")
        await gateway.shut_down()
    async with a_process(agent, ASKS, database=database) as gateway:
        assert await gateway.ask("again", chat="chat8") == "re: again"
        await gateway.gateway.accept([press(asked, "Deny")])
        await until(lambda: "paid: deny" in texts(gateway, "chat7"))
        assert gateway.pending == []


async def test_another_node_goes_on_at_once_and_only_one_press_counts() -> None:
    async with nodes(2) as (one, other):
        await one.say("pay Bob")
        asked = await question(one)
        presses = [press(asked, label) for label in ("once", "Deny") * 500]
        await asyncio.gather(
            *(
                (one if number % 3 else other).gateway.accept([pressed])
                for number, pressed in enumerate(presses)
            )
        )
        await until(lambda: any("paid" in text for node in (one, other) for text in texts(node)))
        await asyncio.sleep(60)
        paid = [text for node in (one, other) for text in texts(node) if "paid" in text]
        assert len(paid) == 1
        late = [text for node in (one, other) for text in toasts(node)]
        assert late.count(approval_texts.TOO_LATE) == 999


async def test_several_questions_of_a_run_are_all_answered_first() -> None:
    agent = agent_that_asks(PAY, replace(PAY, call_id="c2", tool="wipe", uncertain=True))
    async with nodes(agent=agent) as (gateway,):
        await gateway.say("pay Bob")
        await until(lambda: len(texts(gateway)) == 2)
        first, second = gateway.channel.sent
        assert "interrupted while I called this tool" in second.text
        await gateway.gateway.accept([press(second, "It happened")])
        await asyncio.sleep(60)
        assert "paid" not in " ".join(texts(gateway))
        await gateway.gateway.accept([press(first, "Always")])
        await until(lambda: toasts(gateway)[-1] == approval_texts.LOOK)
        await asyncio.sleep(1)
        await gateway.gateway.accept([press(gateway.channel.sent[-1], "Yes")])
        await until(lambda: "paid: happened, always" in texts(gateway))


def _has_more(gateway: GatewayProcess, than: int) -> bool:
    return len(gateway.channel.sent) > than


async def test_a_tool_is_always_allowed_only_after_a_look_at_the_rule() -> None:
    """The way back shows the question again; nothing was decided."""
    async with nodes() as (gateway,):
        await gateway.say("pay Bob")
        asked = await question(gateway)
        for label in ("Always", "Back", "Always"):
            assert await gateway.store.grants() == []
            shown = len(gateway.channel.sent)
            await gateway.gateway.accept([press(gateway.channel.sent[-1], label)])
            await gateway.channel.until(partial(_has_more, gateway, shown))
            assert gateway.channel.sent[-1].draft == "5"
            if label == "Back":
                assert (gateway.channel.sent[-1].text, gateway.channel.sent[-1].buttons) == (
                    asked.text,
                    asked.buttons,
                )
        assert "Agent main may call pay without asking" in texts(gateway)[-1]
        await gateway.gateway.accept([press(gateway.channel.sent[-1], "Yes")])
        await until(lambda: "paid: always" in texts(gateway))
        (grant,) = await gateway.store.grants()
        assert (grant.agent, grant.tool, grant.session) == (MAIN_AGENT, "pay", None)


async def test_a_question_says_what_was_answered_before() -> None:
    async with nodes() as (gateway,):
        for label in ("once", "Deny", "once"):
            await gateway.say("pay Bob")
            await asyncio.sleep(5)
            asked = gateway.channel.sent[-1]
            await gateway.gateway.accept([press(asked, label)])
            await asyncio.sleep(5)
        await gateway.say("pay Bob")
        await asyncio.sleep(5)
        asked = gateway.channel.sent[-1]
        assert asked.text == asked_for("pay Bob", before="allowed 2 times, denied 1 time")


@pytest.mark.parametrize(
    ("typed", "answer", "after"),
    [
        ("/approve", "pay: ✅ Allowed once by Ann.", "paid: once"),
        ("/approve conversation", "pay: ✅ Allowed for this conversation by Ann.", "paid: session"),
        (
            "/approve always",
            approval_texts.rule_question(MAIN_AGENT, "pay", "/approve always pay"),
            None,
        ),
        (
            "/approve always wipe",
            approval_texts.rule_question(MAIN_AGENT, "pay", "/approve always pay"),
            None,
        ),
        ("/approve always pay", "pay: ✅ Always allowed by Ann.", "paid: always"),
        ("/deny", "pay: 🚫 Denied by Ann.", "paid: deny"),
        ("/approve maybe", approval_texts.USAGE, None),
    ],
)
async def test_an_answer_can_be_typed(typed: str, answer: str, after: str | None) -> None:
    async with nodes() as (gateway,):
        assert await gateway.ask(typed) == approval_texts.NOTHING_WAITS
        await gateway.ask("pay Bob")
        await gateway.say(typed)
        await until(lambda: answer in texts(gateway))
        await asyncio.sleep(60)
        assert [text for text in texts(gateway) if "paid" in text] == ([after] if after else [])


async def test_nobody_answers_in_time() -> None:
    async with nodes() as (gateway,):
        await gateway.say("pay Bob")
        asked = await question(gateway)
        await asyncio.sleep(3600 + 120)
        assert texts(gateway)[-1] == "paid: expired"
        assert f"{QUESTION}\n\n{approval_texts.answer(Decision.EXPIRED, '')}" in texts(gateway)
        await gateway.gateway.accept([press(asked, "once")])
        await until(lambda: bool(toasts(gateway)))
        assert toasts(gateway) == [approval_texts.TOO_LATE]


@pytest.mark.parametrize(("typed", "told"), [
    ("/stop", "Stopped."), ("/stopall", "Stopped."), ("/new", ""), ("Stop!", "Stopped."),
])  # fmt: skip
async def test_a_stop_ends_what_waits(typed: str, told: str) -> None:
    async with nodes() as (gateway,):
        await gateway.say("pay Bob")
        asked = await question(gateway)
        assert "🔐 approval of pay" in await gateway.ask("/status")
        await gateway.say(typed)
        await until(lambda: f"{QUESTION}\n\n⏹ Stopped." in texts(gateway))
        await asyncio.sleep(10)
        assert told in texts(gateway)[-1] or told in texts(gateway)[-2]
        await gateway.gateway.accept([press(asked, "once")])
        await until(lambda: toasts(gateway) == [approval_texts.TOO_LATE])
        await asyncio.sleep(60)
        assert not [text for text in texts(gateway) if "paid" in text]
        (row,) = [r for r in gateway.database.inbox.values() if r.message.text == "pay Bob"]
        assert row.outcome is Outcome.CANCELLED
        assert await gateway.ask("hello") == "re: hello"


async def test_a_stop_takes_what_runs_before_what_waits() -> None:
    async with nodes() as (gateway,):
        await gateway.say("pay Bob")
        await question(gateway)
        await gateway.say("hello", "/stop")
        await asyncio.sleep(10)
        (asked,) = await gateway.store.approvals()
        assert asked.decision is None


async def test_a_parent_waits_for_the_approval_of_its_child() -> None:
    async with nodes() as (gateway,):
        await gateway.say("delegate")
        asked = await question(gateway)
        assert gateway.dispatcher.runs() == ()
        (waits,) = await gateway.store.approvals()
        assert waits.session == session_of()
        await gateway.gateway.accept([press(asked, "once")])
        await until(lambda: "child says: paid: once" in texts(gateway))
        assert gateway.pending == []


@pytest.mark.parametrize(
    ("said", "result"), [("spawn", "paid: once"), ("spawn with a child", "child says: paid: once")]
)
async def test_a_background_subagent_asks_in_the_chat_and_continues_on_any_node(
    said: str, result: str
) -> None:
    database, agent = MemoryDatabase(), agent_that_asks()
    async with a_process(agent, ASKS, database=database) as first:
        await first.say(said)
        asked = await question(first)
        await until(lambda: first.dispatcher.runs() == ())
        assert len(await first.store.approvals(ApprovalQuery(session=session_of()))) == 1
        await asyncio.sleep(3000)
        assert texts(first) == ["started", asked_for(said)]
        await first.shut_down()
    async with a_process(agent, ASKS, database=database) as other:
        await asyncio.sleep(300)
        await other.gateway.accept([press(asked, "once")])
        told = f"re: [Subagent “bills” finished]\n{result}"
        await until(lambda: told in texts(other))
        await asyncio.sleep(300)
        assert texts(other).count(told) == 1
        runs = [run for run in await other.store.runs() if run.target and run.parent]
        assert [run.reason for run in runs] == [None, Reason.APPROVAL]
        assert runs[0].session == runs[1].session
        (answered,) = await other.store.approvals(ApprovalQuery(waiting=False))
        assert answered.decided_at is not None
        assert runs[0].started_at - answered.decided_at < timedelta(seconds=0.3)


@pytest.mark.parametrize("typed", ["/stop", "/stopall", "/new", "stop"])
async def test_a_stop_ends_a_background_subagent_that_waits(typed: str) -> None:
    async with nodes() as (gateway,):
        await gateway.say("spawn")
        await question(gateway)
        await gateway.say(typed)
        await until(lambda: f"{asked_for('spawn')}\n\n⏹ Stopped." in texts(gateway))
        await asyncio.sleep(300)
        assert not any("Subagent" in text for text in texts(gateway))
        assert gateway.pending == []


async def test_nobody_answers_the_question_of_a_background_subagent() -> None:
    async with nodes() as (gateway,):
        await gateway.say("spawn")
        await question(gateway)
        await asyncio.sleep(3600 + 120)
        assert texts(gateway)[-1] == "re: [Subagent “bills” finished]\npaid: expired"


async def approve(gateway: GatewayProcess, who: str, *, guest: bool) -> None:
    await gateway.ask("hello", chat=who)
    now = gateway.clock.now()
    requests = await gateway.store.pairing_requests(now=now)
    (code,) = [one.code_hash for one in requests if one.sender.id == who]
    person = await gateway.store.approve(code, guest=guest, now=now)
    assert person is not None
    assert person.standing is (Standing.GUEST if guest else Standing.OWNER)
    await until(lambda: "re: hello" in texts(gateway, who))


async def test_a_guest_may_not_answer_so_the_owners_are_asked() -> None:
    async with nodes(trusted=False) as (gateway,):
        await approve(gateway, "ann", guest=False)
        await approve(gateway, "bob", guest=True)
        await asyncio.sleep(15)
        await gateway.say("pay Bob", chat="bob")
        asked = await question(gateway, "ann")
        assert asked.text == asked_for("pay Bob", "Bob (guest)")
        waits = f"{WAITS} I have asked the owner."
        await until(lambda: waits in texts(gateway, "bob"))
        forged = replace(asked, target=replace(asked.target, chat="bob"))
        await gateway.gateway.accept([press(forged, "once")])
        await until(lambda: bool(toasts(gateway)))
        assert toasts(gateway) == [approval_texts.NOT_ALLOWED]
        await gateway.store.revoke("telegram", "default", "ann")
        await gateway.access_control.refresh()
        await gateway.gateway.accept([press(asked, "once")])
        await asyncio.sleep(60)
        (waiting,) = await gateway.store.approvals()
        assert waiting.decision is None
        await gateway.store.decide_approval(
            waiting.id, Decision.DENY, by="Ann", now=gateway.clock.now()
        )
        denied = f"{waits}\n\n🚫 The owner did not allow it."
        await until(lambda: denied in texts(gateway, "bob"))


async def test_a_guest_reads_once_which_tools_a_run_waits_for_and_no_arguments() -> None:
    """Found by use: a notice for each call, with the text of a file that was to be written."""
    calls = [replace(PAY, call_id=f"c{number}") for number in range(3)]
    agent = agent_that_asks(*calls, replace(PAY, call_id="w", tool="wipe"))
    async with nodes(trusted=False, agent=agent) as (gateway,):
        await approve(gateway, "ann", guest=False)
        await approve(gateway, "bob", guest=True)
        await asyncio.sleep(15)
        await gateway.say("pay Bob", chat="bob")
        await until(lambda: sum(text[0] == "🔐" for text in texts(gateway, "ann")) == 4)
        for waiting in await gateway.store.approvals():
            now = gateway.clock.now()
            await gateway.store.decide_approval(waiting.id, Decision.DENY, by="Ann", now=now)
        await until(lambda: any("paid" in text for text in texts(gateway, "bob")))
        said = [text for text in texts(gateway, "bob") if text.startswith("⏳")]
        waits = "⏳ I need an approval before I can go on: pay 3 times, wipe."
        assert said == [f"{waits} I have asked the owner."]


async def test_without_an_owner_the_operator_is_named() -> None:
    async with nodes(trusted=False) as (gateway,):
        await approve(gateway, "ann", guest=False)
        await approve(gateway, "bob", guest=True)
        await gateway.store.revoke("telegram", "default", "ann")
        await gateway.access_control.refresh()
        await asyncio.sleep(15)
        await gateway.say("pay Bob", chat="bob")
        waits = f"{WAITS} My operator can give it."
        await until(lambda: waits in texts(gateway, "bob"))
        assert len(await gateway.store.approvals()) == 1


@pytest.mark.parametrize("members", [False, True])
async def test_in_a_group_owners_answer_or_everybody(*, members: bool) -> None:
    agent = agent_that_asks(replace(PAY, members=members))
    async with nodes(trusted=False, agent=agent) as (gateway,):
        await approve(gateway, "ann", guest=False)
        now = gateway.clock.now()
        said = partial(message, chat="-100", peer=PeerKind.GROUP)
        await gateway.store.allow_chat("telegram", "default", "-100", allowed=True, now=now)
        await gateway.access_control.refresh()
        await gateway.gateway.accept([said("pay Bob", sender="eve")])
        asked = await question(gateway, "-100")
        await gateway.gateway.accept([replace(press(asked, "once", by="eve"), peer=PeerKind.GROUP)])
        await until(lambda: bool(toasts(gateway)))
        assert toasts(gateway) == [
            "✅ Allowed once by Eve." if members else approval_texts.NOT_ALLOWED
        ]
        # A rule for all chats is for owners, also where members may answer.
        await gateway.gateway.accept([said("pay Zoe", sender="eve")])
        await asyncio.sleep(15)
        always = replace(press(asked, "Always", by="eve"), peer=PeerKind.GROUP)
        asked = next(one for one in reversed(gateway.channel.sent) if one.buttons)
        for step in ("always", "sure"):
            data = asked.buttons[0][0].data.replace("once", step)
            forged = replace(always, press=data, external_id=f"forged {step}")
            await gateway.gateway.accept([forged])
            await asyncio.sleep(1)
        refused = approval_texts.ALWAYS_NOT_ALLOWED if members else approval_texts.NOT_ALLOWED
        assert toasts(gateway)[1:] == [refused] * 2
        assert await gateway.store.grants() == []


async def test_a_question_of_the_console_names_the_operator_and_the_conversation() -> None:
    """Found by use: it named an id made of the time, twice. In its own chat it names neither."""
    channels = (RecordingChannel("console"),)
    async with a_process(agent_that_asks(), ASKS, channels=channels) as gateway:
        here = message("pay Bob", chat="20261130-140451-b031", channel="console")
        await gateway.gateway.accept([here])
        asked = await question(gateway, here.target.chat)
        assert asked.text == asked_for("pay Bob")
        (approval,) = await gateway.store.approvals(ApprovalQuery())
        assert approval_texts.about(approval.context)[:2] == [
            ("From", "the operator"),
            ("Chat", "conversation “20261130-140451-B031”"),
        ]
