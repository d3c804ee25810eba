"""Texts in chats about requests for access to the agent (SPEC CHAN-5)."""

from __future__ import annotations

import unicodedata
from typing import Final

from goclaw_py.core.messages import PeerKind, Sender
from goclaw_py.core.text import first_words
from goclaw_py.records.people import VALID_FOR, AccessVerdict

_NAME_CHARS: Final = 40

WELCOME: Final = "You can talk to me now."
GROUP_WELCOME: Final = (
    "Everyone here can talk to me now: mention me, or reply to me. I have not read what was "
    "written before."
)
MORE_ASK: Final = (
    "More people or groups are asking for access. I will not report them for a while. The operator "
    "can see all of them on the page People of the dashboard."
)
NOT_AN_OWNER: Final = "Only an owner can decide this, in a direct chat with me."
DECIDED: Final = "This request was already decided."
SURE: Final = "As owner? Please confirm."
NOT_DECIDED: Final = "Nothing was decided."


def code(code: str, *, asks_owner: bool) -> str:
    """Return the answer to a person without access, in Markdown: a tap on the code copies it."""
    minutes = int(VALID_FOR.total_seconds() // 60)
    how = (
        "I have asked the owner. If it takes long, send them this code"
        if asks_owner
        else "Send this code to the owner of this bot"
    )
    return (
        f"You do not have access yet. {how}, valid for {minutes} minutes:\n\n"
        f"`{code}`\n\n"
        "When they agree, I will tell you and answer your message."
    )


def asks_to_talk(sender: Sender, bot: str) -> str:
    """Return the question to owners about a person. People choose their name, but not their id."""
    return (
        f"{_with_id(sender)} wants to talk to {bot}. A guest can talk. An owner can also do what "
        "you can: approve tool calls, let people in, stop everything."
    )


def asks_for_owner(sender: Sender) -> str:
    """Return the second question about a person who is to become an owner."""
    return (
        f"Make {_with_id(sender)} an owner? They could then approve tool calls, let people in and "
        "stop everything, as you can."
    )


def asks_to_listen(group: str, bot: str) -> str:
    """Return the question to owners about a group without a decision."""
    return f"Someone wrote to me in the group “{clean(group)}”. May everyone there talk to {bot}?"


def decided(question: str, peer: PeerKind, verdict: AccessVerdict, by: str) -> str:
    """Return the question with its decision; no ``by``: it was not decided in a chat."""
    return f"{question}\n\n{_DID[peer, verdict]} by {by or 'the operator'}."


def result(asker: Sender, peer: PeerKind, verdict: AccessVerdict) -> str:
    """Return the short confirmation for the owner who decided."""
    return _RESULT[peer, verdict].format(clean(asker.name) or clean(asker.id))


def expired(asker: Sender) -> str:
    """Return the answer to a decision about an expired request."""
    who = clean(asker.name) or clean(asker.id)
    return f"⌛ This request has expired. You get a new one when {who} writes again."


def _with_id(sender: Sender) -> str:
    return f"{name(sender)} (id {first_words(sender.id, _NAME_CHARS)})"


def name(sender: Sender) -> str:
    """Return a person's name on one line: ``Ann (@ann)``."""
    called = clean(sender.name)
    if not sender.username:
        return called or clean(sender.id)
    handle = f"@{clean(sender.username)}"
    return f"{called} ({handle})" if called else handle


def clean(text: str) -> str:
    """Return a name without characters that could reverse or hide the text around it."""
    shown = "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Co", "Cs"))
    return first_words(shown, _NAME_CHARS)


_DID: Final = {
    (PeerKind.DIRECT, AccessVerdict.APPROVE): "✅ Approved as owner",
    (PeerKind.DIRECT, AccessVerdict.GUEST): "✅ Approved as guest",
    (PeerKind.DIRECT, AccessVerdict.DENY): "🚫 Denied",
    (PeerKind.GROUP, AccessVerdict.APPROVE): "✅ Allowed",
    (PeerKind.GROUP, AccessVerdict.GUEST): "✅ Allowed",
    (PeerKind.GROUP, AccessVerdict.DENY): "🚫 Denied",
}

_RESULT: Final = {
    (PeerKind.DIRECT, AccessVerdict.APPROVE): "✅ {} can talk to me now, as an owner.",
    (PeerKind.DIRECT, AccessVerdict.GUEST): "✅ {} can talk to me now, as a guest.",
    (PeerKind.DIRECT, AccessVerdict.DENY): "🚫 Denied. {} is not notified.",
    (PeerKind.GROUP, AccessVerdict.APPROVE): "✅ I answer in “{}” now.",
    (PeerKind.GROUP, AccessVerdict.GUEST): "✅ I answer in “{}” now.",
    (PeerKind.GROUP, AccessVerdict.DENY): "🚫 I will not answer in “{}”.",
}
