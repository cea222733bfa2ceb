"""Run a policy of your own (nudged.py) in virtual time, beside two that the package has.

python examples/write_policy.py

docs/add_a_policy.md goes through it, and on to jobs on emulated and on real engines.
"""

from statistics import fmean

from nudged import Nudged

from tailsieve_rl.routing.policies import LeastLoaded, Setup, Uniform
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import named_workload


def main() -> None:
    """Print the mean step of each, over five prompt streams."""
    setup = Setup(groups=64, responses=8, replicas=8)
    uniform_s = None
    for policy in (Uniform(), LeastLoaded(), Nudged()):
        times = []
        for seed in range(5):
            workload = named_workload("code", seed, setup.responses)
            steps = Simulation(setup, workload, profile("qwen3.5-4b"), policy).steps(40)
            times += [step.outcome.gen_time_s for step in steps]
        uniform_s = uniform_s or fmean(times)
        print(f"{policy.name:<14}{fmean(times):6.1f} s a step   {uniform_s / fmean(times):.3f}x")


if __name__ == "__main__":
    main()
