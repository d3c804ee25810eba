"""What is printed: lines for people, then one line of JSON for programs."""

from __future__ import annotations

import json
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Sign(StrEnum):
    """How a figure is to compare with its bound."""

    AT_LEAST = "≥"
    AT_MOST = "≤"
    BELOW = "<"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a figure is to be."""

    sign: Sign
    bound: float

    def is_met(self, value: float) -> bool:
        """Whether a value is as wanted."""
        match self.sign:
            case Sign.AT_LEAST:
                return value >= self.bound
            case Sign.AT_MOST:
                return value <= self.bound
            case Sign.BELOW:
                return value < self.bound

    def __str__(self) -> str:
        return f"{self.sign} {_number(self.bound)}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was measured once in each round."""

    name: str
    values: Sequence[float]
    unit: str = ""
    wanted: Wanted | None = None

    @property
    def median(self) -> float:
        """Over the rounds."""
        return statistics.median(self.values)

    @property
    def reached(self) -> bool | None:
        """Whether the median is as wanted; None if nothing was wanted."""
        return None if self.wanted is None else self.wanted.is_met(self.median)

    def text(self) -> str:
        """For people."""
        number = f"{_number(self.median)} {self.unit}".rstrip()
        if self.wanted is None:
            return f"{self.name} {number}".lstrip()
        spread = f"{_number(min(self.values))} to {_number(max(self.values))}"
        verdict = "reached" if self.reached else "MISSED"
        return f"{self.name} {number} ({spread}; wanted {self.wanted}: {verdict})".lstrip()


@dataclass(frozen=True, slots=True)
class Line:
    """What was measured of one thing."""

    label: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """One benchmark. ``about`` says what was done, in a sentence or two."""

    bench: str
    about: str
    rounds: int
    lines: list[Line] = field(default_factory=list)

    def show(self) -> None:
        """Print it."""
        print(f"\n{self.bench}: {self.about}")
        width = max(len(line.label) for line in self.lines)
        for line in self.lines:
            figures = " · ".join(figure.text() for figure in line.figures)
            print(f"  {line.label:{width}}  {figures}")
        print(json.dumps(self.plain(), ensure_ascii=False), flush=True)

    def plain(self) -> dict[str, object]:
        """For programs; medians, smallest and largest values over the rounds."""
        return {
            "bench": self.bench,
            "python": platform.python_version(),
            "rounds": self.rounds,
            "lines": [
                {"label": line.label, "figures": [_plain(figure) for figure in line.figures]}
                for line in self.lines
            ],
        }


def progress(bench: str, done: int, rounds: int) -> None:
    """Tell whoever waits how far it is."""
    print(f"{bench}: round {done + 1} of {rounds}", file=sys.stderr, flush=True)


def ratios(of: Sequence[float], to: Sequence[float]) -> list[float]:
    """The ratio within each round."""
    return [one / other for one, other in zip(of, to, strict=True)]


def _plain(figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name,
        "unit": figure.unit,
        "median": _short(figure.median),
        "min": _short(min(figure.values)),
        "max": _short(max(figure.values)),
        "wanted": None if figure.wanted is None else str(figure.wanted),
        "reached": figure.reached,
    }


def _short(value: float) -> float:
    """No more digits than were measured."""
    return float(f"{value:.6g}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
