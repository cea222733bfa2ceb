"""`tailsieve evaluate`: accuracies of models on mathematical benchmarks, as in the paper's Table 3."""
