"""A job on real prompts that is killed and resumed loses nothing, repeats nothing, dispatches nothing twice."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from e2e.jobs import Job, gsm8k, run_job
from omegaconf import OmegaConf
from verl.trainer.ppo.utils import create_rl_sampler

from tailsieve_rl.rollout.prompt_stream import PromptStream

PROMPTS, GROUPS, STEPS, Q = 32, 8, 6, 2


def _steps_written(out: Path) -> int:
    file = out / "steps.jsonl"
    return len(file.read_text().splitlines()) if file.exists() else 0


def _in_the_middle_of_step(step: int) -> Callable[[Path], bool]:
    """Holds about a second after the step before was written: the rollout, or the update after it, is under way."""
    ticks = count()
    return lambda out: _steps_written(out) >= step - 1 and next(ticks) >= 5


@pytest.fixture(scope="module")
def jobs(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Job]:
    """Six steps over three epochs of 24 prompts (32 less the warm-up's 8), killed in the second one's first step."""
    out = tmp_path_factory.mktemp("resume")
    command = gsm8k(
        assets,
        out,
        f"data.train_max_samples={PROMPTS}",
        "trainer.total_epochs=3",
        f"trainer.total_training_steps={STEPS}",
        "trainer.save_freq=1",
        "trainer.resume_mode=auto",
        "algorithm.adv_estimator=dr_grpo",
    )
    return [
        run_job(command, out, kill_when=_in_the_middle_of_step(4)),
        run_job(command, out),
    ]


def test_the_killed_run_was_killed_and_the_last_one_reaches_the_end(jobs: list[Job]) -> None:
    assert [job.returncode for job in jobs] == [-9, 0], jobs[-1].log[-3000:]
    assert [step["step"] for step in jobs[-1].steps] == list(range(1, STEPS + 1))


def test_every_step_consumed_exactly_n_groups(jobs: list[Job]) -> None:
    assert all(len(uids) == GROUPS for uids in jobs[-1].consumed().values())
    assert jobs[-1].summary["off_policy_trajectories"] == 0


def test_over_the_kill_each_drawn_prompt_was_consumed_exactly_once(jobs: list[Job]) -> None:
    consumed = [uid for uids in jobs[-1].consumed().values() for uid in uids]
    assert len(consumed) == len(set(consumed)) == STEPS * GROUPS
    dataset = [{} for _ in range(PROMPTS)]
    order = create_rl_sampler(OmegaConf.create({"shuffle": True, "seed": 0}), dataset)
    stream = PromptStream(dataset, order, list, reserve=GROUPS)
    reserved = {prompt.uid for prompt in stream.reserved()}
    drawn = {prompt.uid for prompt in stream.draw(STEPS * GROUPS - Q)}
    assert set(consumed) - reserved == drawn
    assert len(set(consumed) & reserved) == Q
