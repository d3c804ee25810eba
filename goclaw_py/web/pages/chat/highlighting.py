"""Highlights code in answers, with Pygments. No other module uses it."""

from __future__ import annotations

import logging
from typing import Final

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

log = logging.getLogger(__name__)

_LONGEST: Final = 20_000
"""The longest code to highlight, in characters; longer code is shown as it is."""

_FORMATTER: Final = HtmlFormatter(nowrap=True)
"""Writes elements with classes: the policy of the pages allows no styles in elements."""


def highlighted(code: str, language: str, _attributes: str = "") -> str:
    """Return code as HTML with classes for its tokens; "" if its language is not known."""
    if not language or len(code) > _LONGEST:
        return ""
    try:
        lexer = get_lexer_by_name(language[:64], stripnl=False, ensurenl=False)
        return str(highlight(code, lexer, _FORMATTER))
    except ClassNotFound:
        return ""
    except Exception:  # a lexer is as good as its author; the code is shown as it is
        log.exception("highlighting_failed", extra={"language": language[:64]})
        return ""
