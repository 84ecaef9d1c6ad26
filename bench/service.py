"""Measures the service as clients see it: a real server in a process of its own, clients in another one.

`python bench/service.py [STORE] [--full]`, by default over the store of `run.py`. A client waits for its answer and
asks again at once. The mix: every question that the store can answer, equally often, in an order of its own for each
client, but `probe/features`, which exports all rows, and the audits that decode every map. The clocks run when the
server has computed beforehand what the store does not keep.
"""

import contextlib
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROUNDS = 3
SETTLED = 1000
"""Milliseconds below which nothing was computed from maps."""

LEFT_OUT = ("probe/features", "audit/rows", "audit/rounding")
NEEDED = {
    "relations/evidence": "relation=det&layer=2&head=8",
    "coref/evidence": "layer=1&head=1",
    "examples/rollout": "example=0",
    "examples/flow": "example=0",
    "patterns/maps": "example=0",
}
FRESH = {"cache-control": "no-cache"}
BOMB = "select levenshtein(repeat('ab', 200000), repeat('ba', 200000))"
"""One call that no engine interrupts: its worker is killed for it."""

STATEMENTS = (
    "select kind, layer, count(*) from heads group by all",
    "select form, count(*) as n from words group by form order by n desc limit 20",
    "select * from examples limit 50",
)


