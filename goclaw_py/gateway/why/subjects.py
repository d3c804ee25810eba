"""Finds the subject of a question by any of its names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from goclaw_py.core.errors import NotFound
from goclaw_py.core.ids import AgentName, SessionKey
from goclaw_py.core.messages import Sender, Target
from goclaw_py.core.session_keys import (
    DEFAULT_ACCOUNT,
    agent_of,
    chat_of,
    is_direct_chat,
    peer_of,
)
from goclaw_py.core.targets import parse_target, target_text
from goclaw_py.gateway.why import (
    chats,
    gateway,
    jobs,
    messages,
    runs,
    waits,
)
from goclaw_py.gateway.why.sources import SEARCHED, Sources
from goclaw_py.operations.deliveries import why as deliveries
from goclaw_py.operations.explanation import Cure, Explanation, Subject, SubjectKind
from goclaw_py.operations.heartbeats import why as heartbeats
from goclaw_py.operations.jobs.lookup import find_jobs
from goclaw_py.operations.nodes import why as nodes
from goclaw_py.operations.sessions.lookup import with_whole_id
from goclaw_py.records import JobQuery, SessionQuery
from goclaw_py.schedule.jobs.models import Job

MAX_CHARS: Final = 512
"""The longest name."""

_LISTED: Final = 10
_FEWEST: Final = 4
"""The shortest prefix of an id."""

_LINK: Final = re.compile(r"(?:https?://)?t\.me/c/(\d+)/(?:\d+/)?(\d+)(?:\?.*)?")
_MESSAGE: Final = re.compile(r"([a-z0-9_-]+)(?:\.([a-z0-9_-]+))?:([^\s/]+)/(\S+)")
_KIND: Final = re.compile(
    r"(run|job|message|inbox|delivery|outbox|heartbeat|person|node):(.+)", re.DOTALL
)
_ROW: Final = re.compile(r"\d{1,18}")
_ID: Final = re.compile(r"[0-9a-f-]+")


@dataclass(frozen=True, slots=True)
class FoundSubject:
    """A possible subject, with the function that explains it."""

    subject: Subject
    explain: Callable[[], Awaitable[Explanation]]


async def explain(src: Sources, about: str | None) -> Explanation:
    """Explain a subject by any of its names; None: the gateway as a whole.

    Raises ``NotFound``, with the candidates if the name is ambiguous, and ``StoreUnavailable``.
    """
    if about is None or not about.strip():
        return await gateway.explain(src)
    return await (await find(src, about)).explain()


async def find(src: Sources, about: str) -> FoundSubject:
    """Return the only subject. Raises ``NotFound``, with candidates or similar names."""
    about = about.strip()
    if not about or len(about) > MAX_CHARS:
        raise NotFound(f"ask about something with a name of 1 to {MAX_CHARS} characters")
    if not about.isprintable():
        raise NotFound("no name has control characters, such as a line break")
    found: list[FoundSubject] = []
    for look in (_written_out, _exact, _partly, _elsewhere):
        found = found or await look(src, about)
    found = list({str(one.subject): one for one in found}.values())
    if not found:
        raise await _unknown(src, about)
    if len({one.subject.kind for one in found}) == 1:
        # A whole id may begin others, and be part of them.
        exact = [one for one in found if about in (one.subject.id, str(one.subject))]
        found = exact or found
    if len(found) > 1 and found[0].subject.kind is SubjectKind.DELIVERY:
        return _before_others(found)
    if len(found) > 1:
        lines = [f"  {one.subject}  {one.subject.name}".rstrip() for one in found[:_LISTED]]
        more = "\n  …" if len(found) > _LISTED else ""
        names = [str(one.subject) for one in found[:_LISTED]]
        hint = ":\n" + "\n".join(lines) + more
        raise NotFound(f"{about!r} may mean several things", names=names, hint=hint)
    return found[0]


def _before_others(found: list[FoundSubject]) -> FoundSubject:
    """Return the delivery with the given number; its explanation names the other candidates.

    Lists show deliveries by their numbers, which may be those of messages and chats, too.
    """
    delivery, *others = found

    async def explain_delivery() -> Explanation:
        explained = await delivery.explain()
        also = [
            Cure(f"Another {one.subject.kind.value} has this number", f"goclaw why {one.subject}")
            for one in others[:_LISTED]
        ]
        return replace(explained, cures=(*explained.cures, *also))

    return FoundSubject(delivery.subject, explain_delivery)


# ---------------------------------------------------------------------------- by its own form


async def _written_out(src: Sources, about: str) -> list[FoundSubject]:
    """Find subjects whose kind is clear from the form of the name."""
    if link := _LINK.fullmatch(about):
        return await _linked(src, f"-100{link[1]}", link[2])
    if (kind := _KIND.fullmatch(about)) and (found := await _of_kind(src, kind[1], kind[2])):
        return found
    if told := _MESSAGE.fullmatch(about):
        return await _message(src, Target(told[1], told[2] or "default", told[3]), told[4])
    target = parse_target(about)
    if target is not None and (target.channel, target.account) in src.rules():
        return [await _chat(src, target)]
    return []


async def _elsewhere(src: Sources, about: str) -> list[FoundSubject]:
    """Find a chat of an account that is not configured (any more)."""
    target = None if _KIND.fullmatch(about) else parse_target(about)
    return [] if target is None else [await _chat(src, target)]


async def _linked(src: Sources, chat: str, name: str) -> list[FoundSubject]:
    """Find a message by its link, which names no account."""
    accounts = [account for channel, account in src.rules() if channel == "telegram"]
    *others, last = accounts or [DEFAULT_ACCOUNT]
    for account in others:
        with suppress(NotFound):
            return await _message(src, Target("telegram", account, chat), name)
    return await _message(src, Target("telegram", last, chat), name)


async def _of_kind(src: Sources, kind: str, name: str) -> list[FoundSubject]:
    looks = {
        SubjectKind.RUN: _runs,
        SubjectKind.JOB: _jobs,
        SubjectKind.MESSAGE: _message_numbered,
        SubjectKind.DELIVERY: _delivery_numbered,
        SubjectKind.HEARTBEAT: _agents,
        SubjectKind.PERSON: _people,
        SubjectKind.NODE: _nodes,
    }
    return await looks[SubjectKind(kind)](src, name)


async def _message(src: Sources, target: Target, name: str) -> list[FoundSubject]:
    """Find an incoming or outgoing message by the channel's id."""
    place = target.channel, target.account
    letter = await src.store.letter_named(*place, f"{target.chat}:{name}")
    if letter is None:
        letter = await src.store.letter_named(*place, name)
    if letter is not None:
        return [FoundSubject(messages.subject(letter), partial(messages.explain, src, letter))]
    rows = await deliveries.find(src, *place, target.chat, name)
    if rows:
        return [
            FoundSubject(deliveries.subject(rows[0]), partial(deliveries.explain, src, rows[0]))
        ]
    where = target_text(target)
    raise NotFound(
        f"there is no message {name} of {where}: it never came in, was not meant for the bot, or "
        "is too old",
        names=[where],
        hint=f"; see: goclaw why {where}",
    )


