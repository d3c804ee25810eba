"""The dashboard: pages rendered here, kept up to date by server-sent events (SPEC OPS-3).

``site`` puts the pages together, ``services`` has what every page needs, ``hub`` renders each live
part once for everyone who watches it, ``rendering`` is the only door to the template engine. A
page is a module with its routes here, and its templates have its name; or it is ``page`` in the
folder of a noun in ``operations``.

The rules of SPEC OPS-3:

Dashboard: now (of each run what it does: first words of the prompt, tool, model, tokens), runs,
sessions, timeline, jobs, heartbeats, deliveries, approvals, chat, people (with invitations to the
web chat), usage (runs, failures, messages received and sent, waiting times, tokens and cost over
days, by agent, person, model, job; messages by agent alone), logs, settings, health. Plots where a
picture is quicker, with a table beside. Times are ages (*in* for future ones), with the exact time
in the zone of the browser on hover, at a press and, for all, by a button; UTC without JavaScript.
Each warning links to the page of its cause or cure. Light or dark as the system is, or as chosen
in the browser. Works on a phone (from 360 px), tested in a real browser.

- **Lists.** The address has filter, search and tab, also after an action. Runs: outcome, time,
  agent, trigger, person, session. Timeline: agent, trigger, outcome. Sessions: unfinished run or
  message, agent, channel, text in key or name. Jobs: state, agent, kind of schedule, owner, text in
  the name. Heartbeats: state, agent; their log: outcome, time. Deliveries: state, direction, time,
  channel, chat, text; dropped ones include what an operator has dismissed. Now: agent, text in
  session or prompt. An unknown value is an error (422) above the list without it, and an action
  with it is refused, so that none takes all rows; a former agent is known. No character of a text
  is a wildcard. Runs, jobs, heartbeats and deliveries count the rows of each state. Heads of runs
  put the newest 10,000 that match in the order of duration, tokens or cost (`order`), 500 on all
  pages. With scripts, heads sort the rows that are shown, not those of other pages, in the tables
  of now, timeline, sessions, deliveries, approvals, people and usage, and in the list of jobs. The
  address has the order (`sort`), also after a filter, tab or page is chosen. Rows of usage lead to
  the runs that they count.
- **Together.** Failed messages are retried or dropped alone, as selected, or all that match. A
  selected message that has changed meanwhile is named with its state.
- **Large installs.** With 10,000 sessions, 1,000,000 runs and 100,000 jobs a page appears within
  300 ms, a search within 200 ms. Where figures take longer than 200 ms, the page says so at once,
  without scripts too, and they are shown for 20 times as long as they took.
"""

from goclaw_py.web.pages.chat.conversations import SiteParts
from goclaw_py.web.pages.site import make_site

__all__ = ["SiteParts", "make_site"]
