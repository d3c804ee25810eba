"""Every error that goclaw_py raises on purpose.

::

    GoclawError
    ├── SettingError            a setting is wrong: key, value, what is allowed
    ├── StoreError
    │   ├── StoreUnavailable    the database cannot be reached now; try again
    │   │   ├── SessionShared   a pooler gives our session to others; nothing was written
    │   │   └── LeaseEnded      this node has to renew its lease first; nothing was written
    │   ├── Fenced              another node owns this by now; nothing was written
    │   ├── NeverBegan          this run was never recorded as begun; nothing was written
    │   └── MigrationError      the schema is not what this release needs
    ├── AgentError              a run failed; carries one sentence for the person in the chat
    │   └── BudgetReached       it has used up what it may use
    ├── ToolFailed              a tool did not do what the model asked; the model reads why
    ├── JobError                a job cannot be made, found, changed or run so
    │   ├── BadSchedule         when it should run makes no sense
    │   │   ├── BadCron         not a cron expression
    │   │   ├── BadMoment       not a time, or one that cannot be meant
    │   │   │   └── PastMoment  one that is over
    │   │   ├── BadInterval     not an interval
    │   │   ├── UnknownZone     not the name of a time zone
    │   │   ├── TooFrequent     more often than is allowed
    │   │   └── NeverFires      no calendar has such a time
    │   ├── BadJob              something else about it is wrong: key, value, what is allowed
    │   ├── TooManyJobs         its owner has as many as are allowed
    │   ├── SlugTaken           its owner has another job of that name
    │   ├── UnknownJob          there is none with this id or slug
    │   ├── NotYours            it belongs to somebody else
    │   └── JobChanged          somebody else has just changed it
    ├── HeartbeatError          nothing can be done with a heartbeat so
    │   ├── UnknownAgent        there is no such agent
    │   ├── TooManyEvents       as many wait as are allowed
    │   ├── BadChecklist        HEARTBEAT.md cannot be read or changed so
    │   │   └── ChecklistChanged    it is not what it was when it was read
    │   └── BadHours            not the two ends of active hours: key, value, what is allowed
    ├── BackupError             a backup cannot be made, read or restored
    ├── WorkSourceError         work could not be had, or its end not be told
    ├── BadUsageQuery           nothing can be added up so: key, what is allowed
    └── ChannelError
        ├── ChannelRefused      the channel does not accept us (wrong token): it stops
        ├── NotSent             a repeat shows nothing twice: safe to try again
        ├── MaybeSent           the request left, its answer did not come back
        ├── RateLimited         certainly not sent; the server names the wait
        ├── ChatMoved           certainly not sent; the chat has another id now
        └── Undeliverable       will never be accepted: the message is dead
            ├── ChatGone        nothing can be sent to this chat until somebody writes in it
            └── TopicGone       the topic is closed or deleted; its general topic may take it

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


class NoDatabase(StoreUnavailable):
    """The state folder has no database yet, and the command only reads."""


class SessionShared(StoreUnavailable):
    """A pooler gives each transaction another session, which takes notices and locks away."""


class LeaseExpired(StoreUnavailable):
    """This node could not renew its lease in time; until it does it gets nothing new."""


class Fenced(StoreError):
    """Another node owns this by now, so this node's late write was refused as a whole."""


class RunNotStarted(StoreError):
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


class BadUsageQuery(GoclawError):
    """Usage cannot be added up so. ``key`` is the part of the question that is wrong."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key


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


class TopicGone(Undeliverable):
    """The topic of a chat takes no messages: it is closed, else deleted (SPEC CHAN-6).

    Nothing was sent. The general topic of the chat may take it.
    """

    def __init__(self, message: str, *, closed: bool = True) -> None:
        super().__init__(message)
        self.closed = closed


class BackupError(GoclawError):
    """A backup cannot be made, read or restored. What was there before is as it was."""


class WorkSourceError(GoclawError):
    """Work could not be had from its source, or its end could not be told there."""


class HeartbeatError(GoclawError):
    """Nothing can be done with a heartbeat so. Nothing was stored."""


class UnknownAgent(HeartbeatError):
    """There is no such agent, or this gateway does not know it."""

    def __init__(self, agent: str) -> None:
        super().__init__(f"there is no agent {agent[:64]!r}")
        self.agent = agent


class TooManyEvents(HeartbeatError):
    """As many events of an agent wait as are allowed."""

    def __init__(self, agent: str, most: int) -> None:
        super().__init__(
            f"{most} events wait for the next heartbeat run of {agent}; no more are taken"
        )
        self.agent = agent
        self.most = most


class BadChecklist(HeartbeatError):
    """The checklist of an agent cannot be read, or not be changed so."""


class ChecklistChanged(BadChecklist):
    """The checklist is not what it was when it was read; nothing was written."""

    def __init__(self) -> None:
        super().__init__("HEARTBEAT.md has changed meanwhile, so nothing was saved")


class BadHours(HeartbeatError):
    """Active hours cannot be so. ``key`` is ``start`` or ``end`` (SPEC HB-2)."""

    def __init__(self, key: str, value: str, allowed: str) -> None:
        shown = value if len(value) <= 40 else value[:40] + "…"
        super().__init__(f"{key} = {shown!r}: {allowed}")
        self.key = key
        self.value = value
        self.allowed = allowed


class JobError(GoclawError):
    """A job cannot be made, found, changed or run so. Nothing was stored (SPEC CRON-2)."""


class BadSchedule(JobError):
    """When a job should run makes no sense. ``reason`` is the sentence without what was given."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class BadCron(BadSchedule):
    """Not a cron expression. ``hint`` says what to write instead, "" if nobody can know."""

    def __init__(self, expression: str, reason: str, hint: str = "") -> None:
        shown = expression if len(expression) <= 80 else expression[:80] + "…"
        advice = f" ({hint})" if hint else ""
        super().__init__(f"invalid cron expression {shown!r}: {reason}{advice}", reason)
        self.expression = expression
        self.hint = hint


