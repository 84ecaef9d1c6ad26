"""This file writes the README that a store carries: what it is, whose, and how to open it without attnstore.

It begins with what the Hugging Face Hub reads of a data set. Whatever it says comes from the store and is escaped: a
title or a licence is text, and nothing else becomes of it.
"""

import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from attnstore.errors import Damaged
from attnstore.format import names
from attnstore.format.manifest import FETCH, File, Unit
from attnstore.share.citation import bibtex, of_store
from attnstore.share.escaping import markdown, one_line, yaml
from attnstore.share.listed import patterns, tables
from attnstore.share.openings import openings
from attnstore.store.cited import shown_model
from attnstore.store.contents import Contents, read_contents
from attnstore.store.store import Store

MADE = "<!-- Made by attnstore. Without this line a README is yours, and attnstore leaves it as it is. -->"
"""The last line of a card: a README without it was written by somebody."""

_LICENCE = re.compile(
    r"cc-by-(2\.[05]|[34]\.0)|cc-by-(sa|nc-nd)-[34]\.0|cc-by-nc(-sa)?-[234]\.0|cc-by-nd-4\.0|cc0-1\.0"
    r"|apache-2\.0|mit|bsd-[23]-clause|gpl-[23]\.0|odbl|pddl|unlicense"
)
"""Licences that the Hub knows by these names; another one is told in words."""

_ROUNDED = {
    "standard": "float16, rounded to a multiple of 2^(floor(e/2)-10), e the exponent: off by 4.9e-4 at most near 1, "
    "by less elsewhere",
    "exact": "float32, as the model gave them",
    "compact": "uint8, weight = (value / 255)^2: off by 3.9e-3 at most near 1, by less elsewhere",
}
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))


def card(contents: Contents) -> str:
    """The text of the README of a store: equal for equal stores. Damaged where its files are not there."""
    return "\n".join(
        (
            *_front_matter(contents),
            *_about(contents),
            *openings(contents),
            *_citing(contents),
            *_verifying(contents),
            MADE,
            "",
        )
    )


def write_card(root: Path) -> bool:
    """Write README.md of the store in a folder at its newest snapshot; False where it stays as it is.

    A README that somebody wrote stays.
    """
    path = root / names.README
    if path.is_file() and not is_made(path.read_text(encoding="utf-8", errors="replace")):
        return False
    replace(path, card(read_contents(root)))
    return True


def replace(path: Path, text: str) -> None:
    """Write a page of a store, whole or not at all."""
    staging = path.with_name(f"{names.STAGING}{path.name}-{secrets.token_hex(4)}")
    try:
        staging.write_text(text, encoding="utf-8")
        staging.replace(path)
    finally:
        staging.unlink(missing_ok=True)


def is_made(text: str) -> bool:
    """Whether this README is a card that attnstore made."""
    return text.rstrip().endswith(MADE)


def licence_name(contents: Contents) -> str:
    """The licence of the texts as the Hub names it: `other` for one that it does not know, `unknown` for none."""
    stated = one_line(contents.info.corpus.get("licence") or "").lower().replace(" ", "-")
    return stated if _LICENCE.fullmatch(stated) else "other" if stated else "unknown"


def title(contents: Contents) -> str:
    """What the store is called."""
    return one_line(contents.info.title) or f"Attention maps of {model(contents)}"


def model(contents: Contents) -> str:
    """The model and its revision; of one that lay in a folder, the name of the folder."""
    about = contents.info.model
    revision = f" at {one_line(about['revision'])}" if about.get("revision") else ""
    return shown_model(one_line(about.get("name", "unknown"))) + revision


def n_examples(contents: Contents) -> int:
    """Examples that the snapshot holds."""
    return sum(_count(unit, "examples") for unit in contents.segments)


def _front_matter(contents: Contents) -> Iterator[str]:
    info, licence = contents.info, licence_name(contents)
    examples = n_examples(contents)
    yield "---"
    yield f"pretty_name: {yaml(title(contents))}"
    yield f"license: {licence}"
    if licence == "other":
        stated = one_line(info.corpus["licence"]).lower()
        yield f"license_name: {yaml(re.sub(r'[^a-z0-9.]+', '-', stated).strip('-.') or 'other')}"
    language = re.match(r"([a-z]{2,3})_", str(info.parser.get("name", "")))
    if language:  # pipelines of spaCy are named after it
        yield f"language:\n- {yaml(language[1])}"
    yield "tags:\n- attention\n- interpretability\n- transformers\n- attnstore\n- zarr"
    yield "task_categories:\n- feature-extraction"
    yield f"size_categories:\n- {next((name for most, name in _SIZES if examples < most), 'n>10M')}"
    yield "configs:"
    for table, files in tables(contents).items():
        yield f"- config_name: {yaml(table)}"
        if table == "examples":
            yield "  default: true"
        yield "  data_files:"
        yield from (f"  - {yaml(pattern)}" for pattern in patterns(table, files, contents))
    yield "---"


