"""What ``channels.telegram.adapter`` shows while runs work, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from channels.telegram.adapter import TelegramChannel
from channels.telegram.client import ChatPlace
from channels.telegram.settings import Streaming, TelegramSettings
from goclaw_py.core.errors import ChannelError, MaybeSent, NotSent, RateLimited, Undeliverable
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import (
    ButtonsUsed,
    PressAnswered,
    RunEnded,
    RunSignal,
    RunStarted,
    RunText,
    RunWaits,
)
from tests.unit.channels.telegram.scripted import (
    SETTINGS,
    Notebook,
    ScriptedClient,
    Shown,
    logged,
    meanwhile,
    over,
    update,
)

ANN = Target("telegram", "default", "7")
TEAM = Target("telegram", "default", "-1007", "55")
RUN = RunId("a")
NATIVE = replace(SETTINGS, streaming=Streaming.NATIVE)
WAITS = RunWaits(RUN, ANN, ("12",))
Step = RunSignal | float
"""A signal, or how long to wait in seconds."""


def started(run: str = "a", target: Target = ANN, *messages: str) -> RunStarted:
    return RunStarted(RunId(run), target, messages)


def ended(
    run: str = "a", target: Target = ANN, outcome: Outcome = Outcome.COMPLETED, *messages: str
) -> RunEnded:
    return RunEnded(RunId(run), target, outcome, messages)


BEGUN = started("a", ANN, "12")
DONE = ended("a", ANN, Outcome.COMPLETED, "12")
FAILED = ended("a", ANN, Outcome.FAILED, "12")
CUT = RunEnded(RUN, ANN, Outcome.CANCELLED, draft="101", shown="x")


async def play(
    *steps: Step, client: ScriptedClient | None = None, settings: TelegramSettings = SETTINGS
) -> ScriptedClient:
    """Let a channel live through these steps; what it has done by its end."""
    client = client or ScriptedClient()
    async with over(client, settings) as channel:
        for step in steps:
            if isinstance(step, float | int):
                await asyncio.sleep(step)
            else:
                channel.signal(step)
    return client


def failing(method: str, *errors: ChannelError) -> ScriptedClient:
    client = ScriptedClient()
    client.fail(method, *errors)
    return client


@pytest.mark.parametrize(
    ("steps", "typed"),
    [
        ([started("a"), 0.2, ended("a"), started("b"), 0.2, ended("b"), 60], []),
        ([started()], []),
        ([WAITS, 0.2, BEGUN, DONE, 60], []),
        ([WAITS, 1, BEGUN, 4, DONE, 60], [0.25, 4.75]),
        # Two messages that become one turn; and one that waits for others from the beginning.
        ([WAITS, RunWaits(RunId("b"), ANN, ("12",)), 30, BEGUN, 1, DONE, 60,
          RunWaits(RunId("c"), ANN, ("13",), late=True), 1], [0.25, 30.25]),
    ],
    ids=["answered at once", "closed", "accepted and answered", "accepted", "waiting"],
)  # fmt: skip
async def test_typing_begins_with_an_accepted_message_but_not_if_the_answer_is_quick(
    steps: list[Step], typed: list[float]
) -> None:
    """SPEC CHAN-4."""
    client = await play(*steps)
    await asyncio.sleep(60)
    assert [one.at for one in client.typed] == typed


async def test_typing_is_shown_soon_and_every_four_and_a_half_seconds() -> None:
    """SPEC CHAN-4."""
    client = ScriptedClient()
    client.takes_s["send_action"] = 0.3
    await play(started(), 10, RunText(RUN, ANN, "so far"), ended(), 60, client=client)
    assert [round(one.at, 3) for one in client.typed] == [0.25, 4.75, 9.25]


async def sends(channel: TelegramChannel) -> None:
    await channel.send(OutboundMessage(ANN, "an answer"))


async def test_typing_is_not_repeated_while_answers_come() -> None:
    """SPEC CHAN-4: a call for each of many messages would cost more than the answers."""
    client = ScriptedClient()
    async with over(client) as channel:
        for number in range(20):
            channel.signal(RunWaits(RunId(f"{number}"), ANN, ()))
        for number in range(20):
            await asyncio.sleep(0.5)
            channel.signal(started(f"{number}"))
            channel.signal(ended(f"{number}"))
            await sends(channel)
    assert [one.at for one in client.typed] == [0.25]


async def test_typing_is_shown_once_while_messages_wait() -> None:
    """SPEC CHAN-4: a mark says that they wait; and not at all after an answer."""
    client = ScriptedClient()
    async with over(client) as channel:
        for number in range(20):
            channel.signal(RunWaits(RunId(f"{number}"), ANN, ()))
            await asyncio.sleep(1)
        await asyncio.sleep(60)
        await sends(channel)
        channel.signal(RunWaits(RUN, ANN, ()))
        await asyncio.sleep(1)
        assert [one.at for one in client.typed] == [0.25]
        channel.signal(started())
        await asyncio.sleep(1)
    assert [one.at for one in client.typed] == [0.25, 81.25]


async def test_a_message_ends_typing_until_the_next_run_has_worked_for_a_moment() -> None:
    """SPEC CHAN-4: Telegram ends it with each message of the bot."""
    client = ScriptedClient()
    async with over(client) as channel:
        channel.signal(started("a"))
        channel.signal(RunWaits(RunId("b"), ANN, ()))
        await asyncio.sleep(2)
        channel.signal(ended("a"))
        await sends(channel)
        channel.signal(started("b"))
        await asyncio.sleep(5)
        channel.signal(ended("b"))
        await asyncio.sleep(60)
    assert [one.at for one in client.typed] == [0.25, 2.25, 6.75]


async def test_typing_goes_on_after_a_message_of_a_run_that_goes_on() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        channel.signal(started("a"))
        await asyncio.sleep(1)
        await channel.post_draft(OutboundMessage(ANN, "so far", run_id=RUN))
        await asyncio.sleep(5)
        channel.signal(ended("a"))
    assert [one.at for one in client.typed] == [0.25, 5.5]


async def test_a_message_does_not_shorten_the_pause_that_telegram_asks_for() -> None:
    client = failing("send_action", RateLimited("slow", 30))
    async with over(client) as channel:
        channel.signal(started("a"))
        await asyncio.sleep(1)
        await sends(channel)
        channel.signal(started("b"))
        await asyncio.sleep(31)
    assert [one.at for one in client.typed] == [0.25, 30.25]


async def test_typing_goes_on_until_the_last_run_of_a_place_has_ended() -> None:
    begun: list[Step] = [started("a"), started("b"), started("b"), started("c", TEAM)]
    client = await play(*begun, 1, ended("a"), 5, ended("b"), ended("b"), 20)
    await asyncio.sleep(20)
    places = [one.place for one in client.typed]
    assert (places.count(ChatPlace(7)), places.count(ChatPlace(-1007, 55))) == (2, 6)
    assert len(places) == 8


@pytest.mark.parametrize(
    ("errors", "for_s", "typed"),
    [
        ([MaybeSent("reset")], 10, [0, 5, 9]),
        ([MaybeSent("reset"), NotSent("away"), RateLimited("slow", 30)], 50, [0, 5, 14, 44, 48]),
        ([Undeliverable("blocked")], 60, [0]),
    ],
    ids=["once", "slows down", "gives up"],
)
async def test_typing_that_fails_slows_down_and_goes_on_unless_it_is_refused(
    errors: list[ChannelError], for_s: float, typed: list[int]
) -> None:
    client = await play(started(), for_s, client=failing("send_action", *errors))
    assert [round(one.at) for one in client.typed] == typed


async def test_typing_begins_again_with_another_run_where_it_was_refused() -> None:
    client = failing("send_action", Undeliverable("blocked"))
    await play(started("a"), 60, ended("a"), started("b"), 1, client=client)
    assert len(client.typed) == 2


async def test_typing_ends_even_if_nobody_tells_the_end_of_the_run() -> None:
    client = await play(started(), 24 * 60 * 60)
    assert client.typed[-1].at < 2 * 60 * 60 + 1


def started_in(places: int) -> list[RunStarted]:
    chats = [Target("telegram", "default", str(chat)) for chat in range(1, places + 1)]
    return [started("a", chat) for chat in chats]


async def test_typing_leaves_connections_to_presses() -> None:
    client = ScriptedClient()
    client.takes_s["send_action"] = 1.0
    await play(*started_in(20), 5, client=client)
    assert client.most_active == 4
    assert len({one.place for one in client.typed}) == 20


async def test_the_number_of_places_with_typing_is_bounded() -> None:
    assert len((await play(*started_in(300), 1)).typed) == 200


@pytest.mark.parametrize("chat", ["", "ann", "9" * 5000])
async def test_a_signal_for_a_place_that_is_none_of_telegrams_is_ignored(chat: str) -> None:
    nowhere = Target("telegram", "default", chat)
    steps: list[Step] = [replace(WAITS, target=nowhere), replace(BEGUN, target=nowhere)]
    end = replace(FAILED, target=nowhere, draft="5")
    assert (await play(*steps, RunText(RUN, nowhere, "x"), end, 60)).calls == []


AT = ChatPlace(7)


@pytest.mark.parametrize(
    ("steps", "reactions"),
    [
        ([RunWaits(RUN, ANN, ("12", "13", "line-1")), 3, started("a", ANN, "12", "13"), 3,
          ended("a", ANN, Outcome.COMPLETED, "12", "13"), 1],
         [Shown(2, "👀", AT, 12), Shown(2, "👀", AT, 13), Shown(6, "", AT, 12),
          Shown(6, "", AT, 13)]),
        ([WAITS, 1, BEGUN, 4, FAILED, 1], [Shown(5, "👎", AT, 12)]),
    ],
    ids=["waiting", "started soon"],
)  # fmt: skip
async def test_messages_that_wait_are_marked_until_their_run_has_ended(
    steps: list[Step], reactions: list[Shown]
) -> None:
    """SPEC CHAN-4."""
    shown = (await play(*steps)).reactions
    assert sorted(shown, key=lambda one: (one.at, one.number)) == reactions


async def test_reactions_can_be_turned_off() -> None:
    """SPEC CHAN-4."""
    client = await play(WAITS, 3, BEGUN, FAILED, 3, settings=replace(SETTINGS, reactions=False))
    assert client.reactions == []


async def test_a_private_chat_sees_the_reply_grow_in_telegrams_own_draft() -> None:
    """SPEC CHAN-4."""
    words = [RunText(RUN, ANN, word) for word in ("one ", "two ", "three")]
    steps: list[Step] = [step for word in words for step in (word, 0.6)]
    client = await play(started(), *steps, 2, ended(), 60, settings=NATIVE)
    shown = [(one.at, one.what) for one in client.drafts]
    assert shown == [(0, "one …"), (1, "one two …"), (2, "one two three …")]


@pytest.mark.parametrize(
    ("streaming", "target"),
    [(Streaming.NATIVE, TEAM), (Streaming.EDIT, ANN), (Streaming.OFF, ANN)],
)
async def test_telegrams_own_drafts_are_a_setting_for_private_chats(
    streaming: Streaming, target: Target
) -> None:
    """The server offers them there only."""
    settings = replace(SETTINGS, streaming=streaming)
    assert (await play(RunText(RUN, target, "one"), 5, settings=settings)).drafts == []


async def test_buttons_that_are_used_go_away() -> None:
    """SPEC CRON-13."""
    client = failing("remove_buttons", NotSent("reset"))
    await play(ButtonsUsed(ANN, "12"), ButtonsUsed(ANN, "line-1"), 10, client=client)
    assert client.bare == [(7, 12)]


async def test_the_buttons_of_a_message_are_removed_once() -> None:
    """SPEC CRON-13: a second removal is refused as no change."""
    client = ScriptedClient()
    await play(*[ButtonsUsed(ANN, "12")] * 3, 10, ButtonsUsed(ANN, "12"), 10, client=client)
    assert client.bare == [(7, 12)]


async def test_buttons_that_an_edit_has_left_out_are_not_removed_again() -> None:
    """SPEC CHAN-4: the end of a growing reply, and the result below a question."""
    client = ScriptedClient()
    async with over(client) as channel:
        draft = await channel.post_draft(OutboundMessage(ANN, "one", run_id=RUN))
        done = OutboundMessage(ANN, "one two", run_id=RUN, draft=draft)
        sending = asyncio.ensure_future(channel.send(done))
        await asyncio.sleep(0)
        channel.signal(ButtonsUsed(ANN, draft))
        assert await sending == draft
        channel.signal(ButtonsUsed(ANN, draft))
        await asyncio.sleep(1)
        assert client.bare == []
        other = await channel.post_draft(OutboundMessage(ANN, "more", run_id=RUN))
        channel.signal(ButtonsUsed(ANN, other))
        await asyncio.sleep(1)
        assert client.bare == [(7, 102)]


async def test_typing_in_a_forum_names_the_general_topic() -> None:
    """SPEC CHAN-4: without a topic clients show nothing."""
    chat = {"id": -1007, "type": "supergroup", "title": "Team", "is_forum": True}
    group = {**chat, "id": -1008, "is_forum": False}
    client = ScriptedClient([[update(1, "/help", chat=chat), update(2, "/help", chat=group)]])
    async with over(client) as channel, meanwhile(channel.receive(Notebook())):
        await asyncio.sleep(1)
        for number in ("-1007", "-1008"):
            channel.signal(RunStarted(RunId(number), replace(TEAM, chat=number, thread=None)))
        channel.signal(RunStarted(RunId("t"), TEAM))
        await asyncio.sleep(2)
    places = {shown.place for shown in client.typed}
    assert places == {ChatPlace(-1007, 1), ChatPlace(-1008), ChatPlace(-1007, 55)}


async def test_a_press_is_answered_with_its_result_with_some_tries() -> None:
    """SPEC CHAN-5."""
    client = failing("answer_press", NotSent("reset"))
    await play(PressAnswered(ANN, "press:77", "✅ Bob can talk to me now."), 10, client=client)
    assert [press for _, press in client.presses] == ["77"]
    assert client.toasts == ["✅ Bob can talk to me now."]


@pytest.mark.parametrize(
    ("outcome", "mark"),
    [
        (Outcome.CANCELLED, "⏹ Stopped."),
        (Outcome.FAILED, "⚠️ This answer was cut off."),
        (Outcome.LOST, "⚠️ This answer was cut off."),
        (Outcome.TIMED_OUT, "⚠️ This answer was cut off."),
    ],
)
async def test_a_draft_that_nobody_finishes_is_marked(outcome: Outcome, mark: str) -> None:
    """SPEC CMD-3."""
    client = ScriptedClient()
    async with over(client) as channel:
        draft = await channel.post_draft(OutboundMessage(ANN, "so far", run_id=RUN))
        channel.signal(RunEnded(RUN, ANN, outcome, draft=draft, shown="so far"))
        await asyncio.sleep(1)
    ((_, edit),) = client.edits
    assert (edit.text, edit.buttons) == (f"so far\n\n{mark}", ())


async def test_a_draft_of_a_run_that_said_nothing_is_removed() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        draft = await channel.post_draft(OutboundMessage(ANN, "", run_id=RUN))
        channel.signal(replace(ended(), draft=draft))
        await asyncio.sleep(1)
    assert client.messages == {}


async def test_closing_a_draft_is_tried_again_but_not_for_ever() -> None:
    client = failing("edit_message", NotSent("reset"), RateLimited("slow", 9.0))
    await play(CUT, 30, client=client)
    assert [at for at, _ in client.edits] == [11]
    client.fail("edit_message", *[NotSent("reset")] * 50)
    await play(replace(CUT, draft="102"), 60, client=client)
    assert client.calls.count("edit_message") == 8


async def test_a_draft_in_a_chat_that_is_gone_is_let_go_with_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = failing("edit_message", Undeliverable("chat not found"))
    with logged(caplog) as lines:
        await play(CUT, 30, client=client)
    assert client.calls == ["edit_message"]
    assert lines == ["INFO message_not_closed"]


async def test_closing_the_channel_waits_two_seconds_for_drafts() -> None:
    client = ScriptedClient()
    client.takes_s["edit_message"] = 1.5
    await play(CUT, client=client)
    assert len(client.edits) == 1
    client.takes_s["edit_message"] = 100.0
    await play(replace(CUT, draft="102"), client=client)
    assert asyncio.get_running_loop().time() == 3.5


async def test_closing_ends_everything_that_is_shown() -> None:
    client = ScriptedClient()
    for method in ("send_action", "set_reaction", "send_draft"):
        client.takes_s[method] = 100.0
    async with over(client, NATIVE) as channel:
        channel.signal(WAITS)
        channel.signal(started("b", ANN, "11"))
        channel.signal(RunText(RunId("b"), ANN, "one"))
        await asyncio.sleep(3)
        assert client.active == 3
    assert client.active == 0
    assert client.closed
