"""What comes in through Telegram, over both libraries, by long polling and by webhook.

Everything runs against a strict Bot API emulator; the updates are its own. ``tests/unit/channels``
has every shape that an update can have, and every kind of trouble.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from channels.telegram.inbound.reader import KINDS
from channels.telegram.settings import Library
from channels.telegram.webhook import SECRET_HEADER, secret_of
from goclaw_py.core.errors import ChannelError, ChannelRefused
from goclaw_py.core.ids import RunId
from goclaw_py.core.messages import (
    Button,
    ChatMigrated,
    ChatReached,
    OutboundMessage,
    PeerKind,
    Target,
)
from goclaw_py.core.outcomes import Outcome
from goclaw_py.core.run_events import RunEnded, RunStarted
from goclaw_py.scheduler.views import ChannelState
from tests.botapi import BotApi, Fault, FaultKind
from tests.botapi.files import FileKind as StoredKind
from tests.botapi.people import OTHER
from tests.botapi.server import TOKEN
from tests.support.bot_clients import connected as client_over
from tests.support.telegram import (
    ANN,
    BEN,
    CHAT,
    GROUP,
    PATH,
    TOPIC,
    Line,
    Mode,
    connected,
    eventually,
    reply,
)

pytestmark = pytest.mark.real_time
pytest_plugins = ["tests.support.telegram_fixtures"]


async def test_messages_come_in_and_are_confirmed(line: Line) -> None:
    """SPEC IO-1."""
    api, inbox = line.api, line.inbox
    api.say(ANN, "before the start")
    async with line.receiving():
        await inbox.until_accepted("before the start")
        await line.ready()
        api.skip(5)
        api.say(ANN, "/stop@goclawtestbot now", username="ann")
        await inbox.until_accepted("/stop@goclawtestbot now")
        await api.wait_confirmed()
    assert [m.redelivered for m in inbox.messages] == [True, False]
    assert [m.external_id for m in inbox.messages] == ["7:4242:1", "7:4242:2"]
    assert line.channel.handle == "GoclawTestBot"
    assert line.channel.health.detail == ""
    await eventually(lambda: api.world.commands)
    assert {str(c["command"]) for c in api.world.commands} >= {"stop", "stopall", "status"}


async def test_a_chat_keeps_its_order(line: Line) -> None:
    """SPEC IO-2, IO-4: also with deliveries that fail, come late or come twice."""
    for kind in (FaultKind.RESET_AFTER, FaultKind.RESET, FaultKind.DELAY):
        for method in ("getUpdates", "webhook"):
            line.api.fault(Fault(method, kind, seconds=0.1))
    line.api.double(3)
    line.api.shuffle(20)
    async with line.receiving():
        for number in range(60):
            line.api.say(ANN + number % 3, f"{number:02}")
        await line.inbox.until(lambda: len(set(line.inbox.texts)) == 60)
        await line.api.wait_confirmed()
    for chat in range(ANN, ANN + 3):
        mine = [m.text for m in line.inbox.messages if m.target.chat == str(chat)]
        assert list(dict.fromkeys(mine)) == sorted(set(mine))
    ids = {(m.external_id, m.text) for m in line.inbox.messages}
    assert len(ids) == 60, "a message that comes again has the same id"


async def buttoned(line: Line) -> int:
    """A message with a button, in ann's chat."""
    line.api.say(ANN, "hello")
    await line.inbox.until_accepted("hello")
    message = OutboundMessage(CHAT, "x", buttons=((Button("Go", "g"),),))
    return int((await line.channel.send(message)).rpartition(":")[2])


async def answered_after(line: Line) -> float:
    """How long the first press waited."""
    await eventually(lambda: line.api.presses()[0].waited_s is not None)
    return line.api.presses()[0].waited_s or 0.0


async def test_a_press_comes_in_and_is_answered_within_two_seconds(line: Line) -> None:
    """SPEC CHAN-6, IO-1."""
    async with line.receiving():
        number = await buttoned(line)
        line.api.fault(Fault("answerCallbackQuery", FaultKind.RESET))
        press = line.api.press(ANN, number, "g")
        await line.inbox.until_accepted("Go")
        assert await answered_after(line) < 2
    (pressed,) = [m for m in line.inbox.messages if m.press is not None]
    assert (pressed.press, pressed.external_id) == ("g", f"press:4242:{press}")
    assert pressed.reply_to == f"4242:{number}"


