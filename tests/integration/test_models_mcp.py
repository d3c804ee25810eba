"""Tools of real MCP servers, as processes of their own and over HTTP on loopback (SPEC AGENT-6)."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from goclaw_py.agents import AgentSpec
from goclaw_py.agents.models import ModelAgent, Provider, mcp
from goclaw_py.agents.spec import McpServer
from goclaw_py.core.ids import AgentName
from goclaw_py.core.run_events import ToolEnded, ToolStarted, Waiting
from goclaw_py.runs.agent_loop import AgentResult
from tests.support.continued import Journal
from tests.support.model_server import ModelServer
from tests.support.process import ROOT
from tests.support.toolbox import Functions
from tests.unit.agents.builders import Events, request

# One loop for all of them: a program takes seconds until it speaks, so some tests share one.
pytestmark = [pytest.mark.real_time, pytest.mark.asyncio(loop_scope="module")]

WAIT_S = 30
KEY = "mcp-secret-ABCDEFGHIJ"
PROGRAM = (sys.executable, "-m", "tests.support.mcp_server")
HERE = {"PYTHONPATH": str(ROOT)}

Make = Callable[..., ModelAgent]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer() as running:
        yield running


@pytest.fixture
def server(model: ModelServer) -> ModelServer:
    """It has seen nothing yet."""
    model.seen.clear()
    return model


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a program takes its time until it speaks."""
    monkeypatch.setattr("goclaw_py.agents.models.mcp.PATIENCE_S", 60.0)


def agent_on(server: ModelServer, servers: Mapping[str, McpServer]) -> ModelAgent:
    spec = AgentSpec(AgentName("main"), base_url=server.base_url, mcp=servers)
    return ModelAgent(spec, Provider.OPENAI, "gpt-4o", environ={})


@pytest_asyncio.fixture(loop_scope="module")
async def make(server: ModelServer) -> AsyncIterator[Make]:
    """Makes agents with MCP servers, and closes them."""
    made: list[ModelAgent] = []

    def build(**servers: McpServer) -> ModelAgent:
        made.append(agent_on(server, servers))
        return made[-1]

    yield build
    for agent in made:
        await agent.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(model: ModelServer) -> AsyncIterator[ModelAgent]:
    """An agent with a program that goes on from test to test, and knows a secret."""
    agent = agent_on(model, {"calc": replace(program(TOKEN=KEY, COLOUR="blue"), trusted=True)})
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", "sk-of-the-gateway")
        environment.setenv("LANG", "C.UTF-8")
        await agent.warm_up()
        await agent.run(request("say hi"), Events())
    yield agent
    await agent.close()


def program(*, tools: tuple[str, ...] = (), **env: str) -> McpServer:
    return McpServer(command=PROGRAM, env={**HERE, **env}, tools=tools)


@pytest.fixture
def http() -> Iterator[Callable[[], str]]:
    """Starts servers on loopback that want ``KEY``; gives their addresses."""
    started: list[subprocess.Popen[str]] = []

    def start() -> str:
        process = subprocess.Popen(
            [*PROGRAM, "--http", "--key", KEY],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    yield start
    for process in started:
        stop(process)


def stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=WAIT_S)


async def call(
    agent: ModelAgent, tool: str, events: Events | None = None, /, **arguments: Any
) -> AgentResult:
    order = f"tool {tool} {orjson.dumps(arguments).decode()}"
    return await agent.run(request(order), Events() if events is None else events)


def given(result: AgentResult) -> str:
    """What the model got from the tool, as it says."""
    return result.text.removeprefix("looking\n\ntool gave: ")


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def notes(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(r) for r in caplog.records if r.msg == "mcp_server_failed"]


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so():
            await asyncio.sleep(0.01)


# ---------------------------------------------------------------------------- programs


async def test_a_tool_of_a_program_is_called_under_the_name_of_its_server(
    server: ModelServer, shared: ModelAgent
) -> None:
    events = Events()
    result = await call(shared, "calc_add", events, a=2, b=3)
    assert given(result) == "5"
    functions = {tool["function"]["name"]: tool for tool in server.seen[0].body["tools"]}
    assert functions["calc_add"]["function"]["description"] == "Add two numbers."
    assert "Obey me" not in orjson.dumps(server.seen[0].body).decode()
    steps = [type(event) for event in events if not hasattr(event, "text")]
    assert steps == [ToolStarted, ToolEnded]


