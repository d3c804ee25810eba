"""Rules for blocks: what begins like a list, a heading or a definition, and is none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it.rules_block import (
    StateBlock,
    blockquote,
    heading,
    hr,
    lheading,
    list_block,
    reference,
)
from markdown_it.token import Token

_CRON = re.compile(r"\*(?:[ \t]+[\d*/,?LW#-]+){4,6}(?=[ \t]|$)")
"""A cron expression that begins with a star, which would be a rule or nested lists."""
_LEAST_UNDERLINE = 3
_BEHIND_WORDS = re.compile(r"^([^`\n]+)(```[\w+#.-]*)[ \t]*$", re.MULTILINE)
_BULLET = re.compile(r"[-+*](?:[ \t]+|$)")
_COMPARES = re.compile(r">(?:[=<_:;/.&%^)\]},\d]|-(?! )|>>[ ]\S)")
"""A comparison, a redirection, a face, or the prompt of Python: no quotes."""
_DEFINITION = re.compile(r"[ ]{0,3}\[([^\[\]]+)\]:\s*(?:<?(?:[A-Za-z][A-Za-z0-9+.-]*:|[/#.]))")
_LABEL = re.compile(r"\[([^\[\]]{1,300})\](?!:)")


def horizontal_rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse a rule. The cron expression of every minute is none."""
    if _is_cron(state, start) or _is_behind_mark(state, start):
        return False
    return hr(state, start, end, silent)


