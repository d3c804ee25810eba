"""Display names: how people read ids of sessions and people (SPEC OPS-9).

Only ids identify: a name can be changed by whoever has it, and two may be equal. So a name is never
shown alone where somebody decides about access.

The rules of SPEC OPS-9:

Names. Pages, tables and the API's `POST /api/names` show people and chats by display names: of a
direct chat the person (without a name `@username`), of a group its title, of a topic `Group /
Topic`, of a job its name; without a stored name, and while the database is away, the id with its
channel, or "New conversation" in the web chat. One function makes them. Log lines have the name of
their session in a field of its own, if this process has stored or read it. Names are stored when a
message of an admitted person comes, again when they change, and once a day; they identify nobody:
pages that decide about access show the id beside them, elsewhere it is shown on hover, and in
tables of the CLI in the column KEY. Senders of the console and the web chat are shown by their id:
their chats are named by titles (CHAN-9). Kept 90 d after they were seen last (DB-5); `people revoke
--forget` deletes a person's name at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from goclaw_py.core.ids import JobId, SessionKey
from goclaw_py.core.messages import Target
from goclaw_py.core.session_keys import CONSOLE, chat_of, is_made_name, job_of
from goclaw_py.core.text import first_words, visible_line, without_markdown
from goclaw_py.core.web_links import OWN_CHANNELS

NEW_CONVERSATION: Final = "New conversation"
"""The name of a conversation of the web chat in which nothing gave it a title."""

_TITLE_CHARS: Final = 60

SHORT_ID: Final = len("01a20492-c3f7-7c11")
"""Characters of a short id: the time in ms and 12 random bits.

With the time alone, runs that were due at the same time would have the same short id.
"""


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Stored names. What has none is missing.

    Args:
        targets: Names of chats and people, and with a thread of topics.
        jobs: Names of jobs, or their slugs.
    """

    targets: Mapping[Target, str] = field(default_factory=dict)
    jobs: Mapping[JobId, str] = field(default_factory=dict)


def needed_names(keys: Iterable[str]) -> tuple[set[Target], set[JobId]]:
    """Return what must be known to name sessions, chats and people (``display_name``)."""
    targets: set[Target] = set()
    jobs: set[JobId] = set()
    for key in keys:
        if (job := job_of(SessionKey(key))) is not None:
            jobs.add(job)
        elif (target := chat_of(SessionKey(key)) or _person(key)) is not None:
            targets |= {target, _whole(target)}
    return targets, jobs


def display_name(key: str, known: KnownNames) -> str:
    """Return the name of a session, by its key, or a chat or person (``channel/account/id``).

    A group's topic is ``Group / Topic``. Without a stored name it is the id, with what it is.
    """
    if (job := job_of(SessionKey(key))) is not None:
        return f"job {known.jobs.get(job) or short_id(job)}"
    if (chat := chat_of(SessionKey(key))) is not None:
        name = known.targets.get(_whole(chat)) or _without_name(chat)
        if chat.thread is None:
            return name
        return f"{name} / {known.targets.get(chat) or f'topic {chat.thread}'}"
    if (person := _person(key)) is not None:
        return known.targets.get(person) or _without_name(person)
    match key.split(":"):
        case ["agent", agent, "heartbeat", *_]:
            return f"heartbeat of {agent}"
        case ["agent", _, "subagent" | "delegate" as kind, run]:
            return f"{kind} {short_id(run)}"
        case ["agent", _, "api", *rest] if rest:
            return f"API {':'.join(rest)}"
        case _:
            return key


def name_in_sentence(chat: Target, known: KnownNames) -> str:
    """Return the name of a chat where a title alone would read as the name of a person."""
    name = display_name(address(chat), known)
    is_title = chat.channel in OWN_CHANNELS and name == known.targets.get(_whole(chat))
    return f"conversation “{name}”" if is_title else name


def shown_name(name: str, username: str | None) -> str:
    """Return the name of a chat or person, or ``@username``; "" without both."""
    return name or (f"@{username}" if username else "")


def address(chat: Target) -> str:
    """Return the key under which ``display_name`` names a chat, without its topic."""
    return f"{chat.channel}/{chat.account}/{chat.chat}"


def person_key(chat: Target, person: str) -> str:
    """Return the key under which ``display_name`` names a person of a chat."""
    return address(replace(chat, chat=person))


def sender_words(sender: str) -> str:
    """Return the key of a person, or what to show instead where chats have titles.

    A person of the console or the web chat has the id of their chat, whose name is the title of a
    conversation.
    """
    person = _person(sender)
    if person is None or person.channel not in OWN_CHANNELS:
        return sender
    return f"{person.channel} {person.chat}"


def title_from(text: str, files: Sequence[str] = ()) -> str:
    """Return the title that the first message of a conversation gives it, "" for none.

    ``files``: the names of its files, of which the first counts if it has no words.
    """
    words = (visible_line(one) for one in (without_markdown(text), *files[:1]))
    return first_words(next(filter(None, words), ""), _TITLE_CHARS)


def operator_in(chat: Target) -> str:
    """Return who writes in chats of the console, "the operator"; "" for other channels.

    A person there has the id of their chat, which says nothing to people.
    """
    return "the operator" if chat.channel == CONSOLE else ""


def short_id(whole: str) -> str:
    """Return the beginning of an id that commands and addresses accept in its place."""
    return whole[:SHORT_ID]


def _without_name(chat: Target) -> str:
    if chat.channel == CONSOLE and is_made_name(chat.chat):
        return NEW_CONVERSATION  # it has had commands only
    return f"{chat.channel} {chat.chat}"


def _whole(chat: Target) -> Target:
    """Return the chat of a topic."""
    return Target(chat.channel, chat.account, chat.chat)


def _person(key: str) -> Target | None:
    match key.split("/", 2):
        # A session of the API may have slashes in its name, but no channel has a colon.
        case [channel, account, sender] if ":" not in channel:
            return Target(channel, account, sender)
        case _:
            return None
