"""QR codes in a terminal. The only module that uses ``segno`` (docs/adr/0033)."""

from __future__ import annotations

import sys


def show_qr_code(link: str) -> None:
    """Print the QR code of a link, if standard output is a terminal that can show it."""
    if sys.stdout.isatty() and sys.stdout.encoding.lower().startswith("utf"):
        import segno  # noqa: PLC0415  (not needed for --help)

        segno.make(link, micro=False).terminal(compact=True)
