"""The client of a running gateway, which uses the HTTP API over its local socket.

Start at ``control``; ``calls`` makes a request of a method.
"""
