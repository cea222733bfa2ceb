"""Trainer mode `tailsieve_evaluation`: every prompt is answered once, as often as its row says; responses are kept.

Prompts with the same number of responses n are one stream, which is answered in rounds of N groups through the two
pools: what a round leaves over is the tail of the next, and the last round leaves nothing over. Weights never change,
so a response that is stopped and generated anew gets its old seed again.
"""

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import transfer_queue as tq
from omegaconf import DictConfig, OmegaConf
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.utils.dataset.rl_dataset import collate_fn

from tailsieve_rl.config.evaluation import BLOCK, SAMPLES, read_evaluation, round_groups, stream
from tailsieve_rl.rollout.checks import EVALUATION
from tailsieve_rl.rollout.errors import StepFailed
from tailsieve_rl.rollout.policy_of import make_policy, starting_allocation
from tailsieve_rl.rollout.prompt_stream import PromptStream
from tailsieve_rl.rollout.without_training import WithoutTraining
from tailsieve_rl.routing.plan import StepPlan, step_size
from tailsieve_rl.routing.policies import Setup

RESPONSES = pa.schema(
    [
        ("prompt_index", pa.int64()),
        ("session", pa.int32()),
        ("round", pa.int32()),
        ("response", pa.string()),
        ("response_tokens", pa.int32()),
        ("truncated", pa.bool_()),
    ]
)
"""responses.parquet: a row for each response of each prompt. `truncated`: it reached the longest length that is
allowed, without a stop string or the tokenizer's end token."""


@register_trainer(EVALUATION)
class EvaluationTrainer(WithoutTraining):
    """Answers `data.train_files`."""

    def __init__(self, config: DictConfig):
        self.evaluation = read_evaluation(OmegaConf.select(config, BLOCK))
        super().__init__(config)
        self._left = 0
        self._kept: list[dict[str, Any]] = []

    def _init_dataloader(self) -> None:
        super()._init_dataloader()
        self._streams: dict[int, list[int]] = {}
        for index in range(len(self.train_dataset)):
            self._streams.setdefault(int(self.train_dataset[index][SAMPLES]), []).append(index)
        for samples, rows in self._streams.items():
            starting_allocation(self.settings, self._setup_of(samples, rows))

    def _setup_of(self, samples: int, rows: list[int]) -> Setup:
        groups = round_groups(len(rows), samples, self.evaluation.requests)
        return replace(self.setup, groups=groups, responses=samples)

    def fit(self, agent_loop_manager: Any) -> None:
        """Answer every stream; each writes its result files and its responses to a folder of its own."""
        self.agent_loop_manager = agent_loop_manager
        for samples, rows in self._streams.items():
            self._answer(samples, rows)

    def _answer(self, samples: int, rows: list[int]) -> None:
        name = stream(samples)
        order = list(rows)
        random.Random(self.settings.sampling.seed or 0).shuffle(order)  # rounds alike, though sets are not
        self.setup = self._setup_of(samples, rows)
        self._start(make_policy(self.settings, self.setup))
        self.train_dataloader = PromptStream(self.train_dataset, order, collate_fn, name=f"{name}/")
        folder = Path(self.evaluation.output_dir) / name
        files = self._run_files(str(folder))
        self._left, self._kept, step = len(rows), [], 0
        while self._left:
            step += 1
            groups, _ = step_size(self.setup.groups, self._left, 0)
            self._rollout(step, groups, files, last=groups == self._left)
            self._left -= groups
        self._write(folder / "responses.parquet", rows, samples)

    def _size(self, q_next: int) -> tuple[int, int]:
        return step_size(self.setup.groups, self._left, q_next)

    def _policy_update(self, plan: StepPlan) -> int:
        return 0

    def _keep(self, batch: KVBatchMeta) -> None:
        """The responses' text, as verl's rewards see it."""
        found = tq.kv_batch_get(batch.keys, batch.partition_id, ["responses"])["responses"].unbind()
        longest = self.config.data.max_response_length
        for key, tokens in zip(batch.keys, found, strict=True):
            uid, session, _ = key.rsplit("_", 2)
            ids = tokens.tolist()
            text = self.tokenizer.decode(ids, skip_special_tokens=True)
            ended = ids[-1:] == [self.tokenizer.eos_token_id] or text.endswith(self.settings.sampling.stop)
            self._kept.append(
                {
                    "prompt_index": self._prompts[uid].index,
                    "session": int(session),
                    "round": self.global_steps,
                    "response": text,
                    "response_tokens": len(ids),
                    "truncated": len(ids) >= longest and not ended,
                }
            )

    def _write(self, path: Path, rows: list[int], samples: int) -> None:
        """All responses, whole or not at all."""
        kept = sorted((row["prompt_index"], row["session"]) for row in self._kept)
        if kept != [(index, session) for index in sorted(rows) for session in range(samples)]:
            raise StepFailed(f"{len(rows)} prompts of {samples} responses were asked for, {len(kept)} responses came")
        partial = path.with_name(path.name + ".partial")
        pq.write_table(pa.Table.from_pylist(self._kept, RESPONSES), partial)
        os.replace(partial, path)
