"""Explains why something did or did not happen."""

from __future__ import annotations

from goclaw_py.gateway.why import gateway, subjects
from goclaw_py.gateway.why.sources import Sources
from goclaw_py.model.explanation import Explanation


async def explain(src: Sources, about: str | None) -> Explanation:
    """Explain something by whatever it is called; None: the gateway as a whole.

    Raises ``NotFound``, with the candidates where several things are meant, and
    ``StoreUnavailable``.
    """
    if about is None or not about.strip():
        return await gateway.explain(src)
    return await (await subjects.find(src, about)).explain()
