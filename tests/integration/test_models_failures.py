"""What people and operators hear when a model fails, in both protocols, and who stands in."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from dataclasses import replace

import orjson
import pytest

from goclaw_py.agents.models import Provider, RetryPolicy
from goclaw_py.chat.outbound import texts
from goclaw_py.core.errors import AgentError
from goclaw_py.core.outcomes import Trigger
from goclaw_py.core.run_events import RunNote, RunNoted, TextDelta
from goclaw_py.schedule.models import is_transient
from tests.integration.conftest import OTHER_KEY
from tests.support.model_agents import BOTH, KEY, WAIT_S, ModelAgents, fails, look_up, url
from tests.support.model_server import ModelServer
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Events, request

pytestmark = pytest.mark.real_time

OPENAI, ANTHROPIC = BOTH
CLAUDE = "anthropic:claude-other"


# ---------------------------------------------------------------------------- one model


@pytest.mark.parametrize(
    ("order", "words", "retryable", "requests"),
    [
        ("status 500", "has a problem", True, 3),
        ("status 502", "has a problem", True, 3),
        ("status 503", "overloaded", True, 3),
        ("status 529", "overloaded", True, 3),
        ("status 429", "overloaded", True, 3),
        ("status 408", "has a problem", True, 3),
        ("status 409", "has a problem", True, 3),
        ("limit 120 1", "overloaded", True, 1),
        ("fault 2", "overloaded", True, 1),
        ("cut 2", "connection to the model broke", True, 1),
        ("half 2", "cut off", True, 1),
        ("halftool look_up", "cut off", True, 1),
        ("status 401", "does not accept my key", False, 1),
        ("status 403", "does not accept my key", False, 1),
        ("status 404", "does not exist", False, 1),
        ("status 400", "did not accept the request", False, 1),
        ("status 422", "did not accept the request", False, 1),
        ("status 413", "too long for the model", False, 1),
        ("overflow", "too long for the model", False, 1),
        ("status 418", "did not accept the request", False, 1),
        ("refuse", "content filter", False, 1),
        # The server itself says whether trying again may help.
        ("advise 500 false", "has a problem", True, 1),
        ("advise 400 true", "did not accept the request", False, 3),
    ],
)
async def test_a_failure_is_one_friendly_sentence_after_so_many_requests(
    agents: ModelAgents,
    provider: Provider,
    order: str,
    words: str,
    *,
    retryable: bool,
    requests: int,
) -> None:
    """SPEC AGENT-8: what may pass is retryable, in its own words and in those of the log."""
    error = await fails(agents.make(provider), order, look_up)
    assert words in error.friendly
    assert "\n" not in error.friendly
    assert error.retryable is retryable
    assert len(agents.server.seen) == requests
    assert str(error)
    assert "status_code" not in error.friendly


@pytest.mark.parametrize("trigger", [Trigger.CRON, Trigger.HEARTBEAT])
@pytest.mark.parametrize(("order", "requests"), [("status 503", 5), ("cut 2", 1)])
async def test_either_a_request_or_a_scheduled_run_is_repeated(
    agents: ModelAgents, provider: Provider, trigger: Trigger, order: str, requests: int
) -> None:
    """SPEC CRON-7: what the server refused is repeated as a request, and not by another run."""
    asked = replace(request(order), trigger=trigger)
    with pytest.raises(AgentError) as caught:
        await agents.make(provider).run(asked, Events())
    assert len(agents.server.seen) == requests
    assert is_transient(caught.value) == (requests == 1)
    agents.server.seen.clear()
    await fails(agents.make(provider), "status 503")
    assert len(agents.server.seen) == 3


@pytest.mark.parametrize(("provider", "requests"), [(OPENAI, 3), (ANTHROPIC, 1)])
async def test_an_empty_account_is_told_and_does_not_pass_by_itself(
    agents: ModelAgents, provider: Provider, requests: int
) -> None:
    """OpenAI says it with the status of a busy server."""
    error = await fails(agents.make(provider), "quota")
    assert "used up its quota" in error.friendly
    assert not error.retryable
    assert len(agents.server.seen) == requests


async def test_retry_after_is_waited_for(agents: ModelAgents, provider: Provider) -> None:
    agent = agents.make(provider)
    await agent.warm_up()
    assert (await agent.run(request("limit 1 1"), Events())).text == "ok"
    first, second = agents.server.seen
    assert 0.9 < second.at - first.at < 5


@pytest.mark.parametrize("status", [429, 500, 529])
async def test_two_errors_that_pass_are_overcome(
    agents: ModelAgents, provider: Provider, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "goclaw_py"):
        result = await agents.make(provider).run(request(f"fail {status} 2"), Events())
    assert result.text == "ok"
    assert len(agents.server.seen) == 3
    notes = [vars(record) for record in caplog.records if record.name.startswith("goclaw_py")]
    assert [(note["status"], note["attempt"]) for note in notes] == [(status, 1), (status, 2)]


@pytest.mark.parametrize(("order", "requests"), [("hang", 2), ("pause 3", 1)])
async def test_silence_is_a_failure_that_may_pass(
    agents: ModelAgents, provider: Provider, order: str, requests: int
) -> None:
    """Before the first word it is tried again; after it nobody would know what to repeat."""
    retry = RetryPolicy(tries=2, first_wait_s=0.001, silence_s=0.3)
    error = await fails(agents.make(provider, retry=retry), order)
    assert "did not answer in time" in error.friendly
    assert error.retryable
    assert len(agents.server.seen) == requests


async def test_what_was_said_before_the_stream_broke_was_said(
    agents: ModelAgents, provider: Provider
) -> None:
    events = Events()
    with pytest.raises(AgentError):
        await agents.make(provider).run(request("cut 3"), events)
    assert "w1 w2 w3".startswith(events.text)


async def test_a_key_that_the_server_quotes_back_is_nowhere_in_the_error(
    agents: ModelAgents, provider: Provider
) -> None:
    """SPEC SEC-2."""
    error = await fails(agents.make(provider), "status 401")
    shown = "".join(traceback.format_exception(error)) + error.friendly + repr(error)
    assert "Incorrect API key provided" in shown
    for part in (KEY, KEY[:8], KEY[-4:]):
        assert part not in shown
    assert error.__cause__ is None
    assert error.__context__ is None


async def test_a_library_that_is_not_there_is_told_with_its_cure(
    agents: ModelAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Provider, "is_installed", property(lambda self: self is not Provider.GROQ))
    error = await fails(agents.make(Provider.GROQ), "say a")
    assert "my operator must install its library" in error.friendly
    assert "pip install 'pydantic-ai-slim[groq]'" in str(error)


async def test_a_setting_that_a_provider_misses_is_told(
    agents: ModelAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SNOWFLAKE_ACCOUNT", raising=False)
    error = await fails(agents.make(Provider.SNOWFLAKE, base_url=None), "say a")
    assert "wrong with the settings" in error.friendly
    assert "SNOWFLAKE_ACCOUNT" in str(error)


@pytest.mark.parametrize(
    "address", ["http://me:hunter2@[::1/v1", "http://me:hunter2@h:99999/v1", "h:80/v1", "http://"]
)
async def test_an_address_that_is_none_is_told(
    agents: ModelAgents, provider: Provider, address: str
) -> None:
    agents.environ[provider.url_variable] = address
    retry = RetryPolicy(tries=1)
    error = await fails(agents.make(provider, base_url=None, retry=retry), "say a")
    assert "wrong with the settings" in error.friendly or "connection" in error.friendly
    assert "hunter2" not in "".join(traceback.format_exception(error))


# ---------------------------------------------------------------------------- fallback


@pytest.mark.parametrize(
    "failure", ["status 401", "status 404", "status 503", "quota", "overflow", "hang"]
)
async def test_where_the_first_model_cannot_answer_the_next_one_does(
    agents: ModelAgents, other: ModelServer, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    retry = RetryPolicy(tries=2, first_wait_s=0.001, silence_s=0.3)
    agent = agents.make(model=failure, fallback=(CLAUDE,), retry=retry, headers={"X-Team": "blue"})
    events = Events()
    result = await agent.run(request("say hello"), events)
    assert result.text == events.text == "hello"
    assert result.model == "claude-other"
    assert len(other.seen) == 1
    assert OTHER_KEY in other.seen[0].headers.get(
        "x-api-key", other.seen[0].headers["authorization"]
    )
    # Keys and headers are for their own server only.
    assert KEY not in str(other.seen[0])
    assert "x-team" not in other.seen[0].headers
    assert "model_failed" in caplog.messages
    assert KEY not in caplog.text
    # Nor is what the first one said of our key stored with the answer of the other (SEC-2).
    stored = b"".join(entry.native or b"" for entry in result.entries)
    assert b"hello" in stored
    assert b"API key" not in stored
    assert KEY[:8].encode() not in stored


async def test_an_answer_in_one_piece_keeps_nothing_of_the_failure_before_it(
    agents: ModelAgents, other: ModelServer
) -> None:
    """SPEC SEC-2."""
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import ModelRequest

    from goclaw_py.agents.models.connection import ModelConnection
    from goclaw_py.agents.models.providers import ModelAccess

    retry = RetryPolicy(first_wait_s=0.001)
    spare = ModelConnection(ANTHROPIC, "claude-other", OTHER_KEY, url(other, ANTHROPIC), {}, retry)
    first = ModelConnection(
        OPENAI, "status 401", KEY, url(agents.server, OPENAI), {}, retry, fallback=(spare,)
    )
    access = await asyncio.to_thread(ModelAccess, first)
    answer = await model_request(access.model, [ModelRequest.user_text_prompt("say hello")])
    await access.close()
    assert (answer.text, answer.model_name) == ("hello", "claude-other")
    assert answer.failed_attempts is None


async def test_the_first_model_is_asked_first_each_time(
    agents: ModelAgents, other: ModelServer
) -> None:
    agent = agents.make(model="fail 401 1", fallback=(CLAUDE,))
    first = await agent.run(request("say one"), Events())
    second = await agent.run(request("say two"), Events())
    assert (first.text, first.model) == ("one", "claude-other")
    assert (second.text, second.model) == ("ok", "fail 401 1")


async def test_tools_and_their_results_survive_a_change_of_the_model(
    agents: ModelAgents, other: ModelServer
) -> None:
    """What one protocol's model has asked for, another one's reads."""
    agent = agents.make(fallback=(CLAUDE,))
    tools = Functions(look_up)
    order = 'tool look_up {"word":"owl"}'
    first = await agent.run(request(order, tools=tools), Events())
    broken = agents.make(model="status 500", fallback=(CLAUDE,))
    asked = request("say on", history=first.entries, tools=tools)
    assert (await broken.run(asked, Events())).text == "on"
    assert "meaning of owl" in str(other.seen[0].body)


async def test_a_stream_that_broke_is_not_told_again_by_another_model(
    agents: ModelAgents, other: ModelServer
) -> None:
    events = Events()
    agent = agents.make(model="cut 3", fallback=(CLAUDE,))
    with pytest.raises(AgentError) as caught:
        await agent.run(request("say hello"), events)
    assert "connection to the model broke" in caught.value.friendly
    assert caught.value.retryable
    assert other.seen == []
    assert [event for event in events if isinstance(event, TextDelta)]


@pytest.mark.parametrize(
    ("first", "second", "words", "retryable"),
    [
        ("status 401", "status 503", "overloaded", True),
        ("status 503", "status 401", "overloaded", True),
        ("status 401", "quota", "does not accept my key", False),
        ("overflow", "overflow", "too long for the model", False),
        ("status 500", "status 529", "has a problem", True),
    ],
)
async def test_where_all_models_fail_the_failure_that_may_pass_is_told(
    agents: ModelAgents, other: ModelServer, first: str, second: str, words: str, *, retryable: bool
) -> None:
    agent = agents.make(model=first, fallback=(f"anthropic:{second}",))
    error = await fails(agent, "say a")
    assert words in error.friendly
    assert error.retryable is retryable
    # The cause has them all, and no key of any of them.
    assert f"{first}: Model" in str(error)
    assert f"{second}: Model" in str(error)
    shown = "".join(traceback.format_exception(error)) + repr(error)
    for key in (KEY, OTHER_KEY):
        assert not any(part in shown for part in (key, key[:8], key[-4:]))


async def test_a_fallback_model_without_a_key_or_a_library_is_left_out(
    agents: ModelAgents, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Provider, "is_installed", property(lambda self: self is not Provider.GROQ))
    agents.environ["GROQ_API_KEY"] = OTHER_KEY
    agent = agents.make(fallback=(CLAUDE, "groq:llama"))
    assert (await agent.run(request("say a"), Events())).text == "a"
    notes = [
        vars(record) for record in caplog.records if record.message == "fallback_model_skipped"
    ]
    without_key, without_library = (note["reason"] for note in notes)
    assert without_key == "ANTHROPIC_API_KEY is not set"
    assert "pydantic-ai-slim[groq]" in without_library


async def test_cancelling_while_a_fallback_model_answers_ends_it_at_once(
    agents: ModelAgents, other: ModelServer
) -> None:
    agent = agents.make(model="status 401", fallback=(CLAUDE,))
    await agent.warm_up()
    task = asyncio.create_task(agent.run(request("hang"), Events()))
    await asyncio.wait_for(other.arrived.wait(), WAIT_S)
    cancelled_at = time.monotonic()
    task.cancel()
    await asyncio.wait([task], timeout=WAIT_S)
    assert task.cancelled()
    await asyncio.wait_for(other.hung_up.wait(), WAIT_S)
    hung_up_at = other.seen[0].hung_up_at
    assert hung_up_at is not None
    assert hung_up_at - cancelled_at < 0.1


async def test_no_secret_is_logged_at_any_level(
    agents: ModelAgents, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC SEC-2: neither by us nor by the libraries."""
    agent = agents.make(provider, headers={"X-Secret": "hush-hush-hush-hush"})
    with caplog.at_level(logging.DEBUG):
        await agent.run(request("fail 500 1"), Events())
        await fails(agent, "status 401")
    assert KEY not in caplog.text
    assert "hush-hush" not in caplog.text


