"""What keys do in ``goclaw top`` (SPEC OPS-1)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goclaw_py.cli.top.keys import Effect, Shown, TopState, TopTab, keys_of, pressed
from goclaw_py.cli.top.rates import Counts, Rate, rate_text
from goclaw_py.core.ids import RunId

A, B, C = RunId("a"), RunId("b"), RunId("c")
LIST = Shown((A, B, C), frozenset({A, B}), page=2)
TEXT = Shown((), frozenset({A}), page=10, most=25)


def after(state: TopState, *keys: str, shown: Shown = LIST) -> TopState:
    for key in keys:
        state, effect = pressed(state, key, shown)
        assert effect is None
    return state


@pytest.mark.parametrize(("data", "keys"), [
    (b"\x1b[A\x1bOBkj", ["up", "down", "up", "down"]),
    (b"\r\n\t\x1b[Z", ["enter", "enter", "next", "previous"]),
    (b"\x1b[5~\x1b[6~gG \x1b[1;5A", ["page up", "page down", "first", "last", "page down"]),
    (b"sly?q1", list("sly?q1")),
    (b"\x1b", ["esc"]),
    (b"\x1bq", ["esc", "q"]),
    (b"\x1b[", ["esc", "["]),
    ("é".encode(), ["Ã", "©"]),
])  # fmt: skip
def test_keys_have_names(data: bytes, keys: list[str]) -> None:
    assert keys_of(data, complete=True) == (keys, b"")


@pytest.mark.parametrize("rest", [b"\x1b", b"\x1b[", b"\x1bO", b"\x1b[1;5"])
def test_a_key_whose_rest_is_to_come_waits(rest: bytes) -> None:
    assert keys_of(b"j" + rest, complete=False) == (["down"], rest)


@given(st.binary(max_size=40), st.integers(0, 40))
def test_a_key_may_come_in_pieces(data: bytes, cut: int) -> None:
    first, rest = keys_of(data[:cut], complete=False)
    second, end = keys_of(rest + data[cut:], complete=True)
    assert (first + second, end) == keys_of(data, complete=True)


def test_arrows_select_within_the_list() -> None:
    assert after(TopState(), "down").selected == B
    assert after(TopState(), "down", "down", "down").selected == C
    assert after(TopState(), "last", "up", "page up").selected == A
    assert after(TopState(), "up").selected == A
    assert after(TopState(selected=C), "first").selected == A


def test_a_run_that_is_gone_leaves_the_first_one_selected() -> None:
    assert after(TopState(selected=RunId("gone")), "down").selected == B


def test_a_list_without_runs_says_so() -> None:
    assert "no run to open" in after(TopState(), "enter", shown=Shown()).notice
    assert "no run to stop" in after(TopState(), "s", shown=Shown()).notice
    assert after(TopState(), "s", "down", shown=Shown()) == TopState()


def test_enter_opens_a_run_and_esc_or_q_closes_it() -> None:
    opened = after(TopState(), "down", "enter")
    assert opened.opened == B
    assert after(opened, "esc") == after(opened, "q") == TopState(selected=B)
    scrolled = after(opened, "down", "page down", shown=TEXT)
    assert scrolled.scroll == 11
    assert after(scrolled, "last", "down", shown=TEXT).scroll == 25
    assert after(scrolled, "first", "up", shown=TEXT).scroll == 0


def test_only_y_stops_a_run() -> None:
    asked = after(TopState(), "down", "s")
    assert asked.stopping == B
    assert pressed(asked, "y", LIST) == (replace(asked, stopping=None), Effect.STOP)
    for key in ("n", "q", "esc", "enter", "s", "Y"):
        assert pressed(asked, key, LIST) == (replace(asked, stopping=None), None)


def test_a_run_that_has_ended_is_not_stopped() -> None:
    state = after(TopState(), "last", "s")
    assert (state.stopping, state.notice) == (None, "This run has ended.")
    assert after(state, "up").notice == ""
    assert after(TopState(opened=C), "s", shown=TEXT).notice == "This run has ended."
    assert after(TopState(opened=A), "s", shown=TEXT).stopping == A


def test_lists_are_chosen_by_tab_arrow_or_number() -> None:
    assert after(TopState(selected=B), "next") == TopState(tab=TopTab.ENDED)
    assert after(TopState(), *["next"] * 4) == TopState()
    assert after(TopState(), "previous") == TopState(tab=TopTab.LOG)
    assert after(TopState(opened=A), "3") == TopState(tab=TopTab.FAILED)


def test_l_shows_the_log_of_a_run_and_then_all_of_it() -> None:
    log = after(TopState(), "down", "l")
    begun = TopState(selected=B)
    assert log == TopState(tab=TopTab.LOG, log_of=B, back=begun)
    assert after(log, "l") == TopState(tab=TopTab.LOG, back=begun)
    assert after(TopState(), "l", shown=Shown()).tab is TopTab.LOG
    # Esc leads back to where the log was asked for.
    assert after(log, "esc") == after(log, "l", "esc") == begun
    opened = TopState(opened=A, scroll=3)
    assert after(opened, "l", shown=TEXT).log_of == A
    assert after(opened, "l", "esc", shown=TEXT) == opened
    assert after(TopState(tab=TopTab.LOG), "esc") == TopState()
    # A log begins at its end, and "up" goes back in it.
    assert after(log, "up", "page up", shown=TEXT).scroll == 11
    assert after(log, "first", shown=TEXT).scroll == 25
    assert after(log, "first", "last", shown=TEXT).scroll == 0


def test_s_in_a_log_stops_its_run_and_says_if_it_has_none() -> None:
    log = TopState(tab=TopTab.LOG, log_of=A)
    assert after(log, "s").stopping == A
    assert "has ended" in after(log, "s", shown=Shown((A,))).notice
    for key in ("s", "enter"):
        assert "Select a run first" in after(TopState(tab=TopTab.LOG), key).notice


def test_help_is_closed_by_any_key() -> None:
    helped = after(TopState(selected=B), "?")
    assert helped.has_help
    assert after(helped, "q") == TopState(selected=B)


def test_q_ends_from_every_list() -> None:
    for tab in TopTab:
        assert pressed(TopState(tab=tab), "q", LIST)[1] is Effect.QUIT


NAMES = "up,down,next,previous,enter,esc,first,last,page up,page down,q,s,y,l,?,1,2,3,x"
KEYS = st.sampled_from(NAMES.split(","))


@given(st.lists(KEYS), st.lists(st.sampled_from([A, B, C]), unique=True), st.integers(0, 5))
def test_no_order_of_keys_leaves_the_lists(keys: list[str], runs: list[RunId], most: int) -> None:
    state, shown = TopState(), Shown(runs, frozenset(runs[:1]), most=most)
    for key in keys:
        before = state
        state, effect = pressed(state, key, shown)
        assert (effect is Effect.STOP) == (key == "y" and before.stopping is not None)
        assert 0 <= state.scroll <= most
        assert state.stopping in {None, *runs}


def test_rates_are_those_of_the_last_minute() -> None:
    rate, rates = Rate(), []
    # Too early to say, then over the last minute; 0 is that of another gateway or another day.
    for counts in (Counts(0, 100), Counts(9, 101), Counts(30, 110), Counts(90, 111), Counts(91, 0)):
        rate.add(counts)
        rates.append(rate.per_minute)
    assert rates == [None, None, 20, 1, None]
    assert Rate().per_minute is None


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (None, "- runs/min"),
        (0.0, "0 runs/min"),
        (4.25, "4.2 runs/min"),
        (9.96, "10.0 runs/min"),
        (1234.5, "1234 runs/min"),
    ],
)
def test_a_rate_is_short(rate: float | None, text: str) -> None:
    assert rate_text("runs", rate) == text
