"""What routing reaches if every length is known: the exact two-replica optimum, top-k isolation (paper 2.1, 2.2)."""

from tailsieve_rl.routing.oracle.top_k import TopK, best_top_k, fixed_share_time, top_k_times
from tailsieve_rl.routing.oracle.two_replicas import Split, optimal_split

__all__ = ["Split", "TopK", "best_top_k", "fixed_share_time", "optimal_split", "top_k_times"]
