"""The settings of all nodes, and edits of them while the gateways run (SPEC OPS-11).

``live`` has the settings in effect; ``operations`` shows and edits them.

The rules of SPEC OPS-11:

Settings at run time. The page *Settings* and `config show` list every setting with the value in
force and its origin, secrets masked; one that is not set has the value that it inherits or its
default. Some can be edited while gateways run: lanes' `size`; `queue`; `heartbeat`;
agents' `model`, `fallback`, `context_window`, `temperature`, `thinking`, `max_concurrent`,
`budget`, `heartbeat`, `queue`; of accounts, chats and threads `agent`, `mention`,
`context_messages`, `queue`; accounts' `groups`; chats' `enabled`. A `python:` model only in the
file.

- **Order.** Environment > edits > file > defaults. What the environment sets cannot be edited. A
  reset removes an edit.
- **Validation** by the code that reads the file, on all settings together; all mistakes, beside
  their fields; edits of one request are made together or not at all.
- **Effect** on all nodes of the database (notice, poll every 5 s), and at a start before anything
  runs. Lanes and limits at once (LANE-9: no run is cancelled); a run in progress keeps its agent,
  model and budget; heartbeats get new due times; other rules hold from the next message or run on.
  A lane resized by hand keeps its size until its setting changes.
- **Conflicts.** Each setting has a version: who has not seen the newest edit gets it, and changes
  nothing.
- **Stored edits that the settings refuse** (file changed, agent gone, environment sets it) are
  ignored with a warning that names the edit and the cure; they stop no start, and can be reset.
- **History**: time, setting, value before and after, source (dashboard or API with its address,
  command line). Kept as in DB-5. Without the database settings are shown and cannot be edited.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Show, change and check the settings."
"""The help of the commands. It is here so that a list of commands need not import them."""
