"""The web chat of invited people: personal links, and the pages behind them (SPEC CHAN-13).

The rules of SPEC CHAN-13:

Web chat of invited people. `goclaw people web invite NAME`, the page People and the API
make a personal link. NAME has 1 to 32 letters and digits of any script, `_` or `-`; names that
look the same, as composed and combined letters do (NFKC), are the same.

- **The link.** It has 256 random bits; they are shown once and stored hashed, as are those of the
  cookie. One browser can use it, within 7 days; the browser is then signed in for 180 days.
  Opening it (GET) changes nothing: a button (POST) uses it; it says if the link cannot be used.
  In the browser that used it, it opens the chat. A wrong, expired, used or revoked link signs
  nobody in; wrong ones are not limited: 256 bits cannot be guessed, and behind a reverse proxy all
  people have one address. `--again`: another link for the same person, instead of unused ones;
  browsers stay signed in. A name that is invited, or has conversations from before, is otherwise
  refused: another person would read them.
- **The person** is a guest of channel `web` (CHAN-5), approved with the invitation, never an owner
  by it; nobody else is admitted there, and nobody asks for access. They stop only their own runs,
  choose no agent (`[channels.web] agent`), and answer no questions about tools (AGENT-11: the
  owners are asked). Alerts of heartbeats (HB-8) and results of operators' jobs do not go to guests.
- **What they see**: their conversations (at most 20 of their own making), with export, deletion
  and files of these; a message of theirs has only files that they have uploaded. The chats are
  `NAME` and `NAME.CONVERSATION`; all that a guest names is a conversation of theirs, so no name
  leads elsewhere. Every other path is 404 for a browser with the cookie, which takes precedence
  over the token's cookie; a program with the token is the operator. They are told no texts of
  errors, folders, runs or links into the dashboard. A browser has at most 32 requests and streams
  at once.
- **The end.** `goclaw people web revoke NAME` (also `goclaw people revoke`, People) removes person
  and links and ends the open streams of their browsers at once, on every node. A browser whose
  sign-in has ended reaches one page that says so, also without `web.token`, until its old sign-in
  is removed there.
- Links begin with `web.public_url`, else with the address that the gateway listens on; the command
  says if only this machine can open it, and if no token protects the dashboard on this machine.
"""

from goclaw_py.web.guests.entrance import Guests
from goclaw_py.web.guests.site import make_guest_site

__all__ = ["Guests", "make_guest_site"]
