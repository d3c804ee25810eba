"""A simulated cluster: gateways on one database in virtual time, played from its plan."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, assert_never
from unittest.mock import patch

from goclaw_py.core.errors import StoreUnavailable
from goclaw_py.core.ids import CRON_LANE, MAIN_AGENT, MAIN_LANE, OccurrenceId
from goclaw_py.core.time import clocks
from goclaw_py.operations.jobs.models import JobChange
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy
from goclaw_py.schedule.heartbeat.models import OPEN
from goclaw_py.schedule.heartbeat.models import HeartbeatConfig as HeartbeatPlan
from goclaw_py.schedule.heartbeat.module import HeartbeatSetup
from goclaw_py.schedule.jobs.execution_models import LoggedOccurrence, OccurrenceStatus
from goclaw_py.schedule.jobs.models import JobState
from goclaw_py.scheduler.models import Mode, QueuePolicy
from goclaw_py.testing.clock import START
from tests.chaos.facts import Facts, Said
from tests.chaos.invariants import Breach, broken
from tests.simulation import reading
from tests.simulation.agent import Journal, NotingAgent
from tests.simulation.bugs import logged_errors
from tests.simulation.chats import Server, SimulatedChannel
from tests.simulation.loop import ROOT_CONTEXT, Process, SimulatedLoop
from tests.simulation.plan import (
    TROUBLE_S,
    Drain,
    Event,
    Freeze,
    Kill,
    Outage,
    Plan,
    ProviderOutage,
    Saying,
    Start,
    plan,
)
from tests.simulation.store import TroubledStore
from tests.simulation.trouble import FOR_EVER, Trouble
from tests.support.harness import GatewayProcess, Ways, message
from tests.support.jobs import OPERATOR, Wanted, every, make
from tests.support.memory_store import MemoryDatabase

SETTLE_S = 900.0
"""How long a scenario may take until nothing is left to do."""

_ENDS_WITHIN_S = 60.0
"""How long a gateway may take to end before it is killed."""

_BURIALS = 20
"""How often a task may be told to end that is not to go on."""

_DELIVERY_S = 10.0
"""How long a server waits for a webhook."""

_CHECKLIST = "# Checklist\n\n- [ ] look at the disk\n"


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a scenario.

    Args:
        bugs: Errors that nobody expected, with their places.
        trace: All that happened, in order.
    """

    plan: Plan
    facts: Facts
    breaches: Sequence[Breach]
    bugs: Sequence[str]
    trace: Sequence[tuple[object, ...]]

    def story(self) -> Iterator[str]:
        """The trace for people."""
        for at, *words in self.trace:
            yield f"{at:10.4f} " + " ".join(map(str, words))


def play(planned: Plan | int, folder: Path) -> Played:
    """Play a plan, or that of a seed. ``folder`` is empty, or was used for nothing else."""
    if isinstance(planned, int):
        planned = plan(planned)
    (folder / "HEARTBEAT.md").write_text(_CHECKLIST)
    with (
        _entropy(planned.seed),
        logged_errors() as bugs,
        asyncio.Runner(loop_factory=SimulatedLoop) as runner,
    ):
        cluster = _SimulatedCluster(planned, folder)
        found = runner.run(cluster.play())
    return Played(cluster.plan, found, broken(found), [*bugs, *cluster.bugs], cluster.trouble.trace)


@contextmanager
def _entropy(seed: int) -> Iterator[None]:
    """Let ids and the jitter of retries come from the seed."""
    chance = Random(f"ids {seed}")
    known = random.getstate()
    random.seed(seed)
    with patch.object(clocks, "secrets", SimpleNamespace(randbits=chance.getrandbits)):
        yield
    random.setstate(known)


@dataclass(slots=True, eq=False)
class _Gateway:
    process: Process
    channel: SimulatedChannel
    container: GatewayProcess
    up: bool = False
    draining: bool = False
    watched: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def store(self) -> TroubledStore:
        assert isinstance(self.container.store, TroubledStore)
        return self.container.store


