"""What the tests of the service share: a server as users start it, in a process of its own, on a port that is free."""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

ADDRESS = re.compile(r"(http://\S+)/stores/(\S+)")
WAIT = 60.0


class Running:
    """A server that listens. `url` has no slash at its end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.url = process, ""
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stderr:
            for line in stderr:
                self.lines.append(line)

    @property
    def stderr(self) -> str:
        """What it wrote to standard error until now."""
        return "".join(self.lines)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def wait(self) -> "Running":
        """Return when it listens; an error where it ends before."""
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            if found := ADDRESS.search(self.stderr):
                self.url = found[1]
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        self.kill()
        raise AssertionError(f"the server did not start: {self.stderr}")

    def client(self, **options: object) -> httpx.Client:
        """A client of it."""
        return httpx.Client(base_url=self.url, timeout=60, **options)  # type: ignore[arg-type]

    def children(self) -> list[int]:
        """The processes that it started and that run."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, parent = stat.read_text().rpartition(")")[2].split()[:2]
                if int(parent) == self.process.pid and state != "Z":
                    found.append(int(stat.parent.name))
        return found

    def stop(self) -> int:
        """End it with SIGTERM; the exit status."""
        self.process.terminate()
        try:
            status = self.process.wait(WAIT)
        finally:
            self.kill()
        self._thread.join(WAIT)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return status

    def kill(self) -> None:
        """End it at once."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT)


def started(*words: str | Path, environment: Mapping[str, str] | None = None) -> Running:
    """`attnstore serve` with these words, as soon as it runs; whoever calls this ends it."""
    command = [sys.executable, "-m", "attnstore", "serve", *map(str, words)]
    variables = {name: value for name, value in os.environ.items() if name != "ATTNSTORE_TOKEN"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**variables, **(environment or {})},
    )
    return Running(process)


@contextlib.contextmanager
def serving(*words: str | Path, environment: Mapping[str, str] | None = None) -> Iterator[Running]:
    """A server that listens on a free port; it is ended with SIGTERM afterwards. Unless told, it prepares nothing."""
    chosen = [("--port", "0"), ("--prepared", "0")]
    own = [word for option in chosen if option[0] not in words for word in option]
    running = started(*words, *own, environment=environment)
    try:
        yield running.wait()
    finally:
        if running.process.poll() is None:
            running.stop()
        running.kill()


def gone(pids: list[int]) -> bool:
    """Whether none of these processes runs any more; waits a little for the system to clear them away."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        if not any(_runs(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
