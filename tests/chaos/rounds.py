"""Plays rounds with a real gateway process, and checks them."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from channels.telegram.settings import Library
from tests.botapi.control import Control
from tests.botapi.faults import DELIVERY, Fault, FaultKind
from tests.chaos.books import IN_BOOKS, Books, books
from tests.chaos.checker import Chat, Left, Verdict, Wrong, check_round, last_answer_at
from tests.chaos.script import ABOUT_EDITS, ABOUT_SENDS, BEFORE, HOLD_S, Saying, Script, Trigger
from tests.support.process import Home, Program, emulator, home, telegram, wait_for

PUBLIC = "https://bot.example.org"
PATH = "/hooks/telegram"
_LOOK_S = 0.002
_TRIGGER_LIMIT_S = 8.0
"""A moment that has not come by then does not come: the gateway is killed all the same."""
_SETTLE_LIMIT_S = 60.0
_CLOSING_LIMIT_S = 6.0
"""How long a draft may take to be closed after everything else; a try is repeated after 2 s."""


class Mode(StrEnum):
    """How updates come in."""

    POLLING = "polling"
    WEBHOOK = "webhook"


_ASKS = {Mode.POLLING: "getUpdates", Mode.WEBHOOK: "setWebhook"}
"""How a gateway asks for updates."""


@dataclass(frozen=True, slots=True)
class Combination:
    """What the gateway uses."""

    library: Library
    mode: Mode

    def __str__(self) -> str:
        return f"{self.library.value}/{self.mode.value}"


@dataclass(frozen=True, slots=True)
class Round:
    """What came of a script.

    Args:
        hit: Whether the moment had come when the gateway was killed.
        kills: How often it was.
        ready_s: From the last start to readiness.
        answered_s: From the last start to the last answer; None if all came before it.
        chats: What the checker has seen.
    """

    script: Script
    verdict: Verdict
    hit: bool
    kills: int
    ready_s: float
    answered_s: float | None
    chats: tuple[Chat, ...]


class Stage:
    """One combination: an emulator, a database, a home with a gateway that runs."""

    def __init__(self, place: Home, api: Control, mode: Mode) -> None:
        self._place = place
        self._api = api
        self._mode = mode
        self._books: Books
        self._gateway: Program
        self._ready_s = 0.0
        self._asked_before = 0

    @contextmanager
    def opened(self, dsn: str) -> Iterator[Self]:
        """Start the gateway, and read its database."""
        self._await_readiness(self._start())
        # The first start has made the schema, without which nothing can be read.
        with books(dsn, Books) as self._books:
            yield self

    def play(self, script: Script) -> Round:
        """Play one round and check it; afterwards a gateway runs."""
        hit = self._play_until_kill(script)
        kills, started = 1, self._start()
        if script.kill_again is not None:
            time.sleep(script.kill_again * self._ready_s)
            self._gateway.kill()
            kills, started = 2, self._start()
        self._await_readiness(started)
        left = self._settle()
        chats = tuple(self._chat(user, script) for user in script.users)
        end = time.monotonic() + _CLOSING_LIMIT_S
        verdict = check_round(chats, left)
        while verdict.count(Wrong.OPEN_DRAFT) and time.monotonic() < end:
            time.sleep(0.1)
            chats = tuple(self._chat(user, script) for user in script.users)
            verdict = check_round(chats, left)
        last = max((at for chat in chats if (at := last_answer_at(chat))), default=started)
        answered_s = last - started if last > started else None
        return Round(script, verdict, hit, kills, self._ready_s, answered_s, chats)

    def again(self, played: Round) -> Verdict:
        """Check an earlier round once more: what was settled has to stay as it was."""
        chats = [self._chat(user, played.script) for user in played.script.users]
        return check_round(chats, self._left())

    # ------------------------------------------------------------------ one round

    def _play_until_kill(self, script: Script) -> bool:
        """Let people write until the moment has come; then kill, and let them write the rest."""
        self._arm(script)
        waiting = deque(script.sayings)
        begin = time.monotonic()
        kill_at_s: float | None = None
        hit = False
        while True:
            now_s = time.monotonic() - begin
            while waiting and waiting[0].at_s <= now_s:
                saying = waiting.popleft()
                if saying.task is None and script.trigger is Trigger.CLOSING:
                    self._arm_against_closing(script.victim)
                self._say(saying)
            if kill_at_s is None:
                hit = self._has_come(script, waiting)
                if hit or now_s > _TRIGGER_LIMIT_S:
                    kill_at_s = now_s + script.kill_after_s
            elif now_s >= kill_at_s:
                break
            time.sleep(_LOOK_S)
        self._gateway.kill()
        self._api.clear_faults()
        for saying in waiting:
            self._say(saying)
        return hit

    def _arm(self, script: Script) -> None:
        """Let the emulator hold up what the moment is about."""
        trigger, chat = script.trigger, script.victim
        kind = FaultKind.DELAY if trigger in BEFORE else FaultKind.DELAY_AFTER
        if trigger in ABOUT_SENDS:
            self._api.fault(Fault("sendMessage", kind, seconds=HOLD_S, chat=chat))
        elif trigger in ABOUT_EDITS:
            self._api.fault(Fault("editMessageText", kind, seconds=HOLD_S, chat=chat))
        elif trigger is Trigger.SETTLING:
            long_s = 10 * HOLD_S
            self._api.fault(Fault("editMessageText", kind, seconds=long_s, chat=chat))
        elif trigger is Trigger.UNCONFIRMED and self._mode is Mode.POLLING:
            # The poll that is under way brings the message; the next one confirms it.
            self._api.fault(Fault("getUpdates", FaultKind.DELAY, seconds=HOLD_S))
        elif trigger is Trigger.UNCONFIRMED:
            self._api.fault(Fault(DELIVERY, FaultKind.RESET_AFTER, chat=chat))

    def _arm_against_closing(self, chat: int) -> None:
        """Hold up the edit that closes a draft; called when the ``/stop`` leaves."""
        self._api.fault(Fault("editMessageText", FaultKind.DELAY, seconds=HOLD_S, chat=chat))

    def _has_come(self, script: Script, waiting: deque[Saying]) -> bool:
        trigger, chat = script.trigger, script.victim
        if trigger in ABOUT_SENDS:
            return bool(self._api.transcript("sendMessage", chat=chat))
        if trigger in ABOUT_EDITS:
            return bool(self._api.transcript("editMessageText", chat=chat))
        if trigger in IN_BOOKS:
            return self._books.shows(trigger, chat)
        if trigger is Trigger.STOPPED:
            return not any(saying.user == chat and saying.task is None for saying in waiting)
        return True

    def _say(self, saying: Saying) -> None:
        self._api.say(saying.user, saying.text)

    def _start(self) -> float:
        """Start a gateway; when, on the clock of all processes of this machine."""
        started = time.monotonic()
        self._asked_before = self._asked()
        self._gateway = self._place.start(ready=False)
        return started

    def _await_readiness(self, started: float) -> None:
        """Wait until it takes updates: it is up before that, and imports the library meanwhile."""
        self._place.wait_ready(self._gateway)
        wait_for(lambda: self._asked() > self._asked_before, "the bot to be served", limit_s=60)
        self._ready_s = time.monotonic() - started

    def _asked(self) -> int:
        """How often a gateway has asked for updates."""
        return self._api.counts().get(_ASKS[self._mode], 0)

    # ------------------------------------------------------------------ what came of it

    def _settle(self) -> Left:
        """Wait until nothing is left to do, for a while; what is left then."""
        end = time.monotonic() + _SETTLE_LIMIT_S
        while not (left := self._left()).nothing and time.monotonic() < end:
            assert self._gateway.alive(), self._gateway.output
            time.sleep(0.05)
        return left

    def _left(self) -> Left:
        rows = self._books.left()
        return Left(rows.inbox, rows.outbox, rows.runs, rows.drafts, self._api.pending())

    def _chat(self, user: int, script: Script) -> Chat:
        said = [saying for saying in script.sayings if saying.user == user]
        return Chat(
            id=user,
            asked=[saying.task for saying in said if saying.task is not None],
            stops=sum(saying.task is None for saying in said),
            seen=self._api.sightings(user),
            taken=self._books.taken(user),
            replies=self._books.replies(user),
        )


@contextmanager
def stage(folder: Path, dsn: str, combination: Combination) -> Iterator[Stage]:
    """Everything that rounds of a combination need; ``dsn`` is a database for it alone."""
    with emulator() as api:
        settings = telegram(
            api,
            GOCLAW_CHANNELS__TELEGRAM__DIRECT="open",
            GOCLAW_CHANNELS__TELEGRAM__LIBRARY=combination.library.value,
            GOCLAW_AGENTS__MAIN__MODEL="python:tests.chaos.agent:run",
            GOCLAW_QUEUE__DEBOUNCE_MS="0",
            GOCLAW_LANE_MAIN="8",
            GOCLAW_DATABASE_URL=dsn,
        )
        if combination.mode is Mode.WEBHOOK:
            port = free_port()
            api.route(PUBLIC, f"http://127.0.0.1:{port}")
            settings["GOCLAW_CHANNELS__TELEGRAM__WEBHOOK_URL"] = PUBLIC + PATH
            settings["GOCLAW_WEB__PORT"] = str(port)
        with (
            home(folder, **settings) as place,
            Stage(place, api, combination.mode).opened(dsn) as made,
        ):
            yield made


def free_port() -> int:
    """A port of this machine that nobody uses now; the gateway needs the same at each start."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