# ---------------------------------------------------------------------------- length


@pytest.mark.parametrize("words", ["the disk is", "x"])
async def test_an_answer_that_is_too_long_says_where_it_was_cut(
    agents: ModelAgents, provider: Provider, words: str
) -> None:
    events = Events()
    result = await agents.make(provider).run(request(f"short {words}"), events)
    assert result.text == f"{words}\n\n{texts.ANSWER_CUT}"
    assert events.text == result.text
    assert RunNoted(RunNote.ANSWER_CUT) in events
    assert result.entries[-1].text == result.text


async def test_a_model_that_reached_its_length_without_a_word_says_so(
    agents: ModelAgents, provider: Provider
) -> None:
    error = await fails(agents.make(provider), "short")
    assert error.friendly == (
        "The model reached its limit of length before it had answered. Please ask for less."
    )


# ---------------------------------------------------------------------------- odd ends and streams


def chunks(*deltas: tuple[dict[str, object], object]) -> list[str]:
    """A stream of OpenAI's protocol: what each chunk adds, and its finish reason."""
    lines = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": add, "finish_reason": end}]}
        for add, end in deltas
    ]
    return [f"data: {orjson.dumps(line).decode()}\n\n" for line in lines]


HELLO: tuple[dict[str, object], object] = {"role": "assistant", "content": "hello"}, None
FILTERED = f"hello\n\n{texts.ANSWER_FILTERED}"
LONG = f"hello\n\n{texts.ANSWER_CUT}"


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (chunks(HELLO, ({}, "eos")), "hello"),
        (chunks(HELLO, ({}, "STOP")), "hello"),
        (chunks(HELLO, ({}, "end_turn")), "hello"),
        (chunks(HELLO, ({}, "MAX_TOKENS")), LONG),
        (chunks(HELLO, ({}, "content_filter")), FILTERED),
        (chunks(HELLO, ({}, "SAFETY")), FILTERED),
    ],
)
async def test_an_answer_with_an_odd_end_is_what_its_server_means(
    agents: ModelAgents, stream: list[str], text: str
) -> None:
    events = Events()
    result = await agents.make().run(request(f"raw {orjson.dumps(stream).decode()}"), events)
    assert result.text == events.text == text
    assert (RunNoted(RunNote.ANSWER_CUT) in events) == (text != "hello")


