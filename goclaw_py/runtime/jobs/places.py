"""Where jobs run and where they tell their results."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import datetime, timedelta

from goclaw_py.core.ids import SessionKey
from goclaw_py.core.jobs import Job, TargetKind
from goclaw_py.core.messages import Target
from goclaw_py.core.requests import QueuePolicy
from goclaw_py.core.routing import chat_session
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import ChatStore, Heard
from goclaw_py.runtime.policies import Policies, as_it_stands

_LOOKED_AT = 50


class Places:
    """Finds the chats of jobs."""

    def __init__(self, store: ChatStore, clock: Clock, policies: Policies) -> None:
        self._store = store
        self._clock = clock
        self._policies = policies

    async def target_of(self, job: Job) -> Target | None:
        """Where a job tells its result now; None: nowhere. Raises ``StoreUnavailable``."""
        target = job.spec.target
        if isinstance(target, Target):
            return target
        if target is TargetKind.NONE:
            return None
        last = await self.last(job)
        return None if last is None else last.target

    async def last(self, job: Job) -> Heard | None:
        """Where somebody spoke to its agent last, on an account of this process."""
        for heard in await self._store.heard(agent=job.spec.agent, limit=_LOOKED_AT):
            if (heard.target.channel, heard.target.account) in self._policies.places:
                return heard
        return None

    def policy_of(self, job: Job, session: SessionKey) -> QueuePolicy:
        """How a job queues in its conversation: it takes no place of any message there."""
        target = job.spec.target
        policy = QueuePolicy()
        if isinstance(target, Target) and self._is_of(job, target, session):
            policy = self._policies.rules(target).policy(job.spec.peer)
            policy = self._policies.contexts.throttled(session, policy)
        return replace(as_it_stands(policy), capacity=sys.maxsize)

    def _is_of(self, job: Job, target: Target, session: SessionKey) -> bool:
        """Whether a job works in the conversation of its chat, here."""
        if (target.channel, target.account) not in self._policies.places:
            return False
        return session == chat_session(job.spec.agent, target, job.spec.peer)

    def after(self, seconds: float) -> datetime:
        """The instant so many seconds from now."""
        return self._clock.now() + timedelta(seconds=seconds)
