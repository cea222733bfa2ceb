"""The page in headless Chromium: it draws itself in time, and does what its controls say."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tailsieve_rl import cli
from tailsieve_rl.simulation.profiles import profile

from .written import write_run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""No Python package: scripts/test.sh installs it on CI's machine, and without one names and leaves out this file."""

OPTIONS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --hide-scrollbars --window-size=1366,900""".split()

PROBE = """
<script>
const found = {}, all = (what) => [...document.querySelectorAll(what)], tip = () => document.getElementById("tip");
const lines = () => all(".lanes .facts").map((e) => e.textContent);
// How many pixels of a canvas have a colour of the theme.
const pixels = (canvas, name) => {
  const colour = getComputedStyle(document.documentElement).getPropertyValue(name);
  const [r, g, b] = colour.match(/\\w\\w/g).map((hex) => parseInt(hex, 16));
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += data[i] === r && data[i + 1] === g && data[i + 2] === b;
  return count;
};
const pointAt = (canvas, x, y) => {
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y }));
};
found.drawn = Number(document.documentElement.dataset.drawn);
found.theme = document.documentElement.dataset.theme;
try {
%s
} catch (error) { found.error = error.stack; }
document.body.replaceChildren(JSON.stringify(found));
</script>
"""


def _open(page: Path, probe: str, *options: str) -> dict[str, Any]:
    """What the probe, a script that runs in the page, finds."""
    assert CHROMIUM is not None, "needs the Debian package chromium, or Chrome, on PATH"
    probed = page.with_name("probed.html")
    probed.write_text(page.read_text().replace("</body>", PROBE % probe + "</body>"))
    profile = page.with_name("profile")
    command = [CHROMIUM, *OPTIONS, *options, f"--user-data-dir={profile}", "--dump-dom", probed.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    shutil.rmtree(profile)
    body = re.search(r"<body>(\{.*\})\s*</body>", done.stdout, re.DOTALL)
    assert body, done.stdout[-2000:]
    found = json.loads(html.unescape(body[1]))
    assert "error" not in found, found["error"]
    return found


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a baseline and a run, 30 steps of 512 requests each."""
    out = tmp_path_factory.mktemp("large")
    size = {"steps": 30, "groups": 64, "responses": 8, "replicas": 8, "tau": profile("qwen3.5-4b")}
    folders = [write_run(out / policy, policy, **size) for policy in ("uniform", "tailsieve")]
    assert cli.main(["report", *map(str, folders), "--out", str(out / "page.html")]) == 0
    return out / "page.html"


def test_thirty_steps_of_512_requests_are_under_3_mb_and_drawn_within_2_s(large: Path) -> None:
    assert large.stat().st_size < 3e6
    found = _open(
        large,
        """
        found.charts = all("#charts svg").length;
        found.cards = all(".number b").map((e) => e.textContent);
        found.banner = document.getElementById("emulated").textContent;
        const canvas = all("canvas")[1];
        found.pixels = ["--tail", "--bulk", "--aborted", "--cut"].map((name) => pixels(canvas, name));
        found.baseline = ["--tail", "--aborted", "--cut"].map((name) => pixels(all("canvas")[0], name));
        found.width = document.documentElement.scrollWidth;
        """,
    )
    assert 0 < found["drawn"] < 2000
    assert found["charts"] == 5 and len(found["cards"]) == 6
    assert "simulated" in found["banner"] and found["cards"][5] == "simulated"
    assert min(found["pixels"]) > 20 and found["baseline"] == [0, 0, 0]
    assert (found["theme"], found["width"]) == ("light", 1366)


def test_controls_choose_the_step_the_order_and_the_runs(large: Path) -> None:
    found = _open(
        large,
        """
        const press = (text) => all("button").find((b) => b.textContent === text).click();
        const slider = document.querySelector("input[type=range]");
        slider.value = 19;
        slider.dispatchEvent(new Event("input"));
        found.step = document.querySelector(".controls").textContent;
        found.before = lines();
        const canvas = all("canvas")[1], image = () => canvas.toDataURL();
        const byEnd = image();
        press("group");
        found.orderMatters = byEnd !== image();
        press("end time");
        found.orderReturns = byEnd === image();
        // A tail replica's lane is the first, below the labels of the markers.
        pointAt(canvas, 160, 24);
        found.tip = tip().textContent;
        found.pointed = byEnd !== image();
        pointAt(canvas, 4, 24);
        found.lane = tip().textContent;
        press("uniform");
        found.alone = lines();
        // Drag over a part of the time.
        const box = canvas.getBoundingClientRect();
        const at = (x) => ({ clientX: box.left + x, clientY: box.top + 40, pointerId: 1 });
        canvas.setPointerCapture = () => {};
        canvas.dispatchEvent(new PointerEvent("pointerdown", at(300)));
        canvas.dispatchEvent(new PointerEvent("pointermove", at(500)));
        canvas.dispatchEvent(new PointerEvent("pointerup", at(500)));
        found.zoomed = !all("button").find((b) => b.textContent === "Whole step").hidden;
        """,
    )
    assert "step 20" in found["step"]
    assert [line.split(":")[0] for line in found["before"]] == ["uniform", "tailsieve"]
    assert found["orderMatters"] and found["orderReturns"] and found["pointed"]
    assert "attempt 2, regenerated" in found["tip"] and "replica" in found["tip"]
    assert "busy" in found["lane"]
    assert [line.split(":")[0] for line in found["alone"]] == ["tailsieve"]
    assert found["zoomed"]


def test_it_is_dark_where_the_reader_is_and_fits_a_narrow_window(large: Path) -> None:
    found = _open(
        large,
        """
        found.background = getComputedStyle(document.body).backgroundColor;
        found.ink = getComputedStyle(document.body).color;
        found.width = document.documentElement.scrollWidth;
        """,
        "--blink-settings=preferredColorScheme=0",
        "--window-size=500,900",
    )
    channels = {name: [int(n) for n in re.findall(r"\d+", found[name])] for name in ("background", "ink")}
    assert found["theme"] == "dark" and max(channels["background"]) < 60 and min(channels["ink"]) > 180
    assert found["width"] <= 500
