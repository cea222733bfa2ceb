"""Stub."""
def untested() -> list[str]:
    return []
