"""The client of a running gateway, which uses the HTTP API over its local socket.

Start at ``client``; ``ask`` sends one request, the others know one kind of resource each.
"""
