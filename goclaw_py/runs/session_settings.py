"""Queue policies of chats: the settings, the chat's choice, how full its context is."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.messages import InboundMessage, PeerKind, Target
from goclaw_py.core.session_keys import AccessRules, GroupPolicy, StopPolicy
from goclaw_py.records import InboxRow, ListedOwner, Place
from goclaw_py.runs.context_usage import ContextUsage
from goclaw_py.scheduler.models import Mode, QueuePolicy


@dataclass(frozen=True, slots=True)
class ChatRules:
    """The rules of an account, a chat or a thread in the settings.

    ``context_messages`` is the number of unmentioned group messages that an agent may read.
    ``narrower`` are the chats of an account, by id, and the threads of a chat, that have settings.
    ``chosen`` are the queue policies of agents that a message may choose.
    """

    agent: AgentName
    access: AccessRules
    direct: QueuePolicy
    group: QueuePolicy
    run_timeout_s: float | None = None
    deadline_s: float | None = None
    stop_words: bool = True
    context_messages: int = 50
    stop: StopPolicy = StopPolicy.OWN
    narrower: Mapping[str, ChatRules] = field(default_factory=dict)
    chosen: Mapping[AgentName, QueuePolicy] = field(default_factory=dict)

    def policy(self, peer: PeerKind, agent: AgentName | None = None) -> QueuePolicy:
        """Return the queue policy of direct chats or groups, or of a chosen agent."""
        if agent is not None and agent in self.chosen:
            return self.chosen[agent]
        return self.direct if peer is PeerKind.DIRECT else self.group


@dataclass(frozen=True, slots=True)
class OperatorDecidedAccounts:
    """Accounts whose groups the operator decides about (SPEC CHAN-7).

    Args:
        settled: The chats that the settings decide about.
    """

    places: Collection[Place]
    settled: Collection[Target]


class SessionSettings:
    """The rules of all accounts, and the modes that chats have chosen (SPEC CMD-5).

    A session's choice comes with its first row and is valid while this node owns the session.
    """

    def __init__(self, rules: Mapping[Place, ChatRules], contexts: ContextUsage) -> None:
        self._rules = rules
        self.contexts = contexts
        self._chosen: dict[SessionKey, Mode | None] = {}

    @property
    def places(self) -> Collection[Place]:
        """The accounts of this process."""
        return self._rules.keys()

    @property
    def owners(self) -> Collection[ListedOwner]:
        """The owners by the settings."""
        return {
            (*place, person)
            for place, rules in self._rules.items()
            for person in (None,) * rules.access.trusted + tuple(rules.access.allow)
        }

    @property
    def accounts(self) -> Mapping[Place, ChatRules]:
        """The rules of each account."""
        return self._rules

    def replace_rules(self, rules: Mapping[Place, ChatRules]) -> None:
        """Use other rules for these accounts from the next message on (SPEC OPS-11)."""
        self._rules = {**self._rules, **rules}

    def asking(self) -> OperatorDecidedAccounts:
        """The accounts whose groups wait for the operator's decision."""
        own = {
            place: rules
            for place, rules in self._rules.items()
            if not rules.access.trusted and rules.access.group is GroupPolicy.ALLOWLIST
        }
        settled = [
            Target(*place, chat)
            for place, rules in own.items()
            for chat, narrower in rules.narrower.items()
            if narrower.access.listed is not None
        ]
        return OperatorDecidedAccounts(own.keys(), settled)

    def rules(self, target: Target) -> ChatRules:
        """Return the rules of a thread, its chat or its account."""
        rules = self._rules[target.channel, target.account]
        rules = rules.narrower.get(target.chat, rules)
        return rules if target.thread is None else rules.narrower.get(target.thread, rules)

    def ensure_stored(self, row: InboxRow) -> None:
        """Store the choice of a row's session, unless it is known."""
        self._chosen.setdefault(row.session, row.mode)

    def choose(self, session: SessionKey, mode: Mode | None) -> None:
        """Store the choice of a chat; None goes back to the settings."""
        self._chosen[session] = mode

    def chosen(self, session: SessionKey) -> Mode | None:
        """Return the choice of a chat, as far as known."""
        return self._chosen.get(session)

    def policy(self, session: SessionKey, message: InboundMessage) -> QueuePolicy:
        """Return the queue policy of a message: the chat's choice, otherwise the settings."""
        policy = self.rules(message.target).policy(message.peer, message.agent)
        mode = self._chosen.get(session)
        return policy if mode is None or mode is policy.mode else replace(policy, mode=mode)

    def forget(self, sessions: Iterable[SessionKey] | None = None) -> None:
        """Forget the choices of sessions, or of all, which other nodes may own now."""
        if sessions is None:
            self._chosen.clear()
            self.contexts.forget_all()
            return
        for session in sessions:
            self._chosen.pop(session, None)


def as_it_stands(policy: QueuePolicy) -> QueuePolicy:
    """Return the policy for rows after a crash: without debounce and drops."""
    return replace(policy, debounce_s=0.0, mode=Mode.QUEUE, capacity=sys.maxsize)
