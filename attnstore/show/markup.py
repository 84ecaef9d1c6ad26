"""This file marks which strings are finished HTML or SVG, so that every other one is escaped."""

import html

from attnstore.show.cell import visible


class Markup(str):
    """Finished HTML or SVG. Joining it with plain text gives a plain string again, which a page escapes."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """The text safe between tags and inside quoted attributes of HTML and of XML."""
    return Markup(html.escape(visible(text), quote=True))


def heading(text: str) -> Markup:
    """A heading below the page's title."""
    return Markup(f"<h2>{escape(text)}</h2>")


def paragraphs(text: str) -> Markup:
    """Each non-empty line as a paragraph."""
    return Markup("\n".join(f"<p>{escape(line.strip())}</p>" for line in text.splitlines() if line.strip()))


def preformatted(text: str) -> Markup:
    """Lines as they stand, such as SQL."""
    return Markup("<pre>" + "\n".join(escape(line.expandtabs(4)) for line in text.splitlines()) + "</pre>")
