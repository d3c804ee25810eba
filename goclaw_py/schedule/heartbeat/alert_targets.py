"""The targets of alerts (SPEC HB-8).

The rules of SPEC HB-8:

Target `last` (default): the last chat **and thread** in which an owner (CHAN-5) was the last who
spoke to this agent (accepted messages and commands only, not what a subagent brings) on a channel
that can write first (a console without a terminal only if there is no other): never the direct chat
of a guest, and of a group only as long as no guest has written there since. It survives restarts,
follows migration; a dead one falls back to the next most recent, which the alert says. A topic that
is gone is none of these: its alerts go to the general topic (CHAN-6), also of an explicit target,
and the key stays that of the topic; if that is closed as well, to the next most recent chat, which
only the first alert says. `last_scope = any | direct`. `none`: run, log (`logged`), do not send.
Explicit, whoever reads it: `telegram:<chat>[:<thread>]`; `telegram` alone = the last chat of an
owner there; `web` alone, where there are only guests (CHAN-13) = the last chat there. Nothing left
→ `no_route`, shown as a problem.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never

from goclaw_py.chat.channel import Channel
from goclaw_py.chat.outbound.places import place_name
from goclaw_py.core.ids import AgentName
from goclaw_py.core.messages import Target
from goclaw_py.core.targets import NOBODY, Route
from goclaw_py.core.web_links import WEB
from goclaw_py.records import (
    ActivityQuery,
    Chat,
    ChatAccounts,
    ChatStore,
    LastActivity,
    Place,
)
from goclaw_py.schedule.heartbeat.decisions import HeartbeatPolicy, LastChat, LastScope, NoTarget

_LOOKED_AT: Final = 50

NOWHERE: Final = "its target is none: alerts are only logged"

_LAST: Final = "the chat in which an owner last wrote"


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A target, and what an alert tells about its choice.

    Args:
        instead_of: The last active chat, if nothing can be sent to it; "" if it can.
        wanted: The configured topic, if nothing can be sent to its whole chat.
    """

    route: Route
    instead_of: str = ""
    wanted: Target | None = None


class AlertTargetResolver:
    """Finds the chats for alerts.

    Args:
        accounts: Those in the settings; activity on other accounts does not count.
        channels: The channels of this process, None without a gateway.
    """

    def __init__(
        self,
        store: ChatStore,
        accounts: ChatAccounts,
        channels: Mapping[Place, Channel] | None = None,
    ) -> None:
        self._store = store
        self._accounts = accounts
        self._channels = channels

    async def find(
        self, agent: AgentName, policy: HeartbeatPolicy, without: Target | None = None
    ) -> ResolvedTarget:
        """Return the present target of alerts, not ``without``. Raises ``StoreUnavailable``."""
        wanted = policy.target
        match wanted:
            case NoTarget():
                return ResolvedTarget(Route(None, NOWHERE))
            case LastChat():
                return await self._last(agent, wanted, policy.last_scope, without)
            case Target():
                if without is not None and wanted.whole_chat == without.whole_chat:
                    return await self._last(agent, LastChat(), policy.last_scope, without)
                return await self._explicit(agent, wanted, policy.last_scope)
            case _:
                assert_never(wanted)

    async def _explicit(self, agent: AgentName, target: Target, scope: LastScope) -> ResolvedTarget:
        how = "by the settings"
        if (target.channel, target.account) not in self._accounts.places:
            return ResolvedTarget(Route(target, how, "this channel is not set up"))
        for chat in await self._store.marked_chats():
            if chat.gone and _is(chat, target):
                return ResolvedTarget(Route(target, how, chat.gone))
        gone = await self._gone_topics()
        if _takes_nothing(target, gone):
            other = await self._last(agent, LastChat(), scope, target)
            if other.route.target is not None:
                return await self._instead(other.route.target, target)
        return ResolvedTarget(Route(target, f"{how}{_diverted(target, gone)}"))

    async def _last(
        self, agent: AgentName, wanted: LastChat, scope: LastScope, without: Target | None
    ) -> ResolvedTarget:
        query = ActivityQuery(
            agent,
            direct=scope is LastScope.DIRECT,
            owners=None if wanted.channel == WEB else self._accounts.owners,
            limit=_LOOKED_AT,
        )
        heard = await self._activity(query, wanted, without)
        if not heard:
            return ResolvedTarget(Route(None, NOBODY, NOBODY))
        here = [each for each in heard if self._reaches(each.target)]
        if not here:
            # Its messages wait: for a terminal, or until the token of the bot is accepted again.
            return ResolvedTarget(
                Route(heard[0].target, f"{_LAST}; alerts wait until it is connected")
            )
        topics = await self._gone_topics()
        last = next((each for each in here if not _takes_nothing(each.target, topics)), here[0])
        if last is not here[0]:
            return await self._instead(last.target, here[0].target)
        gone = await self._gone_since(replace(query, gone=True), last, wanted)
        if gone:
            return ResolvedTarget(
                Route(
                    last.target, f"the chat used before {gone}, which can no longer be written to"
                ),
                gone,
            )
        return ResolvedTarget(Route(last.target, f"{_LAST}{_diverted(last.target, topics)}"))

    async def _instead(self, target: Target, wanted: Target) -> ResolvedTarget:
        """Return a chat in place of a topic whose chat is gone."""
        name = await place_name(self._store, wanted)
        route = Route(target, f"the chat used before {name}, which is closed")
        told = (await self._store.topic(wanted)).told
        return ResolvedTarget(route, "" if told else name, wanted)

    async def _gone_topics(self) -> set[Target]:
        return {topic.target for topic in await self._store.gone_topics()}

    async def _activity(
        self, query: ActivityQuery, wanted: LastChat, without: Target | None = None
    ) -> list[LastActivity]:
        return [
            each
            for each in await self._store.activity(query)
            if self._may_be(each.target, wanted, without)
        ]

    async def _gone_since(self, gone: ActivityQuery, last: LastActivity, wanted: LastChat) -> str:
        """Return a chat that was used after ``last`` and is gone; "" if none."""
        marked = await self._store.marked_chats()
        # These are few, and who was there is asked only if one of them may be it.
        if not any(chat.gone and chat.last_seen_at > last.at for chat in marked):
            return ""
        for each in (await self._activity(gone, wanted))[:1]:
            if each.at > last.at:
                return await place_name(self._store, each.target.whole_chat)
        return ""

    def _may_be(self, target: Target, wanted: LastChat, without: Target | None) -> bool:
        return (
            (target.channel, target.account) in self._accounts.places
            and wanted.channel in (None, target.channel)
            and wanted.account in (None, target.account)
            and (without is None or target.whole_chat != without.whole_chat)
        )

    def _reaches(self, target: Target) -> bool:
        if self._channels is None:
            return True
        channel = self._channels.get((target.channel, target.account))
        return channel is not None and channel.reaches(target.chat)


def _takes_nothing(target: Target, gone: Collection[Target]) -> bool:
    """Return whether neither a topic nor the general topic of its chat accepts messages."""
    return target in gone and target.whole_chat in gone


def _diverted(target: Target, gone: Collection[Target]) -> str:
    """Return the note for operators that a topic's messages go to the general topic."""
    return "; its topic is gone, so it goes to the general topic" if target in gone else ""


def _is(chat: Chat, target: Target) -> bool:
    return (chat.channel, chat.account, chat.chat) == (
        target.channel,
        target.account,
        target.chat,
    )
