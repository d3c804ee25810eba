"""Every error that goclaw_py raises on purpose.

::

    GoclawError
    ├── SettingError            a setting is wrong: key, value, what is allowed
    │   └── SettingErrors       several are
    ├── SettingChanged          a setting was edited since it was read
    ├── StoreError
    │   ├── StoreUnavailable    the database cannot be reached now; try again
    │   │   ├── NoDatabase      there is no database yet, and the command only reads
    │   │   ├── SessionShared   a pooler shares our database session; nothing was written
    │   │   └── LeaseExpired    this node must renew its lease first; nothing was written
    │   ├── Fenced              another node owns this now; nothing was written
    │   ├── RunNotStarted       this run is not stored as started; nothing was written
    │   └── MigrationError      the schema is not the one that this release needs
    ├── AgentError              a run failed; contains a sentence for the person in the chat
    │   ├── ApprovalNeeded      the run waits for the decision of a person
    │   ├── BudgetReached       the run has used up its budget
    │   │   └── ChainLimitReached   too many turns in a row began without a person
    │   └── NotContinued        it was interrupted, and must not begin again
    ├── ToolFailed              a tool call failed; the model gets the reason
    ├── JobError                a job cannot be created, found, changed or run
    │   ├── BadSchedule         the schedule is not valid
    │   │   ├── BadCron         not a cron expression
    │   │   ├── BadMoment       not a point in time, or an impossible one
    │   │   │   └── PastMoment  a point in time in the past
    │   │   ├── BadInterval     not an interval
    │   │   ├── UnknownZone     not the name of a time zone
    │   │   ├── TooFrequent     more often than allowed
    │   │   └── NeverFires      the schedule has no future time
    │   ├── BadJob              another field is not valid: key, value, allowed values
    │   ├── TooManyJobs         the owner has the largest number of jobs
    │   ├── SlugTaken           the owner has another job with this slug
    │   ├── UnknownJob          no job has this id or slug
    │   ├── NotYours            the job belongs to another owner
    │   └── JobChanged          the job was changed at the same time
    ├── HeartbeatError          a heartbeat cannot be changed or run
    │   ├── UnknownAgent        there is no such agent
    │   ├── TooManyEvents       the largest number of events is waiting
    │   ├── BadChecklist        HEARTBEAT.md cannot be read or changed
    │   │   └── ChecklistChanged    it was changed since it was read
    │   └── BadHours            active hours are not valid: key, value, allowed values
    ├── BackupError             a backup cannot be created, read or restored
    ├── WorkSourceError         a source of work items failed
    ├── BadUsageQuery           a usage query is not valid: key, allowed values
    ├── ProviderUnavailable     a run did not start: its provider is down
    ├── NoGateway               this needs a running gateway
    ├── NodeSilent              another node does not answer
    ├── NotFound                nothing, or more than one thing, has this id or name
    ├── NotAccepted             an operation does not accept a value
    ├── SessionBusy             the session has a run that waits or is in progress
    ├── NotAChat                the session has no chat
    ├── ApprovalClosed          the question about a tool call is answered or has expired
    ├── NotRewindable           a session cannot be forked there
    ├── AlreadyInvited          a person with this name is invited to the web chat
    ├── TooManyConversations    a guest has the largest number of conversations
    ├── BadUpload               an uploaded file cannot be accepted
    │   └── UploadTooLarge      it is larger than is allowed
    └── ChannelError
        ├── ChannelRefused      the server refuses the account (wrong token); the channel stops
        ├── NotSent             a retry cannot show anything twice
        ├── MaybeSent           the request was sent, but its response was lost
        ├── RateLimited         not sent; the server tells how long to wait
        ├── ChatMoved           not sent; the chat has a new id
        └── Undeliverable       will never be accepted
            ├── ChatGone        nothing can be sent to the chat until somebody writes in it
            └── TopicGone       the topic is closed or deleted; the general topic may accept it

Handle errors by class and attributes, never by text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from goclaw_py.core.approvals import ApprovalRequest


class GoclawError(Exception):
    """The root. ``str()`` is a sentence that an operator can act on."""


class SettingError(GoclawError):
    """A setting is unknown or has a wrong value. ``key`` is a path such as ``lanes.main``."""

    def __init__(self, key: str, value: object, allowed: str, *, source: str = "") -> None:
        where = f"{source}: " if source else ""
        super().__init__(f"{where}{key}" + f" = {value!r}".removesuffix(" = ") + f": {allowed}")
        self.key = key
        self.value = value
        self.allowed = allowed
        self.source = source
        self.errors: tuple[SettingError, ...] = (self,)


class SettingErrors(SettingError):
    """Several settings are wrong. ``errors`` has all of them, ``str()`` one line for each."""

    def __init__(self, errors: Iterable[SettingError]) -> None:
        all_of_them = tuple(errors)
        first = all_of_them[0]
        super().__init__(first.key, first.value, first.allowed, source=first.source)
        self.errors = all_of_them

    def __str__(self) -> str:
        """All errors, one on each line."""
        return "\n".join(str(error) for error in self.errors)


class SettingChanged(GoclawError):
    """Settings were edited since they were read. ``paths`` are their keys."""

    def __init__(self, text: str, paths: Collection[str] = ()) -> None:
        super().__init__(text)
        self.paths = tuple(paths)


class StoreError(GoclawError):
    """An error of the database. ``cure`` is what to do about it, "" if that is not known."""

    def __init__(self, fact: str = "", cure: str = "") -> None:
        super().__init__(f"{fact}; {cure}" if cure else fact)
        self.fact = fact
        self.cure = cure


class StoreUnavailable(StoreError):
    """The database cannot be reached now. The transaction may or may not have been committed."""


class NoDatabase(StoreUnavailable):
    """The state folder has no database yet, and the command only reads."""


class SessionShared(StoreUnavailable):
    """A pooler gives each transaction another session, so notices and locks do not work."""


class LeaseExpired(StoreUnavailable):
    """This node did not renew its lease in time, and can claim nothing until it does."""


class Fenced(StoreError):
    """Another node owns this now; this node's late write was refused."""


