"""Tools of the tests, for actor_rollout_ref.rollout.multi_turn.function_tool_path."""

from verl.tools.function_tool import function_tool


@function_tool
def note(text: str) -> str:
    """Take a note.

    Args:
        text: what to note.
    """
    return f"noted {text}"
