"""This file names the sizes beyond which a store is refused, before its bytes are read."""

JSON_BYTES = 64 * 2**20
"""Of store.json and of a snapshot: half a million segments."""

UNIT_BYTES = 16 * 2**20
"""Of the manifest of a segment or addition."""

SMALL_BYTES = 2**20
"""Of a tag, and of the metadata of an array."""

FILE_BYTES = 64 * 2**30
"""Of any listed file, so that one without content (sparse) cannot keep a reader for days."""

MOST_EXAMPLES = 2**31 - 1
MOST_LAYERS = MOST_HEADS = 2**15 - 1
MOST_MAPS = 2**20
"""Examples, layers, heads of a layer, heads of all layers. Tables have 32 and 16 bits for numbers, and heads are listed
when a store is first asked."""

CHUNK_BYTES = 64 * 2**20
"""Of an inner chunk once it is decoded: a small file must not unpack into all memory."""

SHARD_BYTES = 2 * 2**30
"""Of a shard once it is decoded, and of its file."""

SHARD_CHUNKS = 2**22
"""Inner chunks of a shard: its index has 16 bytes for each."""

FOOTER_BYTES = 64 * 2**20
TABLE_COLUMNS = 1024
"""Of a Parquet file."""

COLUMN_DEPTH = 8
"""Lists and structs within one another, in a column of a Parquet file: DuckDB takes minutes to copy one of sixty."""

ROWS_PER_BYTE = 1024
"""Rows of a Parquet file for each of its bytes: some bytes can stand for any number of equal rows."""

COLUMN_BYTES = 2 * 2**30
"""Of one column of a row group of a Parquet file, once it is unpacked."""
