"""Which operations change something, and what is recorded of them (SPEC SEC-9).

Operations of ``NOUNS`` declare it themselves; here are the tables of what chats and browsers change
in the store. Each operation changes something or is among ``READS``; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from goclaw_py.core.actors import Actor, ActorKind
from goclaw_py.operations.declare import Actions, Arguments, Change, named
from goclaw_py.operations.nouns import NOUNS
from goclaw_py.records import SignInMethod

SERVICES: Final[Mapping[str, Actions]] = {noun.name: noun.changes for noun in NOUNS}
"""The services within ``Control``, by name."""

READS: Final[Mapping[str, frozenset[str]]] = {
    "control": frozenset({"why", "follow", *SERVICES}),
    **{noun.name: noun.reads for noun in NOUNS},
}
"""Operations that change nothing: they are not recorded, and cost no statement."""

# ---------------------------------------------------------------------------- chats, sign-ins


CHATS: Final[Actions] = {
    name: change for noun in NOUNS for name, change in noun.chat_changes.items()
}
"""Methods of the store by which commands and buttons of chats change something.

Jobs and heartbeats are changed by their services there, too, and a stop has its own place: it acts
before anything is stored.
"""


def _is_some(_arguments: Arguments, result: object) -> bool:
    return bool(result)


def _browser(arguments: Arguments) -> Actor:
    """Return who signs in: before it, the request is that of nobody."""
    one = arguments["sign_in"]
    kind = _SIGN_IN_KINDS.get(one.method, ActorKind.PERSON)
    return Actor(kind, one.name, one.role, via=one.address)


_SIGN_IN_KINDS: Final = {
    SignInMethod.SETTINGS_TOKEN: ActorKind.SETTINGS_TOKEN,
    SignInMethod.TOKEN: ActorKind.TOKEN,
}


SIGN_INS: Final[Actions] = {
    "begin_sign_in": Change(
        "sign_in.begin",
        lambda arguments, _: f"sign-in {arguments['sign_in'].id}",
        told=lambda arguments, _: {
            "browser": arguments["sign_in"].user_agent,
            "method": arguments["sign_in"].method.value,
        },
        is_done=_is_some,
        actor=_browser,
    ),
    "end_sign_in": Change("sign_in.end", named("sign-in {sign_in}"), is_done=_is_some),
    "use_web_link": Change(
        "guest.join",
        lambda _, link: f"person {link.name}" if link else "",
        is_done=lambda arguments, link: bool(link) and link.cookie_hash == arguments["cookie_hash"],
    ),
}
"""Methods of the store by which browsers are signed in and out."""
