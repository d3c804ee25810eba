"""Replies that grow, over both libraries, against a strict Bot API emulator (SPEC CHAN-4, IO-5)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

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


async def test_an_edit_that_changes_nothing_is_harmless(api: BotApi, channel: Channel) -> None:
    """SPEC IO-5: also the final one, after a crash."""
    draft = await channel.post_draft(said("one"))
    for _ in range(3):
        await channel.edit_draft(said("one", draft))
    for _ in range(3):
        assert await channel.send(said("one", draft)) == draft
    assert ours(api).text == "one"


async def test_a_long_reply_is_shown_as_far_as_it_fits(api: BotApi, channel: Channel) -> None:
    """SPEC CHAN-3."""
    draft = await channel.post_draft(said("word " * 3000))
    await channel.edit_draft(said("word " * 4000, draft))
    assert ours(api).text.startswith("word word")
    assert ours(api).text.endswith(" …")


async def test_markup_of_a_draft_that_is_refused_is_shown_plain(
    api: BotApi, channel: Channel
) -> None:
    words = "Bad Request: can't parse entities: Unexpected end tag at byte offset 5"
    api.fault(Fault("sendMessage", FaultKind.ERROR, status=400, words=words))
    draft = await channel.post_draft(said("a **b**"))
    assert ours(api).text == "a b …"
    api.fault(Fault("editMessageText", FaultKind.ERROR, status=400, words=words))
    await channel.edit_draft(said("a **b** c", draft))
    assert (ours(api).text, buttons(ours(api))) == ("a b c …", [STOP])


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


@pytest.mark.parametrize(
    ("outcome", "mark"),
    [(Outcome.CANCELLED, "⏹ Stopped."), (Outcome.FAILED, "⚠️ This answer was cut off.")],
)
async def test_a_draft_that_nobody_finishes_keeps_what_it_shows_and_loses_its_button(
    api: BotApi, channel: Channel, outcome: Outcome, mark: str
) -> None:
    """SPEC CMD-3."""
    draft = await channel.post_draft(said("The **answer** is"))
    api.fault(Fault("editMessageText", FaultKind.RESET))
    channel.signal(RunEnded(RUN, CHAT, outcome, draft=draft, shown="The **answer** is"))
    await api.wait_visible(ANN, f"The answer is\n\n{mark}")
    assert buttons(ours(api)) == []


async def test_a_long_draft_keeps_its_words_when_it_is_stopped(
    api: BotApi, channel: Channel
) -> None:
    """SPEC CMD-3."""
    shown = "word " * 3000
    draft = await channel.post_draft(said(shown))
    channel.signal(RunEnded(RUN, CHAT, Outcome.CANCELLED, draft=draft, shown=shown))
    await eventually(lambda: ours(api).text.endswith("⏹ Stopped."))
    assert ours(api).text.startswith("word word")


async def test_after_a_crash_the_draft_of_a_lost_run_is_closed(
    api: BotApi, library: Library
) -> None:
    """SPEC CMD-3: by another process, which only knows its id."""
    api.say(ANN, "hello")
    async with connected(api, library) as line:
        draft = await line.channel.post_draft(said("The answer is"))
    async with connected(api, library) as line:
        line.channel.signal(RunEnded(RUN, CHAT, Outcome.LOST, draft=draft))
        await api.wait_visible(ANN, "⚠️ This answer was cut off.")
    assert buttons(ours(api)) == []


async def test_the_draft_of_a_run_that_said_nothing_is_removed(
    api: BotApi, channel: Channel
) -> None:
    draft = await channel.post_draft(said(""))
    for _ in range(2):
        channel.signal(RunEnded(RUN, CHAT, Outcome.COMPLETED, draft=draft))
    await api.wait_calls("deleteMessage", 2)
    await eventually(lambda: api.texts(ANN) == [])


async def test_a_draft_that_is_closed_when_the_channel_closes_is_marked(
    api: BotApi, channel: Channel
) -> None:
    draft = await channel.post_draft(said("one"))
    channel.signal(RunEnded(RUN, CHAT, Outcome.CANCELLED, draft=draft, shown="one"))
    await channel.close()
    assert ours(api).text == "one\n\n⏹ Stopped."


# ---------------------------------------------------------------------------- lost answers


async def lose_a_draft(api: BotApi, channel: Channel, target: Target = CHAT) -> LostDraft:
    """Post a draft whose answer is lost, after the last message that is there."""
    after = str(api.view(int(target.chat))[-1].message_id)
    api.fault(Fault("sendMessage", FaultKind.RESET_AFTER))
    with pytest.raises(MaybeSent):
        await channel.post_draft(replace(said("The answer"), target=target, reply_to=None))
    return LostDraft(RUN, after)


async def test_a_draft_whose_answer_is_lost_is_found_by_its_button(
    api: BotApi, channel: Channel
) -> None:
    """SPEC IO-5: looking for it changes nothing."""
    lost = await lose_a_draft(api, channel)
    before = api.view(ANN)
    found = await channel.find_draft(CHAT, lost, before=None, known=())
    assert (found, api.view(ANN)) == (str(ours(api).message_id), before)
    await channel.edit_draft(said("The answer is", found))
    await channel.send(said("The answer is 5.", found))
    assert (ours(api).text, buttons(ours(api))) == ("The answer is 5.", [])
    assert await channel.find_draft(CHAT, lost, before=None, known=()) is None


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


async def test_another_message_of_ours_that_nobody_knew_keeps_its_text_and_gets_no_button(
    api: BotApi, channel: Channel
) -> None:
    """It is not taken for the draft later, either."""
    lost = LostDraft(RUN, str(api.view(ANN)[-1].message_id))
    await channel.send(OutboundMessage(CHAT, "Nothing was running."))
    assert await channel.find_draft(CHAT, lost, before=None, known=()) is None
    await eventually(lambda: not buttons(ours(api)))
    assert await channel.find_draft(CHAT, lost, before=None, known=()) is None
    assert (ours(api).text, buttons(ours(api))) == ("Nothing was running.", [])


async def test_a_look_whose_answer_is_lost_takes_no_other_message_for_the_draft(
    api: BotApi, channel: Channel
) -> None:
    lost = LostDraft(RUN, str(api.view(ANN)[-1].message_id))
    await channel.send(OutboundMessage(CHAT, "Nothing was running."))
    api.fault(Fault("editMessageReplyMarkup", FaultKind.RESET_AFTER))
    with pytest.raises(NotSent):
        await channel.find_draft(CHAT, lost, before=None, known=())
    assert await channel.find_draft(CHAT, lost, before=None, known=()) is None
    await eventually(lambda: not buttons(ours(api)))


# ---------------------------------------------------------------------------- Telegram's own


async def test_telegrams_own_draft_grows_and_the_reply_is_a_message(
    api: BotApi, library: Library
) -> None:
    """SPEC CHAN-4."""
    api.say(ANN, "hello")
    async with connected(api, library, streaming="native") as line:
        channel = line.channel
        channel.signal(RunStarted(RUN, CHAT))
        for word in ("The ", "**answer** ", "is ", "5."):
            channel.signal(RunText(RUN, CHAT, word))
            await api.wait_calls("sendMessageDraft", len(api.transcript("sendMessageDraft")) + 1)
        calls = await api.wait_calls("sendMessageDraft", 4, ok=True)
        (draft,) = api.drafts(ANN)
        assert draft.text == "The answer is 5. …"
        channel.signal(RunEnded(RUN, CHAT, Outcome.COMPLETED))
        await channel.send(OutboundMessage(CHAT, "The answer is 5."))
    assert api.texts(ANN) == ["The answer is 5."]
    assert all(b.at - a.at >= 0.99 for a, b in pairwise(calls))
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


async def test_in_groups_a_reply_grows_by_edits(api: BotApi, library: Library) -> None:
    """The server has drafts in private chats only."""
    api.add_group(GROUP, "Team")
    async with connected(api, library, streaming="native") as line:
        line.channel.signal(RunStarted(RUN, TEAM))
        line.channel.signal(RunText(RUN, TEAM, "The answer"))
        await api.wait_calls("sendChatAction")
        await line.channel.post_draft(OutboundMessage(TEAM, "The answer", run_id=RUN))
    assert api.counts().get("sendMessageDraft", 0) == 0
    assert api.texts(GROUP) == ["The answer …"]
