#!/usr/bin/env bash
# Tables 1 and 4 on eight GPUs: every model, workload and N of the paper, one cell after the other; a cell that has its
# results is not run again. Arguments are overrides. Fewer cells: MODELS, WORKLOADS, GROUPS_PER_STEP. Results: OUT.
# example: MODELS=qwen3.5-4b GROUPS_PER_STEP=64 recipes/bench/run_stepwise.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
OUT=${OUT:-outputs/bench/stepwise}

for model in ${MODELS:-qwen3.5-35b-a3b qwen3.5-4b qwen3.5-2b qwen3-30b-a3b qwen3-4b}; do
    for workload in ${WORKLOADS:-math code}; do
        for groups in ${GROUPS_PER_STEP:-64 128 256}; do
            out=$OUT/$model-$workload-$groups
            if [ -f "$out/results.json" ]; then continue; fi
            tailsieve bench --config-name bench/stepwise model="$model" workload="$workload" \
                data.train_batch_size="$groups" bench.out="$out" "$@"
        done
    done
done
