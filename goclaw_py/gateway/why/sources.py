"""Where explanations take their facts from, and the words that they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from goclaw_py.chats.session_settings import ChatRules
from goclaw_py.common.text import first_words
from goclaw_py.common.time_texts import lasting
from goclaw_py.gateway.container import Container
from goclaw_py.model.errors import NoGateway
from goclaw_py.model.explanation import Cure, Explanation, ExplanationStep, Subject
from goclaw_py.model.ids import LaneName, RunId
from goclaw_py.model.messages import Sender, Target
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.control import Control
from goclaw_py.ports.store import DeadLetter, DroppedMessage, Place, Store
from goclaw_py.runs.turn import Turn
from goclaw_py.scheduler.views import GatewayStatus, RunView

_WORDS: Final = 60
_ERROR: Final = 200
_SHORT_ID: Final = 13
"""The beginning of a run's id that is mostly unique: ids begin with the time."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What is asked for facts.

    Args:
        rules: What the settings say about each account.
        works: The parts of the gateway that is asked; None: the database alone answers.
    """

    control: Control
    store: Store
    clock: Clock
    rules: Callable[[], Mapping[Place, ChatRules]]
    works: Container | None = None

    def now(self) -> datetime:
        """The present instant."""
        return self.clock.now()

    def rules_of(self, target: Target) -> ChatRules | None:
        """The rules of a chat or thread; None if its account is not set up."""
        account = self.rules().get((target.channel, target.account))
        if account is None:
            return None
        chat = account.narrower.get(target.chat, account)
        return chat if target.thread is None else chat.narrower.get(target.thread, chat)

    def handle(self, target: Target) -> str:
        """What people call the bot of an account, "" if that is not known."""
        channels = {} if self.works is None else self.works.channels
        channel = channels.get((target.channel, target.account))
        return "" if channel is None else channel.handle or ""

    async def status(self) -> GatewayStatus | None:
        """The state of the gateway; None without one."""
        try:
            return await self.control.status()
        except NoGateway:
            return None

    async def is_reachable(self, node: str) -> bool:
        """Whether a node still renews its lease."""
        nodes = await self.store.nodes()
        return any(one.id == node and one.is_live(self.now()) for one in nodes)

    # ------------------------------------------------------------------ what only a gateway knows

    def turn(self, letter: DeadLetter) -> Turn | None:
        """What this gateway makes of a message that is not done."""
        return None if self.works is None else self.works.runner.mailboxes.turn(letter.row.id)

    def wider(self, lane: LaneName) -> tuple[Cure, ...]:
        """What gives a lane more slots."""
        lanes = () if self.works is None else self.works.dispatcher.lanes()
        sizes = [str(one.concurrency + 1) for one in lanes if one.name == lane]
        size = sizes[0] if sizes else "N"
        return (
            Cure("Who is in the lane, and who waits", "goclaw lanes"),
            Cure("Add one slot, until the restart", f"goclaw lanes set {lane} {size}"),
            Cure(f"Permanently: {lane} = {size} under [lanes] in goclaw.toml"),
        )

    def view(self, run: RunId) -> RunView | None:
        """A request that is not done, as the scheduler has it."""
        runs = () if self.works is None else self.works.dispatcher.runs()
        return next((one for one in runs if one.id == run), None)

    def dropped(self, letter: DeadLetter) -> DroppedMessage | None:
        """How a message was dropped of which its sender is not told yet."""
        if self.works is None:
            return None
        rows = self.works.runner.notices.dropped(letter.session)
        return next((one for one in rows if one.row == letter.row.id), None)


# ---------------------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of something: see ``Explanation``. Of a delivery the answer is a clause."""

    code: str
    answer: str
    cures: tuple[Cure, ...]

    def explanation(
        self, about: Subject, at: datetime, chain: Iterable[ExplanationStep]
    ) -> Explanation:
        """The verdict with how it came to it."""
        return Explanation(about, at, self.code, self.answer, tuple(chain), self.cures)


def conclude(code: str, answer: str, *cures: Cure) -> Verdict:
    """A verdict with its cures, the best first."""
    return Verdict(code, answer, cures)


# ---------------------------------------------------------------------------- words


def span(seconds: float) -> str:
    """A length of time: ``0.8 s``, ``12 s``, ``1 min 30 s``, ``2 h 5 min``."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    for size, unit, part, smaller in _UNITS:
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}{f' {rest} {smaller}' if rest else ''}"
    return f"{whole} s"


_UNITS: Final = (
    (86_400, "d", 3600, "h"),
    (3600, "h", 60, "min"),
    (60, "min", 1, "s"),
)


def between(since: datetime, until: datetime) -> str:
    """The time between two instants."""
    return span((until - since).total_seconds())


def ago(instant: datetime, now: datetime) -> str:
    """How long ago something was: ``3 minutes ago``, ``just now``."""
    passed = now - instant
    return f"{lasting(passed)} ago" if passed >= timedelta(seconds=1) else "just now"


def quoted(text: str) -> str:
    """The first words of a message, in quotes; a remark if it has none."""
    words = first_words(text, _WORDS)
    return f"“{words}”" if words else "a message without text"


def brief(error: str) -> str:
    """The beginning of an error, without a full stop."""
    return first_words(error, _ERROR).rstrip(".")


def who(sender: Sender) -> str:
    """Somebody as people know them."""
    return first_words(sender.name or sender.username or sender.id, _WORDS)


def short(run: str) -> str:
    """A run's id, short enough to be read; a prefix is a name for it."""
    return run[:_SHORT_ID]


def uncapitalized(answer: str) -> str:
    """A sentence as a clause."""
    return answer[:1].lower() + answer[1:].rstrip(".")


def whole(target: Target) -> Target:
    """The chat of a place, without its thread."""
    return replace(target, thread=None)
