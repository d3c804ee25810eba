"""Level 4: puts the parts together. The only place that knows concrete ones.

Nothing is imported here: a command that needs the database alone does not pay for the web server.
"""
