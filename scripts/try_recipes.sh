#!/usr/bin/env bash
# Run two steps of every recipe of the paper, and of distillation, on this machine, one after the other, with a tiny model
# and real prompts, and print what came out. Arguments are recipes, all if there are none; each takes a minute or two.
# example: scripts/try_recipes.sh paper/qwen3.5-2b_tailsieve bench/stepwise
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
environment

LOGS=outputs/logs/try
mkdir -p "$LOGS"
SCRATCH=$(mktemp -d) # verl and Ray leave files in the temporary directory
trap 'rm -rf "$SCRATCH"' EXIT
export TMPDIR=$SCRATCH HF_HUB_OFFLINE=1 RAY_USAGE_STATS_ENABLED=0

if [ $# = 0 ]; then
    set -- $(cd recipes && ls paper/[!_]*.yaml bench/stepwise.yaml cpu/distillation.yaml | sed 's/\.yaml$//')
fi
python examples/gsm8k/prepare.py --out outputs/gsm8k >"$LOGS/prepare.log"

# what_came_out FOLDER: one line from a run's result files.
what_came_out() {
    python - "$1" <<'PYTHON'
import json, sys
from pathlib import Path

out = Path(sys.argv[1])
if (out / "results.json").exists():
    [cell] = json.loads((out / "results.json").read_text())["cells"]
    found = cell["policies"].items()
    print("speedup over uniform:", ", ".join(f"{name} {policy['speedup']:.2f}" for name, policy in found))
else:
    summary = json.loads((out / "summary.json").read_text())
    steps = [json.loads(line) for line in (out / "steps.jsonl").read_text().splitlines()]
    isolated = "-".join(str(step["q"]) for step in steps)
    print(
        f"{summary['mode']}: {summary['steps']} steps, {summary['consumed_groups']} groups, q {isolated}, "
        f"{summary['off_policy_trajectories']} off-policy, reward {steps[-1]['reward_mean']:.2f}"
    )
PYTHON
}

failed=0
printf '%-34s %7s  %s\n' recipe seconds result
for recipe; do
    log=$LOGS/${recipe//\//_}.log out=outputs/try/$(basename "$recipe") command=train flags=(+try=cpu)
    case $recipe in
    bench/*) command=bench ;;
    cpu/distillation)
        flags=(trainer.total_training_steps=2 trainer.default_local_dir="$out")
        python examples/countdown/build.py --out outputs/demo >>"$LOGS/prepare.log"
        python examples/countdown/build.py --out outputs/student --steps 600 --seed 1 >>"$LOGS/prepare.log"
        ;;
    esac
    rm -rf "$out"
    started=$SECONDS result="failed, see $log"
    if tailsieve "$command" --config-name "$recipe" "${flags[@]}" \
        +ray_kwargs.ray_init._temp_dir="$SCRATCH" >"$log" 2>&1; then
        result=$(what_came_out "$out")
    else
        failed=1
    fi
    printf '%-34s %7d  %s\n' "$recipe" $((SECONDS - started)) "$result"
done
exit $failed