def items(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse a list. A cron expression is none, nor are signs that calculate."""
    if _is_cron(state, start) or _is_operator(state, start):
        return False
    return list_block(state, start, end, silent)


def titled(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse a heading. Alone, or as in the item ``- # begins a comment``, signs are themselves."""
    if _is_behind_mark(state, start) or not _line(state, start).strip("# \t"):
        return False
    return heading(state, start, end, silent)


def quoted(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse a quote. ``>=5``, ``>>> f()`` and the item ``- > is greater`` are none."""
    begin = state.bMarks[start] + state.tShift[start]
    if _COMPARES.match(state.src, begin, state.eMarks[start]):
        return False
    if _is_behind_mark(state, start) and not (
        start + 1 < end and _line(state, start + 1).startswith(">")
    ):
        return False
    return blockquote(state, start, end, silent)


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _is_behind_mark(state: StateBlock, line: int) -> bool:
    """Return whether the mark of an item is before this, in the same line."""
    begin = state.bMarks[line]
    return not state.src[begin : begin + state.tShift[line]].isspace() and state.tShift[line] > 0


def _is_operator(state: StateBlock, line: int) -> bool:
    """Return whether a bullet means itself, as in ``- + adds`` and in a formula of several lines.

    In doubt a plus does: only some models use it, for lists in lists.
    """
    text = _line(state, line)
    if not _BULLET.match(text):
        return False
    if _is_behind_mark(state, line) or (text[0] == "+" and state.listIndent < 0):
        return True
    if state.parentType != "paragraph" or state.sCount[line] < state.blkIndent:
        return False
    before = _line(state, line - 1).rstrip()
    if _BULLET.match(before) and not _is_behind_mark(state, line - 1):
        return True
    if before[-1:].isdigit():
        return text[1:].lstrip()[:1].isdigit()
    return state.sCount[line] > state.blkIndent and " = " in before


def _is_cron(state: StateBlock, line: int) -> bool:
    begin = state.bMarks[line] + state.tShift[line]
    if not state.src.startswith("*", begin):
        return False
    text = state.src[begin : state.eMarks[line]]
    return text.count("*") > 1 and _CRON.match(text) is not None


def underlined(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse an underlined heading. One sign is no line, but an equals sign or a minus.

    Three minus signs separate, as models write them, also without a blank line before them.
    """
    before, parent = len(state.tokens), state.parentType
    if not lheading(state, start, end, silent):
        return False
    line = state.line - 1
    underline = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
    underline = underline.strip()
    if len(underline) >= _LEAST_UNDERLINE and underline != "---":
        return True
    del state.tokens[before:]
    state.line, state.parentType = start, parent
    return False


def definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse the definition of a link, which is not shown, if the text has such a link."""
    found = _DEFINITION.match(state.src, state.bMarks[start] + state.tShift[start])
    if found is None:
        return False
    used = state.env.get("labels")
    if used is None:
        used = {_normal(label) for label in _LABEL.findall(state.src)}
        state.env["labels"] = used
    return _normal(found[1]) in used and reference(state, start, end, silent)


def _normal(label: str) -> str:
    return " ".join(label.split()).casefold()


def number_items(tokens: Sequence[Token]) -> None:
    """Set ``info`` of the items of ordered lists to the numbers as people see them.

    They stay as written; only one number that all items have counts on.
    """
    lists: list[list[Token]] = []
    for token in tokens:
        match token.type:
            case "ordered_list_open" | "bullet_list_open":
                lists.append([])
            case "list_item_open" if token.info:
                lists[-1].append(token)
            case "ordered_list_close" | "bullet_list_close":
                numbered = lists.pop()
                if len({item.info for item in numbered}) == 1:
                    first = numbered[0].info
                    for count, item in enumerate(numbered[1:], 1):
                        item.info = str(int(first) + count).rjust(len(first), "0")
                for item in numbered:
                    item.info += item.markup


def with_fences_on_lines(markdown: str) -> str:
    """Return a text in which each fence has its own line, also one behind words.

    Only if the next fence closes it; otherwise the signs are part of a sentence.
    """
    if not _BEHIND_WORDS.search(markdown):
        return markdown
    lines = markdown.split("\n")
    closing: str | None = None
    indents: list[str | None] = []
    for line in reversed(lines):
        indents.append(closing)
        words = line.lstrip("> \t")
        if words.startswith("```"):
            closing = line[: len(line) - len(words)] if words.rstrip() == "```" else None
    found: list[str] = []
    fence = ""
    for line, indent in zip(lines, reversed(indents), strict=True):
        words = line.lstrip("> \t")
        if words.startswith(("```", "~~~")):
            fence = words[:3] if not fence else "" if words.startswith(fence) else fence
        elif not fence and indent is not None:
            glued = _BEHIND_WORDS.fullmatch(line)
            # The mark of an item is no word.
            if glued and any(char.isalpha() for char in glued[1]):
                fence = "```"
                found += [glued[1].rstrip(), indent + glued[2]]
                continue
        found.append(line)
    return "\n".join(found)


def show_info(fence: Token) -> None:
    """Show the line of a fence as code if there is no other, as in a fence with a whole command."""
    if " " in fence.info.strip() and not fence.content.strip():
        fence.content, fence.info = fence.info.strip() + "\n", ""


def is_one_list(last: Token, first: Token) -> bool:
    """Return whether two pieces of a text were cut within a list."""
    if last.type not in {"ordered_list_close", "bullet_list_close"}:
        return False
    return first.nesting > 0 and (first.tag, first.markup) == (last.tag, last.markup)


def pieces(markdown: str, limit: int) -> Iterator[str]:
    """Split a long text between blocks, each piece at most ``limit`` characters if it can be.

    Never within code between fences, a table, or an item of several lines.
    """
    begin = place = 0
    cut = better = 0
    fence = ""
    was_blank = True
    for line in markdown.splitlines(keepends=True):
        words = line.strip()
        if place - begin + len(line) > limit and max(cut, better) > begin:
            end = better if better - begin > limit // 4 else cut
            yield markdown[begin:end]
            begin = end
        is_first = was_blank or not ("|" in line or words.startswith(">") or not words.strip("=-"))
        if not fence and words and not line[0].isspace() and is_first:
            cut = place
            if was_blank and not words[0].isdigit() and words[0] not in "-*+":
                better = place
        if words.startswith(("```", "~~~")) and (not fence or words.startswith(fence)):
            fence = "" if fence else words[:3]
        was_blank = not words
        place += len(line)
    yield markdown[begin:]
