"""Runs the code of a notebook, cell by cell: notebook.py NOTEBOOK. What Jupyter adds to that is not needed to see whether it works."""

import json
import sys

cells = json.load(open(sys.argv[1], encoding="utf-8"))["cells"]
names = {"__name__": "__main__"}
for number, cell in enumerate(cell for cell in cells if cell["cell_type"] == "code"):
    exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
