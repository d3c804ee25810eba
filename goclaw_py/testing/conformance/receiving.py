"""Checks of receiving: messages arrive once, in order, and are confirmed after the commit."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from goclaw_py.core.errors import ChannelRefused
from goclaw_py.core.messages import Inbound, PeerKind
from goclaw_py.scheduler.views import HEALTHY, ChannelHealth
from goclaw_py.testing.conformance.check import check
from goclaw_py.testing.conformance.rig import Offer, Trouble
from goclaw_py.testing.conformance.scene import (
    HOLD_S,
    IntakeBroke,
    Scene,
    messages,
    require,
    unique,
)

_MANY = 20
_LONG_S = 1.5


@check("CHAN-1")
async def a_received_message_has_every_field(scene: Scene) -> None:
    """Check that a received message has every field on which the runtime relies."""
    rig, text = scene.rig, "two words\n\n& <a> *line* \U0001f600 é"
    async with scene.receiving():
        rig.say(rig.ann, text)
        await scene.until_accepted(text)
    message = scene.inbox.message(text)
    require(message.target == rig.ann, f"it comes from {rig.ann}, not from {message.target}")
    require(message.peer is rig.peer, f"it comes from a {rig.peer} chat")
    require(message.external_id, "a message has an external id (IO-1)")
    require(message.sender.id, "its sender has an id (CHAN-5)")
    require(message.sent_at.tzinfo is not None, "sent_at is aware of its zone")
    is_direct = rig.peer is PeerKind.DIRECT
    require(message.addressed or not is_direct, "a direct message is meant for the agent (CHAN-5)")
    require(not message.edits, "a new message edits none (CHAN-6)")


@check("IO-1")
async def messages_sent_before_receive_are_not_skipped(scene: Scene) -> None:
    """Check that no message sent before ``receive`` began is skipped."""
    rig = scene.rig
    rig.say(rig.ann, "early")
    rig.say(rig.ben, "early too")
    async with scene.receiving():
        await scene.until_accepted("early", "early too")
        await scene.until_confirmed()


@check("IO-1")
async def different_messages_have_different_external_ids(scene: Scene) -> None:
    """Check that different messages have different external ids, also across chats.

    Messages with equal ids would be deduplicated.
    """
    rig = scene.rig
    for _ in range(3):
        rig.say(rig.ann, "same words")
        rig.say(rig.ben, "same words")
    async with scene.receiving():
        await scene.until(
            lambda: len(unique(scene.inbox.accepted)) == 6, "six messages have six external ids"
        )


@check("IO-1")
async def nothing_is_confirmed_before_the_intake_returned(scene: Scene) -> None:
    """Check that a message is confirmed only after the intake has returned.

    Otherwise a crash between the two would lose the message.
    """
    rig = scene.rig
    scene.inbox.block()
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_offered("one")
        await asyncio.sleep(HOLD_S)
        require(rig.unconfirmed() == 1, "while the intake works, the server keeps the message")
        scene.inbox.release()
        await scene.until_accepted("one")
        await scene.until_confirmed()


@check("DB-4")
async def what_could_not_be_committed_is_offered_again(scene: Scene) -> None:
    """Check that after ``StoreUnavailable`` a message stays unconfirmed and is offered again."""
    rig, inbox = scene.rig, scene.inbox
    inbox.down = True
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until(
            lambda: inbox.offered_texts().count("one") >= 2,
            "a message that was not committed is offered again",
        )
        require(rig.unconfirmed() == 1, "what was not committed is not confirmed (IO-1)")
        inbox.down = False
        await scene.until_accepted("one")
        await scene.until_confirmed()
    require(len(unique(inbox.offered)) == 1, "each time with the same external id (IO-1)")


@check("CMD-1")
async def what_comes_while_nothing_can_be_committed_is_offered_too(scene: Scene) -> None:
    """Check that new messages are offered while the database is unavailable.

    A ``/stop`` acts when it is offered, so it must not wait for the database. It is sent to
    another chat, because some servers deliver the messages of one chat one at a time.
    """
    rig, inbox = scene.rig, scene.inbox
    inbox.down = True
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_offered("one")
        rig.say(rig.ben, "/stop")
        await scene.until_offered("/stop")
        inbox.down = False
        await scene.until_accepted("one", "/stop")
        await scene.until_confirmed()


@check("IO-2")
async def a_bug_of_the_intake_loses_nothing(scene: Scene) -> None:
    """Check that no message is lost if the intake raises an unexpected error.

    Such an error may end ``receive``; the supervisor calls it again.
    """
    rig, inbox = scene.rig, scene.inbox
    inbox.broken = True
    rig.say(rig.ann, "one")
    task = scene.begin(rig.channel.receive(inbox))
    try:
        await scene.until(lambda: "one" in inbox.offered_texts(), "what people say is offered")
        await asyncio.wait({task}, timeout=HOLD_S)
        require(rig.unconfirmed() == 1, "what the intake did not take is not confirmed (IO-1)")
    finally:
        await scene.cancelled(task)
    if not task.cancelled():
        error = task.exception()
        require(
            isinstance(error, IntakeBroke), f"an error of the intake stays what it is: {error!r}"
        )
    inbox.broken = False
    async with scene.receiving():
        await scene.until_accepted("one")
        await scene.until_confirmed()


@check("CHAN-1")
async def receive_ends_when_it_is_cancelled_and_can_begin_again(scene: Scene) -> None:
    """Check that ``receive`` can be cancelled and restarted: at once, idle, and after a message.

    ``receiving`` checks that no task is left.
    """
    rig = scene.rig
    for pause_s in (0.0, HOLD_S):
        async with scene.receiving():
            await asyncio.sleep(pause_s)
    for text in ("one", "two"):
        async with scene.receiving():
            rig.say(rig.ann, text)
            await scene.until_accepted(text)


@check("IO-2")
async def what_was_not_committed_when_receive_was_cancelled_comes_again(scene: Scene) -> None:
    """Check that a message is received again if ``receive`` was cancelled during its commit."""
    rig, inbox = scene.rig, scene.inbox
    inbox.block()
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_offered("one")
    require(
        rig.unconfirmed() == 1 or "one" in inbox.texts(), "what is confirmed was committed (IO-1)"
    )
    inbox.release()
    async with scene.receiving():
        await scene.until_accepted("one")
        await scene.until_confirmed()
    require(len(unique(inbox.offered)) == 1, "each time with the same external id (IO-1)")


@check("IO-2")
async def another_process_gets_what_this_one_did_not_confirm(scene: Scene) -> None:
    """Check that a new process receives unconfirmed messages with the same external id.

    The id tells it which messages were committed already.
    """
    rig, inbox = scene.rig, scene.inbox
    inbox.down = True
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_offered("one")
    await rig.restart()
    inbox.down = False
    async with scene.receiving():
        await scene.until_accepted("one")
        await scene.until_confirmed()
        rig.say(rig.ann, "two")
        await scene.until_accepted("two")
    require(len(unique(inbox.offered)) == 2, "the external id is the same for every process (IO-1)")


@check("CMD-1", Offer.MARKS_OLD)
async def what_another_process_may_have_seen_is_marked(scene: Scene) -> None:
    """Check that messages an earlier process may have received are marked ``redelivered``.

    A command among them may have been executed, so it waits for the commit.
    """
    rig, inbox = scene.rig, scene.inbox
    inbox.down = True
    async with scene.receiving():
        rig.say(rig.ann, "/stop")
        await scene.until_offered("/stop")
    await rig.restart()
    inbox.down = False
    async with scene.receiving():
        await scene.until_accepted("/stop")
        # Message times have a resolution of one second.
        await asyncio.sleep(1.1)
        rig.say(rig.ann, "new")
        await scene.until_accepted("new")
    require(inbox.message("/stop").redelivered, "a message from before is marked as redelivered")
    require(not inbox.message("new").redelivered, "a message that is new is not")


@check("IO-1", Offer.DELIVERS_AGAIN)
async def a_message_that_is_delivered_twice_has_one_external_id(scene: Scene) -> None:
    """Check that a redelivered message keeps its external id, which deduplicates it."""
    rig, inbox = scene.rig, scene.inbox
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_accepted("one")
        await scene.until_confirmed()
        rig.say_again()
        rig.say(rig.ann, "two")
        await scene.until_accepted("two")
        await scene.until(
            lambda: inbox.offered_texts().count("one") == 2, "what is delivered again is offered"
        )
    require(len(unique(inbox.offered)) == 2, "a message has the same external id each time")


@check("IO-4")
async def messages_of_a_chat_arrive_in_order(scene: Scene) -> None:
    """Check that messages of a chat keep their order, also after a failed commit."""
    rig, inbox = scene.rig, scene.inbox
    said = [f"{number:02}" for number in range(_MANY)]
    async with scene.receiving():
        for number, text in enumerate(said):
            rig.say(rig.ann, text)
            rig.say(rig.ben, text)
            if number == _MANY // 2:
                inbox.down = True
                await scene.until(
                    lambda: _was_refused(inbox.offered, inbox.accepted), "it is offered"
                )
                inbox.down = False
        await scene.until(
            lambda: len(unique(inbox.accepted)) == 2 * _MANY, "every message is committed"
        )
        await scene.until_confirmed()
    for chat in (rig.ann, rig.ben):
        require(inbox.texts(chat.chat) == said, f"in order, not {inbox.texts(chat.chat)}")


def _was_refused(offered: list[Inbound], accepted: list[Inbound]) -> bool:
    return len(unique(offered)) > len(unique(accepted))


@check("CHAN-8", Trouble.AWAY)
async def receiving_goes_on_when_the_server_is_back(scene: Scene) -> None:
    """Check that receiving resumes when the server is back, also if it was away at the start."""
    rig = scene.rig
    async with AsyncExitStack() as stack:
        await rig.cause(Trouble.AWAY)
        await stack.enter_async_context(scene.receiving())
        await asyncio.sleep(HOLD_S)
        await rig.calm()
        rig.say(rig.ann, "one")
        await scene.until_accepted("one")
        await rig.cause(Trouble.AWAY)
        rig.say(rig.ann, "two")
        await asyncio.sleep(HOLD_S)
        await rig.calm()
        await scene.until_accepted("two")
        await scene.until_confirmed()
        await scene.until(
            lambda: rig.channel.health == HEALTHY, "when all is well again, it is connected"
        )


@check("CHAN-8", Trouble.AWAY)
async def receive_can_be_cancelled_while_the_server_is_away(scene: Scene) -> None:
    """Check that ``receive`` can be cancelled while the server is away.

    Cancellation does not wait for the pause between two attempts.
    """
    rig = scene.rig
    await rig.cause(Trouble.AWAY)
    async with scene.receiving():
        await asyncio.sleep(HOLD_S)
        require(isinstance(rig.channel.health, ChannelHealth), "health is a ChannelHealth")
    await rig.calm()


@check("CHAN-8", Trouble.ACCOUNT_REFUSED)
async def receive_ends_when_the_server_does_not_accept_us(scene: Scene) -> None:
    """Check that ``receive`` raises ``ChannelRefused`` if the server refuses the account.

    This channel then stops permanently, and the other channels continue.
    """
    rig = scene.rig
    await rig.cause(Trouble.ACCOUNT_REFUSED)
    error = await scene.fails(rig.channel.receive(scene.inbox))
    require(isinstance(error, ChannelRefused), f"it raises ChannelRefused, not {error!r}")
    scene.nothing_left("a receive that was refused")
    await rig.calm()
    rig.say(rig.ann, "one")
    async with scene.receiving():
        await scene.until_accepted("one")


@check("CHAN-1")
async def only_what_the_runtime_knows_is_handed_over(scene: Scene) -> None:
    """Check that the intake gets only ``Inbound`` objects, all of this channel and account."""
    rig = scene.rig
    async with scene.receiving():
        rig.say(rig.ann, "one")
        rig.say(rig.ben, "two")
        await scene.until_accepted("one", "two")
        await asyncio.sleep(_LONG_S)
    batches, offered = scene.inbox.batches, len(scene.inbox.offered)
    require(batches <= offered, "the intake is not called for nothing: that is a transaction")
    for one in scene.inbox.offered:
        require(isinstance(one, Inbound), f"an intake is offered Inbounds, not {one!r}")
    for message in messages(scene.inbox.offered):
        told = message.target.channel, message.target.account
        require(
            told == (rig.channel.name, rig.channel.account), f"it names its channel, not {told}"
        )
