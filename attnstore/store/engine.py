"""This file holds what a store is read with: its tables in DuckDB, its maps, and where they lie."""

import threading
from collections.abc import Mapping

import pyarrow as pa

from attnstore.store.attention_table import VirtualTable, attention_rows
from attnstore.store.cells import Cells
from attnstore.store.computed import Computed
from attnstore.store.contents import Contents
from attnstore.store.database import Database
from attnstore.store.frames import Frames
from attnstore.store.parquet_files import ParquetFiles
from attnstore.store.places import PlaceTable
from attnstore.store.pruning import Pruning
from attnstore.store.word_table import word_attention_rows


class Engine:
    """Reads one snapshot. Threads may share it."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.files = ParquetFiles(contents)
        self.cells = Cells(contents)
        self.frames = Frames(self.files)
        self.database = self.replacing({})
        self.computed = Computed(self)
        self._lock = threading.Lock()
        self._places: tuple[PlaceTable, Pruning] | None = None

    @property
    def places(self) -> PlaceTable:
        """Where the maps lie."""
        return self._located()[0]

    def replacing(self, tables: Mapping[str, pa.Table]) -> Database:
        """A database over the same store in which these tables stand in for the stored ones."""
        virtual = {"attention": self._attention, "word_attention": self._word_attention}
        return Database(self.files, virtual, tables)

    def close(self) -> None:
        """Close every database."""
        self.computed.close()
        self.database.close()

    def _located(self) -> tuple[PlaceTable, Pruning]:
        with self._lock:
            if self._places is None:
                places = PlaceTable(self.contents.info, self.database)
                kept = ((kind, *self.cells.kept(kind)) for kind in self.contents.info.kinds)
                heads = [(kind, layer, head) for kind, layers, own in kept for layer in layers for head in own]
                self._places = places, Pruning(heads, places.examples)
            return self._places

    def _attention(self) -> VirtualTable:
        places, pruning = self._located()
        return VirtualTable(pruning, attention_rows(self.cells, places))

    def _word_attention(self) -> VirtualTable:
        places, pruning = self._located()
        return VirtualTable(pruning, word_attention_rows(self.cells, places, self.frames))
