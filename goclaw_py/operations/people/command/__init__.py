"""``goclaw people``: manage who may talk to the agent (SPEC CHAN-5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Annotated, Final

import typer

from goclaw_py.chat.access.access_texts import name
from goclaw_py.cli.context import (
    AsJson,
    Limit,
    answer,
    cli,
    confirm,
    named,
    with_options,
    with_wide,
)
from goclaw_py.cli.messages import display
from goclaw_py.cli.names import DisplayNames, with_names
from goclaw_py.cli.output import Column, Printer, brief_when, show_table
from goclaw_py.core.display_names import address
from goclaw_py.core.errors import GoclawError, NotAccepted, NotFound
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.session_keys import DirectPolicy
from goclaw_py.operations.control import Control
from goclaw_py.operations.people import HELP
from goclaw_py.operations.people.operations import DirectAccess, PairingApplicant, no_request
from goclaw_py.records import Chat, LastActivity, Person, unapproved

app = typer.Typer(help=HELP, no_args_is_help=True)

_NOBODY = "nobody yet; write to the bot to get a code, then: goclaw people approve CODE"
_HEARD = 1000
_BY_SETTINGS = "owner (settings)"
_OWNER = "An owner can approve tool calls, let people in and stop everything. For a guest: --guest."

Who = Annotated[str, typer.Argument(callback=named, help="Id, @username or name of the person.")]


_ROLE = Column("ROLE", state=True)
_LISTED = (
    Column("PERSON", least=30),
    Column("CHANNEL", drop=2),
    _ROLE,
    Column("CODE EXPIRES", drop=1),
)
_PEOPLE = (
    Column("PERSON", least=30),
    Column("CHANNEL", drop=2),
    _ROLE,
    Column("SINCE", drop=3),
    Column("LAST MESSAGE", drop=1, least=16),
)


@app.command("list")
@with_wide
def list_(ctx: typer.Context, limit: Limit = 50, *, as_json: AsJson = False) -> None:
    """List people with access, pending requests and denied people.

    --limit is for each of these; people whom the settings allow are all listed.
    """

    async def ask(control: Control) -> PeopleList:
        rules, chats = await _not_approved(control)
        denied = [chat for chat in chats if chat.allowed is False]
        people = await control.people.list(limit=limit)
        requests = (await control.people.requests())[:limit]
        return PeopleList(people, rules, requests, denied[:limit])

    def show(found: PeopleList) -> None:
        _show(found)
        _note_limit(limit, found.people, found.requests, found.denied)

    answer(ctx, ask, Printer(PeopleList, show, as_json))


def _note_limit(limit: int, *lists: Sequence[object]) -> None:
    if any(len(one) >= limit for one in lists):
        typer.echo(f"showing at most {limit} of each kind; use --limit to see more", err=True)


@dataclass(frozen=True, slots=True)
class PeopleList:
    """What ``goclaw people list`` shows."""

    people: list[Person]
    access: list[DirectAccess]
    requests: list[PairingApplicant]
    denied: list[Chat]


def _show(found: PeopleList) -> None:
    seen_at = display.now()
    rows = [
        *(
            (display.who(one.sender), display.where(one), one.standing.value, "")
            for one in found.people
        ),
        *(
            (display.who(one), display.where(rule), _BY_SETTINGS, "")
            for rule in found.access
            for one in rule.allow
        ),
        *(
            (
                display.who(one.sender),
                display.where(one),
                "pending",
                brief_when(one.expires_at, seen_at),
            )
            for one in found.requests
        ),
        *((_called(one), display.where(one), "denied", "") for one in found.denied),
    ]
    show_table(_LISTED, rows, empty=_NOBODY)


@dataclass(frozen=True, slots=True)
class PeopleActivity:
    """What ``goclaw people activity`` shows."""

    people: list[Person]
    access: list[DirectAccess]
    last_messages: list[LastActivity]
    not_approved: list[Chat]


@app.command("activity")
@app.command("people", hidden=True)
@with_wide
def activity(ctx: typer.Context, limit: Limit = 50, *, as_json: AsJson = False) -> None:
    """List people and when they last wrote.

    --limit is for those who are approved, and for the others.

    Includes owners, guests, and people whom the settings allow to write without approval.
    """

    async def ask(control: Control) -> PeopleActivity:
        people = await control.people.list(limit=limit)
        heard = await control.people.activity(limit=_HEARD)
        rules, others = await _not_approved(control)
        return PeopleActivity(people, rules, heard, others[:limit])

    def keys(found: PeopleActivity) -> list[str]:
        return [address(one.target) for one in found.last_messages]

    def show(found: PeopleActivity, names: DisplayNames) -> None:
        _show_people(found, names)
        _note_limit(limit, found.people, found.not_approved)

    answer(ctx, *with_names(ask, keys, PeopleActivity, show, as_json))


def _show_people(answered: PeopleActivity, names: DisplayNames) -> None:
    # Only the last speaker of each chat is stored, which is enough for a direct chat.
    # The list is newest first; reversed, so that the newest entry of a person wins.
    heard = reversed(answered.last_messages)
    last = {(one.target.channel, one.target.account, one.sender_id): one for one in heard}
    rows = (
        [
            (
                display.who(one.sender),
                display.where(one),
                one.standing.value,
                display.moment(one.approved_at),
                _last(last.get((one.channel, one.account, one.sender.id)), names),
            )
            for one in answered.people
        ]
        + [
            (
                display.who(one),
                display.where(rule),
                _BY_SETTINGS,
                "",
                _last(last.get((rule.channel, rule.account, one.id)), names),
            )
            for rule in answered.access
            for one in rule.allow
        ]
        + [
            (
                _called(one),
                display.where(one),
                "denied" if one.allowed is False else "not approved",
                display.moment(one.first_seen_at),
                # The stored time of the chat is updated at least once an hour.
                _last(last.get((one.channel, one.account, one.chat)), names)
                or display.moment(one.last_seen_at),
            )
            for one in answered.not_approved
        ]
    )
    show_table(_PEOPLE, rows, empty=_NOBODY)


def _called(chat: Chat) -> str:
    return display.cell(f"{chat.chat} ({chat.name})" if chat.name else chat.chat)


def _last(activity: LastActivity | None, names: DisplayNames) -> str:
    if activity is None:
        return ""
    return f"{display.moment(activity.at)} in {names.chat(activity.target)}"


@app.command()
def approve(
    ctx: typer.Context,
    code: Annotated[
        str, typer.Argument(callback=named, help="Code that the bot sent to the person.")
    ],
    *,
    guest: Annotated[
        bool, typer.Option("--guest", help="Approve as guest (no owner commands).")
    ] = False,
    yes: display.Yes = False,
    as_json: AsJson = False,
) -> None:
    """Approve a pending request by its code, as owner or as guest.

    The bot tells the person, and answers the messages they have already sent.
    """
    # The first person is the operator.
    if not guest and not yes and (applicant := cli(ctx).ask(partial(_further, code))) is not None:
        who = f"{display.who(applicant.sender)} on {display.where(applicant)}"
        confirm(f"Make {who} an owner? {_OWNER}", yes=False)

    def show(person: Person) -> None:
        typer.echo(f"{display.who(person.sender)} is {person.standing.value} on {person.channel}")

    async def ask(control: Control) -> Person:
        try:
            return await control.people.approve(code, guest=guest)
        except NotFound:
            raise await _no_request(code, control) from None

    answer(ctx, ask, Printer(Person, show, as_json))


async def _further(code: str, control: Control) -> PairingApplicant | None:
    """Return who has a code; None if it is the first person. Raises ``NotFound``."""
    if not await control.people.list(limit=1):
        return None
    for applicant in await control.people.requests(code=code):
        return applicant
    raise await _no_request(code, control)


async def _no_request(code: str, control: Control) -> GoclawError:
    """Return why nobody has a code: it may be the id or name of who has one."""
    for one in await control.people.requests():
        if code in (one.sender.id, f"@{one.sender.username}", one.sender.name):
            return NotAccepted(
                f"{display.who(one.sender)} has a code, which only they can see: "
                "ask them for it, then: goclaw people approve CODE"
            )
    return no_request(code)


@dataclass(frozen=True, slots=True)
class Revocation:
    """The options of ``goclaw people revoke``."""

    channel: display.Channel = None
    account: display.Account = None
    forget: Annotated[
        bool, typer.Option("--forget", help="Also delete the stored name of the person.")
    ] = False
    yes: display.Yes = False
    as_json: AsJson = False


@app.command()
@with_options(Revocation)
def revoke(ctx: typer.Context, wanted: Revocation, who: Who) -> None:
    """Revoke the approval of a person."""

    async def find(control: Control) -> Person:
        people = [
            person
            for person in await control.people.list()
            if wanted.channel in (None, person.channel) and wanted.account in (None, person.account)
        ]
        found = [
            one.sender.id for one in people if who in (one.sender.id, f"@{one.sender.username}")
        ] or [one.sender.id for one in people if one.sender.name == who]
        if not found:
            _refuse_by_settings(who, await control.people.direct_access())
            hint = "give the id or @username in: goclaw people list"
            raise NotFound(f"no approved person is {who}; {hint}")
        if len({*found}) > 1:
            raise NotFound(f"{who} is the name of several people: give the id of one")
        (person, *others) = (one for one in people if one.sender.id == found[0])
        if others:
            raise NotFound(f"{who} is on several channels: add --channel or --account")
        return person

    person = cli(ctx).ask(find)
    confirm(f"Revoke the approval of {display.who(person.sender)}?", yes=wanted.yes)

    async def ask(control: Control) -> Person:
        place = person.channel, person.account
        await control.people.revoke(*place, person.sender.id, forget=wanted.forget)
        return person

    def show(person: Person) -> None:
        typer.echo(f"{display.who(person.sender)} may no longer talk on {person.channel}")

    answer(ctx, ask, Printer(Person, show, wanted.as_json))


@app.command()
def deny(
    ctx: typer.Context,
    who: Who,
    channel: display.Channel = None,
    account: display.Account = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Ignore the direct messages of a person who is not approved.

    Also rejects a pending request, without telling the person. The settings take precedence.
    """
    _decide(ctx, who, (channel, account), allowed=False, as_json=as_json)


