"""What people in a chat do with the heartbeat of its agent (SPEC CMD-5, HB-9, IO-2).

Time begins on Friday, 2 January 2026, 03:04:05 UTC.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace
from typing import cast

import pytest

from goclaw_py.chat.access.access_control import AccessControl
from goclaw_py.chat.commands.command import CommandServices, CommandUse, answer_command
from goclaw_py.chat.commands.heartbeat import HeartbeatCommands
from goclaw_py.chat.commands.registry import COMMANDS
from goclaw_py.core.chat_commands import TypedCommand, our_command
from goclaw_py.core.errors import BadChecklist, StoreUnavailable
from goclaw_py.core.ids import MAIN_AGENT, AgentName, HeartbeatRunId
from goclaw_py.core.messages import PeerKind, Target
from goclaw_py.core.outcomes import HeartbeatRunKind
from goclaw_py.core.session_keys import AccessRules
from goclaw_py.core.targets import Route, owner_of
from goclaw_py.records import InboxKind, InboxRow
from goclaw_py.records.chats import SeenChat
from goclaw_py.runs.context_usage import ContextUsage
from goclaw_py.runs.session_settings import ChatRules, SessionSettings
from goclaw_py.schedule.heartbeat import chat_texts as words
from goclaw_py.schedule.heartbeat.models import HeartbeatRun, HeartbeatRunStatus, NoHeartbeat
from goclaw_py.schedule.heartbeat.mute import LONGEST_MUTE
from goclaw_py.schedule.heartbeat.status_texts import status_lines, why
from goclaw_py.schedule.heartbeat.views import OWNER
from goclaw_py.scheduler.models import QueuePolicy
from goclaw_py.testing.clock import START, LoopClock
from tests.support.harness import a_process, message, session_of
from tests.support.heartbeats import FakeHeartbeats
from tests.support.memory_store import MemoryStore

ANN = Target("telegram", "default", "ann")
WRITERS = Target("telegram", "default", "writers")
WRITER = AgentName("writer")
HOUR = timedelta(hours=1)

_rows = count(1)


class Chats:
    """Chats with an agent, another one in ``writers``; ``ann`` is an owner, nobody else is."""

    def __init__(self) -> None:
        self.service = FakeHeartbeats(items={MAIN_AGENT: [], WRITER: []})
        self.store = MemoryStore()
        self.restart()

    def restart(self, *, without: bool = False) -> None:
        """Forget what only the process knows; there may be no heartbeats then."""
        access, policy = AccessRules(allow=frozenset({"ann"})), QueuePolicy()
        usual = ChatRules(MAIN_AGENT, access, policy, policy)
        rules = replace(usual, narrower={"writers": replace(usual, agent=WRITER)})
        self.commands = cast(
            "CommandServices",
            SimpleNamespace(
                heartbeats=HeartbeatCommands(None if without else self.service, self.store),
                policies=SessionSettings({("telegram", "default"): rules}, ContextUsage({})),
                access_control=AccessControl(self.store, LoopClock()),
            ),
        )

    async def ask(self, text: str, *, sender: str = "ann", target: Target = ANN) -> str:
        """Type a command; what comes back."""
        return await self.again(self.row(text, sender=sender, target=target))

    async def again(self, row: InboxRow) -> str:
        """Carry out a command as often as this is called."""
        command = our_command(row.message.text)
        assert isinstance(command, TypedCommand)
        use = CommandUse(row, command, self.commands)
        answer = await answer_command(COMMANDS[command.name], use)
        assert isinstance(answer, str)
        return answer

    async def crash_after(self, row: InboxRow) -> None:
        """Carry out a command; the process ends before that is stored."""
        self.service.breaks_after = StoreUnavailable("gone")
        with pytest.raises(StoreUnavailable):
            await self.again(row)
        self.restart()

    def row(self, text: str, *, sender: str = "ann", target: Target = ANN) -> InboxRow:
        said = replace(message(text, sender=sender), target=target)
        session, now = session_of(target.chat), self.service.clock.now()
        agent = WRITER if target == WRITERS else MAIN_AGENT
        return InboxRow(next(_rows), said, session, agent, InboxKind.COMMAND, 0, now)

    @property
    def items(self) -> list[str]:
        return self.service.items[MAIN_AGENT]

    @property
    def muted_until(self) -> datetime | None:
        return self.service.heart().muted_until


@pytest.fixture
async def chats() -> Chats:
    return Chats()


async def test_how_it_stands_is_told_and_why_in_exactly_two_lines(chats: Chats) -> None:
    """SPEC CMD-5, OPS-4."""
    await chats.store.choose_zone(owner_of(ANN, PeerKind.DIRECT), "UTC")
    view, reader = await chats.service.view(MAIN_AGENT), replace(OWNER, places={ANN: "this chat"})
    assert await chats.ask("/heartbeat") == "\n".join([*status_lines(view, reader), words.HOW])
    answer = await chats.ask("/heartbeat why")
    assert answer.splitlines() == list(why(view, reader))
    assert len(answer.splitlines()) == 2


@pytest.mark.parametrize(("sender", "target", "there"), [
    ("ann", ANN, "this chat"),
    ("ann", WRITERS, "Ann's chat"),
    ("bob", ANN, "this chat"),
    ("bob", WRITERS, "another chat"),
])  # fmt: skip
async def test_people_read_in_which_chat_alerts_arrive(
    chats: Chats, sender: str, target: Target, there: str
) -> None:
    """SPEC CMD-5: never the id of a chat, and guests learn nothing of other chats."""
    await chats.store.note_chats([SeenChat(ANN, PeerKind.DIRECT, "Ann")], now=START)
    chats.service.route = Route(ANN, "the chat in which somebody last wrote")
    answer = await chats.ask("/heartbeat", sender=sender, target=target)
    assert f"\nAlerts go to {there}.\n" in answer
    now, alerted = START, HeartbeatRunStatus.ALERTED
    chats.service.last = HeartbeatRun(
        HeartbeatRunId("b"), MAIN_AGENT, HeartbeatRunKind.INTERVAL, now, now, alerted, target=ANN
    )
    answer = await chats.ask("/heartbeat why", sender=sender, target=target)
    assert f"It sent an alert to {there}." in answer
    assert "telegram:" not in answer


@pytest.mark.parametrize(("sender", "reads"), [("ann", True), ("bob", False)])
async def test_what_a_heartbeat_has_found_is_for_owners(
    chats: Chats, sender: str, *, reads: bool
) -> None:
    """SPEC CMD-5."""
    now, well = START, HeartbeatRunStatus.OK
    chats.service.last = HeartbeatRun(
        *(HeartbeatRunId("b"), MAIN_AGENT, HeartbeatRunKind.INTERVAL, now, now, well),
        detail="it said: the invoice is due",
    )
    for text in ("/heartbeat", "/heartbeat why"):
        answer = await chats.ask(text, sender=sender)
        assert "Last heartbeat run" in answer
        assert ("invoice" in answer) is reads


async def test_only_owners_read_the_commands_that_they_may_use(chats: Chats) -> None:
    """SPEC CMD-5."""
    chats.service.change(switched=False, muted_until=START + HOUR)
    assert "/heartbeat on." in await chats.ask("/heartbeat why")
    assert "An owner can turn it on." in await chats.ask("/heartbeat why", sender="bob")
    assert (await chats.ask("/mute")).endswith("Unmute it with /mute off.")
    assert (await chats.ask("/mute", sender="bob")).endswith("An owner can unmute it.")
    chats.service.change(muted_until=None)
    assert await chats.ask("/mute", sender="bob") == words.NOT_MUTED


async def test_the_heartbeat_is_that_of_the_agent_to_which_the_chat_is_bound(chats: Chats) -> None:
    assert (await chats.ask("/heartbeat", target=WRITERS)).startswith("Heartbeat of writer: ")
    await chats.ask("/heartbeat add Look at the drafts", target=WRITERS)
    assert chats.service.items == {MAIN_AGENT: [], WRITER: ["Look at the drafts"]}
    await chats.ask("/heartbeat now", target=WRITERS)
    assert chats.service.ran == [WRITER]


async def test_open_items_are_shown_with_their_numbers(chats: Chats) -> None:
    chats.items[:] = ["Mail of Ann", "every 2h: the build", "every 1d: the backup", "Calendar"]
    assert (await chats.ask("/heartbeat show")).splitlines() == [
        "Open items on the checklist of main:",
        "1. Mail of Ann",
        "2. every 2h: the build",
        "3. every 1d: the backup",
        "4. Calendar",
        "2 are checked in each heartbeat run, 2 have their own intervals.",
    ]
    for items, last in (
        (["a"], "It is checked in each heartbeat run."),
        (["every 2h: a"], "It has its own interval."),
        (["a", "every 2h: a"], "1 is checked in each heartbeat run, 1 has its own interval."),
    ):
        chats.items[:] = items
        assert (await chats.ask("/heartbeat show")).splitlines()[-1] == last


async def test_a_list_that_is_too_long_is_cut_but_its_numbers_hold(chats: Chats) -> None:
    chats.items[:] = [f"n{number} " + "x" * 5000 for number in range(1, 24)]
    answer = await chats.ask("/heartbeat show")
    lines = answer.splitlines()
    assert lines[20].startswith("20. n20 xxx")
    assert lines[21] == "… and 3 more."
    assert len(answer) < 4000
    await chats.ask("/heartbeat done 23")
    assert [text.split()[0] for text in chats.service.ticked] == ["n23"]


async def test_a_list_of_words_without_items_shows_the_words(chats: Chats) -> None:
    for chats.service.prose in ("", "# Checklist\n\n<!-- Look at the mail. -->"):
        answer = await chats.ask("/heartbeat show")
        assert answer == "The checklist of main has no open items."
    chats.service.prose = "Look at the mail. " * 500
    first, text = (await chats.ask("/heartbeat show")).splitlines()
    assert first == "The checklist of main has no open items, but this text:"
    assert text.startswith("Look at the mail. Look")
    assert len(text) <= 1000


async def test_only_owners_change_anything(chats: Chats) -> None:
    chats.items[:] = ["Mail"]
    chats.service.change(muted_until=START + HOUR)
    before = chats.service.heart()
    for action in ("on", "off", "now", "add x", "add", "done 1", "show"):
        assert await chats.ask(f"/heartbeat {action}", sender="bob") == words.NOT_AN_OWNER
    for until in ("2h", "off", "nonsense"):
        assert await chats.ask(f"/mute {until}", sender="bob") == words.NOT_AN_OWNER
    assert chats.service.heart() == before
    assert (chats.items, chats.service.ran) == (["Mail"], [])


async def test_whoever_may_talk_may_look(chats: Chats) -> None:
    for text in ("/heartbeat", "/heartbeat why", "/mute"):
        answer = await chats.ask(text, sender="bob")
        assert answer.split(".")[0] == (await chats.ask(text)).split(".")[0] != words.NOT_AN_OWNER


async def test_an_unknown_action_is_told_which_there_are(chats: Chats) -> None:
    for word in ("frobnicate", "ön", "show,", "-", "x" * 5000):
        answer = await chats.ask(f"/heartbeat {word}", sender="bob")
        assert answer == words.unknown_action(word.lower())
        assert len(answer) < 200
        for action in ("on", "off", "now", "why", "show", "add", "done"):
            assert action in answer


async def test_where_there_are_no_heartbeats_one_sentence_says_so(chats: Chats) -> None:
    chats.restart(without=True)
    for text in ("/heartbeat", "/heartbeat add x", "/heartbeat foo", "/mute 2h"):
        for sender in ("ann", "bob"):
            assert await chats.ask(text, sender=sender) == words.NONE


@pytest.mark.parametrize(
    "text", ["/heartbeat", "/heartbeat show", "/heartbeat add x", "/heartbeat on", "/mute 2h"]
)
async def test_a_refusal_is_explained_in_one_sentence(chats: Chats, text: str) -> None:
    """SPEC DB-4: only while the database is away, whoever carries it out tries again."""
    chats.service.broken = BadChecklist("HEARTBEAT.md is a folder")
    assert await chats.ask(text) == "HEARTBEAT.md is a folder."
    chats.service.broken = StoreUnavailable("gone")
    with pytest.raises(StoreUnavailable):
        await chats.ask(text)
    chats.service.broken = None
    del chats.service.items[MAIN_AGENT]
    assert await chats.ask(text) == "There is no agent “main”."


async def test_a_heartbeat_is_switched_off_and_on(chats: Chats) -> None:
    assert await chats.ask("/heartbeat off") == words.OFF
    assert chats.service.heart().switched is False
    assert await chats.ask("/heartbeat now") == words.OFF
    assert chats.service.ran == []
    due = "The heartbeat is on. The next run is due today 03:34 (UTC)."
    assert await chats.ask("/heartbeat ON") == due
    assert chats.service.heart().switched is True
    chats.service.change(muted_until=START + HOUR)
    answer = await chats.ask("/heartbeat on")
    assert answer.endswith(" It is muted until today 04:04 (UTC).")


async def test_what_the_settings_switch_off_no_chat_switches_on(chats: Chats) -> None:
    chats.service.interval = None
    for action in ("on", "now"):
        assert await chats.ask(f"/heartbeat {action}") == OWNER.off_by_settings
    assert chats.service.ran == []


async def test_a_run_begins_at_once_by_hand(chats: Chats) -> None:
    """SPEC HB-11: nobody is promised an alert that would not arrive."""
    for route, then in (
        (Route(ANN), "You get a message if something needs attention."),
        (Route(None, problem="nobody has spoken yet"), "cannot be delivered"),
        (Route(ANN, problem="blocked"), "cannot be delivered"),
    ):
        chats.service.route = route
        await asyncio.sleep(1)
        answer = await chats.ask("/heartbeat now")
        assert answer.startswith("A heartbeat run has started. ")
        assert then in answer
    assert chats.service.ran == [MAIN_AGENT] * 3


async def test_a_run_by_hand_of_a_busy_agent_waits(chats: Chats) -> None:
    chats.service.is_busy = True
    answer = await chats.ask("/heartbeat now")
    assert answer.startswith("A heartbeat run starts when nobody is talking to the agent. You get")
    assert chats.service.ran == [MAIN_AGENT]


async def test_why_no_heartbeat_run_begins_is_told(chats: Chats) -> None:
    for reason, answer in (
        (NoHeartbeat.ALREADY_RUNNING, "A heartbeat run is already in progress."),
        (NoHeartbeat.OFF, words.NOT_CARRIED_OUT),
    ):
        chats.service.no_heartbeat_run = reason
        assert await chats.ask("/heartbeat now") == answer


async def test_a_run_that_waits_is_told_from_one_in_progress(chats: Chats) -> None:
    """It says the same as /heartbeat."""
    chats.service.no_heartbeat_run = NoHeartbeat.ALREADY_RUNNING
    chats.service.current = HeartbeatRun(
        HeartbeatRunId("0199"),
        MAIN_AGENT,
        HeartbeatRunKind.INTERVAL,
        START,
        START,
        HeartbeatRunStatus.DEFERRED,
    )
    answer = await chats.ask("/heartbeat now")
    assert " is waiting: someone is talking to the agent." in answer
    assert answer in await chats.ask("/heartbeat")


async def test_a_heartbeat_run_that_was_asked_for_once_is_not_begun_twice(chats: Chats) -> None:
    """SPEC IO-2: the command comes again after a crash."""
    row = chats.row("/heartbeat now")
    await asyncio.sleep(1)
    await chats.crash_after(row)
    await asyncio.sleep(60)
    assert (await chats.again(row)).startswith("A heartbeat run has started. ")
    assert chats.service.ran == [MAIN_AGENT]
    assert (await chats.ask("/heartbeat now")).startswith("A heartbeat run has started. ")
    assert len(chats.service.ran) == 2, "asked for anew, it begins anew"


async def test_a_run_of_the_interval_does_not_stand_for_one_by_hand(chats: Chats) -> None:
    row = chats.row("/heartbeat now")
    await asyncio.sleep(1)
    kind, status, now = HeartbeatRunKind.INTERVAL, HeartbeatRunStatus.SKIPPED, START + HOUR
    chats.service.last = HeartbeatRun(
        HeartbeatRunId("b"), MAIN_AGENT, kind, now, now, status, finished_at=now
    )
    await chats.again(row)
    assert chats.service.ran == [MAIN_AGENT]


@pytest.mark.parametrize(
    ("given", "until"),
    [
        ("2h", START + 2 * HOUR),
        ("30m", START + HOUR / 2),
        ("90s", START + timedelta(seconds=90)),
        ("1h30m", START + 1.5 * HOUR),
        ("1h 30m", START + 1.5 * HOUR),
        ("2 Hours", START + 2 * HOUR),
        ("for 2h", START + 2 * HOUR),
        ("in 2h", START + 2 * HOUR),
        ("1d", START + 24 * HOUR),
        ("1w", START + 7 * 24 * HOUR),
        ("365d", START + LONGEST_MUTE),
        ("until 18:00", datetime(2026, 1, 2, 12, 30, tzinfo=UTC)),
        ("until tomorrow 9:00", datetime(2026, 1, 3, 3, 30, tzinfo=UTC)),
    ],
)
async def test_a_mute_lasts_as_long_as_was_said(chats: Chats, given: str, until: datetime) -> None:
    """SPEC CMD-5. Times by the clock are those of the heartbeat's zone."""
    chats.service.zone = "Asia/Kolkata"
    answer = await chats.ask(f"/mute {given}")
    assert chats.muted_until == until
    assert answer.startswith("The heartbeat is muted until ")
    assert "(Asia/Kolkata), for another " in answer
    assert await chats.ask("/mute") == answer