class RunNotStarted(StoreError):
    """The run is not stored as started, so it cannot be finished."""


class MigrationError(StoreError):
    """The schema is not the one that this release needs. ``str()`` says why."""


class AgentError(GoclawError):
    """A run failed. ``friendly`` is for the person in the chat, ``str()`` is for the log.

    Neither may contain a secret (SPEC AGENT-8).
    """

    def __init__(
        self, friendly: str, cause: str, *, retryable: bool = False, is_retried: bool = False
    ) -> None:
        # ``retryable``: it may pass. ``is_retried``: what failed was repeated already.
        super().__init__(cause)
        self.friendly = friendly
        self.retryable = retryable
        self.is_retried = is_retried


class ApprovalNeeded(AgentError):
    """A run waits for decisions of people, or for a child run that does (SPEC AGENT-11)."""

    def __init__(self, requests: tuple[ApprovalRequest, ...] = ()) -> None:
        super().__init__("This waits for an approval.", "waits for an approval")
        self.requests = requests


class BudgetReached(AgentError):
    """A run has used up its budget (SPEC AGENT-5). Its reply so far counts."""


class ChainLimitReached(BudgetReached):
    """Results of subagents have begun too many turns in a row of a conversation (AGENT-14)."""


class NotContinued(AgentError):
    """An interrupted run can neither be continued nor may it begin again: it is lost."""


class ToolFailed(GoclawError):
    """A tool call failed. ``str()`` is for the model, which may try again."""


class BadUsageQuery(GoclawError):
    """A usage query is not valid. ``key`` is the field that is wrong."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.problem = problem


class ChannelError(GoclawError):
    """Sending or receiving failed."""

    retryable = True
    retry_after_s: float | None = None


class ChannelRefused(ChannelError):
    """The channel's server refuses this account; a retry cannot help."""

    retryable = False


