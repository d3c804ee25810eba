"""Checks of drafts: a reply that is shown while it grows stays one message (SPEC IO-5)."""

from __future__ import annotations

from dataclasses import replace

from goclaw_py.core.errors import MaybeSent, NotSent, Undeliverable
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import LostDraft, OutboundMessage, PeerKind
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import RunEnded, RunStarted
from goclaw_py.testing.conformance.check import check
from goclaw_py.testing.conformance.rig import Offer, Trouble
from goclaw_py.testing.conformance.scene import Scene, require
from goclaw_py.testing.conformance.sending import arrives, shown, texts

RUN = RunId("0190d2a4-7a2b-7c3d-8e4f-123456789abc")
OTHER_RUN = RunId("0190d2a4-7a2b-7c3d-8e4f-abcdef123456")


def _message(scene: Scene, text: str, draft: str | None = None) -> OutboundMessage:
    return OutboundMessage(scene.rig.ann, text, run_id=RUN, draft=draft)


async def _begun(scene: Scene, text: str) -> str:
    """Post a draft, check that it is shown, and return its id."""
    draft = await scene.call(scene.rig.channel.post_draft(_message(scene, text)))
    require(text in (await shown(scene, scene.rig.ann, draft)).text, "a draft shows its beginning")
    return draft


async def _grown(scene: Scene, draft: str, text: str) -> None:
    await scene.call(scene.rig.channel.edit_draft(_message(scene, text, draft)))
    require(text in (await shown(scene, scene.rig.ann, draft)).text, "a draft shows all so far")


async def _finished(scene: Scene, draft: str, text: str) -> None:
    number = await scene.call(scene.rig.channel.send(_message(scene, text, draft)))
    require(number == draft, f"a finished draft keeps its id {draft}, not {number}")
    require(texts(scene) == [text], f"people see the reply once, not {texts(scene)}")


@check("CHAN-1", Offer.DRAFTS)
async def where_drafts_are_offered_they_may_be_shown(scene: Scene) -> None:
    """Check that ``drafts`` returns True for the chats of the rig."""
    require(scene.rig.channel.drafts(scene.rig.ann, scene.rig.peer) is True, "drafts() is True")


@check("CHAN-1", without=Offer.DRAFTS)
async def a_channel_without_drafts_refuses_them(scene: Scene) -> None:
    """Check that ``drafts`` returns False without ``Offer.DRAFTS``.

    Otherwise a rig that forgets to offer drafts would hide that they do not work.
    """
    for peer in PeerKind:
        require(scene.rig.channel.drafts(scene.rig.ann, peer) is False, "drafts() is False")


@check("IO-5", Offer.DRAFTS)
async def a_reply_grows_in_one_message(scene: Scene) -> None:
    """Check that a draft that is posted, edited and finished is one message."""
    draft = await _begun(scene, "one")
    await _grown(scene, draft, "one two")
    await _grown(scene, draft, "one two three")
    await _finished(scene, draft, "one two three four")
    await arrives(scene, "next")


@check("IO-5", Offer.DRAFTS)
async def an_edit_can_be_repeated(scene: Scene) -> None:
    """Check that every edit can be repeated, the final one included.

    This happens after a lost answer, and in another process after a crash.
    """
    draft = await _begun(scene, "one")
    for _ in range(3):
        await _grown(scene, draft, "one two")
    for _ in range(2):
        await _finished(scene, draft, "one two three")
    await scene.rig.restart()
    await _finished(scene, draft, "one two three")


@check("IO-5", Offer.DRAFTS)
async def a_draft_that_is_gone_is_sent_as_a_new_message(scene: Scene) -> None:
    """Check that a reply whose draft a person has deleted is sent as a new message."""
    rig = scene.rig
    draft = await _begun(scene, "one")
    rig.delete(rig.ann, draft)
    error = await scene.fails(rig.channel.edit_draft(_message(scene, "one two", draft)))
    require(isinstance(error, Undeliverable), f"nobody edits it again: {error!r}")
    number = await scene.call(rig.channel.send(_message(scene, "one two three", draft)))
    require(number != draft, "the new message has an id of its own")
    await shown(scene, rig.ann, number)
    require(texts(scene) == ["one two three"], f"people see the reply once, not {texts(scene)}")