async def test_what_is_no_duration_mutes_nothing(chats: Chats) -> None:
    nonsense = ["2", "h", "-2h", "0m", "1.5h", "forever", "2h please", "until", "until noon"]
    for given in (*nonsense, "9" * 999):
        answer = await chats.ask(f"/mute {given}")
        assert answer == words.unknown_duration(given)
        assert len(answer) < 250
    for given in ("366d", "60w"):
        assert await chats.ask(f"/mute {given}") == words.mute_too_long(LONGEST_MUTE)
    assert chats.muted_until is None


async def test_a_mute_is_told_and_ended(chats: Chats) -> None:
    assert await chats.ask("/mute") == f"{words.NOT_MUTED} {words.HOW_MUTE}"
    await chats.ask("/mute 2h")
    await asyncio.sleep(60)
    assert await chats.ask("/mute") == (
        "The heartbeat is muted until today 05:04 (UTC), for another 119 min. "
        "Unmute it with /mute off."
    )
    assert await chats.ask("/mute OFF") == words.UNMUTED
    assert chats.muted_until is None
    await chats.ask("/mute 1h")
    await asyncio.sleep(3600)
    assert (await chats.ask("/mute")).startswith(words.NOT_MUTED)


async def test_a_mute_that_comes_again_after_a_crash_is_not_longer(chats: Chats) -> None:
    """SPEC IO-2: one that comes too late mutes nothing."""
    row, short = chats.row("/mute 2h"), chats.row("/mute 10m")
    await chats.again(row)
    chats.restart()
    await asyncio.sleep(600)
    await chats.again(row)
    assert chats.muted_until == START + 2 * HOUR
    await chats.ask("/mute off")
    assert await chats.again(short) == words.MUTE_IS_OVER
    assert chats.muted_until is None


