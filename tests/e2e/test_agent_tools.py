"""A model that calls tools, in front of a real gateway: what it does, and what becomes of it."""

from __future__ import annotations

import json

from tests.botapi.control import Control
from tests.e2e.loopback_model import Model, use
from tests.support.process import Home, wait_for

ANN = 1001


def tool(name: str, **arguments: object) -> str:
    return f"tool {name} {json.dumps(arguments)}"


def test_a_model_works_with_the_files_of_its_workspace(
    bot: Home, api: Control, model: Model
) -> None:
    """AGENT-6, SEC-4."""
    use(bot, model)
    bot.start()
    api.say(ANN, tool("write_file", path="notes/tea.txt", text="green"))
    wait_for((bot.folder / "workspace/notes/tea.txt").is_file, "the file")
    wait_for(lambda: len(api.texts(ANN)) == 1, "the answer")
    api.say(ANN, tool("read_file", path="../goclaw.toml"))
    wait_for(lambda: "must not have .." in api.texts(ANN)[-1], "the refusal")
    (run,) = [run for run in bot.rows("runs", "list") if ".." in json.dumps(run["tools"])]
    (call,) = run["tools"]
    assert (call["name"], call["ok"], call["side_effects"]) == ("read_file", False, False)
    assert run["usage"]["requests"] == 2


def test_a_subagents_result_comes_into_the_chat(bot: Home, api: Control, model: Model) -> None:
    """AGENT-6: and the record tells who worked for whom."""
    use(bot, model)
    bot.start()
    api.say(ANN, tool("spawn_subagent", task="say found it", label="search"))
    wait_for(lambda: any("found it" in text for text in api.texts(ANN)), "the result")
    wait_for(lambda: len(bot.rows("runs", "list")) == 3, "three runs")
    runs = {run["trigger"]: run for run in bot.rows("runs", "list")}
    parent = bot.rows("runs", "list")[-1]
    assert runs["subagent"]["parent"] == parent["id"]
    assert runs["subagent"]["payer"] == parent["session"]
    assert runs["subagent"]["model"]


def test_a_model_that_never_stops_meets_its_budget(bot: Home, api: Control, model: Model) -> None:
    """AGENT-5."""
    use(bot, model)
    bot.env["GOCLAW_AGENTS__MAIN__BUDGET__TURNS"] = "4"
    bot.start()
    api.say(ANN, "many list_files")
    wait_for(lambda: "4 model requests" in "".join(api.texts(ANN)), "the end")
    assert len(model.seen()) == 4
    (run,) = bot.rows("runs", "list")
    assert (run["outcome"], run["reason"]) == ("failed", "budget")
    assert len(run["tools"]) == 3
    api.say(ANN, "/usage")
    wait_for(lambda: "4 model requests" in api.texts(ANN)[-1], "the usage")


def test_a_run_that_was_stopped_or_killed_leaves_a_history_that_goes_on(
    bot: Home, api: Control, model: Model
) -> None:
    """AGENT-4: the next request is one that the server accepts, calls with their results."""
    use(bot, model)
    gateway = bot.start()
    api.say(ANN, tool("spawn_subagent", task="slow 600 0.1", wait=True))
    wait_for(lambda: len(model.seen()) == 2, "the request of the subagent")
    api.say(ANN, "/stop")
    wait_for(lambda: "Stopped 2 tasks." in " ".join(api.texts(ANN)), "the answer to /stop")
    wait_for(lambda: model.seen()[1]["hung_up_at"], "the end of the subagent")
    api.say(ANN, "slow 600 0.1")
    wait_for(lambda: len(model.seen()) == 3, "a request")
    gateway.kill()
    bot.start()
    wait_for(lambda: len(model.seen()) == 4, "the same message again")
    api.say(ANN, "/stop")
    wait_for(lambda: model.seen()[3]["hung_up_at"], "its end")
    api.say(ANN, "say all is well")
    wait_for(lambda: api.texts(ANN)[-1] == "all is well", "an answer")
    messages = model.seen()[-1]["body"]["messages"]
    called = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert called == answered
    assert len(called) == 1


def test_messages_wait_for_a_provider_that_is_down(bot: Home, api: Control, model: Model) -> None:
    """AGENT-8: one sentence, and the answer when it is back."""
    use(bot, model)
    bot.env["GOCLAW_AGENTS__MAIN__BASE_URL"] = "http://127.0.0.1:9/v1"
    gateway = bot.start()
    api.say(ANN, "say at last")
    wait_for(lambda: len(api.texts(ANN)) == 1, "one sentence")
    assert "when the model is back" in api.texts(ANN)[0]
    _, status = bot.goclaw("status")
    assert "1 message kept" in status
    gateway.end()
    bot.env["GOCLAW_AGENTS__MAIN__BASE_URL"] = model.url
    bot.start()
    wait_for(lambda: api.texts(ANN)[-1] == "at last", "the answer")


def test_after_a_crash_the_model_is_told_what_it_had_called(
    bot: Home, api: Control, model: Model
) -> None:
    """AGENT-9: also of the call that the crash cut, and its tokens are counted."""
    use(bot, model)
    gateway = bot.start()
    calls = [
        ["write_file", {"path": "paid.txt", "text": "100"}],
        ["spawn_subagent", {"task": "hang", "wait": True}],
    ]
    api.say(ANN, f"tools {json.dumps(calls)}")
    wait_for((bot.folder / "workspace/paid.txt").is_file, "the file")
    wait_for(lambda: any("hang" in json.dumps(one["body"]) for one in model.seen()[1:]), "a child")
    gateway.kill()
    bot.start()
    wait_for(lambda: len(told(model)) > 0, "the next attempt")
    text = told(model)[0]
    assert '- write_file({"path":"paid.txt","text":"100"}) -> done' in text
    assert "- spawn_subagent(" in text
    assert "outcome unknown" in text
    (cut,) = [run for run in bot.rows("runs", "list") if run["outcome"] == "lost" and run["tools"]]
    assert [call["ok"] for call in cut["tools"]] == [True, None]
    assert cut["usage"]["requests"] == 1
    assert cut["model"]


def told(model: Model) -> list[str]:
    """What runs were told of those before them that were cut."""
    said = [one["body"]["messages"][0] for one in model.seen()]
    texts = [one["content"] for one in said if isinstance(one["content"], str)]
    return [text for text in texts if "An earlier attempt at this task was interrupted" in text]
