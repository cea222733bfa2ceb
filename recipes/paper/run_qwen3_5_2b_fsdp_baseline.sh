#!/usr/bin/env bash
# The baseline of run_qwen3_5_2b_fsdp.sh: the same prompts, seeds and updates under uniform routing. SPECULATION=mtp is D.1's
# All-MTP baseline; ROUTING=verl_sync is verl's own trainer and routing instead.
# example: recipes/paper/run_qwen3_5_2b_fsdp_baseline.sh trainer.logger=[console,wandb]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/_run.sh" qwen3.5-2b "${ROUTING:-uniform}" "$@"