async def test_a_press_is_answered_within_two_seconds_while_everything_else_hangs(
    line: Line,
) -> None:
    """SPEC CHAN-6, IO-4."""
    for method in ("sendChatAction", "setMessageReaction", "sendMessage", "getFile"):
        line.api.fault(Fault(method, FaultKind.HANG, count=100))
    async with line.receiving():
        line.api.say(ANN, "hello")
        await line.inbox.until_accepted("hello")
        for chat in range(ANN, ANN + 20):
            target = replace(CHAT, chat=str(chat))
            line.channel.signal(RunStarted(RunId(str(chat)), target))
            line.channel.signal(RunEnded(RunId("x"), target, Outcome.FAILED, ("1",)))
        await line.api.wait_calls("sendChatAction", 4)
        await line.api.wait_calls("setMessageReaction", 2)
        line.api.press(ANN, 1, "g")
        assert await answered_after(line) < 2


async def test_a_press_is_answered_after_a_restart_too(line: Line) -> None:
    """SPEC IO-2: the process died after the commit, before the answer."""
    async with line.receiving():
        number = await buttoned(line)
        await line.api.wait_confirmed()
        line.api.fault(Fault("answerCallbackQuery", FaultKind.HANG, count=9))
        line.inbox.takes_s = 0.2
        line.api.press(ANN, number, "g")
        await line.inbox.until_offered("Go")
    assert line.api.presses()[0].waited_s is None
    line.api.clear_faults()
    line.api.repeat()
    async with line.receiving():
        await answered_after(line)
    assert {m.external_id for m in line.inbox.messages if m.press} == {
        f"press:4242:{line.api.presses()[0].id}"
    }


TEAM = Target("telegram", "default", str(GROUP))


async def test_edits_quotes_and_albums_name_what_they_belong_to(line: Line) -> None:
    """SPEC CHAN-6, IO-1."""
    async with line.receiving():
        number = line.api.say(ANN, "one two thre")[0]["message_id"]
        assert isinstance(number, int)
        await line.inbox.until_accepted("one two thre")
        line.api.edit(ANN, number, "one two three")
        line.api.say(ANN, "what?", reply_to=number, quote="two")
        line.api.say(ANN, "all of it", reply_to=number)
        line.api.album(ANN, [StoredKind.PHOTO] * 3, caption="the trip")
        await line.inbox.until(lambda: len(line.inbox.messages) == 7)
    first, second, what, whole, *album = line.inbox.messages
    assert second.edits == first.external_id == f"7:4242:{number}"
    assert second.external_id.startswith(f"7:4242:{number}:")
    assert second.message_id == first.message_id
    assert (first.reply_to, first.quote) == (None, "")
    assert (what.reply_to, what.quote) == (f"4242:{number}", "two")
    assert (whole.reply_to, whole.quote) == (f"4242:{number}", "one two three")
    assert [one.text for one in album] == ["the trip", "", ""]
    assert len({one.album for one in album} - {None}) == 1
    assert len({one.attachments[0].ref for one in album}) == 3


async def test_each_topic_is_a_place_of_its_own_and_general_is_the_group(line: Line) -> None:
    """SPEC CHAN-6, IO-7: private chats may have topics, too."""
    line.api.add_group(GROUP, "Team", topics=[TOPIC])
    async with line.receiving():
        line.api.say(ANN, "in the topic", chat_id=GROUP, thread=TOPIC)
        line.api.say(ANN, "in general", chat_id=GROUP)
        line.api.say(ANN, "in private")
        line.api.open_topic(ANN, 88)
        line.api.say(ANN, "in a private topic", thread=88)
        await line.inbox.until(lambda: len(line.inbox.messages) == 4)
    assert {m.text: (m.peer, m.target.thread) for m in line.inbox.messages} == {
        "in the topic": (PeerKind.GROUP, str(TOPIC)),
        "in general": (PeerKind.GROUP, None),
        "in private": (PeerKind.DIRECT, None),
        "in a private topic": (PeerKind.DIRECT, "88"),
    }
    assert {m.reply_to for m in line.inbox.messages} == {None}


async def test_in_groups_only_what_is_meant_for_us_is_addressed(line: Line) -> None:
    """SPEC CHAN-5."""
    line.api.add_group(GROUP, "Team")
    said = {
        "hello all": False,
        "what now, @GoclawTestBot": True,
        "/stop": True,
        "/stop@OtherBot": False,
        "ask @GoclawTestBot2": False,
    }
    async with line.receiving():
        for text in said:
            line.api.say(ANN, text, chat_id=GROUP)
        await line.inbox.until(lambda: len(line.inbox.messages) == len(said))
    assert [m.addressed for m in line.inbox.messages] == list(said.values())


