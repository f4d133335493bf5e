"""Parameters as the command line names them; the engine speaks Python."""

from __future__ import annotations

# Those that are not -- and the parameter's own name.
SPECIAL = {
    "positives": "-P",
    "unlabeled": "-U",
    "output": "-o",
    "threshold": "-T",
    "unchecked": "--no-check",
    "feature_map": "--map",
}
# Flags that switch something off.
SWITCHED_OFF = {"intervals": "--no-interval"}


def option_name(parameter: str, value: str = "") -> str:
    """A parameter as an option: ``--n-pos``, ``--kernel linear``, ``--force``."""
    if value == "False" and parameter in SWITCHED_OFF:
        return SWITCHED_OFF[parameter]
    option = SPECIAL.get(parameter) or f"--{parameter.replace('_', '-')}"
    return option if value in ("", "True") else f"{option} {value}"
