"""Errors carry their facts and answer questions; nobody reads their text."""

from __future__ import annotations

import pytest

from goclaw_py.model.errors import (
    AgentError,
    ChannelError,
    ChannelRefused,
    GoclawError,
    MaybeSent,
    NotSent,
    RateLimited,
    SettingError,
    Undeliverable,
)


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (NotSent("gone"), True),
        (MaybeSent("gone"), True),
        (RateLimited("slow down", 3), True),
        (ChannelRefused("wrong token"), False),
        (Undeliverable("blocked"), False),
    ],
)
def test_a_channel_error_knows_whether_trying_again_can_help(
    error: ChannelError, retryable: bool
) -> None:
    """SPEC IO-3."""
    assert error.retryable is retryable
    assert isinstance(error, GoclawError)


def test_only_a_rate_limit_names_the_wait() -> None:
    """SPEC IO-3."""
    assert RateLimited("slow down", 2.5).retry_after_s == 2.5
    assert NotSent("gone").retry_after_s is None


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("", "lanes.main = 0: an integer from 1"),
        ("goclaw.toml", "goclaw.toml: lanes.main = 0: an integer from 1"),
    ],
)
def test_a_wrong_setting_names_source_key_value_and_what_is_allowed(source: str, text: str) -> None:
    """SPEC LANE-1."""
    error = SettingError("lanes.main", 0, "an integer from 1", source=source)
    assert str(error) == text
    assert (error.key, error.value, error.source) == ("lanes.main", 0, source)
    assert error.allowed == "an integer from 1"


def test_an_agent_error_keeps_the_cause_from_the_person_in_the_chat() -> None:
    """SPEC AGENT-8."""
    error = AgentError("Please try later.", "HTTP 503 from the provider", retryable=True)
    assert error.friendly == "Please try later."
    assert str(error) == "HTTP 503 from the provider"
    assert error.retryable
    assert not AgentError("a", "b").retryable
