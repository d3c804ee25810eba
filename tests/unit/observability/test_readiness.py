"""When a gateway is ready for work (SPEC OPS-2)."""

from __future__ import annotations

import pytest

from goclaw_py.observability.readiness import Condition, ReadinessCheck, Vitals, judge
from goclaw_py.scheduler.views import ChannelState, ChannelView


def channel(state: ChannelState, detail: str = "") -> ChannelView:
    return ChannelView("telegram", "secret-account", state, detail)


WORKS = channel(ChannelState.CONNECTED)
STANDS_BY = channel(ChannelState.WAITING, "another gateway receives for this account")
TROUBLED = channel(ChannelState.RECONNECTING, "no answer from api.example.org, token 123:abc")
BEGINS = channel(ChannelState.STARTING)
UNREACHED = channel(ChannelState.STARTING, "Telegram cannot be reached, for 9 s now: no route")
CRASHED = channel(ChannelState.FAILED, "failed: a bug")
STOPPED = channel(ChannelState.STOPPED, "wrong token 123:abc")
WELL = Vitals(database=True, channels=(WORKS,), lag_s=0.0, draining=False)


def the(name: str, vitals: Vitals) -> ReadinessCheck:
    (check,) = [one for one in judge(vitals).checks if one.name == name]
    return check


@pytest.mark.parametrize(("database", "lag_s", "draining", "ready"), [
    (True, 0.0, False, True), (False, 0.0, False, False),
    (True, 0.999, False, True), (True, 4.999, False, True),
    (True, 5.0, False, False), (True, 0.0, True, False),
    (False, 9.0, True, False),
])  # fmt: skip
def test_it_is_ready_if_nothing_fails(
    database: bool, lag_s: float, draining: bool, ready: bool
) -> None:
    found = judge(Vitals(database=database, channels=(), lag_s=lag_s, draining=draining))
    assert found.ready is ready
    assert (found.words == "") is ready
    assert [check.name for check in found.checks] == ["database", "channels", "lag", "draining"]


@pytest.mark.parametrize(("channels", "state", "words"), [
    ((), Condition.OK, "no channel is set up"),
    ((WORKS,), Condition.OK, "1 connected (without the console)"),
    ((STANDS_BY,), Condition.OK, "1 waiting (without the console)"),
    ((WORKS, STANDS_BY, WORKS), Condition.OK, "2 connected, 1 waiting (without the console)"),
    ((WORKS, STOPPED), Condition.DEGRADED, "1 connected, 1 stopped (without the console)"),
    ((TROUBLED,), Condition.DEGRADED, "1 reconnecting (without the console)"),
    ((WORKS, TROUBLED), Condition.DEGRADED, "1 connected, 1 reconnecting (without the console)"),
    ((WORKS, BEGINS), Condition.FAILING, "a channel is starting: 1 connected, 1 starting"),
    ((STANDS_BY, BEGINS), Condition.FAILING, "a channel is starting: 1 starting, 1 waiting"),
    ((UNREACHED,), Condition.FAILING, "no channel works: 1 starting"),
    ((WORKS, UNREACHED), Condition.FAILING, "a channel is starting: 1 connected, 1 starting"),
    ((WORKS, CRASHED), Condition.DEGRADED, "1 connected, 1 failed (without the console)"),
    ((CRASHED,), Condition.FAILING, "no channel works: 1 failed"),
    ((BEGINS,), Condition.FAILING, "no channel works: 1 starting"),
    ((STOPPED, BEGINS), Condition.FAILING, "no channel works: 1 starting, 1 stopped"),
])  # fmt: skip
def test_all_channels_have_begun_and_one_serves(
    channels: tuple[ChannelView, ...], state: Condition, words: str
) -> None:
    vitals = Vitals(database=True, channels=channels, lag_s=0, draining=False)
    check = the("channels", vitals)
    assert (check.state, check.words) == (state, words)
    assert judge(vitals).ready is (state is not Condition.FAILING)


def test_a_lag_is_told_before_it_is_too_much() -> None:
    states = {0.0: "ok", 0.999: "ok", 1.0: "degraded", 4.999: "degraded", 5.0: "failing"}
    for lag_s, state in states.items():
        vitals = Vitals(database=True, channels=(WORKS,), lag_s=lag_s, draining=False)
        assert the("lag", vitals).state == state


def test_the_sentence_names_all_that_fails_and_nothing_else() -> None:
    found = judge(Vitals(database=False, channels=(STOPPED,), lag_s=2.0, draining=True))
    failing = "the database does not answer; no channel works: 1 stopped"
    assert found.words == f"not ready: {failing}; the gateway is shutting down"
    assert judge(WELL).words == ""


def test_no_account_and_no_error_is_told() -> None:
    """SPEC SEC-2: anybody may ask, without a token."""
    for channels in ((TROUBLED,), (STOPPED,), (STANDS_BY, TROUBLED, STOPPED)):
        found = judge(Vitals(database=False, channels=channels, lag_s=0, draining=True))
        said = found.words + "".join(check.words for check in found.checks)
        assert not [part for part in ("account", "token", "123", "telegram") if part in said]
