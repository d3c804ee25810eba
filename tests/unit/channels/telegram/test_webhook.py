"""``channels.telegram.webhook`` in virtual time, against a scripted client (SPEC CHAN-2)."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from unittest import mock

import pytest

from channels.telegram.client import WebhookState as SetWebhook
from channels.telegram.inbound.reader import KINDS
from channels.telegram.updates import Updates
from channels.telegram.webhook import MOST_BYTES, SECRET_HEADER, WebhookReceiver, secret_of
from goclaw_py.chat.channel import WebAnswer, WebRequest
from goclaw_py.core.errors import ChannelRefused, NotSent, RateLimited, Undeliverable
from goclaw_py.scheduler.views import HEALTHY, ChannelState
from tests.unit.channels.telegram.scripted import (
    BOT,
    SETTINGS,
    TEXT_AT,
    Notebook,
    ScriptedClient,
    logged,
    outage,
    pressed,
    run_for,
    update,
)

URL = "https://bot.example.org/telegram"
OURS = replace(SETTINGS, webhook_url=URL, webhook_connections=12)
SECRET = secret_of(OURS.token)
OTHER = "https://other.example/hook"


def request(
    body: object = None, *, method: str = "POST", secret: str | None = SECRET
) -> WebRequest:
    raw = body if isinstance(body, bytes) else json.dumps(body or update(5)).encode()
    return WebRequest(method, {} if secret is None else {SECRET_HEADER: secret}, raw)


@asynccontextmanager
async def serving(
    client: ScriptedClient, notebook: Notebook | None = None, *, at: float = TEXT_AT
) -> AsyncIterator[WebhookReceiver]:
    hook = WebhookReceiver(OURS, "default", now=lambda: at)
    updates = Updates(client, BOT, "default")
    task = asyncio.create_task(hook.run(client, updates, notebook or Notebook()))
    await asyncio.sleep(0.1)
    try:
        yield hook
    finally:
        task.cancel()
        await asyncio.wait({task})
        await updates.close()
        if not task.cancelled():
            task.result()


async def ask(hook: WebhookReceiver, asked: WebRequest) -> WebAnswer:
    return await hook.hook.handle(asked)


# ---------------------------------------------------------------------------- taking updates


async def test_updates_of_several_chats_are_taken_side_by_side() -> None:
    async with serving(ScriptedClient(), Notebook(takes_s=3)) as hook:
        async with asyncio.timeout(3.1):
            answers = await asyncio.gather(*(ask(hook, request()) for _ in range(40)))
    assert {answer.status for answer in answers} == {200}


async def test_a_press_is_answered_after_the_answer_to_the_server() -> None:
    client = ScriptedClient()
    client.takes_s["answer_press"] = 1.0
    async with serving(client) as hook:
        async with asyncio.timeout(0.1):
            assert (await ask(hook, request(pressed(5)))).status == 200
        await asyncio.sleep(1.5)
    assert [press for _, press in client.presses] == ["press-5"]


async def test_what_is_being_taken_at_the_end_is_taken_and_its_press_answered() -> None:
    """SPEC QUEUE-11: it is confirmed, so nobody else will hear of it."""
    client = ScriptedClient()
    async with serving(client, Notebook(takes_s=1)) as hook:
        answer = asyncio.create_task(ask(hook, request(pressed(5))))
        await asyncio.sleep(0.1)
    assert (await answer).status == 200
    assert [press for _, press in client.presses] == ["press-5"]


async def test_what_takes_too_long_at_the_end_does_not_hold_it_up() -> None:
    async with serving(ScriptedClient(), Notebook(takes_s=100)) as hook:
        answer = asyncio.create_task(ask(hook, request()))
        await asyncio.sleep(0.1)
    assert asyncio.get_running_loop().time() < 3
    answer.cancel()
    await asyncio.wait({answer})


@pytest.mark.parametrize(
    "body", [{"update_id": 5, "new_kind": {}}, {"update_id": 5, "message": 7}, [1], "x", 5]
)
async def test_an_update_that_says_nothing_to_us_is_confirmed(body: object) -> None:
    """It would come again for a day."""
    notebook = Notebook()
    async with serving(ScriptedClient(), notebook) as hook:
        assert (await ask(hook, request(body))).status == 200
    assert notebook.offers == []


@pytest.mark.parametrize("odd", [rb"\ud83d", b"\xff", b"\0", rb"\u0000", b"\xed\xa0\xbd"])
async def test_what_is_no_text_in_a_message_is_no_reason_to_refuse_it(odd: bytes) -> None:
    notebook = Notebook()
    body = json.dumps(update(5, "aXb")).encode().replace(b"aXb", b"a" + odd + b"b")
    async with serving(ScriptedClient(), notebook) as hook:
        assert (await ask(hook, request(body))).status == 200
    assert notebook.texts in ([["a\ufffdb"]], [["a\ufffd\ufffd\ufffdb"]])


async def test_what_was_written_before_the_start_may_have_been_delivered_before() -> None:
    """SPEC CMD-1."""
    notebook = Notebook()
    async with serving(ScriptedClient(), notebook, at=TEXT_AT + 1.5) as hook:
        await ask(hook, request(update(5)))
        await ask(hook, request(update(6, date=TEXT_AT + 2)))
    assert notebook.redelivered() == [[True], [False]]


# ---------------------------------------------------------------------------- refusing


@pytest.mark.parametrize(
    "secret",
    [None, "", "x", SECRET[:-1], SECRET + "x", SECRET.upper(), f"{SECRET}, {SECRET}", "\xe4\u20ac"],
)
async def test_a_wrong_secret_is_refused_whole(secret: str | None) -> None:
    """SPEC CHAN-2."""
    notebook = Notebook()
    async with serving(ScriptedClient(), notebook) as hook:
        assert await ask(hook, request(secret=secret)) == WebAnswer(403)
    assert notebook.offers == []


async def test_calls_with_a_wrong_secret_are_counted_shown_and_logged_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-2: a proxy that removes the header, and strangers, would else go unnoticed."""
    with logged(caplog) as lines:
        async with serving(ScriptedClient()) as hook:
            assert (await ask(hook, request())).status == 200
            assert hook.health == HEALTHY
            await ask(hook, request(secret=None))
            assert hook.health.warning.startswith("1 call of the webhook with a wrong secret")
            for _ in range(600):
                await ask(hook, request(secret="guess"))
                await asyncio.sleep(1)
            told = hook.health
            assert told.warning.startswith("601 calls of the webhook")
            assert "the last 1 s ago" in told.warning
            assert (told.state, told.detail) == (ChannelState.CONNECTED, "")
            await asyncio.sleep(3601)
            assert hook.health == HEALTHY
    assert lines == ["WARNING webhook_wrong_secret"] * 2
    assert "guess" not in caplog.text


