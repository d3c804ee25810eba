"""Highlights code in answers, with Pygments. No other module uses it."""

from __future__ import annotations

import logging
from typing import Final

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

log = logging.getLogger(__name__)

_LANGUAGES: Final = frozenset(
    (
        *("Bash", "Bash Session", "C", "C++", "CSS", "Diff", "Docker", "Go", "HTML", "INI", "JSON"),
        *("JSX", "Java", "JavaScript", "Kotlin", "Lua", "Makefile", "Markdown", "PHP"),
        *("PowerShell", "Python", "Ruby", "Rust", "S", "SQL", "Swift", "TOML", "TSX"),
        *("TypeScript", "XML", "YAML"),
    )
)
"""The languages whose lexers need little more than a second for the longest code, whatever it is.

Others may need minutes for text that is made for it, such as 20,000 line breaks as AutoHotkey. S is
the lexer of R.
"""

_FORMATTER: Final = HtmlFormatter(nowrap=True)
"""Writes elements with classes: the policy of the pages allows no styles in elements."""


def highlighted(code: str, language: str, _attributes: str = "") -> str:
    """Return code as HTML with classes for its tokens; "" for other languages."""
    try:
        lexer = get_lexer_by_name(language[:64], stripnl=False, ensurenl=False)
        return str(highlight(code, lexer, _FORMATTER)) if lexer.name in _LANGUAGES else ""
    except ClassNotFound:
        return ""
    except Exception:  # a lexer is as good as its author; the code is shown as it is
        log.exception("highlighting_failed", extra={"language": language[:64]})
        return ""
