"""The pages: what is served as HTML, with templates and static files beside."""

from fastapi import FastAPI

from attnstore.serve.site import home
from attnstore.serve.site.render import is_page, problem_page, static

__all__ = ["add", "is_page", "problem_page"]


def add(app: FastAPI) -> None:
    """Add every page and the static files."""
    for module in (home,):
        app.include_router(module.router, include_in_schema=False)
    app.mount("/static", static())
