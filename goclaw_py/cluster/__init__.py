"""Several nodes on one database: leases, recovery after a node, calls between nodes.

Start at ``membership``. ``rpc`` calls another node, ``lane_permits`` shares the slots of a lane.

The rules of SPEC NODE-1:

Any number of `goclaw run` share one Postgres.

- **Leases.** Each node has a row with a lease that it renews; everything that can be claimed has
  owner, lease and fence. If a renewal has no answer for 2.5 s, a second one is started beside it,
  over another connection; a late one makes the lease no shorter. A node whose lease has ended
  claims nothing. The sessions of an expired node move within 15 s; a session with another node's
  unfinished run, or in which messages wait, waits for its recovery.
- **Sessions.** The unit of chat work is the session: a node takes its lease and processes its
  inbox rows in order. Messages that wait in a session go before newly accepted ones, whichever
  node accepted them. Only the owner decides in a session: a `/stop` that another node receives is
  executed by the owner, in its place among the messages; no other node ends a message of it; and
  no run starts with a message that has ended.
- **Stops.** `/stop` reaches the node that runs it (≤ 300 ms), and so do `goclaw stop`, the
  dashboard and the API, whichever node is asked; one that does not answer within 3 s is named.
- **Clocks and versions.** All nodes use the clock of the database. When it goes back, leases of
  dead nodes that end by the former time end after 10 s, and what waits in the outbox for longer
  than 15 minutes, the longest backoff, waits as much less as the clock went back. A machine whose
  clock is more than 2 s off is a warning, and so is a node with another release or other settings.
  `goclaw nodes list|show|drain`.
- **Channels.** One poller per bot (by a lease), or webhooks on all nodes.
"""
