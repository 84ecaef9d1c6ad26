"""The pages: what is served as HTML, with templates and static files beside."""

from fastapi import FastAPI

from attnstore.serve.pages import (
    clusters_page,
    compare_page,
    examples_page,
    head_page,
    home,
    questions_page,
    relations_page,
    sql_page,
    store_page,
)
from attnstore.serve.pages.render import is_page, problem_page, static

__all__ = ["add", "is_page", "problem_page"]

PAGES = (
    home,
    store_page,
    relations_page,
    questions_page,
    head_page,
    examples_page,
    clusters_page,
    sql_page,
    compare_page,
)


def add(app: FastAPI) -> None:
    """Add every page and the static files."""
    for module in PAGES:
        app.include_router(module.router, include_in_schema=False)
    app.mount("/static", static())
