#!/usr/bin/env bash
# The baseline of run_qwen3_4b_fsdp.sh: verl's own trainer and routing with as much room, timed by our clock.
# example: VERL=~/verl recipes/drop_in/run_qwen3_4b_fsdp_baseline.sh trainer.total_training_steps=10
set -euo pipefail
cd "${VERL:?set it to a checkout of verl 0.9}"
VERL_USE_UV=0 exec bash examples/grpo_trainer/run_qwen3_4b_fsdp.sh \
    trainer.v1.trainer_mode=sync \
    ++actor_rollout_ref.rollout.agent.agent_loop_manager_class=tailsieve_rl.rollout.timed.TimedAgentLoopManager \
    actor_rollout_ref.rollout.max_num_seqs=1024 \
    "$@"
