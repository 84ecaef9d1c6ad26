"""This file lets `python -m attnstore` be the command."""

from attnstore.cli import main

main()
