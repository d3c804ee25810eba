"""Who may stop what in a group: members their own, owners and admins everything (SPEC CMD-6)."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from goclaw_py.chats.access_control import AccessControl
from goclaw_py.chats.session_settings import SessionSettings
from goclaw_py.common.lru import LruCache
from goclaw_py.model.errors import ChannelError
from goclaw_py.model.messages import InboundMessage, PeerKind, Target
from goclaw_py.model.session_keys import StopPolicy
from goclaw_py.ports.channel import Channel
from goclaw_py.ports.store import Place

log = logging.getLogger(__name__)

KNOWN_FOR_S: Final = 300.0
"""How long a list of admins holds."""

_RENEWED_AFTER_S = 120.0
"""A message in a group has a list asked for again that is older, before somebody needs it."""

_PATIENCE_S = 5.0
"""How long a stop waits for the list before its sender counts as no admin."""

_GROUPS = 10_000


@dataclass(slots=True)
class _Admins:
    """Those of one group. ``task`` asks for them."""

    task: asyncio.Task[None]
    asked_at: float
    known: frozenset[str] | None = None
    """What the last answer was; None: there was none, or the last question failed."""
    known_at: float = -math.inf


class StopRights:
    """Decides which runs the sender of a stop may cancel.

    A stop acts before it can ask anybody. So the admins of a group are asked for while people write
    there; if they are not known by then, the stop takes what is its sender's own, and the rest when
    it turns out that they are an admin.
    """

    def __init__(
        self,
        policies: SessionSettings,
        access_control: AccessControl,
        channels: Mapping[Place, Channel],
    ) -> None:
        self._policies = policies
        self._access_control = access_control
        self._channels = channels
        self._lists: LruCache[Target, _Admins] = LruCache(_GROUPS)

    def look(self, message: InboundMessage) -> None:
        """Somebody has written: they, or others there, may stop something soon."""
        if self._is_limited(message):
            admins = self._lists.get(_group(message))
            if admins is None or _now() - admins.asked_at > _RENEWED_AFTER_S:
                self._ask(message)

    def limit(self, message: InboundMessage) -> str | None:
        """The sender to whose own work a stop is limited; None if it is not, as far as is known."""
        if not self._is_limited(message):
            return None
        sender = message.sender.id
        rules = self._policies.rules(message.target).access
        # Whoever writes in the name of the group administers it. What writes as a channel does not.
        if sender == message.target.chat:
            return None
        if self._access_control.is_owner(message.target, sender, rules):
            return None
        return None if sender in (self._known(message) or ()) else sender

    async def is_admin_after_all(self, message: InboundMessage) -> bool:
        """Whether the sender of a stop that was limited is an admin, if that was not known."""
        if self._known(message) is None:
            await asyncio.wait({self._ask(message).task}, timeout=_PATIENCE_S)
        return message.sender.id in (self._known(message) or ())

    def _is_limited(self, message: InboundMessage) -> bool:
        rules = self._policies.rules(message.target)
        return message.peer is PeerKind.GROUP and rules.stop is StopPolicy.OWN

    def _known(self, message: InboundMessage) -> frozenset[str] | None:
        admins = self._lists.get(_group(message))
        return None if admins is None or _now() - admins.known_at > KNOWN_FOR_S else admins.known

    def _ask(self, message: InboundMessage) -> _Admins:
        """Ask for the admins of a group, unless that is under way."""
        group = _group(message)
        admins = self._lists.pop(group, None)
        if admins is None or admins.task.done():
            task = asyncio.create_task(self._fetch(group), name=f"admins of {group.chat}")
            known = (None, -math.inf) if admins is None else (admins.known, admins.known_at)
            admins = _Admins(task, _now(), *known)
        self._lists[group] = admins
        return admins

    async def _fetch(self, group: Target) -> None:
        channel = self._channels[group.channel, group.account]
        known = None
        try:
            known = await channel.administrators(group.chat)
        except ChannelError as error:
            log.info("group_admins_unknown", extra={"chat": group.chat, "reason": str(error)})
        except Exception:
            # A channel is a boundary: its bug must not keep anybody from stopping their own.
            log.exception("group_admins_unknown", extra={"chat": group.chat})
        if (admins := self._lists.get(group)) is not None:
            admins.known, admins.known_at = known, _now()


def _group(message: InboundMessage) -> Target:
    return replace(message.target, thread=None)


def _now() -> float:
    return asyncio.get_running_loop().time()