def _about(contents: Contents) -> Iterator[str]:
    info, snapshot = contents.info, contents.snapshot
    skipped = info.corpus.get("skipped") or 0
    yield f"\n# {markdown(title(contents))}\n"
    yield (
        f"Attention maps of {markdown(model(contents))} over {n_examples(contents)} examples "
        f"({markdown(skipped)} skipped), with their texts and statistics of the maps. The folder needs no program of "
        "its own: arrays are Zarr v3, tables are Parquet, descriptions are JSON.\n"
    )
    yield "| | |\n|---|---|"
    for name, value in {
        "format": f"attnstore {info.format}",
        "store": f"{info.store_id}, snapshot {snapshot.number}",
        "content hash": snapshot.content_hash,
        "model": model(contents),
        "model class": info.model.get("class") or "not stated",
        "tokenizer": info.tokenizer.get("class") or info.tokenizer.get("name") or "not stated",
        "heads": ", ".join(f"{kind} {one.layers} layers x {one.heads} heads" for kind, one in info.kinds.items()),
        "corpus": f"{info.corpus.get('kind')}, {n_examples(contents)} of {info.n_examples} examples",
        "licence of the texts": info.corpus.get("licence") or "not stated: ask before you pass them on",
        "parser": " ".join(map(str, info.parser.values())) or "none: what the corpus brings",
        "maps": _kept(contents),
        "precision": f"{info.precision}: {_ROUNDED[info.precision]}",
        "added later": _added(contents) or "nothing",
        "size": f"{contents.n_bytes / 1e6:.1f} MB in {sum(len(unit.files) for unit in contents.units)} files",
    }.items():
        yield f"| {name} | {markdown(value)} |"
    yield "\n| table | rows |\n|---|---|"
    for table, files in tables(contents).items():
        yield f"| {table} | {_n_rows(contents, table, files)} |"


def _kept(contents: Contents) -> str:
    """Which maps are kept, and of the largest weights how much they hold."""
    kept = contents.info.kept
    told = {
        "all": "all weights",
        "topk": f"the {kept.topk} largest weights of each row{_held(contents)}",
        "none": "none",
    }
    limits = [f"{name} {', '.join(map(str, them))}" for name in ("layers", "heads") if (them := getattr(kept, name))]
    return "; ".join((told[kept.maps], *limits))


def _held(contents: Contents) -> str:
    if contents.is_remote:
        return ""  # a card costs no table that lies elsewhere
    held = left = 0.0
    for path in tables(contents).get("kept_facts", {}):
        try:
            found = pq.read_table(contents.folder / path, columns=["kept_sum", "rest_sum"])
            held += float(found["kept_sum"].to_numpy().sum())
            left += float(found["rest_sum"].to_numpy().sum())
        except (OSError, KeyError, TypeError, pa.ArrowException) as error:
            raise Damaged(f"reading {contents.folder / path}", f"no table of facts ({error})", "", FETCH) from error
    return f", which hold {held / (held + left):.2%} of the weight" if held else ""


def _added(contents: Contents) -> str:
    """Tables and evidence of additions, by name."""
    evidence = {str(unit.facts["evidence"]) for unit in contents.additions if "evidence" in unit.facts}
    return ", ".join(sorted(evidence | {table for unit in contents.additions for table in unit.rows}))


def _n_rows(contents: Contents, table: str, files: Mapping[str, File]) -> int:
    # A newer addition may have replaced the table of some segments only.
    return sum(_count(unit, table) for unit in contents.units if f"{unit.folder}/{names.parquet_name(table)}" in files)


def _count(unit: Unit, table: str) -> int:
    rows = unit.rows.get(table, 0)
    return rows if isinstance(rows, int) else 0  # a manifest may say anything


def citation(contents: Contents) -> str:
    """How to cite the store, in BibTeX."""
    return bibtex(of_store(Store(contents))).strip()


def _citing(contents: Contents) -> Iterator[str]:
    yield "\n## Cite\n"
    yield "The content hash pins every table and map: name it, and others read what you read.\n"
    yield f"```bibtex\n{citation(contents)}\n```"


def _verifying(contents: Contents) -> Iterator[str]:
    pinned = f"--snapshot {contents.snapshot.number} --expect {contents.snapshot.content_hash[:16]}"
    yield "\n## Verify\n"
    yield "`attnstore verify . --deep` hashes every file and decodes every map. To refuse any other content:\n"
    yield f"```sh\nattnstore info . {pinned}\n```\n"
