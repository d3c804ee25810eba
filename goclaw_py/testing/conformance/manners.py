"""Checks of what the runtime always relies on: signals, names, pace, ``close``, the hook."""

from __future__ import annotations

import asyncio
import math
import re
import time
from dataclasses import replace
from itertools import permutations

from goclaw_py.chat.channel import WebRequest
from goclaw_py.core.errors import MaybeSent, SettingError
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import OutboundMessage, Target
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import (
    RunEnded,
    RunSignal,
    RunStarted,
    RunText,
    RunTool,
    RunWaiting,
    RunWaits,
)
from goclaw_py.scheduler.views import HEALTHY, ChannelHealth
from goclaw_py.testing.conformance.check import check
from goclaw_py.testing.conformance.rig import Offer, Rig
from goclaw_py.testing.conformance.scene import HOLD_S, Scene, require
from goclaw_py.testing.conformance.sending import arrives

_AT_ONCE_S = 0.5
"""The longest time that "returns at once" allows on a busy machine."""
_PATH = re.compile(r"/[A-Za-z0-9._/-]*")
_HEADERS: list[dict[str, str]] = [
    {},
    {"authorization": "Bearer x", "content-type": "application/json"},
]
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


# ---------------------------------------------------------------------------- signals


def _places(rig: Rig) -> list[Target]:
    ann = rig.ann
    return [
        ann,
        replace(ann, thread="17"),
        replace(ann, chat="nobody"),
        replace(ann, chat="\ud83d"),
    ]


def _signals(place: Target, run: RunId) -> list[RunSignal]:
    numbers = ("1", "no id of ours", "")
    return [
        RunWaits(run, place, numbers),
        RunStarted(run, place, numbers),
        RunText(run, place, "some \ud83d <b>text"),
        RunEnded(run, place, Outcome.COMPLETED, numbers),
    ]


def _send_all_signals(scene: Scene) -> None:
    """Send signals in every order, to known and unknown chats, each run with its own id."""
    channel = scene.rig.channel
    for number, place in enumerate(_places(scene.rig)):
        for order in permutations(range(4)):
            signals = _signals(place, RunId(f"run-{number}-{order}"))
            for index in order:
                scene.call_sync(channel.signal, signals[index])
        for outcome in Outcome:
            run = RunId(f"run-{number}-{outcome}")
            scene.call_sync(channel.signal, RunStarted(run, place, ("1",)))
            for ok in (None, True, False):
                scene.call_sync(channel.signal, RunTool(run, place, "a \ud83d tool", ok))
            for line in ("⏳ \ud83d …", ""):
                scene.call_sync(channel.signal, RunWaiting(run, place, line))
            ended = RunEnded(run, place, outcome, ("1", "2"), draft="no id", shown="*a* \ud83d")
            scene.call_sync(channel.signal, ended)
            scene.call_sync(channel.signal, ended)


@check("CHAN-1")
async def signals_of_any_kind_and_order_return_at_once(scene: Scene) -> None:
    """Check that signals return at once before, during and after receiving.

    A signal must not make a run fail.
    """
    for _ in range(2):
        began = time.perf_counter()
        _send_all_signals(scene)
        took = time.perf_counter() - began
        require(took < _AT_ONCE_S, f"telling some hundred signals took {took:.1f} s")
        async with scene.receiving():
            # Tasks of the channel, if any, must not fail because of the signals.
            await asyncio.sleep(HOLD_S)
        await arrives(scene, "through")


@check("CHAN-1")
async def signals_after_the_end_do_no_harm(scene: Scene) -> None:
    """Check that signals after ``close`` do no harm, because runs may outlive their channel."""
    scene.call_sync(scene.rig.channel.signal, RunStarted(RunId("r"), scene.rig.ann, ("1",)))
    await scene.call(scene.rig.channel.close())
    _send_all_signals(scene)
    await asyncio.sleep(HOLD_S)
    scene.nothing_left("a signal after close")


# ---------------------------------------------------------------------------- the end


