"""Errors carry their facts and answer questions; nobody reads their text."""

from __future__ import annotations

from goclaw_py.core.errors import (
    AgentError,
    ChannelRefused,
    GoclawError,
    MaybeSent,
    NotSent,
    RateLimited,
    SettingError,
    Undeliverable,
)


def test_a_channel_error_knows_whether_trying_again_can_help_and_when() -> None:
    """SPEC IO-3: only a rate limit names the wait."""
    for error in (NotSent("gone"), MaybeSent("gone"), RateLimited("slow down", 2.5)):
        assert error.retryable
        assert isinstance(error, GoclawError)
        assert error.retry_after_s == (2.5 if isinstance(error, RateLimited) else None)
    for final in (ChannelRefused("wrong token"), Undeliverable("blocked")):
        assert not final.retryable
        assert isinstance(final, GoclawError)


def test_a_wrong_setting_names_source_key_value_and_what_is_allowed() -> None:
    """SPEC LANE-1."""
    for source, beginning in (("", ""), ("goclaw.toml", "goclaw.toml: ")):
        error = SettingError("lanes.main", 0, "an integer from 1", source=source)
        assert str(error) == f"{beginning}lanes.main = 0: an integer from 1"
        assert (error.key, error.value, error.source) == ("lanes.main", 0, source)
        assert error.allowed == "an integer from 1"


def test_an_agent_error_keeps_the_cause_from_the_person_in_the_chat() -> None:
    """SPEC AGENT-8."""
    error = AgentError("Please try later.", "HTTP 503 from the provider", retryable=True)
    assert error.friendly == "Please try later."
    assert str(error) == "HTTP 503 from the provider"
    assert error.retryable
    assert not AgentError("a", "b").retryable