CUT, STRANGE = "was cut off", "an answer that I cannot use"


@pytest.mark.parametrize(
    ("stream", "words", "cause"),
    [
        (chunks(HELLO, ({}, "abort")), CUT, "'abort'"),
        (chunks(HELLO, ({}, "network_error")), CUT, "'network_error'"),
        (chunks(HELLO, ({}, 7)), CUT, "'7'"),
        (chunks(HELLO, ({}, "")), CUT, "finish_reason"),
        (chunks(({"content": ""}, "content_filter")), "content filter stopped", "content_filter"),
        (["data: [1, 2]\n\n"], STRANGE, "cannot be read"),
        (["data: 5\n\n"], STRANGE, "cannot be read"),
        (["data: null\n\n"], STRANGE, "cannot be read"),
        (["data: no json\n\n"], CUT, "JSON"),
        (["<html><body>Log in</body></html>"], STRANGE, ""),
        (['{"error": {"message": "boom"}}'], "has a problem", "boom"),
        ([""], STRANGE, ""),
    ],
)
async def test_a_stream_that_is_no_answer_fails_with_a_reason(
    agents: ModelAgents, stream: list[str], words: str, cause: str
) -> None:
    agent = agents.make()
    error = await fails(agent, f"raw {orjson.dumps(stream).decode()}")
    assert words in error.friendly
    assert cause in str(error)
    assert (await agent.run(request("say next"), Events())).text == "next"


DELTA = 'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": '
NO_USAGE = 'event: message_start\ndata: {"type": "message_start", "message": {"usage": null}}\n\n'


@pytest.mark.filterwarnings("ignore:Failed to extract usage")
@pytest.mark.parametrize(
    ("stream", "words"),
    [(DELTA + '{"type": "text_delta", "text": "x"}}\n\n', STRANGE), (NO_USAGE, CUT)],
)
async def test_events_without_a_whole_message_fail_with_a_reason(
    agents: ModelAgents, stream: str, words: str
) -> None:
    error = await fails(agents.make(Provider.ANTHROPIC), f"raw {orjson.dumps([stream]).decode()}")
    assert words in error.friendly
