"""Plays: people write, gateways are killed and started again, and all of it is checked."""

from __future__ import annotations

import asyncio
import queue
import random
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.botapi.control import Control
from tests.botapi.faults import Fault, FaultKind
from tests.chaos.books import books
from tests.chaos.cluster.rounds import hooked
from tests.chaos.kills import script
from tests.chaos.kills.checker import Facts, check
from tests.chaos.kills.history import Asked, History
from tests.chaos.kills.launcher import launcher
from tests.chaos.kills.model import model_server
from tests.chaos.kills.records import Records
from tests.chaos.kills.report import Happened, Played, progress
from tests.chaos.kills.script import OF_CHANNEL, Kill, Moment
from tests.chaos.kills.shop import shop
from tests.chaos.kills.trap import Sprung, Trap
from tests.support.process import Home, Program, emulator, home, telegram

_LOOK_S: Final = 0.02
_HOLD_S: Final = 0.3
"""How long the Bot API holds up the call that a kill waits for."""
_RECENT: Final = 60
_SERVED_WITHIN_S: Final = 30.0
_SETTLE_LIMIT_S: Final = 120.0
_CALLS: Final[Mapping[Moment, tuple[str, FaultKind]]] = {
    Moment.POST: ("sendMessage", FaultKind.DELAY),
    Moment.POSTED: ("sendMessage", FaultKind.DELAY_AFTER),
    Moment.EDIT: ("editMessageText", FaultKind.DELAY),
    Moment.EDITED: ("editMessageText", FaultKind.DELAY_AFTER),
}


@dataclass(frozen=True, slots=True)
class Size:
    """How much happens.

    Args:
        chats: The number of people who write at a time, each when the last answer is there.
        warm: Gateways are forks (see ``launcher``).
        patience_s: A moment that has not come by then does not come: a node is killed all the same.
    """

    kills: int = 500
    nodes: int = 1
    chats: int = 4
    warm: bool = True
    patience_s: float = 6.0


class Node:
    """A gateway, which is started again and again."""

    def __init__(self, home: Home, model: str) -> None:
        self._home = home
        self._model = model
        self._lives = 0
        self.start()

    def start(self) -> None:
        """Start it; it is ready a while later.

        What a killed process had sent can still arrive later: each has an address of its own.
        """
        model = f"{self._model}/{self._lives}/v1"
        self.program = self._home.start(ready=False, GOCLAW_AGENTS__MAIN__BASE_URL=model)
        self._lives += 1

    def wait_ready(self) -> None:
        """Wait until it is ready."""
        self._home.wait_ready(self.program)


