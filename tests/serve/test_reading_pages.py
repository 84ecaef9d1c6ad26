"""This file tests the pages on which sentences, clusters, comparisons and SQL are read."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("fastapi")

import numpy as np
from starlette.testclient import TestClient

from attnstore.job.run import ingest
from attnstore.serve.access import Access
from attnstore.serve.app import make_app
from attnstore.serve.limits import Limits
from attnstore.serve.pages.render import style_hash
from attnstore.serve.pages.sql_page import STARTS
from attnstore.serve.published import publish
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.conftest import SENTENCES, arrays_recipe, random_maps, write_arrays
from tests.serve.pages import Page

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>"
WORDS = ("<img/src=x/onerror=1>", "\"'><b/onclick=1>", "&amp;", "\u202edlo", "{{7*7}}")


def hostile(folder: Path) -> Path:
    """A corpus whose texts, words, tokens and names are markup; its words are parsed."""
    folder.mkdir()
    parse = [{"form": word, "governor": index - 1 if index else None, "deprel": HOSTILE if index else "root"}
             for index, word in enumerate(WORDS)]  # fmt: skip
    line = {"name": HOSTILE, "text": " ".join(WORDS), "tokens": list(WORDS), "special": [None] * 5, "words": parse}
    np.savez(folder / "maps.npz", **{f"{HOSTILE}/encoder": random_maps(np.random.default_rng(1), 2, 2, 5, 5)})
    (folder / "corpus.jsonl").write_text(json.dumps({**line, "maps": "maps.npz", "label": WORDS[1]}) + "\n")
    return folder / "corpus.jsonl"


def two_texts(folder: Path, n_tokens: int = 300) -> Path:
    """A corpus without words: a source of 5 tokens and a target of 4 with all kinds, and one long example."""
    folder.mkdir()
    rng = np.random.default_rng(3)
    source, target = ["rain", "fell", "on", "us", "</s>"], ["es", "regnete", "sehr", "</s>"]
    maps = {
        "t/encoder": random_maps(rng, 2, 2, 5, 5),
        "t/decoder": random_maps(rng, 2, 3, 4, 4, causal=True),
        "t/cross": random_maps(rng, 2, 3, 4, 5),
        "long/encoder": random_maps(rng, 2, 2, n_tokens, n_tokens),
        "long/decoder": random_maps(rng, 2, 3, 2, 2, causal=True),
        "long/cross": random_maps(rng, 2, 3, 2, n_tokens),
    }
    np.savez(folder / "maps.npz", **maps)
    end = [None, None, None, "sep"]
    lines: list[dict[str, Any]] = [
        {"name": "t", "text": "rain fell on us", "target": "es regnete sehr", "tokens": source, "special": [None, *end],
         "target_tokens": target, "target_special": end},
        {"name": "long", "text": "long", "target": "a b", "tokens": [f"w{number}" for number in range(n_tokens)],
         "special": [None] * n_tokens,
         "target_tokens": ["a", "b"], "target_special": [None, None]},
    ]  # fmt: skip
    (folder / "corpus.jsonl").write_text("".join(json.dumps({**line, "maps": "maps.npz"}) + "\n" for line in lines))
    return folder / "corpus.jsonl"


@pytest.fixture(scope="module")
def stores(tiny_store: Path, other_store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores of every kind that a page has to tell apart."""
    folder = tmp_path_factory.mktemp("reading")
    corpus = write_arrays(folder / "corpus", SENTENCES)
    recipes = {
        "top": arrays_recipe(corpus, keep__maps="topk:2"),
        "bare": arrays_recipe(corpus, keep__maps="none"),
        "some": arrays_recipe(corpus, keep__layers=[1]),
        "hostile": arrays_recipe(hostile(folder / "hostile"), title=HOSTILE),
        "lean": arrays_recipe(corpus, keep__facts="none"),
        "two": arrays_recipe(two_texts(folder / "two"), words__source="none"),
        "many": arrays_recipe(write_arrays(folder / "many", [f"word{number} fell" for number in range(120)])),
    }
    for name, recipe in recipes.items():
        ingest(recipe, folder / f"{name}.attn").close()
    return {"tiny": tiny_store, "other": other_store, **{name: folder / f"{name}.attn" for name in recipes}}


