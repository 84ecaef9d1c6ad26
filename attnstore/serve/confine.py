"""This file is the last wall: what the operating system allows a worker."""

import contextlib
import ctypes
import os
import signal
import sys

MOST_FILES = 4096
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38


def confine(address_space: int, file_size: int = 0) -> None:
    """Let this process write no file, or none beyond `file_size`, take so much memory, and end with its parent.

    Where the system has no such limits (Windows) nothing is done; on macOS the address space is not limited.
    """
    try:
        import resource
    except ImportError:
        return
    # A write beyond the limit is then an error of that write, and does not end the process.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    wanted = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, file_size), (resource.RLIMIT_NOFILE, MOST_FILES)]
    if sys.platform == "linux":
        wanted.append((resource.RLIMIT_AS, address_space))
    for kind, value in wanted:
        hard = resource.getrlimit(kind)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, most))
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            own = ctypes.CDLL(None, use_errno=True).prctl
            own(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            own(_PR_SET_DUMPABLE, 0, 0, 0, 0)
            own(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def bare_environment(threads: int) -> dict[str, str]:
    """The variables of a worker: where Python is, how text is written, how many threads to start; no secret."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TZ") if name in os.environ}
    limits = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"), str(threads)
    )
    return kept | limits | {"PYTHONDONTWRITEBYTECODE": "1", "MALLOC_ARENA_MAX": "2", "HOME": "/nonexistent"}
