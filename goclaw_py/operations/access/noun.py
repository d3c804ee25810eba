"""Sign-ins and tokens, for layers that must know of them before they load routes or pages."""

from __future__ import annotations

from typing import Final

from goclaw_py.core.actors import Least
from goclaw_py.operations.access.operations import Access
from goclaw_py.operations.declare import Noun

ACCESS: Final = Noun(
    "access",
    Access,
    pages={
        Least.ADMIN: (
            "GET /sign-ins",
            "POST /sign-ins/end",
            "GET /tokens",
            "POST /tokens/create",
            "POST /tokens/revoke",
        ),
    },
    plain={"SignIn": "id address user_agent name", "Token": "name"},
    text={"NewToken": "secret"},
    notices={"signed-out": "Signed out {}.", "revoked": "Revoked {}."},
)
