"""``python -m goclaw_py``: the command line."""

from goclaw_py.cli import main

if __name__ == "__main__":
    main()
