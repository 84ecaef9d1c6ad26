"""This file finds the folders of recipes and questions that travel with attnstore."""

from pathlib import Path

from attnstore.errors import NotFound

PACKAGE = Path(__file__).parent


def shipped(folder: str) -> Path:
    """The folder `ingest` or `queries`: inside an installed wheel, else beside the package in a checkout."""
    for place in (PACKAGE / "_shipped" / folder, PACKAGE.parent / folder):
        if place.is_dir():
            return place
    raise NotFound(
        f"looking for the shipped folder {folder!r}",
        f"neither {PACKAGE / '_shipped'} nor {PACKAGE.parent} holds it",
        remedy="attnstore was installed without its folders: install it again from a wheel",
    )
