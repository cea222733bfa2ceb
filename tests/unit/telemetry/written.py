"""Runs for tests: in virtual time, written as result files like those of a job."""

from pathlib import Path
from typing import Any

from tailsieve_rl.routing.decode_model import DecodeModel, model_of_curve
from tailsieve_rl.routing.policies import Setup, default_allocation
from tailsieve_rl.routing.policies.named import named_policy
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import WORKLOADS
from tailsieve_rl.telemetry.run_files import RunFiles, outcome_line

TAU = model_of_curve([1, 4, 16, 64, 256], [0.010, 0.012, 0.020, 0.050, 0.150])


def write_run(
    out: Path,
    policy: str = "tailsieve",
    steps: int = 4,
    groups: int = 8,
    responses: int = 4,
    replicas: int = 4,
    backend: str = "simulated",
    model: str | None = "a-model",
    tau: DecodeModel = TAU,
    **more: Any,
) -> Path:
    """A run of this policy on the math workload; its folder.

    Args:
        more: metrics that every step has beside those of its outcome.
    """
    setup = Setup(groups, responses, replicas)
    chosen = named_policy(policy, setup, default_allocation(setup), None)
    files = RunFiles(str(out), policy, backend, groups, responses, model)
    run = Simulation(setup, WORKLOADS["math"](0, responses), tau, chosen, records=True)
    for number, step in enumerate(run.steps(steps), 1):
        line = {**outcome_line(step.outcome), **step.report, **more}
        files.add_step(number, step.outcome.records, line, last=number == steps)
    return out
