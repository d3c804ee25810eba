"""Each command is declared once, with who may use it; help, menu and guide name the same."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from goclaw_py.chat.commands.command import (
    ChatCommand,
    CommandServices,
    CommandUse,
    Everybody,
    HandlerDecides,
    HelpGroup,
    OwnersOnly,
    answer_command,
)
from goclaw_py.chat.commands.registry import COMMANDS, help_text, words_read
from goclaw_py.core.chat_commands import (
    GUEST_MENU,
    MENU,
    NAMES,
    TypedCommand,
    our_command_of,
    unread_words,
)
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import PeerKind
from goclaw_py.core.session_keys import DirectPolicy
from goclaw_py.records import InboxKind, InboxRow
from goclaw_py.testing.agents import Block, ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.clock import START
from tests.support.harness import Ways, a_process, message, session_of, until


def test_every_command_is_declared_and_no_other() -> None:
    """SPEC CMD-5: ``/reset`` is ``/new``."""
    assert set(COMMANDS) | {"reset"} == set(NAMES)
    assert [name for name, one in COMMANDS.items() if one.group is None] == ["start"]


def test_help_names_every_command_of_the_menu() -> None:
    """SPEC CMD-5."""
    lines = [line for line in help_text(owner=True).splitlines() if " - " in line]
    assert {f"/{name} - {what}" for name, what in MENU} <= set(lines)
    assert len(lines) == len(set(lines))
    assert {f"{group}:" for group in HelpGroup} <= set(help_text(owner=True).splitlines())


@pytest.mark.parametrize(("channel", "can_reply"), [("telegram", True), ("console", False)])
async def test_help_offers_a_reply_only_where_messages_have_replies(
    channel: str, can_reply: bool
) -> None:
    """Found by use: the web chat offered it."""
    async with a_process(channels=(RecordingChannel(channel),)) as gateway:
        await gateway.gateway.accept([message("/help", channel=channel)])
        await until(lambda: bool(gateway.channel.texts("ann")))
        assert ("Reply /stop" in gateway.channel.texts("ann")[0]) is can_reply


async def test_the_help_of_a_guest_has_only_what_guests_may_use() -> None:
    """SPEC CMD-5."""
    ways = Ways(access=DirectPolicy.OPEN)
    async with a_process(ways=ways, channels=(RecordingChannel(trusted=False),)) as gateway:
        answer = await gateway.ask("/help")
        assert answer == help_text(owner=False)
        lines = {line for line in answer.splitlines() if line.startswith("/")}
        assert {f"/{name} - {what}" for name, what in GUEST_MENU} <= lines
        assert not any(line.startswith(("/approve", "/deny", "/mute until")) for line in lines)


def test_guests_see_no_command_of_which_each_use_is_for_owners() -> None:
    """SPEC CMD-5: of the others they read only what they may do."""
    menu, guests = dict(MENU), dict(GUEST_MENU)
    for name, _ in MENU:
        match COMMANDS[name].who:
            case OwnersOnly(when=None):
                assert name not in guests
            case OwnersOnly():
                assert guests[name] != menu[name]
            case Everybody():
                assert guests[name] == menu[name]
            case HandlerDecides():
                pass


def test_the_table_of_the_guide_has_the_commands_of_the_menu_in_its_order() -> None:
    guide = (Path(__file__).parents[4] / "docs/guide/commands.md").read_text("utf-8")
    rows = re.findall(r"^\| `/(\w+)`.*?\| (.*)", guide.split("## ")[0], re.MULTILINE)
    assert [name for name, _ in rows] == [name for name, _ in MENU]
    for name, what in rows:
        who = COMMANDS[name].who
        if isinstance(who, OwnersOnly) and who.when is None:
            assert what.startswith("owners: ")


def test_the_guide_explains_every_command_of_the_menu_and_no_other() -> None:
    guide = (Path(__file__).parents[4] / "docs/guide/commands.md").read_text("utf-8")
    named = set(re.findall(r"(?<![\w.])/([a-z]+)", guide.split("## ")[0]))
    assert named == {name for name, _ in MENU} | {"reset"}


FOR_OWNERS = {"queue": "/queue steer", "heartbeat": "/heartbeat on", "mute": "/mute 2h"}
"""What only owners may type, for each command of which some uses are for everybody."""


async def test_each_command_for_owners_is_refused_to_a_guest() -> None:
    """SPEC CMD-5: in an open chat everybody may talk, and nobody is an owner by that."""
    who = {one.name: one.who for one in COMMANDS.values() if isinstance(one.who, OwnersOnly)}
    ways = Ways(access=DirectPolicy.OPEN)
    async with a_process(ways=ways, channels=(RecordingChannel(trusted=False),)) as gateway:
        answers = {name: await gateway.ask(FOR_OWNERS.get(name, f"/{name}")) for name in who}
    assert {name for name, one in who.items() if one.when is not None} == set(FOR_OWNERS)
    assert answers == {name: one.refusal for name, one in who.items()}


async def test_no_command_shows_other_chats_or_the_machine_in_a_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SPEC CMD-5: everybody in a group reads what an owner is answered."""
    monkeypatch.setattr("platform.node", lambda: "alpaca")
    agent = ScriptedAgent(otherwise=lambda _: Block())
    async with a_process(agent) as gateway:
        await gateway.say("work", chat="zebra")
        await agent.until_active(1)
        assert ", owner." in await gateway.ask("/whoami", "builders", PeerKind.GROUP)
        for text in (*(f"/{name}" for name, _ in MENU), *FOR_OWNERS.values()):
            answer = await gateway.ask(text, chat="builders", peer=PeerKind.GROUP)
            assert not re.search("zebra|alpaca", answer, re.IGNORECASE), text
        assert "Zebra" in await gateway.ask("/status")