@pytest.fixture(scope="module")
def client(stores: dict[str, Path]) -> Iterator[TestClient]:
    """A client of the real application with one real worker."""
    app = make_app(
        publish(list(stores.items())), Limits(workers=1, prepared=0), Access(("testserver",), styles=(style_hash(),))
    )
    with TestClient(app, raise_server_exceptions=False) as found:
        yield found


@pytest.fixture(scope="module")
def tiny(stores: dict[str, Path]) -> Iterator[Store]:
    """The store that most pages are compared with."""
    with open_store(stores["tiny"]) as found:
        yield found


def raw(client: TestClient, address: str, status: int = 200) -> str:
    """A page as a browser gets it; one that waits for its answer is looked at again."""
    for _ in range(200):
        answer = client.get(address, headers={"accept": "text/html"})
        if "data-again" not in answer.text:
            break
        time.sleep(0.1)
    assert answer.status_code == status, (address, answer.status_code, Page(answer.text).text[:600])
    assert "data-again" not in answer.text
    return answer.text


def page(client: TestClient, address: str, status: int = 200) -> Page:
    """The same, parsed, and checked for what holds on every page."""
    found = Page(raw(client, address, status))
    assert found.inline == []
    assert found.unclosed == []
    assert found.outside() == []
    assert [name for name, many in Counter(found.ids()).items() if many > 1] == []
    return found


def lines_of(text: str) -> dict[tuple[int, int], float]:
    """The numbers that lines or cells of a drawing say on hover, by query and key."""
    marks = re.findall(r'data-query="(\d+)" data-key="(\d+)"[^>]*><title>[^<]*: ([\d.e-]+)</title>', text)
    return {(int(query), int(key)): float(weight) for query, key, weight in marks}


# ---- The list


def test_the_list_shows_every_example_and_links_to_it(client: TestClient) -> None:
    found = page(client, "/stores/tiny/examples")
    assert "1 to 7 of 7 examples" in found.text
    for number, sentence in enumerate(SENTENCES):
        assert f"/stores/tiny/examples/{number}" in found.links
        assert sentence in found.text


def test_the_search_finds_text_in_any_case_and_takes_wildcards_as_they_stand(client: TestClient) -> None:
    found = page(client, "/stores/tiny/examples?text=THE+MAP")
    assert "she gave him the map" in found.text
    assert "rain fell" not in found.text
    assert "No example holds" in page(client, "/stores/tiny/examples?text=%25").text
    assert "No example holds" in page(client, "/stores/tiny/examples?text=%27+or+1%3D1").text


def test_the_search_finds_tokens_that_no_text_holds(client: TestClient) -> None:
    assert "rain fell on us | es regnete sehr" in page(client, "/stores/two/examples").text
    found = page(client, "/stores/two/examples?text=W7+w8")
    assert "1 to 1 of 1 examples" in found.text
    assert "/stores/two/examples/1" in found.links


def test_fifty_examples_stand_on_a_page_with_links_to_the_others(client: TestClient) -> None:
    first, second = page(client, "/stores/many/examples"), page(client, "/stores/many/examples?page=2")
    assert "1 to 50 of 120" in first.text
    assert "51 to 100 of 120" in second.text
    assert "/stores/many/examples?page=2" in first.links
    assert {"/stores/many/examples?page=1", "/stores/many/examples?page=3"} <= set(second.links)
    last = page(client, "/stores/many/examples?page=3")
    assert not [link for link in last.links if link.endswith("page=4")]
    assert "beyond the last" in page(client, "/stores/many/examples?page=9").text


# ---- The sentence view


