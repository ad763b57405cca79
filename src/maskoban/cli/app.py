"""The command line: ``maskoban COMMAND``, one thin command a capability, one file a group of commands.

Commands import heavy modules when they run, so that ``--help`` answers at once. Exit codes: 0 fine, 1 a result is
negative (a level has no solution, a board cannot be repaired), 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Annotated

import typer

from maskoban._util.signals import INTERRUPTED
from maskoban.cli import bulk, check, corpus, evaluate, generate, levels, solve, studio, train
from maskoban.cli.options import grouped
from maskoban.cli.output import Commands, complain, mute

app = typer.Typer(
    cls=Commands,
    help="Generate, complete, prove, repair, rate, show and convert Sokoban levels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

# In the order of the help text: where boards come from, what is found out about them, where they go.
app.command()(grouped(generate.generate))
app.command()(grouped(generate.complete))
app.add_typer(corpus.corpus, name="corpus")
app.add_typer(train.train, name="train")
app.command()(train.export)
app.command()(grouped(solve.solve))
app.command()(grouped(solve.optimize))
app.command()(grouped(solve.repair))
app.command()(grouped(solve.rate))
app.command()(grouped(evaluate.evaluate))
app.command()(levels.show)
app.command()(grouped(levels.convert))
app.command()(grouped(check.check))
app.command()(studio.studio)
app.command()(train.fetch)
app.add_typer(studio.site, name="site")
app.add_typer(bulk.bulk, name="bulk")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        import maskoban

        print(f"maskoban {maskoban.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line."""
    if sys.stderr is None:  # closed by whoever started us, who then hears nothing
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open until the end
    if sys.stdout is None:
        complain("standard output is closed")
        sys.exit(2)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A title that the terminal's encoding lacks is no reason to stop.
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            app(prog_name="maskoban")
        finally:
            sys.stdout.flush()
    except SystemExit as left:
        if left.code == INTERRUPTED:
            # Threads finish what they are at; whoever presses Ctrl-C again meanwhile wants the end, and no traceback.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise
    except OSError as error:
        if error.filename is not None:  # not a stream: a bug of ours
            raise
        mute()  # Python flushes once more on its way out, and must not speak of it
        if isinstance(error, BrokenPipeError):  # whoever read us has left, as `head` does: nothing to say
            sys.exit(1)
        complain(f"output cannot be written: {error.strerror}")
        sys.exit(2)