async def test_unsupported_kinds_are_told_in_plain_words(polling: Line) -> None:
    """SPEC CHAN-6."""
    async with polling.receiving():
        for content in OTHER.values():
            polling.api.send_other(ANN, dict(content))
        await polling.inbox.until(lambda: len(polling.inbox.messages) == len(OTHER))
    assert all(m.unsupported or m.text for m in polling.inbox.messages)
    assert not any(m.attachments for m in polling.inbox.messages)


async def test_a_malformed_update_leaves_a_trace_and_the_next_one_is_taken(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    async with line.receiving():
        line.api.push({"brand_new_kind": {"id": 5}})
        updates: list[dict[str, object]] = [
            {"message": {"message_id": 1, "date": 1, "text": "no chat"}},
            {"message": None},
            {"stopped_message_generation": {"chat": {"id": ANN, "type": "private"}}},
        ]
        malformed = [line.api.push(update) for update in updates]
        line.api.say(BEN, "next")
        await line.inbox.until_accepted("next")
        await line.api.wait_confirmed()
    assert line.inbox.texts == ["next"]
    traces = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert {trace.getMessage() for trace in traces} == {"update_malformed"}
    assert sorted(vars(trace)["update_id"] for trace in traces) == malformed


async def test_what_happens_to_chats_is_told(line: Line) -> None:
    """SPEC CHAN-7: groups that move, groups that throw us out, people who block us."""
    line.api.add_group(GROUP, "Team")
    line.api.add_group(-500, "Team", kind="group")
    async with line.receiving():
        line.api.say(ANN, "hello")
        line.api.block(ANN)
        await line.inbox.until(lambda: len(line.inbox.reached) == 1)
        line.api.unblock(ANN)
        await line.inbox.until(lambda: len(line.inbox.reached) == 2)
        line.api.kick(GROUP)
        await line.inbox.until(lambda: len(line.inbox.reached) == 3)
        line.api.invite(GROUP)
        await line.inbox.until(lambda: len(line.inbox.reached) == 4)
        line.api.migrate(-500, -1009)
        await line.inbox.until(lambda: len(line.inbox.moves) == 2)
    blocked, *others = line.inbox.reached
    ann = Target("telegram", "default", str(ANN))
    assert blocked == ChatReached(ann, PeerKind.DIRECT, "the bot was blocked", "Ann")
    assert [(one.target, bool(one.gone)) for one in others] == [
        (ann, False),
        (TEAM, True),
        (TEAM, False),
    ]
    assert set(line.inbox.moves) == {ChatMigrated("telegram", "default", "-500", "-1009")}


async def test_of_two_pollers_the_older_one_steps_back(
    polling: Line, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC CHAN-8."""
    api = polling.api
    async with polling.receiving() as task:
        await polling.ready()
        async with client_over(polling.library, api.url) as other:
            assert await other.get_updates(offset=None, wait_s=0, kinds=["message"]) == []
            await eventually(lambda: polling.channel.health.detail)
            assert "another program takes this bot's updates" in polling.channel.health.detail
            await asyncio.wait({task}, timeout=0.2)
            assert not task.done()
            assert api.counts()["getUpdates"] == 3, "it must not fight for the updates"
    (warning,) = [vars(r)["warning"] for r in caplog.records if r.msg == "channel_outage_started"]
    assert "another program takes this bot's updates" in warning


async def test_a_webhook_that_is_set_meanwhile_is_removed(polling: Line) -> None:
    """SPEC CHAN-8."""
    async with polling.receiving():
        await polling.ready()
        polling.api.set_webhook("https://old.example/hook")
        polling.api.say(ANN, "one")
        await polling.inbox.until_accepted("one")
    assert polling.api.world.webhook == ""


async def test_a_new_token_in_its_file_is_taken_without_a_restart(
    api: BotApi, library: Library, tmp_path: Path
) -> None:
    """SPEC CHAN-8."""
    file = tmp_path / "token"
    file.write_text("4242:AAanother-token-than-the-right-one")
    async with connected(api, library, token=None, token_file=str(file)) as line:
        async with line.receiving() as task:
            await eventually(lambda: line.channel.health.state is ChannelState.UNAUTHORIZED)
            file.write_text(api.token)
            await asyncio.wait({task}, timeout=8)
            task.result()
        api.say(ANN, "one")
        async with line.receiving():
            await line.inbox.until_accepted("one")
        assert await line.channel.send(reply())


async def test_the_token_is_in_no_log_and_no_error(
    line: Line, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC CHAN-8: what the channel logs; for calls see ``test_telegram_secrecy.py``."""
    caplog.set_level(logging.DEBUG)
    errors: list[str] = []
    line.api.say(ANN, "hello")
    kinds = (FaultKind.BROKEN_AFTER, FaultKind.RESET, FaultKind.PAGE, FaultKind.HANG)
    for kind in kinds:
        line.api.fault(Fault("sendMessage", kind, seconds=0.5))
    for method in ("getMe", "getUpdates", "setWebhook"):
        line.api.fault(Fault(method, FaultKind.PAGE))
        line.api.fault(Fault(method, FaultKind.BROKEN_AFTER))
    async with line.receiving():
        for _ in kinds:
            with pytest.raises(ChannelError) as caught:
                await line.channel.send(reply())
            error = caught.value
            errors.append(f"{error!r} {error.__cause__!r} {error.__context__!r}")
        await line.inbox.until_accepted("hello")
    line.api.revoke()
    monkeypatch.setattr("channels.telegram.adapter._REFUSED_FOR_S", 0.0)
    with pytest.raises(ChannelRefused) as refused:
        await line.channel.receive(line.inbox)
    secret = line.api.token.partition(":")[2]
    assert secret not in caplog.text
    assert secret not in str([vars(record) for record in caplog.records])
    assert secret not in str([*errors, repr(refused.value)])


MB = 1 << 20


def update(text: str) -> bytes:
    ann = {"id": ANN, "is_bot": False, "first_name": "Ann"}
    chat = {"id": ANN, "type": "private", "first_name": "Ann"}
    message = {"message_id": 900, "date": 1_790_000_000, "chat": chat, "from": ann, "text": text}
    return orjson.dumps({"update_id": 900, "message": message})


async def test_the_webhook_is_set_with_secret_kinds_and_connections(
    api: BotApi, library: Library
) -> None:
    async with connected(api, library, Mode.WEBHOOK, webhook_connections=17) as line:
        async with line.receiving():
            await line.ready()
        (call,) = api.transcript("setWebhook", ok=True)
        assert call.parameters == {
            "url": f"http://127.0.0.1:{line.port}{PATH}",
            "max_connections": 17,
            "allowed_updates": list(KINDS),
            "drop_pending_updates": False,
            "secret_token": secret_of(TOKEN),
        }
        assert api.counts().get("getUpdates", 0) == 0


async def test_polling_and_webhook_take_turns_without_losing_anything(
    api: BotApi, library: Library
) -> None:
    """Changing the setting is enough; the other way is removed."""
    api.say(ANN, "0")
    for number, mode in enumerate([Mode.WEBHOOK, Mode.POLLING, Mode.WEBHOOK, Mode.POLLING]):
        async with connected(api, library, mode) as line, line.receiving():
            await line.inbox.until_accepted(str(number))
            await api.wait_confirmed()
        api.say(ANN, str(number + 1))


async def begin_to_post(line: Line, length: int) -> int:
    """The status of the answer to a request of which only the beginning has been sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
    head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n"
    writer.write(f"{head}{SECRET_HEADER}: {secret_of(TOKEN)}\r\n\r\n".encode() + b"x" * 1000)
    status = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
    assert await reader.read() == b"the body is longer than 1048576 bytes"
    writer.close()
    await writer.wait_closed()
    return status


async def test_strangers_are_refused_and_do_not_fill_the_log(
    hooked: Line, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC SEC-1: one line tells of all of them; more of them could fill the disk."""
    one, secret = update("one"), secret_of(TOKEN)
    async with hooked.receiving():
        await hooked.ready()
        caplog.clear()
        caplog.set_level(logging.INFO)
        for path in ("/", "/hooks", f"{PATH}/", f"{PATH}x", "/hooks/../hooks/x", "//"):
            assert await hooked.post(one, path=path) == 404
        for forged in ("", "x", secret[:-1], secret + "0", secret.upper()):
            assert await hooked.post(update("/stopall"), secret=forged) == 403
        for method in ("GET", "PUT", "DELETE", "OPTIONS"):
            assert await hooked.post(one, method=method) == 405
        for body in (b"", b"{", b"hello", b"\xff\xfe\x00", b"[" * 50_000):
            assert await hooked.post(body) == 400
        assert await begin_to_post(hooked, 5 * MB) == 413
        assert hooked.inbox.offered == []
        assert await hooked.post(one) == 200
    assert hooked.inbox.texts == ["one"]
    assert [record.getMessage() for record in caplog.records] == ["webhook_wrong_secret"]
