"""Running a program, traced."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Mapping, Optional, Sequence

from ._tools import Argument, ToolError, find
from ._trace import Trace

# et-instrument's own exit codes: the program was not run.
_NOT_RUN = (125, 126, 127)


def run(
    command: Sequence[Argument],
    *,
    events: Optional[str] = None,
    mode: Optional[str] = None,
    trace: Optional[Argument] = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    cwd: Optional[Argument] = None,
    env: Optional[Mapping[str, str]] = None,
    timeout: Optional[float] = None,
    check: bool = True,
) -> Trace:
    """Runs a Java program, traced, and opens its trace.

    The first run makes an instrumented copy of the JDK, which takes some seconds and is kept in the user's cache. The program has this
    process's standard input, output and error.

    :param command: the command as for a shell: ``["java", "-jar", "app.jar"]``.
    :param events: what is recorded: ``alloc``, ``update``, ``method``, ``exception``, separated by commas, or ``all``, the default. Without
        updates and methods it is not known when objects die.
    :param mode: the same in one word: ``counts`` (how much is allocated, by stack), ``objects`` (each object with its stack) or
        ``everything``. Of counts only ``summary``, ``flame``, ``diff``, ``export`` and ``report`` tell something.
    :param trace: the file to write; by default a temporary one, which is removed with the returned object.
    :param include: classes of the program to hook, such as ``com.acme.**``; by default all.
    :param exclude: classes of the program not to hook.
    :param cwd: the folder to run it in.
    :param env: its environment; by default that of this process.
    :param timeout: after this many seconds it is killed; its trace, up to there, is beside ``trace``.
    :param check: whether an exit code of the program other than 0 raises :class:`subprocess.CalledProcessError`.
    :returns: its trace; ``returncode`` has the exit code of the program.
    :raises ToolError: if the program could not be run or traced.
    """
    if events is not None and mode is not None:
        raise ValueError("give either events or a mode, which is a word for events")
    temporary = None
    if trace is None:
        temporary = tempfile.TemporaryDirectory(prefix="elephant-tracks-")
        trace = Path(temporary.name) / "run.ettrace"
    path = Path(os.path.abspath(os.path.join(os.fspath(cwd or "."), os.fspath(trace))))
    choices = [option for pattern in include for option in ("--include", pattern)]
    choices += [option for pattern in exclude for option in ("--exclude", pattern)]
    told = ["--events", "all" if events is None else events] if mode is None else ["--mode", mode]
    options = ["run", "--quiet", "--trace", os.fspath(path), *told, *choices, "--"]
    program = [os.fspath(word) for word in command]
    words = [find("et-instrument"), *options, *program]
    done = subprocess.run(words, cwd=cwd, env=env, timeout=timeout, check=False)
    if done.returncode in _NOT_RUN and not path.exists():
        raise ToolError("et-instrument", done.returncode, "the program was not run: see what et-instrument wrote to standard error")
    if check and done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, program)
    if not path.exists():
        raise ToolError("et-instrument", done.returncode, f"the program left no trace at {path}")
    return Trace(path, _temporary=temporary, returncode=done.returncode)
