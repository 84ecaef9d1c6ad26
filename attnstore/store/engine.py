"""This file holds what a store is read with: its tables in DuckDB, its maps, and where they lie."""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from attnstore.catalogue.catalogue import views
from attnstore.store.cells import Cells
from attnstore.store.computed import Computed
from attnstore.store.contents import Contents
from attnstore.store.database import Database
from attnstore.store.frames import Frames
from attnstore.store.layout import Shown
from attnstore.store.parquet_files import ParquetFiles
from attnstore.store.places import PlaceTable

# Datasets of Arrow cost half a second to load with pandas beside them, and few questions read maps.
if TYPE_CHECKING:
    from attnstore.store.attention_table import VirtualTable
    from attnstore.store.prepared import Prepared
    from attnstore.store.pruning import Pruning
    from attnstore.store.walls import Walls


class Engine:
    """Reads one snapshot. Threads may share it."""

    def __init__(
        self,
        contents: Contents,
        walls: "Walls | None" = None,
        prepared: "Prepared | None" = None,
        threads: int | None = None,
    ) -> None:
        self.contents, self.walls, self.prepared, self.threads = contents, walls, prepared, threads
        self.files = ParquetFiles(contents)
        self.cells = Cells(contents)
        self.frames = Frames(self.files)
        self._views = views()
        self.database = self.replacing({})
        self.computed = Computed(self)
        self._lock = threading.Lock()
        self._places: PlaceTable | None = None
        self._pruning: Pruning | None = None

    @property
    def places(self) -> PlaceTable:
        """Where the maps lie."""
        with self._lock:
            if self._places is None:
                self._places = PlaceTable(self.contents.info, self.database)
            return self._places

    def replacing(self, tables: Mapping[str, pa.Table], places: PlaceTable | None = None) -> Database:
        """A database over the same store in which these tables stand in for the stored ones.

        With `places`, it shows nothing but their examples.
        """
        return Database(self.shown(tables, places), self.walls, self.threads)

    def shown(self, tables: Mapping[str, pa.Table] | None = None, places: PlaceTable | None = None) -> Shown:
        """What a database shows of the store: with these tables in the place of stored ones, and these examples."""
        virtual = {
            "attention": lambda: self._attention(places),
            "word_attention": lambda: self._word_attention(places),
        }
        return Shown(
            self.files,
            self._views,
            virtual,
            tables or {},
            None if places is None else places.examples,
            self.walls is not None,
        )

    def close(self) -> None:
        """Close every database."""
        self.computed.close()
        self.database.close()

    def _prune(self, chosen: PlaceTable | None) -> "Pruning":
        from attnstore.store.pruning import Pruning

        places = self.places if chosen is None else chosen
        with self._lock:
            if self._pruning is not None and chosen is None:
                return self._pruning
            kept = ((kind, *self.cells.kept(kind)) for kind in self.contents.info.kinds)
            heads = [(kind, layer, head) for kind, layers, own in kept for layer in layers for head in own]
            pruning = Pruning(heads, places.examples)
            if chosen is None:
                self._pruning = pruning
            return pruning

    def _attention(self, chosen: PlaceTable | None) -> "VirtualTable":
        from attnstore.store.attention_table import VirtualTable, attention_rows

        places = self.places if chosen is None else chosen
        return VirtualTable(self._prune(chosen), attention_rows(self.cells, places))

    def _word_attention(self, chosen: PlaceTable | None) -> "VirtualTable":
        from attnstore.store.attention_table import VirtualTable
        from attnstore.store.word_table import word_attention_rows

        places = self.places if chosen is None else chosen
        return VirtualTable(self._prune(chosen), word_attention_rows(self.cells, places, self.frames))
