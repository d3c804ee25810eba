"""The file of a backup: what is in it, how it is written, and how it is read (SPEC DB-5).

A gzip of a tar archive, readable in one pass, in this order::

    goclaw-backup.json          which format this is, and who wrote it
    settings/goclaw.toml        unless a secret stands in it
    tables/<table>/<number>     rows as PostgreSQL's COPY writes them as text
    files/<agent>/<path>        the agents' workspaces
    manifest.json               what has to be in all of these

Everything here blocks.
"""
