"""What the audit log has of operations on people (SPEC SEC-9)."""

from __future__ import annotations

from typing import Any, Final

from goclaw_py.operations.declare import Arguments, Change, named
from goclaw_py.records.audit import Facts
from goclaw_py.records.people import AccessVerdict
from goclaw_py.schedule.jobs.job_json import plain


async def _person(people: Any, arguments: Arguments) -> Facts:
    who = arguments["channel"], arguments["account"], arguments["sender_id"]
    for one in await people.list(limit=1000):
        if (one.channel, one.account, one.sender.id) == who:
            return {"name": one.sender.name, "role": one.standing.value}
    return {}


async def _access(people: Any, arguments: Arguments) -> Facts:
    where = arguments["channel"], arguments["account"], arguments["chat"]
    for one in await people.chats(limit=1000):
        if (one.channel, one.account, one.chat) == where:
            return {"allowed": one.allowed}
    return {"allowed": None}


def _approved(_arguments: Arguments, person: Any) -> str:
    # The code is not recorded: whoever reads it while it is valid could use it elsewhere.
    if person is None:
        return "person with a pairing code"
    return f"person {person.channel}/{person.account}/{person.sender.id}"


def _verdict(arguments: Arguments) -> str:
    return "person.deny" if arguments["verdict"] is AccessVerdict.DENY else "person.approve"


def _requester(_arguments: Arguments, request: Any) -> str:
    kind = "chat" if request.is_group else "person"
    return f"{kind} {request.channel}/{request.account}/{request.sender.id}"


DECIDE_IN_CHAT: Final = Change(
    _verdict,
    _requester,
    told=lambda arguments, one: {
        "name": one.sender.name,
        "verdict": arguments["verdict"].name.lower(),
    },
    is_done=lambda arguments, one: one is not None and one.expires_at > arguments["now"],
)
APPROVE: Final = Change(
    "person.approve",
    _approved,
    told=lambda _, one: {"name": one.sender.name, "role": one.standing.value},
    # A code with one wrong letter nearly tells the right one.
    masked="code",
)
REVOKE: Final = Change(
    "person.revoke",
    named("person {channel}/{account}/{sender_id}"),
    _person,
    lambda _arguments, _result: {},
)
ALLOW_CHAT: Final = Change(
    lambda arguments: "chat.allow" if arguments["allowed"] else "chat.deny",
    named("chat {channel}/{account}/{chat}"),
    _access,
    lambda arguments, _: {"allowed": arguments["allowed"]},
)
INVITE: Final = Change(
    "guest.invite",
    named("person {name}"),
    # The link is a secret: it is in the answer only.
    told=lambda arguments, made: {
        "again": arguments["again"],
        "expires_at": plain(made.expires_at),
    },
)
