"""This file finds where a model lies: an installed package, a folder, or the hub."""

import importlib.util
import re
from pathlib import Path

from attnstore.errors import BadInput

PACKAGE = "package:"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def locate(name: str) -> Path | str:
    """The folder of a model, or its hub id as it was given.

    `package:NAME/FOLDER` is a folder inside an installed package, which is not imported: model packages may
    pin or start things that are not needed for reading their files. Anything else is a folder if there is one of
    that name, else a hub id (`owner/name` or `name`). Raises BadInput if the package or the folder is missing.
    """
    if name.startswith(PACKAGE):
        return _in_package(name)
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return folder
    doing = f"looking for the model {name!r}"
    if name and folder.exists():
        raise BadInput(doing, "it is a file", "a folder with config.json, weights and tokenizer", "Give its folder")
    if _HUB_ID.fullmatch(name):
        return name
    raise BadInput(
        doing,
        "no such folder",
        "a folder, a hub id like 'owner/name', or 'package:NAME/FOLDER'",
        "Check the spelling; a relative folder is looked up from the current one",
    )


def _in_package(name: str) -> Path:
    package, _, inside = name.removeprefix(PACKAGE).partition("/")
    doing = f"looking for the model {name!r}"
    # A dotted name would make find_spec import its parents.
    if not package.isidentifier():
        raise BadInput(doing, f"{package!r} is no package name", "'package:NAME/FOLDER', NAME as in an import")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(
            doing,
            f"no package {package!r} is installed",
            "an installed package that carries the model's files",
            f"Install the distribution that holds {package!r} into this environment",
        )
    roots = [Path(root).resolve() for root in spec.submodule_search_locations]
    for root in roots:
        folder = (root / inside).resolve()
        if folder.is_dir() and folder.is_relative_to(root):
            return folder
    held = sorted(entry.name for entry in roots[0].iterdir() if entry.is_dir() and entry.name != "__pycache__")
    raise BadInput(
        doing,
        f"the package {package!r} has no folder {inside!r}",
        f"one of its folders: {', '.join(held) or 'none'}",
    )