@pytest.mark.parametrize("view", ["lines", "matrix"])
@pytest.mark.parametrize("level", ["token", "word"])
@pytest.mark.parametrize("specials", [True, False])
@pytest.mark.parametrize("renormalise", [True, False])
def test_every_line_and_cell_is_the_weight_that_the_store_gives(
    client: TestClient, tiny: Store, view: str, level: Any, specials: bool, renormalise: bool
) -> None:
    state = f"layer=1&head=2&view={view}&level={level}&specials={specials}&renormalise={renormalise}".lower()
    drawn = lines_of(raw(client, f"/stores/tiny/examples/1?{state}"))
    expected = tiny.attention(1, layer=1, head=2, level=level, specials=specials, renormalise=renormalise).to_numpy()
    cells = {(i, j): float(weight) for (i, j), weight in np.ndenumerate(expected)}
    if view == "lines":
        cells = {place: weight for place, weight in cells.items() if weight >= 0.005}
    assert drawn.keys() == cells.keys()
    assert all(abs(drawn[place] - weight) <= 0.0006 for place, weight in cells.items())


def test_the_table_of_the_focused_word_holds_its_largest_weights(client: TestClient, tiny: Store) -> None:
    found = page(client, "/stores/tiny/examples/1?layer=1&head=0&level=word&word=6")
    expected = tiny.attention(1, layer=1, head=0, level="word")
    row = list(expected.queries).index("gardener")
    assert row == 7  # [CLS] comes before the words
    text = found.text.partition("Attends to")[2].partition("This map as")[0]
    outgoing, incoming = text.split("Is attended by")
    for told, weights in ((outgoing, expected.to_numpy()[row]), (incoming, expected.to_numpy()[:, row])):
        numbers = [float(number) for number in re.findall(r"\d\.\d{3}", told)]
        assert numbers[:3] == [pytest.approx(weight, abs=6e-4) for weight in sorted(weights.tolist())[::-1][:3]]


def test_only_lines_of_the_focused_word_are_strong(client: TestClient) -> None:
    text = raw(client, "/stores/tiny/examples/1?layer=1&head=0&level=word&word=6")
    roles = re.findall(r'<path class="line (\w*)" data-query="(\d+)" data-key="(\d+)"', text)
    assert {role for role, *_ in roles} == {"out", "in", "rest"}
    for role, query, key in roles:
        assert role == ("out" if query == "7" else "in" if key == "7" else "rest")


def test_the_annotated_dependencies_of_the_focused_word_are_named_with_their_weights(
    client: TestClient, tiny: Store
) -> None:
    # Every word of the corpus depends on the one before it.
    found = page(client, "/stores/tiny/examples/2?layer=0&head=1&level=word&specials=false&word=2")
    weights = tiny.attention(2, layer=0, head=1, level="word", specials=False).to_numpy()
    text = found.text.partition("Annotated:")[2].partition("Attends to")[0]
    assert "him is dep" in text
    assert re.search(rf"gave governor dep {weights[2, 1]:.3f} {weights[1, 2]:.3f}", text), text
    assert re.search(rf"the dependent dep {weights[2, 3]:.3f} {weights[3, 2]:.3f}", text), text


def test_a_word_in_focus_stays_so_at_the_other_level_and_for_other_heads(client: TestClient) -> None:
    found = page(client, "/stores/tiny/examples/1?layer=1&head=0&level=word&word=6")
    tokens = [link for link in found.links if "level" not in link and "word=t" in link and "view" not in link]
    other = page(client, tokens[0])
    assert "how much “gard” attends" in other.text  # its first piece
    back = [link for link in other.links if "level=word" in link]
    assert "how much “gardener” attends" in page(client, back[0]).text
    assert any("layer=0&head=2&level=word&word=t" in link for link in found.links)


def test_every_control_of_the_sentence_view_is_an_address_that_answers(client: TestClient) -> None:
    found = page(client, "/stores/tiny/examples/0?layer=1&head=1&level=word&word=2")
    own = sorted({link for link in found.links if link.startswith("/stores/tiny/examples/")})
    assert len(own) > 15
    for link in own:
        page(client, link)
    grid = [attrs for tag, attrs in found.elements if tag == "a" and "data-row" in attrs]
    assert len(grid) == 6
    current = [attrs for attrs in grid if attrs.get("aria-current")]
    assert [(attrs["data-row"], attrs["data-column"]) for attrs in current] == [("1", "1")]


