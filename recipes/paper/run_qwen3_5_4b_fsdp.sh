#!/usr/bin/env bash
# Fig. 7, bottom: Qwen3.5-4B under TailSieve, thirty GRPO steps on eight H100s. SPECULATION=mtp or dflash adds drafts.
# Arguments are overrides; +try=cpu runs two steps of a tiny model here instead.
# example: SPECULATION=mtp recipes/paper/run_qwen3_5_4b_fsdp.sh trainer.logger=[console,wandb]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/_run.sh" qwen3.5-4b tailsieve "$@"