class NotSent(ChannelError):
    """The request had no effect, or repeating it has no further effect (an edit)."""


class MaybeSent(ChannelError):
    """The request was sent and its response was lost: a retry may show it twice (SPEC IO-5)."""


class RateLimited(ChannelError):
    """Refused for now; the server says how long to wait."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ChatMoved(ChannelError):
    """The chat has a new id, ``chat``; send the message there (SPEC CHAN-7)."""

    def __init__(self, message: str, chat: str) -> None:
        super().__init__(message)
        self.chat = chat


class Undeliverable(ChannelError):
    """The server will never accept this message (chat gone, bot blocked, text refused)."""

    retryable = False


class ChatGone(Undeliverable):
    """The chat was deleted, or the bot was blocked or removed (SPEC CHAN-7)."""


class TopicGone(Undeliverable):
    """The topic of a chat is closed, or deleted; nothing was sent (SPEC CHAN-6)."""

    def __init__(self, message: str, *, closed: bool = True) -> None:
        super().__init__(message)
        self.closed = closed


class BackupError(GoclawError):
    """A backup cannot be created, read or restored. Existing data was not changed."""


class WorkSourceError(GoclawError):
    """A work item could not be claimed from its source, or its end could not be reported."""


class HeartbeatError(GoclawError):
    """A heartbeat cannot be changed or run. Nothing was stored."""


class UnknownAgent(HeartbeatError):
    """There is no such agent, or this gateway does not know it."""

    def __init__(self, agent: str) -> None:
        super().__init__(f"there is no agent {agent[:64]!r}")
        self.agent = agent


class TooManyEvents(HeartbeatError):
    """The largest number of events of an agent is waiting."""

    def __init__(self, agent: str, most: int) -> None:
        what = f"{most} events wait for the next heartbeat run of {agent}"
        super().__init__(f"{what}; no more are taken")
        self.agent = agent
        self.most = most


class BadChecklist(HeartbeatError):
    """The checklist of an agent cannot be read or changed."""


class ChecklistChanged(BadChecklist):
    """The checklist was changed since it was read; nothing was written."""

    def __init__(self) -> None:
        super().__init__("HEARTBEAT.md has changed meanwhile, so nothing was saved")


class BadHours(HeartbeatError):
    """Active hours are not valid. ``key`` is ``start`` or ``end`` (SPEC HB-2)."""

    def __init__(self, key: str, value: str, allowed: str) -> None:
        shown = value if len(value) <= 40 else value[:40] + "…"
        super().__init__(f"{key} = {shown!r}: {allowed}")
        self.key = key
        self.value = value
        self.allowed = allowed


class JobError(GoclawError):
    """A job cannot be created, found, changed or run. Nothing was stored (SPEC CRON-2)."""


class BadSchedule(JobError):
    """A schedule is not valid. ``reason`` is the message without the value."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class BadCron(BadSchedule):
    """Not a cron expression. ``hint`` is a correction, "" if there is none."""

    def __init__(self, expression: str, reason: str, hint: str = "") -> None:
        shown = expression if len(expression) <= 80 else expression[:80] + "…"
        advice = f" ({hint})" if hint else ""
        super().__init__(f"invalid cron expression {shown!r}: {reason}{advice}", reason)
        self.expression = expression
        self.hint = hint


class BadMoment(BadSchedule):
    """Not a future point in time; the message has the present time, the value and the gap."""


class PastMoment(BadMoment):
    """A point in time in the past."""


class BadInterval(BadSchedule):
    """Not an interval, or one that is out of range. ``interval`` is the input, as text."""

    def __init__(self, message: str, reason: str = "", interval: str = "") -> None:
        super().__init__(message, reason)
        self.interval = interval


