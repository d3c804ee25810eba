"""The audit log: who has changed what (SPEC SEC-9).

The rules of SPEC SEC-9:

Audit log: table `audit`. Every operation of `Control` and its services is declared to change or to
read (one table, `gateway.audit.actions`; a test compares it with their methods). Each call of a
changing one, by page, API or command (through the gateway's socket, or directly on the database),
leaves one row, also if it is refused (see Repetitions); in chats each stop, and each command and
button that has changed something, leaves one, and what was refused none. Sign-ins and sign-outs of
browsers, backups, restores and migrations (one row each time) are in it, and by the node itself
jobs that it disables and approvals that expire. Reading ones, messages and tools of agents leave
none and cost no statement.

- **Row**: time, kind and name of the actor, role, via (address of a program, `dashboard (ADDRESS)`,
  chat, command line), node, action, subject, what changed before and after, result (`ok` or the
  words of the error; of a bug its kind). Texts are one visible line, at most 500 characters; before
  and after at most 4 kB each. The subject has the whole key or id, also where a part of it was
  given. Known secrets are masked, pairing codes and links left out; of prompts, messages,
  checklists and programs' arguments there are length and beginning of a hash, because exports go to
  people who may not read texts. A command line shows ids and names only.
- **Who**: the actor that the guard, the local socket or the chat has set. What commands say of
  themselves counts on the local socket only, which nobody else can open. A command or button in the
  operators' chat (CHAN-9), by page, API or `goclaw chat`, is by the token, sign-in or command line
  of its request, with both in via (`dashboard (192.0.2.1) console:local`). The actor is stored with
  the message, so it is the same for a command that waits, after a restart and on another node;
  other messages are stored without one, and no list shows it. It is set where messages come in,
  only for channels whose people are all operators, whatever a channel says. Guests (CHAN-13) and
  people of other channels are named by their chat. What `goclaw run` and `goclaw chat` do by
  themselves is by the node; what is typed in their terminal, and migrations at their start, are by
  the command line.
- **When**: after the action, one statement. A crash between them leaves an action without row. A
  row that cannot be stored within 5 s is an error in the log (`audit_entry_not_stored`), and
  changes nothing for the caller. A stop does not wait for its row.
- **Repetitions** of what has changed nothing do not fill the table: a call that was refused, or a
  stop in a chat that was refused or found nothing. Of those with the same actor, action and reason
  (for calls the kind of error) a node records the first at once, then one a minute, and the last
  one within two minutes or at the shutdown; `after.repeated` is the number before it that has no
  row. A node remembers 1,000 of these kinds. What has changed something, or may have (an error of
  the database, an agent or a channel, a node that is silent, a bug), always has its row. Wrong
  tokens, what a role may not (SEC-8), and messages of people who are not admitted have none.
- **Append-only**: a trigger refuses update, delete and truncate, except the deletion of rows older
  than `audit.retention` by retention, and a restore. Backups contain it. Whoever may change the
  schema can remove the trigger.
- `goclaw audit`, `GET /api/audit`, the page, for admins (SEC-8): filters by who, action (with all
  below it), subject and time; pages, newest first by time, which read only what is of the time
  that is selected. `goclaw audit export` and `GET /api/audit/export` are JSON lines, read 500 rows
  at a time.
"""
