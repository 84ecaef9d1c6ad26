"""This file tests the comparison of classes of examples against SciPy and scikit-learn, on stores of a few maps."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attnstore.errors import NotStored
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.golden.make import Golden
from tests.store.making import ENCODER, Made, make_store, random_examples

stats = pytest.importorskip("scipy.stats")
metrics = pytest.importorskip("sklearn.metrics")

LABELS = ("cat", "dog", "bird") * 8


def labelled(seed: int = 11, labels: Sequence[str | None] = LABELS) -> list[Made]:
    """Texts of five words, where layer 1, head 2 looks at itself in dogs alone."""
    made = []
    for label, one in zip(labels, random_examples(seed, (5,) * len(labels), {"encoder": ENCODER}), strict=True):
        maps = one.maps["encoder"].copy()
        n = maps.shape[-1]
        maps[1, 2] = 0.1 * maps[1, 2] + 0.9 * (np.eye(n) if label == "dog" else np.full((n, n), 1 / n))
        places = [None if name else (index // 3, index % 3) for index, name in enumerate(one.source.special)]
        columns = {
            "label": label,
            "luminance": float(np.float32(len(made) % 5) / 5),
            "patch_height": 4,
            "patch_width": 4,
        }
        made.append(replace(one, maps={"encoder": maps}, columns=columns, source=replace(one.source, places=places)))
    return made


@pytest.fixture(scope="module")
def made() -> list[Made]:
    return labelled()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, made: list[Made]) -> Iterator[Store]:
    place = tmp_path_factory.mktemp("classes") / "s.attn"
    with open_store(make_store(place, made, precision="exact", per_segment=10)) as opened:
        yield opened


def confidences(made: Sequence[Made]) -> NDArray[np.float64]:
    """The mean largest weight of a row [head, example]."""
    return np.stack([one.maps["encoder"].astype(float).max(axis=-1).mean(axis=-1).ravel() for one in made], axis=1)


def asked(store: Store, **params: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in store.ask("classes/preference", statistic="confidence", **params)]


def test_h_eta_squared_and_q_are_those_of_scipy(store: Store, made: list[Made]) -> None:
    values, labels = confidences(made), np.array(LABELS)
    found = asked(store)
    for row, own in zip(found, values, strict=True):
        groups = [own[labels == name] for name in ("bird", "cat", "dog")]
        assert row["h"] == pytest.approx(stats.kruskal(*groups).statistic, rel=1e-5)
        between = sum(len(group) * (group.mean() - own.mean()) ** 2 for group in groups)
        assert row["eta2"] == pytest.approx(between / ((own - own.mean()) ** 2).sum(), rel=1e-4)
        # Eight of a kind are enough for the distribution of H to be near that of chi squared.
        assert row["p"] == pytest.approx(stats.kruskal(*groups).pvalue, abs=0.05)
        assert (row["n"], row["n_classes"], row["eta2_chance"]) == (24, 3, pytest.approx(2 / 23))
    expected = stats.false_discovery_control([row["p"] for row in found])
    assert [row["q"] for row in found] == pytest.approx(expected.tolist())


def test_the_planted_head_prefers_its_class_on_the_other_half_too(store: Store) -> None:
    planted = asked(store)[-1]
    assert (planted["layer"], planted["head"]) == (1, 2)
    assert (planted["best_class"], planted["direction"], planted["auroc"]) == ("dog", "higher", 1.0)
    assert planted["q"] < 0.05
    assert planted["eta2"] > 0.5


def test_shuffled_labels_leave_no_preference(store: Store) -> None:
    found = asked(store, control="shuffled")
    assert all(row["q"] > 0.05 for row in found)
    assert found[-1]["eta2"] < 0.4


def test_luminance_is_taken_out_by_a_straight_line(store: Store, made: list[Made]) -> None:
    values = confidences(made)
    light = np.array([one.columns["luminance"] for one in made])
    labels = np.array(LABELS)
    for row, own in zip(asked(store, control="luminance"), values, strict=True):
        slope, intercept = np.polyfit(light, own, 1)
        left = own - slope * light - intercept
        groups = [left[labels == name] for name in ("bird", "cat", "dog")]
        assert row["h"] == pytest.approx(stats.kruskal(*groups).statistic, rel=1e-4)


def test_a_statistic_that_is_nothing_but_luminance_has_no_preference_left(tmp_path: Path) -> None:
    made = []
    for number, one in enumerate(random_examples(5, (4,) * 12, {"encoder": ENCODER})):
        # Dark examples are cats; a row gives itself as much as the image is bright.
        bright = 0.2 + 0.02 * number + 0.3 * (number % 2)
        n = len(one.source.tokens)
        weights = bright * np.eye(n) + (1 - bright) * (1 - np.eye(n)) / (n - 1)
        columns = {"label": ("cat", "dog")[number % 2], "luminance": bright}
        maps = np.broadcast_to(weights, (2, 3, n, n)).astype(np.float32)
        made.append(replace(one, maps={"encoder": maps}, columns=columns))
    with open_store(make_store(tmp_path / "s.attn", made, precision="exact")) as store:
        assert asked(store)[0]["q"] < 0.05
        assert asked(store, control="luminance")[0]["eta2"] < 0.5


def test_one_half_chooses_and_the_other_is_scored(tmp_path: Path) -> None:
    # Four documents of every class alike, two of which choose: one of six ways, all computed here.
    made = [
        replace(one, columns={**one.columns, "document": f"d{number // 6}"}) for number, one in enumerate(labelled(2))
    ]
    values, labels = confidences(made), np.array(LABELS)
    document = np.array([one.columns["document"] for one in made])
    with open_store(make_store(tmp_path / "s.attn", made, precision="exact")) as store:
        found = asked(store)
    names = ("bird", "cat", "dog")
    for chosen in itertools.combinations(sorted(set(document)), 2):
        half = np.isin(document, chosen)
        expected = []
        for own in values:
            areas = [metrics.roc_auc_score((labels == name)[half], own[half]) for name in names]
            best = int(np.argmax(np.abs(np.array(areas) - 0.5).round(9)))
            sign = 1 if areas[best] >= 0.5 else -1
            area = metrics.roc_auc_score((labels == names[best])[~half], sign * own[~half])
            expected.append((names[best], "higher" if sign > 0 else "lower", pytest.approx(area)))
        if expected == [(row["best_class"], row["direction"], row["auroc"]) for row in found]:
            return
    pytest.fail(f"{found} is none of the six")


def test_documents_fall_into_one_half(tmp_path: Path) -> None:
    # One document of dogs only and one of cats: neither half can compare, and no class is told apart.
    made = [
        replace(one, columns={**one.columns, "document": one.columns["label"]})
        for one in labelled(labels=("cat", "dog") * 6)
    ]
    with open_store(make_store(tmp_path / "s.attn", made, precision="exact")) as store:
        found = asked(store)
        assert {(row["best_class"], row["direction"], row["auroc"]) for row in found} == {(None, None, None)}
        assert all(row["eta2"] is not None for row in found)


def test_the_same_seed_gives_the_same_answer_and_another_may_not(store: Store) -> None:
    assert asked(store, seed=4) == asked(store, seed=4)
    assert [row["p"] for row in asked(store, seed=4)] != [row["p"] for row in asked(store, seed=5)]


def test_a_profile_is_deviations_from_the_mean_of_all(store: Store, made: list[Made]) -> None:
    values, labels = confidences(made), np.array(LABELS)
    found = [dict(row) for row in store.ask("classes/profile", statistic="confidence")]
    assert [row["class"] for row in found[:3]] == ["bird", "cat", "dog"]
    for index, row in enumerate(found):
        own = values[index // 3]
        mean = own[labels == row["class"]].mean()
        assert row["mean"] == pytest.approx(mean, rel=1e-5)
        assert row["d"] == pytest.approx((mean - own.mean()) / own.std(), abs=1e-4)
        assert row["n"] == 8
    assert max(found, key=lambda row: row["d"])["class"] == "dog"


def test_distances_on_a_grid_are_a_statistic(store: Store) -> None:
    (row,) = store.sql("select count(*) as n from examples where label = 'dog'")
    profile = list(store.ask("classes/profile", statistic="grid_distance", layer=1, head=2))
    assert {found["n"] for found in profile} == {row["n"]}
    dog = next(found for found in profile if found["class"] == "dog")
    assert dog["d"] < -0.5  # who looks at itself looks nowhere far


def test_some_examples_may_be_compared_alone(store: Store) -> None:
    found = list(store.ask("classes/preference", where="label != 'bird'"))
    assert {(row["n"], row["n_classes"]) for row in found} == {(16, 2)}
    assert list(store.ask("classes/preference", where="label = 'dog'")) == []
    assert list(store.ask("classes/preference", where="false")) == []
    assert list(store.ask("classes/profile", where="false")) == []


def test_a_constant_has_no_p_and_no_class(tmp_path: Path) -> None:
    made = [
        replace(one, maps={"encoder": np.full_like(one.maps["encoder"], 1 / one.maps["encoder"].shape[-1])})
        for one in labelled(labels=("cat", "dog") * 3)
    ]
    made = [replace(one, source=made[0].source, maps=made[0].maps) for one in made]
    with open_store(make_store(tmp_path / "s.attn", made, precision="exact")) as store:
        for row in asked(store):
            assert [row[name] for name in ("eta2", "h", "p", "q", "best_class", "direction", "auroc")] == [None] * 7


def test_a_store_without_labels_images_or_a_grid_is_refused(tmp_path: Path) -> None:
    plain = random_examples(3, (4, 5), {"encoder": ENCODER})
    with open_store(make_store(tmp_path / "a.attn", plain)) as store:
        with pytest.raises(NotStored, match="no example has a label"):
            store.ask("classes/preference")
        with pytest.raises(NotStored, match="no token has a place on a grid"):
            store.ask("heads/grid_distance")
    with_labels = [replace(one, columns={"label": name}) for one, name in zip(plain, "ab", strict=True)]
    with open_store(make_store(tmp_path / "b.attn", with_labels)) as store:
        with pytest.raises(NotStored, match="no example is an image"):
            store.ask("classes/preference", control="luminance")
        with pytest.raises(NotStored, match="no token has a place on a grid"):
            store.ask("classes/profile", statistic="grid_distance")


@pytest.mark.parametrize(
    ("statistic", "rows"),
    [
        ("logit_contribution", "select layer, head, example, true_class as value from logit_contributions"),
        (
            "output_norm",
            "select layer, head, example, output_norm as value from output_norms where token = 0",  # [CLS]
        ),
        (
            "ablation_loss",
            "select distinct layer, head, p.example, p.loss - b.loss as value from head_sets join predictions as p"
            " using (head_set) join predictions as b on b.example = p.example and b.head_set = 'none'"
            " where size = 1 and intervention = 'zero'",
        ),
    ],
)
def test_evidence_from_the_model_is_a_statistic(statistic: str, rows: str, tmp_path: Path) -> None:
    with Golden(tmp_path) as golden:
        plain = golden.store.sql(
            f"select layer, head, label, avg(value) as mean, count(*) as n from ({rows}) join examples using (example)"
            " where value is not null and label is not null group by all order by layer, head, label"
        )
        found = golden.ask("classes/profile", statistic=statistic)
        assert [tuple(row.values())[:3] for row in found] == [tuple(row.values())[:3] for row in plain]
        assert [row["mean"] for row in found] == pytest.approx([row["mean"] for row in plain])
        assert [row["n"] for row in found] == [row["n"] for row in plain]
