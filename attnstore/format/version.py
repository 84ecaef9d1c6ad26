"""This file holds the version of the on-disk format that this release writes and reads."""

FORMAT = "1.0"
"""Major and minor. A reader accepts every minor of a major it knows and ignores what it does not know."""

READS_MAJOR = 1
