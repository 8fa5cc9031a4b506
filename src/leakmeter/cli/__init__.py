"""The command line: parses, calls, prints. One file per command; no logic."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a command; whatever goes wrong ends in one clear paragraph and the right exit code."""
    from leakmeter.cli.app import app
    from leakmeter.core.errors import LeakmeterError

    try:
        app()
    except LeakmeterError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say("Stopped. What was finished is kept: run the same command again to go on.")
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except Exception:
        _say(
            "leakmeter itself failed, which should not happen. The details are in "
            f"{_logged()}; please report them. What was finished is kept."
        )
        sys.exit(3)


def _say(paragraph: str) -> None:
    print(f"leakmeter: {paragraph}", file=sys.stderr)


def _logged() -> str:
    """Write the traceback where the user can find it, readable by them alone: it may quote their data."""
    import os
    import tempfile
    import traceback

    handle, path = tempfile.mkstemp(prefix="leakmeter-", suffix=".log")
    with os.fdopen(handle, "w") as file:
        file.write(traceback.format_exc())
    return path