class BadMoment(BadSchedule):
    """Not a point in time that lies ahead; the sentence tells now, what was given, and the gap."""


class PastMoment(BadMoment):
    """A point in time that is over."""


class BadInterval(BadSchedule):
    """Not an interval, or one that is out of range."""


class UnknownZone(BadSchedule):
    """Not the exact name of a zone of the IANA database."""

    def __init__(self, zone: str, hint: str = "") -> None:
        shown = zone if len(zone) <= 64 else zone[:64] + "…"
        super().__init__(f"unknown time zone {shown!r}{hint and f' ({hint})'}")
        self.zone = zone
        self.hint = hint


class TooFrequent(BadSchedule):
    """It would run more often than is allowed. Both times are in seconds."""

    def __init__(self, gap_s: float, minimum_s: float, *, cron: bool) -> None:
        what = f"the schedule fires every {gap_s:g} s" if cron else f"an interval of {gap_s:g} s"
        super().__init__(f"{what}: at least {minimum_s:g} s have to lie between two runs")
        self.gap_s = gap_s
        self.minimum_s = minimum_s
        self.cron = cron


class NeverFires(BadSchedule):
    """No calendar has such a time, or nothing of it lies ahead."""


class BadJob(JobError):
    """Something about a job is wrong. ``key`` is what people call the part."""

    def __init__(self, key: str, allowed: str) -> None:
        super().__init__(f"{key}: {allowed}")
        self.key = key
        self.allowed = allowed


class TooManyJobs(JobError):
    """The owner has as many jobs as are allowed (SPEC CRON-15)."""

    def __init__(self, owner: str, most: int) -> None:
        super().__init__(f"{owner} has {most} jobs, which is the most; delete one first")
        self.owner = owner
        self.most = most


class SlugTaken(JobError):
    """The owner has another job of that name."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"there is a job {slug!r} already")
        self.slug = slug


class UnknownJob(JobError):
    """There is no job with this id, slug or beginning of an id, or there are several."""

    def __init__(self, asked: str, *, several: bool = False) -> None:
        shown = asked if len(asked) <= 80 else asked[:80] + "…"
        super().__init__(f"several jobs begin with {shown!r}" if several else f"no job {shown!r}")
        self.asked = asked
        self.several = several


class NotYours(JobError):
    """The job belongs to somebody else; names only what was asked for, and by whom (SPEC SEC-3).

    ``asked`` is "" for all jobs together, which are for operators.
    """

    def __init__(self, asked: str, owner: str) -> None:
        what = f"job {asked} does not belong" if asked else "the jobs of everybody do not belong"
        super().__init__(f"{what} to {owner}")
        self.asked = asked
        self.owner = owner


class JobChanged(JobError):
    """Somebody else has changed, or deleted, the job since it was read; read it again."""


class ProviderUnavailable(GoclawError):
    """A run did not begin: the provider of its agent is known to be down."""


class NoGateway(GoclawError):
    """This needs a running gateway and there is none."""


class NodeSilent(GoclawError):
    """Another node that this needs does not answer; what it was asked may still happen."""


class NotFound(GoclawError):
    """Nothing has this id or name, or several things have it as prefix; the text says which."""


class SessionBusy(GoclawError):
    """A run of this session waits or works, and the message was not to wait for it."""

    def __init__(self, message: str = "Session is busy processing another message") -> None:
        super().__init__(message)


class NotAChat(GoclawError):
    """This session has no chat that can be answered here."""