async def test_an_item_is_added_with_the_words_that_were_said(chats: Chats) -> None:
    answer = await chats.ask("/heartbeat add every 2h: Look at  Ann's CI\nand tell me")
    assert answer == "On the checklist: “every 2h: Look at Ann's CI and tell me”."
    assert chats.items == ["every 2h: Look at Ann's CI and tell me"]
    answer = await chats.ask("/heartbeat add every two hours: Look at the mail")
    assert "I do not understand its interval, so each run checks it. Forms: every 2h," in answer


@pytest.mark.parametrize(
    ("formatted", "item"),
    [
        ("/heartbeat add Read the [news](https://e.org)", "Read the [news](https://e.org)"),
        ("**/heartbeat add Read the news**", "Read the news"),
        ("/heartbeat **add Read the news**", "Read the news"),
    ],
)
async def test_an_item_keeps_the_addresses_behind_its_words(
    chats: Chats, formatted: str, item: str
) -> None:
    """SPEC CHAN-6."""
    row = chats.row("/heartbeat add Read the news")
    await chats.again(replace(row, message=replace(row.message, formatted=formatted)))
    assert chats.items == [item]


async def test_what_is_no_item_is_refused_with_the_reason(chats: Chats) -> None:
    for text in ("", " \u200b \n"):
        assert await chats.ask(f"/heartbeat add{text}") == words.HOW_ADD
    for text in ("- [ ]", "#", "every 2h:", "x" * 501):
        answer = await chats.ask(f"/heartbeat add {text}")
        assert answer.startswith("An item ")
        assert answer.endswith(".")
    assert chats.items == []