def test_an_owners_only_command_has_a_refusal() -> None:
    assert OwnersOnly().refusal
    with pytest.raises(ValueError, match="must not be empty"):
        OwnersOnly(" ")


def test_a_handler_that_decides_is_tested_by_its_clause() -> None:
    """``HandlerDecides`` checks nothing: a test of the clause has to type the command."""
    tests = Path(__file__).parents[3]
    files = [*tests.glob("unit/chat/**/test_*.py"), *tests.glob("security/test_*.py")]
    texts = [path.read_text("utf-8") for path in files if path != Path(__file__)]
    for name, command in COMMANDS.items():
        if isinstance(command.who, HandlerDecides):
            clause, typed = command.who.clause, re.compile(rf"[\"']/{name}\b")
            assert any(clause in text and typed.search(text) for text in texts), name


@pytest.mark.parametrize("is_owner", [True, False])
@pytest.mark.parametrize("action", ["", "change"])
async def test_a_command_for_owners_is_refused_to_others_before_its_handler(
    action: str, *, is_owner: bool
) -> None:
    """SPEC CMD-5."""

    async def handler(_use: CommandUse) -> str:
        return "done"

    who = OwnersOnly("no", when=lambda use: use.command.action == "change")
    command = ChatCommand("test", who, None, handler)
    services = SimpleNamespace(
        policies=SimpleNamespace(rules=lambda _: SimpleNamespace(access=None)),
        access_control=SimpleNamespace(is_owner=lambda *_: is_owner),
    )
    typed = message(f"/test {action}")
    row = InboxRow(1, typed, session_of("ann"), MAIN_AGENT, InboxKind.COMMAND, 0, START)
    use = CommandUse(row, TypedCommand("test", action), cast("CommandServices", services))
    answer = "done" if is_owner or not action else "no"
    assert await answer_command(command, use) == answer


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        *(
            ("/stop", ""),
            ("/stop @x_Bot", ""),
            ("/stop now", "now"),
            ("/stopall\nand  then", "and then"),
            ("stop", ""),
        ),
        *(("/status please", "please"), ("/help jobs", "jobs"), ("/undo it", "it")),
        *(("/usage x", "x"), ("/whoami x", "x"), ("/start a b", "a b"), ("/start ref_42-x", "")),
        *(("/queue steer", ""), ("/queue steer what now?", "what now?"), ("/queue\u200b", "")),
        *(("/jobs pause 2", ""), ("/jobs pause the plants", ""), ("/jobs\nnow", "now")),
        *(("/heartbeat on", ""), ("/heartbeat now the mail", "the mail")),
        *(("/heartbeat add a b c", ""), ("/heartbeat done 2 3", "3"), ("/mute 2h", "")),
        *(
            ("/mute 2h\nthanks", "thanks"),
            ("/timezone Europe/Berlin", ""),
            ("/deny too dear", "too dear"),
        ),
        *(("/approve once", ""), ("/approve once ok?", "ok?"), ("/cancel it", "it")),
        *(("hello there", ""), ("/weather Oslo", ""), ("/new \u200b ", "")),
    ],
)
def test_words_that_a_command_does_not_read_are_known(text: str, unread: str) -> None:
    """SPEC CMD-5."""
    typed = replace(message(""), text=text)
    command = our_command_of(typed)
    read = 0 if command is None else words_read(command)
    assert unread_words(typed, read) == unread
