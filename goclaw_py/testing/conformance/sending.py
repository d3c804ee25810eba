"""Checks of sending: a message arrives, or the error says whether it may have arrived."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace

from goclaw_py.core.errors import (
    ChannelError,
    ChannelRefused,
    ChatGone,
    ChatMoved,
    MaybeSent,
    NotSent,
    RateLimited,
    Undeliverable,
)
from goclaw_py.core.messages import Button, OutboundMessage, Target
from goclaw_py.testing.conformance.check import check
from goclaw_py.testing.conformance.rig import SeenMessage, Trouble
from goclaw_py.testing.conformance.scene import HOLD_S, ContractViolation, Scene, require


async def arrives(scene: Scene, text: str, chat: Target | None = None) -> SeenMessage:
    """Send a plain text and return the message that is shown for it."""
    target = chat or scene.rig.ann
    number = await scene.call(scene.rig.channel.send(OutboundMessage(target, text)))
    return await shown(scene, target, number)


async def shown(scene: Scene, chat: Target, number: str) -> SeenMessage:
    """Wait for the message with an id and return it as people see it."""
    require(_is_id(number), f"send returns an id, not {number!r}")
    found = {}

    def is_shown() -> bool:
        found.update({seen.id: seen for seen in scene.rig.seen(chat)})
        return number in found

    await scene.until(is_shown, "what was sent stands in its chat, under the id that send returned")
    return found[number]


def _is_id(number: object) -> bool:
    return isinstance(number, str) and number != ""


def texts(scene: Scene, chat: Target | None = None) -> list[str]:
    """Return the texts of our messages that people see in a chat."""
    return [seen.text for seen in scene.rig.seen(chat or scene.rig.ann)]


@check("IO-6")
async def a_plain_text_is_shown_as_it_stands(scene: Scene) -> None:
    """Check that a plain text is shown unchanged, even if it looks like markup."""
    for text in ("hello", "a <b> & *c* _d_ [e](f) `g` ü \U0001f600", "one\n\ntwo\n  three"):
        seen = await arrives(scene, text)
        require(seen.text == text, f"{text!r} is shown as it stands, not as {seen.text!r}")


@check("IO-4")
async def two_messages_are_two_in_their_order(scene: Scene) -> None:
    """Check that two messages arrive once each, in order, even with equal texts."""
    first = await arrives(scene, "same")
    second = await arrives(scene, "same")
    require(first.id != second.id, "two messages have two ids")
    await arrives(scene, "last")
    require(texts(scene) == ["same", "same", "last"], f"each arrives once, not {texts(scene)}")


@check("IO-4")
async def a_message_arrives_in_its_chat_only(scene: Scene) -> None:
    """Check that each message arrives only in its chat, even if both are sent at once."""
    rig = scene.rig
    both = [(rig.ann, "for ann"), (rig.ben, "for ben")]
    sends = [scene.begin(rig.channel.send(OutboundMessage(*one))) for one in both]
    for (chat, text), send in zip(both, sends, strict=True):
        await scene.ended(send, "a message is sent in time")
        await shown(scene, chat, send.result())
        require(
            texts(scene, chat) == [text], f"only what was meant for it, not {texts(scene, chat)}"
        )


@check("CHAN-1")
async def messages_are_sent_whether_or_not_it_receives(scene: Scene) -> None:
    """Check that messages are sent before, during and after receiving.

    Answers go out during a drain, and from processes that never receive.
    """
    await arrives(scene, "before")
    async with scene.receiving():
        await arrives(scene, "meanwhile")
    await arrives(scene, "after")


@check("IO-3")
async def an_answer_to_a_message_that_is_gone_arrives(scene: Scene) -> None:
    """Check that a reply arrives if its question was deleted or the id is not one of ours."""
    rig = scene.rig
    for number, reply_to in enumerate(("999999", "no id of ours", "")):
        message = OutboundMessage(rig.ann, f"answer {number}", reply_to=reply_to)
        await shown(scene, rig.ann, await scene.call(rig.channel.send(message)))


@check("CHAN-6")
async def a_message_with_buttons_keeps_its_text(scene: Scene) -> None:
    """Check that the text of a message with buttons arrives, even without button support."""
    rows = ((Button("Yes", "y:1"), Button("No", "n:1")), (Button("Later", "l"),))
    message = OutboundMessage(scene.rig.ann, "really?", buttons=rows)
    number = await scene.call(scene.rig.channel.send(message))
    seen = await shown(scene, scene.rig.ann, number)
    require("really?" in seen.text, f"the text stands there, not {seen.text!r}")


@check("CHAN-1")
async def only_channel_errors_leave_it_for_a_place_that_is_none(scene: Scene) -> None:
    """Check that sending to an invalid target raises only ``ChannelError``, if anything.

    Targets come from settings and from old databases, too.
    """
    rig = scene.rig
    for chat, thread in (("no such chat", None), ("", None), ("\ud83d", "x"), (rig.ann.chat, "?")):
        target = replace(rig.ann, chat=chat, thread=thread)
        send = scene.begin(rig.channel.send(OutboundMessage(target, "x")))
        await scene.ended(send, "a message to nowhere comes back in time")
        error = send.exception()
        require(
            error is None or isinstance(error, ChannelError),
            f"only ChannelErrors leave a channel, not {error!r}",
        )
    await arrives(scene, "next")


# ---------------------------------------------------------------------------- trouble


@dataclass(frozen=True, slots=True)
class _Meaning:
    error: type[ChannelError]
    arrived: int = 0


_MEANINGS = {
    Trouble.AWAY: _Meaning(NotSent),
    Trouble.ANSWER_LOST: _Meaning(MaybeSent, arrived=1),
    Trouble.FLOOD: _Meaning(RateLimited),
    Trouble.MESSAGE_REFUSED: _Meaning(Undeliverable),
    Trouble.CHAT_GONE: _Meaning(ChatGone),
    Trouble.CHAT_MOVED: _Meaning(ChatMoved),
    Trouble.ACCOUNT_REFUSED: _Meaning(ChannelRefused),
}


async def _meets(scene: Scene, trouble: Trouble) -> ChannelError:
    """Send a message during a trouble and return the error, which has the matching class."""
    rig, meaning = scene.rig, _MEANINGS[trouble]
    await arrives(scene, "before")
    await rig.cause(trouble)
    error = await scene.fails(rig.channel.send(OutboundMessage(rig.ann, "lost")))
    if not isinstance(error, meaning.error):
        raise ContractViolation(f"{trouble} is {meaning.error.__name__}, not {error!r}") from error
    require(
        texts(scene).count("lost") == meaning.arrived,
        f"after {meaning.error.__name__} people see {meaning.arrived} of it, not {texts(scene)}",
    )
    return error


async def _calms(scene: Scene) -> None:
    await scene.rig.calm()
    await arrives(scene, "after")


@check("IO-5", Trouble.AWAY)
async def a_message_that_certainly_did_not_leave_is_not_sent(scene: Scene) -> None:
    """Check that sending raises ``NotSent`` if the server cannot be reached."""
    await _meets(scene, Trouble.AWAY)
    await _calms(scene)


@check("IO-5", Trouble.ANSWER_LOST)
async def a_message_whose_answer_is_lost_is_maybe_sent(scene: Scene) -> None:
    """Check that a message that arrived, but whose answer is lost, raises ``MaybeSent``."""
    await _meets(scene, Trouble.ANSWER_LOST)
    await _calms(scene)


@check("IO-3", Trouble.FLOOD)
async def a_message_that_came_too_soon_says_how_long_to_wait(scene: Scene) -> None:
    """Check that ``RateLimited`` has the seconds to wait that the server named."""
    error = await _meets(scene, Trouble.FLOOD)
    wait_s = error.retry_after_s
    require(wait_s is not None and 0 < wait_s < math.inf, f"how long to wait, not {wait_s}")
    await _calms(scene)


@check("IO-3", Trouble.MESSAGE_REFUSED)
async def a_message_that_is_never_accepted_is_undeliverable(scene: Scene) -> None:
    """Check that a permanently refused message is not retried and the chat still works."""
    error = await _meets(scene, Trouble.MESSAGE_REFUSED)
    require(not error.retryable, "nobody tries it again")
    require(not isinstance(error, ChatGone), "other messages to this chat may pass")
    await _calms(scene)


@check("CHAN-7", Trouble.CHAT_GONE)
async def sending_to_a_deleted_chat_raises_chat_gone(scene: Scene) -> None:
    """Check that sending to a deleted chat raises ``ChatGone`` and other chats still work."""
    error = await _meets(scene, Trouble.CHAT_GONE)
    require(not error.retryable, "nobody tries it again")
    await arrives(scene, "meanwhile", scene.rig.ben)
    await _calms(scene)


@check("CHAN-7", Trouble.CHAT_MOVED)
async def a_chat_that_moved_tells_where_to(scene: Scene) -> None:
    """Check that ``ChatMoved`` has the new chat id and that messages to it arrive."""
    error = await _meets(scene, Trouble.CHAT_MOVED)
    new = error.chat if isinstance(error, ChatMoved) else ""
    require(new and new != scene.rig.ann.chat, f"the new id, not {new!r}")
    await arrives(scene, "there", replace(scene.rig.ann, chat=new))


@check("CHAN-8", Trouble.ACCOUNT_REFUSED)
async def a_refused_account_raises_channel_refused(scene: Scene) -> None:
    """Check that a refused account raises ``ChannelRefused``, which is not retryable."""
    error = await _meets(scene, Trouble.ACCOUNT_REFUSED)
    require(not error.retryable, "nobody tries it again")
    await _calms(scene)


@check("IO-4", Trouble.HANGS)
async def a_chat_that_hangs_delays_no_other(scene: Scene) -> None:
    """Check that a hanging send to one chat does not delay another chat.

    Each chat has its own sender; one chat must not exhaust a shared resource.
    """
    rig = scene.rig
    await rig.cause(Trouble.HANGS)
    hanging = scene.begin(rig.channel.send(OutboundMessage(rig.ann, "slow")))
    await asyncio.sleep(HOLD_S)
    require(not hanging.done(), "the rig lets sends to ann hang")
    await arrives(scene, "quick", rig.ben)
    await scene.cancelled(hanging)
    await _calms(scene)


@check("CHAN-1", Trouble.HANGS)
async def a_send_that_is_cancelled_ends_and_the_next_one_arrives(scene: Scene) -> None:
    """Check that a send can be cancelled and that the next message arrives.

    The cancelled message may have arrived, but not twice.
    """
    rig = scene.rig
    await rig.cause(Trouble.HANGS)
    hanging = scene.begin(rig.channel.send(OutboundMessage(rig.ann, "cancelled")))
    await asyncio.sleep(HOLD_S)
    await scene.cancelled(hanging)
    require(hanging.cancelled(), "a cancellation is not swallowed")
    await _calms(scene)
    require(texts(scene).count("cancelled") <= 1, "it did not arrive twice")
