"""The compatibility matrix: what a row's reports say, what is published of it, and that `doctor` says the same."""

import json
from pathlib import Path

import compat
import compat_table
import pytest

from tailsieve_rl import versions

REPORT = """<testsuites><testsuite>
<testcase name="test_good"/>
<testcase name="test_bad"><failure message="assert 1 == 2&#10; +  where"/></testcase>
<testcase name="test_broken"><error message="failed on setup"/></testcase>
<testcase name="test_not_here"><skipped message="no gate"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    return path


@pytest.fixture
def published(tmp_path, monkeypatch):
    """An empty README and no results yet."""
    monkeypatch.setattr(compat_table, "README", tmp_path / "README.md")
    monkeypatch.setattr(compat_table, "DATA", tmp_path / "compat.json")
    (tmp_path / "README.md").write_text(f"before\n{compat_table.BEGIN}\nold\n{compat_table.END}\nafter\n")
    return tmp_path


def row(name, failed=None):
    found = {"passed": 3, "skipped": 0, "failed": failed or {}, "seconds": 1}
    asked = {"python": "3.11", "verl": "0.9.1", "vllm": "0.30.0", "torch": "2.13.0", "transformers": "5.10.4"}
    tests = {"tests/live/test_a.py": found, compat_table.DROP_IN: found}
    return {
        "name": name,
        "built": True,
        "why": "",
        "asked": asked,
        "doctor": [],
        "tests": tests,
        "date": "2026-01-02",
    }


def test_a_report_gives_counts_and_failures_by_name(report):
    assert compat.outcome(report, 1) == {
        "passed": 1,
        "skipped": 1,
        "failed": {"test_bad": "assert 1 == 2", "test_broken": "failed on setup"},
    }


def test_a_missing_report_and_a_silent_failure_are_failures_too(tmp_path, report):
    assert compat.outcome(tmp_path / "none.xml", 124)["failed"] == {"(all)": "no report: ended with code 124"}
    report.write_text("<testsuite><testcase name='test_good'/></testsuite>")
    assert compat.outcome(report, 3)["failed"] == {"(all)": "pytest ended with code 3"}


def test_a_row_takes_the_place_of_its_last_result_and_leaves_the_others(published):
    order = ["first", "second"]
    for result in (row("second"), row("first"), row("second", {"test_x": "why", "test_y": "why"})):
        compat_table.publish(result, order)
    assert [found["name"] for found in json.loads(compat_table.DATA.read_text())["rows"]] == order
    text = compat_table.README.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "| first | 3.11 | 0.9.1 | 0.30.0 | 2.13.0 | 5.10.4 | ok | 3 passed | 3 passed | 2026-01-02 |" in text
    assert "| 3 passed, 2 failed |" in text
    assert "* second: `tests/live/test_a.py`, `test_x`, `test_y`: why" in text


def test_a_row_that_could_not_be_built_says_why(published):
    compat_table.publish({**row("first"), "built": False, "why": "no python3.12"}, ["first"])
    assert "| not built |" in compat_table.README.read_text()
    assert "* first: no python3.12" in compat_table.README.read_text()


def test_a_readme_without_the_markers_is_left_alone(published):
    compat_table.README.write_text("no place")
    with pytest.raises(SystemExit, match="lacks the markers"):
        compat_table.publish(row("first"), ["first"])
    assert compat_table.README.read_text() == "no place" and not compat_table.DATA.exists()


def test_a_row_that_is_done_is_not_run_again_unless_forced(published, monkeypatch):
    ran = []

    def run(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.result.write_text(json.dumps(row(self.row.name)))
        ran.append(self.row.name)

    monkeypatch.setattr(compat.Measurement, "run", run)
    folder = ["--dir", str(published)]
    compat.main([*folder, "tested"])
    compat.main([*folder, "tested", "tp2"])
    assert ran == ["tested", "tp2"]
    compat.main([*folder, "--force", "tested"])
    assert ran == ["tested", "tp2", "tested"]


def test_environments_are_shared_and_deleted_after_the_last_row_that_needs_them(published, monkeypatch):
    there = []

    def run(self):
        self.environment.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.result.write_text(json.dumps(row(self.row.name)))
        there.append(sorted(path.name for path in self.environment.parent.iterdir()))

    monkeypatch.setattr(compat.Measurement, "run", run)
    compat.main(["--dir", str(published), "--delete", "tested", "verl-0.9.0", "tp2"])
    shared, alone = (compat.Row("").environment, compat.Row("", verl="0.9.0").environment)
    assert there == [[shared], [alone, shared], [shared]]
    assert list((published / "environments").iterdir()) == []


def test_an_unknown_row_is_refused_by_name(capsys):
    with pytest.raises(SystemExit) as ended:
        compat.parse(["tested", "vllm-9"])
    assert ended.value.code == 2
    assert "no such row: vllm-9; there are tested" in capsys.readouterr().err


ROOT = Path(__file__).resolve().parents[2]
MEASURED = json.loads((ROOT / "docs/data/compat.json").read_text())["rows"]


def test_the_readme_shows_what_was_measured():
    assert compat_table.table(MEASURED) in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("measured", MEASURED, ids=[found["name"] for found in MEASURED])
def test_the_versions_of_a_row_are_called_tested_if_it_passed_and_refused_if_it_did_not(measured):
    found = measured.get("versions") or measured["asked"]
    verdicts = {versions.verdict(name, version) for name, version in found.items() if version}
    failed = not measured["built"] or any(tests["failed"] for tests in measured["tests"].values())
    assert verdicts == {versions.OK} if not failed else verdicts - {versions.OK, versions.UNTRIED}


def test_rows_leave_out_the_tests_of_speculation_where_doctor_refuses_it_and_nowhere_else() -> None:
    for row in compat.ROWS:
        assert (row.without == "speculation") == (row.vllm in versions.WITHOUT_SPECULATION), row.name
