"""The programs of Elephant Tracks: where they are, and how they are called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn, Sequence, Union

Argument = Union[str, "os.PathLike[str]"]

_INSTALLED = Path(__file__).parent / "_installed" / "bin"

# A cut-off trace, and one that lacks events in the middle: the results are those of what is there, and a warning says so.
_INCOMPLETE = (3, 4)


class ToolError(RuntimeError):
    """A program has failed; the text is what it said."""

    def __init__(self, program: str, exit_code: int, said: str) -> None:
        super().__init__(said or f"{program} ended with exit code {exit_code}")
        self.program = program
        self.exit_code = exit_code


def home() -> Path:
    """The folder above ``bin`` with the programs; ``lib/elephant-tracks`` in it has agents, ``et-test.jar`` and the plugins for Gradle and Maven."""
    return Path(find("et-instrument")).resolve().parent.parent


def find(program: str) -> str:
    """The path of a program: of `ET_HOME`, of this wheel, or in `PATH`."""
    home = os.environ.get("ET_HOME")
    for folder in ([Path(home) / "bin"] if home else []) + [_INSTALLED]:
        path = folder / program
        if path.is_file():
            return str(path)
    found = shutil.which(program)
    if found is None:
        raise ToolError(program, 127, f"{program} not found: install the wheel, add it to PATH, or set ET_HOME to the folder above bin")
    return found


def call(program: str, *arguments: Argument) -> str:
    """What a program prints. What it warns of becomes warnings of Python."""
    command = [find(program), *(os.fspath(argument) for argument in arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode not in (0, *_INCOMPLETE):
        raise ToolError(program, done.returncode, done.stderr.strip())
    warn(done.stderr)
    return done.stdout


def call_json(program: str, *arguments: Argument) -> Any:
    """The JSON that a program prints."""
    return json.loads(call(program, *arguments, "--json"))


def warn(said: str) -> None:
    """Warns of what a program has said, line by line."""
    import warnings

    for line in said.splitlines():
        if line.strip():
            warnings.warn(line.strip(), stacklevel=4)


def _become(program: str, arguments: Sequence[str]) -> NoReturn:
    try:
        path = find(program)
        os.execv(path, [path, *arguments])
    except (ToolError, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(127)


def et_instrument() -> NoReturn:
    """The command of that name; so are its neighbours."""
    _become("et-instrument", sys.argv[1:])


def et_trace() -> NoReturn:
    _become("et-trace", sys.argv[1:])


def et_replay() -> NoReturn:
    _become("et-replay", sys.argv[1:])


def et_monitor() -> NoReturn:
    _become("et-monitor", sys.argv[1:])


def et_jvmpi() -> NoReturn:
    _become("et-jvmpi", sys.argv[1:])
