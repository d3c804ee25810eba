"""``goclaw people groups``: manage in which groups the agent listens (SPEC CHAN-5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated
from unicodedata import normalize

import typer

from goclaw_py.cli.context import AsJson, cli, named, with_wide
from goclaw_py.cli.messages import display
from goclaw_py.cli.output import Column, one_line, show_json, show_table
from goclaw_py.core.errors import NotFound
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.session_keys import DEFAULT_ACCOUNT
from goclaw_py.operations.people import HELP_OF_GROUPS
from goclaw_py.records import Chat

if TYPE_CHECKING:
    from goclaw_py.config.resolve import ChannelAccount
    from goclaw_py.operations.control import Control

app = typer.Typer(help=HELP_OF_GROUPS, no_args_is_help=True)

_NAME = 40
_NAMED = 3
_IDS = {"ignore_unknown_options": True}
"""Otherwise an id such as -1001 is parsed as an unknown option."""

Place = tuple[str, str]
_Where = tuple[str | None, str | None]
"""Channel and account; None is any."""

Group = Annotated[
    str,
    typer.Argument(
        callback=named, help="Id of the group, or a unique beginning of its id or name."
    ),
]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Whether the agent listens in a group; None if that is not decided yet.

    ``settings`` is the setting that decides, "" if none does. It overrides allow and deny.
    """

    listens: bool | None
    settings: str = ""

    @property
    def words(self) -> str:
        """Return the decision in words."""
        said = _STATES[self.listens]
        return f"{said} ({self.settings})" if self.settings else said


_STATES = {True: "allowed", False: "denied", None: "pending"}


def _verdict(chat: Chat, accounts: Mapping[Place, ChannelAccount]) -> _Verdict:
    account = accounts.get((chat.channel, chat.account))
    if account is None:
        return _Verdict(chat.allowed)
    if account.settings.groups.value == "disabled":
        return _Verdict(listens=False, settings="groups = disabled")
    listed = account.settings.chats.get(chat.chat)
    if listed is not None:
        return _Verdict(listed.enabled, "listed in chats")
    if chat.allowed is None and account.settings.groups.value == "open":
        return _Verdict(listens=True, settings="groups = open")
    return _Verdict(chat.allowed)


def _accounts(ctx: typer.Context) -> dict[Place, ChannelAccount]:
    """Return the configured accounts."""
    from goclaw_py.config import accounts  # noqa: PLC0415  (not needed for --help)

    return {(one.channel, one.name): one for one in accounts(cli(ctx).settings_in_effect())}


async def _groups(control: Control) -> list[Chat]:
    return [chat for chat in await control.people.chats() if chat.peer is PeerKind.GROUP]


# ---------------------------------------------------------------------------- list


