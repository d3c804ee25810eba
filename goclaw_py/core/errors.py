"""Every error that goclaw_py raises on purpose.

::

    GoclawError
    ├── SettingError            a setting is wrong: key, value, what is allowed
    ├── StoreError
    │   ├── StoreUnavailable    the database cannot be reached now; try again
    │   ├── Fenced              another node owns this by now; nothing was written
    │   ├── NeverBegan          this run was never recorded as begun; nothing was written
    │   └── MigrationError      the schema is not what this release needs
    ├── AgentError              a run failed; carries one sentence for the person in the chat
    │   └── BudgetReached       it has used up what it may use
    ├── ToolFailed              a tool did not do what the model asked; the model reads why
    └── ChannelError
        ├── ChannelRefused      the channel does not accept us (wrong token): it stops
        ├── NotSent             a repeat shows nothing twice: safe to try again
        ├── MaybeSent           the request left, its answer did not come back
        ├── RateLimited         certainly not sent; the server names the wait
        ├── ChatMoved           certainly not sent; the chat has another id now
        └── Undeliverable       will never be accepted: the message is dead
            └── ChatGone        nothing can be sent to this chat until somebody writes in it

A class knows its message and carries its facts; ask the class, never the text.
"""

from __future__ import annotations


class GoclawError(Exception):
    """The root. ``str()`` is a sentence that an operator can act on."""


class SettingError(GoclawError):
    """A setting is unknown or has a wrong value. ``key`` is a path such as ``lanes.main``."""

    def __init__(self, key: str, value: object, allowed: str, *, source: str = "") -> None:
        where = f"{source}: " if source else ""
        super().__init__(f"{where}{key} = {value!r}: {allowed}")
        self.key = key
        self.value = value
        self.allowed = allowed
        self.source = source


class StoreError(GoclawError):
    """Something about the database."""


class StoreUnavailable(StoreError):
    """The database cannot be reached now. Nothing, or everything, of the transaction happened."""


class Fenced(StoreError):
    """Another node owns this by now, so this node's late write was refused as a whole."""


class NeverBegan(StoreError):
    """The store knows no such run, so it cannot be finished."""


class MigrationError(StoreError):
    """The schema is not what this release needs, and says why."""


class AgentError(GoclawError):
    """A run failed. ``friendly`` is what the person reads; ``str()`` is the cause, for the log.

    Neither may hold a secret (SPEC AGENT-8).
    """

    def __init__(self, friendly: str, cause: str, *, retryable: bool = False) -> None:
        super().__init__(cause)
        self.friendly = friendly
        self.retryable = retryable


class BudgetReached(AgentError):
    """A run has used up a budget (SPEC AGENT-5). What it has said so far counts."""


class ToolFailed(GoclawError):
    """A tool did not do what it was asked to. ``str()`` is for the model, which may try again."""


class ChannelError(GoclawError):
    """Sending or receiving went wrong."""

    retryable = True
    retry_after_s: float | None = None


class ChannelRefused(ChannelError):
    """The channel's server does not accept this account; trying again cannot help."""

    retryable = False


class NotSent(ChannelError):
    """Repeat it freely: it certainly had no effect, or a repeat has no further one (an edit)."""


class MaybeSent(ChannelError):
    """The request left and its answer is missing: a repeat may appear twice (SPEC IO-5)."""


class RateLimited(ChannelError):
    """Refused for now; the server says how long to wait."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ChatMoved(ChannelError):
    """The chat was given another id, ``chat``; the message belongs there (SPEC CHAN-7)."""

    def __init__(self, message: str, chat: str) -> None:
        super().__init__(message)
        self.chat = chat


class Undeliverable(ChannelError):
    """The server will never accept this message (chat gone, bot blocked, text refused)."""

    retryable = False


class ChatGone(Undeliverable):
    """The chat vanished or its people do not want us: blocked, kicked, deleted (SPEC CHAN-7)."""
