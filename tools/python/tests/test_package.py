"""The installed wheel: programs are traced with its tools, and their traces read."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import elephant_tracks as et

ORDERS = 50
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def classes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    subprocess.run(["javac", "-d", folder, HERE / "Shop.java"], check=True)
    return folder


@pytest.fixture(scope="session")
def trace(classes):
    return et.run(["java", "-cp", classes, "Shop", str(ORDERS)])


def orders(table):
    return table.filter(pc.equal(table["class_name"], "Shop$Order"))


def test_the_tools_are_those_of_the_wheel():
    version = importlib.metadata.version("elephant-tracks")
    assert version == et.__version__
    for tool in ("et-instrument", "et-trace", "et-replay", "et-monitor", "et-jvmpi"):
        script = Path(sys.executable).with_name(tool)
        said = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
        # The tools write 1.0.0-rc.1 for what Python writes 1.0.0rc1.
        assert said.replace("-rc.", "rc").split() == [tool, version]


def test_the_folder_of_the_tools_has_what_jvms_load():
    lib = et.home() / "lib" / "elephant-tracks"
    assert (lib / "libet_jvmpi.so").is_file() and (lib / "et-test.jar").is_file()


def test_the_summary_counts(trace):
    assert trace.returncode == 0
    assert trace.summary["complete"] is True
    assert trace.summary["allocated"]["objects"] > 3 * ORDERS


def test_objects_are_those_of_the_summary(trace):
    made = trace.objects(where=("kind", "!=", "I"))
    allocated = trace.summary["allocated"]
    assert made.num_rows == allocated["objects"]
    assert pc.sum(made["size"]).as_py() == allocated["bytes"]
    named = orders(trace.objects(columns=["class_name", "site_name", "thread_name", "death_tick"]))
    assert named.num_rows == 2 * ORDERS
    assert named["death_tick"].null_count == ORDERS
    assert set(named["thread_name"].to_pylist()) == {"main"}
    assert all(site.startswith("Shop.order:") for site in named["site_name"].to_pylist())
    assert pa.types.is_dictionary(named["site_name"].type), "each name is stored once"


def test_conditions_choose_rows(trace):
    large = trace.objects(columns=["size", "length"], where=[("length", ">=", 40), ("kind", "==", "A"), ("size", "in", [16 + 8 * 45])])
    assert large["length"].to_pylist().count(45) >= 1
    assert set(large["size"].to_pylist()) == {376}
    assert trace.objects(columns=["size"], where=pc.field("size") < 0).num_rows == 0
    with pytest.raises(ValueError, match="is no condition"):
        trace.objects(where=("size", "about", 3))
    with pytest.raises(KeyError, match="has no column colour"):
        trace.objects(columns=["colour"])


def test_counts_are_those_of_all_objects(classes):
    counts = et.run(["java", "-cp", classes, "Shop", str(ORDERS)], mode="counts")
    sums = {entry["type"]: entry["objects"] for entry in counts.summary["classes"]}
    assert sums["Shop$Order"] == 2 * ORDERS
    assert any("Shop.order" in frame for stack in counts.flame("objects").stacks["stack"].to_pylist() for frame in stack)
    with pytest.raises(ValueError, match="either events or a mode"):
        et.run(["java", "-version"], events="alloc", mode="counts")


def test_tables_for_a_fleet(trace, tmp_path):
    fleet = tmp_path / "fleet.tables"
    for run in ("one", "two"):
        assert trace.write_tables(fleet, run=run, label="1.4.2", only=["objects", "classes"]) == fleet
    rows = pads.dataset(fleet / "objects", partitioning="hive").to_table(columns=["run"])["run"]
    assert set(rows.to_pylist()) == {"one", "two"}
    assert len(rows) == 2 * trace.objects().num_rows
    labels = pads.dataset(fleet / "trace", partitioning="hive").to_table(columns=["label"])["label"].to_pylist()
    assert labels == ["1.4.2", "1.4.2"]


def test_stores_and_calls(trace):
    stores = trace.references(columns=["field_name"])
    assert stores["field_name"].to_pylist().count("Shop$Order.item") == 2 * ORDERS
    calls = trace.calls(columns=["method_name"])
    assert calls["method_name"].to_pylist().count("Shop.order") == 2 * ORDERS


def test_allocations_by_site(trace):
    made = trace.allocations()
    assert pc.sum(made["objects"]).as_py() == trace.summary["allocated"]["objects"]
    assert orders(made)["objects"].to_pylist() == [2 * ORDERS]
    sizes = made["bytes"].to_pylist()
    assert sizes == sorted(sizes, reverse=True)


def test_flames(trace):
    flame = trace.flame(by="objects")
    assert pc.sum(flame.stacks["weight"]).as_py() == trace.summary["allocated"]["objects"]
    assert any(line.startswith("Shop.main;Shop.order:") and line.endswith(f";Shop$Order {2 * ORDERS}") for line in flame.collapsed().splitlines())


def test_flames_are_pictures(trace, tmp_path):
    flame = trace.flame()
    saved = flame.save(tmp_path / "shop.svg")
    picture = ElementTree.parse(saved).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert picture.tag == f"{space}svg"
    titles = [title.text for title in picture.iter(f"{space}title")]
    assert any(title.startswith("Shop$Order: ") and title.endswith(" %") for title in titles)
    assert len(titles) == len(list(picture.iter(f"{space}rect"))) > 5
    odd = et.Flame(pa.table({"stack": [["a\x00<b>\ud7ff\uffff"]], "weight": [3]}), "objects").svg()
    assert ElementTree.fromstring(odd).find(f".//{space}title").text == "a?<b>\ud7ff?: 3 objects, 100.0 %"
    none = et.Flame(pa.table({"stack": pa.array([], pa.list_(pa.string())), "weight": pa.array([], pa.int64())}), "bytes")
    assert ElementTree.fromstring(none.svg()).tag == f"{space}svg"
    assert "0 bytes in 0 stacks" in none._repr_html_()


def test_answers_of_commands(trace, tmp_path):
    assert trace.heap()["classes"]
    assert trace.heap(at="40%") != trace.heap()
    assert trace.replay(collector="copying", heap="2x")
    with pytest.raises(ValueError, match="either"):
        trace.replay(collector="copying", plan="GenImmix")
    shown = trace.flame()._repr_html_()
    assert "<svg" in shown and "Shop$Order" in shown and "<script" not in shown
    assert trace.report(tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert trace.export("jfr", tmp_path / "shop.jfr").read_bytes()[:4] == b"FLR\0"
    with pytest.raises(et.ToolError, match="exists"):
        trace.export("jfr", tmp_path / "shop.jfr")


def test_sql(trace):
    pytest.importorskip("duckdb")
    rows = trace.sql("select count(*) as n from objects join classes using (class) where name = 'Shop$Order'")
    assert rows["n"].to_pylist() == [2 * ORDERS]


def test_two_runs_are_compared(trace, classes, tmp_path):
    more = et.run(["java", "-cp", classes, "Shop", str(2 * ORDERS)], trace=tmp_path / "more.ettrace")
    assert (tmp_path / "more.ettrace").is_file()
    assert trace.diff(more, top=1000)["classes"]["changed"] > 0


def test_a_trace_for_notebooks(trace):
    shown = trace._repr_html_()
    assert "Shop" in shown and f"{trace.summary['allocated']['objects']:,}" in shown
    assert repr(trace).startswith("Trace('")


def test_events_are_chosen(classes):
    only = et.run(["java", "-cp", classes, "Shop", str(ORDERS)], events="alloc")
    assert orders(only.allocations())["objects"].to_pylist() == [2 * ORDERS]
    assert only.summary["lifetimes"] is None


def test_programs_that_fail(classes, tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as failed:
        et.run(["java", "-cp", classes, "Shop", "1", "fail"])
    assert failed.value.returncode == 3
    kept = et.run(["java", "-cp", classes, "Shop", "1", "fail"], check=False)
    assert kept.returncode == 3 and kept.summary["complete"]
    with pytest.raises(et.ToolError):
        et.run(["no-such-program"])
    with pytest.raises(FileNotFoundError, match="no such trace"):
        et.open(tmp_path / "none.ettrace")
    wrong = tmp_path / "wrong.ettrace"
    wrong.write_text("no trace")
    with pytest.raises(et.ToolError, match="wrong.ettrace"):
        et.open(wrong).summary


def test_tables_are_kept_where_asked(trace, tmp_path):
    first = et.open(trace.path, tables=tmp_path / "tables")
    assert first.objects(columns=["size"]).num_rows > 0
    again = et.open(trace.path, tables=tmp_path / "tables")
    before = os.stat(tmp_path / "tables" / "objects" / "_runs").st_mtime_ns
    assert again.objects(columns=["size"]).equals(first.objects(columns=["size"]))
    assert os.stat(tmp_path / "tables" / "objects" / "_runs").st_mtime_ns == before
