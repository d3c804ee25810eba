"""Our table of providers beside what the installed pydantic-ai knows."""

from __future__ import annotations

import ast
import inspect
import re
from importlib.metadata import metadata
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.agents.models import Provider, find_key, find_url, is_sendable, lacks, read_model

LEFT_OUT = {
    "elevenlabs": "speech", "voyageai": "embeddings", "sentence-transformers": "embeddings",
    "google-decisions": "writes no text", "openai-decisions": "writes no text",
    "system-one": "writes no text", "typesafe": "writes no text",
    "openai-chatgpt": "its credentials cannot stand in settings",
    "github": "was closed in July 2026",
}  # fmt: skip

# The plain names of the protocols have longer ones beside them, which say it better.
GATEWAY_ALIASES = {"chat", "responses", "converse"}


def names_in_pydantic_ai() -> set[str]:
    """The cases of the function that finds the class of a provider."""
    from pydantic_ai.providers import infer_provider_class

    tree = ast.parse(inspect.getsource(infer_provider_class))
    return {
        str(pattern.value.value)
        for case in ast.walk(tree)
        if isinstance(case, ast.match_case)
        for pattern in ast.walk(case.pattern)
        if isinstance(pattern, ast.MatchValue) and isinstance(pattern.value, ast.Constant)
    }


def gateways_in_pydantic_ai() -> set[str]:
    from pydantic_ai.providers import gateway

    upstream = {*get_args(gateway.ModelProvider), *get_args(gateway.APIFlavor)}
    return {f"gateway/{name}" for name in upstream - GATEWAY_ALIASES}


def test_every_provider_of_pydantic_ai_is_known_or_left_out_for_a_reason() -> None:
    """SPEC AGENT-2a: a new release of it must not go by unnoticed."""
    theirs = names_in_pydantic_ai() | gateways_in_pydantic_ai()
    assert len(theirs) > 40
    assert {*Provider} == theirs - LEFT_OUT.keys()


# Where a provider's code is not in a module of its name.
MODULES = {"azure-responses": "azure", "openai-chat": "openai", "openai-responses": "openai"}


@pytest.mark.parametrize("provider", Provider)
def test_the_variables_are_those_that_the_library_reads(provider: Provider) -> None:
    from pydantic_ai import providers

    name = provider.value.partition("/")[0]
    module = MODULES.get(name, name).replace("-", "_")
    source = Path(inspect.getfile(providers)).with_name(f"{module}.py").read_text("utf-8")
    read = set(re.findall(r"getenv\(\s*'(\w+)'", source))
    # Where it reads none, it leaves that to the provider's own library.
    if provider.needs_key and read:
        assert provider.key_variable in read
    if provider.url_variable and any("_URL" in variable for variable in read):
        assert provider.url_variable in read


@pytest.mark.parametrize("provider", Provider)
def test_what_has_to_be_installed_is_an_extra_of_pydantic_ai(provider: Provider) -> None:
    extra = provider.install.partition("[")[2].partition("]")[0]
    extras = metadata("pydantic-ai-slim").get_all("Provides-Extra") or []
    assert extra in extras


def test_both_protocols_that_everybody_speaks_are_installed() -> None:
    assert Provider.OPENAI.is_installed
    assert Provider.ANTHROPIC.is_installed
    assert Provider.OPENROUTER.is_installed


def test_what_is_not_installed_is_seen_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from goclaw_py.agents.models import catalog

    asked: list[str] = []

    def missing(name: str) -> None:
        asked.append(name)
        if "." in name:
            raise ModuleNotFoundError(name)

    monkeypatch.setattr(catalog, "find_spec", missing)
    assert not any(provider.is_installed for provider in Provider)
    assert {"google.genai", "groq", "boto3", "openai"} <= set(asked)


@given(st.sampled_from(Provider), st.text(min_size=1).filter(lambda name: name.strip() == name))
def test_every_name_of_a_model_is_read_back(provider: Provider, name: str) -> None:
    """Colons and slashes belong to the name: "openai:ft:gpt:org", "openrouter:openai/gpt"."""
    assert read_model(f"{provider.value}:{name}") == (provider, name)


@pytest.mark.parametrize("text", ["", ":", "openai", "openai:", "openai: ", ":x", "gateway:x"])
def test_what_names_no_model_is_none(text: str) -> None:
    assert read_model(text) is None


def test_the_key_of_the_settings_wins_over_the_environment() -> None:
    environ = {"GEMINI_API_KEY": " from-env\n"}
    assert find_key(Provider.GOOGLE, " given ", environ) == "given"
    assert find_key(Provider.GOOGLE, None, environ) == "from-env"
    assert find_key(Provider.GOOGLE, " ", environ | {"GOOGLE_API_KEY": ""}) == "from-env"
    assert find_key(Provider.GOOGLE, None, {}) == ""


def test_the_address_of_the_settings_wins_over_the_environment() -> None:
    environ = {"OLLAMA_BASE_URL": "http://box:11434/v1"}
    assert find_url(Provider.OLLAMA, "http://other/v1", environ) == "http://other/v1"
    assert find_url(Provider.OLLAMA, None, environ) == "http://box:11434/v1"
    assert find_url(Provider.DEEPSEEK, None, environ) is None


@pytest.mark.parametrize(
    ("provider", "key", "url", "missing"),
    [
        (Provider.OPENAI, "", None, "OPENAI_API_KEY"),
        (Provider.OPENAI, "k", None, None),
        (Provider.OPENAI, "", "http://own/v1", None),
        (Provider.OLLAMA, "", None, "OLLAMA_BASE_URL"),
        (Provider.OLLAMA, "", "http://own/v1", None),
        (Provider.AZURE, "k", None, "AZURE_OPENAI_ENDPOINT"),
        (Provider.AZURE, "", "https://acme", "AZURE_OPENAI_API_KEY"),
        (Provider.BEDROCK, "", None, None),
        (Provider.GROQ, "", None, "GROQ_API_KEY"),
    ],
)
def test_what_is_missing_is_named_by_its_variable(
    provider: Provider, key: str, url: str | None, missing: str | None
) -> None:
    assert lacks(provider, key, url) == missing


@pytest.mark.parametrize("key", ["sk-ü", "two\nlines", "bell\x07", "tab\t"])
def test_a_key_that_no_header_can_hold_is_not_sent(key: str) -> None:
    assert not is_sendable(key)
    assert is_sendable("sk-proj_A.B/C+d=")