async def _chat(src: Sources, target: Target) -> FoundSubject:
    place = await chats.place_of(src, target)
    return FoundSubject(place.subject, partial(chats.explain, src, target))


# ---------------------------------------------------------------------------- exactly


async def _exact(src: Sources, about: str) -> list[FoundSubject]:
    """Find all subjects with exactly this name."""
    found = [*await _delivery_numbered(src, about), *await _message_numbered(src, about)]
    found += await _agents(src, about)
    session = await src.store.session(SessionKey(about))
    if session is not None:
        found.append(_session(src, session.key))
    found += [_job(src, job) for job in await find_jobs(src.store, about, jobs.OPERATOR)]
    found += await _runs(src, about, whole_id=True)
    found += await _nodes(src, about, whole_id=True)
    found += await _chats(src, about, whole_name=True)
    found += await _people(src, about, whole_name=True)
    return _each_chat_once(found)


def _session(src: Sources, key: SessionKey) -> FoundSubject:
    about = Subject(SubjectKind.SESSION, key)
    return FoundSubject(about, partial(chats.explain_session, src, key, about))


async def _agents(src: Sources, about: str) -> list[FoundSubject]:
    if about not in await src.control.heartbeats.agents():
        return []
    agent = AgentName(about)
    return [FoundSubject(heartbeats.subject(agent), partial(heartbeats.explain, src, agent))]


