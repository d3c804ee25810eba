"""The HTTP API. Start at ``routes``; there is one module per resource.

``wire`` and the ``*_json`` modules say how records look in JSON, ``openapi`` describes all of it.
"""
