"""``python -m maskoban`` is the command line."""

from maskoban.cli import main

main()
