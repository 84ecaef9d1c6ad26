"""The errors that attnstore raises, grouped by what a caller does next.

AttnStoreError
├── NotFound            also KeyError           no such example, table, question, column
├── NotAStore           also FileNotFoundError  the path holds no store
├── UnsupportedFormat   also ValueError         the store is newer or older than this release reads
├── Damaged             also ValueError         a size, hash, shape or count disagrees with the manifest
├── BadInput            also ValueError         recipe, parameter or corpus line: with file and line
├── BadQuestion         also ValueError         a .sql header or its SQL: with file and line
├── NotCaptured         also RuntimeError       the model gave no usable attention; says why
├── NotStored           also LookupError        the answer needs maps or evidence that were not kept
├── NoSpace             also OSError            the disk cannot hold what is being written
└── MissingExtra        also ImportError        an optional package is absent; with the install command
"""


class AttnStoreError(Exception):
    """What went wrong, in four parts.

    `doing` names the action and its object ("reading corpus.conllu, line 12"), `found` what was
    met, `expected` what should have been there, `remedy` what the reader can do next.
    """

    def __init__(self, doing: str, found: str, expected: str = "", remedy: str = "") -> None:
        super().__init__(doing, found, expected, remedy)
        self.doing, self.found, self.expected, self.remedy = doing, found, expected, remedy

    def __str__(self) -> str:
        text = f"{self.doing}: {self.found}"
        if self.expected:
            text += f"; expected {self.expected}"
        if self.remedy:
            text += f". {self.remedy}"
        return text


class NotFound(AttnStoreError, KeyError):
    """No such example, table, question or column."""


class NotAStore(AttnStoreError, FileNotFoundError):
    """The path holds no store."""


class UnsupportedFormat(AttnStoreError, ValueError):
    """The store's format version is one that this release does not read."""


class Damaged(AttnStoreError, ValueError):
    """A file of the store disagrees with its manifest."""


class BadInput(AttnStoreError, ValueError):
    """A recipe, a parameter or a line of a corpus cannot be used."""


class BadQuestion(AttnStoreError, ValueError):
    """The header or the SQL of a question is wrong."""


class NotCaptured(AttnStoreError, RuntimeError):
    """The model gave no attention, or attention that cannot be trusted."""


class NotStored(AttnStoreError, LookupError):
    """The answer needs maps or evidence that this store did not keep."""


class NoSpace(AttnStoreError, OSError):
    """The disk cannot hold what is being written."""


class MissingExtra(AttnStoreError, ImportError):
    """An optional package is not installed."""

    def __init__(self, doing: str, package: str, extra: str) -> None:
        super().__init__(
            doing,
            f"the package {package!r} is not installed",
            remedy=f"Install it with: pip install 'attnstore[{extra}]'",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (AttnStoreError, (self.doing, self.found, self.expected, self.remedy))
