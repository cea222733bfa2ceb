"""Stub."""
def normalise_algorithm(config) -> None:
    return None