@check("IO-5", Offer.DRAFTS)
async def an_id_that_is_no_draft_loses_no_reply(scene: Scene) -> None:
    """Check that a reply with an invalid draft id, as of an older release, is sent as new."""
    rig = scene.rig
    number = await scene.call(rig.channel.send(_message(scene, "the reply", "no id of ours")))
    require((await shown(scene, rig.ann, number)).text == "the reply", "it is a new message")


@check("IO-5", Offer.DRAFTS, Trouble.ANSWER_LOST)
async def an_edit_whose_answer_is_lost_is_not_sent(scene: Scene) -> None:
    """Check that an edit whose answer is lost raises ``NotSent``.

    Repeating the edit is harmless, so it cannot make a duplicate.
    """
    rig = scene.rig
    draft = await _begun(scene, "one")
    for call, text in ((rig.channel.edit_draft, "one two"), (rig.channel.send, "one two three")):
        await rig.cause(Trouble.ANSWER_LOST)
        error = await scene.fails(call(_message(scene, text, draft)))
        require(isinstance(error, NotSent), f"it may be repeated freely (NotSent), not {error!r}")
        await rig.calm()
    await _finished(scene, draft, "one two three")


@check("IO-5", Offer.DRAFTS, Trouble.ANSWER_LOST)
async def a_first_post_whose_answer_is_lost_is_maybe_sent(scene: Scene) -> None:
    """Check that a first post whose answer is lost raises ``MaybeSent``.

    Its id is lost: either the channel finds the draft, or the reply is a new message.
    """
    rig = scene.rig
    before = (await arrives(scene, "before")).id
    await rig.cause(Trouble.ANSWER_LOST)
    error = await scene.fails(rig.channel.post_draft(_message(scene, "one")))
    require(isinstance(error, MaybeSent), f"it is MaybeSent, not {error!r}")
    await rig.calm()
    for lost in (LostDraft(RUN, before), LostDraft(OTHER_RUN, before)):
        look = rig.channel.find_draft(rig.ann, lost, before=None, known={before})
        found = await scene.call(look)
        require(found is None or lost.run_id == RUN, "no other run's draft is taken for it")
        if found is not None:
            await scene.call(rig.channel.send(_message(scene, "one two three", found)))
            seen = sorted(texts(scene))
            require(seen == ["before", "one two three"], f"people see the reply once, not {seen}")
    await arrives(scene, "next")


@check("IO-4", Offer.DRAFTS)
async def a_long_draft_stays_one_message(scene: Scene) -> None:
    """Check that a long draft stays one message.

    The draft shows as much as fits; a blank beginning is shown in some form.
    """
    rig = scene.rig
    draft = await scene.call(rig.channel.post_draft(_message(scene, "")))
    await shown(scene, rig.ann, draft)
    for text in ("word " * 3_000, "*[`<" * 2_000, "\ud83d\x00"):
        await scene.call(rig.channel.edit_draft(_message(scene, text, draft)))
    await _finished(scene, draft, "short")


@check("CMD-3", Offer.DRAFTS)
async def a_draft_that_nobody_finishes_is_closed_by_the_end_of_its_run(scene: Scene) -> None:
    """Check that the end of a run closes its unfinished draft.

    The draft is marked or removed; repeated end signals send no other message.
    """
    rig = scene.rig
    for outcome in Outcome:
        before = len(texts(scene))
        scene.call_sync(rig.channel.signal, RunStarted(RUN, rig.ann))
        draft = await _begun(scene, f"one {outcome}")
        ended = RunEnded(RUN, rig.ann, outcome, draft=draft, shown=f"one {outcome}")
        for _ in range(2):
            scene.call_sync(rig.channel.signal, ended)
        scene.call_sync(rig.channel.signal, replace(ended, draft="no id of ours"))
        await arrives(scene, f"next {outcome}")
        require(len(texts(scene)) <= before + 2, f"no message comes by itself: {texts(scene)}")
