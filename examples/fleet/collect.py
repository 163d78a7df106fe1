"""Runs a program, traced, and puts the tables of its trace where those of the whole fleet are.

    python collect.py TABLES --label 1.4.2 [--events alloc,update] -- java -jar app.jar

TABLES is a folder on shared storage. The trace itself stays on this machine, and is removed in the end.
"""

import argparse
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

import elephant_tracks as et


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, help="folder of tables, which may have those of other runs")
    parser.add_argument("--label", required=True, help="release of the program")
    parser.add_argument("--events", help="what is recorded, as for et-instrument run")
    parser.add_argument("command", nargs="+", help="the program with its arguments, behind --")
    arguments = parser.parse_args()

    trace = et.run(arguments.command, events=arguments.events, check=False)
    run = f"{socket.gethostname()}-{time.time_ns()}"
    with tempfile.TemporaryDirectory(prefix="elephant-tracks-") as folder:
        own = trace.write_tables(Path(folder) / "tables", run=run, label=arguments.label, only=["objects", "classes", "sites"])
        # Table trace last: who joins it sees complete runs only.
        for table in sorted(own.iterdir(), key=lambda table: table.name == "trace"):
            shutil.copytree(table, arguments.tables / table.name, dirs_exist_ok=True)
    print(f"{arguments.tables}: run {run}", file=sys.stderr)
    sys.exit(trace.returncode)


if __name__ == "__main__":
    main()
