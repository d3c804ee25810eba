"""Signals to channels who became or ceased to be an owner, as for command menus (SPEC CMD-5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.chat.channel import Channel
from goclaw_py.core.messages import Target
from goclaw_py.core.run_events import RoleChanged
from goclaw_py.core.session_keys import chat_of, is_direct_chat
from goclaw_py.core.web_links import OWN_CHANNELS
from goclaw_py.records import Place, SessionQuery, Store
from goclaw_py.runs.session_settings import SessionSettings

_MOST_CHATS: Final = 100
"""Of how many chats, those used last, a process signals at first who is no owner in them."""


class RoleSignals:
    """Signals roles to channels. A service may show for ever what a channel has sent to it."""

    def __init__(
        self,
        store: Store,
        access_control: AccessControl,
        policies: SessionSettings,
        channels: Mapping[Place, Channel],
    ) -> None:
        self._store = store
        self._access_control = access_control
        self._policies = policies
        self._channels = channels
        self._owners: dict[Place, frozenset[str]] = {}

    async def refresh(self) -> None:
        """Load the approved people, and signal what has changed.

        At first everybody counts as changed, also who is no owner: a role may have been removed
        while no gateway ran. Raises ``StoreUnavailable``.
        """
        await self._access_control.refresh()
        for place, channel in self._channels.items():
            listed = self._policies.rules(Target(*place, "")).access.allow
            owners = self._access_control.owners(place) | listed
            changed = owners ^ self._owners.get(place, frozenset())
            if place not in self._owners and channel.name not in OWN_CHANNELS:
                changed |= await self._people(place)
            # A channel may act on the last signal first: owners wait for their commands.
            for sender in sorted(changed, key=owners.__contains__):
                channel.signal(RoleChanged(Target(*place, sender), sender in owners))
            self._owners[place] = owners

    async def _people(self, place: Place) -> set[str]:
        """Return the people of the direct chats of an account that were used last."""
        found = await self._store.sessions(SessionQuery(channel=place[0], limit=_MOST_CHATS))
        chats = (chat_of(one.key) for one in found if is_direct_chat(one.key))
        return {
            one.chat for one in chats if one is not None and (one.channel, one.account) == place
        }
