"""How the text of an option becomes a value, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

from resvm_cli.errors import CommandLineError

if TYPE_CHECKING:
    from resvm_cli.parameters import KernelName, ScaleChoice

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
    from resvm_cli.parameters import KERNEL_NAMES, LIBSVM_KERNELS

    kernels: dict[str, KernelName] = {name: name for name in KERNEL_NAMES}
    kernels |= {"polynomial": "poly"}
    kernels |= {str(number): name for number, name in enumerate(LIBSVM_KERNELS)}
    if text.lower() not in kernels:
        raise CommandLineError(
            f"-t/--kernel is '{text}'; linear, poly, rbf, sigmoid, precomputed, 0 to 4,"
            " tanimoto or minmax was expected"
        )
    return kernels[text.lower()]


def parse_scale(text: str) -> ScaleChoice | None:
    """A scaling by name, None for none."""
    from resvm_cli.parameters import SCALING_NAMES

    names: tuple[Literal["none"] | ScaleChoice, ...] = ("none", *SCALING_NAMES, "auto")
    name = parse_choice("--scale", text, names)
    return None if name == "none" else name


def parse_gamma(text: str) -> float | Literal["scale", "auto"]:
    """A number or the name of a rule."""
    if text == "scale":
        return "scale"
    if text == "auto":
        return "auto"
    return parse_number("-g/--gamma", text, "a number, scale or auto")


def parse_number(option: str, text: str, expected: str = "a number") -> float:
    """A decimal from the command line."""
    try:
        number = float(text)
        if number != number:
            raise ValueError
        return number
    except ValueError:
        raise CommandLineError(f"{option} is '{text}'; {expected} was expected") from None
