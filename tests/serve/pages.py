"""This file reads pages for their tests: links, texts, and what a browser would run."""

from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from attnstore.show.svg import STYLE

VOID = {"meta", "link", "input", "br", "hr", "img", "source", "wbr"}


class Page(HTMLParser):
    """A parsed page: the addresses it links to, its text, its elements, and whatever is inline."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.texts: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self.unclosed: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.unclosed += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements.append((tag, found))
        if tag not in VOID:
            self._open.append(tag)
        if tag in ("a", "link") and found.get("href"):
            self.links.append(str(found["href"]))
        if tag == "script" and not found.get("src"):
            self.inline.append("<script> without src")
        self.inline += [f"<{tag} {name}>" for name in found if name == "style" or name.startswith("on")]
        self.inline += [f"{name}={value}" for name, value in attrs if (value or "").strip().startswith("javascript:")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.unclosed.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        # The style of our SVG is the one that the policy names by its hash.
        if self._open and self._open[-1] == "style" and data != STYLE:
            self.inline.append(f"<style> {data[:60]}")
        if self._open and self._open[-1] == "script":
            self.inline.append(f"script {data[:60]}")
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All of its text, with single spaces."""
        return " ".join(" ".join(self.texts).split())

    def ids(self) -> list[str]:
        """Every id, as often as it stands there."""
        return [str(found["id"]) for _, found in self.elements if "id" in found]

    def within(self, address: str) -> list[str]:
        """The addresses of this service that the page links to, without fragments; `address` is its own."""
        found = []
        for link in self.links:
            parts = urlsplit(urljoin(f"http://here{address}", link))
            if parts.scheme in ("http", "https") and parts.netloc == "here":
                found.append(parts.path + (f"?{parts.query}" if parts.query else ""))
        return list(dict.fromkeys(found))

    def outside(self) -> list[str]:
        """Addresses that leave the service."""
        return [link for link in self.links if urlsplit(link).netloc or link.startswith("//")]
