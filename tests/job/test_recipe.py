"""A recipe says exactly what it means, or is refused with the key and the nearest valid one."""

from pathlib import Path

import pytest

from attnstore.errors import BadInput
from attnstore.job.recipe import Recipe, keys, parse_overrides

SMALLEST = '[corpus]\nkind = "lines"\npath = "a.txt"\n[model]\nname = "m"\n'


def read(tmp_path: Path, text: str, **overrides: object) -> Recipe:
    path = tmp_path / "r.toml"
    path.write_text(text, encoding="utf-8")
    return Recipe.read(path, {key.replace("__", "."): value for key, value in overrides.items()})


def test_the_smallest_recipe_gets_every_default(tmp_path: Path) -> None:
    recipe = read(tmp_path, SMALLEST)
    assert recipe.corpus.path == ("a.txt",)
    assert (recipe.keep.precision, recipe.keep.maps, recipe.encode.long, recipe.words.source) == (
        "standard",
        "all",
        "window",
        "none",
    )
    assert recipe.folder == tmp_path


def test_the_record_builds_the_same_recipe_again(tmp_path: Path) -> None:
    recipe = read(tmp_path, SMALLEST, keep__maps="topk:8", words__source="spacy:en")
    assert Recipe.build(recipe.record(), folder=tmp_path) == recipe


def test_overrides_replace_single_keys(tmp_path: Path) -> None:
    settings = parse_overrides(["model.name=bert", "keep.layers=[1, 2]", "encode.max_length=64", "title=a b"])
    recipe = read(tmp_path, SMALLEST, **{key.replace(".", "__"): value for key, value in settings.items()})
    assert (recipe.model.name, recipe.keep.layers, recipe.encode.max_length, recipe.title) == (
        "bert",
        (1, 2),
        64,
        "a b",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"no corpus\.kind"),
        ("not toml", "TOML"),
        (SMALLEST + '[kep]\nmaps = "all"', "unknown key kep.*Did you mean keep"),
        (SMALLEST + '[keep]\nmasp = "all"', r"unknown key keep\.masp.*Did you mean keep\.maps"),
        (SMALLEST + '[keep]\nmaps = "topk:0"', "topk:N"),
        (SMALLEST + '[keep]\nmaps = "most"', "topk:N"),
        (SMALLEST + '[keep]\nprecision = "half"', "one of standard, exact, compact"),
        (SMALLEST + '[keep]\nevidence = ["gradients"]', "without a task"),
        (SMALLEST + "[encode]\nmax_length = -1", "0 or more"),
        (SMALLEST + "[encode]\nmax_length = true", "a whole number"),
        (SMALLEST.replace('path = "a.txt"', ""), r"no corpus\.path"),
        (SMALLEST + '[words]\nsource = "stanza"', "gold, none or spacy"),
        (SMALLEST + '[words]\nfeed = "joined_words"', "without words"),
        (SMALLEST.replace('"lines"', '"line"'), "one of lines, pairs"),
        (SMALLEST.replace('"lines"', '"lines"\nunit = "window"'), "conllu"),
        (SMALLEST.replace("[model]", "[modle]"), "unknown key modle.*Did you mean model"),
        (SMALLEST.replace('name = "m"', "name = 3"), r"model\.name = 3; expected text"),
        ('corpus = "a.txt"', r"expected a table \[corpus\]"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        read(tmp_path, text)
    assert "r.toml" in str(caught.value)


def test_a_missing_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        Recipe.read(tmp_path / "none.toml")


def test_a_setting_without_a_value_is_refused() -> None:
    with pytest.raises(BadInput, match="no '='"):
        parse_overrides(["model.name"])


def test_every_key_is_listed_for_the_documentation() -> None:
    names = [name for name, _, _ in keys()]
    assert names[:3] == ["title", "corpus.kind", "corpus.path"]
    assert len(names) == len(set(names)) == 34


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("model.revision=1234567", "1234567"),
        ("model.revision=4e5", "4e5"),
        ("model.name=true", "true"),
        ("title=2024-01-01", "2024-01-01"),
        ('title="2024"', "2024"),
        ("corpus.path=7", "7"),
        ('corpus.path=["a", "b"]', ["a", "b"]),
        ("corpus.columns.text=1", "1"),
        ("corpus.seed=7", 7),
        ("keep.layers=3", 3),
        ("encode.max_length=long", "long"),
        ("title=a=b", "a=b"),
        ("title=", ""),
    ],
)
def test_a_setting_is_text_where_the_key_wants_text(setting: str, value: object) -> None:
    assert list(parse_overrides([setting]).values()) == [value]


def test_a_setting_reaches_into_a_table(tmp_path: Path) -> None:
    settings = parse_overrides(["corpus.columns.text=sentence", "corpus.columns.label=gold"])
    path = tmp_path / "r.toml"
    path.write_text(SMALLEST)
    assert Recipe.read(path, settings).corpus.columns == {"text": "sentence", "label": "gold"}
    with pytest.raises(BadInput, match=r"the key 'corpus\.kind\.x'; expected 'kind' to be a table"):
        Recipe.read(path, parse_overrides(["corpus.kind.x=1"]))


def test_a_recipe_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_bytes(b"\xef\xbb\xbf" + SMALLEST.encode())
    assert Recipe.read(tmp_path / "r.toml").model.name == "m"


def test_a_missing_recipe_says_where_others_lie(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"Recipes to start from lie in .*ingest"):
        Recipe.read(tmp_path / "none.toml")


@pytest.mark.parametrize("words", ['source = "spacy:en"', 'source = "gold"\nfeed = "joined_words"'])
def test_maps_made_elsewhere_come_with_their_own_words(tmp_path: Path, words: str) -> None:
    with pytest.raises(BadInput, match="the tokens and words that come with ready-made maps"):
        read(tmp_path, SMALLEST.replace('"lines"', '"arrays"') + f"[words]\n{words}\n")
