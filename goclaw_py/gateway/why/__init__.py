"""Explains why something did or did not happen, from what is stored (SPEC OPS-4).

The rules of SPEC OPS-4:

Every "why did it (not)…?" has an answer in one command: `goclaw why THING`, `GET /api/why?about=`,
the page `/why`. THING is a session, chat (also one never heard), person, message (its number,
`telegram:CHAT/MESSAGE`, a link), run, job (also a deleted one), agent (its heartbeat) or node, by
whatever it is called; several → the candidates, none → what was searched and what is alike; without
THING the gateway, with what `doctor` finds wrong. The answer: one sentence, the chain of decisions
with their times, the cures as exact commands and as links to the pages that do the same; codes that
stay the same over releases. Of a group
message without a mention only the time is kept (to within 10 s): `why`, `queue`, `groups list`. The
questions of `docs/guide/troubleshooting.md` are each provoked by a test. A warning of the status is
one sentence that begins with its subject; of one kind there is one, with the people or lanes that
it is about; its command works when it is copied (ids, quoted words).
"""
