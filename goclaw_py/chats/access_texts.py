"""What people in a chat read about who may talk to the agent (SPEC CHAN-5)."""

from __future__ import annotations

import unicodedata
from typing import Final

from goclaw_py.common.text import first_words
from goclaw_py.model.ids import AgentName
from goclaw_py.model.messages import PeerKind, Sender
from goclaw_py.model.pairing_codes import VALID_FOR, Verdict

_NAME_CHARS: Final = 40

WELCOME: Final = "You can talk to me now."
MORE_ASK: Final = (
    "More people or groups ask for access. I tell of no more of them for a while; see: "
    "goclaw pairing list, goclaw groups list"
)
NOT_AN_OWNER: Final = "Only an owner may decide this, in a direct chat with me."
DECIDED: Final = "This was decided already."


def code(code: str) -> str:
    """What somebody unknown reads, in Markdown: a tap on either line of code copies it."""
    minutes = int(VALID_FOR.total_seconds() // 60)
    return (
        f"I may not talk to you yet. Your code, valid for {minutes} minutes:\n\n"
        f"`{code}`\n\n"
        "Give it to my operator, who lets you in with this command:\n\n"
        f"`goclaw pairing approve {code}`\n\n"
        "Then I will tell you, and answer what you have written."
    )


def asks_to_talk(sender: Sender, agent: AgentName) -> str:
    """What owners read about somebody unknown. Names are their bearer's choice, the id is not."""
    who = f"{name(sender)} (id {first_words(sender.id, _NAME_CHARS)})"
    return (
        f"{who} wants to talk to {agent}. Approve makes them an owner like you; a guest can only "
        "talk."
    )


def asks_to_listen(group: str, agent: AgentName) -> str:
    """What owners read about a group that nobody has decided about."""
    return (
        f"Somebody wrote to me in the group “{_clean(group)}”. May everybody there talk to {agent}?"
    )


def decided(asked: str, peer: PeerKind, verdict: Verdict, by: str) -> str:
    """The message that asked an owner, once somebody has decided; no ``by``: not in a chat."""
    return f"{asked}\n\n{_DID[peer, verdict]} by {by or 'the operator'}."


def result(asker: Sender, peer: PeerKind, verdict: Verdict) -> str:
    """What the owner who has decided sees for a moment."""
    return _RESULT[peer, verdict].format(_clean(asker.name) or _clean(asker.id))


def expired(asker: Sender) -> str:
    """What an owner sees who decides too late."""
    who = _clean(asker.name) or _clean(asker.id)
    return f"⌛ This request has expired. It comes again when {who} writes again."


def name(sender: Sender) -> str:
    """What a person is called, on one line: ``Ann (@ann)``."""
    called = _clean(sender.name)
    if not sender.username:
        return called or _clean(sender.id)
    handle = f"@{_clean(sender.username)}"
    return f"{called} ({handle})" if called else handle


def _clean(text: str) -> str:
    """A name without what could turn or hide the text around it."""
    shown = "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Co", "Cs"))
    return first_words(shown, _NAME_CHARS)


_DID: Final = {
    (PeerKind.DIRECT, Verdict.APPROVE): "✅ Approved",
    (PeerKind.DIRECT, Verdict.GUEST): "✅ Approved as guest",
    (PeerKind.DIRECT, Verdict.DENY): "🚫 Denied",
    (PeerKind.GROUP, Verdict.APPROVE): "✅ Allowed",
    (PeerKind.GROUP, Verdict.GUEST): "✅ Allowed",
    (PeerKind.GROUP, Verdict.DENY): "🚫 Denied",
}

_RESULT: Final = {
    (PeerKind.DIRECT, Verdict.APPROVE): "✅ {} can talk to me now, as an owner.",
    (PeerKind.DIRECT, Verdict.GUEST): "✅ {} can talk to me now, as a guest.",
    (PeerKind.DIRECT, Verdict.DENY): "🚫 Denied. {} is not told.",
    (PeerKind.GROUP, Verdict.APPROVE): "✅ I listen in “{}” now.",
    (PeerKind.GROUP, Verdict.GUEST): "✅ I listen in “{}” now.",
    (PeerKind.GROUP, Verdict.DENY): "🚫 I stay silent in “{}”.",
}
