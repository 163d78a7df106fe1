"""Puts the tools into the wheel, and says for which machines it is."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """`cargo xtask wheel` lays the tools out and names the platform; without it the wheel would be an empty shell."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        try:
            tools, platform = os.environ["ET_WHEEL_TOOLS"], os.environ["ET_WHEEL_PLATFORM"]
        except KeyError as missing:
            raise RuntimeError(f"{missing} is not set: build the wheel with cargo xtask wheel") from None
        build_data["force_include"][tools] = "elephant_tracks/_installed"
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
