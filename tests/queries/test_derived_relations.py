"""Tests of the relations that Universal Dependencies draws another way: prep and pobj."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, SYNTAX, one, pointing, sentence
from tests.store.making import make_store

# Cats sat on the dog 's mat: `on` and `'s` are both case, and only `on` is an adposition.
FORMS = ("cats", "sat", "on", "dog", "'s", "mat")
PARSE = ((1, "nsubj"), (None, "root"), (5, "case"), (5, "nmod:poss"), (3, "case"), (1, "obl"))
UPOS = ("NOUN", "VERB", "ADP", "NOUN", "PART", "NOUN")


def _store(
    path: Path,
    forms: Sequence[str] = FORMS,
    parse: Sequence[tuple[int | None, str]] = PARSE,
    upos: Sequence[str] = UPOS,
    keys: Sequence[int] | None = None,
    **columns: Sequence[object],
) -> Store:
    """A store of one sentence; `keys` says for each word which other word its row looks at."""
    looks = [0, *(key + 1 for key in keys or [0] * len(forms)), len(forms) + 1]
    text = sentence(forms, parse, upos=upos, **columns)
    return open_store(make_store(path, [one(text, pointing(looks))], kinds=ONE, precision="exact"))


def _derived(store: Store) -> list[tuple[int, int, str]]:
    return [
        (row["word"], row["governor"], row["deprel"])
        for row in store.sql("from relations where derived order by deprel, word, governor")
    ]


def test_pobj_is_case_turned_round_and_prep_hangs_it_where_the_noun_hangs(tmp_path: Path) -> None:
    with _store(tmp_path / "s.attn") as store:
        assert _derived(store) == [(5, 2, "pobj"), (2, 1, "prep")]
        annotated = store.sql("select word, governor, deprel from relations where not derived order by word")
        assert [(row["governor"], row["deprel"]) for row in annotated] == list(PARSE)
        (row,) = store.sql("select word, clitic from relations where clitic is not null")
        assert (row["word"], row["clitic"]) == (3, 4)


def test_derived_relations_are_scored_by_the_one_rule_and_never_counted_among_all(tmp_path: Path) -> None:
    # mat looks at on, on at sat, sat at on.
    with _store(tmp_path / "s.attn", keys=[1, 2, 1, 0, 0, 2]) as store:
        found = {
            (row["relation"], row["direction"]): (row["correct"], row["n"], row["derived"])
            for row in store.ask("relations/accuracy")
        }
        assert found["pobj", "dep_to_head"] == (1, 1, True)  # mat -> on
        assert found["pobj", "head_row"] == (0, 1, True)  # on looks at sat
        assert found["prep", "dep_to_head"] == (1, 1, True)  # on -> sat
        assert found["prep", "head_row"] == (1, 1, True)  # sat -> on
        assert found["prep", "head_to_dep"] == (1, 1, True)  # sat's row looks at on as much as mat's: the lower word
        assert found["case", "dep_to_head"] == (0, 2, False)
        assert found["all", "dep_to_head"][1:] == (6, False)
        plain = {
            (row["relation"], row["direction"]): (row["correct"], row["n"], row["derived"])
            for row in store.ask("relations/accuracy", derived=False)
        }
        assert plain == {key: value for key, value in found.items() if key[0] not in ("pobj", "prep")}
        (row,) = store.ask("relations/evidence", relation="pobj", layer=0, head=0)
        assert (row["dependent"], row["gold"], row["predicted"], row["correct"]) == ("mat", "on", "on", True)
        assert len(store.ask("relations/evidence", relation="all", layer=0, head=0)) == 6
        best = {row["relation"]: row for row in store.ask("relations/best")}
        assert (best["pobj"]["derived"], best["pobj"]["offset"], best["pobj"]["baseline"]) == (True, -3, 1.0)
        assert best["all"]["n"] == 6
        assert not {"pobj", "prep"} & {row["relation"] for row in store.ask("relations/best", derived=False)}
        offsets = {(row["relation"], row["offset"]): row for row in store.ask("relations/baselines")}
        assert (offsets["prep", -1]["correct"], offsets["prep", -1]["derived"]) == (1, True)
        assert offsets["all", -1]["n"] == 6
        assert ("prep", -1) not in {
            (row["relation"], row["offset"]) for row in store.ask("relations/baselines", derived=False)
        }


def test_a_noun_that_is_a_root_has_no_place_for_prep(tmp_path: Path) -> None:
    # It is in town: town is the root.
    parse = [(3, "nsubj"), (3, "cop"), (3, "case"), (None, "root")]
    with _store(tmp_path / "s.attn", ("it", "is", "in", "town"), parse, ("PRON", "AUX", "ADP", "NOUN")) as store:
        assert _derived(store) == [(3, 2, "pobj")]


def test_a_noun_with_two_adpositions_is_below_each(tmp_path: Path) -> None:
    parse = [(None, "root"), (3, "case"), (3, "case:loc"), (0, "obl")]
    with _store(tmp_path / "s.attn", ("came", "from", "behind", "it"), parse, ("VERB", "ADP", "ADP", "PRON")) as store:
        assert _derived(store) == [(3, 1, "pobj"), (3, 2, "pobj"), (1, 0, "prep"), (2, 0, "prep")]


@pytest.mark.parametrize("own", ["pobj", "prep"])
def test_a_parse_that_has_its_own_prep_or_pobj_gets_no_derived_ones(tmp_path: Path, own: str) -> None:
    parse = [*PARSE[:5], (1, own)]
    with _store(tmp_path / "s.attn", parse=parse) as store:
        assert _derived(store) == []
        rows = [row for row in store.ask("relations/best") if row["relation"] == own]
        assert [row["derived"] for row in rows] == [False]


def test_only_words_with_tokens_are_dependents(tmp_path: Path) -> None:
    states = ["exact", "exact", "none", "exact", "exact", "exact"]
    with _store(tmp_path / "a.attn", aligned=states) as store:
        assert _derived(store) == [(5, 2, "pobj")]
    with _store(tmp_path / "b.attn", aligned=[*states[:2], "exact", *states[3:5], "none"]) as store:
        assert _derived(store) == [(2, 1, "prep")]


def test_words_of_one_file_without_any_relation_have_no_arcs(tmp_path: Path) -> None:
    # One file whose statistics say that every value is null: DuckDB 2.0 folds such a column while it plans.
    made = [one(sentence(["a", "b", "c"]), SYNTAX, name) for name in ("x", "y")]
    with open_store(make_store(tmp_path / "s.attn", made, kinds=ONE, per_segment=100)) as store:
        assert len(store.sql("from relations")) == 0
        assert {row["feature"] for row in store.ask("clusters/features")} >= {"self", "entropy_nats"}
