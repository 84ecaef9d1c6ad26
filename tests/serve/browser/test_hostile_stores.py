"""This file tests that whatever the maker of a store wrote into it, or a stranger into an address, stays text."""

from urllib.parse import quote

import pytest

from attnstore.show.cell import visible
from tests.serve.browser.chrome import Browser, foreign
from tests.serve.browser.stores import HOSTILE, IMAGE, LEAVES, SCRIPT

pytestmark = [pytest.mark.slow, pytest.mark.browser]

NAMES = f'select 1 as "{IMAGE}", \'{SCRIPT}\' as "{LEAVES.replace(chr(34), chr(34) * 2)}"'
PAGES = {
    "home": "/",
    "store": "/stores/hostile",
    "questions": "/stores/hostile/questions",
    "question": "/stores/hostile/questions/relations/best",
    "question-asked": f"/stores/hostile/questions/relations/accuracy?relation={quote(IMAGE)}",
    "evidence": f"/stores/hostile/questions/relations/evidence?relation={quote(LEAVES)}&layer=0&head=0",
    "head": "/stores/hostile/heads/1/2",
    "relations": "/stores/hostile/relations",
    "relation-image": f"/stores/hostile/relations/{quote(IMAGE, safe='')}",
    "relation-leaves": f"/stores/hostile/relations/{quote(LEAVES, safe='')}",
    "relation-script": f"/stores/hostile/relations/{quote(SCRIPT, safe='')}",
    "examples": "/stores/hostile/examples",
    "examples-found": f"/stores/hostile/examples?text={quote(SCRIPT)}",
    "clusters": "/stores/hostile/clusters",
    "sql": f"/stores/hostile/sql?sql={quote(NAMES)}",
    "compare": "/compare?a=hostile&b=again&question=compare/relations",
    "no-store": f"/stores/{quote(IMAGE, safe='')}",
    "no-question": f"/stores/hostile/questions/{quote(SCRIPT, safe='')}",
    "no-relation": f"/stores/hostile/relations/{quote('{{7*7}}' + LEAVES + 'none', safe='')}",
    "no-example": f"/stores/hostile/examples/{quote(SCRIPT, safe='')}",
    "bad-number": f"/stores/hostile/examples/0?layer={quote(IMAGE)}&word={quote(SCRIPT)}",
    "bad-kind": f"/stores/hostile?kind={quote(LEAVES)}&question={quote(IMAGE)}",
    "bad-sql": f"/stores/hostile/sql?sql={quote('select ' + SCRIPT + ' from ' + IMAGE)}",
    "bad-compare": f"/compare?a={quote(IMAGE)}&b={quote(LEAVES)}&question={quote(SCRIPT)}",
    "login": f"/login?to={quote('javascript:alert(1)//' + LEAVES)}",
}
REFUSED = {"no-store", "no-question", "no-relation", "no-example", "bad-number", "bad-kind", "bad-sql", "bad-compare"}
"""Pages that say what is wrong, for which the console notes the status 4xx."""

MADE = """
const made = [...document.querySelectorAll("img[src='x'], svg[onload], iframe, object, embed, base, meta[http-equiv]")];
for (const one of document.querySelectorAll("*"))
  for (const { name, value } of one.attributes)
    if (/^on/i.test(name) || /^\\s*javascript:/i.test(value)) made.push(one);
for (const one of document.scripts) if (!one.src.startsWith(location.origin + "/static/")) made.push(one);
return made.map((one) => one.outerHTML.slice(0, 200));
"""


def check(browser: Browser, address: str, *, refused: bool = False) -> None:
    """No dialog, no element or handler out of a text, no template run, nothing asked of anyone else."""
    assert browser.dialog() is None
    assert browser.run(MADE) == []
    assert "49" not in browser.run("return document.title")
    loud = [said for said in browser.console() if not (refused and "the server responded with a status of 4" in said)]
    assert loud == []
    assert foreign(browser.requests(), address) == []


@pytest.mark.parametrize("page", PAGES)
def test_hostile_text_stays_text_on_every_page(browser: Browser, hostile: str, page: str) -> None:
    browser.look(width=390)
    browser.visit(hostile + PAGES[page])
    check(browser, hostile, refused=page in REFUSED)
    wide = browser.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1], f"a long word makes the page {wide[0]} px wide"


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_hostile_sentence_can_be_read_as_it_was_written(browser: Browser, hostile: str, number: int) -> None:
    for state in ("view=lines", "view=matrix", "level=word&word=1"):
        browser.visit(f"{hostile}/stores/hostile/examples/{number}?layer=1&head=1&{state}")
        check(browser, hostile)
        words = " ".join(browser.run("return document.querySelector('main').textContent").split())
        assert visible(HOSTILE[number]) in words
    name = browser.run("return document.title + document.querySelector('h1').textContent")
    assert visible(f"{number} {HOSTILE[number]}")[:20] in name


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("home", f"{SCRIPT}{LEAVES} title"),
        ("store", f"{SCRIPT}{LEAVES} title"),
        ("store", f"{IMAGE} licence"),
        ("store", f"{LEAVES} model"),
        ("relations", IMAGE),
        ("relations", LEAVES),
        ("relation-image", IMAGE),
        ("examples", SCRIPT),
        ("sql", IMAGE),
        ("sql", SCRIPT),
        ("no-store", IMAGE),
    ],
)
def test_hostile_words_are_shown(browser: Browser, hostile: str, page: str, words: str) -> None:
    browser.visit(hostile + PAGES[page])
    assert words in " ".join(browser.run("return document.body.innerText").split())
