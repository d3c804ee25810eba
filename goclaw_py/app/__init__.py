"""Level 4: puts the parts together. The only place that knows concrete ones."""

from goclaw_py.app.control import open_control
from goclaw_py.app.gateway import run_gateway
from goclaw_py.app.service import Front

__all__ = ["Front", "open_control", "run_gateway"]
