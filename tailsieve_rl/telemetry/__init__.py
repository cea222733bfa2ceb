"""What a run tells: metrics, result files, comparison tables."""
