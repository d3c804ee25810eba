"""What a whole gateway writes into its log when something in it breaks (SPEC OPS-5, SEC-2)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from goclaw_py.app.logs import configure
from goclaw_py.common.redaction import HIDDEN
from goclaw_py.config import LogFormat, load
from goclaw_py.model.messages import OutboundMessage
from goclaw_py.ports.agent import AgentResult, Emit, RunRequest
from goclaw_py.testing.agents import ScriptedAgent
from goclaw_py.testing.channel import RecordingChannel
from tests.support.harness import message
from tests.unit.app.test_service import a_service

pytestmark = pytest.mark.real_time

TOKEN = "987654321:" + "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw_"
KEY = "a-key-of-no-known-form"
library = logging.getLogger("some.library")


class LibraryError(Exception):
    """What libraries raise that put addresses into their errors."""


def call(address: str) -> None:
    library.warning("request failed", extra={"url": address})
    raise LibraryError(f"cannot connect to {address}")


class Breaking(ScriptedAgent):
    """An agent whose library quotes its key."""

    async def run(self, request: RunRequest, emit: Emit) -> AgentResult:
        call(f"https://models.test/v1?key={KEY}")
        raise AssertionError("it was raised before")


class BreakingChannel(RecordingChannel):
    """A channel whose library quotes its token."""

    async def send(self, message: OutboundMessage) -> str:
        call(f"https://api.telegram.test/bot{TOKEN}/sendMessage")
        raise AssertionError("it was raised before")


@pytest.fixture
def log_before() -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    root.handlers.clear()
    yield
    logging.captureWarnings(capture=False)
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = before
    root.setLevel(level)


@pytest.mark.parametrize("form", [LogFormat.JSON, LogFormat.CONSOLE])
@pytest.mark.usefixtures("log_before")
async def test_what_libraries_quote_is_hidden_and_the_run_is_named(
    tmp_path: Path, form: LogFormat
) -> None:
    env = {
        "GOCLAW_HOME": str(tmp_path),
        "GOCLAW_TELEGRAM_TOKEN": TOKEN,
        "GOCLAW_AGENTS__MAIN__API_KEY": KEY,
        "GOCLAW_LOG__FORMAT": form.value,
        "GOCLAW_LOG__LEVEL": "debug",
    }
    configure(load(env=env), file=tmp_path / "log")
    async with a_service(tmp_path, Breaking(), channel=BreakingChannel()) as gateway:
        await gateway.until(lambda: gateway.said)
        await gateway.channel.deliver(message("work"))
        await gateway.until(lambda: "channel_send_crashed" in (tmp_path / "log").read_text())
        (run,) = await gateway.store.runs()
    text = (tmp_path / "log").read_text()
    assert "LibraryError" in text
    assert HIDDEN in text
    for secret in (TOKEN, TOKEN.partition(":")[2], KEY):
        assert secret not in text
    if form is LogFormat.JSON:
        lines = [orjson.loads(line) for line in text.splitlines()]
        broken = [line for line in lines if line["logger"] == "some.library"]
        assert len(broken) >= 2
        about = {(line["run_id"], line["session"]) for line in broken}
        assert about == {(run.id, run.session)}, "of its work, and of the delivery of what it says"