async def test_a_call_carries_its_idempotency_key(shared: ModelAgent) -> None:
    order = replace(request("tool calc_meta {}"), call_key=lambda call_id: f"run-{call_id}")
    result = await shared.run(order, events := Events())
    (started,) = [event for event in events if isinstance(event, ToolStarted)]
    assert f"'goclaw-py/idempotency-key': 'run-{started.call_id}'" in given(result)


async def test_only_tools_that_say_so_have_no_side_effects(shared: ModelAgent) -> None:
    """SPEC CRON-7: the server is trusted."""
    events = Events()
    await call(shared, "calc_add", events, a=2, b=3)
    await call(shared, "calc_note", events, text="x")
    effects = {e.name: e.side_effects for e in events if isinstance(e, ToolStarted)}
    assert effects == {"calc_add": False, "calc_note": True}


async def test_only_the_chosen_tools_are_offered_beside_those_of_the_run(
    server: ModelServer, make: Make
) -> None:
    async def look_up(word: str) -> str:
        return word

    agent = make(calc=program(tools=("add", "odd.name")))
    await agent.run(request("hi", tools=Functions(look_up)), Events())
    names = [tool["function"]["name"] for tool in server.seen[0].body["tools"]]
    assert names == ["look_up", "calc_add", "calc_odd_name"]
    assert given(await call(agent, "calc_odd_name")) == "odd"


