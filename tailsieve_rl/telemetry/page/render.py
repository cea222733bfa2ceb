"""The page as one text: nothing is loaded when it is opened."""

import json
from importlib.resources import files
from typing import Any

SCRIPTS = (
    "base.js",
    "lanes.js",
    "model.js",
    "headline.js",
    "facts.js",
    "paint.js",
    "timeline.js",
    "stepper.js",
    "charts.js",
    "graphs.js",
    "page.js",
)
"""In order: each uses those before it."""


def render(data: dict[str, Any]) -> str:
    """The HTML file that shows what `page_data` gave."""
    folder = files(__package__)

    def asset(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    # "<" is written as an escape, so that no name can end the script element that holds the data.
    inside = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    script = "{" + "\n".join(asset(name) for name in SCRIPTS) + "}"
    page = asset("page.html")
    for place, text in (("style", asset("page.css")), ("script", script), ("data", inside)):
        page = page.replace(f"/*{{{place}}}*/", text)
    return page