class _SimulatedCluster:
    def __init__(self, planned: Plan, folder: Path) -> None:
        self.plan = planned
        self.bugs: list[str] = []
        self._folder = folder
        self._chance = Random(f"world {planned.seed}")
        chance = Random(f"trouble {planned.seed}")
        self.trouble = Trouble(chance, planned.weight, planned.forced, self._halt)
        self._database = MemoryDatabase()
        self._server = Server()
        self._journal = Journal(planned.seed, planned.work)
        self._gateways: list[_Gateway] = []
        self._deliveries: set[asyncio.Task[None]] = set()

    async def play(self) -> Facts:
        """Let everything happen, let it settle, and see what is left."""
        try:
            await self._let_happen()
            self.trouble.end()
            self._journal.provider_down_until = 0.0
            self.trouble.note("the trouble is over")
            await self._settle()
            settled = asyncio.get_running_loop().time()
            await self._end()
            return replace(self._facts(), settled=settled)
        finally:
            await self._bury()

    # ------------------------------------------------------------------ what happens

    async def _let_happen(self) -> None:
        loop = asyncio.get_running_loop()
        first, *others = self.plan.events
        self._happen(first)
        await self._wait(lambda: self._gateways[0].up or bool(self.bugs))
        if self.bugs:
            return
        if self.plan.job_every_s is not None:
            # An interruption drops what waits in its session, jobs too.
            waits = self.plan.mode is not Mode.INTERRUPT
            session = "main" if self.plan.job_in_chat and waits else "job"
            wanted = Wanted(every(self.plan.job_every_s), policy=(("session", session),))
            await make(self._gateways[0].container, wanted)
        self.trouble.on = True
        for event in others:
            await asyncio.sleep(max(event.at - loop.time(), 0))
            self._happen(event)
        await asyncio.sleep(max(TROUBLE_S - loop.time(), 0))

    def _happen(self, event: Event) -> None:
        self.trouble.note(event)
        match event:
            case Saying():
                self._say(event)
            case Start():
                self._start()
            case Kill():
                self._with_one(self._kill)
            case Freeze():
                self._with_one(lambda one: self._freeze(one, event.for_s))
            case Drain():
                self._with_one(lambda one: self._drain(one, event.wait_s))
            case Outage():
                self._cut(event)
            case ProviderOutage():
                until = asyncio.get_running_loop().time() + event.for_s
                self._journal.provider_down_until = until
            case _:
                assert_never(event)

    def _say(self, saying: Saying) -> None:
        number = str(len(self._server.said))
        said = replace(
            message(saying.text, chat=saying.chat),
            external_id=f"{saying.chat}:{number}",
            message_id=number,
            sent_at=START + timedelta(seconds=asyncio.get_running_loop().time()),
        )
        update = self._server.say(said)
        if not self.plan.polling:
            task = asyncio.create_task(self._deliver(update))
            self._deliveries.add(task)
            task.add_done_callback(self._deliveries.discard)

    async def _deliver(self, update: int) -> None:
        """Call webhooks until one has taken it."""
        while update in self._server.updates:
            where = list(self._server.receiving.values())
            if where:
                channel = self._chance.choice(where)
                process = channel.process
                task = asyncio.create_task(self._take(channel, update), context=process.context)
                # Nobody stops it: a server hangs up, and who was called may go on.
                await asyncio.wait({task}, timeout=_DELIVERY_S)
                if not task.done():
                    continue
            if update in self._server.updates:
                await asyncio.sleep(1.0)

    async def _take(self, channel: SimulatedChannel, update: int) -> None:
        said, intake = self._server.updates.get(update), channel.intake
        if said is None or intake is None:
            return
        since = START + timedelta(seconds=channel.since)
        try:
            await intake.accept([replace(said, redelivered=said.sent_at < since)])
        except StoreUnavailable:
            return
        if self.trouble.hears():  # the answer to the server may be lost, too
            self._server.updates.pop(update, None)

    # ------------------------------------------------------------------ gateways

    def _start(self) -> None:
        process = Process(f"g{len(self._gateways) + 1}")
        gateway = process.context.run(self._made, process)
        self._gateways.append(gateway)
        gateway.watched.append(asyncio.create_task(self._come_up(gateway), context=process.context))

    def _made(self, process: Process) -> _Gateway:
        channel = SimulatedChannel(lease="telegram" if self.plan.polling else None)
        channel.connect(self._server, process, self.trouble)
        container = GatewayProcess(
            database=self._database,
            ways=_ways(self.plan),
            agent=NotingAgent(self._journal, process),
            channels={(channel.name, channel.account): channel},
            workspace=self._folder,
            make_store=lambda database: TroubledStore(database, process, self.trouble),
        )
        return _Gateway(process, channel, container)

    async def _come_up(self, gateway: _Gateway) -> None:
        try:
            await gateway.container.start()
        except StoreUnavailable:
            self._kill(gateway)  # it ends with an error, as the application does
        except Exception as bug:
            self.bugs.append(f"{gateway.process.name} did not come up: {bug!r}")
            self._kill(gateway)
        else:
            gateway.up = True

    def _live(self) -> list[_Gateway]:
        return [one for one in self._gateways if not one.process.dead]

    def _with_one(self, do: Callable[[_Gateway], None]) -> None:
        live = [one for one in self._live() if not one.process.frozen]
        if live:
            do(self._chance.choice(live))

    def _halt(self, process: Process, for_s: float) -> None:
        gateway = next(one for one in self._gateways if one.process is process)
        if for_s == FOR_EVER:
            self._kill(gateway)
        else:
            self._freeze(gateway, for_s)

    def _kill(self, gateway: _Gateway) -> None:
        self.trouble.note("end of", gateway.process.name)
        gateway.process.frozen = gateway.process.dead = True
        gateway.process.died_at = asyncio.get_running_loop().time()
        self._server.receiving.pop(gateway.process, None)
        self._database.hearers.pop(gateway.store, None)
        self._journal.killed(gateway.process)

    def _freeze(self, gateway: _Gateway, for_s: float) -> None:
        self.trouble.note("freeze", gateway.process.name)
        gateway.process.frozen = True
        self._journal.stood_still(gateway.process)
        # Not in the context of the process, which may be who is frozen: its timers stand still.
        asyncio.get_running_loop().call_later(for_s, self._thaw, gateway, context=ROOT_CONTEXT)

    def _thaw(self, gateway: _Gateway) -> None:
        if not gateway.process.dead:
            self.trouble.note("thaw", gateway.process.name)
            gateway.process.thaw()

    def _drain(self, gateway: _Gateway, wait_s: float) -> None:
        if not gateway.up or gateway.draining:
            return
        self.trouble.note("drain", gateway.process.name)
        gateway.draining = True
        work = self._shut_down(gateway, wait_s)
        gateway.watched.append(asyncio.create_task(work, context=gateway.process.context))
        loop = asyncio.get_running_loop()
        loop.call_later(_ENDS_WITHIN_S, self._kill_at_last, gateway)

    async def _shut_down(self, gateway: _Gateway, wait_s: float) -> None:
        with suppress(StoreUnavailable):  # its lease ends by itself
            await gateway.container.shut_down(wait_s=wait_s)
        self._kill_at_last(gateway)

    def _kill_at_last(self, gateway: _Gateway) -> None:
        if not gateway.process.dead:
            self._kill(gateway)

    def _cut(self, outage: Outage) -> None:
        until = asyncio.get_running_loop().time() + outage.for_s
        if outage.one:
            self._with_one(lambda one: self.trouble.cut_until.update({one.process: until}))
        else:
            self.trouble.away_until = until

    # ------------------------------------------------------------------ the end

    async def _settle(self) -> None:
        """Wait until everybody has what was asked for; then let nothing new begin."""
        await self._wait(self._somebody_stays)
        up = [one for one in self._live() if one.up and not one.draining and not one.process.frozen]
        if not up:
            self.bugs.append("no gateway has come up")
            return
        service = up[0].container.container
        if any(job.state is JobState.ACTIVE for job in self._database.cron.jobs.values()):
            await service.job_module.service.edit("job", JobChange(state=JobState.PAUSED), OPERATOR)
        if self.plan.heartbeat_every_s is not None:
            await service.heartbeats.service.switch(MAIN_AGENT, on=False)
        await self._wait(self._is_quiet)

    def _somebody_stays(self) -> bool:
        """Start one if none does; unless it is known already why that is in vain."""
        staying = [one for one in self._live() if not one.draining]
        if not staying and not self.bugs:
            self._start()
        return bool(self.bugs) or any(one.up and not one.process.frozen for one in staying)

    def _is_quiet(self) -> bool:
        database = self._database
        return not (
            self._server.updates
            or database.pending
            or any(database.unsent.values())
            or any(run.end is None for run in database.runs.values())
            or _open(database.cron.logs)
            or any(row.status in OPEN for row in database.heartbeat_runs.rows.values())
            or any(one.process.frozen or one.draining for one in self._live())
            or not self._has_recovered()
        )

    def _has_recovered(self) -> bool:
        database = self._database
        left = [
            row for row in _open(database.cron.logs) if row.status is not OccurrenceStatus.RUNNING
        ]
        clusters = [one.container.cluster for one in self._live()]
        living = {node for one in clusters for node in (one.node.id, one._given_up)}
        return not left and database.nodes.keys() <= living

    async def _wait(self, reached: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + SETTLE_S
        while not reached() and loop.time() < until:
            await asyncio.sleep(0.5)

    async def _end(self) -> None:
        """End all gateways as a rolling restart does; those that are still starting, too."""
        loop = asyncio.get_running_loop()
        await self._wait(lambda: all(one.up for one in self._live()))
        # A lost "here I am" may come late.
        await self._wait(lambda: loop.time() > self.trouble.arrived_at)
        # One of them may have ended instead, and somebody has to take over what it left.
        await self._wait(self._has_recovered)
        for one in self._live():
            self._drain(one, 20.0)
        await self._wait(lambda: not self._live())

    def _facts(self) -> Facts:
        return replace(
            reading.facts(self._database),
            said=tuple(Said(one.target.chat, one.text) for one in self._server.said),
            seen=tuple(self._server.seen),
            worked=tuple(work for _, work in self._journal.container.values()),
        )

    async def _bury(self) -> None:
        """Look for what broke; end what dead processes would still do, without any effect."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.bugs += [*loop.broken, *loop.unheard()]
        for one in self._gateways:
            for task in (*one.watched, *one.container._tasks):
                if task.done() and not task.cancelled() and task.exception() is not None:
                    self.bugs.append(f"{one.process.name} failed: {task.exception()!r}")
        for one in self._gateways:
            one.process.dead = True
            one.process.thaw()
        for _ in range(_BURIALS):
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            if not tasks:
                return
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=60.0)
        self._leave_alone(asyncio.all_tasks() - {asyncio.current_task()})

    def _leave_alone(self, tasks: Collection[asyncio.Task[Any]]) -> None:
        """Nobody waits for these, which go on however often they are told to end."""
        for one in self._gateways:
            one.process.frozen = True
        for task in tasks:
            self.bugs.append(f"{task.get_name()} does not end")
            asyncio._unregister_task(task)


def _open(logs: Mapping[OccurrenceId, LoggedOccurrence]) -> list[LoggedOccurrence]:
    return [row for row in logs.values() if row.finished_at is None]


def _ways(planned: Plan) -> Ways:
    heartbeat_runs = HeartbeatSetup()
    if planned.heartbeat_every_s is not None:
        policy = HeartbeatPolicy(interval=timedelta(seconds=planned.heartbeat_every_s))
        heartbeat_run = HeartbeatPlan(MAIN_AGENT, policy.interval, timedelta(seconds=3))
        heartbeat_runs = HeartbeatSetup({MAIN_AGENT: policy}, {MAIN_AGENT: heartbeat_run})
    return Ways(
        direct=QueuePolicy(mode=planned.mode, debounce_s=0.8, debounce=planned.debounce),
        main_lane=planned.main_lane,
        heartbeats=heartbeat_runs,
        shared=frozenset({MAIN_LANE, CRON_LANE}) if planned.shared else frozenset(),
        outage_hold_s=planned.outage_hold_s,
    )