@app.command()
def allow(
    ctx: typer.Context,
    who: Who,
    channel: display.Channel = None,
    account: display.Account = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Undo goclaw people deny.

    The settings decide again whether the person may talk.
    """
    _decide(ctx, who, (channel, account), allowed=True, as_json=as_json)


def _decide(
    ctx: typer.Context,
    who: str,
    where: tuple[str | None, str | None],
    *,
    allowed: bool,
    as_json: bool,
) -> None:
    channel, account = where

    async def ask(control: Control) -> _Decided:
        asking = [] if allowed else await control.people.requests()
        rules, others = await _not_approved(control)
        found = [
            chat
            for chat in _with_requests(others, asking)
            if (who == chat.chat or (who.startswith("@") and _has_name(chat.name, who)))
            and channel in (None, chat.channel)
            and account in (None, chat.account)
        ]
        if not found:
            for one in await control.people.list():
                if who in (one.sender.id, f"@{one.sender.username}"):
                    todo = "not denied" if allowed else f"see: goclaw people revoke {one.sender.id}"
                    raise NotAccepted(f"{display.who(one.sender)} is approved, {todo}")
            _refuse_by_settings(who, rules)
            raise NotFound(
                f"no person with a pending request or without approval is {who}; see: "
                "goclaw people list, goclaw people activity; "
                f"for an approved person: goclaw people revoke {who}"
            )
        if len(found) > 1:
            names = ", ".join(f"{_called(chat)} on {display.where(chat)}" for chat in found)
            raise NotFound(f"{who} is not unique: {names}; give the id, --channel or --account")
        (chat,) = found
        place = chat.channel, chat.account, chat.chat
        await control.people.allow_chat(*place, allowed=allowed)
        has_asked = any((one.channel, one.account, one.chat) == place for one in asking)
        direct = next(
            (rule.direct for rule in rules if place[:2] == (rule.channel, rule.account)), None
        )
        return _Decided(replace(chat, allowed=allowed), has_asked, direct)

    def show(done: _Decided) -> None:
        where = f"{_called(done.chat)} on {display.where(done.chat)}"
        if not allowed:
            request = "; their request and its code are deleted" if done.has_asked else ""
            typer.echo(f"{where} is denied{request}")
            return
        typer.echo(f"{where} is no longer denied{_ACCESS.get(done.direct, '')}")

    answer(ctx, ask, Printer(Chat, show, as_json, lambda done: done.chat))


_ACCESS: Final[dict[DirectPolicy | None, str]] = {
    DirectPolicy.OPEN: ", and can write",
    DirectPolicy.PAIRING: ". They have no access yet: ask them to write again, for a new code",
    DirectPolicy.ALLOWLIST: ". They have no access yet: add them to allow in goclaw.toml",
}
"""What follows when a person is no longer denied, by the policy of direct chats."""


@dataclass(frozen=True, slots=True)
class _Decided:
    """A direct chat that is allowed or denied.

    Args:
        has_asked: Whether it had a pending request, which denying deletes.
        direct: The policy of its account, None if this gateway does not have the account.
    """

    chat: Chat
    has_asked: bool
    direct: DirectPolicy | None


def _refuse_by_settings(who: str, rules: Iterable[DirectAccess]) -> None:
    """Raise ``NotAccepted`` if the settings allow somebody of this id or name."""
    for rule in rules:
        for one in rule.allow:
            if who == one.id or _has_name(one.name, who):
                key = f"channels.{rule.channel}"
                raise NotAccepted(
                    f"{display.who(one)} is an owner by the settings of {display.where(rule)}; "
                    f"remove {one.id} under allow of [{key}] in goclaw.toml"
                )


async def _not_approved(control: Control) -> tuple[list[DirectAccess], list[Chat]]:
    """Return whom the settings allow, and the direct chats of people whom nobody has let in."""
    rules = await control.people.direct_access()
    allow = set(chain.from_iterable(one.ids() for one in rules))
    return rules, await unapproved(control.people.list, await control.people.chats(), allow)


def _with_requests(chats: list[Chat], asking: Iterable[PairingApplicant]) -> list[Chat]:
    """Return direct chats with those of pending requests that are not stored as chats."""
    found = list(chats)
    there = {(chat.channel, chat.account, chat.chat) for chat in chats}
    for one in asking:
        place = one.channel, one.account, one.chat
        if place not in there:
            at = one.created_at
            found.append(Chat(*place, PeerKind.DIRECT, name(one.sender), None, "", at, at))
    return found


def _has_name(called: str, who: str) -> bool:
    """Return whether somebody is called so; a stored name may be ``Eve (@eve)``."""
    return who in (called, called.partition(" (")[0]) or called.endswith(f"({who})")