@check("CHAN-1")
async def close_leaves_nothing_behind_and_may_be_called_twice(scene: Scene) -> None:
    """Check that ``close`` after work, during runs, leaves no task and may be called twice."""
    rig = scene.rig
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_accepted("one")
        await arrives(scene, "two")
        _send_all_signals(scene)
    for _ in range(2):
        await scene.call(rig.channel.close())
        scene.nothing_left("close")


@check("CRON-2")
async def a_chat_can_be_the_target_of_a_job(scene: Scene) -> None:
    """Check that ``chat_problem`` has nothing against a chat that exists, without the network."""
    problem = scene.call_sync(scene.rig.channel.chat_problem, scene.rig.ann.chat)
    require(problem == "", f"the chat {scene.rig.ann.chat!r} is refused: {problem}")


@check("CHAN-1")
async def close_without_any_work_is_quick(scene: Scene) -> None:
    """Check that ``close`` without earlier work is quick.

    A gateway that could not start closes the channels that it has built.
    """
    await scene.call(scene.rig.channel.close())
    scene.nothing_left("close")


@check("IO-5")
async def after_close_nothing_is_sent(scene: Scene) -> None:
    """Check that ``send`` after ``close`` raises a retryable error other than ``MaybeSent``.

    The message waits for the next process and cannot be a duplicate there.
    """
    rig = scene.rig
    await arrives(scene, "before")
    await scene.call(rig.channel.close())
    error = await scene.fails(rig.channel.send(OutboundMessage(rig.ann, "late")))
    require(error.retryable and not isinstance(error, MaybeSent), f"it is NotSent, not {error!r}")
    require(len(rig.seen(rig.ann)) == 1, "nothing arrives after close")
    await rig.restart()
    await arrives(scene, "late")


# ---------------------------------------------------------------------------- names and limits


@check("IO-7")
async def its_names_never_change(scene: Scene) -> None:
    """Check that the names of a channel never change.

    Session keys, leases and database rows contain them.
    """
    rig, channel = scene.rig, scene.rig.channel

    def names_now() -> tuple[object, ...]:
        names = channel.name, channel.account, channel.lease, channel.identity
        return *names, channel.trusted, channel.hook

    names = names_now()
    require(_NAME.fullmatch(channel.name), f"a name is of a-z 0-9 - _, not {channel.name!r}")
    require(channel.account and ":" not in channel.account, "an account has a name without colon")
    require(channel.lease is None or channel.lease, "a lease has a name")
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_accepted("one")
        require(names_now() == names, "they are the same while it receives")
    await scene.call(channel.close())
    require(names_now() == names, "they are the same at the end")
    await rig.restart()
    again = rig.channel
    same = (again.name, again.account, again.lease, again.identity) == names[:4]
    require(same, "and in the next process")


@check("CMD-2")
async def its_handle_is_a_bare_word_and_stays(scene: Scene) -> None:
    """Check that the handle, which ``/stop@handle`` must match, is a word that never changes."""
    rig = scene.rig
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_accepted("one")
        handle = rig.channel.handle
        require(handle is None or re.fullmatch(r"\w+", handle), f"a word without @, not {handle!r}")
        await arrives(scene, "two")
    require(rig.channel.handle == handle, "it stays as it was")


@check("CHAN-1")
async def it_is_connected_while_all_is_well(scene: Scene) -> None:
    """Check that ``health`` is a ``ChannelHealth``, and healthy while receiving works.

    Operators read it; None or a class would be shown to them.
    """
    rig = scene.rig
    health = rig.channel.health
    require(isinstance(health, ChannelHealth), "health is told also before it receives")
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_accepted("one")
        require(rig.channel.health == HEALTHY, f"nothing is wrong, but {rig.channel.health!r}")


