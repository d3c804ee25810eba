"""Why a chat, a person or a session got no answer: access, then the last message.

It needs people, sessions, messages and runs, so it is in no folder of a noun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from goclaw_py.core.ids import SessionKey
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.session_keys import (
    AccessRules,
    DirectPolicy,
    GroupPolicy,
    chat_of,
    peer_of,
)
from goclaw_py.core.targets import target_text
from goclaw_py.core.time.texts import age
from goclaw_py.gateway.why import messages, runs, waits
from goclaw_py.gateway.why.sources import (
    SEARCHED,
    Sources,
    Verdict,
    between,
    conclude,
    uncapitalized,
    who,
)
from goclaw_py.operations.explanation import (
    Cure,
    Explanation,
    ExplanationStep,
    Subject,
    SubjectKind,
    setting_cure,
)
from goclaw_py.operations.people.operations import PairingApplicant
from goclaw_py.records import (
    Chat,
    DeadLetter,
    Person,
    RunQuery,
    Session,
    SessionQuery,
    Standing,
    StoredRun,
)
from goclaw_py.runs.tool_services import sessions_of
from goclaw_py.scheduler.operator_warnings import shell_command

_APPROVE = "(page People, or goclaw people approve CODE, with --guest as a guest)"


@dataclass(frozen=True, slots=True)
class KnownChat:
    """A chat with its sessions.

    Args:
        chat: Its row; None if it is not stored.
        sessions: Its sessions, the most recently active first.
    """

    target: Target
    peer: PeerKind
    chat: Chat | None
    sessions: Sequence[Session]

    @property
    def name(self) -> str:
        """Its name for people."""
        kind = "group" if self.peer is PeerKind.GROUP else "chat"
        known = self.chat.name if self.chat is not None else ""
        return f"The {kind} {known or target_text(self.target)}"

    @property
    def subject(self) -> Subject:
        """The chat as a subject."""
        return Subject(SubjectKind.CHAT, target_text(self.target), self.name)


async def place_of(src: Sources, target: Target) -> KnownChat:
    """Read a chat, stored or not."""
    chat = await src.store.chat(target.whole_chat)
    agents = {rules.agent for rules in [src.rules_of(target)] if rules is not None}
    keys = {key for agent in agents for key in sessions_of(agent, target)}
    found = [one for key in keys if (one := await src.store.session(key)) is not None]
    for session in await src.store.sessions(SessionQuery(limit=SEARCHED)):
        # Not by its target: a job that writes to this chat has it, too.
        own = chat_of(session.key)
        inside = own is not None and own.whole_chat == target.whole_chat
        if inside and session.key not in keys and target.thread is None:
            found.append(session)
    found.sort(key=lambda one: one.last_active_at, reverse=True)
    return KnownChat(target, _peer(target, chat, found), chat, found)


def _peer(target: Target, chat: Chat | None, sessions: Sequence[Session]) -> PeerKind:
    if chat is not None:
        return chat.peer
    if sessions:
        return peer_of(sessions[0].key)
    return PeerKind.GROUP if target.chat.startswith("-") else PeerKind.DIRECT


# ---------------------------------------------------------------------------- chats


async def explain(src: Sources, target: Target) -> Explanation:
    """Explain the result of the last message of a chat."""
    place = await place_of(src, target)
    barred = await _barred(src, place) or await _unmentioned(src, place)
    if barred is None and place.sessions:
        return await explain_session(src, place.sessions[0].key, place.subject)
    verdict = barred or _unheard(place)
    steps = (*_seen(place), ExplanationStep(None, verdict.code, uncapitalized(verdict.answer)))
    return verdict.explanation(place.subject, src.now(), steps)


def _seen(place: KnownChat) -> list[ExplanationStep]:
    chat, steps = place.chat, []
    if chat is not None:
        steps.append(ExplanationStep(chat.first_seen_at, "seen", "seen for the first time"))
        if chat.unmentioned_at is not None:
            heard = "got a message that did not mention the bot"
            steps.append(ExplanationStep(chat.unmentioned_at, "unmentioned", heard))
    if place.sessions:
        last = place.sessions[0]
        steps.append(ExplanationStep(last.last_active_at, "active", f"last active as {last.key}"))
    return steps


def _unheard(place: KnownChat) -> Verdict:
    answer = (
        f"No message from {target_text(place.target)} was ever accepted, and no rule blocks it: "
        "none arrived, or it was not meant for this bot."
    )
    cures: tuple[Cure, ...] = (
        Cure("Is its channel connected?", "goclaw why"),
        Cure("Check the id of the chat: /whoami in the chat shows it"),
    )
    if place.peer is PeerKind.GROUP:
        privacy = "Telegram shows bots only what mentions them: /setprivacy at @BotFather"
        cures = (*cures, Cure(privacy))
    return conclude("chat.unheard", answer, *cures)


async def _barred(src: Sources, place: KnownChat) -> Verdict | None:
    """Return what keeps a chat from being answered now, None if nothing does."""
    target, rules = place.target, src.rules_of(place.target)
    account = f"{target.channel}/{target.account}"
    if rules is None:
        answer = f"{place.name} is on {account}, and no such account is set up here."
        add = Cure(f"Set up [channels.{target.channel}] in goclaw.toml and start the gateway again")
        return conclude("chat.no_account", answer, add, Cure("What is set up", "goclaw status"))
    if place.chat is not None and place.chat.gone:
        answer = f"{place.name} cannot receive messages: {place.chat.gone}."
        back = Cure("Unblock the bot there or add it again, then send it a message")
        failed = Cure("Then retry what could not be sent", "goclaw deliveries list --state failed")
        return conclude("chat.gone", answer, back, failed)
    access = rules.access
    if access.trusted:
        return None
    if place.peer is PeerKind.GROUP:
        return _group(place, access)
    return await _direct(src, place, access)


def _group(place: KnownChat, access: AccessRules) -> Verdict | None:
    chat, id_ = place.chat, place.target.chat
    section = f"[channels.{place.target.channel}]"
    allow = Cure("Allow the group", shell_command("people", "groups", "allow", id_))
    if access.group is GroupPolicy.DISABLED:
        answer = f"{place.name} is ignored, as all groups are: groups = disabled in {section}."
        change = setting_cure(
            f'Set groups = "allowlist" under {section} in goclaw.toml',
            f"channels.{place.target.channel}.groups",
        )
        return conclude("chat.groups_disabled", answer, change, allow)
    if access.listed is False:
        answer = f'{place.name} is ignored: enabled = false is set for it under chats."{id_}".'
        path = f'channels.{place.target.channel}.chats."{id_}"'
        change = setting_cure(
            f"Set enabled = true under [{path}]; "
            "the settings take precedence over goclaw people groups allow",
            path,
        )
        return conclude("chat.disabled_in_settings", answer, change)
    decided = access.listed if access.listed is not None else (chat.allowed if chat else None)
    if decided is False:
        answer = f"{place.name} is ignored: an operator has denied it."
        return conclude("chat.denied", answer, allow)
    if decided is None and access.group is GroupPolicy.ALLOWLIST:
        known = "waits for a decision" if chat else "was never seen, and would wait for a decision"
        answer = f"{place.name} {known}: until it is allowed, the agent is silent there."
        return conclude(
            "chat.undecided", answer, allow, Cure("All groups", "goclaw people groups list")
        )
    return None


async def _unmentioned(src: Sources, place: KnownChat) -> Verdict | None:
    """Explain a group whose last message was not for the bot."""
    chat, rules = place.chat, src.rules_of(place.target)
    if chat is None or chat.unmentioned_at is None or rules is None:
        return None
    if rules.access.trusted or not rules.access.mention:
        return None
    if place.sessions and await _last_message_at(src, place.sessions[0]) >= chat.unmentioned_at:
        return None
    handle = src.handle(place.target)
    bot = f"@{handle}" if handle else "the bot"
    section = f"[channels.{place.target.channel}]"
    answer = (
        f"{place.name} got a message {age(chat.unmentioned_at, src.now())}: the message did not "
        f"mention {bot}, and mention = true is set there (goclaw.toml, {section})."
    )
    cures = (
        Cure(f"Mention {bot}, or reply to one of its messages"),
        Cure(
            f"Or answer everything there: mention = false under {section[:-1]}"
            f'.chats."{place.target.chat}"]',
            link="/settings?section=chat+rules",
        ),
    )
    return conclude("chat.unmentioned", answer, *cures)


async def _last_message_at(src: Sources, session: Session) -> datetime:
    """Return when the last message of a session came; its run may have ended long after."""
    last = await src.store.runs(RunQuery(session=session.key, limit=1))
    came = [letter.row.received_at for letter in await _letters(src, last)]
    return session.last_active_at if session.waiting else max(came, default=session.last_active_at)


async def _direct(src: Sources, place: KnownChat, access: AccessRules) -> Verdict | None:
    target, sender = place.target, place.target.chat
    section = f"[channels.{target.channel}]"
    if access.direct is DirectPolicy.DISABLED:
        answer = f"{place.name} is ignored, as all direct chats are: direct = disabled."
        change = setting_cure(
            f'Set direct = "pairing" under {section} in goclaw.toml',
            f"channels.{target.channel}.direct",
        )
        return conclude("chat.direct_disabled", answer, change)
    if sender in access.allow:
        return None
    if place.chat is not None and place.chat.allowed is False:
        answer = f"{place.name} is ignored: an operator has denied this person."
        return conclude(
            "chat.denied", answer, Cure("Undo it", shell_command("people", "allow", sender))
        )
    if access.direct is DirectPolicy.OPEN:
        return None
    if access.direct is DirectPolicy.ALLOWLIST:
        answer = (
            f"{place.name} is ignored: only those listed in allow may write (direct = allowlist)."
        )
        add = setting_cure(
            f'Add "{sender}" to allow under {section} in goclaw.toml',
            f"channels.{target.channel}.allow",
        )
        return conclude("chat.not_listed", answer, add)
    if await _person(src, target) is not None:
        return None
    return await _stranger(src, place)


async def _person(src: Sources, target: Target) -> Person | None:
    people = await src.store.people()
    key = target.channel, target.account, target.chat
    return next((one for one in people if (one.channel, one.account, one.sender.id) == key), None)


async def _stranger(src: Sources, place: KnownChat) -> Verdict:
    target = place.target
    for one in await src.control.people.requests():
        if (one.channel, one.account, one.sender.id) == (
            target.channel,
            target.account,
            target.chat,
        ):
            return asks(src, one)
    answer = f"{place.name} belongs to a person who is not approved and has no valid pairing code."
    cures: tuple[Cure, ...] = (
        Cure("Ask them to write again: they get a new code, which is valid for 60 minutes"),
        Cure(f"Then approve it {_APPROVE}", link="/people"),
    )
    if place.chat is None and not place.sessions:
        answer = (
            f"No message ever came from {target_text(target)}, or only one of a stranger whose "
            "pairing code has expired."
        )
        cures = (Cure("Check the id of the chat: /whoami in the chat shows it"), *cures)
    return conclude("person.unknown", answer, *cures)


# ---------------------------------------------------------------------------- people


def asks(src: Sources, one: PairingApplicant) -> Verdict:
    """Explain a person who waits for approval."""
    left = between(src.now(), one.expires_at)
    answer = (
        f"{who(one.sender)} is not approved yet: a pairing code was sent "
        f"{age(one.created_at, src.now())} and is valid for {left}."
    )
    cures = (Cure(f"Approve the code that the bot sent them {_APPROVE}", link="/people"),)
    return conclude("person.asks", answer, *cures)


async def explain_person(src: Sources, one: Person) -> Explanation:
    """Explain the role of an approved person, and the result of their last message."""
    target = Target(one.channel, one.account, one.sender.id)
    place = await place_of(src, target)
    name = who(one.sender)
    about = Subject(SubjectKind.PERSON, f"{one.channel}/{one.account}/{one.sender.id}", name)
    steps = [
        ExplanationStep(one.approved_at, "approved", f"{name} was approved as {one.standing.value}")
    ]
    barred = await _barred(src, place)
    if barred is not None:
        return barred.explanation(about, src.now(), steps)
    last = (
        ()
        if not place.sessions
        else (Cure("Their last message", shell_command("why", str(place.subject))),)
    )
    if one.standing is Standing.GUEST:
        answer = (
            f"{name} is a guest: they may talk, but owner commands (/queue MODE, /mute, the "
            "checklist) are refused."
        )
        owner = (
            Cure(
                "To make them an owner, remove them first",
                shell_command("people", "revoke", one.sender.id),
            ),
            Cure(f"Then approve the new code that they get {_APPROVE}", link="/people"),
        )
        return Explanation(about, src.now(), "person.guest", answer, tuple(steps), (*owner, *last))
    answer = f"{name} is an owner: they may talk and use all commands."
    return Explanation(about, src.now(), "person.owner", answer, tuple(steps), last)


async def explain_asking(src: Sources, one: PairingApplicant) -> Explanation:
    """Explain why a person who requests access gets no answer."""
    verdict, name = asks(src, one), who(one.sender)
    about = Subject(SubjectKind.PERSON, f"{one.channel}/{one.account}/{one.sender.id}", name)
    step = ExplanationStep(one.created_at, "code_sent", f"{name} wrote and was sent a pairing code")
    return verdict.explanation(about, src.now(), (step,))


# ---------------------------------------------------------------------------- conversations


async def explain_session(
    src: Sources, key: SessionKey, about: Subject | None = None
) -> Explanation:
    """Explain the result of the last message of a session, or of its last run."""
    about = about or Subject(SubjectKind.SESSION, key)
    view = await src.control.sessions.queue(key)
    newest = max((*view.messages, *view.unanswered), key=lambda row: row.id, default=None)
    last = await src.store.runs(RunQuery(session=key, limit=1))
    answered = max((one.row.id for one in await _letters(src, last)), default=0)
    if newest is not None and (not last or newest.id >= answered):
        letter = await src.store.dead_letter(newest.id)
        if letter is not None:
            return await messages.explain(src, letter, about)
    if view.waiting:
        return await waits.explain(src, view.waiting[0], about)
    for row in reversed(view.messages):
        letter = None if row.asking_run is None else await src.store.dead_letter(row.id)
        if letter is not None:
            return await messages.explain(src, letter, about)
    if last:
        return await runs.explain(src, last[0], about)
    answer = f"No message or run of session {key} is stored any more."
    return Explanation(about, src.now(), "session.empty", answer)


async def _letters(src: Sources, found: Sequence[StoredRun]) -> Sequence[DeadLetter]:
    """Return the messages that the last run answers."""
    return await src.store.letters_of(found[0].id) if found else ()
