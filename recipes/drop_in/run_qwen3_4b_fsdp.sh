#!/usr/bin/env bash
# verl's own example examples/grpo_trainer/run_qwen3_4b_fsdp.sh, changed by what TailSieve needs: the trainer mode, and room
# for its 512 groups of 5 responses, 854 at once on each bulk replica; vLLM would take 256 and let the rest wait.
# VERL is a checkout of verl 0.9. Arguments are further overrides. The script would start an environment of verl's own with
# uv, which has no tailsieve-rl in it: VERL_USE_UV=0 keeps to the current one.
# example: VERL=~/verl recipes/drop_in/run_qwen3_4b_fsdp.sh trainer.total_training_steps=10
set -euo pipefail
cd "${VERL:?set it to a checkout of verl 0.9}"
VERL_USE_UV=0 exec bash examples/grpo_trainer/run_qwen3_4b_fsdp.sh \
    trainer.v1.trainer_mode=tailsieve \
    actor_rollout_ref.rollout.max_num_seqs=1024 \
    "$@"
