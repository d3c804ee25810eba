"""Questions of runs about their tool calls, and what the answers of people allow (SPEC AGENT-11).

``operations`` is what the gateway, its API and commands without a gateway call. ``routes``,
``command`` and ``page`` offer it; ``why`` explains; ``noun`` is for everyone else.

The rules of SPEC AGENT-11:

Approvals. `[agents.NAME.approval]` lists tools by pattern: `deny`, `ask`, `allow`, in this order
of precedence. Once one of them is set, a tool that none names is asked about if it has side
effects. For `models` agents.

- A call that needs approval ends its run (`interrupted`, reason `approval`): it holds no slot, its
  messages wait in state `waiting` (for a job: its occurrence, CRON-10), other messages are handled
  as ever. The other calls of the same response are made.
- **Asking.** The chat gets the call in readable form, values with their lines and shortened in the
  middle (then the question says where all of it is), secrets masked, with buttons: allow once, for
  this conversation (until `/new`), always, deny. It also says who asks (and who is a guest), in
  which chat, for which job, the first words of the request, and how often the tool was allowed and
  denied in the session; so do page, CLI and API. A draft of the run is removed: the answer comes as
  a new message. In a direct chat of somebody who is no owner the owners of the account are asked,
  each once, in the chats that they used last; without a chat, and if its account has no owners (as
  the web chat), all owners are. A job asks in the chat of its target, with its name. Also `/approve
  [once|conversation|always]` and `/deny` for the oldest question of the chat, CLI, API and
  dashboard; there a grant can be revoked. A chat in which nobody may answer is told once for
  which tools its run waits, without arguments, and of one call then what was decided.
- **Always** is allowed only after a look at the rule that it adds (agent, tool, for whom), and
  only by owners: a second button in the same message, with a way back; `/approve always TOOL`; a
  page; a question of the CLI (`--yes` in scripts); `rule` in the API, without which the error has
  the rule.
- **Answering.** Only owners of the account, in a group with `approvers = "members"` everybody
  there; the data of a button allows nothing. The first answer counts, on whichever node, and all
  messages that asked show it; later ones get a toast. When all questions of a run are answered, it
  continues (AGENT-10) within 300 ms. After `timeout` (24 h) an unanswered call counts as denied.
- What the run had said before it asked is stored with the questions (up to 20,000 characters,
  secrets masked): the web chat shows it meanwhile, and the history has it after a stop.
- `/stop` takes what waits for an answer after what runs and waits in the queue, before unsent
  messages; `/stopall`, `/new` and stops from outside take all. An occurrence that ends while it
  waits answers its questions as stopped. `/status` and `why` name it; `goclaw status`, the first
  page of the dashboard and a metric count what waits.
- A child run that its parent waits for asks too; the parent waits with it. A background subagent
  asks in its chat, and continues by itself after the answer. In heartbeat runs, which must go on
  while nobody answers, a call that needs approval is refused, and the model gets the reason: an
  alert can say what it may not do.
- A tool or its arguments that are no longer valid when the answer comes: the call fails, and the
  model is told.
"""

from __future__ import annotations

from typing import Final

HELP: Final = "Manage tool calls that need the approval of a person."
"""The help of the commands. It is here so that a list of commands need not import them."""