def test_the_neighbours_and_the_data_of_an_example_are_linked(client: TestClient, tiny: Store) -> None:
    found = page(client, "/stores/tiny/examples/3?layer=1&head=2&level=word")
    assert "/stores/tiny/examples/2?layer=1&head=2&level=word" in found.links
    assert "/stores/tiny/examples/4?layer=1&head=2&level=word" in found.links
    assert "/stores/tiny/heads/1/2" in found.links
    data = next(link for link in found.links if link.startswith("/v1/attention/") and link.endswith("json"))
    expected = tiny.attention(3, layer=1, head=2, level="word").to_numpy()
    assert np.allclose(client.get(data).json()["weights"], expected, atol=1e-6)
    assert page(client, "/stores/tiny/examples/s3").text.count("rain") == page(
        client, "/stores/tiny/examples/3"
    ).text.count("rain")


def test_what_is_not_there_is_a_problem_and_no_failure(client: TestClient) -> None:
    page(client, "/stores/tiny/examples/99", 404)
    page(client, "/stores/none/examples", 404)
    page(client, "/stores/tiny/examples/0?layer=7", 404)
    page(client, "/stores/tiny/examples/0?kind=decoder", 404)
    page(client, "/stores/tiny/examples/0?level=letter", 400)
    page(client, "/stores/tiny/examples/0?word=x", 400)
    page(client, "/stores/tiny/examples?page=0", 400)
    assert "Choose a word" in page(client, "/stores/tiny/examples/0?word=4000").text


def test_a_store_of_the_largest_weights_draws_those_alone(client: TestClient, stores: dict[str, Path]) -> None:
    text = raw(client, "/stores/top/examples/1?layer=1&head=1")
    assert "keeps the 2 largest weights" in text
    assert "Sum to 1" not in text
    with open_store(stores["top"]) as store:
        kept = store.attention(1, layer=1, head=1).to_numpy()
    drawn = lines_of(text)
    assert drawn.keys() == {(i, j) for i, j in np.argwhere(np.nan_to_num(kept) >= 0.005).tolist()}
    assert "not kept" in raw(client, "/stores/top/examples/1?layer=1&head=1&view=matrix")
    assert "cannot be shown" in page(client, "/stores/top/examples/1?level=word").text


def test_a_store_without_maps_still_shows_its_sentences(client: TestClient) -> None:
    found = page(client, "/stores/bare/examples/1")
    assert "cannot be shown" in found.text
    assert "gardener" in found.text


def test_layers_that_were_not_kept_are_no_links(client: TestClient) -> None:
    found = page(client, "/stores/some/examples/0")
    grid = [attrs for tag, attrs in found.elements if tag == "a" and "data-row" in attrs]
    assert {attrs["data-row"] for attrs in grid} == {"1"}
    assert "cannot be shown" in page(client, "/stores/some/examples/0?layer=0&head=0").text


def test_a_store_without_words_offers_no_words(client: TestClient) -> None:
    found = page(client, "/stores/two/examples/t")
    assert "rain" in found.text
    assert not [link for link in found.links if "level=word" in link]


def test_a_map_between_two_texts_has_a_focus_on_either_side(client: TestClient, stores: dict[str, Path]) -> None:
    text = raw(client, "/stores/two/examples/t?kind=cross&layer=1&head=2")
    with open_store(stores["two"]) as store:
        weights = store.attention("t", kind="cross", layer=1, head=2).to_numpy()
    assert lines_of(text).keys() == {(i, j) for i, j in np.argwhere(weights >= 0.005).tolist()}
    query = page(client, "/stores/two/examples/t?kind=cross&layer=1&head=2&word=t1")
    assert "how much “regnete” attends" in query.text
    assert "Is attended by" not in query.text
    key = page(client, "/stores/two/examples/t?kind=cross&layer=1&head=2&word=t1&side=key")
    assert "Is attended by" in key.text
    assert "Attends to" not in key.text
    assert any("word=t3&side=key" in link for link in query.links)


