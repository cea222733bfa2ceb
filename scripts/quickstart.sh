#!/usr/bin/env bash
# See it work: set up the environment, build the demo model, train it with verl's own synchronous trainer and with
# TailSieve on the same prompts and seeds, and print both runs side by side. Arguments go to both runs as overrides.
# example: scripts/quickstart.sh trainer.total_training_steps=20
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
environment

LOGS=outputs/logs
mkdir -p "$LOGS"
SCRATCH=$(mktemp -d) # verl and Ray leave files in the temporary directory
trap 'rm -rf "$SCRATCH"' EXIT
export TMPDIR=$SCRATCH HF_HUB_OFFLINE=1 RAY_USAGE_STATS_ENABLED=0 WANDB_MODE=${WANDB_MODE:-offline}

# run NAME RECIPE OVERRIDE...: one line while it runs, the log's end if it fails.
run() {
    local name=$1 recipe=$2 log=$LOGS/$1.log started=$SECONDS
    shift 2
    rm -rf "outputs/quickstart/$name"
    echo "quickstart: training with $name (recipe $recipe, log $log)"
    if ! tailsieve train --config-name "$recipe" +ray_kwargs.ray_init._temp_dir="$SCRATCH" "$@" >"$log" 2>&1; then
        echo "quickstart: error: the run $name failed; $log ends with:" >&2
        tail -n 20 "$log" >&2
        tailsieve doctor >&2
        exit 1
    fi
    echo "quickstart: done in $((SECONDS - started)) s"
}

python examples/countdown/build.py --out outputs/demo
run verl_sync cpu/countdown_verl_sync "$@"
run tailsieve cpu/countdown "$@"
echo
tailsieve compare outputs/quickstart/verl_sync outputs/quickstart/tailsieve
