"""Virtual time: workloads, decode profiles of GPUs, and the step executor. Thousands of steps a second, no Ray."""