async def _message_numbered(src: Sources, about: str) -> list[FoundSubject]:
    letter = await src.store.dead_letter(int(about)) if _ROW.fullmatch(about) else None
    if letter is None:
        return []
    return [FoundSubject(messages.subject(letter), partial(messages.explain, src, letter))]


async def _delivery_numbered(src: Sources, about: str) -> list[FoundSubject]:
    row = await src.store.outbox_row(int(about)) if _ROW.fullmatch(about) else None
    if row is None:
        return []
    return [FoundSubject(deliveries.subject(row), partial(deliveries.explain, src, row))]


# ---------------------------------------------------------------------------- by a part


async def _partly(src: Sources, about: str) -> list[FoundSubject]:
    """Find all subjects with a part of this name."""
    found = [*await _runs(src, about), *await _jobs(src, about), *await _sessions(src, about)]
    found += await _chats(src, about, whole_name=False)
    found += await _people(src, about, whole_name=False)
    found += await _nodes(src, about)
    return _each_chat_once(found)


async def _runs(src: Sources, about: str, *, whole_id: bool = False) -> list[FoundSubject]:
    """Find by id, the beginning of one, or that of an approval for which the run has asked."""
    whole_id = whole_id or len(about) < _FEWEST or not _ID.fullmatch(about)

    def fits(id_: str) -> bool:
        return id_ == about if whole_id else id_.startswith(about)

    stored = [run for run in await src.store.find_run(about) if fits(run.id)]
    for asked in filter(lambda one: fits(one.id), await src.store.find_approvals(about)):
        stored += await src.store.find_run(asked.run_id)
    found = [FoundSubject(runs.subject(run), partial(runs.explain, src, run)) for run in stored]
    known = {one.subject.id for one in found}
    live = () if src.container is None else src.container.dispatcher.runs()
    for view in live:
        if fits(view.id) and view.id not in known and view.waits_for is not None:
            subject = Subject(SubjectKind.RUN, view.id)
            found.append(FoundSubject(subject, partial(waits.explain, src, view)))
    return found


async def _jobs(src: Sources, about: str) -> list[FoundSubject]:
    """Find by slug, id, prefix of an id, or name; a deleted job by slug or id in the log."""
    found = await find_jobs(src.store, about, jobs.OPERATOR)
    if not found:
        page = await src.control.jobs.search(JobQuery(name=about, limit=SEARCHED), jobs.OPERATOR)
        found = list(page.jobs)
    if found:
        return [_job(src, job) for job in found]
    log = [
        row
        for row in await src.control.jobs.log(None, jobs.OPERATOR, limit=SEARCHED)
        if about in (row.slug, row.job)
    ]
    if not log:
        return []
    gone = Subject(SubjectKind.JOB, log[0].slug)
    return [FoundSubject(gone, partial(jobs.explain_deleted, src, log))]


def _job(src: Sources, job: Job) -> FoundSubject:
    # Owners may have jobs of the same slug: its id names one of them.
    return FoundSubject(jobs.subject(job), partial(jobs.explain, src, job))


async def _sessions(src: Sources, about: str) -> list[FoundSubject]:
    """Find sessions with this part in their key; if chats are among them, only those."""
    live = () if src.container is None else (run.session for run in src.container.dispatcher.runs())
    stored = (one.key for one in await src.store.sessions(SessionQuery(limit=SEARCHED)))
    keys = sorted({key for key in (*stored, *live) if about in key})
    keys = with_whole_id(keys, about) or keys
    own = [key for key in keys if agent_of(key) == about and is_direct_chat(key)]
    spoken = [key for key in keys if is_direct_chat(key) or peer_of(key).value == "group"]
    return [_session(src, key) for key in (own if len(own) == 1 else spoken or keys)]


