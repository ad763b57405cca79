"""``python -m maskoban`` is the command line."""

from maskoban.cli.app import main

main()
