"""``maskoban`` and ``python -m maskoban``: the command line."""

from maskoban._util.signals import exit_on_interrupt


def main() -> None:
    """Load the commands and run one."""
    exit_on_interrupt()
    from maskoban.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
