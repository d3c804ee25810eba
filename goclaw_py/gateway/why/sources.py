"""The sources of facts for explanations, and their common words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from goclaw_py.core.display_names import KnownNames, address, display_name, needed_names, short_id
from goclaw_py.core.errors import NoGateway
from goclaw_py.core.ids import AgentName, LaneName, RunId, SessionKey
from goclaw_py.core.messages import Sender, Target
from goclaw_py.core.targets import target_text
from goclaw_py.core.text import first_words
from goclaw_py.core.time.clock import Clock
from goclaw_py.core.time.texts import duration, for_reader
from goclaw_py.gateway.container import Container
from goclaw_py.operations.control import Control
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    setting_cure,
)
from goclaw_py.records import DeadLetter, DroppedMessage, Place, Store
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.runs.turn import Turn
from goclaw_py.scheduler.views import GatewayStatus, RunView

SEARCHED: Final = 1000
"""The number of rows in which a name is searched."""

_WORDS: Final = 60
_ERROR: Final = 200


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of facts.

    Args:
        rules: The rules of each account in the settings.
        container: The parts of this gateway; None: only the database.
        zone: The time zone of who asks, "" if it is not known: then times name their zone.
    """

    control: Control
    store: Store
    clock: Clock
    rules: Callable[[], Mapping[Place, ChatRules]]
    container: Container | None = None
    zone: str = ""

    def now(self) -> datetime:
        """Return the present instant."""
        return self.clock.now()

    def time(self, instant: datetime, zone: str) -> str:
        """Return a time of something that has a time zone."""
        return for_reader(instant, self.zone, zone, self.now())

    def rules_of(self, target: Target) -> ChatRules | None:
        """Return the rules of a chat or thread; None if its account is not configured."""
        account = self.rules().get((target.channel, target.account))
        if account is None:
            return None
        chat = account.narrower.get(target.chat, account)
        return chat if target.thread is None else chat.narrower.get(target.thread, chat)

    def handle(self, target: Target) -> str:
        """Return the name of an account's bot, "" if it is unknown."""
        channels = {} if self.container is None else self.container.channels
        channel = channels.get((target.channel, target.account))
        return "" if channel is None else channel.handle or ""

    async def place(self, target: Target) -> str:
        """Return the name of a chat with its address, or the address alone."""
        key, where = address(target), target_text(target)
        name = display_name(key, await self.store.names(*needed_names([key])))
        return where if name == display_name(key, KnownNames()) else f"{name} ({where})"

    async def run_name(self, run: str, session: SessionKey) -> str:
        """Return a run's id and whose it is, as ``run ID (Ann)``."""
        names = await self.control.sessions.names([session])
        return f"run {short_id(run)} ({names[session]})"

    async def status(self) -> GatewayStatus | None:
        """Return the state of the gateway; None without one."""
        try:
            return await self.control.lanes.status()
        except NoGateway:
            return None

    async def is_reachable(self, node: str) -> bool:
        """Return whether a node still renews its lease."""
        nodes = await self.store.nodes()
        return any(one.id == node and one.is_live(self.now()) for one in nodes)

    # ------------------------------------------------------------------ what only a gateway knows

    def turn(self, letter: DeadLetter) -> Turn | None:
        """Return the turn of this gateway for an unfinished message."""
        return None if self.container is None else self.container.runner.turns.of_row(letter.row.id)

    def wider(self, lane: LaneName) -> tuple[Cure, ...]:
        """Return the commands that give a lane more slots."""
        lanes = () if self.container is None else self.container.dispatcher.lanes()
        inside = Cure("Who is in the lane, and who waits", "goclaw lanes")
        path = f"lanes.{lane}"
        for size in (one.concurrency + 1 for one in lanes if one.name == lane):
            return (
                inside,
                Cure("Add one slot, until the restart", f"goclaw lanes set {lane} {size}"),
                setting_cure(f"Permanently: {lane} = {size} under [lanes] in goclaw.toml", path),
            )
        return (inside, setting_cure(f"More slots: {lane} under [lanes] in goclaw.toml", path))

    def view(self, run: RunId) -> RunView | None:
        """Return an unfinished request from the scheduler."""
        runs = () if self.container is None else self.container.dispatcher.runs()
        return next((one for one in runs if one.id == run), None)

    def agent_limit(self, agent: AgentName) -> int | None:
        """Return the number of concurrent runs of an agent, None if it is not known to have one."""
        return None if self.container is None else self.container.dispatcher.agent_limit(agent)

    def dropped(self, letter: DeadLetter) -> DroppedMessage | None:
        """Return how a message was dropped whose sender is not notified yet."""
        if self.container is None:
            return None
        rows = self.container.runner.turns.dropped(letter.session)
        return next((one for one in rows if one.row == letter.row.id), None)


# ---------------------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class Verdict:
    """A result: see ``Explanation``. For a delivery, the answer is a clause."""

    code: str
    answer: str
    cures: tuple[Cure, ...]

    def explanation(
        self, about: Subject, at: datetime, chain: Iterable[ExplanationStep]
    ) -> Explanation:
        """Return the explanation with the decisions that led to it."""
        return Explanation(about, at, self.code, self.answer, tuple(chain), self.cures)


def conclude(code: str, answer: str, *cures: Cure) -> Verdict:
    """Return a verdict with its remedies, the best first."""
    return Verdict(code, answer, cures)


# ---------------------------------------------------------------------------- words


def between(since: datetime, until: datetime) -> str:
    """Return the time between two instants."""
    return duration((until - since).total_seconds())


def quoted(text: str) -> str:
    """Return the first words of a message in quotes; a note if it has none."""
    words = first_words(text, _WORDS)
    return f"“{words}”" if words else "a message without text"


def brief(error: str) -> str:
    """Return the beginning of an error, without a full stop."""
    return first_words(error, _ERROR).rstrip(".")


def who(sender: Sender) -> str:
    """Return a person's name for people."""
    return first_words(sender.name or sender.username or sender.id, _WORDS)


def limit_of(agent: AgentName) -> Cure:
    """Return what an agent with too many concurrent runs needs."""
    return Cure(
        f"Raise max_concurrent under [agents.{agent}]; its value in force",
        f"goclaw config show agents.{agent}.max_concurrent",
    )


def uncapitalized(answer: str) -> str:
    """Return a sentence as a clause."""
    return answer[:1].lower() + answer[1:].rstrip(".")
