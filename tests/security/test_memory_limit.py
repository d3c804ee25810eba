"""A gateway gets less memory than people could fill (SPEC AGENT-13, CHAN-6).

Promised: what people send takes a limited amount of memory, however much it is; if there is not
even that much, each of these runs fails with its reason, and the gateway goes on. Tried: files of
20 MB and albums of 49 MB from several people at once, in a real gateway whose data segment may grow
by a limit (``RLIMIT_DATA``), as a stand-in for a container's limit.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.botapi.control import Control
from tests.botapi.files import FileKind, png
from tests.e2e.loopback_model import model_server, use
from tests.support.process import Home, Program, emulator, home, telegram, wait_for

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

ANN = 1001
PEOPLE = range(100, 104)
FILES = 10
ROOM_MB = 250
"""More than two albums at once take, and less than one would without a limit."""
LITTLE_MB = 60
"""Less than one album takes, and enough for everything small: where even that gets no memory, the
libraries crash the process."""
PICTURE = png(9, 9) + bytes(4_900_000)


@pytest.fixture
def api() -> Iterator[Control]:
    with emulator() as control:
        yield control


@contextmanager
def started(folder: Path, api: Control) -> Iterator[tuple[Home, Program]]:
    """Run a gateway that has answered once, so that everything is imported."""
    open_door = {"GOCLAW_CHANNELS__TELEGRAM__DIRECT": "open"}
    with model_server() as model, home(folder, **telegram(api, **open_door)) as bot:
        use(bot, model)
        # The parts of an album are one message.
        bot.env |= {"GOCLAW_QUEUE__DEBOUNCE_MS": "500", "GOCLAW_LANES__MAIN": "2"}
        gateway = bot.start()
        api.say(ANN, "say hi")
        api.wait_visible(ANN, "hi")
        bot.rows("runs", "list")  # loads the API
        yield bot, gateway


def leave_room(gateway: Program, room_mb: int | None) -> None:
    """Limit how much the data of a gateway may grow; None: without a limit."""
    most = resource.RLIM_INFINITY
    if room_mb is not None:
        status = Path(f"/proc/{gateway.pid}/status").read_text()
        (used_kb,) = (line.split()[1] for line in status.splitlines() if "VmData" in line)
        most = int(used_kb) * 1024 + room_mb * 2**20
    resource.prlimit(gateway.pid, resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))


def send_album(api: Control, who: int) -> None:
    for number in range(FILES):
        caption = "" if number else "say got"
        api.send(who, FileKind.PHOTO, content=PICTURE, album=f"{who:019}", caption=caption)


def goes_on(bot: Home, api: Control) -> None:
    """Check that it answers messages and ``/stop``, and that nothing is left."""
    api.say(ANN, "slow 1000 0.1")
    wait_for(lambda: bot.rows("runs", "list", "--active"), "a run")
    api.say(ANN, "/stop")
    wait_for(lambda: "Stopped." in "".join(api.texts(ANN)), "the answer to /stop")
    api.say(ANN, "say again")
    wait_for(lambda: "again" in api.texts(ANN), "the next answer")
    assert bot.rows("inbox", "list", "--waiting") == []


def test_large_files_of_many_people_are_served_in_little_memory(
    tmp_path: Path, api: Control
) -> None:
    with started(tmp_path / "home", api) as (bot, gateway):
        leave_room(gateway, ROOM_MB)
        for who in PEOPLE:
            send_album(api, who)
            api.send(who + 100, FileKind.DOCUMENT, size=20_000_000, caption="say got")
        for who in (*PEOPLE, *(who + 100 for who in PEOPLE)):
            (text,) = wait_for(partial(api.texts, who), "an answer")
            assert text.startswith("got"), gateway.output
        goes_on(bot, api)
        assert gateway.alive()


def test_a_run_without_memory_fails_with_its_reason_and_the_gateway_goes_on(
    tmp_path: Path, api: Control
) -> None:
    with started(tmp_path / "home", api) as (bot, gateway):
        leave_room(gateway, LITTLE_MB)
        for who in PEOPLE:
            send_album(api, who)
        for who in PEOPLE:
            (text,) = wait_for(partial(api.texts, who), "an answer")
            assert "went wrong" in text
        # The log is written in the background.
        wait_for(lambda: gateway.output.count("MemoryError") >= len(PEOPLE), "the reasons")
        # What needs memory now may fail as well, so there is more of it again.
        leave_room(gateway, None)
        goes_on(bot, api)
        for who in PEOPLE:
            send_album(api, who + 200)
            (text,) = wait_for(partial(api.texts, who + 200), "an answer")
            assert text.startswith("got")
            assert len(api.texts(who)) == 1
