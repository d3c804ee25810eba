"""What a model server sends, within limits (SPEC AGENT-13).

The rules of SPEC AGENT-13:

No answer stops the gateway. A reply of a run, of whatever kind its agent is, has at most 1,000,000
characters; a run with more ends `failed` with "The agent said far too much, so I stopped it."
Texts above 8,000 characters are formatted, and searched for thoughts, beside the event loop, and a
draft shows the first 16,000. A response of a model has at most 1,000,000 characters of text,
thoughts and arguments together, 128 tool calls, 1,000 parts, 250,000 events, 1 MiB and 2,000 lines
in an event or in a body that is no stream, 128 MiB in all; a run whose response has more ends
`failed` with "The model's answer was far too long, so I stopped it.", the log has the limit, and
nothing of the response gets into the history. A response in which nothing is new for 15 minutes,
whatever keeps its connection open, fails too. It is read a few events at a time, so that
everything else has its turn; compressed ones as well (only gzip is asked for). A message of an MCP
server has at most 1,000,000 bytes with 10,000 values (texts excepted), however its server is
connected. A longer one is not read: if it answers a call, this call fails with "the answer is too
long", and the server goes on for everybody; one of more than 128 MiB ends its connection. Lines of
a program that are no messages are dropped, and the log says so once for each start. Of the log
that a server sends as messages (`notifications/message`), our log has the first warning or error
of each connection, without secrets, and at its end how many more there were. What it writes on its
standard error is logged at level `debug` only.
"""
