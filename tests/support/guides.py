"""Programs in guides: each is followed by what it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Program:
    """One of a guide, with what it prints."""

    code: str
    prints: str


def programs(guide: str) -> list[Program]:
    """Those of a file in ``docs/guide``, which has no other fenced blocks."""
    text = (ROOT / "docs" / "guide" / guide).read_text(encoding="utf-8")
    fences: list[tuple[str, str]] = _FENCE.findall(text)
    kinds = [kind for kind, _ in fences]
    assert kinds == ["python", "text"] * (len(fences) // 2), kinds
    texts = [text for _, text in fences]
    return [Program(*pair) for pair in zip(texts[::2], texts[1::2], strict=True)]
