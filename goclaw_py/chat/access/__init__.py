"""Who may talk, and which problems owners of a chat are notified of.

Start at ``access_control`` (who is admitted) and ``access_requests`` (who requests access).
``incident_alerts`` notifies owners of problems, ``access_texts`` has the sentences.

The rules of SPEC CHAN-5:

Who may talk. Direct chats: `pairing` (default) | `allowlist` | `open` | `disabled`. Groups:
`allowlist` (default), mention required.

- **For whom.** In a group a message is for the bot if it names the bot (a new name of it is known
  within 5 minutes), replies to it, or is a command that does not name another bot. A reply to it
  that names only another bot is for that one. The bot's name at the beginning or end is left out
  of the text, unless another bot is named too.
- **Pairing.** An unknown sender gets one code and nothing else; no model is called. A code has 8
  characters, lasts 60 minutes and is stored hashed; the message shows it in monospace and, if it
  is so, says that the owner was asked. Strangers are told no commands of a shell. Limits hold that
  strangers cannot exhaust for others. Who is approved by CLI, API or dashboard is an owner, or, if
  that is chosen (`--guest`), a guest: also the first person. People in `allow` are owners. In a
  terminal and on the page a further owner is confirmed.
- **Asking the owners.** Each request is told once to the owners of that account, in their last
  direct chats, by the bot's name, with buttons: as guest, as owner (which asks once more, in the
  same message, with a way back), deny. After five requests in an hour one line says that there are
  more. Only an owner's press in a direct chat of the same account counts; the data of a button
  permits nothing. The first press decides, on whichever node: the buttons go, a toast tells the
  result, and the message says to all who were asked who has decided, also after a decision
  elsewhere. After the 60 minutes a toast says that it is too late.
- **The decision.** A person who is approved, in whatever way, is told so. In the same transaction
  what they wrote enters the inbox (the newest 5 of at most 20 messages, each cut at 4,096
  characters, kept with the request and deleted with it), and the agent answers it as one turn. A
  person who is denied is told nothing, and ignored until `goclaw people allow`. If the database
  cannot be asked, nobody is let in.
- **Groups.** In an unknown group the bot is silent. The group is listed for the operator, who
  decides by `goclaw people groups allow|deny`, and told to the owners in the same way (allow,
  deny; the buttons last 30 days). A group that had asked and is allowed is told so once; its
  earlier messages were not kept. The settings (`groups`, `chats."ID"`, `allow`) come first. In an
  allowed group everybody may talk. Agent, mention, context_messages and queue can be set per
  account, chat and thread.
- **Lists.** The page People and `goclaw people activity` list everybody who may write to a bot,
  with the reason (approved, `allow`, an open policy, a link), also who is in `allow` and has never
  written, and who wrote and may not any more. Who talks under an open policy can be denied (`goclaw
  people deny`, page People); who is in `allow` cannot. A denied chat gets no alerts.
"""
