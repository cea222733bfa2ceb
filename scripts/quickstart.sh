#!/usr/bin/env bash
# See it work: set up the environment, build the demo model, train it with verl's own synchronous trainer and with
# TailSieve on the same prompts and seeds, route its lengths over eight emulated replicas, print what came out, and write
# a page that shows it.
# Arguments go to both trainings as overrides.
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

# logged NAME COMMAND...: one line while it runs, the log's end if it fails. The command's stdout is kept for the end.
logged() {
    local name=$1 log=$LOGS/$1.log started=$SECONDS
    shift
    rm -rf "outputs/quickstart/$name"
    echo "quickstart: $name (log $log)"
    if ! "$@" +ray_kwargs.ray_init._temp_dir="$SCRATCH" >"$SCRATCH/$name.out" 2>"$log"; then
        echo "quickstart: error: the run $name failed; $log ends with:" >&2
        tail -n 20 "$log" >&2
        tailsieve doctor >&2
        exit 1
    fi
    echo "quickstart: done in $((SECONDS - started)) s"
}

python examples/countdown/build.py --out outputs/demo
logged verl_sync tailsieve train --config-name cpu/countdown_verl_sync "$@"
logged tailsieve tailsieve train --config-name cpu/countdown "$@"
logged emulated tailsieve bench --config-name bench/quickstart
echo
tailsieve compare outputs/quickstart/verl_sync outputs/quickstart/tailsieve
echo
cat "$SCRATCH/emulated.out"
echo
tailsieve report outputs/quickstart/verl_sync outputs/quickstart/tailsieve --out outputs/quickstart/report.html >/dev/null
echo "quickstart: every request of both trainings is in outputs/quickstart/report.html, a page for your browser"
