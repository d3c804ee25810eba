"""Many scenarios, on all processors."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.simulation.cluster import Played, play
from tests.simulation.faults import FAULTS, planted

_AT_A_TIME = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a scenario: its breaches and bugs, in words; its story if it was asked for."""

    seed: int
    wrongs: tuple[str, ...]
    story: tuple[str, ...] = ()


def verdicts(
    seeds: Iterable[int], *, fault: str = "", told: bool = False, workers: int | None = None
) -> Iterator[Verdict]:
    """Play the scenarios of these seeds, with a fault of ``FAULTS`` or without; as they come.

    ``told``: with all that happened.
    """
    wanted = list(seeds)
    parts = [wanted[at : at + _AT_A_TIME] for at in range(0, len(wanted), _AT_A_TIME)]
    # New processes: they take the seed of hashes, on which the order of sets depends, from here.
    with (
        _hashes_of_one_kind(),
        ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        playing = [pool.submit(_play_all, part, fault, told) for part in parts]
        try:
            for part in as_completed(playing):
                yield from part.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _play_all(seeds: list[int], fault: str, told: bool) -> list[Verdict]:
    with TemporaryDirectory(prefix="goclaw-scenario-") as folder, planted(FAULTS.get(fault)):
        return [_play(seed, Path(folder), told) for seed in seeds]


def _play(seed: int, folder: Path, told: bool) -> Verdict:
    """What came of a scenario; one that cannot be played is a violation too."""
    try:
        return _verdict(seed, play(seed, folder), told)
    except Exception:
        return Verdict(seed, (traceback.format_exc(),))


def _verdict(seed: int, played: Played, told: bool) -> Verdict:
    wrongs = (*map(str, played.breaches), *played.bugs)
    return Verdict(seed, wrongs, tuple(played.story()) if told else ())


@contextmanager
def _hashes_of_one_kind() -> Iterator[None]:
    known = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        yield
    finally:
        if known is None:
            del os.environ["PYTHONHASHSEED"]
        else:
            os.environ["PYTHONHASHSEED"] = known
