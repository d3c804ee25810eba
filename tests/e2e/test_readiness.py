"""Ready means that every channel can receive (SPEC CHAN-1, CHAN-8), over both libraries."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from channels.telegram.settings import Library
from tests.botapi.control import Control
from tests.support.process import Home, home, telegram, wait_for

ANN = 1001
WRONG = "4343:AAanother-token-than-the-right-one-1234"

ACCOUNTS = """
[channels.telegram.accounts.main]
token = "{token}"
library = "{library}"
base_url = "{url}"
direct = "open"

[channels.telegram.accounts.other]
token_file = "other-token"
library = "{library}"
base_url = "{url}"
"""


def probe(place: Home, path: str = "/readyz") -> tuple[int, dict[str, Any]]:
    """What an orchestrator is answered; 0 if nobody answers yet."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(10)
        try:
            line.connect(str(place.state / "gateway.sock"))
            line.sendall(f"GET {path} HTTP/1.0\r\nHost: goclaw\r\n\r\n".encode())
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        except OSError:
            return 0, {}
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def channels(place: Home) -> dict[str, tuple[str, str]]:
    """State and detail of each Telegram account."""
    status = json.loads(place.goclaw("status", "--json")[1])
    views = [one for one in status["channels"] if one["name"] == "telegram"]
    return {one["account"]: (one["state"], one["detail"]) for one in views}


@pytest.mark.parametrize("library", Library)
def test_a_rolling_restart_loses_and_repeats_nothing(
    tmp_path: Path, api: Control, postgres_url: str, library: Library
) -> None:
    """Each gateway ends as soon as the next one says that it is ready."""
    settings = telegram(
        api,
        GOCLAW_CHANNELS__TELEGRAM__DIRECT="open",
        GOCLAW_CHANNELS__TELEGRAM__LIBRARY=library.value,
        GOCLAW_DATABASE_URL=postgres_url,
    )
    with home(tmp_path / "one", **settings) as one, home(tmp_path / "two", **settings) as two:
        before = one.start()
        wait_for(lambda: probe(one)[0] == 200, "the first one")
        for number, (old, new) in enumerate([(one, two), (two, one)]):
            after = new.start(ready=False)
            wait_for(lambda new=new: probe(new)[0] == 200, "the next one")  # type: ignore[misc]
            assert channels(new)["default"][0] in ("waiting", "connected")
            assert channels(old)["default"][0] == "connected"
            before.send(signal.SIGTERM)
            said = f"message {number}"
            api.say(ANN, f"echo {said}")
            wait_for(lambda said=said: said in api.texts(ANN), said)  # type: ignore[misc]
            assert before.wait() == 0
            before = after
        assert [text for text in api.texts(ANN) if "message" in text] == ["message 0", "message 1"]


@pytest.mark.parametrize("library", Library)
def test_a_wrong_token_of_one_account_holds_up_no_other(
    tmp_path: Path, api: Control, library: Library
) -> None:
    """Nor does a token that becomes that of the other account while the gateway runs."""
    with home(tmp_path / "home") as place:
        token = place.folder / "other-token"
        token.write_text(WRONG)
        text = ACCOUNTS.format(library=library.value, url=api.url, token=api.token)
        (place.folder / "goclaw.toml").write_text(text)
        place.start()
        wait_for(lambda: channels(place)["other"][0] == "unauthorized", "a refusal")
        wait_for(lambda: probe(place)[0] == 200, "readiness")
        parts = {one["name"]: one["state"] for one in probe(place)[1]["checks"]}
        assert parts["channels"] == "degraded"

        token.write_text(api.token)
        expected = "stopped", "its token is that of account main"
        wait_for(lambda: channels(place)["other"] == expected, "the end of the other account")
        api.say(ANN, "echo undisturbed")
        wait_for(lambda: "undisturbed" in api.texts(ANN), "an answer")
        assert channels(place)["main"] == ("connected", "")
        assert probe(place)[0] == 200


@pytest.mark.parametrize("library", Library)
def test_a_gateway_that_has_never_reached_telegram_is_alive_but_not_ready(
    tmp_path: Path, api: Control, library: Library
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}"
        settings = telegram(
            api,
            GOCLAW_CHANNELS__TELEGRAM__LIBRARY=library.value,
            GOCLAW_CHANNELS__TELEGRAM__BASE_URL=nowhere,
        )
        with home(tmp_path / "home", **settings) as place:
            place.start()
            wait_for(lambda: channels(place)["default"][1], "the reason")
            assert channels(place)["default"][0] == "starting"
            assert probe(place)[0] == 503
            assert probe(place, "/healthz")[0] == 200
