"""Step-wise comparison of routing policies on any backend (paper 4.2 and A.2), and overheads."""
