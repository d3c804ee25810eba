"""What ``channels.telegram.adapter`` shows while runs work, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from channels.telegram.client import ChatPlace
from channels.telegram.settings import Streaming
from goclaw_py.model.errors import MaybeSent, NotSent, RateLimited, Undeliverable
from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import OutboundMessage, Target
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import (
    ButtonsUsed,
    PressAnswered,
    RunEnded,
    RunStarted,
    RunText,
    RunWaits,
)
from tests.unit.channels.telegram.scripted import (
    SETTINGS,
    ScriptedClient,
    Shown,
    logged,
    over,
)

ANN = Target("telegram", "default", "7")
TEAM = Target("telegram", "default", "-1007", "55")
RUN = RunId("a")
NATIVE = replace(SETTINGS, streaming=Streaming.NATIVE)


def started(run: str, target: Target = ANN, *messages: str) -> RunStarted:
    return RunStarted(RunId(run), target, messages)


def ended(
    run: str, target: Target = ANN, outcome: Outcome = Outcome.COMPLETED, *messages: str
) -> RunEnded:
    return RunEnded(RunId(run), target, outcome, messages)


def what_typed(client: ScriptedClient) -> list[ChatPlace]:
    return [one.place for one in client.typed]


# ---------------------------------------------------------------------------- typing


async def test_typing_is_shown_soon_and_every_four_and_a_half_seconds() -> None:
    """SPEC CHAN-4."""
    client = ScriptedClient()
    client.takes_s["send_action"] = 0.3
    async with over(client) as channel:
        channel.signal(started("a"))
        await asyncio.sleep(10)
        channel.signal(RunText(RUN, ANN, "so far"))
        channel.signal(ended("a"))
        await asyncio.sleep(60)
    assert [round(one.at, 3) for one in client.typed] == [0.3, 4.8, 9.3]


async def test_what_is_answered_at_once_is_not_typed() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        for run in ("a", "b", "c"):
            channel.signal(started(run))
            await asyncio.sleep(0.2)
            channel.signal(ended(run))
        await asyncio.sleep(60)
        assert client.typed == []
        channel.signal(started("d"))
    await asyncio.sleep(60)
    assert client.typed == []


async def test_typing_goes_on_until_the_last_run_of_a_place_has_ended() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        for run in ("a", "b", "b"):
            channel.signal(started(run))
        channel.signal(started("c", TEAM))
        await asyncio.sleep(1)
        channel.signal(ended("a"))
        await asyncio.sleep(5)
        channel.signal(ended("b"))
        channel.signal(ended("b"))
        await asyncio.sleep(20)
        assert what_typed(client).count(ChatPlace(7)) == 2
        assert what_typed(client).count(ChatPlace(-1007, 55)) == 6
    await asyncio.sleep(20)
    assert len(client.typed) == 8


async def test_typing_begins_when_a_message_is_accepted() -> None:
    """SPEC CHAN-4."""
    client = ScriptedClient()
    async with over(client) as channel:
        channel.signal(RunWaits(RUN, ANN, ("12",)))
        await asyncio.sleep(1)
        channel.signal(started("a", ANN, "12"))
        await asyncio.sleep(4)
        channel.signal(ended("a", ANN, Outcome.COMPLETED, "12"))
        await asyncio.sleep(60)
    assert [round(one.at, 1) for one in client.typed] == [0, 4.5]


async def test_a_message_that_waits_for_others_is_not_typed_about_until_its_run_begins() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        for run in ("a", "b"):  # two messages that become one turn
            channel.signal(RunWaits(RunId(run), ANN, ("12",)))
        await asyncio.sleep(30)
        assert len(client.typed) == 1
        channel.signal(started("a", ANN, "12"))
        await asyncio.sleep(1)
        channel.signal(ended("a", ANN, Outcome.COMPLETED, "12"))
        await asyncio.sleep(60)
        channel.signal(RunWaits(RunId("c"), ANN, ("13",), late=True))
        await asyncio.sleep(1)
    assert [round(one.at, 1) for one in client.typed] == [0, 30.3]


async def test_typing_goes_on_as_usual_after_one_failure() -> None:
    client = ScriptedClient()
    client.fail("send_action", MaybeSent("reset"))
    async with over(client) as channel:
        channel.signal(started("a"))
        await asyncio.sleep(10)
    assert [round(one.at, 1) for one in client.typed] == [0.3, 4.8, 9.3]


async def test_typing_that_fails_slows_down_and_goes_on() -> None:
    client = ScriptedClient()
    client.fail("send_action", MaybeSent("reset"), NotSent("away"), RateLimited("slow", 30.0))
    async with over(client) as channel:
        channel.signal(started("a"))
        await asyncio.sleep(50)
    assert [round(one.at) for one in client.typed] == [0, 5, 14, 44, 48]


async def test_typing_gives_up_where_it_is_refused() -> None:
    client = ScriptedClient()
    client.fail("send_action", Undeliverable("blocked"))
    async with over(client) as channel:
        channel.signal(started("a"))
        await asyncio.sleep(60)
        assert len(client.typed) == 1
        channel.signal(ended("a"))
        channel.signal(started("b"))
        await asyncio.sleep(1)
        assert len(client.typed) == 2


async def test_typing_ends_even_if_nobody_tells_the_end_of_the_run() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        channel.signal(started("a"))
        await asyncio.sleep(24 * 60 * 60)
    assert client.typed[-1].at < 2 * 60 * 60 + 1


async def test_typing_leaves_connections_to_presses() -> None:
    client = ScriptedClient()
    client.takes_s["send_action"] = 1.0
    async with over(client) as channel:
        for chat in range(1, 21):
            channel.signal(started("a", Target("telegram", "default", str(chat))))
        await asyncio.sleep(5)
        assert client.most_active == 4
        assert len({one.place for one in client.typed}) == 20


async def test_the_number_of_places_with_typing_is_bounded() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        for chat in range(1, 301):
            channel.signal(started("a", Target("telegram", "default", str(chat))))
        await asyncio.sleep(1)
    assert len(client.typed) == 200


@pytest.mark.parametrize("chat", ["", "ann", "9" * 5000])
async def test_a_signal_for_a_place_that_is_none_of_telegrams_is_ignored(chat: str) -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        nowhere = Target("telegram", "default", chat)
        channel.signal(RunWaits(RUN, nowhere, ("12",)))
        channel.signal(started("a", nowhere, "12"))
        channel.signal(RunText(RUN, nowhere, "x"))
        channel.signal(replace(ended("a", nowhere, Outcome.FAILED, "12"), draft="5"))
        await asyncio.sleep(60)
    assert client.calls == []


# ---------------------------------------------------------------------------- marks


async def test_messages_that_wait_are_marked_until_their_run_has_ended() -> None:
    """SPEC CHAN-4."""
    client = ScriptedClient()
    async with over(client) as channel:
        channel.signal(RunWaits(RUN, ANN, ("12", "13", "line-1")))
        await asyncio.sleep(3)
        channel.signal(started("a", ANN, "12", "13"))
        await asyncio.sleep(3)
        channel.signal(ended("a", ANN, Outcome.COMPLETED, "12", "13"))
        await asyncio.sleep(1)
    at = ChatPlace(7)
    assert client.reactions == [
        Shown(2, "👀", at, 12),
        Shown(2, "👀", at, 13),
        Shown(6, "", at, 12),
        Shown(6, "", at, 13),
    ]


async def test_a_run_that_starts_soon_is_only_shown_by_typing() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        channel.signal(RunWaits(RUN, ANN, ("12",)))
        await asyncio.sleep(1)
        channel.signal(started("a", ANN, "12"))
        await asyncio.sleep(4)
        channel.signal(ended("a", ANN, Outcome.FAILED, "12"))
        await asyncio.sleep(1)
    assert client.reactions == [Shown(5, "👎", ChatPlace(7), 12)]


async def test_reactions_can_be_turned_off() -> None:
    """SPEC CHAN-4."""
    client = ScriptedClient()
    async with over(client, replace(SETTINGS, reactions=False)) as channel:
        channel.signal(RunWaits(RUN, ANN, ("12",)))
        await asyncio.sleep(3)
        channel.signal(started("a", ANN, "12"))
        channel.signal(ended("a", ANN, Outcome.FAILED, "12"))
        await asyncio.sleep(3)
    assert client.reactions == []


# ---------------------------------------------------------------------------- native drafts


async def test_a_private_chat_sees_the_reply_grow_in_telegrams_own_draft() -> None:
    """SPEC CHAN-4."""
    client = ScriptedClient()
    async with over(client, NATIVE) as channel:
        channel.signal(started("a"))
        for word in ("one ", "two ", "three"):
            channel.signal(RunText(RUN, ANN, word))
            await asyncio.sleep(0.6)
        await asyncio.sleep(2)
        channel.signal(ended("a"))
        await asyncio.sleep(60)
    assert [(one.at, one.what) for one in client.drafts] == [
        (0, "one …"),
        (1, "one two …"),
        (2, "one two three …"),
    ]


async def test_a_group_never_sees_telegrams_own_drafts() -> None:
    """The server offers them in private chats only."""
    client = ScriptedClient()
    async with over(client, NATIVE) as channel:
        channel.signal(RunText(RUN, TEAM, "one"))
        await asyncio.sleep(5)
    assert client.drafts == []


@pytest.mark.parametrize("streaming", [Streaming.EDIT, Streaming.OFF])
async def test_telegrams_own_drafts_are_a_setting(streaming: Streaming) -> None:
    client = ScriptedClient()
    async with over(client, replace(SETTINGS, streaming=streaming)) as channel:
        channel.signal(RunText(RUN, ANN, "one"))
        await asyncio.sleep(5)
    assert client.drafts == []


# ---------------------------------------------------------------------------- used buttons


async def test_buttons_that_are_used_go_away() -> None:
    """SPEC CRON-13."""
    client = ScriptedClient()
    client.fail("remove_buttons", NotSent("reset"))
    async with over(client) as channel:
        channel.signal(ButtonsUsed(ANN, "12"))
        channel.signal(ButtonsUsed(ANN, "line-1"))
        await asyncio.sleep(10)
    assert client.bare == [(7, 12)]


async def test_a_press_is_answered_with_its_result_with_some_tries() -> None:
    """SPEC CHAN-5."""
    client = ScriptedClient()
    client.fail("answer_press", NotSent("reset"))
    async with over(client) as channel:
        channel.signal(PressAnswered(ANN, "press:77", "✅ Bob can talk to me now."))
        await asyncio.sleep(10)
    assert [press for _, press in client.presses] == ["77"]
    assert client.toasts == ["✅ Bob can talk to me now."]


# ---------------------------------------------------------------------------- closing drafts


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome.CANCELLED, "so far\n\n⏹ Stopped."),
        (Outcome.FAILED, "so far\n\n⚠️ This answer was cut off."),
        (Outcome.LOST, "so far\n\n⚠️ This answer was cut off."),
        (Outcome.TIMED_OUT, "so far\n\n⚠️ This answer was cut off."),
    ],
)
async def test_a_draft_that_nobody_finishes_is_marked(outcome: Outcome, text: str) -> None:
    """SPEC CMD-3."""
    client = ScriptedClient()
    async with over(client) as channel:
        draft = await channel.post_draft(OutboundMessage(ANN, "so far", run_id=RUN))
        channel.signal(RunEnded(RUN, ANN, outcome, draft=draft, shown="so far"))
        await asyncio.sleep(1)
    ((_, edit),) = client.edits
    assert (edit.text, edit.buttons) == (text, ())


async def test_a_draft_of_a_run_that_said_nothing_is_removed() -> None:
    client = ScriptedClient()
    async with over(client) as channel:
        draft = await channel.post_draft(OutboundMessage(ANN, "", run_id=RUN))
        channel.signal(RunEnded(RUN, ANN, Outcome.COMPLETED, draft=draft))
        await asyncio.sleep(1)
    assert client.messages == {}


async def test_closing_a_draft_is_tried_again_but_not_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = ScriptedClient()
    client.fail("edit_message", NotSent("reset"), RateLimited("slow", 9.0))
    async with over(client) as channel:
        channel.signal(RunEnded(RUN, ANN, Outcome.CANCELLED, draft="101", shown="x"))
        await asyncio.sleep(30)
        assert [at for at, _ in client.edits] == [11]
        client.fail("edit_message", *[NotSent("reset")] * 50)
        channel.signal(RunEnded(RUN, ANN, Outcome.CANCELLED, draft="102", shown="x"))
        await asyncio.sleep(60)
        assert client.calls.count("edit_message") == 8


async def test_a_draft_in_a_chat_that_is_gone_is_let_go_with_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = ScriptedClient()
    client.fail("edit_message", Undeliverable("chat not found"))
    async with over(client) as channel:
        with logged(caplog) as lines:
            channel.signal(RunEnded(RUN, ANN, Outcome.CANCELLED, draft="101", shown="x"))
            await asyncio.sleep(30)
    assert client.calls == ["edit_message"]
    assert lines == ["INFO message_not_closed"]


async def test_closing_the_channel_waits_two_seconds_for_drafts() -> None:
    client = ScriptedClient()
    client.takes_s["edit_message"] = 1.5
    async with over(client) as channel:
        channel.signal(RunEnded(RUN, ANN, Outcome.CANCELLED, draft="101", shown="x"))
    assert len(client.edits) == 1
    client.takes_s["edit_message"] = 100.0
    async with over(client) as channel:
        channel.signal(RunEnded(RUN, ANN, Outcome.CANCELLED, draft="102", shown="x"))
    assert asyncio.get_running_loop().time() == 3.5


async def test_closing_ends_everything_that_is_shown() -> None:
    client = ScriptedClient()
    for method in ("send_action", "set_reaction", "send_draft"):
        client.takes_s[method] = 100.0
    async with over(client, NATIVE) as channel:
        channel.signal(RunWaits(RUN, ANN, ("12",)))
        channel.signal(started("b", ANN, "11"))
        channel.signal(RunText(RunId("b"), ANN, "one"))
        await asyncio.sleep(3)
        assert client.active == 3
    assert client.active == 0
    assert client.closed
