# Runs SQL that comes on standard input: views, a NUL, and the statement. Prints CSV or JSON; the version on standard error.
import csv
import json
import sys

try:
    import duckdb
except ImportError:
    sys.exit(97)

views, statement = sys.stdin.buffer.read().decode("utf-8").split("\0")
print(duckdb.__version__, file=sys.stderr)
out = open(sys.stdout.fileno(), "w", encoding="utf-8", errors="surrogateescape", newline="", closefd=False)


def rows(result):
    while batch := result.fetchmany(10000):
        yield from batch


def plain(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def number(value):
    return float(value) if type(value).__name__ == "Decimal" else str(value)


try:
    connection = duckdb.connect()
    connection.execute(views)
    result = connection.execute(statement)
    names = [column[0] for column in result.description or []]
    if sys.argv[1] == "csv":
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([plain(value) for value in row] for row in rows(result))
    else:
        first = True
        for row in rows(result):
            out.write("[" if first else ",\n")
            out.write(json.dumps(dict(zip(names, row)), ensure_ascii=False, default=number))
            first = False
        out.write("[]\n" if first else "]\n")
    out.flush()
except BrokenPipeError:
    sys.exit(1)
except duckdb.Error as error:
    print(" ".join(str(error).split()), file=sys.stderr)
    sys.exit(1)
