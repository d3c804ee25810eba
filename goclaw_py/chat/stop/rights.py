"""Who may stop what in a group: members their own, owners and administrators all (CMD-6).

The rules of SPEC CMD-6:

Who may stop what in a group.

- `/stop`, `/stopall`, the button and bare stop words of a member affect only what is their own:
  turns that answer a message of theirs (each sender of a turn may stop it) with all child runs,
  the answers to subagents of these, their waiting messages, the unsent rest of answers to them,
  runs of jobs that they have asked for. `cancel_one` is then the oldest of these. With nothing of
  their own to stop they are told whose it is and who may stop it; so are they with `/new` while
  others' messages run or wait.
- Owners stop everything, and so do admins of the group. Who writes in the name of the group is an
  admin; who writes as a channel is not. Admins (`getChatAdministrators`) are asked for when people
  write there, and known for 5 minutes; if that is refused or takes over 5 s, there are none. While
  they are not known, a stop cancels at once what is its sender's own, and the rest of what was
  there then as soon as the sender is known to be an admin.
- `stop = "own" | "anyone"` per account, chat and thread. Direct chats, the console and stops from
  outside are not limited.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.chat.channel import Channel
from goclaw_py.core.containers import LruCache
from goclaw_py.core.errors import ChannelError
from goclaw_py.core.messages import InboundMessage, PeerKind, Target
from goclaw_py.core.session_keys import StopPolicy
from goclaw_py.records import Place
from goclaw_py.runs.session_settings import SessionSettings

log = logging.getLogger(__name__)

KNOWN_FOR_S: Final = 300.0
"""How long a list of administrators is valid, in seconds."""

_RENEWED_AFTER_S = 120.0
"""After this many seconds a message in the group requests the list again."""

_PATIENCE_S = 5.0
"""Seconds that a stop waits for the list before its sender counts as a member."""

_GROUPS = 10_000


@dataclass(slots=True)
class _Admins:
    """The administrators of a group. ``task`` requests them."""

    task: asyncio.Task[None]
    asked_at: float
    known: frozenset[str] | None = None
    """The last list; None: there is none, or the last request failed."""
    known_at: float = -math.inf


class StopRights:
    """Decides which runs the sender of a stop may cancel.

    A stop is executed before anything can be requested. So the administrators of a group are
    requested while people write there; if they are unknown at a stop, it first cancels only what
    belongs to its sender, and the rest if the sender is an administrator.
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

    def request_admins(self, message: InboundMessage) -> None:
        """Request the administrators of a message's group in advance."""
        if self._is_limited(message):
            admins = self._lists.get(message.target.whole_chat)
            if admins is None or _now() - admins.asked_at > _RENEWED_AFTER_S:
                self._ask(message)

    def limit(self, message: InboundMessage) -> str | None:
        """Return the sender to whose runs a stop is limited; None for no limit, as far as known."""
        if not self._is_limited(message):
            return None
        sender = message.sender.id
        rules = self._policies.rules(message.target).access
        # A sender in the name of the group is an administrator; one in the name of a channel is
        # not.
        if sender == message.target.chat:
            return None
        if self._access_control.is_owner(message.target, sender, rules):
            return None
        return None if sender in (self._known(message) or ()) else sender

    async def is_admin_after_all(self, message: InboundMessage) -> bool:
        """Return whether the sender of a limited stop is an administrator, if that was unknown."""
        if self._known(message) is None:
            await asyncio.wait({self._ask(message).task}, timeout=_PATIENCE_S)
        return message.sender.id in (self._known(message) or ())

    def _is_limited(self, message: InboundMessage) -> bool:
        rules = self._policies.rules(message.target)
        return message.peer is PeerKind.GROUP and rules.stop is StopPolicy.OWN

    def _known(self, message: InboundMessage) -> frozenset[str] | None:
        admins = self._lists.get(message.target.whole_chat)
        return None if admins is None or _now() - admins.known_at > KNOWN_FOR_S else admins.known

    def _ask(self, message: InboundMessage) -> _Admins:
        """Request the administrators of a group, unless that is in progress."""
        group = message.target.whole_chat
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


def _now() -> float:
    return asyncio.get_running_loop().time()
