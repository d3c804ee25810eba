"""Replies that grow, over both libraries, against a strict Bot API emulator (SPEC CHAN-4, IO-5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from channels.telegram.settings import Library
from goclaw_py.model.errors import MaybeSent, NotSent
from goclaw_py.model.ids import RunId
from goclaw_py.model.messages import Button, LostDraft, OutboundMessage, Target
from goclaw_py.model.outcomes import Outcome
from goclaw_py.model.run_events import RunEnded, RunStarted, RunText
from goclaw_py.ports.channel import Channel
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.views import Seen
from tests.support.telegram import ANN, CHAT, GROUP, Mode, connected, eventually

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]

RUN = RunId("0190d2a4-7a2b-7c3d-8e4f-123456789abc")
TEAM = Target("telegram", "default", str(GROUP))
STOP = f"stop:{RUN}"


def said(text: str, draft: str | None = None, *, rich: bool = False) -> OutboundMessage:
    return OutboundMessage(CHAT, text, reply_to="1", run_id=RUN, rich=rich, draft=draft)


def ours(api: BotApi) -> Seen:
    """The one message of the bot."""
    (seen,) = [one for one in api.view(ANN) if one.mine]
    return seen


def buttons(seen: Seen) -> list[str]:
    return [button.data for row in seen.buttons for button in row]


# ---------------------------------------------------------------------------- by edits


async def test_a_reply_grows_in_one_message_with_a_stop_button(
    api: BotApi, channel: Channel
) -> None:
    draft = await channel.post_draft(said(""))
    assert (ours(api).text, buttons(ours(api)), ours(api).reply_to) == ("…", [STOP], 1)
    await channel.edit_draft(said("The **answer", draft))
    assert (ours(api).text, buttons(ours(api))) == ("The **answer …", [STOP])
    await channel.edit_draft(said("The **answer** is", draft))
    assert (ours(api).text, buttons(ours(api))) == ("The answer is …", [STOP])
    (part,) = channel.parts("The **answer** is 5.")
    assert await channel.send(said(part, draft, rich=True)) == draft
    assert (ours(api).text, buttons(ours(api)), ours(api).reply_to) == ("The answer is 5.", [], 1)
    assert api.shown_twice(ANN) == []


async def test_the_press_of_the_stop_button_names_the_run(api: BotApi, library: Library) -> None:
    """SPEC CMD-2."""
    for mode in Mode:
        async with connected(api, library, mode) as line, line.receiving():
            api.say(ANN, "hello")
            draft = await line.channel.post_draft(OutboundMessage(CHAT, "one", run_id=RUN))
            api.press(ANN, int(draft), STOP)
            await line.inbox.until(lambda: any(m.press for m in line.inbox.messages))
        (press,) = [m for m in line.inbox.messages if m.press]
        assert (press.press, press.reply_to, press.text) == (STOP, draft, "⏹ Stop")


# ---------------------------------------------------------------------------- closed


async def test_a_draft_that_nobody_finishes_keeps_what_it_shows_and_loses_its_button(
    api: BotApi, channel: Channel
) -> None:
    """SPEC CMD-3."""
    draft = await channel.post_draft(said("The **answer** is"))
    api.fault(Fault("editMessageText", FaultKind.RESET))
    ended = RunEnded(RUN, CHAT, Outcome.CANCELLED, draft=draft, shown="The **answer** is")
    channel.signal(ended)
    await api.wait_visible(ANN, "The answer is\n\n⏹ Stopped.")
    assert buttons(ours(api)) == []


# ---------------------------------------------------------------------------- lost answers


async def lose_a_draft(api: BotApi, channel: Channel, target: Target = CHAT) -> LostDraft:
    """Post a draft whose answer is lost, after the last message that is there."""
    after = str(api.view(int(target.chat))[-1].message_id)
    api.fault(Fault("sendMessage", FaultKind.RESET_AFTER))
    with pytest.raises(MaybeSent):
        await channel.post_draft(replace(said("The answer"), target=target, reply_to=None))
    return LostDraft(RUN, after)


async def test_a_lost_draft_is_found_among_what_others_write(api: BotApi, channel: Channel) -> None:
    """Nothing of theirs is changed, nor what is known to be another message of ours."""
    api.add_group(GROUP, "Team")
    api.say(ANN, "hello", chat_id=GROUP)
    after = str(api.view(GROUP)[-1].message_id)
    reminder = OutboundMessage(TEAM, "a reminder", buttons=((Button("Done", "d:1"),),))
    known = await channel.send(reminder)
    api.say(ANN, "anybody?", chat_id=GROUP)
    lost = replace(await lose_a_draft(api, channel, TEAM), after=after)
    api.say(ANN, "?", chat_id=GROUP)
    before = api.view(GROUP)
    found = await channel.find_draft(TEAM, lost, before=None, known={known})
    assert (found, api.view(GROUP)) == (str(before[-2].message_id), before)


async def test_a_lost_draft_is_found_just_before_the_reply(api: BotApi, channel: Channel) -> None:
    """Many others have written meanwhile."""
    api.add_group(GROUP, "Team")
    for number in range(30):
        api.say(ANN, str(number), chat_id=GROUP)
    lost = replace(await lose_a_draft(api, channel, TEAM), after="1")
    assert await channel.find_draft(TEAM, lost, before=None, known=()) is None
    reply = await channel.send(OutboundMessage(TEAM, "5."))
    assert await channel.find_draft(TEAM, lost, before=reply, known={reply}) == "31"


@pytest.mark.parametrize("answer_lost", [False, True])
async def test_another_message_of_ours_that_nobody_knew_keeps_its_text_and_gets_no_button(
    api: BotApi, channel: Channel, *, answer_lost: bool
) -> None:
    """It is not taken for the draft later, either."""
    lost = LostDraft(RUN, str(api.view(ANN)[-1].message_id))
    await channel.send(OutboundMessage(CHAT, "Nothing was running."))
    if answer_lost:
        api.fault(Fault("editMessageReplyMarkup", FaultKind.RESET_AFTER))
        with pytest.raises(NotSent):
            await channel.find_draft(CHAT, lost, before=None, known=())
    else:
        assert await channel.find_draft(CHAT, lost, before=None, known=()) is None
    await eventually(lambda: not buttons(ours(api)))
    assert await channel.find_draft(CHAT, lost, before=None, known=()) is None
    await eventually(lambda: not buttons(ours(api)))
    assert ours(api).text == "Nothing was running."


# ---------------------------------------------------------------------------- Telegram's own


async def test_telegrams_own_draft_grows_and_the_reply_is_a_message(
    api: BotApi, library: Library
) -> None:
    """SPEC CHAN-4."""
    api.say(ANN, "hello")
    async with connected(api, library, streaming="native") as line:
        channel = line.channel
        channel.signal(RunStarted(RUN, CHAT))
        for number, word in enumerate(("The ", "**answer** is 5."), 1):
            channel.signal(RunText(RUN, CHAT, word))
            await api.wait_calls("sendMessageDraft", number, ok=True)
        (draft,) = api.drafts(ANN)
        assert draft.text == "The answer is 5. …"
        channel.signal(RunEnded(RUN, CHAT, Outcome.COMPLETED))
        await channel.send(OutboundMessage(CHAT, "The answer is 5."))
    assert api.texts(ANN) == ["The answer is 5."]
    calls = api.transcript("sendMessageDraft")
    assert {call.parameters["draft_id"] for call in calls} == {1}
    assert api.drafts(ANN) == []


async def test_the_stop_button_of_telegrams_own_draft_is_a_stop(
    api: BotApi, library: Library
) -> None:
    """SPEC CMD-2."""
    for mode in Mode:
        async with connected(api, library, mode, streaming="native") as line, line.receiving():
            api.say(ANN, "hello")
            await line.inbox.until_accepted("hello")
            line.channel.signal(RunText(RUN, CHAT, "The answer"))
            await eventually(lambda: api.drafts(ANN))
            api.stop_draft(ANN)
            await line.inbox.until_accepted("/stop")
        stop = line.inbox.messages[-1]
        assert (stop.target, stop.sender.id) == (CHAT, str(ANN))
        api.skip(60)
