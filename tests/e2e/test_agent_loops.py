"""Custom and multi-turn agent loops, failing responses and dying replicas, in real jobs."""

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from e2e.jobs import ROOT, Job, gsm8k, run_job

LOOPS = "actor_rollout_ref.rollout.agent"


def _run(assets: Path, out: Path, agent_loop: str, *overrides: str) -> Job:
    command = gsm8k(
        assets,
        out,
        f"{LOOPS}.agent_loop_config_path={ROOT}/tests/e2e/agent_loops.yaml",
        f"{LOOPS}.default_agent_loop={agent_loop}",
        "++trainer.v1.tailsieve.replay_lengths=lengths",
        "++trainer.v1.tailsieve.controller.name=fixed",
        *overrides,
    )
    return run_job(command, out, env={"TAILSIEVE_TEST_DIR": str(out), "PYTHONPATH": f"{ROOT}/tests:{ROOT}/examples"})


@pytest.fixture(scope="module")
def sabotaged(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    overrides = ("trainer.total_training_steps=4", "data.max_response_length=128")
    return _run(assets, tmp_path_factory.mktemp("sabotaged"), "saboteur", *overrides)


def test_a_failed_response_is_generated_again_and_its_group_is_consumed_whole(sabotaged: Job) -> None:
    first = [row for row in sabotaged.requests if row["step"] == 1]
    assert sabotaged.steps[0]["retries"] == 1
    consumed = Counter(row["uid"] for row in first if row["status"] == "consumed")
    assert len(consumed) == 8 and set(consumed.values()) == {2}


def test_the_examples_agent_loop_has_two_turns_with_a_question_between_them(sabotaged: Job, assets: Path) -> None:
    """Each turn has the length that is forced; what a response has beyond is the question."""
    forced = pq.read_table(assets / "train.parquet")["lengths"].to_pylist()
    consumed = [row for row in sabotaged.requests if row["status"] == "consumed"]
    beyond = {row["response_tokens"] - 2 * forced[row["prompt_index"]][row["session"]] for row in consumed}
    assert len(consumed) == 2 * 8 * 2 and len(beyond) == 1 and min(beyond) > 5


def test_a_step_whose_replica_dies_is_completed_on_the_other_one(sabotaged: Job) -> None:
    second = [row for row in sabotaged.requests if row["step"] == 2]
    consumed = Counter(row["uid"] for row in second if row["status"] == "consumed")
    assert len(consumed) == 8 and set(consumed.values()) == {2}
    assert sabotaged.steps[1]["retries"] > 0


def test_after_a_replica_died_the_run_stops_with_the_cause_and_a_checkpoint(sabotaged: Job) -> None:
    assert sabotaged.returncode == 1
    last_line = sabotaged.log.strip().splitlines()[-1]
    assert "died in step 2" in last_line and "resume" in last_line
    assert (sabotaged.out / "global_step_2" / "tailsieve.pt").exists()
    assert (sabotaged.out / "latest_checkpointed_iteration.txt").read_text() == "2"


@pytest.fixture(scope="module")
def multi_turn(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    return _run(
        assets,
        tmp_path_factory.mktemp("multi_turn"),
        "slow_tool",
        "trainer.total_training_steps=2",
        "data.max_response_length=128",
        "actor_rollout_ref.rollout.multi_turn.enable=true",
        "actor_rollout_ref.rollout.multi_turn.format=always",
        "actor_rollout_ref.rollout.multi_turn.max_assistant_turns=2",
        f"actor_rollout_ref.rollout.multi_turn.function_tool_path={ROOT}/tests/e2e/tools.py",
    )


def test_a_tool_loop_trains_whole_groups(multi_turn: Job) -> None:
    assert multi_turn.returncode == 0, multi_turn.log[-3000:]
    assert all(len(uids) == 8 for uids in multi_turn.consumed().values())
    assert multi_turn.summary["off_policy_trajectories"] == 0


def test_a_group_that_waits_for_its_tool_at_the_cutoff_is_regenerated(multi_turn: Job) -> None:
    tail = {row["uid"] for row in multi_turn.requests if row["step"] == 2 and row["pool"] == "tail"}
    left = {row["uid"] for row in multi_turn.requests if row["step"] == 1 and row["status"] == "aborted"}
    assert tail == left and tail


def test_all_turns_of_a_response_run_on_one_replica(multi_turn: Job) -> None:
    replicas: dict[tuple, list[int]] = {}
    for call in _calls(multi_turn):
        if not call["closed"]:
            replicas.setdefault((call["uid"], call["session"], call["attempt"]), []).append(call["replica"])
    several = [found for found in replicas.values() if len(found) > 1]
    assert len(several) >= 2 * 8 * 2 and all(len(set(found)) == 1 for found in several)


def test_a_call_that_comes_after_the_cutoff_is_refused(multi_turn: Job) -> None:
    """Of a prompt whose tool is slow, the turn after the tool: the group has been left over by then."""
    calls = _calls(multi_turn)
    slow = [call for call in calls if call["closed"] and int(call["uid"].split("-")[1]) % 8 == 0]
    began = {(c["uid"], c["session"]) for c in calls if not c["closed"] and c["attempt"] == 1}
    again = {row["uid"] for row in multi_turn.requests if row["attempt"] == 2}
    late = {call["uid"] for call in slow if (call["uid"], call["session"]) in began}
    assert late and late <= again


def _calls(job: Job) -> list[dict]:
    return [json.loads(line) for line in (job.out / "calls.jsonl").read_text().splitlines()]