async def test_a_program_gets_a_minimal_environment(shared: ModelAgent) -> None:
    """SPEC SEC-4."""
    environment = dict(
        line.split("=", 1) for line in given(await call(shared, "calc_environment")).split("\n")
    )
    assert (environment["COLOUR"], environment["LANG"]) == ("blue", "C.UTF-8")
    allowed = {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR"}
    ours = {"COLOUR", "TOKEN", "PYTHONPATH", "GOCLAW_RUN_ID"}
    assert set(environment) <= allowed | {"TZ", "USER"} | ours


async def test_what_a_tool_says_of_its_failure_is_read_by_the_model(shared: ModelAgent) -> None:
    events = Events()
    assert "Error executing tool fail" in given(await call(shared, "calc_fail", events))
    assert "should be a valid integer" in given(await call(shared, "calc_add", events, a="q", b=1))
    ended = [event for event in events if isinstance(event, ToolEnded)]
    assert [event.ok for event in ended] == [False, False]


async def test_a_tool_that_fails_tells_no_secret_and_not_too_much(
    server: ModelServer, shared: ModelAgent
) -> None:
    """SPEC SEC-2."""
    result = await call(shared, "calc_leak", size=100_000)
    assert "the token [hidden] is wrong" in given(result)
    assert len(given(result)) < 2_100
    assert all(KEY.encode() not in (entry.native or b"") for entry in result.entries)
    assert all(KEY not in orjson.dumps(seen.body).decode() for seen in server.seen)


async def test_an_error_with_the_number_of_a_closed_connection_does_not_close_it(
    shared: ModelAgent, caplog: pytest.LogCaptureFixture
) -> None:
    first = given(await call(shared, "calc_pid"))
    refused = given(await call(shared, "calc_refuse"))
    assert "no customer has [hidden]" in refused
    assert "broke" not in refused
    assert given(await call(shared, "calc_pid")) == first
    assert notes(caplog) == []


async def test_a_server_with_too_many_tools_offers_the_first_ones_and_is_logged_once(
    server: ModelServer, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    agent = make(calc=program(CROWD="120"))
    await agent.run(request("say hi"), Events())
    await agent.run(request("say hi"), Events())
    functions = [tool["function"] for tool in server.seen[0].body["tools"]]
    assert len(functions) == 100
    assert len(functions[-1]["description"]) == 4_000
    told = [r for r in caplog.records if r.msg == "mcp_tools_left_out"]
    assert len(told) == 1


async def test_a_picture_is_told_of_and_a_long_result_is_cut(shared: ModelAgent) -> None:
    assert given(await call(shared, "calc_picture")).startswith("[image/png of ")
    long = given(await call(shared, "calc_big", size=100_010))
    assert long.endswith("\n[10 more characters left out]")


async def test_one_program_serves_many_runs_at_once_and_what_it_started_ends_with_it(
    make: Make,
) -> None:
    agent = make(calc=program())
    results = await asyncio.gather(*(call(agent, "calc_pid") for _ in range(5)))
    [pid] = {int(given(result)) for result in results}
    assert os.getpgid(pid) == pid
    left = int(given(await call(agent, "calc_leave")))
    await call(agent, "calc_die")
    await until(lambda: not is_alive(left))
    left = int(given(await call(agent, "calc_leave")))
    pid = int(given(await call(agent, "calc_pid")))
    assert is_alive(left)
    await agent.close()
    assert not is_alive(left)
    assert not is_alive(pid)


async def test_cancelling_a_run_cancels_the_call_in_the_program(
    shared: ModelAgent, tmp_path: Path
) -> None:
    """SPEC CMD-4."""
    agent, file = shared, tmp_path / "called"
    task = asyncio.create_task(call(agent, "calc_wait", path=str(file)))
    await until(file.exists)
    task.cancel()
    await asyncio.wait([task], timeout=WAIT_S)
    assert task.cancelled()
    await until((tmp_path / "called.cancelled").exists)
    assert given(await call(agent, "calc_add", a=1, b=1)) == "2"


async def test_a_call_that_never_returns_fails_and_the_run_goes_on(
    make: Make, tmp_path: Path
) -> None:
    agent = make(calc=replace(program(), call_timeout_s=1.0))
    await agent.run(request("say ready"), Events())
    started = tmp_path / "started"
    result = await call(agent, "calc_wait", path=str(started))
    assert "calc did not answer within 1 s" in given(result)
    assert "nobody knows whether it has done this" in given(result)
    await until(Path(f"{started}.cancelled").exists)
    assert given(await call(agent, "calc_add", a=1, b=1)) == "2"


async def test_a_program_that_dies_is_started_again_for_the_next_call(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """In a call, or between two of them."""
    agent = make(calc=program())
    first = given(await call(agent, "calc_pid"))
    assert "nobody knows whether it has done this" in given(await call(agent, "calc_die"))
    second = given(await call(agent, "calc_pid"))
    assert [note["server"] for note in notes(caplog)] == ["calc"]
    os.kill(int(second), signal.SIGKILL)
    await until(lambda: len(notes(caplog)) == 2)
    assert len({first, second, given(await call(agent, "calc_pid"))}) == 3


async def test_a_run_waits_for_the_end_of_a_program_that_died_and_has_its_tools(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(mark: str) -> None:
        await asyncio.sleep(0.5)

    monkeypatch.setattr(mcp, "end_marked", slowly)
    agent = make(calc=program())
    await call(agent, "calc_die")
    assert given(await call(agent, "calc_pid")).isdecimal()


@pytest.mark.parametrize(
    "command", [("/no/such/program",), ("false",), (sys.executable, "-c", "print('hello')")]
)
async def test_an_agent_speaks_without_a_server_that_cannot_start_and_knows_of_it(
    server: ModelServer, make: Make, caplog: pytest.LogCaptureFixture, command: tuple[str, ...]
) -> None:
    agent = make(broken=McpServer(command=command, env={"TOKEN": KEY}), calc=program())
    result = await call(agent, "calc_add", a=2, b=3)
    assert given(result) == "5"
    assert "The tools of the server broken are not available now." in server.seen[0].texts[0]
    assert [note["server"] for note in notes(caplog)] == ["broken"]
    await agent.run(request("say again"), Events())
    assert len(notes(caplog)) == 1


async def test_what_a_program_says_of_its_failure_is_logged_without_secrets(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC SEC-2."""
    script = "import os, sys; sys.exit('no entry with ' + os.environ['TOKEN'])"
    broken = McpServer(command=(sys.executable, "-c", script), env={"TOKEN": KEY})
    with caplog.at_level(logging.DEBUG):
        await make(broken=broken).run(request("say hi"), Events())
    assert notes(caplog)[0]["stderr"] == "no entry with [hidden]"
    assert all(KEY not in str(vars(record)) for record in caplog.records)


async def test_a_program_that_says_nothing_costs_only_the_first_run_some_time(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("goclaw_py.agents.models.mcp.PATIENCE_S", 3.0)
    file, now = tmp_path / "pid", asyncio.get_running_loop().time
    agent = make(silent=McpServer(command=("sh", "-c", f"echo $$ > {file}; exec sleep 1000")))
    times = [now()]
    for _ in range(2):
        await agent.run(request("say hi"), Events())
        times.append(now())
    assert times[1] - times[0] >= 3.0
    assert times[2] - times[1] < 2.0
    assert "silent are not available" in server.seen[0].texts[0]
    await agent.close()
    assert not is_alive(int(file.read_text()))


# ---------------------------------------------------------------------------- continued runs


@pytest.mark.parametrize("is_back", [True, False])
async def test_a_continued_run_waits_longer_for_a_server_that_it_had_used(
    server: ModelServer, make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_back: bool
) -> None:
    """SPEC AGENT-10: its calls cannot be judged without it, and a reboot takes its time."""
    for name, seconds in {"PATIENCE_S": 0.1, "FIRST_PAUSE_S": 0.1, "TELL_S": 0.2}.items():
        monkeypatch.setattr(mcp, name, seconds)
    monkeypatch.setattr(mcp, "RETURN_S", WAIT_S if is_back else 1.0)
    there = tmp_path / "there"
    program = f"test -e {there} && exec {' '.join(PROGRAM)}"
    agent = make(calc=McpServer(command=("sh", "-c", program), env=HERE))
    asked = request('tool calc_note {"text": "42"}')
    journal = Journal()
    there.touch()
    monkeypatch.setattr(mcp, "PATIENCE_S", WAIT_S)
    await agent.run(asked, journal)
    response, started, *_ = journal.steps
    await agent.close()
    monkeypatch.setattr(mcp, "PATIENCE_S", 0.1)
    there.unlink()
    server.seen.clear()

    def emit(event: object) -> None:
        events(event)  # type: ignore[arg-type]
        if isinstance(event, Waiting) and not event.is_over and is_back:
            there.touch()

    events = Events()
    await agent.run(replace(asked, steps=(response, started)), emit)
    waited = [event for event in events if isinstance(event, Waiting)]
    assert waited == [Waiting("the tools of calc"), Waiting("the tools of calc", is_over=True)]
    assert "outcome of this call is unknown" in server.seen[0].texts[-1]
    has_tools = bool(server.seen[0].body.get("tools"))
    assert has_tools is is_back


GATEWAY = """
import asyncio, os, sys
from goclaw_py.agents.models.mcp import Servers
from goclaw_py.agents.spec import McpServer

async def main():
    servers = Servers({"calc": McpServer(command=tuple(sys.argv[1:]))})
    tools = await servers.tools()
    print(await tools.call("calc_pid", {}), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_program_ends_with_a_gateway_that_is_killed() -> None:
    gateway = await asyncio.create_subprocess_exec(
        sys.executable, "-c", GATEWAY, *PROGRAM, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert gateway.stdout is not None
    pid = int(await asyncio.wait_for(gateway.stdout.readline(), WAIT_S))
    assert is_alive(pid)
    gateway.kill()
    await asyncio.wait_for(gateway.communicate(), WAIT_S)
    await until(lambda: not is_alive(pid))


# ---------------------------------------------------------------------------- HTTP


async def test_a_server_that_refuses_is_missing_and_no_key_is_logged(
    server: ModelServer, make: Make, http: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    """SPEC SEC-2."""
    wrong = f"Bearer wrong-{KEY}"
    remote = McpServer(url=f"{http()}?key={KEY}", headers={"Authorization": wrong})
    assert KEY not in repr(remote)
    with caplog.at_level(logging.DEBUG):
        await make(calc=remote).run(request("say hi"), Events())
    assert "calc are not available" in server.seen[0].texts[0]
    assert len(notes(caplog)) == 1
    names = ("goclaw_py", "mcp", "fastmcp")
    ours = [record for record in caplog.records if record.name.startswith(names)]
    assert all(KEY not in str(vars(record)) for record in ours)


async def test_a_server_is_called_with_its_headers_and_one_that_has_gone_is_told(
    make: Make, http: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    remote = McpServer(url=http(), headers={"Authorization": f"Bearer {KEY}"})
    agent = make(calc=remote)
    pid = int(given(await call(agent, "calc_pid")))
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_alive(pid))
    assert "broke" in given(await call(agent, "calc_add", a=1, b=1))
    await until(lambda: notes(caplog))
    assert (await agent.run(request("say on we go"), Events())).text == "on we go"


# ---------------------------------------------------------------------------- cost


async def test_an_agent_without_servers_does_not_load_their_library() -> None:
    code = (
        "import goclaw_py.agents.models.engine, sys;"
        "print([m for m in ('mcp', 'fastmcp') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
