"""This file is a process that publishes additions and commits: `python -m tests.survival.committing ROOT WHO N`."""

import sys
from pathlib import Path

from attnstore.format.commit import commit, publish, seal, stage
from attnstore.format.manifest import read_store


def publish_one(root: Path, who: int, number: int) -> str:
    """Publish an addition that holds a text nobody else writes; its id."""
    name = f"w{who}-{number:04d}"
    folder = f"additions/{name}"
    staging = stage(root, folder)
    (staging / "who.txt").write_text(f"{who} {number}\n" * 50)
    seal(staging, folder, {"scope": "part", "part": name}, {})
    assert publish(staging, root, folder)
    return name


if __name__ == "__main__":
    place, own, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    store_id = read_store(place).store_id
    sys.stdin.readline()  # all begin together
    for index in range(count):
        published = publish_one(place, own, index)
        seen = commit(place, store_id)
        assert published in {one.id for one in seen.additions}, "a commit without what was published before it"
