"""Settings classes from plain mappings: known keys, right types, values in range, or an error that names the key."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from tailsieve_rl.input_error import InputError


class SettingsError(InputError):
    """A setting that cannot work; the message names the key, the value and what would be right."""

    def __init__(self, key: str, value: Any, right: str):
        self.key, self.value, self.right = key, value, right
        super().__init__(f"{key}={value!r}: {right}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (SettingsError, (self.key, self.value, self.right))


def check_one_of(key: str, value: Any, allowed: Sequence[Any]) -> None:
    """Refuse a value that is not one of those allowed.

    Raises:
        SettingsError: naming the key, the value and what is allowed.
    """
    if value not in allowed:
        raise SettingsError(key, value, f"must be one of {', '.join(map(str, allowed))}")


def build_block(cls: type, raw: Mapping[str, Any], path: str) -> Any:
    """A settings class from a plain mapping, nested classes included.

    Raises:
        SettingsError: for an unknown key, a wrong type or a value out of range; `path` is what it calls the block.
    """
    if not isinstance(raw, Mapping):
        raise SettingsError(path, raw, f"must be a block with the keys {', '.join(f.name for f in fields(cls))}")
    hints = get_type_hints(cls)
    known = {f.name: f for f in fields(cls)}
    values = {}
    for key, value in raw.items():
        if key not in known:
            raise SettingsError(f"{path}.{key}", value, f"no such key; known keys are {', '.join(known)}")
        values[key] = _coerce(hints[key], value, f"{path}.{key}")
    missing = [n for n, f in known.items() if n not in values and f.default is MISSING and f.default_factory is MISSING]
    if missing:
        raise SettingsError(path, dict(raw), f"needs {', '.join(missing)}")
    return cls(**values)


def _coerce(hint: Any, value: Any, path: str) -> Any:
    options = get_args(hint)
    if type(None) in options:
        if value is None:
            return None
        hint = next(o for o in options if o is not type(None))
    if is_dataclass(hint):
        return build_block(hint, value or {}, path)  # type: ignore[arg-type]
    if get_origin(hint) is tuple:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, Sequence) or not all(isinstance(item, str) for item in items):
            raise SettingsError(path, value, "must be a string or a list of strings")
        return tuple(items)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise SettingsError(path, value, f"must be of type {hint.__name__}")
    return value
