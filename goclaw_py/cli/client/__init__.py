"""The client of a running gateway: the HTTP API over its socket.

Start at ``client``; ``ask`` sends one request, the others know one kind of resource each.
"""
