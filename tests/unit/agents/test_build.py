from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from goclaw_py.agents import (
    AgentSpec,
    CommandSpec,
    OutputKind,
    build_agent,
    run_model_problem,
)
from goclaw_py.agents.callable import CallableAgent
from goclaw_py.agents.command import CommandAgent
from goclaw_py.agents.models import ModelAgent, Provider
from goclaw_py.agents.offline import OfflineAgent
from goclaw_py.core.errors import AgentError, SettingError
from goclaw_py.core.ids import AgentName
from tests.unit.agents.builders import Events, request

MAIN = AgentName("main")


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("offline", OfflineAgent),
        (" offline ", OfflineAgent),
        ("python:tests.unit.agents.sample:greet", CallableAgent),
        ("openai:gpt-4o", ModelAgent),
        ("anthropic:claude-x", ModelAgent),
        ("openai:ft:gpt:org", ModelAgent),
        ("openrouter:openai/gpt", ModelAgent),
        ("gateway/anthropic:claude-x", ModelAgent),
        ("google:gemini-3-pro", ModelAgent),
        ("command", CommandAgent),
    ],
)
def test_the_model_setting_chooses_the_loop(model: str, kind: type) -> None:
    """SPEC AGENT-2."""
    spec = AgentSpec(MAIN, model, command=CommandSpec(("true",)))
    assert type(build_agent(spec)) is kind


@pytest.mark.parametrize(
    ("command", "key"),
    [
        (CommandSpec(), "run"),
        (CommandSpec(("",)), "run"),
        (CommandSpec(("x",), output=OutputKind.JSONL), "text"),
        (CommandSpec(("x",), text=("a",)), "output"),
        (CommandSpec(("x",), session="a"), "output"),
    ],
)
def test_a_program_that_could_say_nothing_is_refused(command: CommandSpec, key: str) -> None:
    """SPEC AGENT-2b."""
    with pytest.raises(SettingError) as caught:
        build_agent(AgentSpec(MAIN, "command", command=command))
    assert caught.value.key == f"agents.main.command.{key}"


@pytest.mark.parametrize(("wrong", "meant"), [
    ("gpt-4o", "openai:gpt-4o"),
    ("claude-sonnet-5-5", "anthropic:claude-sonnet-5-5"),
    ("opnai:gpt-4o", "openai:gpt-4o"),
    ("OpenAI:gpt-4o", "openai:gpt-4o"),
    ("openai", "openai:NAME"),
])  # fmt: skip
def test_the_model_that_was_meant_is_suggested(wrong: str, meant: str) -> None:
    with pytest.raises(SettingError) as caught:
        build_agent(AgentSpec(AgentName("main"), wrong))
    assert caught.value.allowed.endswith(f"; did you mean {meant}?")
    assert len(caught.value.allowed) < 200


def test_the_guide_lists_all_providers() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guide" / "models.md").read_text("utf-8")
    assert [one for one in Provider if f"`{one}`" not in guide] == []


@pytest.mark.parametrize(
    "model",
    [
        "", "gpt-4o", "gogle:gemini", "gateway:x", "openai:", "openai", "python:", "offline:x",
        "OpenAI:x",
    ],
)  # fmt: skip
def test_an_unknown_model_is_an_error_with_the_key_and_all_that_is_allowed(model: str) -> None:
    with pytest.raises(SettingError) as caught:
        build_agent(AgentSpec(AgentName("helper"), model))
    assert caught.value.key == "agents.helper.model"
    for form in ("offline", "python:MODULE:FUNCTION", "PROVIDER:NAME", "openai:gpt-4o"):
        assert form in caught.value.allowed


