"""Fig. 1: how decoding slows down with the batch, and where a replica's time goes."""

from pathlib import Path

import numpy as np

from tailsieve_rl.routing.makespan import replica_time
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.cells import RESPONSES
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import PROFILES, profile, replicas
from tailsieve_rl.simulation.workloads import math_workload

DESCRIPTION = "Fig. 1: decode throughput against batch size, and the decomposition of a replica's time"
GROUPS = 64


def run(options: Options) -> Results:
    batches = [2**i for i in range(10)]
    curves = []
    for name in PROFILES:
        tau = profile(name).tau(batches)
        curves.append({"model": name, "b": batches, "tau_s": tau.tolist(), "tokens_per_s": (1 / tau).tolist()})
    workload = math_workload(options.seed, RESPONSES, evolving=False)
    name = PROFILES[0]
    share = GROUPS // replicas(name)
    lengths = np.sort(workload.lengths(np.arange(share), np.ones(share, int), 1).ravel())[::-1]
    tau = profile(name).table(len(lengths))
    added = lengths * np.diff(tau)
    return {
        "curves": curves,
        "replica": {
            "model": name,
            "lengths": lengths.tolist(),
            "added_s": added.tolist(),
            "time_s": float(replica_time(lengths, tau)),
        },
    }


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "throughput.png"
    with figure(path, columns=2) as axes:
        left, right = axes[0]
        for curve in results["curves"]:
            left.plot(curve["b"], curve["tokens_per_s"], marker="o", markersize=3, label=curve["model"])
        left.set(xscale="log", xlabel="requests at once, b", ylabel="tokens/s of a request, v(b)")
        left.set_xscale("log", base=2)
        left.set_title("Decode throughput (modelled)")
        left.legend(fontsize=7)
        replica = results["replica"]
        rank = np.arange(1, len(replica["added_s"]) + 1)
        right.fill_between(rank, np.cumsum(replica["added_s"]), color=COLOURS["bulk"], alpha=0.25, linewidth=0)
        right.plot(rank, np.cumsum(replica["added_s"]), color=COLOURS["bulk"])
        right.set(xlabel="requests, longest first", ylabel="replica time, s")
        right.set_title("A replica's time by request: L_j (tau(j) - tau(j-1))")
    return [path]
