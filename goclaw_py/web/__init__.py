"""Level 3: the HTTP API, over TCP and over the socket in the state folder."""
