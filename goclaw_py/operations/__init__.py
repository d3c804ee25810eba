"""What operators and tools may ask of a gateway: protocols, their requests and their answers.

Each noun has a folder; ``control`` has them all, and ``declare`` what they say of themselves.
``web``, ``cli`` and tools call them.
"""
