"""The request with which ``goclaw init`` tests a model (SPEC OPS-10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.cli import composition
from goclaw_py.config import Settings, load
from goclaw_py.core.errors import AgentError
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.real_time


def settings(server: ModelServer, folder: Path, model: str) -> Settings:
    env = {
        "GOCLAW_HOME": str(folder),
        "GOCLAW_AGENTS__MAIN__MODEL": model,
        "GOCLAW_AGENTS__MAIN__API_KEY": "sk-loopback",
        "GOCLAW_AGENTS__MAIN__BASE_URL": server.base_url,
    }
    return load(env=env)


async def test_one_request_without_tools_tests_a_model(tmp_path: Path) -> None:
    async with ModelServer() as server:
        await composition.probe_model(settings(server, tmp_path, "openai:say OK"))
    (seen,) = server.seen
    assert seen.headers["authorization"] == "Bearer sk-loopback"
    assert not seen.body.get("tools")


async def test_a_silent_model_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "MODEL_PROBE_S", 0.5)
    async with ModelServer() as server:
        with pytest.raises(AgentError, match="the model did not answer within"):
            await composition.probe_model(settings(server, tmp_path, "openai:hang"))
