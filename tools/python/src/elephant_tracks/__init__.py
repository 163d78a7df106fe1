"""Every allocation, store and death of a Java program, as Arrow tables.

    import elephant_tracks as et

    trace = et.run(["java", "-jar", "app.jar"])    # or et.open("app.ettrace")
    trace.summary["allocated"]
    trace.objects(columns=["class_name", "size"], where=("size", ">", 1000)).to_pandas()
"""

from ._tools import ToolError, home
from ._trace import Flame, Trace, open
from ._run import run

__all__ = ["Flame", "ToolError", "Trace", "home", "open", "run"]
__version__ = "1.0.0rc1"
