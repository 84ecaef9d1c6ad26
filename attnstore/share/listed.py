"""This file says which files a store has, as paths below it: for cards, catalogues and packages."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from attnstore.errors import Damaged
from attnstore.format import names
from attnstore.format.limits import JSON_BYTES
from attnstore.format.manifest import FETCH, File
from attnstore.format.regular import content
from attnstore.format.remote import Place, Remote
from attnstore.store.contents import Contents
from attnstore.store.parquet_files import ParquetFiles


def tables(contents: Contents) -> dict[str, dict[str, File]]:
    """The tables that have a file, each with its files by their paths below the store, in order.

    What an addition replaced is not among them.
    """
    found = {
        table: {f"{unit.folder}/{file.path}": file for unit, file in sources}
        for table, sources in ParquetFiles(contents).sources.items()
    }
    return {table: files for table, files in found.items() if files}


def patterns(table: str, files: Mapping[str, File], contents: Contents) -> list[str]:
    """The same files in few words: one pattern where each segment has its own, else their paths."""
    own = [f"{names.SEGMENTS}/{unit.id}/{names.parquet_name(table)}" for unit in contents.segments]
    if len(own) > 1 and list(files) == own:
        return [f"{names.SEGMENTS}/*/{names.parquet_name(table)}"]
    return list(files)


def columns(table: str, contents: Contents) -> list[str]:
    """The columns of a table's first file: an older store has fewer. Damaged where it cannot be read."""
    unit, file = ParquetFiles(contents).sources[table][0]
    contents.fetch([(unit, file)])
    path = contents.path(unit, file)
    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"reading {path}", f"no readable Parquet file ({error})", "", FETCH) from error


def data(place: Place, most: int = JSON_BYTES) -> bytes:
    """All of a small file; Damaged where there is none or it has more than `most` bytes."""
    return place.read_bytes(most) if isinstance(place, Remote) else content(place, most)
