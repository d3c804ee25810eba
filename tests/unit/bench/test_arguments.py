"""What the benchmarks say of wrong arguments."""

from __future__ import annotations

from importlib import import_module

import pytest

from bench.inbox import __main__ as inbox


@pytest.mark.parametrize(
    ("bench", "arguments", "complaint"),
    [
        ("agent.__main__", "--rounds 0", ""),
        ("compare.__main__", "HEAD --only paper", "paper is none of telegram"),
        ("compare.__main__", "HEAD --rounds 0", "--rounds is at least 1"),
        ("cron.__main__", "--rounds 0", ""),
        ("heartbeat.leaks", "--count 0", "more than 0"),
        ("inbox.__main__", "--callers 1 -5", "more than 0"),
        ("inbox.__main__", "--only nobody", "invalid choice"),
        ("inbox.__main__", "--rounds 0", "more than 0"),
        ("jobs.__main__", "together --busy -1", "--busy is at least 0"),
        ("large.__main__", "paper", "invalid choice"),
        ("large.__main__", "--rounds 0", "--rounds is at least 1"),
        ("scheduler.__main__", "dispatsch", "there is no benchmark dispatsch"),
        ("scheduler.__main__", "stop --rounds 0", "--rounds is at least 1"),
        ("soak.__main__", "", "profile"),
        ("soak.__main__", "real --nodes 3", "invalid choice: 3"),
        ("soak.__main__", "real --rate x", "invalid"),
        ("soak.__main__", "virtual --hours 0", "is more than 0"),
        ("soak.__main__", "virtual --hours nan", "is more than 0"),
        ("telegram.__main__", "answring", "there is no report answring"),
        ("start", "--rounds 0", "--rounds is at least 1"),
        ("telegram.__main__", "flood --tree /", "--tree is for answering"),
        ("telegram.__main__", "flood --rounds 0", "--rounds is at least 1"),
    ],
)
def test_a_wrong_argument_is_refused(
    bench: str,
    arguments: str,
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", *arguments.split()])
    with pytest.raises(SystemExit):
        import_module(f"bench.{bench}").main()
    assert complaint in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(inbox, "find_spec", lambda name: None if name == "pgqueuer" else name)
    monkeypatch.setattr("sys.argv", ["bench"])
    with pytest.raises(SystemExit):
        inbox.main()
    assert "not installed: pgqueuer" in capsys.readouterr().err
