"""The HTTP API. Start at ``routes``; there is one module per resource, here or in ``operations``.

``wire`` and the ``*_json`` modules define the JSON of records, ``openapi`` describes the API.

The rules of SPEC OPS-2:

HTTP API (FastAPI, OpenAPI), on loopback by default unless a channel is called from the web; another
bind address needs a token; Host and Origin are checked; changing requests need a token or a
same-origin header, on loopback too. Long lists go on behind a row (`Link: rel="next"`) and have the
filters of the dashboard; counts are limited (of runs the newest 50,000). Server-sent events, with
resume. `/healthz`, `/readyz`, `/metrics`. API and dashboard are created at the first request; a
failure of their imports is found by `goclaw doctor`, too.
"""