class Server:
    """`attnstore serve` over one store, on a free port."""

    def __init__(self, store: Path, *words: str) -> None:
        command = [sys.executable, "-m", "attnstore", "serve", f"bench={store}", "--port", "0", *words]
        begun = time.perf_counter()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        found = None
        for line in self.process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                break
        if found is None:
            raise SystemExit("the server did not start")
        self.port, self.started = int(found[1]), 1000 * (time.perf_counter() - begun)
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes, float]:
        """Status, answer and milliseconds of one request."""
        begun = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data, 1000 * (time.perf_counter() - begun)

    def processes(self) -> list[int]:
        """The server and its workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        return [self.process.pid, *map(int, children.split())]

    def size(self) -> tuple[float, int, int]:
        """MiB in memory of all of its processes, open files, processes."""
        memory, files, pids = 0.0, 0, self.processes()
        for pid in pids:
            with contextlib.suppress(OSError):  # one that just ended
                memory += int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) / 256
                files += len(os.listdir(f"/proc/{pid}/fd"))
        return memory, files, len(pids)

    def workers(self) -> int:
        """Workers that are ready, as the server tells."""
        found = re.search(rb"^attnstore_workers (\d+)", self.ask("/metrics")[1], re.MULTILINE)
        return int(found[1]) if found else 0

    def prepared(self) -> float:
        """Seconds until tables that the store does not keep are computed."""
        begun = time.perf_counter()
        while b"\nattnstore_preparing 1" in self.ask("/metrics")[1]:
            time.sleep(0.1)
        return time.perf_counter() - begun

    def seconds(self) -> float:
        """Processor time of all processes that run now."""
        total = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                total += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        return total / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(60)


def clients(plan: dict[str, Any]) -> None:
    """Ask as the plan says and print what came back; runs in a process of its own."""
    until, found = time.monotonic() + plan["seconds"], []
    lock = threading.Lock()

    def client(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", plan["port"], timeout=120)
        order = random.Random(number)
        own = []
        while time.monotonic() < until:
            for path in order.sample(plan["paths"], len(plan["paths"])):
                begun = time.perf_counter()
                connection.request("GET", path, headers=plan["headers"])
                answer = connection.getresponse()
                answer.read()
                own.append((1000 * (time.perf_counter() - begun), answer.status))
                if time.monotonic() > until:
                    break
        connection.close()
        with lock:
            found.extend(own)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(plan["clients"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"answers": found, "processor": time.process_time()}))


class Load:
    """What clients saw: milliseconds of the answers, how many of each status, requests a second."""

    def __init__(self, port: int, paths: Sequence[str], number: int, seconds: float, headers: dict[str, str]) -> None:
        plan = {"port": port, "paths": list(paths), "clients": number, "seconds": seconds, "headers": headers}
        self.begun, self._seconds = time.perf_counter(), seconds
        command = [sys.executable, __file__, "--clients", json.dumps(plan)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def done(self) -> "Load":
        """Wait for the clients."""
        said = json.loads(self._process.communicate()[0])
        self.taken = time.perf_counter() - self.begun
        self.ms = sorted(ms for ms, status in said["answers"] if status == 200)
        self.statuses = {
            status: sum(s == status for _, s in said["answers"]) for status in {s for _, s in said["answers"]}
        }
        self.processor = said["processor"]
        self.rate = len(said["answers"]) / self._seconds
        return self

    def share(self, part: float) -> float:
        """The milliseconds within which this part of the answers came."""
        return self.ms[min(int(part * len(self.ms)), len(self.ms) - 1)] if self.ms else float("nan")


def row(what: str, values: Sequence[float], unit: str = "ms", goal: float | None = None) -> None:
    """Print median, minimum and maximum, and whether the goal is met."""
    middle = statistics.median(values)
    told = "" if goal is None else f"   goal {goal:g}" + ("" if middle < goal else "  MISSED")
    print(f"{what:<58} {middle:9.1f} {unit:<4} ({min(values):.1f} - {max(values):.1f}){told}", flush=True)


def paths(server: Server) -> list[str]:
    """The addresses of the mix; each is asked once, which is timed."""
    found, first = [], []
    for question in json.loads(server.ask("/v1/questions")[1]):
        name = question["name"]
        if question["stores"] == 2 or name in LEFT_OUT:
            continue
        path = f"/v1/questions/{name}?{NEEDED.get(name, '')}"
        status, _, taken = server.ask(path, FRESH)
        if status == 200:
            found.append(path)
            first.append((taken, name))
        elif status != 422:
            print(f"{name}: status {status}")
    print(f"the mix: {len(found)} questions that this store can answer")
    row("a question for the first time, one client", [taken for taken, _ in first])
    print(f"  slowest: {', '.join(f'{name} {taken:.0f}' for taken, name in sorted(first)[:-4:-1])}")
    return found


def warm(server: Server, mix: list[str], number: int) -> None:
    """Ask until every worker has computed what the store does not keep, and holds what it reads more than once."""
    for _ in range(10):
        if Load(server.port, mix, number, 8, FRESH).done().share(1) < SETTLED:
            return


def asking(server: Server, mix: list[str], seconds: float) -> None:
    """Questions by 16 clients, from workers and from the cache; and single maps."""
    warm(server, mix, 16)
    memory, files, processes = server.size()
    print(f"after the warm-up: {memory:.0f} MiB in {processes} processes, {files} open files")
    found, used = [], []
    for _ in range(ROUNDS):
        before = server.seconds()
        found.append(Load(server.port, mix, 16, seconds, FRESH).done())
        used.append(1000 * (server.seconds() - before) / max(len(found[-1].ms), 1))
    row("questions, 16 clients, no cache: half within", [one.share(0.5) for one in found], goal=150)
    row("the same: 99 % within", [one.share(0.99) for one in found], goal=600)
    row("the same: requests a second", [one.rate for one in found], "/s")
    row("the same: processor time of server and workers a request", used)
    row("the same: of the clients", [1000 * one.processor / max(len(one.ms), 1) for one in found])
    alone = [Load(server.port, mix, 1, seconds / 2, FRESH).done() for _ in range(ROUNDS)]
    row("one client, no cache: half within", [one.share(0.5) for one in alone])
    Load(server.port, mix, 1, 2, {}).done()
    cached = [Load(server.port, mix, 16, seconds / 3, {}).done() for _ in range(ROUNDS)]
    row("repeated questions, 16 clients: half within", [one.share(0.5) for one in cached], goal=10)
    cached = [Load(server.port, mix, 1, seconds / 3, {}).done() for _ in range(ROUNDS)]
    row("repeated questions, one client: half within", [one.share(0.5) for one in cached], goal=10)
    every = [(example, layer, head) for example in range(30) for layer in range(2) for head in range(3)]
    asked = [server.ask("/v1/attention/{}/{}/{}".format(*one)) for one in random.Random(0).sample(every, 100)]
    taken = [taken for status, _, taken in asked if status == 200][20:]  # the first ones open shards in each worker
    row("one map as JSON, not asked before, one client", taken, goal=20)


def bombs(store: Path, mix: list[str], seconds: float) -> None:
    """Honest questions by 8 clients, alone and while statements get their workers killed."""
    server = Server(store, "--time-limit", "2")
    try:
        server.prepared()
        warm(server, mix, 8)
        ratios, killed = [], 0
        for _ in range(ROUNDS):
            alone = Load(server.port, mix, 8, seconds, FRESH).done()
            bomb = Load(server.port, [f"/v1/query?sql={quote(BOMB)}"], 1, seconds, {})
            beside = Load(server.port, mix, 8, seconds, FRESH).done()
            killed += sum(bomb.done().statuses.values())
            ratios.append(beside.share(0.99) / alone.share(0.99))
            print(f"  99 % within {alone.share(0.99):.0f} ms alone, {beside.share(0.99):.0f} beside; {beside.statuses}")
        print(f"  {killed} statements got their worker killed")
        row("99 % of honest answers, beside a bomb / alone", ratios, "", goal=2)
    finally:
        server.stop()


def mixed(server: Server, mix: list[str], seconds: float) -> None:
    """32 clients of all kinds: which statuses, and what grows."""
    maps = [f"/v1/attention/{number}/{number % 2}/{number % 3}" for number in range(20)]
    others = ["/stores/bench", "/v1", "/v1/stores", "/metrics", "/healthz", "/v1/stores/bench/schema"]
    statements = [f"/v1/query?sql={quote(text)}" for text in STATEMENTS]
    load = [
        Load(server.port, mix, 16, seconds, FRESH),
        Load(server.port, [*mix, *maps, *others], 8, seconds, {}),
        Load(server.port, [*statements, *maps], 8, seconds, {}),
    ]
    sizes = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sizes.append(server.size())
        time.sleep(0.5)
    statuses: dict[int, int] = {}
    for one in load:
        for status, number in one.done().statuses.items():
            statuses[status] = statuses.get(status, 0) + number
    wrong = set(statuses) - {200, 503}
    print(f"32 mixed clients, {seconds:g} s: {dict(sorted(statuses.items()))}{'  MISSED' if wrong else ''}")
    third = max(len(sizes) // 3, 1)
    for index, what in enumerate(("MiB in memory", "open files", "processes")):
        begin, end = (statistics.mean(size[index] for size in part) for part in (sizes[:third], sizes[-third:]))
        print(f"  {what:<16} first third {begin:8.1f}, last third {end:8.1f}")


def restarts(server: Server) -> None:
    """How long it takes until a worker that was killed has been replaced."""
    taken = []
    for _ in range(ROUNDS):
        everyone = server.workers()
        os.kill(server.processes()[-1], 9)
        begun = time.perf_counter()
        while server.workers() == everyone and time.perf_counter() - begun < 5:
            time.sleep(0.005)
        while server.workers() < everyone:
            time.sleep(0.005)
        taken.append(1000 * (time.perf_counter() - begun))
    row("from the death of a worker to another one that is ready", taken)


@contextlib.contextmanager
def chosen(words: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """What the store is, and where."""
    if words:
        yield words[0], Path(words[0])
        return
    from run import small_store

    with tempfile.TemporaryDirectory() as folder:
        yield small_store(Path(folder))


def main() -> None:
    """Print every row."""
    if sys.argv[1:2] == ["--clients"]:
        clients(json.loads(sys.argv[2]))
        return
    full = "--full" in sys.argv
    with chosen([word for word in sys.argv[1:] if word != "--full"]) as (title, store):
        server = Server(store)
        try:
            print(f"{title}; {server.workers()} workers with the one that stands by")
            row("a server, from the command until it listens", [server.started])
            row("until its tables are computed beforehand", [server.prepared()], "s")
            mix = paths(server)
            steps: list[Callable[[], None]] = [
                lambda: asking(server, mix, 30 if full else 6),
                lambda: mixed(server, mix, 60 if full else 15),
                lambda: restarts(server),
            ]
            for step in steps:
                step()
        finally:
            server.stop()
        bombs(store, mix, 20 if full else 7)


if __name__ == "__main__":
    main()