async def test_an_item_that_is_added_again_after_a_crash_is_there_once() -> None:
    chats = Chats()
    row = chats.row("/heartbeat add Mail of  Ann")
    chats.service.breaks_after = StoreUnavailable("gone")
    with pytest.raises(StoreUnavailable):
        await chats.again(row)
    chats.restart()
    assert await chats.again(row) == "On the checklist: “Mail of Ann”."
    assert chats.items == ["Mail of Ann"]


async def test_numbers_mean_what_the_chat_was_shown_last(chats: Chats) -> None:
    """Each item that is ticked off moves those below it."""
    chats.items[:] = ["one", "two", "three", "four"]
    await chats.ask("/heartbeat show")
    assert await chats.ask("/heartbeat done 1") == "Ticked off: “one”."
    assert await chats.ask("/heartbeat done 3 please") == "Ticked off: “three”."
    await chats.service.add_item(MAIN_AGENT, "five")
    chats.items.insert(0, "zero")
    assert await chats.ask("/heartbeat done 2") == "Ticked off: “two”."
    assert chats.items == ["zero", "four", "five"]
    chats.items.remove("four")
    assert await chats.ask("/heartbeat done 4") == "“four” is no longer open."
    assert chats.items == ["zero", "five"]


async def test_an_item_is_ticked_off_once_however_often_its_number_comes(chats: Chats) -> None:
    """SPEC IO-2: two items may say the same."""
    chats.items[:] = ["milk", "milk", "bread"]
    await chats.ask("/heartbeat show")
    for _ in range(3):
        assert await chats.ask("/heartbeat done 1") == "Ticked off: “milk”."
    assert chats.items == ["milk", "bread"]


