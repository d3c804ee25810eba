"""The search for leaks of HEARTBEAT_OK finds what there is to be found."""

from __future__ import annotations

import pytest

from bench.heartbeat import leaks as bench
from bench.heartbeat.leaks import count, leaks, replies


def test_nothing_leaks_of_a_few_hundred_replies() -> None:
    """SPEC HB-6."""
    done = count(300, seed=1)
    assert done.leaked == []
    assert done.replies == 300 == done.ok + done.cleaned + done.untouched
    assert min(done.ok, done.cleaned, done.untouched) > 0


def test_the_replies_of_a_seed_are_the_same_each_time() -> None:
    assert list(replies(20, seed=3)) == list(replies(20, seed=3))
    assert list(replies(20, seed=3)) != list(replies(20, seed=4))


def test_most_replies_would_leak_if_nothing_were_done() -> None:
    assert sum(map(leaks, replies(200, seed=2))) > 100


@pytest.mark.parametrize(
    "text",
    [
        "HEARTBEAT_OK",
        "so: **HEARTBEAT_OK**.",
        "HEART<b>BEAT</b>_OK",
        "HEARTBEAT&#95;OK",
        "[HEART](x)BEAT_OK",
        r"HEARTBEAT\_OK",
        "HEART\u200bBEAT_OK",
        "_HEARTBEAT_OK_",
        "HEART**BEAT**_OK",
    ],
)
def test_the_detector_sees_the_token(text: str) -> None:
    assert leaks(text)


def test_the_detector_sees_nothing_else() -> None:
    for text in ("", "HEARTBEAT_OKAY", "NOT_HEARTBEAT_OK", "HEARTBEAT OK"):
        assert not leaks(text), text


def test_a_leak_is_shown_and_fails_the_search(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["leaks", "--count", "50"])
    assert bench.main() == 0
    assert "50 replies" in capsys.readouterr().out
    monkeypatch.setattr(bench, "without_token", lambda text: text)
    assert bench.main() == 1
    assert "->" in capsys.readouterr().out