@app.command("list")
@with_wide
def list_(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """List groups, pending decisions first.

    UNMENTIONED: time of the last message that did not mention the bot, in groups where the agent
    listens. To see why a group gets no answer: goclaw why GROUP.
    """
    accounts = _accounts(ctx)
    judged = [(chat, _verdict(chat, accounts)) for chat in cli(ctx).ask(_groups)]
    judged.sort(key=lambda one: one[1].listens is not None)
    if as_json:
        show_json(list[Chat], [chat for chat, _ in judged])
        return
    several = len({display.where(chat) for chat, _ in judged}) > 1
    columns = (
        *("NAME", "ID", *((Column("CHANNEL", drop=3),) if several else ())),
        *(Column("STATE", state=True), Column("LAST SEEN", drop=1), Column("UNMENTIONED", drop=2)),
        Column("PROBLEM", least=24),
    )
    rows = [
        (
            _name(chat),
            display.cell(chat.chat),
            *((display.where(chat),) if several else ()),
            verdict.words,
            display.moment(chat.last_seen_at),
            "" if chat.unmentioned_at is None else display.moment(chat.unmentioned_at),
            f"cannot write to it: {one_line(chat.gone)}" if chat.gone else "",
        )
        for chat, verdict in judged
    ]
    show_table(columns, rows, empty="no groups yet; add the bot to one and write there")


def _name(chat: Chat) -> str:
    return one_line(chat.name, _NAME)


# ---------------------------------------------------------------------------- allow, deny


@app.command(context_settings=_IDS)
def allow(
    ctx: typer.Context,
    group: Group,
    channel: display.Channel = None,
    account: display.Account = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Allow a group: the agent listens and answers there.

    For a group without messages so far, give its full id and --channel.
    """
    _decide(ctx, group, (channel, account), allowed=True, as_json=as_json)


@app.command(context_settings=_IDS)
def deny(
    ctx: typer.Context,
    group: Group,
    channel: display.Channel = None,
    account: display.Account = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Deny a group: the agent ignores it.

    For a group without messages so far, give its full id and --channel.
    """
    _decide(ctx, group, (channel, account), allowed=False, as_json=as_json)


def _decide(ctx: typer.Context, group: str, where: _Where, *, allowed: bool, as_json: bool) -> None:
    accounts = _accounts(ctx)

    async def ask(control: Control) -> tuple[Chat | None, Place, str]:
        found = _find(await _groups(control), group, where)
        if found is not None:
            channel, account, chat = found.channel, found.account, found.chat
        else:
            channel, account, chat = where[0] or "", where[1] or DEFAULT_ACCOUNT, group
            _check_unseen(chat, (channel, account), accounts)
        await control.people.allow_chat(channel, account, chat, allowed=allowed)
        return found, (channel, account), chat

    found, place, chat_id = cli(ctx).ask(ask)
    if as_json:
        decided = dict(zip(("channel", "account", "chat"), (*place, chat_id), strict=True))
        show_json(dict[str, str | bool], {**decided, "allowed": allowed})
    else:
        _print_decision(found, place, chat_id, allowed=allowed)
    if found is None:
        return
    verdict = _verdict(replace(found, allowed=allowed), accounts)
    if verdict.listens is not allowed:
        typer.echo(f"warning: the settings override this: {verdict.words}", err=True)
    if allowed and found.gone:
        typer.echo(f"warning: cannot write to it: {display.cell(found.gone)}", err=True)


def _print_decision(found: Chat | None, place: Place, chat: str, *, allowed: bool) -> None:
    """Print the decision. ``found`` is None for a group without messages so far."""
    if found is None:
        name = display.cell(f"{chat} on {'/'.join(place)}")
        typer.echo(f"{name} is {_STATES[allowed]}; the bot has received no message from it yet")
        return
    already = "already " if found.allowed is allowed else ""
    typer.echo(f"{_called(found)} on {display.where(found)} is {already}{_STATES[allowed]}")


def _check_unseen(chat: str, place: Place, accounts: Collection[Place]) -> None:
    """Reject a mistyped id or account, which would be stored. Raises ``BadParameter``."""
    if not chat.isprintable():
        raise typer.BadParameter(f"{chat!r} is not a chat id")
    if place not in accounts:
        known = ", ".join(map("/".join, accounts)) or "none"
        raise typer.BadParameter(f"account {'/'.join(place)!r} is not configured; known: {known}")


def _find(groups: Sequence[Chat], wanted: str, where: _Where) -> Chat | None:
    """Find a group; None if it has sent no message but may exist. Raises ``NotFound``.

    A full id takes precedence. A name that several groups begin with is an error, even if one
    group has exactly that name, because anyone can give a group any name.
    """
    channel, account = where
    there = [
        chat
        for chat in groups
        if channel in (None, chat.channel) and account in (None, chat.account)
    ]
    found = [chat for chat in there if chat.chat == wanted] or [
        chat for chat in there if chat.chat.startswith(wanted) or _begins(chat.name, wanted)
    ]
    if len({chat.chat for chat in found}) > 1:
        names = ", ".join(_called(chat) for chat in found[:_NAMED])
        more = ", …" if len(found) > _NAMED else ""
        raise NotFound(f"several groups match {wanted!r}, give an id: {names}{more}")
    if len(found) > 1:
        places = ", ".join(map(display.where, found))
        raise NotFound(f"{_called(found[0])} is on {places}: add --channel or --account")
    if not found and channel is None:
        raise NotFound(
            f"no group {wanted!r}; see: goclaw people groups list. For a group without messages so "
            "far, give its full id and --channel"
        )
    return found[0] if found else None


def _called(chat: Chat) -> str:
    return f"{_name(chat)} ({display.cell(chat.chat)})" if chat.name else display.cell(chat.chat)


def _begins(name: str, wanted: str) -> bool:
    # Text without visible characters would match every name.
    return bool(key := _key(wanted)) and _key(name).startswith(key)


def _key(name: str) -> str:
    """Normalize a name, so that names that look the same are equal."""
    return display.cell(normalize("NFKC", name)).casefold()
