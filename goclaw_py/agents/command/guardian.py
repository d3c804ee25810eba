"""Starts a program, and ends everything that the program has started, wherever that has gone.

A process of its own: its arguments are a descriptor, the seconds between
SIGTERM and SIGKILL, and the program with its arguments. It imports
little, because it is started for each run. As a *subreaper* (Linux) it becomes the parent of each
descendant whose parent has ended, also of those with a session of their own and an empty
environment. So all descendants are below it, and none is left when it has no children.

To the descriptor it writes a line when the program has started (0, or the error number),
and one when it has ended (its exit code, or the negative number of a signal). SIGTERM, or the
end of the reader, ends everything: SIGTERM, some seconds, SIGKILL.
"""

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress

_SET_CHILD_SUBREAPER = 36
_KILLED_S = 5.0
_LOOK_S = 0.02
_LOOK_AT_READER_S = 1.0
_WAITED_FOR = {signal.SIGTERM, signal.SIGCHLD}


def _main(report: int, grace_s: float, arguments: list[str]) -> None:
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    os.set_inheritable(report, False)  # noqa: FBT003 - it has no name
    try:
        program = _start(arguments)
    except OSError as error:
        os.write(report, b"%d\n" % (error.errno or 1))
        return
    # The pipes of the program end with it, not with this process.
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.write(report, b"0\n")
    reader = select.poll()
    reader.register(report, 0)
    is_asked = False
    while not is_asked and not reader.poll(0):
        for pid, status in _ended():
            if pid == program:
                with suppress(BrokenPipeError):
                    os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
        got = signal.sigtimedwait(_WAITED_FOR, _LOOK_AT_READER_S)
        is_asked = got is not None and got.si_signo == signal.SIGTERM
    _end_all(grace_s)


def _start(arguments: list[str]) -> int:
    # As it was given: the interpreter may have added LC_CTYPE to its own.
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - without pathlib, see above
        pairs = (each.partition(b"=") for each in file.read().split(b"\0") if each)
        environment = {name: value for name, _, value in pairs}
    return os.posix_spawnp(
        arguments[0],
        arguments,
        environment,
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # which the interpreter ignores
    )


def _ended() -> list[tuple[int, int]]:
    """Return the children that have ended."""
    ended = []
    with suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append(one)
    return ended


def _end_all(grace_s: float) -> None:
    for number, for_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _KILLED_S)):
        end = time.monotonic() + for_s
        is_first = True
        while (pids := _descendants()) and time.monotonic() < end:
            # SIGKILL again and again: they may have started another one meanwhile.
            if is_first or number == signal.SIGKILL:
                for pid in pids:
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, number)
            is_first = False
            signal.sigtimedwait({signal.SIGCHLD}, _LOOK_S)
            _ended()


def _descendants() -> list[int]:
    """Return all processes below this one that have not ended."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - see above
        if name.isdecimal():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state not in (b"Z", b"X"):
                    children.setdefault(int(parent), []).append(int(name))
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, ())
    return found[1:]


if __name__ == "__main__":
    _main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