async def test_after_a_restart_no_number_ticks_off_something_else(chats: Chats) -> None:
    chats.items[:] = ["one", "two", "three"]
    await chats.ask("/heartbeat show")
    row = chats.row("/heartbeat done 1")
    await chats.crash_after(row)
    answer = await chats.again(row)
    assert answer.splitlines()[0] == "The numbers may have changed. Please choose from this list:"
    assert answer.splitlines()[2] == "1. two"
    assert chats.items == ["two", "three"]
    assert await chats.ask("/heartbeat done 1") == "Ticked off: “two”."


async def test_what_is_no_number_of_this_chats_list_ticks_off_nothing(chats: Chats) -> None:
    chats.items[:] = ["one", "two"]
    await chats.ask("/heartbeat show")
    for number in ("0", "3", "9" * 5000):
        answer = await chats.ask(f"/heartbeat done {number}")
        assert answer == words.list_again(await chats.ask("/heartbeat show"))
    for other in ("", "one", "-1", "1.5", "\N{SUPERSCRIPT TWO}", "\u0661"):
        assert await chats.ask(f"/heartbeat done {other}") == words.HOW_DONE
    thread = replace(ANN, thread="7")
    assert (await chats.ask("/heartbeat done 1", target=thread)).startswith("The numbers may ")
    assert chats.service.ticked == []


