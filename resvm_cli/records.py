"""A ``dataclass`` like the standard library's, but without methods compiled for each class.

The standard decorator inspects the fields of each class and compiles five methods, which takes half
a millisecond per class, or 30 to 50 ms in every run. Here all classes share the same methods, and
the standard library describes a class only on demand. Its ``fields``, ``replace`` and ``asdict``
work as usual; ``slots``, ``order``, ``InitVar`` and ``ClassVar`` are not supported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from inspect import Signature
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, kw_only=False):
        """Give a class with annotated fields its ``__init__``, ``__repr__`` and ``__eq__``."""

        def decorated(cls: type) -> type:
            content = vars(cls)
            own = {name for name, value in content.items() if value is not None}
            given = {name: content[name] for name in cls.__annotations__ if name in content}
            cls.__doc__ = cls.__doc__ or cls.__name__  # the standard decorator would compose one
            cls.__declared__ = _Declared.of_class(cls, given, kw_only)
            for name in STANDARD:
                setattr(cls, name, _Standard(name, cls, given, kw_only))
            methods = {"__init__": _initializer(cls), "__repr__": _repr, "__signature__": _Lazy()}
            if eq:
                methods |= {"__eq__": _equals, "__hash__": _hash if frozen else None}
            if frozen:
                methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
            for name in methods.keys() - own:
                setattr(cls, name, methods[name])
            return cls

        return decorated if cls is None else decorated(cls)


STANDARD = ("__dataclass_fields__", "__dataclass_params__")  # what the standard library looks up


class _Standard:
    """The standard library's description of a class, made from a copy of the class on demand."""

    def __init__(self, name: str, cls: Any, given: Mapping[str, Any], kw_only: bool) -> None:
        self._name, self._cls, self._given, self._kw_only = name, cls, given, kw_only

    def __get__(self, instance: object, owner: Any) -> Any:
        cls = self._cls
        same = ("__module__", "__annotations__", "__doc__")
        content = {**self._given, **{name: getattr(cls, name) for name in same}}
        copy = type(cls)(cls.__name__, cls.__bases__, content)
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=self._kw_only)(copy)
        for name in STANDARD:
            setattr(cls, name, getattr(copy, name))
        return getattr(copy, self._name)


class _Declared(NamedTuple):
    """The fields of a class: defaults or MISSING, default factories, and keyword-only names."""

    defaults: dict[str, Any]
    made: dict[str, Callable[[], Any]]
    keywords: set[str]

    @classmethod
    def of_class(cls, record: Any, given: Mapping[str, Any], kw_only: bool) -> _Declared:
        """Return the fields of a class and its bases; replace field() by plain attributes."""
        declared = cls({}, {}, set())
        bases = [vars(base).get("__declared__") for base in reversed(record.__mro__[1:])]
        for base in filter(None, bases):
            declared.defaults.update(base.defaults)
            declared.made.update(base.made)
            declared.keywords.update(base.keywords)
        for name in record.__annotations__:
            value = given.get(name, dataclasses.MISSING)
            declared.made.pop(name, None)
            keyword = kw_only
            if isinstance(value, dataclasses.Field):
                if value.kw_only is not dataclasses.MISSING:
                    keyword = value.kw_only
                if value.default_factory is not dataclasses.MISSING:
                    declared.made[name] = value.default_factory
                value = value.default
                if value is dataclasses.MISSING:
                    delattr(record, name)
                else:
                    setattr(record, name, value)
            declared.defaults[name] = value
            (declared.keywords.add if keyword else declared.keywords.discard)(name)
        return declared


def _initializer(cls: Any) -> Callable[..., None]:
    """Return ``__init__``, which takes the fields by position or by name."""
    defaults, made, keywords = cls.__declared__  # attributes keep the order of the defaults
    missing = dataclasses.MISSING
    positional = [name for name in defaults if name not in keywords]
    required = [name for name, value in defaults.items() if value is missing and name not in made]
    names, n_values = tuple(defaults), -1 if keywords else len(defaults)
    has_more = hasattr(cls, "__post_init__")

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:
        own = self.__dict__  # frozen classes do not allow setting attributes
        if not named and len(values) == n_values:
            own.update(zip(names, values))  # noqa: B905 - as many as there are names
        elif not values and tuple(named) == names:  # as in dataclasses.replace
            own.update(named)
        else:
            fill(own, values, named)
        if has_more:
            self.__post_init__()

    def fill(own: dict[str, Any], values: tuple[Any, ...], named: dict[str, Any]) -> None:
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
