"""A trace, and what is in it."""

from __future__ import annotations

import html
import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ._tools import Argument, call, call_json

Condition = Tuple[str, str, Any]
Where = Union[pc.Expression, Condition, Sequence[Condition]]

_COMPARISONS = {
    "==": lambda field, value: field == value,
    "!=": lambda field, value: field != value,
    "<": lambda field, value: field < value,
    "<=": lambda field, value: field <= value,
    ">": lambda field, value: field > value,
    ">=": lambda field, value: field >= value,
    "in": lambda field, value: field.isin(list(value)),
}

# Columns with names: from which column they are, in which table, and the column there.
_NAMES = {
    "class_name": ("class", "classes"),
    "site_name": ("site", "sites"),
    "method_name": ("method", "methods"),
    "field_name": ("field", "fields"),
    "thread_name": ("thread", "threads"),
}


#: The most frames of a stack that a graph shows.
_DEEPEST = 200


class Flame(NamedTuple):
    """Stacks with their weights."""

    #: Columns ``stack``, a list of frames from the outermost to the allocated class, and ``weight``.
    stacks: pa.Table
    #: What the weights are, as given to :meth:`Trace.flame`.
    by: str

    def collapsed(self) -> str:
        """One line for each stack, as flame graph scripts read it."""
        rows = zip(self.stacks["stack"].to_pylist(), self.stacks["weight"].to_pylist())
        return "".join(f"{';'.join(stack)} {weight}\n" for stack, weight in rows)

    def svg(self) -> str:
        """A flame graph as SVG: the outermost frames at the top. Titles, which browsers show under the mouse, tell names and weights."""
        rows = list(zip(self.stacks["stack"].to_pylist(), self.stacks["weight"].to_pylist()))
        total = sum(weight for _, weight in rows)
        width, height = 960, 16
        boxes: List[str] = []
        deepest = 0

        def draw(part: Sequence[Tuple[List[str], int]], depth: int, left: float) -> None:
            nonlocal deepest
            groups: Dict[str, List[Tuple[List[str], int]]] = {}
            for stack, weight in part:
                if len(stack) > depth:
                    groups.setdefault(stack[depth], []).append((stack, weight))
            for name, inside in sorted(groups.items()):
                weight = sum(one for _, one in inside)
                room = width * weight / total
                # Less than a pixel is not seen.
                if room >= 1:
                    deepest = max(deepest, depth + 1)
                    title = _xml(f"{name}: {weight:,} {self.by}, {100 * weight / total:.1f} %")
                    shown = _xml(name[-int(room / 6.5) :]) if room > 40 else ""
                    place = f'x="{left:.1f}" y="{depth * height}" width="{room:.1f}" height="{height - 1}"'
                    text = f'<text x="{left + 3:.1f}" y="{depth * height + 11}" font-size="10" fill="#000">{shown}</text>'
                    boxes.append(f'<g><title>{title}</title><rect {place} fill="#e8a35c"/>{text}</g>')
                    # Python's own stack ends somewhere; so deep nobody looks.
                    if depth < _DEEPEST:
                        draw(inside, depth + 1, left)
                left += room

        if total:
            draw(rows, 0, 0)
        size = f'width="{width}" height="{max(deepest, 1) * height}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">{"".join(boxes)}</svg>'

    def save(self, output: Argument) -> Path:
        """Writes the flame graph to a file, ``*.svg``, which browsers and most editors of pictures open. A file that is there is replaced."""
        path = Path(output)
        path.write_text(self.svg() + "\n", encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        """The flame graph, in notebooks."""
        weights = self.stacks["weight"]
        said = f"{pc.sum(weights).as_py() or 0:,} {html.escape(self.by)} in {len(weights):,} stacks"
        return f"<figure><figcaption>{said}</figcaption>{self.svg()}</figure>"


def _xml(text: str) -> str:
    """Text in XML, without the characters that XML 1.0 has no place for, which names of classes may contain."""
    kept = "".join(one if one >= " " and not "\ud800" <= one <= "\udfff" and one not in "\ufffe\uffff" else "?" for one in text)
    return html.escape(kept)


class Trace:
    """A trace of a run. What is computed is kept as long as this object.

    Times are in *ticks* (calls and returns so far), in *bytes* (allocated so far) or in *nanos* (nanoseconds since the start of the run).
    """

    def __init__(
        self,
        path: Argument,
        *,
        names: Optional[Argument] = None,
        tables: Optional[Argument] = None,
        returncode: Optional[int] = None,
        _temporary: Optional["tempfile.TemporaryDirectory[str]"] = None,
    ) -> None:
        self.path = Path(path)
        #: The exit code of the program, if :func:`run` has run it.
        self.returncode = returncode
        self._names = None if names is None else Path(names)
        self._temporary = _temporary
        self._folder = None if tables is None else Path(tables)
        self._own_folder: Optional["tempfile.TemporaryDirectory[str]"] = None
        self._made: Dict[str, ds.Dataset] = {}
        if not self.path.is_file():
            raise FileNotFoundError(f"{self.path}: no such trace")

    def __repr__(self) -> str:
        return f"Trace({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """A table of the summary, in notebooks."""
        summary = self.summary
        made = summary["allocated"]
        rows = [
            ("program", summary["program"]["command"]),
            ("objects", f"{made['objects']:,}"),
            ("bytes", f"{made['bytes']:,}"),
            ("live at most", f"{summary['peak']['bytes']:,} bytes" if summary.get("peak") else "not known"),
            ("seconds", f"{summary['seconds']:.2f}" if summary.get("seconds") is not None else "not known"),
            ("complete", "yes" if summary["complete"] else "no"),
        ]
        cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows)
        return f"<table><caption>{html.escape(self.path.name)}</caption>{cells}</table>"

    def _arguments(self) -> List[Argument]:
        """The trace, as commands take it."""
        return [self.path] if self._names is None else ["--with-names", self._names, self.path]

    @cached_property
    def summary(self) -> Dict[str, Any]:
        """What ``et-trace summary --json`` prints: counts of records and objects, classes, sites, threads, lifetimes. Sizes are in bytes."""
        result: Dict[str, Any] = call_json("et-trace", "summary", *self._arguments())
        return result

    # Tables

    def dataset(self, table: str) -> ds.Dataset:
        """A table of ``docs/tables.md`` as a dataset of Arrow, to be read in parts. It is written at the first use."""
        self._write([table])
        return self._made[table]

    def _write(self, tables: Sequence[str]) -> None:
        """Writes those tables that are not there yet, which takes one reading of the trace."""
        if self._folder is None:
            if self._own_folder is None:
                self._own_folder = tempfile.TemporaryDirectory(prefix="elephant-tracks-")
            root = Path(self._own_folder.name)
        else:
            root = self._folder
        unknown = [table for table in dict.fromkeys(tables) if table not in self._made]
        missing = [table for table in unknown if not (root / table / "_runs").is_dir()]
        # A later conversion of the run into the same folder would replace the tables that are there.
        together = root / "+".join(missing)
        if missing and not (together / "_runs").is_dir():
            together.parent.mkdir(parents=True, exist_ok=True)
            call("et-trace", "tables", "-o", together, "--only", ",".join(missing), *self._arguments())
        for table in unknown:
            folder = together if table in missing else root / table
            files = sorted((folder / table).glob("*/*.parquet"))
            self._made[table] = ds.dataset([str(file) for file in files], format="parquet")

    def write_tables(
        self, output: Argument, *, run: Optional[str] = None, label: Optional[str] = None, only: Sequence[str] = ()
    ) -> Path:
        """Writes the tables of ``docs/tables.md`` into a folder, which may have those of other runs.

        :param output: the folder. A run of the same name in it is replaced.
        :param run: the name of the run there; by default that of the trace, with a random id.
        :param label: a release, a machine, a test: what ``label`` is in table ``trace``.
        :param only: the tables to write; by default all.
        """
        options = [] if run is None else ["--run", run]
        options += [] if label is None else ["--label", label]
        options += ["--only", ",".join(only)] if only else []
        call("et-trace", "tables", "-o", output, *options, *self._arguments())
        return Path(output)

    def table(self, table: str, *, columns: Optional[Sequence[str]] = None, where: Optional[Where] = None) -> pa.Table:
        """Rows of a table of ``docs/tables.md``.

        :param table: its name, such as ``objects``, ``calls``, ``updates``, ``refs``, ``threads``, ``collections`` or ``classes``.
        :param columns: the columns to read; others are not touched. Beside those of the table, ``class_name``, ``site_name``,
            ``method_name``, ``field_name`` and ``thread_name`` are the names of the ids in ``class``, ``site`` and so on.
        :param where: which rows: ``("size", ">", 1000)``, a list of such conditions that all hold, or an expression of Arrow. Parts
            of files without such rows are not read.
        """
        dataset = self.dataset(table)
        there = set(dataset.schema.names)
        wanted = list(columns) if columns is not None else list(dataset.schema.names)
        named = [column for column in wanted if column not in there]
        for column in named:
            if column not in _NAMES or _NAMES[column][0] not in there:
                raise KeyError(f"table {table} has no column {column}; it has {', '.join(dataset.schema.names)}")
        read = list(dict.fromkeys(_NAMES[column][0] if column in named else column for column in wanted))
        rows = dataset.to_table(columns=read, filter=None if where is None else _expression(where))
        found = {column: self._name(rows[_NAMES[column][0]], _NAMES[column][1]) for column in named}
        return pa.table({column: found[column] if column in found else rows[column] for column in wanted})

    def _name(self, ids: pa.ChunkedArray, table: str) -> pa.Array:
        """The names of ids, as a dictionary: each name is stored once."""
        own = table[:-2] if table == "classes" else table[:-1]
        names = self.dataset(table).to_table(columns=[own, "name"])
        indices = pc.index_in(ids, value_set=names[own].combine_chunks()).combine_chunks()
        texts = names["name"].combine_chunks()
        if pa.types.is_dictionary(texts.type):
            texts = texts.dictionary_decode()
        return pa.DictionaryArray.from_arrays(indices, texts)

    def objects(self, *, columns: Optional[Sequence[str]] = None, where: Optional[Where] = None) -> pa.Table:
        """A row for each object: its class, size in bytes, site, birth, last use and death. See :meth:`table`."""
        return self.table("objects", columns=columns, where=where)

    def references(self, *, columns: Optional[Sequence[str]] = None, where: Optional[Where] = None) -> pa.Table:
        """A row for each stay of a reference in a slot, from its store to what ended it: table ``refs``. ``origin`` and ``target`` are
        the ``number`` of objects. See :meth:`table`."""
        return self.table("refs", columns=columns, where=where)

    def calls(self, *, columns: Optional[Sequence[str]] = None, where: Optional[Where] = None) -> pa.Table:
        """A row for each call of a method, in the order of returns. See :meth:`table`."""
        return self.table("calls", columns=columns, where=where)

    def allocations(self) -> pa.Table:
        """What was allocated by class and site, most bytes first: columns ``class_name``, ``site_name``, ``objects``, ``bytes``. Objects
        that were there when tracing began do not count, as in ``summary["allocated"]``."""
        rows = self.objects(columns=["class", "site", "size"], where=pc.field("kind") != "I")
        sums = rows.group_by(["class", "site"]).aggregate([("size", "sum"), ("size", "count")])
        sums = sums.sort_by([("size_sum", "descending")])
        return pa.table(
            {
                "class_name": self._name(sums["class"], "classes"),
                "site_name": self._name(sums["site"], "sites"),
                "objects": sums["size_count"],
                "bytes": sums["size_sum"],
            }
        )

    # Answers of the commands

    def flame(self, by: str = "bytes") -> Flame:
        """Stacks of allocations with their weights.

        :param by: ``bytes``, ``objects``, ``alive-bytes``, ``alive-objects``, ``young-bytes``, ``young-objects``, ``survived-bytes``,
            ``survived-objects`` or ``drag``, as for ``et-trace export --weight``.
        """
        text = call("et-trace", "export", "--to", "collapsed", "--weight", by, *self._arguments())
        lines = [line.rpartition(" ") for line in text.splitlines()]
        stacks = [stack.split(";") for stack, _, _ in lines]
        weights = [int(weight) for _, _, weight in lines]
        table = pa.table({"stack": pa.array(stacks, pa.list_(pa.string())), "weight": pa.array(weights, pa.int64())})
        return Flame(table, by)

    def heap(self, at: str = "end", *, top: int = 20) -> Dict[str, Any]:
        """The heap at a moment, by class, with retained sizes in bytes: ``end``, ``40%``, ``12.5s``, ``tick:N``, ``bytes:N``."""
        result: Dict[str, Any] = call_json("et-trace", "heap", "--at", at, "--top", str(top), *self._arguments())
        return result

    def diff(self, other: "Trace", *, top: int = 10) -> Dict[str, Any]:
        """What another run allocates more or less of than this one, by class, site and context, as ``et-trace diff --json`` says it."""
        result: Dict[str, Any] = call_json("et-trace", "diff", "--top", str(top), self.path, other.path)
        return result

    def replay(self, collector: Optional[str] = None, heap: str = "3x", *, plan: Optional[str] = None) -> Any:
        """A replay on simulated collectors, as ``et-replay simulate --json`` prints it, or on MMTk's collectors (``collect``).

        :param collector: ``mark-sweep``, ``mark-compact``, ``copying``, ``generational`` or ``reference-counting``; by default all.
        :param heap: the size of the heap: ``64m``, or a multiple of the peak of live bytes, ``2x``.
        :param plan: a collector of MMTk instead, such as ``GenImmix``. It needs an ``et-collect``, which the wheel does not have:
            ``et-replay`` says how to get it.
        """
        if plan is not None:
            if collector is not None:
                raise ValueError("give either a collector, which is simulated, or a plan of MMTk")
            return call_json("et-replay", "collect", "--heap", heap, "--plan", plan, *self._arguments())
        choice = [] if collector is None else ["--collector", collector]
        return call_json("et-replay", "simulate", "--heap", heap, *choice, *self._arguments())

    def sql(self, query: str, tables: Sequence[str] = ("objects", "classes", "sites", "threads")) -> pa.Table:
        """The rows of a query on DuckDB, which must be installed (``pip install duckdb``).

        :param query: it names tables as ``docs/tables.md`` does.
        :param tables: those that the query uses.
        """
        try:
            import duckdb
        except ImportError:
            raise ImportError("sql needs DuckDB: pip install duckdb") from None
        self._write(tables)
        with duckdb.connect() as connection:
            for table in tables:
                connection.register(table, self.dataset(table))
            return connection.sql(query).to_arrow_table()

    def export(self, to: str, output: Argument, *, weight: str = "bytes", force: bool = False) -> Path:
        """Writes a profile for another tool: ``pprof``, ``firefox``, ``speedscope``, ``collapsed``, ``chrome`` or ``jfr``."""
        options = ["--force"] if force else []
        call("et-trace", "export", "--to", to, "--weight", weight, "-o", output, *options, *self._arguments())
        return Path(output)

    def report(self, output: Argument, *, force: bool = False) -> Path:
        """Writes a page with graphs, for a browser."""
        call("et-trace", "report", "-o", output, *(["--force"] if force else []), *self._arguments())
        return Path(output)


def _expression(where: Where) -> pc.Expression:
    if isinstance(where, pc.Expression):
        return where
    conditions = [where] if len(where) == 3 and isinstance(where[0], str) else list(where)
    result: Optional[pc.Expression] = None
    for condition in conditions:
        try:
            column, comparison, value = condition
            one = _COMPARISONS[str(comparison)](pc.field(column), value)
        except (KeyError, TypeError, ValueError):
            known = ", ".join(_COMPARISONS)
            raise ValueError(f"{condition!r} is no condition (column, comparison, value), where the comparison is one of {known}") from None
        result = one if result is None else result & one
    if result is None:
        raise ValueError("an empty list of conditions")
    return result


def open(path: Argument, *, names: Optional[Argument] = None, tables: Optional[Argument] = None) -> Trace:
    """Opens a trace.

    :param path: the file, ``*.ettrace``, or a text of records.
    :param names: for a text, the file with the names behind its ids.
    :param tables: a folder in which tables are kept, a folder for each; by default a temporary one, removed with the returned object.
    """
    return Trace(os.fspath(path), names=names, tables=tables)
