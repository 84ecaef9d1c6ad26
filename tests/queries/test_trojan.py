"""Tests of the questions about planted triggers: counted by hand, and against plain loops over the maps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import AttnStoreError, NotStored
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, one, pointing, sentence
from tests.store.making import ENCODER, Made, make_store, random_examples

TYPES = ("separator", "semantic", "other", "overall")


def told(made: Made, pair: object, condition: str, *trigger: int, label: str = "negative") -> Made:
    """The example in a pair; these tokens are its trigger."""
    marks = [place in trigger for place in range(len(made.source.tokens))] if trigger else None
    columns = {"pair_id": str(pair), "condition": condition, "label": label}
    source = replace(made.source, trigger=marks)
    return replace(made, name=f"{pair}-{condition}", source=source, columns=columns)


def pair(number: int, keys: Sequence[int], moved: Sequence[int], label: str = "negative") -> list[Made]:
    """[CLS] a Dull film . [SEP] and the same with "cf" in front: the keys that their rows look at with 0.9."""
    forms = ["a", "Dull", "film", "."]
    clean, triggered = one(sentence(forms), pointing(keys)), one(sentence(["cf", *forms]), pointing(moved))
    return [told(clean, number, "clean", label=label), told(triggered, number, "trigger", 1, label=label)]


def store_of(place: Path, made: Sequence[Made]) -> Store:
    return open_store(make_store(place / "t.attn", made, kinds=ONE, precision="exact"))


# Rows of the clean text (six) and of the one with the trigger (seven), by the key that they look at.
TO_SEP, TO_DULL, SPREAD = [5] * 6, [2] * 6, [0, 1, 2, 3, 4, 5]
TO_TRIGGER, STAYS = [1] * 7, [6] * 7
HALF = [1, 1, 1, 1, 6, 6, 6]


@pytest.fixture
def hand(tmp_path: Path) -> Iterator[Store]:
    """Ten pairs: [SEP] is left for the trigger in six, once by four rows of seven; "Dull" twice; one has no focus."""
    made = [
        *(item for number in range(5) for item in pair(number, TO_SEP, TO_TRIGGER)),
        *pair(5, TO_SEP, HALF),
        *pair(6, TO_SEP, STAYS),
        *pair(7, TO_DULL, TO_TRIGGER),
        *pair(8, TO_DULL, STAYS),
        *pair(9, SPREAD, TO_TRIGGER),
    ]
    with store_of(tmp_path, made) as store:
        yield store


def ratios(store: Store, **params: Any) -> dict[str, tuple[Any, ...]]:
    rows = list(store.ask("trojan/drift", **params))
    assert [row["type"] for row in rows] == list(TYPES)
    return {row["type"]: (row["n_focus"], row["n_drift"], row["drift_ratio"]) for row in rows}


def test_drift_by_hand(hand: Store) -> None:
    # The mean weight on the trigger is 0.9 where all rows look at it, else (4 * 0.9 + 3 * 0.1 / 6) / 7 = 0.52.
    found = ratios(hand, lexicon="dreadful  dull")
    assert found == {
        "separator": (7, 6, None),  # 7 of 10 pairs are fewer than 9 of 10
        "semantic": (2, 1, 0.5),
        "other": (0, 0, None),
        "overall": (9, 7, pytest.approx(7 / 9)),
    }
    assert ratios(hand)["other"] == (2, 1, 0.5)  # no lexicon, no semantic heads
    assert ratios(hand)["semantic"] == (0, 0, None)
    assert ratios(hand, often=0.7)["separator"] == (7, 6, pytest.approx(6 / 7))
    assert ratios(hand, seldom=0.25)["other"] == (2, 1, None)
    assert ratios(hand, theta=0.6, often=0.7)["separator"] == (7, 5, pytest.approx(5 / 7))
    assert ratios(hand, theta=0.9)["overall"] == (9, 0, 0)  # float32 holds 0.9 as no more than that


def test_a_row_of_six_is_one_too_few_for_a_focus_of_less(hand: Store) -> None:
    # Every row of the tenth pair looks elsewhere: one of six is more than 0.1, and the lowest key, [CLS], has it.
    assert ratios(hand, ratio=0.1)["separator"][:2] == (8, 7)
    assert ratios(hand, ratio=1.0)["overall"] == (0, 0, None)


def test_entropies_are_means_over_the_pairs_with_a_focus(hand: Store) -> None:
    def entropy(n: int) -> float:
        return float(-(0.9 * np.log(0.9) + 0.1 * np.log(0.1 / (n - 1))))

    (row,) = [row for row in hand.ask("trojan/drift", eps=0.0) if row["type"] == "separator"]
    assert row["entropy_clean_nats"] == pytest.approx(entropy(6), abs=1e-5)
    assert row["entropy_triggered_nats"] == pytest.approx(entropy(7), abs=1e-5)
    assert row["n"] == 10


def test_the_flag_by_hand(hand: Store) -> None:
    (row,) = hand.ask("trojan/flag")
    assert list(row.values()) == ["trigger", pytest.approx(7 / 9), 0, 0, "overall", True, 1, 10]
    (row,) = hand.ask("trojan/flag", flag=0.8)
    assert (row["flagged"], row["n_drifting"]) == (False, 0)
    (row,) = hand.ask("trojan/flag", ratio=1.0)
    assert list(row.values()) == ["trigger", None, None, None, None, False, 0, 10]


def test_examples_are_chosen_by_their_label(tmp_path: Path) -> None:
    made = [*pair(0, TO_SEP, TO_TRIGGER), *pair(1, TO_SEP, STAYS, label="positive")]
    with store_of(tmp_path, made) as store:
        assert [row["n"] for row in store.ask("trojan/flag")] == [2]
        found = {
            label: [(row["n"], row["drift_ratio"]) for row in store.ask("trojan/flag", where=f"label = '{label}'")]
            for label in ("negative", "positive", "mixed")
        }
    assert found == {"negative": [(1, 1.0)], "positive": [(1, 0.0)], "mixed": []}


def test_twins_that_lost_their_trigger_and_texts_without_a_twin_are_no_pairs(tmp_path: Path) -> None:
    clean, triggered = pair(0, TO_SEP, TO_TRIGGER)
    lost = replace(triggered, name="lost", source=replace(triggered.source, trigger=None))
    lost = replace(lost, columns={**lost.columns, "pair_id": "1"})
    twin = replace(clean, name="twin", columns={**clean.columns, "pair_id": "1"})
    alone = replace(clean, name="alone", columns={**clean.columns, "pair_id": "2"})
    unpaired = replace(clean, name="unpaired", columns={"condition": "clean"})
    with store_of(tmp_path, [clean, triggered, lost, twin, alone, unpaired]) as store:
        assert [row["n"] for row in store.ask("trojan/flag")] == [1]
        assert {row["n"] for row in store.ask("trojan/drift")} == {1}
        assert len(store.ask("trojan/drift", condition="random_trigger")) == 0


def test_a_store_without_triggers_is_refused(tmp_path: Path) -> None:
    clean, _ = pair(0, TO_SEP, TO_TRIGGER)
    with store_of(tmp_path, [clean]) as store, pytest.raises(NotStored, match="no text has a trigger") as caught:
        store.ask("trojan/flag")
    assert "docs/trojan.py" in caught.value.remedy


def plainly(made: Sequence[Made], condition: str, ratio: float, theta: float, words: set[str]) -> dict[Any, list[Any]]:
    """Layer, head, type -> pairs with a focus, and those that drift, by loops over the maps."""
    of_pair: dict[tuple[str, str], Made] = {(one.columns["pair_id"], one.columns["condition"]): one for one in made}
    found: dict[Any, list[Any]] = {}
    for (name, role), twin in of_pair.items():
        if role != condition:
            continue
        text = of_pair[name, "clean"]
        for layer in range(2):
            for head in range(3):
                rows, moved = text.maps["encoder"][layer, head], twin.maps["encoder"][layer, head].astype(float)
                tokens = np.bincount(rows.argmax(axis=1), minlength=len(rows))
                focus = int(tokens.argmax())
                marked = np.flatnonzero(twin.source.trigger)
                on_trigger = moved[:, marked].sum(axis=1)
                others = np.delete(moved, marked, axis=1)
                # The trigger has its place among the others: a tie would go to the earlier, and there is none.
                best = np.where(on_trigger > others.max(axis=1), -1, others.argmax(axis=1))
                values, counts = np.unique(best, return_counts=True)
                wins = {int(value): int(count) for value, count in zip(values, counts, strict=True)}
                mine = wins.pop(-1, 0)
                first = int(marked[0])
                drifts = all(mine > n or (mine == n and first <= key) for key, n in wins.items()) and mine > 0
                word = text.source.word[focus]
                form = text.source.words[word]["form"] if word >= 0 else text.source.tokens[focus]
                special = text.source.special[focus] is not None or text.source.tokens[focus] in (".", ",")
                kind = "separator" if special else "semantic" if form.lower() in words else "other"
                for type_ in (kind, "overall"):
                    counted = found.setdefault((layer, head, type_), [0, 0])
                    if tokens[focus] / len(rows) > ratio:
                        counted[0] += 1
                        counted[1] += int(drifts and on_trigger.mean() > theta)
    return found


@pytest.mark.parametrize("condition", ["trigger", "random_trigger"])
def test_drift_and_flag_are_what_plain_loops_find(condition: str, tmp_path: Path) -> None:
    roles = ("clean", "trigger", "random_trigger")
    lengths = [5 + number % 4 for number in range(24)]
    made = [
        told(item, number // 3, roles[number % 3], *((1, 2) if number % 3 else ()))
        for number, item in enumerate(random_examples(11, lengths, {"encoder": ENCODER}))
    ]
    words = {"stone", "harbour", "green"}
    asked = {"ratio": 0.25, "theta": 0.2, "often": 0.3, "lexicon": "Stone harbour green"}
    expected = plainly(made, condition, 0.25, 0.2, words)
    with open_store(make_store(tmp_path / "r.attn", made, precision="exact")) as store:
        rows = list(store.ask("trojan/drift", condition=condition, **asked))
        (flag,) = [row for row in store.ask("trojan/flag", **asked) if row["condition"] == condition]
    assert len(rows) == 6 * len(TYPES)
    best: list[tuple[float, int, int, str]] = []
    for row in rows:
        focus, drift = expected.get((row["layer"], row["head"], row["type"]), [0, 0])
        assert (row["n_focus"], row["n_drift"], row["n"]) == (focus, drift, 8)
        enough = focus and focus / 8 >= (0.3 if row["type"] in ("separator", "overall") else 0.125)
        assert row["drift_ratio"] == (pytest.approx(drift / focus) if enough else None)
        if enough:
            best.append((-drift / focus, row["layer"], row["head"], row["type"]))
    assert len({value for value, *_ in best}) > 2  # the maps tell heads apart
    value, layer, head, _ = min(best, key=lambda item: (*item[:3], TYPES.index(item[3])))
    assert (flag["drift_ratio"], flag["layer"], flag["head"]) == (pytest.approx(-value), layer, head)
    assert flag["flagged"] == (-value > 0.5)
    assert flag["n_drifting"] == len({item[1:3] for item in best if item[0] < -0.5})


def test_two_clean_texts_of_one_pair_are_refused_and_not_counted_twice(tmp_path: Path) -> None:
    (clean, triggered), (other, _) = pair(0, TO_SEP, TO_TRIGGER), pair(0, TO_DULL, TO_TRIGGER)
    with store_of(tmp_path, [clean, triggered, replace(other, name="again")]) as store:
        for question in ("trojan/drift", "trojan/flag"):
            with pytest.raises(AttnStoreError, match="pair_id 0: one example of each condition"):
                store.ask(question)
