"""Tables of measured lengths, and the workload that resamples one."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailsieve_rl.simulation.length_table import TraceError, read_lengths
from tailsieve_rl.simulation.workloads import TraceWorkload, sky_t1, trace_workload
from tailsieve_rl.simulation.workloads.traces import SKY_T1

from .tables import write_csv

ROWS = ["a,10,100", "a,2,40", "a,10,120", "b,10,7", "b,2,9", "b,2,8"]


def first_attempts(workload, groups, step=0):
    return workload.lengths(np.arange(groups), np.ones(groups, np.int64), step)


def test_a_csv_is_read_with_its_checkpoints_in_numerical_order(tmp_path):
    table = read_lengths(write_csv(tmp_path / "t.csv", ROWS))
    assert table.checkpoints == ("2", "10") and table.prompts == 2
    assert table.prompt.tolist() == [0, 0, 0, 1, 1, 1]
    assert table.checkpoint.tolist() == [1, 0, 1, 1, 0, 0]
    assert table.tokens.tolist() == [100, 40, 120, 7, 9, 8]


@pytest.mark.parametrize(
    "header", ["prompt,step,tokens", "uid,step,length", "prompt_index, checkpoint, response_tokens"]
)
def test_columns_may_have_other_names(tmp_path, header):
    assert read_lengths(write_csv(tmp_path / "t.csv", ROWS, header)).tokens.sum() == 284


def test_a_csv_needs_no_checkpoints_and_blank_lines_do_not_matter(tmp_path):
    table = read_lengths(write_csv(tmp_path / "t.csv", ["a,5", "", "b,6", ""], "prompt_id,response_tokens"))
    assert table.checkpoints == ("",) and table.tokens.tolist() == [5, 6]


@pytest.mark.parametrize("value", ["0", "-3", "2.5", "", "many", "nan"])
def test_a_length_that_is_none_is_refused_with_its_line(tmp_path, value):
    path = write_csv(tmp_path / "t.csv", ["a,1,5", "", f"a,1,{value}"])
    with pytest.raises(
        TraceError, match=rf"t\.csv, line 4: a length is a whole number of tokens above 0, not '{value}'"
    ):
        read_lengths(path)


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (
            "prompt_id,checkpoint,words",
            ["a,1,5"],
            "none of the columns response_tokens, tokens, length; it has prompt_id",
        ),
        ("name,checkpoint,tokens", ["a,1,5"], "none of the columns prompt_id"),
        ("prompt_id,checkpoint,tokens", [], "has no rows"),
        ("prompt_id,checkpoint,tokens", ["a,1,5", "b,2"], r"line 3: 2 values for 3 columns"),
    ],
)
def test_a_table_without_what_is_needed_is_refused(tmp_path, header, rows, message):
    with pytest.raises(TraceError, match=message):
        read_lengths(write_csv(tmp_path / "t.csv", rows, header))


def test_a_file_that_is_empty_missing_or_something_else_is_refused(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(TraceError, match="it has none"):
        read_lengths(tmp_path / "empty.csv")
    with pytest.raises(TraceError, match="is not a file"):
        read_lengths(tmp_path / "missing.csv")
    for name in ("a.csv", "a.parquet"):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00\x01")
        with pytest.raises(TraceError, match=r"is not a (CSV|parquet) file"):
            read_lengths(tmp_path / name)


def test_of_a_run_consumed_responses_count_and_a_prompts_visits_are_its_checkpoints(tmp_path):
    path = tmp_path / "requests.parquet"
    columns = {
        "step": [1, 1, 2, 2, 5, 5],
        "prompt_index": [4, 4, 9, 9, 4, 4],
        "status": ["consumed", "aborted", "consumed", "consumed", "consumed", "consumed"],
        "response_tokens": [10, 0, 30, 40, 50, 60],
    }
    pq.write_table(pa.table(columns), path)
    table = read_lengths(path)
    assert table.tokens.tolist() == [10, 30, 40, 50, 60]
    assert table.prompt.tolist() == [0, 1, 1, 0, 0]
    assert [table.checkpoints[i] for i in table.checkpoint] == ["1", "1", "1", "2", "2"]


def test_a_run_with_a_length_that_is_none_is_refused_with_its_row(tmp_path):
    path = tmp_path / "requests.parquet"
    statuses = ["aborted", "consumed"]
    pq.write_table(pa.table({"step": [1, 1], "uid": ["a", "b"], "status": statuses, "tokens": [0, 0]}), path)
    with pytest.raises(TraceError, match="row 2: a length"):
        read_lengths(path)


def test_responses_are_drawn_from_those_of_one_prompt_at_the_steps_checkpoint(tmp_path):
    workload = trace_workload(write_csv(tmp_path / "t.csv", ROWS), seed=0)
    early, late = first_attempts(workload, 200, step=0), first_attempts(workload, 200, step=10)
    assert {tuple(sorted(set(row))) for row in early.tolist()} <= {(40,), (9,), (8,), (8, 9)}
    assert {tuple(sorted(set(row))) for row in late.tolist()} <= {(100,), (120,), (100, 120), (7,)}
    assert ((early > 20).all(axis=1) == (late > 20).all(axis=1)).all(), "a position stays with its prompt"
    assert 60 < (early > 20).all(axis=1).sum() < 140, "prompts are drawn evenly"
    assert workload.cap == 120


def test_the_steps_go_along_the_checkpoints_and_back(tmp_path):
    rows = [f"a,{checkpoint},{10 * checkpoint}" for checkpoint in (1, 2, 3)]
    table = read_lengths(write_csv(tmp_path / "t.csv", rows))
    workload = TraceWorkload("t", 0, table, responses=1, steps_per_checkpoint=2)
    seen = [int(first_attempts(workload, 1, step)[0, 0]) for step in range(12)]
    assert seen == [10, 10, 20, 20, 30, 30, 20, 20, 10, 10, 20, 20]


def test_spread_varies_a_single_measured_response_around_itself(tmp_path):
    path = write_csv(tmp_path / "t.csv", ["a,1,1000", "b,1,9000"])
    lengths = first_attempts(trace_workload(path, 0, spread=0.2), 2000)
    of_a = lengths[lengths < 3000]
    assert np.log(of_a).std() == pytest.approx(0.2, rel=0.05)
    assert np.median(of_a) == pytest.approx(1000, rel=0.02)


def test_prompts_that_are_not_at_every_checkpoint_are_left_out_and_none_left_is_an_error(tmp_path):
    workload = trace_workload(write_csv(tmp_path / "t.csv", ["a,1,10", "a,2,20", "b,1,30"]), 0)
    assert set(first_attempts(workload, 50).ravel()) == {10}
    with pytest.raises(TraceError, match="no prompt was measured at every one of the 2 checkpoints"):
        trace_workload(write_csv(tmp_path / "u.csv", ["a,1,10", "b,2,20"]), 0)


def test_settings_that_cannot_be_are_refused(tmp_path):
    table = read_lengths(write_csv(tmp_path / "t.csv", ROWS))
    for bad in ({"responses": 0}, {"steps_per_checkpoint": 0}, {"spread": -0.1}):
        with pytest.raises(ValueError, match="must be 1 or more"):
            TraceWorkload("t", 0, table, **bad)


def test_the_shipped_trace_has_thirty_prompts_at_eleven_checkpoints_and_comes_with_its_notice():
    table = read_lengths(SKY_T1)
    assert (table.prompts, len(table.checkpoints), len(table.tokens)) == (30, 11, 330)
    assert "Apache License" in (SKY_T1.parent / "NOTICE").read_text()
    assert sky_t1(0).name == "sky_t1_aime24"