async def _chats(src: Sources, about: str, *, whole_name: bool) -> list[FoundSubject]:
    """Find chats by id or name: those without approval, and those with messages."""
    wanted = about.removeprefix("@").casefold()
    found = [
        Target(chat.channel, chat.account, chat.chat)
        for chat in await src.store.chats(limit=SEARCHED)
        if chat.chat == about or _fits(chat.name, wanted, whole_name=whole_name)
    ]
    named = await src.store.sessions(SessionQuery(search=wanted, limit=SEARCHED))
    spoken = [target for one in named if (target := chat_of(one.key)) is not None]
    known = (await src.store.names(spoken)).targets
    found += [one for one in spoken if _fits(known.get(one, ""), wanted, whole_name=whole_name)]
    return [await _chat(src, target) for target in dict.fromkeys(found)]


async def _people(src: Sources, about: str, *, whole_name: bool = False) -> list[FoundSubject]:
    """Find approved people and access requests by id, name or @username."""
    wanted, id_ = about.removeprefix("@").casefold(), about.rpartition("/")[2]

    def fits(sender: Sender) -> bool:
        names = (sender.name, sender.username or "")
        return sender.id == id_ or any(_fits(one, wanted, whole_name=whole_name) for one in names)

    found = []
    for one in await src.store.people():
        if fits(one.sender):
            subject = _person(one.channel, one.account, one.sender)
            found.append(FoundSubject(subject, partial(chats.explain_person, src, one)))
    for asks in await src.control.people.requests():
        if fits(asks.sender):
            subject = _person(asks.channel, asks.account, asks.sender)
            found.append(FoundSubject(subject, partial(chats.explain_asking, src, asks)))
    return found


def _person(channel: str, account: str, sender: Sender) -> Subject:
    return Subject(SubjectKind.PERSON, f"{channel}/{account}/{sender.id}", sender.name)


async def _nodes(src: Sources, about: str, *, whole_id: bool = False) -> list[FoundSubject]:
    is_part = not whole_id and len(about) >= _FEWEST
    return [
        FoundSubject(nodes.subject(node), partial(nodes.explain, src, node))
        for node in await src.store.nodes()
        if node.id == about or (is_part and about in node.id)
    ]


def _fits(name: str, wanted: str, *, whole_name: bool) -> bool:
    key = name.casefold()
    return bool(wanted) and (key == wanted if whole_name else key.startswith(wanted))


def _each_chat_once(found: list[FoundSubject]) -> list[FoundSubject]:
    """Remove people and chats whose session was found too, which explains them."""
    keys = [one.subject.id for one in found if one.subject.kind is SubjectKind.SESSION]
    people = [one.subject.id for one in found if one.subject.kind is SubjectKind.PERSON]
    kept = []
    for one in found:
        chat = one.subject.id.rpartition("/" if one.subject.kind is SubjectKind.PERSON else ":")[2]
        of_chat = one.subject.kind in (SubjectKind.CHAT, SubjectKind.PERSON)
        if of_chat and any(key.split(":")[4:5] == [chat] for key in keys):
            continue
        if one.subject.kind is SubjectKind.CHAT and any(p.endswith(f"/{chat}") for p in people):
            continue
        kept.append(one)
    return kept


# ---------------------------------------------------------------------------- unknown


async def _unknown(src: Sources, about: str) -> NotFound:
    """Return an error that says what was searched, with similar names."""
    names: set[str] = {one.key for one in await src.store.sessions(SessionQuery(limit=SEARCHED))}
    names |= {key.split(":")[4] for key in names if len(key.split(":")) > 4}
    names |= {chat.name for chat in await src.store.chats(limit=SEARCHED) if chat.name}
    names |= {one.sender.name for one in await src.store.people() if one.sender.name}
    page = await src.control.jobs.search(JobQuery(limit=SEARCHED), jobs.OPERATOR)
    names |= {job.spec.slug for job in page.jobs} | set(await src.control.heartbeats.agents())
    alike = difflib.get_close_matches(about, sorted(names), n=3, cutoff=0.6)
    meant = f" Did you mean {' or '.join(map(repr, alike))}?" if alike else ""
    text = (
        f"nothing is called {about!r}: no conversation, chat, person, run, message, delivery, job, "
        "agent or node."
    )
    lists = (
        " See: goclaw sessions list, goclaw runs list, goclaw jobs list --all, "
        "goclaw people groups list"
    )
    return NotFound(text, names=alike, hint=meant + lists)
