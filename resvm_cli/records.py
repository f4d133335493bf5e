"""A ``dataclass`` like the standard library's that does not compile methods for each class.

The standard decorator compiles five methods per class, which takes half a millisecond, or 30 to
50 ms in every run. Here all classes share the same methods. The standard library's ``fields``,
``replace`` and ``asdict`` work as usual; ``slots``, ``order`` and ``InitVar`` are not supported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from inspect import Signature
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, kw_only=False):
        """Give a class with annotated fields its ``__init__``, ``__repr__`` and ``__eq__``."""

        def decorated(cls: type) -> type:
            own = {name for name, value in vars(cls).items() if value is not None}
            cls.__doc__ = cls.__doc__ or cls.__name__  # the standard decorator would compose one

            dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
            methods = {"__init__": _initializer(cls), "__repr__": _repr, "__signature__": _Lazy()}
            if eq:
                methods |= {"__eq__": _equals, "__hash__": _hash if frozen else None}
            if frozen:
                methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
            for name in methods.keys() - own:
                setattr(cls, name, methods[name])
            return cls

        return decorated if cls is None else decorated(cls)


def _initializer(cls: Any) -> Callable[..., None]:
    """Return ``__init__``, which takes the fields by position or by name."""
    fields, missing = dataclasses.fields(cls), dataclasses.MISSING
    defaults = {field.name: field.default for field in fields}  # attributes keep this order
    positional = [field.name for field in fields if not field.kw_only]
    made = {f.name: f.default_factory for f in fields if f.default_factory is not missing}
    required = [name for name, value in defaults.items() if value is missing and name not in made]
    has_more = hasattr(cls, "__post_init__")

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:
        own = self.__dict__  # frozen classes do not allow setting attributes
        own.update(defaults)
        own.update(zip(positional, values))  # noqa: B905 - checked below
        own.update(named)
        first = positional[: len(values)]
        valid = len(own) == len(defaults) and len(first) == len(values)
        if not valid or not named.keys().isdisjoint(first):
            cls.__signature__.bind(*values, **named)  # explains what is wrong
        for name in required:
            if own[name] is missing:
                cls.__signature__.bind(*values, **named)
        for name, make in made.items():
            if own[name] is missing:
                own[name] = make()
        if has_more:
            self.__post_init__()

    return __init__


class _Lazy:
    """A class's signature, built only on demand: for documentation and error messages."""

    def __get__(self, instance: object, cls: Any) -> Signature:
        from inspect import Parameter, Signature

        def parameter(field: dataclasses.Field[Any]) -> Parameter:
            kind = Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            default = field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory
            if default is dataclasses.MISSING:
                default = Parameter.empty
            return Parameter(field.name, kind, default=default, annotation=field.type)

        parameters = [parameter(field) for field in dataclasses.fields(cls)]
        return Signature(sorted(parameters, key=lambda each: each.kind), return_annotation=None)


def _compared(record: Any) -> tuple[Any, ...]:
    fields = dataclasses.fields(record)
    return tuple(getattr(record, field.name) for field in fields if field.compare)


def _equals(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _compared(self) == _compared(other)


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _repr(self: Any) -> str:
    shown = [field.name for field in dataclasses.fields(self) if field.repr]
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{self.__class__.__qualname__}({values})"


def _refuse(self: Any, name: str, value: object = None) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")
