"""Questions of the troubleshooting guide: each is provoked in a gateway and answered by it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from goclaw_py.gateway.service import GatewayControl
from goclaw_py.gateway.store_control import StoreControl
from goclaw_py.operations.explanation import Explanation, SubjectKind
from goclaw_py.testing.clock import LoopClock
from tests.support.figures import snapshots_of
from tests.support.harness import GatewayProcess
from tests.support.memory_store import MemoryDatabase, MemoryStore

EXTRA = ""
"""In place of the words of a question that the guide does not have."""

ELSEWHERE = ("goclaw run", "goclaw lanes set", "goclaw jobs runs", "timedatectl")
"""Commands without a page: it cannot start a gateway, for example."""

P = TypeVar("P")


@dataclass(frozen=True)
class Row(Generic[P]):
    """One question.

    Args:
        question: Its words in the guide, or ``EXTRA``.
        provoke: Brings it about, and asks.
        code: The stable name of the answer.
        says: A part of the first sentence.
        cure: A part of what to do: a command, or words.
    """

    question: str
    provoke: P
    code: str
    says: str
    cure: str = ""

    def __str__(self) -> str:
        return self.code


Case = Row[Callable[[], Awaitable[Explanation]]]
"""A question that is provoked in a gateway within the test."""


async def ask(gateway: GatewayProcess, about: str | None = None) -> Explanation:
    """Ask a gateway as ``goclaw why`` does."""
    look = snapshots_of(gateway).full
    return await GatewayControl(gateway.store, gateway.clock, gateway.container, look).why(about)


async def ask_database(
    database: MemoryDatabase, about: str | None = None, gateway: GatewayProcess | None = None
) -> Explanation:
    """The same without a gateway; its settings are those of ``gateway``."""
    rules = dict if gateway is None else lambda: gateway.container.policies.accounts
    return await StoreControl(MemoryStore(database), LoopClock(), chat_rules=rules).why(about)


async def check(case: Case) -> None:
    """The question has its answer, in one sentence, with the way to it and a cure."""
    found = await case.provoke()
    told = f"{found.code}: {found.answer}\n{found.chain}\n{found.cures}"
    assert found.code == case.code, told
    assert case.says in found.answer, told
    assert "\n" not in found.answer
    assert found.answer.endswith("."), told
    assert found.chain, told
    if found.subject.kind not in (SubjectKind.GATEWAY, SubjectKind.NODE):
        # Without a time a step is shown as what is so now, which only the last one can be.
        assert all(step.at for step in found.chain[:-1]), told
    for cure in found.cures:
        # A person at the dashboard has no terminal: a page shows it, or does it (SPEC OPS-3).
        if "under [" in cure.words or (cure.command and not cure.command.startswith(ELSEWHERE)):
            assert cure.link, told
    assert any(case.cure in f"{cure.words}: {cure.command}" for cure in found.cures), told


class Cases(list[Case]):
    """The cases of a file. Decorators tell of each function what it provokes."""

    def question(self, words: str) -> Callable[[Provoke], Provoke]:
        """Above ``answer``: the words of the guide, if it has the question."""

        def named(provoke: Provoke) -> Provoke:
            self[-1] = replace(self[-1], question=words)
            return provoke

        return named

    def answer(self, code: str, says: str, cure: str = "") -> Callable[[Provoke], Provoke]:
        """What the gateway answers to the question; see ``Row``."""

        def answered(provoke: Provoke) -> Provoke:
            self.append(Case(EXTRA, provoke, code, says, cure))
            return provoke

        return answered


Provoke = Callable[[], Awaitable[Explanation]]