class UnknownZone(BadSchedule):
    """Not a name in the IANA time zone database."""

    def __init__(self, zone: str, hint: str = "") -> None:
        shown = zone if len(zone) <= 64 else zone[:64] + "…"
        super().__init__(f"unknown time zone {shown!r}{hint and f' ({hint})'}")
        self.zone = zone
        self.hint = hint


class TooFrequent(BadSchedule):
    """The schedule is more frequent than allowed. Both times are in seconds."""

    def __init__(self, gap_s: float, minimum_s: float, *, cron: bool) -> None:
        what = f"the schedule fires every {gap_s:g} s" if cron else f"an interval of {gap_s:g} s"
        super().__init__(f"{what}: at least {minimum_s:g} s have to lie between two runs")
        self.gap_s = gap_s
        self.minimum_s = minimum_s
        self.cron = cron


class NeverFires(BadSchedule):
    """The schedule has no future time."""


class BadJob(JobError):
    """A field of a job is not valid. ``key`` is its name for people."""

    def __init__(self, key: str, allowed: str) -> None:
        super().__init__(f"{key}: {allowed}")
        self.key = key
        self.allowed = allowed


class TooManyJobs(JobError):
    """The owner has the largest number of jobs that is allowed (SPEC CRON-15)."""

    def __init__(self, owner: str, most: int) -> None:
        super().__init__(f"{owner} has {most} jobs, which is the most; delete one first")
        self.owner = owner
        self.most = most


class SlugTaken(JobError):
    """The owner has another job with this slug."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"there is a job {slug!r} already")
        self.slug = slug


class UnknownJob(JobError):
    """No job, or more than one (``several`` names them), has this id, its beginning, or name."""

    def __init__(self, name: str, *, several: str = "", alike: str = "") -> None:
        shown = name if len(name) <= 80 else name[:80] + "…"
        unknown = f"no job {shown!r}" + (f"; similar: {alike}" if alike else "")
        super().__init__(f"job {shown!r} is not unique: {several}" if several else unknown)
        self.asked = name
        self.several = several


class NotYours(JobError):
    """The job belongs to another owner, who is not named; ``asked`` is "" for all jobs (SEC-3)."""

    def __init__(self, name: str, owner: str) -> None:
        what = f"job {name} does not belong" if name else "the jobs of everybody do not belong"
        super().__init__(f"{what} to {owner}")
        self.asked = name
        self.owner = owner


class JobChanged(JobError):
    """The job was changed or deleted since it was read; read it again."""


class ProviderUnavailable(GoclawError):
    """A run did not start, because the provider of its agent is down."""


class NoGateway(GoclawError):
    """This needs a running gateway, and none was found."""


class NodeSilent(GoclawError):
    """Another node does not answer; it may still execute the request."""


class NotFound(GoclawError):
    """Nothing has this id or name, or the prefix is ambiguous; the text says which.

    Args:
        names: Names of what could be meant.
        hint: The rest of the message, for terminals: commands. Pages have links in its place.
    """

    def __init__(self, text: str, *, names: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(text + hint)
        self.text, self.names = text, tuple(names)


class NotAccepted(GoclawError, ValueError):
    """An operation does not accept a value; the text says what is allowed. 422 in the API."""


class SessionBusy(GoclawError):
    """The session has a run that waits or is in progress, and the message must not queue."""

    def __init__(self, message: str = "Session is busy processing another message") -> None:
        super().__init__(message)


class NotAChat(GoclawError):
    """The session has no chat that can be answered here."""


class ApprovalClosed(GoclawError):
    """A question about a tool call is answered already, or has expired."""


class NotRewindable(GoclawError):
    """A session cannot be forked there; the text says why."""


class AlreadyInvited(GoclawError):
    """A person with this name is invited to the web chat."""


class TooManyConversations(GoclawError):
    """A guest of the web chat has the largest number of conversations."""


class BadUpload(GoclawError):
    """An uploaded file cannot be accepted; ``str()`` says why."""


class UploadTooLarge(BadUpload):
    """An uploaded file is larger than is allowed."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the file is larger than {max_bytes >> 20} MB")