@check("IO-4")
async def its_rate_limits_are_valid(scene: Scene) -> None:
    """Check that the rate limits of any chat are valid and share one account limit."""
    account = set()
    for place in _places(scene.rig):
        pace = scene.rig.channel.pace(place.chat)
        require(0 <= pace.gap_s < math.inf, f"a gap of {pace.gap_s} s")
        for limit in (pace.per_minute, pace.account_per_s):
            require(limit is None or limit > 0, f"a limit of {limit} lets nothing pass")
        account.add(pace.account_per_s)
    require(len(account) == 1, f"one limit for the account, not {account}")


@check("CHAN-1")
async def it_says_of_any_chat_whether_it_is_reached(scene: Scene) -> None:
    """Check that ``reaches`` returns a bool for any chat, unknown chats included."""
    for place in _places(scene.rig):
        reached = scene.rig.channel.reaches(place.chat)
        require(isinstance(reached, bool), f"True or False, not {reached!r}")
    require(scene.rig.channel.reaches(scene.rig.ann.chat), "ann can be reached")


@check("CHAN-1", Offer.SETTINGS)
async def an_unknown_setting_is_named_in_the_error(scene: Scene) -> None:
    """Check that an unknown setting raises a ``SettingError`` with its key, before connecting."""
    kind = scene.rig.kind
    require(kind is not None, "a rig that offers settings has a kind")
    if kind is None:
        return
    require(kind.name == scene.rig.channel.name, "kind and channel have one name")
    try:
        kind.build("default", {"no such key": 1})
    except SettingError as error:
        require(error.key == "no such key", f"the error names the key, not {error.key!r}")
    else:
        require(holds=False, what="an unknown key is a SettingError")


# ---------------------------------------------------------------------------- the hook


@check("CHAN-2", without=Offer.HOOK)
async def where_no_hook_is_offered_there_is_none(scene: Scene) -> None:
    """Check that a channel without ``Offer.HOOK`` has no hook.

    Otherwise a rig that forgets to offer it would hide an open endpoint.
    """
    require(scene.rig.channel.hook is None, "hook is None")


@check("SEC-1", Offer.HOOK)
async def a_hook_refuses_strangers(scene: Scene) -> None:
    """Check that a hook refuses any unauthenticated request.

    Requests are sent before, during and after receiving.
    """
    rig = scene.rig
    await _knock(scene)
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_accepted("one")
        await _knock(scene)
    await _knock(scene)
    require(scene.inbox.offered_texts() == ["one"], "nothing of a stranger reaches the intake")


async def _knock(scene: Scene) -> None:
    hook = scene.rig.channel.hook
    require(hook is not None, "a rig that offers a hook has one")
    if hook is None:
        return
    require(_PATH.fullmatch(hook.path), f"a path that a request can have, not {hook.path!r}")
    require(hook.most_bytes > 0, "some body is let in")
    said = b'{"update_id":1,"message":{"message_id":1,"text":"/stopall","chat":{"id":7}}}'
    for method in ("POST", "GET", "PUT", "", "\ud83d"):
        for body in (b"", b"{", b"[]", b"null", said, b"\xff\xfe", b"[" * 50_000):
            for headers in _HEADERS:
                answer = await scene.call(hook.handle(WebRequest(method, headers, body)))
                refused = 400 <= answer.status < 600
                require(refused, f"a stranger's {method} is refused, not answered {answer.status}")


@check("QUEUE-11", Offer.HOOK)
async def a_hook_takes_nothing_while_nobody_receives(scene: Scene) -> None:
    """Check that a hook confirms no message while ``receive`` is not running.

    The server keeps the message and delivers it again.
    """
    rig = scene.rig
    async with scene.receiving():
        rig.say(rig.ann, "one")
        await scene.until_accepted("one")
        await scene.until_confirmed()
    rig.say(rig.ann, "two")
    await asyncio.sleep(HOLD_S)
    require(rig.unconfirmed() == 1, "it is not confirmed")
    require(scene.inbox.offered_texts() == ["one"], "nothing is offered after receive has ended")
    async with scene.receiving():
        await scene.until_accepted("two")
        await scene.until_confirmed()
