"""Documents as their readers use them: what they type, click, and put into files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.guides import ROOT

GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))
READ_BY_USERS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "AGENTS.md"]
READ_BY_USERS += [ROOT / "examples" / "README.md", *GUIDES]
DOCUMENTS = [*READ_BY_USERS, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS += sorted((ROOT / "docs" / "adr").glob("*.md"))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELLS = {"sh": "", "console": "$ "}
"""The kinds of blocks that show what to type, and what stands before it there."""
_ENDS_A_COMMAND = frozenset({"|", "||", "&&", ";", "&", "(", ")"})
_ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=")
_BEFORE_OURS = re.compile(
    r"(?:sudo -u \S+ env .*|docker(?: compose)? exec \S+|docker compose run --rm"
    r"|kubectl exec \S+ --|uvx --from \S+)?"
)
"""What may stand before ``goclaw`` where it is the program that runs."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    file: Path
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.file.name}: {self.text.splitlines()[0][:60]}"


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of a shell block: its words, without assignments and redirections."""

    file: Path
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file.name}: {shlex.join(self.words)}"

    @property
    def ours(self) -> list[str] | None:
        """The words behind ``goclaw`` if this runs it, wherever it does."""
        for place in range(len(self.words), 0, -1):
            name = self.words[place - 1]
            before = " ".join(self.words[: place - 1])
            is_ours = name == "goclaw" or name.endswith("/bin/goclaw")
            if is_ours and _BEFORE_OURS.fullmatch(before):
                return list(self.words[place:])
        return None


def blocks(files: list[Path], *kinds: str) -> list[Block]:
    """Those of these kinds, in their order."""
    return [
        Block(file, kind, text)
        for file in files
        for kind, text in _FENCE.findall(file.read_text("utf-8"))
        if kind in kinds
    ]


def prose(file: Path) -> str:
    """A document without its fenced blocks."""
    return _FENCE.sub("", file.read_text("utf-8"))


def typed(files: list[Path]) -> list[Typed]:
    """Every command that shell blocks tell people to type."""
    return [
        Typed(block.file, words)
        for block in blocks(files, *_SHELLS)
        for line in _lines(block)
        for words in commands(line)
    ]


def _lines(block: Block) -> Iterator[str]:
    start = _SHELLS[block.kind]
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.strip() and line.startswith(start):
            yield line.removeprefix(start)


def commands(line: str) -> Iterator[tuple[str, ...]]:
    """The commands of one line, as a shell takes it apart."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    words: list[str] = []
    to_a_file = False
    for token in lexer:
        if token in _ENDS_A_COMMAND:
            yield from _whole(words)
            words = []
        elif set(token) <= {"<", ">"}:
            to_a_file = True
        elif to_a_file:
            to_a_file = False
        else:
            words.append(token)
    yield from _whole(words)


def _whole(words: list[str]) -> Iterator[tuple[str, ...]]:
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    if words:
        yield tuple(words)


def anchors(file: Path) -> set[str]:
    """The names of its headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", prose(file), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        name, again = slug, 0
        while name in found:
            again += 1
            name = f"{slug}-{again}"
        found.add(name)
    return found


def links(file: Path) -> list[str]:
    """Where it links to, but for other hosts."""
    text = re.sub(r"`[^`\n]*`", "``", prose(file))
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    found += re.findall(r"^\[[^\]]+\]:\s+(\S+)", text, re.MULTILINE)
    return [target for target in found if not re.match(r"[a-z]+:", target)]
