"""What is wrong with what the user gave."""


class InputError(ValueError):
    """Bad input to a command, in one line that names it; the command ends with exit code 2."""