async def test_a_gateway_without_heartbeats_says_so_and_runs_no_agent() -> None:
    async with a_process() as gateway:
        gateway.commands._services.heartbeats._service = None
        for text in ("/heartbeat", "/mute 2h"):
            assert await gateway.ask(text) == words.NONE
        assert gateway.scripted.prompts == []


async def test_in_a_gateway_an_outage_delays_a_command_and_does_not_double_it() -> None:
    """SPEC DB-4, IO-2."""
    async with a_process() as gateway:
        service = FakeHeartbeats(clock=gateway.clock)
        gateway.commands._services.heartbeats._service = service
        gateway.store.broken = {"settle"}
        await gateway.say("/heartbeat add Mail of Ann")
        await asyncio.sleep(10)
        assert service.items[MAIN_AGENT] == ["Mail of Ann"]
        assert gateway.channel.texts() == []
        gateway.store.broken = set()
        await gateway.channel.until_sent(1)
        assert gateway.channel.texts() == ["On the checklist: “Mail of Ann”."]
        assert service.items[MAIN_AGENT] == ["Mail of Ann"]


async def test_times_are_told_and_read_on_the_clock_that_the_chat_has_chosen(chats: Chats) -> None:
    await chats.ask("/heartbeat on")
    await chats.store.choose_zone(owner_of(ANN, PeerKind.DIRECT), "Asia/Kolkata")
    assert "The next run is due today 09:04." in await chats.ask("/heartbeat on")
    assert "today 09:04, in" in await chats.ask("/heartbeat why")
    assert "muted until today 10:00, for" in await chats.ask("/mute until 10:00")
    assert chats.muted_until == START + timedelta(hours=1, minutes=25, seconds=55)
