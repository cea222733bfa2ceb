"""Simulate routing policies in virtual time, on the same prompts and lengths, and write their result files.

python examples/simulate_policy.py
"""

import sys
from pathlib import Path
from statistics import fmean

from tailsieve_rl.routing.policies import Setup, default_allocation
from tailsieve_rl.routing.policies.named import named_policy
from tailsieve_rl.simulation.profiles import profile, replicas
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import named_workload
from tailsieve_rl.telemetry.run_files import RunFiles, outcome_line

MODEL = "qwen3.5-4b"  # a modelled H100, of simulation.profiles.PROFILES; load_profile reads what `calibrate` measured
WORKLOAD = "code"  # of simulation.workloads.WORKLOADS, or the path of a trace
POLICIES = ("uniform", "least_loaded", "tailsieve")  # of routing.policies.named.COMPARED
STEPS, FIRST = 48, 17  # the first steps are for adapting


def main(out: Path = Path("outputs/examples"), count: int = STEPS) -> None:
    """Print a line a policy: its mean step, and where it ended."""
    setup = Setup(groups=64, responses=8, replicas=replicas(MODEL))
    workload = named_workload(WORKLOAD, seed=0, responses=setup.responses)
    print(f"{WORKLOAD} on {MODEL} (modelled), N = {setup.groups} x {setup.responses}, R = {setup.replicas}")
    uniform_s = None
    for name in POLICIES:
        policy = named_policy(name, setup, default_allocation(setup), model=None)  # None: tau is estimated from the run
        files = RunFiles(str(out / name), name, "simulated", setup.groups, setup.responses)
        times, plan = [], None
        run = Simulation(setup, workload, profile(MODEL), policy, records=True)
        for number, step in enumerate(run.steps(count), 1):
            files.add_step(number, step.outcome.records, {**outcome_line(step.outcome), **step.report}, number == count)
            times.append(step.outcome.gen_time_s)
            plan = step.outcome.plan
        step_s = fmean(times[FIRST - 1 :])
        uniform_s = uniform_s or step_s
        print(f"{name:<14}{step_s:6.1f} s a step   {uniform_s / step_s:.3f}x   ends at q = {plan.q}, m = {plan.m}")
    print(f"tailsieve report {out}/uniform {out}/tailsieve --steps 28 --out {out}/report.html  shows every request")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
