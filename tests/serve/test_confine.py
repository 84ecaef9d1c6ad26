"""This file tests the fourth wall alone: what the operating system still allows a process that confined itself."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attnstore.serve.confine import bare_environment, confine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")

GIB = 2**30


def confined(program: str, folder: Path, memory: int = 4 * GIB) -> subprocess.CompletedProcess[str]:
    """Run Python in a process that confined itself first."""
    begin = f"from attnstore.serve.confine import confine\nconfine({memory})\n"
    # Python writes bytecode and the current folder is not where attnstore lies.
    words = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{begin}{program}"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_python_writes_no_file(tmp_path: Path) -> None:
    done = confined("with open('x', 'w') as file:\n    file.write('a' * 10)", tmp_path)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 0


def test_an_engine_without_walls_writes_no_file(tmp_path: Path) -> None:
    done = confined(
        "import duckdb\n"
        "for text in (\"copy (select 1) to 'x.csv'\", \"copy (select 1) to 'x.parquet'\", \"attach 'x.duckdb'\"):\n"
        "    try:\n"
        "        duckdb.connect().execute(text).fetchall()\n"
        "    except Exception as error:\n"
        "        print(type(error).__name__)\n"
        "print(duckdb.connect().execute('select 41 + 1').fetchone()[0])",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "42"
    assert len(done.stdout.split()) == 4
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 0


def test_memory_ends_with_an_error_and_not_with_the_machine(tmp_path: Path) -> None:
    done = confined(
        "import duckdb\ntry:\n    bytearray(3 << 30)\nexcept MemoryError:\n    print('refused')", tmp_path, 2 * GIB
    )
    assert done.stdout.strip() == "refused", done.stderr


def test_a_crash_leaves_no_core(tmp_path: Path) -> None:
    done = confined("import os\nos.abort()", tmp_path)
    assert done.returncode == -signal.SIGABRT
    assert list(tmp_path.iterdir()) == []


def test_limits_are_as_said_and_cannot_be_raised(tmp_path: Path) -> None:
    done = confined(
        "import resource\n"
        "print(*(resource.getrlimit(kind) for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE,"
        " resource.RLIMIT_AS)), sep='\\n')\n"
        "try:\n    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "    print('raised' if __import__('os').geteuid() else 'root')\n"
        "except ValueError:\n    print('held')\n"
        "print(open('/proc/self/status').read().split('NoNewPrivs:')[1].split()[0])",
        tmp_path,
    )
    core, size, memory, raised, privileges = done.stdout.splitlines()
    assert (core, size, memory) == ("(0, 0)", "(0, 0)", f"({4 * GIB}, {4 * GIB})")
    assert raised in ("held", "root")  # whoever is root may raise limits: run the server as somebody else
    assert privileges == "1"


def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    child = (
        f"import sys, time; sys.path[:] = {sys.path!r}\n"
        f"from attnstore.serve.confine import confine\nconfine({4 * GIB})\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    parent = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE, start_new_session=True)\n"
        "child.stdout.readline()\nprint(child.pid, flush=True)\nimport time\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        assert running.stdout is not None
        number = int(running.stdout.readline())
        assert is_running(number)
        running.kill()
        running.wait()
        until = time.monotonic() + 20
        while is_running(number) and time.monotonic() < until:
            time.sleep(0.05)
        assert not is_running(number)


def is_running(number: int) -> bool:
    """Whether a process runs, and is not only waiting to be buried."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_environment_of_a_worker_holds_nothing_of_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted")
    monkeypatch.setenv("ATTNSTORE_TOKEN", "planted")
    monkeypatch.setenv("PYTHONPATH", "planted")
    found = bare_environment(2)
    assert "planted" not in found.values()
    assert found["OMP_NUM_THREADS"] == "2"
    assert found["HOME"] != os.environ.get("HOME")
    assert set(found) - set(bare_environment(1)) == set()


def test_confining_is_for_children_and_not_for_the_tests() -> None:
    """The tests above would prove little in a process that cannot write anyway."""
    import resource

    assert callable(confine)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 0
