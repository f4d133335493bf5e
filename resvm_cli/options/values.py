"""How the text of an option becomes a value, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from resvm_cli.errors import CommandLineError
from resvm_cli.parameters import KERNEL_NAMES, LIBSVM_KERNELS, KernelName

Name = TypeVar("Name", bound=str)


def offered(*names: str) -> Callable[[str], list[str]]:
    """What the shell offers as the value of an option when the user presses Tab."""

    def offer(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return offer


def parse_choice(option: str, text: str, names: Sequence[Name]) -> Name:
    """The name among these that the text is."""
    for name in names:
        if name == text:
            return name
    expected = f"{', '.join(names[:-1])} or {names[-1]}"
    raise CommandLineError(f"{option} is '{text}'; {expected} was expected")


def parse_kernel(text: str) -> KernelName:
    """A kernel by name or by LIBSVM's number."""
    kernels: dict[str, KernelName] = {name: name for name in KERNEL_NAMES}
    kernels |= {"polynomial": "poly"}
    kernels |= {str(number): name for number, name in enumerate(LIBSVM_KERNELS)}
    if text.lower() not in kernels:
        raise CommandLineError(
            f"-t/--kernel is '{text}'; linear, poly, rbf, sigmoid, precomputed, 0 to 4,"
            " tanimoto or minmax was expected"
        )
    return kernels[text.lower()]


def number_or_text(text: str) -> float | str:
    """A number where the text is one."""
    try:
        return int(text) if text.isdecimal() and len(text) < 16 else float(text)
    except ValueError:
        return text


def parse_number(option: str, text: str, expected: str = "a number") -> float:
    """A decimal from the command line."""
    try:
        number = float(text)
        if number != number:
            raise ValueError
        return number
    except ValueError:
        raise CommandLineError(f"{option} is '{text}'; {expected} was expected") from None