class Stage:
    """Everything that runs during a play."""

    def __init__(self, seed: str, size: Size, api: Control, history: History) -> None:
        self._seed = seed
        self._size = size
        self._api = api
        self._history = history
        self.trap = Trap(self._send_kill)
        self._nodes: Sequence[Node] = ()
        self._records: Records
        self._kills: list[Happened] = []
        self._outcomes: dict[int, tuple[str, int]] = {}
        self._open: dict[int, int] = {}
        """The last task of each user who writes now."""
        self._chance = random.Random(f"nodes/{seed}")

    def play(self, dsn: str, nodes: Sequence[Node]) -> Played:
        """Kill as often as asked, let all settle, and check."""
        self._nodes = nodes
        for node in nodes:
            node.wait_ready()
        # The first start has made the schema, without which nothing can be read.
        with books(dsn, Records) as self._records:
            began = time.monotonic()
            for number in range(self._size.kills):
                self._kill(script.kill(self._seed, number))
                progress(number, self._size.kills, began)
            seconds = time.monotonic() - began
            facts = self._settle()
        return Played(len(nodes), check(facts), facts, self._kills, seconds)

    # ------------------------------------------------------------------ people

    def _feed(self) -> None:
        """Note which tasks have ended, and let people give new ones."""
        self._look()
        for user, number in list(self._open.items()):
            if number in self._outcomes:
                del self._open[user]
                if (number + 1) % script.TASKS_PER_CHAT:
                    self._say(number + 1)
        while len(self._open) < self._size.chats:
            last = max(self._history.tasks, default=-1)
            self._say((last // script.TASKS_PER_CHAT + 1) * script.TASKS_PER_CHAT)

    def _say(self, number: int) -> None:
        task = script.task(self._seed, number)
        self._history.tasks[number] = task
        self._open[task.user] = number
        self._api.say(task.user, task.text)

    def _look(self) -> None:
        texts = [self._history.tasks[number].text for number in self._open.values()]
        self._outcomes |= self._records.outcomes(texts)

    # ------------------------------------------------------------------ kills

    def _kill(self, kill: Kill) -> None:
        self._let_work(kill.after)
        sprung = self._in_channel(kill) if kill.moment in OF_CHANNEL else self._in_trap(kill)
        hit = sprung is not None or kill.moment is Moment.ANY
        if sprung is None:
            sprung = Sprung(self._chance.randrange(len(self._nodes)))
            self._send_kill(sprung.node)
        self._kills.append(Happened(kill.moment, hit, sprung.node, sprung.about))
        node = self._nodes[sprung.node]
        node.program.wait()
        node.start()

    def _let_work(self, count: int) -> None:
        """Wait until so many messages were answered since the last kill, for a while."""
        wanted = self._answered() + count
        end = time.monotonic() + self._size.patience_s
        self._feed()
        while self._answered() < wanted and time.monotonic() < end:
            self._check_alive()
            time.sleep(_LOOK_S)
            self._feed()

    def _answered(self) -> int:
        return sum(outcome == "completed" for outcome, _ in self._outcomes.values())

    def _in_trap(self, kill: Kill) -> Sprung | None:
        limit_s = kill.rest_s if kill.moment is Moment.ANY else self._size.patience_s
        self.trap.arm(kill)
        end = time.monotonic() + limit_s
        while not self.trap.wait(_LOOK_S) and time.monotonic() < end:
            self._feed()
        return self.trap.disarm()

    def _in_channel(self, kill: Kill) -> Sprung | None:
        """Hold up a call of the Bot API, and kill the node whose chat it is."""
        method, kind = _CALLS[kill.moment]
        self._api.fault(Fault(method, kind, seconds=_HOLD_S))
        before = self._api.counts().get(method, 0)
        end = time.monotonic() + self._size.patience_s
        while self._api.counts().get(method, 0) == before and time.monotonic() < end:
            self._feed()
            time.sleep(_LOOK_S / 4)
        time.sleep(kill.delay_s)
        asked = self._held_up(method)
        self._api.clear_faults()
        if asked is None or not self._send_kill(asked.node):
            return None
        return Sprung(asked.node, asked.id)

    def _held_up(self, method: str) -> Asked | None:
        """The last request of the model for a chat for which a call has no answer yet."""
        seen: set[int] = set()
        for asked in reversed(self._history.requests[-_RECENT:]):
            if (user := asked.task.user) not in seen:
                seen.add(user)
                calls = self._api.transcript(method, chat=user)
                if calls and calls[-1].status is None:
                    return asked
        return None

    def _send_kill(self, number: int) -> bool:
        program = self._nodes[number].program
        if not program.alive():
            return False
        program.send(signal.SIGKILL)
        self._history.killed_at[number].append(time.monotonic())
        return True

    def _check_alive(self) -> None:
        for node in self._nodes:
            assert node.program.alive(), node.program.output[-4_000:]

    # ------------------------------------------------------------------ the end

    def _settle(self) -> Facts:
        """Wait until nothing is left to do, for a while."""
        for node in self._nodes:
            node.wait_ready()
        end = time.monotonic() + _SETTLE_LIMIT_S
        while (left := self._left()) and time.monotonic() < end:
            self._check_alive()
            time.sleep(5 * _LOOK_S)
        users = {task.user for task in self._history.tasks.values()}
        seen = {user: [one.text for one in self._api.view(user) if one.mine] for user in users}
        return Facts(self._history, self._records.stored(), self._outcomes, seen, left)

    def _left(self) -> str:
        self._look()
        waiting = [number for number in self._open.values() if number not in self._outcomes]
        rows, updates = self._records.left(), self._api.pending()
        if rows.nothing and not waiting and not updates:
            return ""
        return f"{rows}, tasks {waiting}, updates {updates}"


def play(seed: str, size: Size, dsn: str, folder: Path) -> Played:
    """Play on an empty database; all that was started has ended afterwards."""
    history = History()
    with ExitStack() as stack:
        api = stack.enter_context(emulator())
        stage = Stage(seed, size, api, history)
        addresses = stack.enter_context(_served(history, stage.trap, size.nodes))
        settings = [_settings(api, dsn, tools) for _, tools in addresses]
        if size.nodes > 1:
            settings = hooked(api, settings)
        launch = stack.enter_context(launcher()).launch if size.warm else Program
        nodes = []
        for number, (own, (model, _)) in enumerate(zip(settings, addresses, strict=True)):
            place = stack.enter_context(home(folder / f"node{number}", **own))
            place.launch = launch
            nodes.append(Node(place, model))
        return stage.play(dsn, nodes)


def _settings(api: Control, dsn: str, tools: str) -> dict[str, str]:
    return telegram(
        api,
        GOCLAW_CHANNELS__TELEGRAM__DIRECT="open",
        GOCLAW_AGENTS__MAIN__MODEL="openai:a-model",
        GOCLAW_AGENTS__MAIN__API_KEY="sk-loopback",
        GOCLAW_AGENTS__MAIN__MCP__SHOP__URL=tools,
        GOCLAW_AGENTS__MAIN__MCP__SHOP__TRUSTED="true",
        GOCLAW_QUEUE__DEBOUNCE_MS="0",
        GOCLAW_LANE_MAIN="16",
        GOCLAW_DATABASE_URL=dsn,
    )


@contextmanager
def _served(history: History, trap: Trap, nodes: int) -> Iterator[list[tuple[str, str]]]:
    """The addresses of model and tools for each node; a thread serves them."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    ready: queue.Queue[list[tuple[str, str]]] = queue.Queue()

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            model = await stack.enter_async_context(model_server(history, trap))
            shops = [
                await stack.enter_async_context(shop(node, history, trap)) for node in range(nodes)
            ]
            ready.put([(f"{model}/{node}", tools) for node, tools in enumerate(shops)])
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        yield ready.get(timeout=_SERVED_WITHIN_S)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(_SERVED_WITHIN_S)
        loop.close()