def test_a_long_example_is_a_matrix_with_a_note(client: TestClient) -> None:
    text = raw(client, "/stores/two/examples/long?kind=encoder")
    assert "this is the matrix" in text
    assert '<image class="pixels"' in text
    assert "<path class=" not in text


# ---- Clusters


def test_the_clusters_are_points_that_lead_to_their_heads(client: TestClient, tiny: Store) -> None:
    pytest.importorskip("sklearn")
    found = page(client, "/stores/tiny/clusters")
    for layer in range(2):
        assert f"layer {layer}" in found.text
        for head in range(3):
            assert f"/stores/tiny/heads/{layer}/{head}" in found.links
    rows = list(tiny.ask("clusters/coordinates"))
    assert f"a stress of {rows[0]['stress']:.3f}" in found.text
    assert all(f"{row['x']:.3f}" in found.text for row in rows)


def test_the_parameters_of_clusters_are_in_the_address(client: TestClient) -> None:
    pytest.importorskip("sklearn")
    found = page(client, "/stores/tiny/clusters?sampled=3&seed=2&root=true")
    given = {attrs.get("name"): attrs.get("value") for tag, attrs in found.elements if tag == "input"}
    assert given["sampled"] == "3"
    assert given["seed"] == "2"
    page(client, "/stores/tiny/clusters?sampled=&seed=")
    page(client, "/stores/tiny/clusters?seed=x", 400)


# ---- Two stores


def test_two_stores_stand_side_by_side_with_grids_of_each_and_of_the_difference(
    client: TestClient, stores: dict[str, Path]
) -> None:
    found = page(client, "/compare?a=tiny&b=other&question=compare/heads&metric=entropy")
    assert "have 7 examples in common" in found.text
    rows = client.get("/v1/questions/compare/heads?store=tiny&other=other&metric=entropy").json()["rows"]
    assert len(rows) == 6
    for row in rows:
        assert all(f"{value:.3f}" in found.text for value in row[3:6] if abs(value) >= 0.001)
    assert "a, tiny" in found.text
    assert "b, other" in found.text
    assert "difference, b - a" in found.text
    assert "/stores/tiny/heads/1/2" in found.links
    assert "/stores/other/heads/1/2" in found.links


def test_a_difference_is_painted_as_far_below_zero_as_above(client: TestClient) -> None:
    text = raw(client, "/compare?a=tiny&b=other&question=compare/heads&metric=entropy")
    rows = client.get("/v1/questions/compare/heads?store=tiny&other=other&metric=entropy").json()["rows"]
    drawing = text.partition('aria-label="difference, b - a: ')[2].partition("</svg>")[0]
    low, middle, high = map(float, re.findall(r">(-?[\d.e-]+)</text>", drawing)[-3:])
    assert (low, middle) == (-high, 0)
    assert high == pytest.approx(max(abs(row[5]) for row in rows), rel=1e-2)
    for layer, head, difference in ((row[0], row[1], row[5]) for row in rows):
        cell = drawing.partition(f">layer {layer}, head {head}: ")[2]
        red, _, blue = (int(part, 16) for part in re.findall(r'fill="#(..)(..)(..)"', cell)[0])
        assert (blue > red) == (difference > 0)


def test_every_question_about_two_stores_can_be_chosen(client: TestClient) -> None:
    found = page(client, "/compare?a=tiny&b=other")
    names = [attrs["value"] for tag, attrs in found.elements if tag == "option" and "/" in str(attrs.get("value"))]
    assert "compare/relations" in names
    assert "compare/pairs" in names
    for name in names:
        assert client.get(f"/compare?a=tiny&b=other&question={name}").status_code in (200, 400)


def test_stores_without_common_examples_are_said_to_have_none(client: TestClient) -> None:
    assert "no example in common" in page(client, "/compare?a=tiny&b=many").text
    assert "no example in common" in page(client, "/compare?a=tiny&b=many&question=compare/cosine").text


def test_one_store_alone_is_told_that_it_needs_another(stores: dict[str, Path]) -> None:
    app = make_app(publish([("tiny", stores["tiny"])]), Limits(workers=1, prepared=0), Access(("testserver",)))
    with TestClient(app) as alone:
        assert "needs a second store" in page(alone, "/compare").text