@pytest.mark.parametrize(("own", "model", "words"), [
    ("openai:gpt-4o", "gpt-4o-mini", ""),
    ("openai:gpt-4o", " anthropic:claude-sonnet-5-5 ", ""),
    ("openai:gpt-4o", "openai:of-tomorrow", ""),
    ("ollama:llama3", "of-my-own", ""),  # nothing is known of its models
    ("openai:gpt-4o", "foo", "openai lists no model 'foo'. To use one that is not listed, "),
    ("openai:gpt-4o", "gpt-4o-mni", "did you mean gpt-4o-mini"),
    ("openai:gpt-4o", "claude-opus", "did you mean anthropic:claude-opus?"),
    ("anthropic:claude-sonnet-5-5", "opus", "did you mean claude-opus"),
    ("openai:gpt-4o", "antropic:x", "did you mean anthropic:x?"),
    ("openai:gpt-4o", "openai:", "must be a model such as"),
    ("offline", "openai:gpt-4o", "allowed only for agents whose model is a language model"),
])  # fmt: skip
def test_a_model_in_place_of_the_agents_own_is_one_that_it_can_use(
    own: str, model: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    problem = run_model_problem(own, None, model)
    assert words in problem if words else problem == ""
    if own != "offline" and ":" not in model:  # of an own server no list is known
        assert run_model_problem(own, "http://127.0.0.1:1/v1", model) == ""


@pytest.mark.parametrize("other", ["", "openai", "offline", "python:a:b", "nobody:x", "openai: "])
def test_only_models_stand_in_for_a_model(other: str) -> None:
    with pytest.raises(SettingError) as caught:
        build_agent(AgentSpec(MAIN, "openai:x", fallback=("anthropic:y", other)))
    assert caught.value.key == "agents.main.fallback"
    assert caught.value.value == other


@pytest.mark.parametrize("url", ["http://[::1", "http://h:99999/v1", "http://", "http://h:0/"])
def test_an_address_that_cannot_be_read_is_an_error_that_does_not_show_it(url: str) -> None:
    with pytest.raises(SettingError) as caught:
        build_agent(AgentSpec(MAIN, "openai:x", base_url=url))
    assert caught.value.key == "agents.main.base_url"
    assert url not in str(caught.value)


@pytest.mark.parametrize(("model", "variable", "value"), [
    ("openai:x", "OPENAI_API_KEY", "sk-hunter2\nmore"),
    ("openai-responses:x", "OPENAI_API_KEY", "“sk-hunter2”"),
    ("anthropic:x", "ANTHROPIC_API_KEY", "sk-hunter2-ключ"),
    ("google:x", "GEMINI_API_KEY", "sk\thunter2"),
    ("ollama:x", "OLLAMA_BASE_URL", "http://hunter2:99999/v1"),
    ("openai:x", "OPENAI_BASE_URL", "hunter2"),
])  # fmt: skip
def test_a_variable_of_a_provider_that_cannot_be_used_is_an_error_that_does_not_show_it(
    model: str, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC SEC-2."""
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, value)
    for spec, key in (
        (AgentSpec(MAIN, model), "agents.main.model"),
        (AgentSpec(MAIN, "mistral:x", fallback=(model,)), "agents.main.fallback"),
    ):
        with pytest.raises(SettingError, match=f" in the variable {variable} ") as caught:
            build_agent(spec)
        assert caught.value.key == key
        assert "hunter2" not in str(caught.value)
    build_agent(AgentSpec(MAIN, model, api_key="sk-own", base_url="http://127.0.0.1/v1"))


@pytest.mark.parametrize("model", ["offline", "command", "python:tests.unit.agents.sample:greet"])
def test_what_is_no_model_has_none_that_stand_in_for_it(model: str) -> None:
    spec = AgentSpec(MAIN, model, command=CommandSpec(("true",)), fallback=("openai:x",))
    with pytest.raises(SettingError) as caught:
        build_agent(spec)
    assert caught.value.key == "agents.main.fallback"


def test_key_and_headers_stay_out_of_the_repr() -> None:
    """SPEC SEC-2."""
    shown = repr(AgentSpec(MAIN, "openai:x", api_key="sk-secret", headers={"X-Token": "hush"}))
    assert "sk-secret" not in shown
    assert "hush" not in shown


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai:gpt-4o", "OPENAI_API_KEY"),
        ("anthropic:claude-x", "ANTHROPIC_API_KEY"),
        ("google:gemini", "GOOGLE_API_KEY"),
        ("ollama:qwen", "OLLAMA_BASE_URL"),
    ],
)
async def test_without_a_key_it_starts_and_the_first_run_names_the_variable(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    agent = build_agent(AgentSpec(MAIN, model))
    await agent.warm_up()
    with pytest.raises(AgentError, match=variable) as caught:
        await agent.run(request("hi"), Events())
    assert variable in caught.value.friendly
    await agent.close()


def test_building_every_kind_of_agent_imports_no_model_library() -> None:
    program = """
import sys
from pathlib import Path
from goclaw_py.agents import AgentSpec, build_agent
for model in ("offline", "openai:x", "anthropic:x", "google:x", "groq:x", "bedrock:x"):
    build_agent(AgentSpec("a", model, fallback=("mistral:x",) if ":" in model else ()))
heavy = {"pydantic_ai", "openai", "anthropic", "httpx2", "pydantic", "google", "groq", "boto3"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
