"""Jobs whose runs ask a person about a tool call (SPEC AGENT-11, CRON-10, CRON-11, CMD-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from goclaw_py.chat.outbound import approval_texts
from goclaw_py.core.approvals import ApprovalRequest, Decision
from goclaw_py.core.errors import ApprovalNeeded
from goclaw_py.core.messages import OutboundMessage, PeerKind, Target
from goclaw_py.core.outcomes import Outcome, Reason
from goclaw_py.core.run_steps import DecisionStep
from goclaw_py.operations.jobs.models import JobChange, RunNow, StartedNow
from goclaw_py.records import RunQuery
from goclaw_py.runs.agent_loop import Emit, RunRequest
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence, OccurrenceStatus, Why
from goclaw_py.schedule.jobs.models import Job, JobState, TargetKind
from goclaw_py.schedule.jobs.policy import DEFAULT_PROFILE
from goclaw_py.testing.agents import Do, Say, ScriptedAgent, Step
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import GatewayProcess, Ways, a_process, here, message, session_of, until
from tests.support.jobs import ANN, OPERATOR, Wanted, after, every, log_of, make, service, setup
from tests.support.memory_store import MemoryDatabase
from tests.unit.chat.inbound.test_approvals import approve, press, texts

PAY = ApprovalRequest("c1", "pay", '{"to": "Bob"}', timeout_s=3600.0)
QUESTION = "🔐 Job “job”: May I call this tool?\n\npay\n  to: Bob\n\nJob: job\nRequest: pay"
AT_ONCE_S = 0.3
PAYS = Wanted(every(60), "pay")


@dataclass(slots=True)
class Payer:
    """An agent that asks before it pays; ``paid`` are its payments."""

    paid: list[str] = field(default_factory=list)

    def agent(self) -> ScriptedAgent:
        return ScriptedAgent(otherwise=self._choose)

    def _choose(self, request: RunRequest) -> Step:
        word = request.prompt.split()[0]
        return {"pay": Do(self._pay), "delegate": Do(self._delegate)}.get(
            word, Say(f"re: {request.prompt}")
        )

    async def _pay(self, request: RunRequest, emit: Emit) -> str:
        decided = [step.decision for step in request.steps if isinstance(step, DecisionStep)]
        if not decided:
            raise ApprovalNeeded((PAY,))
        if decided == [Decision.ONCE]:
            self.paid.append(here(request).run_id)
        return f"paid: {decided[0]}"

    async def _delegate(self, request: RunRequest, emit: Emit) -> str:
        return f"child says: {await here(request).children.subagent('pay', 'key')}"


@asynccontextmanager
async def nodes(
    payer: Payer, count: int = 1, *, trusted: bool = True, **policy: object
) -> AsyncIterator[list[GatewayProcess]]:
    database, ways = (
        MemoryDatabase(),
        Ways(jobs=setup(DEFAULT_PROFILE, anchor="grid", **policy), cron_lane=1),
    )
    async with AsyncExitStack() as stack:
        channels = (RecordingChannel(trusted=trusted),)
        yield [
            await stack.enter_async_context(
                a_process(payer.agent(), ways, database=database, channels=channels)
                if number == 0
                else a_process(payer.agent(), ways, database=database)
            )
            for number in range(count)
        ]


async def question(gateway: GatewayProcess, chat: str = "ann") -> OutboundMessage:
    """What asks in a chat."""

    def found() -> list[OutboundMessage]:
        sent = gateway.channel.sent
        return [one for one in sent if one.target.chat == chat and one.buttons]

    await until(lambda: bool(found()))
    return found()[-1]


async def only_row(gateway: GatewayProcess, job: Job) -> LoggedOccurrence:
    (row,) = await log_of(gateway, job)
    return row


async def test_a_job_asks_in_its_chat_and_goes_on_after_the_answer() -> None:
    payer = Payer()
    async with nodes(payer) as (gateway,):
        job = await make(gateway, PAYS)
        asked = await question(gateway)
        assert asked.text == QUESTION
        row = await only_row(gateway, job)
        assert (row.status, row.why, row.attempts) == (OccurrenceStatus.WAITING, Why.APPROVAL, 0)
        assert gateway.container.job_module.occurrences.all() == ()
        assert "🔐 approval of pay" in await gateway.ask("/status")
        told = await gateway.control.why(f"job:{job.spec.slug}")
        assert told.code == "waits.approval"
        assert "waits for an answer to a question about a tool call" in told.answer
        # More comes due meanwhile, and is one run: the next.
        await asyncio.sleep(150)
        pressed_at = gateway.clock.now()
        await gateway.gateway.accept([press(asked, "once")])
        await until(lambda: bool(payer.paid), within_s=AT_ONCE_S)
        await until(lambda: any("paid: once" in text for text in texts(gateway)))
        (first, *_) = await log_of(gateway, job)
        assert (first.status, first.attempts, first.claims) == (OccurrenceStatus.OK, 1, 1)
        assert (first.started_at, first.runs[-1:]) == (after(60), tuple(payer.paid))
        runs = [run for run in await gateway.store.runs() if run.id in first.runs]
        assert [run.reason for run in runs] == [None, Reason.APPROVAL]
        assert runs[0].started_at >= pressed_at
        kept = await service(gateway).get(job.id, OPERATOR)
        assert (kept.runs, kept.coalesced, kept.failures) == (1, 2, 0)
        assert kept.next_run_at == after(240)


async def test_while_a_job_waits_others_have_its_slot() -> None:
    """Of its lane, and of its agent."""
    async with nodes(payer := Payer(), max_per_agent=1) as (gateway,):
        await make(gateway, PAYS)
        asked = await question(gateway)
        other = await make(gateway, Wanted(every(30), "report", slug="other"))
        await asyncio.sleep(31)
        assert (await only_row(gateway, other)).status is OccurrenceStatus.OK
        await gateway.gateway.accept([press(asked, "once")])
        await until(lambda: len(payer.paid) == 1)


@pytest.mark.parametrize("how", ["deny", "expires", "/approve", "/deny"])
async def test_every_answer_lets_it_go_on(how: str) -> None:
    async with nodes(payer := Payer()) as (gateway,):
        job = await make(gateway, PAYS)
        asked = await question(gateway)
        if how == "expires":
            await asyncio.sleep(3700)
        else:
            await gateway.gateway.accept([press(asked, "Deny") if how == "deny" else message(how)])
            await asyncio.sleep(5)
        (first, *_) = await log_of(gateway, job)
        word = {"expires": "expired", "/approve": "once"}.get(how, "deny")
        assert (first.status, first.output) == (OccurrenceStatus.OK, f"paid: {word}")
        assert len(payer.paid) == (word == "once")


async def stop(gateway: GatewayProcess, job: Job) -> None:
    await gateway.say("/stop")


async def stop_all(gateway: GatewayProcess, job: Job) -> None:
    await gateway.say("/stopall")


async def new(gateway: GatewayProcess, job: Job) -> None:
    await gateway.say("/new")


async def stop_session(gateway: GatewayProcess, job: Job) -> None:
    report = await gateway.control.sessions.stop(session_of(), everything=False)
    assert report.asking == 1


async def pause(gateway: GatewayProcess, job: Job) -> None:
    await service(gateway).edit(job.id, JobChange(state=JobState.PAUSED), OPERATOR)


async def delete(gateway: GatewayProcess, job: Job) -> None:
    await service(gateway).delete(job.id, OPERATOR)


@pytest.mark.parametrize("ends", [stop, stop_all, new, stop_session, pause, delete])
async def test_what_ends_it_answers_its_question(
    ends: Callable[[GatewayProcess, Job], Awaitable[None]],
) -> None:
    async with nodes(payer := Payer(), session="main") as (gateway,):
        job = await make(gateway, PAYS)
        asked = await question(gateway)
        await ends(gateway, job)
        await until(lambda: f"{QUESTION}\n\n⏹ Stopped." in texts(gateway))
        await asyncio.sleep(1)
        row = await only_row(gateway, job)
        assert (row.status, row.why) == (OccurrenceStatus.CANCELLED, Why.STOPPED)
        await gateway.gateway.accept([press(asked, "once")])
        await asyncio.sleep(10)
        assert payer.paid == []
        if ends in (stop, stop_all):
            assert any("Stopped 1 job" in text for text in texts(gateway))
        if ends is not delete:
            kept = await service(gateway).get(job.id, OPERATOR)
            assert kept.running is None


async def test_a_stop_takes_one_thing_the_job_before_the_turn() -> None:
    async with nodes(Payer()) as (gateway,):
        job = await make(gateway, PAYS)
        await question(gateway)
        await gateway.say("pay")
        await until(lambda: len(gateway.channel.sent) == 2)
        await gateway.say("/stop")
        await asyncio.sleep(5)
        assert (await only_row(gateway, job)).status is OccurrenceStatus.CANCELLED
        (left,) = await gateway.store.approvals()
        assert left.session == session_of()


async def test_a_stop_while_it_is_about_to_ask_ends_it() -> None:
    """Before its question is stored, or a moment after."""
    for before in ("slow_before_s", "slow_after_s"):
        async with nodes(payer := Payer()) as (gateway,):
            job = await make(gateway, PAYS)
            slow = getattr(gateway.store, before)
            slow["finish_run"] = 5.0
            await asyncio.sleep(62)
            await gateway.say("/stop")
            await asyncio.sleep(20)
            row = await only_row(gateway, job)
            assert (row.status, row.why) == (OccurrenceStatus.CANCELLED, Why.STOPPED)
            assert await gateway.store.approvals() == []
            assert payer.paid == []


@pytest.mark.parametrize("dies", [False, True])
async def test_an_answer_on_another_node_counts_once(*, dies: bool) -> None:
    """Whether the node that has asked is still there or not."""
    async with nodes(payer := Payer(), 2) as (one, other):
        job = await make(one, PAYS)
        await until(lambda: bool(one.channel.sent or other.channel.sent))
        first, second = (one, other) if one.channel.sent else (other, one)
        asked = await question(first)
        if dies:
            first.kill()
            await until(lambda: bool(second.recoveries))
        await asyncio.gather(*(second.gateway.accept([press(asked, "once")]) for _ in range(20)))
        await until(lambda: bool(payer.paid), within_s=AT_ONCE_S)
        await asyncio.sleep(30)
        row = (await log_of(second, job))[0]
        assert (row.status, row.claims) == (OccurrenceStatus.OK, 1)
        assert len(payer.paid) == 1


async def test_a_late_answer_lets_it_go_on_whatever_its_policy() -> None:
    """Also after the last time at which the job may run."""
    async with nodes(payer := Payer()) as (gateway,):
        policy = (("misfire", "skip"), ("on_busy", "skip"))
        draft = replace(replace(PAYS, policy=policy).draft(), not_after=after(100))
        job = await service(gateway).create(draft, OPERATOR)
        asked = await question(gateway)
        await asyncio.sleep(600)
        await gateway.gateway.accept([press(asked, "once")])
        await until(lambda: len(payer.paid) == 1)
        await asyncio.sleep(2)
        assert (await only_row(gateway, job)).status is OccurrenceStatus.OK
        kept = await service(gateway).get(job.id, OPERATOR)
        assert kept.state is JobState.COMPLETED


async def test_a_run_by_hand_asks_too_and_goes_on_under_a_new_id() -> None:
    async with nodes(payer := Payer()) as (gateway,):
        job = await make(gateway, replace(PAYS, schedule=every(100_000)))
        started = await service(gateway).run_now(job.id, OPERATOR)
        assert isinstance(started, StartedNow)
        asked = await question(gateway)
        assert await service(gateway).run_now(job.id, OPERATOR) is RunNow.ALREADY_RUNNING
        await gateway.gateway.accept([press(asked, "once")])
        await until(lambda: len(payer.paid) == 1)
        await asyncio.sleep(2)
        row = await only_row(gateway, job)
        assert (row.status, row.manual) == (OccurrenceStatus.OK, True)
        assert row.runs == (started.run, *payer.paid)


async def test_a_child_of_its_run_asks_too() -> None:
    async with nodes(payer := Payer()) as (gateway,):
        job = await make(gateway, replace(PAYS, text="delegate"))
        asked = await question(gateway)
        assert asked.text == QUESTION.replace("Request: pay", "Request: delegate")
        assert (await only_row(gateway, job)).status is OccurrenceStatus.WAITING
        await gateway.gateway.accept([press(asked, "once")])
        await until(lambda: len(payer.paid) == 1)
        await asyncio.sleep(2)
        assert (await only_row(gateway, job)).output == "child says: paid: once"


async def test_where_nobody_may_answer_the_owners_are_asked() -> None:
    """In a chat of a guest, and for a job without a chat."""
    async with nodes(Payer(), trusted=False) as (gateway,):
        await approve(gateway, "ann", guest=False)
        await approve(gateway, "bob", guest=True)
        for target in (replace(ANN, chat="bob"), TargetKind.NONE):
            known = len(gateway.channel.sent)
            slug = "bobs" if isinstance(target, Target) else "silent"
            await make(gateway, replace(PAYS, target=target, slug=slug))
            await asyncio.sleep(65)
            asks = [one for one in gateway.channel.sent[known:] if one.buttons]
            assert [(one.target.chat, slug in one.text) for one in asks] == [("ann", True)]
        waits = approval_texts.waits_elsewhere([PAY], "bobs", asks_owners=True)
        assert texts(gateway, "bob").count(waits) == 1


async def test_in_a_group_its_owners_answer() -> None:
    async with nodes(payer := Payer(), trusted=False) as (gateway,):
        await approve(gateway, "ann", guest=False)
        now, group = gateway.clock.now(), replace(ANN, chat="-100")
        await gateway.store.allow_chat("telegram", "default", "-100", allowed=True, now=now)
        await gateway.access_control.refresh()
        draft = replace(PAYS, target=group).draft()
        await service(gateway).create(replace(draft, peer=PeerKind.GROUP), OPERATOR)
        asked = await question(gateway, "-100")
        for person, paid in (("eve", 0), ("ann", 1)):
            pressed = replace(press(asked, "once", by=person), peer=PeerKind.GROUP)
            await gateway.gateway.accept([pressed])
            await asyncio.sleep(5)
            assert len(payer.paid) == paid


async def test_a_retry_after_the_answer_counts_only_failures() -> None:
    """CRON-7: the run that has asked counts as no attempt."""
    calls: list[str] = []

    def choose(request: RunRequest) -> Step:
        async def work(request: RunRequest, emit: Emit) -> str:
            calls.append(here(request).run_id)
            if len(calls) == 1:
                raise ApprovalNeeded((PAY,))
            raise RuntimeError("broken")

        return Do(work)

    ways = Ways(jobs=setup(retries=1, retry_on="any"))
    async with a_process(ScriptedAgent(otherwise=choose), ways) as gateway:
        job = await make(gateway, replace(PAYS, schedule=every(500)))
        asked = await question(gateway)
        await gateway.gateway.accept([press(asked, "once")])
        await asyncio.sleep(60)
        row = await only_row(gateway, job)
        assert (row.status, row.attempts) == (OccurrenceStatus.FAILED, 2)
        assert len(calls) == 3
        outcomes = [run.outcome for run in await gateway.store.runs(RunQuery(limit=9))]
        assert outcomes == [Outcome.FAILED, Outcome.FAILED, Outcome.INTERRUPTED]