async def test_the_secret_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """SPEC CHAN-2, SEC-1."""
    compare = mock.Mock(wraps=hmac.compare_digest)
    monkeypatch.setattr(hmac, "compare_digest", compare)
    async with serving(ScriptedClient()) as hook:
        await ask(hook, request(secret="guess"))
        await ask(hook, request())
    assert compare.mock_calls == [
        mock.call(said, SECRET.encode()) for said in (b"guess", SECRET.encode())
    ]


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "DELETE", "post"])
async def test_only_post_is_taken(method: str) -> None:
    async with serving(ScriptedClient()) as hook:
        assert await ask(hook, request(method=method)) == WebAnswer(405)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": 1}x'])
async def test_what_is_no_json_is_refused_but_of_strangers_not_even_read(body: bytes) -> None:
    async with serving(ScriptedClient()) as hook:
        assert (await ask(hook, request(body))).status == 400
        assert (await ask(hook, request(body, secret="x"))).status == 403


async def test_while_the_database_is_away_the_server_has_to_come_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC DB-4."""
    notebook = Notebook(failures=3)
    with logged(caplog) as lines:
        async with serving(ScriptedClient(), notebook) as hook:
            for _ in range(3):
                assert (await ask(hook, request())).status == 503
                assert hook.health.detail.endswith("the database does not answer")
            assert (await ask(hook, request())).status == 200
            assert hook.health.detail == ""
    assert lines == outage("messages cannot be committed")


async def test_a_bug_of_the_intake_is_logged_and_costs_only_its_update(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notebook = Notebook(bug=ZeroDivisionError())
    with logged(caplog) as lines:
        async with serving(ScriptedClient(), notebook) as hook:
            assert (await ask(hook, request(update(5, "secret words")))).status == 500
            notebook.bug = None
            assert (await ask(hook, request())).status == 200
    assert lines == ["ERROR update_failed"]
    assert "secret words" not in caplog.text


# ---------------------------------------------------------------------------- at the server


def test_the_hook_is_where_the_address_says_and_limits_bodies() -> None:
    hook = WebhookReceiver(OURS, "default").hook
    assert hook.path == "/telegram"
    assert hook.most_bytes == MOST_BYTES == 1 << 20


def test_the_secret_is_made_of_the_token_and_of_signs_that_telegram_takes() -> None:
    assert secret_of(OURS.token + "x") != SECRET
    assert OURS.token.partition(":")[2] not in SECRET
    assert 1 <= len(SECRET) <= 256
    assert SECRET.isalnum()


async def test_the_webhook_is_set_at_the_start_whatever_was_there() -> None:
    """SPEC CHAN-2: also if it is the same, because its secret cannot be asked for."""
    client = ScriptedClient(hook=SetWebhook(URL))
    async with serving(client):
        pass
    (made,) = client.hooks
    assert (made.url, made.secret, made.kinds, made.connections) == (URL, SECRET, KINDS, 12)
    assert client.hook_deleted == 0


async def test_setting_it_is_tried_until_it_works(caplog: pytest.LogCaptureFixture) -> None:
    """SPEC CHAN-8."""
    client = ScriptedClient()
    client.fail("set_webhook", *[NotSent("no route")] * 100, RateLimited("slow", 45.0))
    with logged(caplog) as lines:
        async with serving(client) as hook:
            await asyncio.sleep(1000)
            assert hook.health.detail.startswith(
                "Telegram cannot be reached, for 17 min now: no route"
            )
            assert (await ask(hook, request())).status == 200
            await asyncio.sleep(2600)
            assert hook.health.detail == ""
    assert len(client.hooks) == 1
    assert lines == outage("Telegram cannot be reached")


async def test_an_address_that_the_server_does_not_take_is_told_in_its_words() -> None:
    client = ScriptedClient()
    words = "Bad Request: bad webhook: An HTTPS URL must be provided for webhook"
    client.fail("set_webhook", *[Undeliverable(words)] * 10)
    async with serving(client) as hook:
        await asyncio.sleep(20)
        assert hook.health.detail == f"Telegram rejects the webhook, for 20 s now: {words}"
        await asyncio.sleep(600)
        assert hook.health.detail == ""
    assert len(client.hooks) == 1


async def test_another_programs_webhook_is_noticed_told_and_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-8."""
    client = ScriptedClient()
    with logged(caplog) as lines:
        async with serving(client) as hook:
            client.hook = SetWebhook(OTHER)
            await asyncio.sleep(61)
            assert hook.health.detail.startswith(
                "another program sets this bot's webhook; stop it there"
            )
            assert hook.health.detail.endswith(OTHER)
            assert hook.health.state is ChannelState.CONFLICT
            assert client.hook.url == URL
            assert [made.secret for made in client.hooks] == [SECRET] * 2
            await asyncio.sleep(61)
            assert hook.health.detail == ""
    assert [line.split()[0] for line in lines] == ["WARNING", "INFO"]


