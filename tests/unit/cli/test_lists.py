"""``goclaw config agents``, ``models`` and ``channels``: what the settings define (SPEC OPS-1)."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Shell, ThreadGateway, lines

SETTINGS = """
[agents.main]
model = "openai:gpt-4o"
fallback = ["anthropic:claude-sonnet-4-5", "openai:no-such-model"]

[agents.main.tools]
deny = ["send_file"]
delegates = ["helper"]

[agents.main.mcp.files]
command = ["files"]
trusted = true

[agents.main.mcp.web]
url = "https://tools.example.org"

[agents.helper]
model = "openai:gpt-4o"
base_url = "https://models.example.org/v1"
tools = { allow = [] }

[channels.telegram]
token = "1234:a-secret-that-nothing-shows"
groups = "open"

[channels.telegram.accounts.work]
token = "1235:a-secret-that-nothing-shows"
agent = "helper"
direct = "open"

[channels.telegram.accounts.old]
enabled = false
"""


def test_agents_are_listed_with_their_models_and_tools(goclaw: Shell, home: Path) -> None:
    (home / "goclaw.toml").write_text(SETTINGS)
    head, main, helper = lines(goclaw("config", "agents").out)
    assert head == "AGENT MODEL FALLBACK TOOLS DELEGATES WORKSPACE"
    assert main.startswith(
        "main openai:gpt-4o anthropic:claude-sonnet-4-5, openai:no-such-model "
        "default, not send_file, server files (trusted), server web helper /"
    )
    assert helper.startswith("helper openai:gpt-4o none /")
    (document, _) = goclaw.data("config", "agents")
    assert (document["tools"], document["denied"]) == (None, ["send_file"])
    assert document["tool_servers"] == ["files", "web"]
    assert document["trusted_servers"] == ["files"]


def test_models_are_listed_with_their_prices_where_they_are_known(
    goclaw: Shell, home: Path
) -> None:
    """A server of one's own has no price, whatever its models are called."""
    (home / "goclaw.toml").write_text(SETTINGS)
    assert lines(goclaw("config", "models").out) == [
        "MODEL PROVIDER INPUT USD OUTPUT USD CONTEXT AGENTS",
        "openai:gpt-4o openai 2.5 10 128,000 main",
        "anthropic:claude-sonnet-4-5 anthropic 3 15 200,000 main",
        "openai:no-such-model openai main",
        "openai:gpt-4o openai helper",
    ]
    assert goclaw.data("config", "models")[0]["input_usd"] == "2.5000"


def test_channels_are_listed_with_who_may_talk(
    goclaw: Shell, home: Path, gateway: ThreadGateway
) -> None:
    (home / "goclaw.toml").write_text(SETTINGS)
    out = goclaw("config", "channels").out
    assert lines(out) == [
        "CHANNEL ACCOUNT STATE AGENT DIRECT GROUPS DETAIL",
        "telegram default stopped main pairing open wrong token",
        "telegram work not running helper open allowlist",
    ]
    gateway.stop()
    assert lines(goclaw("config", "channels").out)[1] == (
        "telegram default not running main pairing open"
    )
    assert "secret" not in out + goclaw("config", "channels", "--json").out
