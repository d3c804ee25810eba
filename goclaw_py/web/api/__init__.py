"""The HTTP API. Start at ``routes``; there is one module per resource, here or in ``operations``.

``wire`` and the ``*_json`` modules define the JSON of records, ``openapi`` describes the API.
"""