# ---- SQL


def test_a_statement_in_the_address_is_answered_with_links_to_examples_and_heads(client: TestClient) -> None:
    found = page(client, "/stores/tiny/sql?sql=select+3+as+example,+1+as+layer,+2+as+head,+0.25+as+share")
    assert "0.250" in found.text
    assert "/stores/tiny/examples/3?layer=1&head=2" in found.links
    assert "/stores/tiny/heads/1/2" in found.links


def test_the_tables_stand_beside_the_statement(client: TestClient, tiny: Store) -> None:
    text = page(client, "/stores/tiny/sql").text
    for name in tiny.tables:
        assert name in text
    assert "governor" in text


@pytest.mark.parametrize("store", ["tiny", "two", "bare", "lean", "top", "hostile"])
def test_the_statements_to_begin_with_all_work_where_they_are_offered(client: TestClient, store: str) -> None:
    found = page(client, f"/stores/{store}/sql")
    offered = [link for link in found.links if link.startswith(f"/stores/{store}/sql?sql=")]
    assert len(offered) >= 4
    for link in offered:
        assert "Answer" in page(client, link).text
    if store == "tiny":
        assert len(offered) == len(STARTS)


def test_an_answer_comes_in_pages_of_a_hundred_rows_and_says_where_it_was_cut(client: TestClient) -> None:
    first = page(client, "/stores/tiny/sql?sql=select+range+from+range(250)")
    assert "Rows 1 to 100" in first.text
    assert "cut here" not in first.text
    after = next(link for link in first.links if "page=2" in link)
    assert "Rows 101 to 200" in page(client, after).text
    last = page(client, after.replace("page=2", "page=3"))
    assert "Rows 201 to 250, the last" in last.text
    assert not [link for link in last.links if "page=4" in link]
    cut = page(client, "/stores/tiny/sql?sql=select+range+from+range(20000)&page=100")
    assert "Rows 9,901 to 10,000" in cut.text
    assert "cut here" in cut.text


def test_what_is_wrong_with_a_statement_stands_beside_it(client: TestClient) -> None:
    missing = page(client, "/stores/tiny/sql?sql=select+frm+from+words", 404)
    assert "form" in missing.text
    assert "select frm from words" in missing.text
    refused = page(client, "/stores/tiny/sql?sql=copy+words+to+%27x%27", 403)
    assert "copy words" in refused.text
    assert "Rows 1 to 1" in page(client, "/stores/tiny/sql?sql=select+1").text


def test_an_answer_can_be_fetched_and_shared(client: TestClient) -> None:
    statement = "select example from examples where name <> 'a&b' order by 1"
    found = page(client, "/stores/tiny/sql?" + urlencode({"sql": statement}))
    fetched = [link for link in found.links if link.startswith("/v1/query?")]
    assert len(fetched) == 3
    csv = next(link for link in fetched if "format=csv" in link)
    assert client.get(csv).text.split() == ["example", *map(str, range(7))]
    shared = next(str(attrs["value"]) for tag, attrs in found.elements if attrs.get("id") == "share")
    assert "Rows 1 to 7" in page(client, shared.removeprefix("http://testserver")).text


# ---- Hostile content


@pytest.mark.parametrize(
    "address",
    [
        "/stores/hostile/examples",
        "/stores/hostile/examples?text=%3Cimg",
        "/stores/hostile/examples/0?level=word&word=1",
        "/stores/hostile/examples/0?view=matrix&word=t2",
        "/stores/hostile/sql?sql=select+*+from+words",
        "/stores/hostile/sql?sql=select+1+as+%22%3Cscript%3Ealert(1)%3C/script%3E%22",
        "/compare?a=hostile&b=tiny&question=compare/pairs",
    ],
)
def test_markup_in_a_store_is_shown_as_text(client: TestClient, address: str) -> None:
    text = raw(client, address)
    found = page(client, address)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "<b/" not in text
    assert "{{7*7}}" in found.text or "49" not in found.text
    if "/sql?sql=select+1" not in address and "compare" not in address:
        assert WORDS[0] in found.text
