"""What can go wrong in a step."""


class GroupClosed(Exception):
    """The group's attempt is over (cutoff, or a newer attempt): its responses end and nothing of it is published."""


class StepFailed(RuntimeError):
    """A step that cannot be completed with N whole groups; the run stops with this cause and a checkpoint."""


class UnroutableRequest(RuntimeError):
    """A generate call that carries no group: it came from outside the agent loop of a response."""
