"""This file tests the pages over stores of several kinds: what they show, what they escape, where they lead."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

import httpx
import numpy as np
from starlette.testclient import TestClient

from attnstore.catalogue.catalogue import questions
from attnstore.job.run import ingest
from attnstore.serve.access import Access
from attnstore.serve.app import make_app
from attnstore.serve.limits import Limits
from attnstore.serve.pages import asked
from attnstore.serve.pages.dependencies import RELATIONS, offset_words, plain
from attnstore.serve.pages.questions_page import GROUPS, OWN
from attnstore.serve.pages.render import coded, style_hash
from attnstore.serve.published import publish
from attnstore.store.store import open as open_store
from tests.conftest import SENTENCES, arrays_recipe, random_maps, write_arrays
from tests.serve.pages import Page

ALERT = "<script>alert(1)</script>"
WORD = "<img/src=x/onerror=1>"
LABEL = '"><b/onclick=1>'


def site(client: TestClient, address: str, status: int = 200) -> Page:
    """A page as a browser gets it, checked for what holds on every page."""
    answer = client.get(address, headers={"accept": "text/html"})
    assert answer.status_code == status, (address, answer.status_code, Page(answer.text).text[:500])
    assert answer.headers["content-type"].startswith("text/html")
    page = Page(answer.text)
    assert page.inline == [], address
    assert page.unclosed == [], address
    assert page.outside() == [], address
    assert [name for name, many in Counter(page.ids()).items() if many > 1] == [], address
    return page


def two_kinds(folder: Path) -> Path:
    """A corpus of a source and a target, with the three kinds of attention; no words."""
    rng = np.random.default_rng(3)
    folder.mkdir()
    maps = {
        "t/encoder": random_maps(rng, 2, 2, 5, 5),
        "t/decoder": random_maps(rng, 2, 3, 4, 4, causal=True),
        "t/cross": random_maps(rng, 2, 3, 4, 5),
    }
    np.savez(folder / "maps.npz", **maps)
    line = {
        "name": "t", "text": "rain fell on us", "tokens": ["rain", "fell", "on", "us", "</s>"],
        "special": [None, None, None, None, "sep"],
        "target": "es regnete auf", "target_tokens": ["<s>", "es", "regnete", "auf"],
        "target_special": ["cls", None, None, None], "maps": "maps.npz",
    }  # fmt: skip
    (folder / "corpus.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    return folder / "corpus.jsonl"


def mixed(folder: Path) -> Path:
    """A corpus of nouns below adpositions, whose governors no offset finds well, so that heads may do better."""
    corpus = write_arrays(folder, [text for text in SENTENCES if text.count(" ") > 2])
    rng = np.random.default_rng(5)
    lines = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        words, places = line["words"], list(rng.permutation(len(line["words"])))
        for at, word in enumerate(words):
            word["governor"], word["deprel"] = int(places[0]), "nsubj"
            if at == places[0]:
                word["governor"], word["deprel"] = None, "root"
        noun, adposition = words[int(places[1])], words[int(places[2])]
        noun["deprel"] = "obl"
        adposition |= {"governor": int(places[1]), "deprel": "case", "upos": "ADP"}
    corpus.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return corpus


@pytest.fixture(scope="module")
def stores(tiny_store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores by name: ordinary, hostile, without words, of three kinds, facts alone."""
    folder = tmp_path_factory.mktemp("site")
    corpus = write_arrays(folder / "hostile", (f"the {WORD} fell on {ALERT} .", f"{WORD} {WORD} rain"))
    text = corpus.read_text(encoding="utf-8").replace('"deprel": "dep"', f'"deprel": {json.dumps(LABEL)}')
    corpus.write_text(text.replace('"name": "s0"', f'"name": {json.dumps(LABEL)}'), encoding="utf-8")
    with np.load(corpus.parent / "maps.npz") as file:
        maps = {name.replace("s0/", f"{LABEL}/"): file[name] for name in file.files}
    np.savez(corpus.parent / "maps.npz", **maps)
    made = {"hostile": arrays_recipe(corpus, title=ALERT, corpus__licence=LABEL)}
    bare = write_arrays(folder / "bare", SENTENCES)
    lines = [json.loads(line) for line in bare.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        del line["words"]
    bare.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    made["bare"] = arrays_recipe(bare, title="without words", words__source="none")
    made["kinds"] = arrays_recipe(two_kinds(folder / "kinds"), title="three kinds", words__source="none")
    made["facts"] = arrays_recipe(write_arrays(folder / "facts"), title="facts alone", keep__maps="none")
    made["mixed"] = arrays_recipe(mixed(folder / "mixed"), title="mixed governors")
    for name, recipe in made.items():
        ingest(recipe, folder / f"{name}.attn").close()
    return {"tiny": tiny_store, **{name: folder / f"{name}.attn" for name in made}}


@pytest.fixture(scope="module")
def client(stores: dict[str, Path]) -> Iterator[TestClient]:
    """A client of the application over all of them, with one real worker."""
    app = make_app(
        publish([(name, path) for name, path in stores.items()]),
        Limits(workers=1, queue_wait=120.0, prepared=0),
        Access(("testserver",), styles=(style_hash(),)),
    )
    with TestClient(app, raise_server_exceptions=False, follow_redirects=True) as found:
        yield found


def test_first_page_names_every_store(client: TestClient, stores: dict[str, Path]) -> None:
    page = site(client, "/")
    assert "without words" in page.text
    assert {f"/stores/{name}" for name in stores} <= set(page.within("/"))


def test_overview_says_what_the_store_is(client: TestClient, tiny_store: Path) -> None:
    page = site(client, "/stores/tiny")
    with open_store(tiny_store) as store:
        assert store.snapshot.content_hash[:16] in page.text
        assert store.info.title in page.text
    for words in ("arrays", "2 x 3", "standard", "Licence"):
        assert words in page.text


def test_grid_links_each_head_with_its_number(client: TestClient, tiny_store: Path) -> None:
    page = site(client, "/stores/tiny?question=heads/entropy")
    cells = [str(found["aria-label"]) for tag, found in page.elements if tag == "a" and "aria-label" in found]
    with open_store(tiny_store) as store:
        expected = [
            f"layer {row['layer']}, head {row['head']}: {row['entropy_nats']:.3f}" for row in store.ask("heads/entropy")
        ]
    assert cells == expected
    assert "/stores/tiny/heads/1/2" in page.links


@pytest.mark.parametrize("question", ["heads/positions", "heads/roles", "relations/accuracy", "weights/heads:grid-2"])
def test_every_grid_can_be_chosen(client: TestClient, question: str) -> None:
    page = site(client, f"/stores/tiny?question={question}")
    chosen = [found.get("value") for tag, found in page.elements if tag == "option" and "selected" in found]
    assert chosen == [question]


def test_unknown_grid_store_and_page_are_told_on_a_page(client: TestClient) -> None:
    for address in ("/stores/tiny?question=no/such", "/stores/none", "/stores/tiny/nothing", "/stores/tiny/heads/9/9"):
        page = site(client, address, 404)
        assert any(found.get("role") == "alert" for _, found in page.elements)


def test_every_question_has_a_page(client: TestClient) -> None:
    listed = site(client, "/stores/tiny/questions")
    assert {f"/stores/tiny/questions/{name}" for name in questions()} <= set(listed.links)


def test_no_question_has_a_parameter_that_pages_use_themselves() -> None:
    taken = {"store", "format", "max_rows", *OWN}
    assert [name for name, one in questions().items() if taken & set(one.params)] == []


def test_every_group_of_questions_has_a_title() -> None:
    assert {name.partition("/")[0] for name in questions()} == set(GROUPS)


def test_form_keeps_what_was_given(client: TestClient) -> None:
    page = site(client, "/stores/tiny/questions/heads/entropy?mode=micro&eps=0.01&variant=&where=n_tokens+%3E+7")
    assert any(
        tag == "option" and found.get("value") == "micro" and "selected" in found for tag, found in page.elements
    )
    values = {str(found["name"]): found.get("value") for tag, found in page.elements if tag == "input"}
    assert values["eps"] == "0.01"
    assert values["where"] == "n_tokens > 7"


def test_downloads_are_the_answer_of_the_page(client: TestClient) -> None:
    page = site(client, "/stores/tiny/questions/heads/entropy?mode=micro&where=n_tokens+%3E+7")
    address = next(link for link in page.links if link.startswith("/v1/questions/") and "format=json" in link)
    answer = client.get(address).json()
    assert answer["cite"]["params"]["mode"] == "micro"
    assert answer["cite"]["where"] == "n_tokens > 7"
    assert [row[2] for row in answer["rows"]]
    assert all(f"{row[2]:.3f}" in page.text for row in answer["rows"])
    assert answer["snapshot"] in page.text
    assert {f"format={form}" for form in ("csv", "json", "arrow")} == {
        link.rpartition("&")[2] for link in page.links if link.startswith("/v1/questions/")
    }


def test_required_parameters_are_asked_for(client: TestClient) -> None:
    page = site(client, "/stores/tiny/questions/relations/evidence")
    required = {
        str(found["name"]) for tag, found in page.elements if tag in ("input", "select") and "required" in found
    }
    assert required == {"relation", "layer", "head"}
    assert "Fill in" in page.text


def test_wrong_parameters_are_told_beside_the_form(client: TestClient) -> None:
    for address in ("heads/entropy?mode=loud", "heads/entropy?eps=much", "heads/entropy?nothing=1",
                    "heads/entropy?where=no_such_column+%3D+1", "heads/entropy?page=x"):  # fmt: skip
        page = site(client, f"/stores/tiny/questions/{address}", 400 if "where" not in address else 404)
        assert any(tag == "form" for tag, _ in page.elements) or "page" in address


def test_long_answer_is_read_in_pages(client: TestClient) -> None:
    first = site(client, "/stores/tiny/questions/relations/evidence?relation=dep&layer=0&head=0&limit=500")
    n_rows = client.get("/v1/questions/relations/evidence?store=tiny&relation=dep&layer=0&head=0&limit=500").json()
    assert f"{len(n_rows['rows'])} rows" in first.text
    long = site(client, "/stores/tiny/questions/heads/offsets")
    after = next(link for link in long.links if "page=2" in link)
    second = site(client, after)
    assert "page 2 of" in second.text
    assert second.texts != long.texts


def test_a_head_has_its_numbers_and_ranks(client: TestClient, tiny_store: Path) -> None:
    page = site(client, "/stores/tiny/heads/1/2")
    with open_store(tiny_store) as store:
        rows = {(row["layer"], row["head"]): row["entropy_nats"] for row in store.ask("heads/entropy")}
    rank = 1 + sum(value > rows[1, 2] for value in rows.values())
    assert f"entropy, nats {rows[1, 2]:.3f} {rank} of 6" in page.text
    assert "2-3" in page.text


def test_a_relation_names_its_best_head_and_shows_its_sentences(client: TestClient, tiny_store: Path) -> None:
    with open_store(tiny_store) as store:
        best = next(iter(store.ask("relations/best", relation="dep")))
        asked = {name: best[name] for name in ("relation", "layer", "head", "direction")}
        wrong = next(iter(store.ask("relations/evidence", **asked, correct=False)))
    assert "/stores/tiny/relations/dep" in site(client, "/stores/tiny/relations").links
    page = site(client, "/stores/tiny/relations/dep")
    assert f"Layer {best['layer']}, head {best['head']}" in page.text
    assert f"{100 * best['accuracy']:.0f} % of {best['n']} words" in page.text
    assert f"picked instead: {wrong['predicted']}" in page.text.replace("✗ ", "")
    view = f"/stores/tiny/examples/{wrong['example']}?layer={best['layer']}&head={best['head']}&level=word"
    assert any(link.startswith(view) for link in page.links)


def test_a_relation_can_be_seen_for_any_head_and_direction(client: TestClient, tiny_store: Path) -> None:
    with open_store(tiny_store) as store:
        rows = store.ask("relations/accuracy", relation="dep", layer=0, head=1)
        row = next(one for one in rows if one["direction"] == "head_row")
    page = site(client, "/stores/tiny/relations/dep?layer=0&head=1&direction=head_row&correct=true")
    assert f"{100 * row['accuracy']:.0f} % of {row['n']} words" in page.text
    assert "Where it is right" in page.text
    assert "Where it fails" not in page.text
    assert site(client, "/stores/tiny/relations/dep?direction=sideways", 400)
    assert site(client, "/stores/tiny/relations/nothing", 404)


def test_the_fixed_offset_is_said_as_the_asked_word_sees_it(client: TestClient, tiny_store: Path) -> None:
    with open_store(tiny_store) as store:
        best = next(iter(store.ask("relations/best", relation="dep")))
    assert best["offset"] == -1  # every governor is the word before its dependent
    for direction, words in (("dep_to_head", "previous"), ("head_to_dep", "next"), ("head_row", "next")):
        page = site(client, f"/stores/tiny/relations/dep?direction={direction}")
        assert f"Always guessing the {words} word reaches" in page.text


def test_tables_of_relations_say_the_fixed_offset_as_the_asked_word_sees_it(
    client: TestClient, stores: dict[str, Path]
) -> None:
    with open_store(stores["mixed"]) as store:
        rows = [row for row in store.ask("relations/best") if row["relation"] != "all"]
    seen = [row["offset"] if row["direction"] == "dep_to_head" else -row["offset"] for row in rows]
    assert seen != [row["offset"] for row in rows]
    page = site(client, "/stores/mixed/relations")
    titles = [found["title"] for tag, found in page.elements if tag == "td" and "title" in found]
    assert titles == [f"Always guessing {offset_words(one)}" for one in seen]
    assert all(f"{one:+d}" in page.text for one in seen)


def test_a_head_lists_the_relations_that_it_knows_better_than_the_fixed_offset(
    client: TestClient, stores: dict[str, Path]
) -> None:
    with open_store(stores["mixed"]) as store:
        base = {row["relation"]: row["baseline"] for row in store.ask("relations/best")}
        scores = [row for row in store.ask("relations/accuracy") if row["direction"] != "head_row"]
    listed = set()
    for layer, head in ((layer, head) for layer in range(2) for head in range(3)):
        own = [row for row in scores if (row["layer"], row["head"]) == (layer, head) and row["relation"] != "all"]
        better = {row["relation"] for row in own if row["accuracy"] > base.get(row["relation"], 1)}
        page = site(client, f"/stores/mixed/heads/{layer}/{head}")
        prefix, end = "/stores/mixed/relations/", f"?layer={layer}&head={head}&"
        assert {
            link[len(prefix) :].partition("?")[0] for link in page.links if end in link and prefix in link
        } == better
        assert ("knows none better than the fixed offset" in page.text) == (not better)
        listed |= better
    assert listed
    assert "knows none better than the fixed offset" in site(client, "/stores/tiny/heads/0/0").text


def test_what_is_derived_is_said_in_a_sentence_of_its_own(client: TestClient) -> None:
    pages = [site(client, f"/stores/mixed/relations/pobj?layer={layer}&head=0").text for layer in (0, 1)]
    assert all("This relation is not annotated" in text for text in pages)
    assert any("%. This relation" in text for text in pages)


def test_grids_of_syntax_are_named_in_plain_words(client: TestClient) -> None:
    page = site(client, "/stores/mixed/relations/nsubj?direction=dep_to_head")
    assert "accuracy, dependent → governor, subject" in page.text


def test_a_page_of_a_head_that_waits_looks_again_by_itself(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "PATIENCE", 0.0)
    page = site(client, "/stores/kinds/heads/1/2?kind=decoder")
    again = [found["data-again"] for _, found in page.elements if "data-again" in found]
    assert again == ["/stores/kinds/heads/1/2?kind=decoder"]
    assert again[0] in page.links
    monkeypatch.undo()
    assert not any("data-again" in found for _, found in site(client, again[0]).elements)


def test_grids_that_a_store_lacks_stand_last_and_cannot_be_chosen(client: TestClient) -> None:
    page = site(client, "/stores/bare")
    options = [("disabled" in found, str(found["value"])) for tag, found in page.elements if tag == "option"]
    assert (True, "relations/accuracy") in options
    assert (False, "heads/entropy") in options
    assert options == sorted(options, key=lambda one: one[0])
    assert "heads/entropy" in page.text


def test_names_in_the_help_of_questions_are_code(client: TestClient) -> None:
    page = site(client, "/stores/tiny/questions/relations/accuracy")
    assert "`" not in page.text
    assert page.texts[page.texts.index("dep_to_head") + 1].startswith(": of all other words")
    assert coded("`<b>` & <i>") == "<code>&lt;b&gt;</code> &amp; &lt;i&gt;"


def test_a_store_without_words_says_so_instead_of_failing(client: TestClient) -> None:
    for address in ("", "/relations", "/relations/obj", "/heads/0/0", "/questions/relations/best"):
        page = site(client, f"/stores/bare{address}")
        assert "o word has a dependency relation" in page.text, address
    assert "entropy, nats" in site(client, "/stores/bare/heads/0/0").text
    assert "needs relations" in site(client, "/stores/bare/questions").text


def test_a_store_of_facts_alone_has_its_pages(client: TestClient) -> None:
    assert "entropy" in site(client, "/stores/facts").text
    assert site(client, "/stores/facts/heads/0/0")
    page = site(client, "/stores/facts?question=heads/streaming")
    assert any("missing" in str(found.get("class")) for _, found in page.elements)


def test_every_kind_of_attention_has_its_pages(client: TestClient) -> None:
    page = site(client, "/stores/kinds?kind=cross")
    assert "/stores/kinds/heads/1/2?kind=cross" in page.links
    assert [found["value"] for tag, found in page.elements if tag == "option" and "selected" in found][1] == "cross"
    assert "encoder 2 x 2, decoder 2 x 3, cross 2 x 3" in page.text
    assert "/stores/kinds/heads/1/1" in site(client, "/stores/kinds").links
    head = site(client, "/stores/kinds/heads/1/2?kind=decoder")
    assert "entropy, nats" in head.text
    assert any("kind=decoder" in link for link in head.links)
    assert site(client, "/stores/kinds/heads/1/2", 404)
    assert site(client, "/stores/kinds?kind=sideways", 404)
    assert site(client, "/stores/tiny/questions/heads/entropy?kind=cross", 404)


def test_hostile_texts_are_shown_as_text(client: TestClient) -> None:
    shown = [
        site(client, f"/stores/hostile{address}").text
        for address in ("", "/relations", "/heads/0/0", "/questions/audit/counts", "/questions/relations/best")
    ]
    assert all(ALERT in text for text in shown[:1])
    assert LABEL in shown[1]
    relation = site(client, f"/stores/hostile/relations/{httpx.URL('/', params={'x': LABEL}).query.decode()[2:]}")
    assert WORD in relation.text
    assert LABEL in relation.text
    page = site(client, f"/stores/tiny?question={ALERT}", 404)
    assert ALERT in page.text


def crawled(client: TestClient, first: str, most: int) -> dict[str, int]:
    """The status of every page and file that can be reached from the first, at most so many."""
    waiting, seen = [first], {}
    while waiting and len(seen) < most:
        address = waiting.pop(0)
        if address in seen:
            continue
        answer = client.get(address, headers={"accept": "text/html"})
        seen[address] = answer.status_code
        if answer.headers["content-type"].startswith("text/html"):
            page = Page(answer.text)
            assert page.inline == [], address
            assert page.outside() == [], address
            # Stores made apart have no example in common, which that page tells with a status of its own.
            found = [link for link in page.within(address) if not link.startswith("/compare")]
            waiting += [link for link in found if link not in seen]
    return seen


def test_every_link_leads_somewhere(client: TestClient) -> None:
    for name in ("tiny", "bare", "hostile", "kinds"):
        seen = crawled(client, f"/stores/{name}", 25)
        assert {address: status for address, status in seen.items() if status != 200} == {}
        assert len(seen) == 25


@pytest.mark.slow
def test_every_link_of_every_page_leads_somewhere(client: TestClient) -> None:
    seen = crawled(client, "/", 400)
    assert {address: status for address, status in seen.items() if status != 200} == {}
    assert len(seen) == 400


def test_relations_have_plain_names() -> None:
    assert plain("obj") == "direct object"
    assert plain("nsubj:pass") == "subject, passive"
    assert plain("all") == "every relation"
    assert plain("xyz:1") == "xyz:1"
    assert all(RELATIONS.values())
    assert [offset_words(one) for one in (-2, -1, 0, 1)] == [
        "the word 2 places before", "the previous word", "the word itself", "the next word",
    ]  # fmt: skip
