"""Proxies of the environment, HTTP sessions through them, addresses of databases.

The rules of SPEC CHAN-15:

Proxies. `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` (lower case first) name an HTTP or SOCKS5 proxy
for all connections to the Bot API (calls, polls, uploads, downloads), to models and to GitHub;
`NO_PROXY` excepts names, domains, addresses, networks, `name:port` and `*`. Addresses of this
machine are direct. `proxy` of a Telegram account goes before, and is for all of its connections.
The proxy resolves names. What is no proxy (`https://`, `socks4://`, a port that is none) is
refused, with the variable and without the value: for an account when its settings are read, for a
model by `doctor` and by each request. `doctor` names the proxy of each account and model; so does
each failure of one (refused, user name and password missing or wrong: 407), which sends nothing
unless a plain HTTP request was given to it (IO-5). Wherever a proxy is shown, its user name and
password are `[hidden]`.
"""
