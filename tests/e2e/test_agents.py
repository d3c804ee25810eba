"""Agents of real gateways: models, with their tools, and programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.botapi.control import Control
from tests.e2e.loopback_model import Model, use
from tests.support.process import ROOT, Home, wait_for

ANN = 1001


def test_a_model_answers_and_remembers(bot: Home, api: Control, model: Model) -> None:
    """AGENT-2, AGENT-4."""
    use(bot, model)
    bot.start()
    api.say(ANN, "say good morning")
    wait_for(lambda: api.texts(ANN) == ["good morning"], "the first answer")
    api.say(ANN, "say good night")
    wait_for(lambda: api.texts(ANN)[-1] == "good night", "the second answer")
    texts = json.dumps(model.seen()[-1]["body"]["messages"])
    assert texts.index("good morning") < texts.index("good night")


def test_stop_closes_the_stream_to_the_model(bot: Home, api: Control, model: Model) -> None:
    """CMD-4: cancellation reaches the agent loop."""
    use(bot, model)
    bot.start()
    api.say(ANN, "slow 600 0.1")
    wait_for(model.seen, "the request")
    api.say(ANN, "/stop")
    wait_for(lambda: any("Stopped." in text for text in api.texts(ANN)), "the answer to /stop")
    wait_for(lambda: model.seen()[0]["hung_up_at"], "the hang-up")


def use_mcp_server(bot: Home) -> None:
    """Let the agent have the tools of a real MCP server, as ``calc_…``."""
    command = json.dumps([sys.executable, "-m", "tests.support.mcp_server"])
    settings = f"[agents.main.mcp.calc]\ncommand = {command}\nenv = {{ PYTHONPATH = '{ROOT}' }}\n"
    (bot.folder / "goclaw.toml").write_text(settings)


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


def has_result(bot: Home, name: str) -> bool:
    """Whether the newest run has stored what this tool has returned."""
    code, output = bot.goclaw("runs", "show", bot.rows("runs", "list")[0]["id"], "--json")
    assert code == 0, output
    return any(step["name"] == name and step["ok"] for step in json.loads(output)["steps"])


def test_after_a_crash_a_run_continues_after_its_last_finished_step(
    bot: Home, api: Control, model: Model
) -> None:
    """AGENT-10: nothing is requested, paid or done twice; a call that was cut is not repeated."""
    use(bot, model)
    use_mcp_server(bot)
    gateway = bot.start()
    calls = [
        ["write_file", {"path": "paid.txt", "text": "100"}],
        ["calc_wait", {"path": str(bot.folder / "called")}],
    ]
    api.say(ANN, f"tools {json.dumps(calls)}")
    wait_for((bot.folder / "workspace/paid.txt").is_file, "the file")
    wait_for((bot.folder / "called").is_file, "the call")
    # Both calls are made at once: the first one may still be storing its result.
    wait_for(lambda: has_result(bot, "write_file"), "the result of the first call")
    (bot.folder / "workspace/paid.txt").unlink()
    gateway.kill()
    bot.start()
    wait_for(lambda: len(model.seen()) == 2, "the next request")
    wait_for(lambda: len(api.texts(ANN)) == 1, "the answer")
    results = [one for one in model.seen()[1]["body"]["messages"] if one["role"] == "tool"]
    assert [("is unknown" in one["content"]) for one in results] == [False, True]
    assert not (bot.folder / "workspace/paid.txt").exists()
    wait_for(lambda: bot.rows("runs", "list")[0]["outcome"] == "completed", "the end")
    runs = [run for run in bot.rows("runs", "list") if run["trigger"] == "chat"]
    assert [(run["outcome"], run["usage"]["requests"]) for run in runs] == [
        ("completed", 1),
        ("lost", 1),
    ]
    assert [call["ok"] for call in runs[1]["tools"]] == [True, None]
    assert [(call["name"], call["uncertain"]) for call in runs[0]["tools"]] == [("calc_wait", True)]


def test_a_person_reads_once_that_a_run_continues_after_a_restart(
    bot: Home, api: Control, model: Model
) -> None:
    """CHAN-14: the answer takes the place of the notice."""
    use(bot, model)
    gateway = bot.start()
    api.say(ANN, "wait 429 9 2")
    wait_for(model.seen, "the first request")
    gateway.kill()
    bot.start()
    wait_for(lambda: api.texts(ANN)[-1:] == ["ok"], "the answer")
    wait_for(lambda: bot.rows("runs", "list")[0]["outcome"] == "completed", "the end")
    assert api.texts(ANN) == ["ok"]
    shown = [str(call.parameters.get("text", "")) for call in api.calls]
    assert sum("Continuing after a restart" in text for text in shown) == 1
    assert len(model.seen()) == 3


def test_a_call_that_waits_for_an_approval_is_made_after_a_restart(
    bot: Home, api: Control, model: Model
) -> None:
    """AGENT-11: the run holds nothing while it waits, and other messages are answered."""
    use(bot, model)
    settings = f'[channels.telegram]\nallow = ["{ANN}"]\n[agents.main.approval]\nask = ["write*"]\n'
    (bot.folder / "goclaw.toml").write_text(settings)
    gateway = bot.start()
    api.say(ANN, tool("write_file", path="paid.txt", text="100"))
    # Before, a growing answer may have a button to stop it.
    (asks,) = wait_for(
        lambda: [seen for seen in api.view(ANN) if seen.buttons and "write_file" in seen.text],
        "the question",
    )
    api.say(ANN, "say hello")
    wait_for(lambda: "hello" in api.texts(ANN), "another answer")
    wait_for(lambda: not bot.rows("runs", "list", "--active"), "its end")
    wait_for(lambda: not bot.rows("outbox", "list", "--state", "sending"), "its confirmation")
    assert not (bot.folder / "workspace/paid.txt").exists()
    gateway.kill()
    bot.start()
    api.press(ANN, asks.message_id, asks.buttons[0][0].data)
    wait_for((bot.folder / "workspace/paid.txt").is_file, "the file")
    wait_for(lambda: "tool gave" in api.texts(ANN)[-1], "the answer")
    wait_for(lambda: not [seen for seen in api.view(ANN) if seen.buttons], "no more buttons")
    assert len(model.seen()) == 3


def test_a_job_asks_and_its_call_is_made_after_a_restart(
    bot: Home, api: Control, model: Model
) -> None:
    """AGENT-11, CRON-10: nothing of the job is on the gateway that was killed."""
    use(bot, model)
    settings = f'[channels.telegram]\nallow = ["{ANN}"]\n[agents.main.approval]\nask = ["write*"]\n'
    (bot.folder / "goclaw.toml").write_text(settings)
    gateway = bot.start()
    api.say(ANN, "say hello")
    wait_for(lambda: api.texts(ANN) == ["hello"], "an answer")
    prompt = tool("write_file", path="paid.txt", text="100")
    added = ("add", "pay", "--every", "1h", "--to", f"telegram:{ANN}", "--", prompt)
    for command in (added, ("run", "pay")):
        code, output = bot.goclaw("jobs", *command)
        assert code == 0, output
    (asks,) = wait_for(lambda: [seen for seen in api.view(ANN) if seen.buttons], "the question")
    assert "Job “pay”: May I call this tool?" in asks.text
    (row,) = bot.rows("cron", "runs", "--job", "pay")
    assert (row["status"], row["why"], row["node"]) == ("waiting", "approval", None)
    gateway.kill()
    bot.start()
    api.press(ANN, asks.message_id, asks.buttons[0][0].data)
    wait_for((bot.folder / "workspace/paid.txt").is_file, "the file")
    wait_for(lambda: "tool gave" in api.texts(ANN)[-1], "the result")
    (row,) = bot.rows("cron", "runs", "--job", "pay")
    assert (row["status"], row["attempts"], len(row["runs"])) == ("ok", 1, 2)
    assert len(model.seen()) == 3


PROGRAM = """
import os, sys, time
prompt = sys.stdin.read()
if prompt == "work":
    print("pid", os.getpid(), flush=True)
    time.sleep(600)
print(prompt.upper())
"""


def test_a_program_answers_and_ends_with_a_stop(bot: Home, api: Control) -> None:
    run = json.dumps([sys.executable, "-c", PROGRAM])
    settings = f'[agents.main]\nmodel = "command"\n[agents.main.command]\nrun = {run}\n'
    (bot.folder / "goclaw.toml").write_text(settings)
    bot.start()
    api.say(ANN, "hello")
    wait_for(lambda: api.texts(ANN) == ["HELLO"], "the answer of the program")
    api.say(ANN, "work")
    shown = wait_for(lambda: [t for t in api.texts(ANN) if "pid" in t], "what it shows")
    pid = int(shown[0].split()[1])
    api.say(ANN, "/stop")
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the end of the program")
    wait_for(lambda: any("Stopped" in text for text in api.texts(ANN)), "the answer")
