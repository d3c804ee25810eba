"""The suite for channels finds what is wrong with a channel (SPEC CHAN-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from goclaw_py.core.errors import NotSent
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.testing.conformance import (
    CHECKS,
    Check,
    ContractViolation,
    Rig,
    SeenMessage,
    checks_for,
)
from goclaw_py.testing.conformance.check import add, check
from tests.support.channel_rigs import RecordingRig, recording
from tests.unit.testing import faulty_channels as faulty
from tests.unit.testing.faulty_channels import changing, cutting, raising

Make = Callable[[], RecordingChannel]

FAULTS: list[tuple[Make, str, str]] = [


    (changing(lambda m: replace(m, text=m.text.strip("\n").replace("\n\n", " "))),
     "a received message has every field", "reaches the intake"),
    (changing(lambda m: replace(m, sent_at=m.sent_at.replace(tzinfo=None))),
     "a received message has every field", "aware of its zone"),
    (changing(lambda m: replace(m, target=replace(m.target, channel="other"))),
     "only what the runtime knows is handed over", "names its channel"),
    (changing(lambda m: replace(m, external_id=m.target.chat)),
     "different messages have different external ids", "six external ids"),
    (changing(lambda m: replace(m, external_id=f"{next(faulty._numbers)}")),
     "a message that is delivered twice has one external id", "same external id"),
    (changing(lambda m: replace(m, external_id=f"{next(faulty._numbers)}")),
     "another process gets what this one did not confirm", "same for every process"),
    (changing(lambda m: replace(m, redelivered=False)),
     "what another process may have seen is marked", "marked as redelivered"),
    (changing(lambda m: replace(m, redelivered=True)),
     "what another process may have seen is marked", "a message that is new is not"),
    (faulty.ConfirmsEarly, "nothing is confirmed before the intake returned",
     "the server keeps the message"),
    (faulty.ConfirmsEarly, "what was not committed when receive was cancelled comes again",
     "what is confirmed was committed"),
    (faulty.ConfirmsEarly, "a bug of the intake loses nothing", "is not confirmed"),
    (faulty.ForgetsWhatTheStoreRefused, "what could not be committed is offered again",
     "is offered again"),
    (faulty.ForgetsWhatWasCancelled,
     "what was not committed when receive was cancelled comes again", "reaches the intake"),
    (faulty.WaitsForTheStore, "what comes while nothing can be committed is offered too", "/stop"),
    (faulty.MixesUp, "messages of a chat arrive in order", "in order"),
    (faulty.LeavesATask, "receive ends when it is cancelled and can begin again",
     "leaves no task behind"),
    (faulty.EndsWhenCancelledWithoutAWord, "receive ends when it is cancelled and can begin again",
     "until it is cancelled"),
    (faulty.DiesOfTheStore, "what could not be committed is offered again",
     "receive ended by itself: OSError"),
    (faulty.IsNeverRefused, "receive ends when the server does not accept us",
     "comes back in time"),


    (faulty.SendsTwice, "two messages are two in their order", "each arrives once"),
    (faulty.HasOneId, "two messages are two in their order", "two ids"),
    (faulty.Trims, "a plain text is shown as it stands", "as it stands"),
    (faulty.HasOneSender, "a chat that hangs delays no other", "comes back in time"),
    (raising(OSError), "a message that certainly did not leave is not sent", "only ChannelErrors"),
    (raising(NotSent), "a message whose answer is lost is maybe sent", "is MaybeSent"),
    (raising(NotSent), "a message that came too soon says how long to wait", "is RateLimited"),
    (raising(NotSent), "a message that is never accepted is undeliverable", "is Undeliverable"),
    (raising(NotSent), "sending to a deleted chat raises chat gone", "is ChatGone"),
    (raising(NotSent), "a chat that moved tells where to", "is ChatMoved"),
    (raising(NotSent), "a refused account raises channel refused", "is ChannelRefused"),
    (faulty.ClaimsToHaveSent, "a message that certainly did not leave is not sent",
     "raises a ChannelError"),
    (faulty.SwallowsCancellation, "a send that is cancelled ends and the next one arrives",
     "not swallowed"),


    (cutting(lambda text: [text[:4096]]), "a reply arrives whole: a long one", "every letter"),
    (cutting(str.splitlines), "a reply arrives whole: one with Markdown", "no part is blank"),
    (cutting(lambda text: ["\u200b"]), "of a blank reply nothing is left", "no blank message"),
    (cutting(lambda text: []), "a reply arrives whole: a short one", "something of it is left"),
    (faulty.HidesWhatItShows, "a reply arrives whole: a long one", "what is readable"),
    (cutting(faulty.never_the_same), "a reply arrives whole: a short one", "in the same way"),


    (faulty.PostsEveryEdit, "a reply grows in one message", "shows all so far"),
    (faulty.FinishesBeside, "a reply grows in one message", "keeps its id"),
    (faulty.LosesWithTheDraft, "a draft that is gone is sent as a new message", "an id of its own"),
    (faulty.DoubtsEdits, "an edit whose answer is lost is not sent", "NotSent"),
    (faulty.HidesItsDrafts, "where drafts are offered they may be shown", "is True"),
    (faulty.AnswersTheEndOfARun, "a draft that nobody finishes is closed by the end of its run",
     "no message comes by itself"),


    (faulty.LeavesHalfAFile, "a download that is cancelled leaves nothing", "nothing is left"),
    (faulty.LeavesHalfAFile, "a download that fails can be repeated", "nothing is left"),
    (faulty.FetchesHalf, "a file that came in is fetched byte for byte", "byte for byte"),
    (faulty.DropsFiles, "a file arrives byte for byte with its text", "byte for byte"),
    (faulty.TriesAMissingFileAgain, "a file that is missing is undeliverable", "is Undeliverable"),
    (faulty.StumblesOverAnUnknownFile, "a file that is unknown never comes", "only ChannelErrors"),


    (faulty.KeepsTypingForEver, "signals after the end do no harm", "leaves no task behind"),
    (faulty.KeepsTypingForEver, "close leaves nothing behind and may be called twice",
     "leaves no task behind"),
    (faulty.SendsAfterClose, "after close nothing is sent", "but it returned"),
    (faulty.HasNoPace, "its rate limits are valid", "a gap of -1"),
    (faulty.RenamesItself, "its names never change", "same while it receives"),
    (faulty.SendsItsAtSign, "its handle is a bare word and stays", "a word without @"),
    (faulty.Hooked, "where no hook is offered there is none", "hook is None"),
]  # fmt: skip


def ids(fault: tuple[Make, str, str]) -> str:
    return f"{getattr(fault[0], '__name__', '')}-{fault[1]}"


@pytest.mark.parametrize("fault", FAULTS, ids=ids)
async def test_a_broken_promise_is_found(fault: tuple[Make, str, str]) -> None:
    make, name, words = fault
    async with recording(make) as rig:
        with pytest.raises(ContractViolation, match=words):
            await CHECKS[name](rig)


@pytest.mark.parametrize(
    ("make", "name", "error"),
    [
        (cutting(faulty.refusing_odd), "a reply arrives whole: one with lone surrogates",
         UnicodeEncodeError),
        (faulty.StumblesOverASignal, "signals of any kind and order return at once",
         UnicodeEncodeError),
        (faulty.ClosesOnce, "close leaves nothing behind and may be called twice", RuntimeError),
        (faulty.EditsOnce, "an edit can be repeated", NotSent),
    ],
)  # fmt: skip
async def test_an_error_that_must_not_come_is_shown_as_it_is(
    make: Make, name: str, error: type[Exception]
) -> None:
    async with recording(make) as rig:
        with pytest.raises(error):
            await CHECKS[name](rig)


@pytest.mark.parametrize(
    ("make", "error"),
    [(faulty.OpenDoor, ContractViolation), (faulty.BreakingDoor, UnicodeEncodeError)],
)
async def test_a_hook_that_lets_strangers_in_or_breaks_is_found(
    make: Make, error: type[Exception]
) -> None:
    async with recording(make) as rig:
        with pytest.raises(error):
            await CHECKS["a hook refuses strangers"](rig)
    async with recording(faulty.Hooked) as rig:
        await CHECKS["a hook refuses strangers"](rig)


async def test_a_hook_that_is_offered_and_not_there_is_found() -> None:
    async with recording() as rig:
        with pytest.raises(ContractViolation, match="has one"):
            await CHECKS["a hook refuses strangers"](rig)


async def test_a_hook_that_takes_what_nobody_receives_is_found() -> None:
    class Lax(RecordingRig):
        def unconfirmed(self) -> int:
            return 0

    rig = Lax()
    with pytest.raises(ContractViolation, match="not confirmed"):
        await CHECKS["a hook takes nothing while nobody receives"](rig)
    await rig.close()


async def test_a_kind_that_takes_any_key_is_found() -> None:
    async with recording() as rig:
        rig.kind = faulty.CarelessKind()
        with pytest.raises(ContractViolation, match="unknown key"):
            await CHECKS["an unknown setting is named in the error"](rig)
        rig.kind = None
        with pytest.raises(ContractViolation, match="has a kind"):
            await CHECKS["an unknown setting is named in the error"](rig)


async def test_a_file_over_the_limit_that_is_fetched_is_found() -> None:
    async with recording() as rig:
        rig.largest_file = 100
        with pytest.raises(ContractViolation, match="but it returned"):
            await CHECKS["a file over the limit is not fetched"](rig)


async def test_drafts_and_files_that_are_not_offered_are_found() -> None:
    async with recording() as rig:
        with pytest.raises(ContractViolation, match="is False"):
            await CHECKS["a channel without drafts refuses them"](rig)
    async with recording(faulty.DropsFiles) as rig:
        with pytest.raises(ContractViolation, match="read its name"):
            await CHECKS["a file that cannot be sent is not lost in silence"](rig)


class BareRig(Rig):
    """No more than a rig must have."""

    channel = RecordingChannel()
    ann = Target("telegram", "default", "ann")
    ben = Target("telegram", "default", "ben")

    def say(self, chat: Target, text: str) -> None:
        """Nobody hears it."""

    def unconfirmed(self) -> int:
        return 0

    def seen(self, chat: Target) -> list[SeenMessage]:
        return []

    async def restart(self) -> None:
        """It never stops."""


def test_what_applies_follows_from_what_a_rig_offers() -> None:
    bare, whole = set(checks_for(BareRig)), set(checks_for(RecordingRig))
    assert len(bare) >= 40
    names = {str(check) for check in whole - bare}
    assert "a reply grows in one message" in names
    assert "a chat that moved tells where to" in names
    assert {str(check) for check in bare - whole} == {
        "a file that cannot be sent is not lost in silence",
        "a channel without drafts refuses them",
    }
    applied = {str(check) for check in bare | whole}
    assert CHECKS.keys() - applied == {
        "a file over the limit is not fetched",
        "a hook refuses strangers",
        "a hook takes nothing while nobody receives",
        "an unknown setting is named in the error",
    }


async def test_a_rig_that_offers_what_it_has_not_is_told_so() -> None:
    rig = BareRig()
    for call in (
        rig.say_again,
        lambda: rig.say_file(rig.ann, b""),
        lambda: rig.delete(rig.ann, ""),
    ):
        with pytest.raises(NotImplementedError):
            call()
    for work in (rig.cause(next(iter(RecordingRig.troubles))), rig.calm()):
        with pytest.raises(NotImplementedError):
            await work


def test_two_checks_of_one_name_are_refused() -> None:
    (one, *_) = CHECKS.values()
    with pytest.raises(ValueError, match="already"):
        add(one)
    assert check("CHAN-1").__name__ == "make"


async def test_a_check_leaves_the_loop_as_it_was() -> None:
    loop = asyncio.get_running_loop()
    made: list[str] = []

    def factory(
        loop: asyncio.AbstractEventLoop, work: object, **options: object
    ) -> asyncio.Future[object]:
        made.append("task")
        return asyncio.Task(work, loop=loop, **options)  # type: ignore[arg-type]  # as asyncio does

    loop.set_task_factory(factory)  # type: ignore[arg-type]  # asyncio's own type is private
    async with recording() as rig:
        await CHECKS["two messages are two in their order"](rig)
    assert loop.get_task_factory() is factory
    assert len(made) >= 3
    loop.set_task_factory(None)


async def test_without_a_person_to_be_heard_the_checks_of_receiving_fail() -> None:
    rig = BareRig()
    failed = 0
    for one in checks_for(BareRig):
        rig.channel = RecordingChannel()
        failed += await fails(one, rig)
    assert failed >= 30


async def fails(one: Check, rig: Rig) -> bool:
    try:
        await one(rig)
    except ContractViolation:
        return True
    return False


async def test_a_message_that_waits_for_ever_is_found() -> None:
    async with recording() as rig:
        rig.channel.block("ann")
        with pytest.raises(ContractViolation, match="comes back in time"):
            await CHECKS["a plain text is shown as it stands"](rig)
    assert rig.channel.attempts == [OutboundMessage(rig.ann, "hello")]
