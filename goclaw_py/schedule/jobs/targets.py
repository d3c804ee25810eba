"""The sessions of jobs, and the targets of their results."""

from __future__ import annotations

from typing import Final, assert_never

from goclaw_py.chat.outbound.places import place_name
from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.session_keys import chat_session
from goclaw_py.core.targets import NOBODY, Route, chat_of
from goclaw_py.records import ActivityQuery, ChatAccounts, ChatStore, Place
from goclaw_py.runs.session_settings import SessionSettings, as_it_stands
from goclaw_py.schedule.jobs.models import OPERATOR, Job, TargetKind
from goclaw_py.scheduler.models import QueuePolicy

_LOOKED_AT: Final = 50
_LOOKED_AT_FOR_THREADS: Final = 1000
"""If a chat is not among this many, the chat itself is used, not one of its threads."""


_OWN: Final = as_it_stands(QueuePolicy())
"""The queue policy of a session that is not a chat."""

NOT_SET_UP: Final = "this channel is not set up"


async def route_of(store: ChatStore, accounts: ChatAccounts, job: Job) -> Route:
    """Return the present route of a job's result. Raises ``StoreUnavailable``.

    Neither target nor problem means that the job has no target.
    """
    match job.spec.target:
        case Target() as target:
            found: Target | None = target
        case TargetKind.NONE:
            return Route(None)
        case TargetKind.LAST:
            found = await owners_chat(store, accounts, job)
        case _:
            assert_never(job.spec.target)
    if found is None:
        return Route(None, problem=NOBODY)
    return Route(found, problem="" if _place(found) in accounts.places else NOT_SET_UP)


async def owners_chat(
    store: ChatStore, accounts: ChatAccounts, job: Job, without: Target | None = None
) -> Target | None:
    """Return the chat of a job's owner; None if there is none.

    For a chat, that chat, in the thread with the last message to the agent, because no other chat
    may read it (SPEC SEC-3). For operators, the chat in which an owner last wrote to the agent.
    Never the chat ``without``. Raises ``StoreUnavailable``.
    """
    agent = job.spec.agent
    besides = None if without is None else without.whole_chat
    if job.owner == OPERATOR:
        # What an operator's job tells is not for guests.
        query = ActivityQuery(agent, owners=accounts.owners, limit=_LOOKED_AT)
        found = await store.activity(query)
        here = (each.target for each in found if _place(each.target) in accounts.places)
        return next((one for one in here if one.whole_chat != besides), None)
    if (owner := chat_of(job.owner)) is None or owner[0] == besides:
        return None
    chat, peer = owner
    direct = peer is PeerKind.DIRECT
    query = ActivityQuery(agent, direct=direct, limit=_LOOKED_AT_FOR_THREADS)
    found = await store.activity(query)
    threads = (each.target for each in found if each.target.whole_chat == chat)
    return next(threads, chat)


class JobTargets:
    """Finds the chats of jobs."""

    def __init__(self, store: ChatStore, policies: SessionSettings) -> None:
        self._store = store
        self._policies = policies

    async def target_of(self, job: Job) -> Target | None:
        """Return the present target of a job's result; None if there is none.

        Raises ``StoreUnavailable``.
        """
        return (await self.route_of(job)).target

    async def route_of(self, job: Job) -> Route:
        """Return the same with the reason why it would not arrive. Raises ``StoreUnavailable``."""
        return await route_of(self._store, self._policies, job)

    async def of_owner(self, job: Job, without: Target | None = None) -> Target | None:
        """Return the chat of a job's owner, except ``without``; None if there is none."""
        return await owners_chat(self._store, self._policies, job, without)

    async def name_of(self, target: Target) -> str:
        """Return the name of a chat for people. Raises ``StoreUnavailable``."""
        return await place_name(self._store, target)

    def policy_of(self, job: Job, session: SessionKey) -> QueuePolicy:
        """Return the queue policy of a job in its session: it replaces no message there."""
        target = job.spec.target
        if isinstance(target, Target) and self._is_of(job, target, session):
            policy = self._policies.rules(target).policy(job.spec.peer)
            return as_it_stands(self._policies.contexts.throttled(session, policy))
        return _OWN

    def _is_of(self, job: Job, target: Target, session: SessionKey) -> bool:
        """Return whether a job runs in the session of its chat, on this node."""
        if _place(target) not in self._policies.places:
            return False
        return session == chat_session(job.spec.agent, target, job.spec.peer)


def _place(target: Target) -> Place:
    return target.channel, target.account
