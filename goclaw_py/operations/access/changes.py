"""What the audit log has of operations on sign-ins and tokens (SPEC SEC-9)."""

from __future__ import annotations

from typing import Final

from goclaw_py.operations.declare import Change, named
from goclaw_py.schedule.jobs.job_json import plain

END_SIGN_IN: Final = Change("sign_in.end", named("sign-in {sign_in}"))
END_SIGN_INS: Final = Change(
    "sign_in.end_all", named("all browsers"), told=lambda _, number: {"ended": number}
)
CREATE_TOKEN: Final = Change(
    "token.create",
    named("token {name}"),
    # The token itself is in the answer only.
    told=lambda arguments, _: {
        "role": plain(arguments["role"]),
        "reads_text": arguments["reads_text"],
        "expires_at": plain(arguments["expires_at"]),
    },
)
REVOKE_TOKEN: Final = Change("token.revoke", named("token {name}"))
