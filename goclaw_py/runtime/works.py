"""The parts of a gateway that handle messages, wired to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from goclaw_py.core.events import RunEnded
from goclaw_py.core.ids import AgentName, NodeId
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.routing import GroupPolicy
from goclaw_py.core.scheduler import Scheduler
from goclaw_py.ports.agent import AgentLoop
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.clock import Clock
from goclaw_py.ports.store import Chat, Recovery, Store
from goclaw_py.ports.store import Place as Account
from goclaw_py.runtime.commands import Commands
from goclaw_py.runtime.contexts import Contexts
from goclaw_py.runtime.dispatcher import Dispatcher
from goclaw_py.runtime.doorkeeper import Doorkeeper
from goclaw_py.runtime.drafts import Drafts
from goclaw_py.runtime.gateway import Gateway
from goclaw_py.runtime.incidents import Incidents
from goclaw_py.runtime.outbox import Outbox
from goclaw_py.runtime.pacing import Pacing
from goclaw_py.runtime.policies import ChatRules, Policies
from goclaw_py.runtime.received import Received
from goclaw_py.runtime.reception import Reception
from goclaw_py.runtime.replies import Replies
from goclaw_py.runtime.runner import Runner, Tools
from goclaw_py.runtime.stopper import Stopper
from goclaw_py.runtime.supervisor import Supervisor


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a gateway works with; ``workspaces`` are the folders of the agents."""

    channels: Mapping[Account, Channel]
    rules: Mapping[Account, ChatRules]
    agents: Mapping[AgentName, AgentLoop]
    workspaces: Mapping[AgentName, Path]
    context_windows: Mapping[AgentName, int]


class Works:
    """Wires them; whoever owns it starts their duties."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        scheduler: Scheduler,
        around: Surroundings,
        node: Callable[[], NodeId],
    ) -> None:
        channels = self._channels = around.channels
        self.doorkeeper = Doorkeeper(store, clock)
        contexts = Contexts(around.context_windows)
        policies = Policies(around.rules, contexts)
        pacing = Pacing(channels)
        tools = Tools(
            contexts,
            Drafts(store, clock, channels, pacing),
            Received(channels, around.workspaces),
            Replies(channels, around.workspaces),
        )
        self.runner = Runner(store, around.agents, channels, clock, node, tools)
        self.dispatcher = Dispatcher(scheduler, self.runner)
        self.runner.connect(self.dispatcher)
        self.stopper = Stopper(store, clock, self.dispatcher, self.runner.turns)
        self.commands = Commands(store, clock, self.stopper, channels, policies, self.doorkeeper)
        reception = Reception(store, clock, policies, self.doorkeeper)
        self.gateway = Gateway(store, clock, policies, channels, reception, node)
        self.gateway.connect(self.dispatcher, self.runner, self.commands, self.stopper)
        self.outbox = Outbox(
            store, clock, channels, pacing, node, goes_last=self.doorkeeper.is_strangers
        )
        self.supervisor = Supervisor(store, clock, channels.values(), node)
        self.incidents = Incidents(store, clock, policies, self.doorkeeper, self.supervisor.views)
        self.policies = policies

    def undecided(self, chats: Iterable[Chat]) -> int:
        """Groups that wait until the operator allows or denies them."""
        return sum(chat.allowed is None and self._is_asked(chat) for chat in chats)

    def _is_asked(self, chat: Chat) -> bool:
        place = chat.channel, chat.account
        if chat.peer is not PeerKind.GROUP or chat.gone or place not in self.policies.places:
            return False
        rules = self.policies.rules(Target(*place, chat.chat)).access
        return rules.listed is None and rules.group is GroupPolicy.ALLOWLIST

    def close_cut_runs(self, recovery: Recovery) -> None:
        """Tell channels of runs that are no more: they may still show them (SPEC CMD-3)."""
        for run in recovery.cut_runs:
            if run.target is None:
                continue
            channel = self._channels.get((run.target.channel, run.target.account))
            if channel is not None:
                channel.signal(RunEnded(run.run_id, run.target, run.outcome))