async def test_two_programs_that_set_it_by_turns_do_not_flood_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SPEC CHAN-8."""
    client = ScriptedClient()
    with logged(caplog) as lines:
        async with serving(client) as hook:
            for _ in range(60):
                client.hook = SetWebhook("" if client.hook.url == OTHER else OTHER)
                await asyncio.sleep(60)
                assert hook.health.detail
    assert len(client.hooks) == 61
    assert len(lines) == 1


async def test_a_webhook_that_was_removed_is_set_again() -> None:
    client = ScriptedClient()
    async with serving(client) as hook:
        client.hook = SetWebhook()
        await asyncio.sleep(61)
        assert hook.health.detail.endswith("it was removed")
    assert client.hook.url == URL


async def test_why_the_server_cannot_deliver_is_told_while_updates_wait() -> None:
    """SPEC OPS-4."""
    client = ScriptedClient()
    async with serving(client) as hook:
        for waiting, trouble in ((3, "Connection refused"), (0, "Connection refused"), (3, "")):
            client.hook = SetWebhook(URL, waiting, trouble)
            await asyncio.sleep(61)
            told = hook.health.detail
            assert told == "" or "Telegram cannot deliver to the webhook" in told
            assert bool(told) is bool(waiting and trouble)


async def test_trouble_while_looking_is_told_and_over_by_itself() -> None:
    client = ScriptedClient()
    client.fail("webhook", NotSent("no route"))
    async with serving(client) as hook:
        await asyncio.sleep(61)
        assert hook.health.detail.startswith("Telegram cannot be reached")
        assert (await ask(hook, request())).status == 200
        await asyncio.sleep(61)
        assert hook.health.detail == ""


@pytest.mark.parametrize("method", ["set_webhook", "webhook"])
async def test_a_refused_token_ends_it(method: str) -> None:
    """SPEC CHAN-8."""
    client = ScriptedClient()
    client.fail(method, ChannelRefused("Unauthorized"))
    hook = WebhookReceiver(OURS, "default")
    updates = Updates(client, BOT, "default")
    with pytest.raises(ChannelRefused):
        await run_for(hook.run(client, updates, Notebook()), 100)
    assert (await ask(hook, request())).status == 503
