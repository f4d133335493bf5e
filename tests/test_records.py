"""Our ``dataclass`` behaves like the one in the standard library, which is the oracle."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from resvm_cli import records


def both(**options: Any) -> list[Any]:
    """Return the same class made with each of the two decorators."""

    def made(dataclass: Any) -> Any:
        @dataclass(**options)
        class Record:
            first: int
            second: str = "two"
            third: list[int] = dataclasses.field(default_factory=list)
            hidden: int = dataclasses.field(default=0, repr=False, compare=False)

        return Record

    return [made(dataclasses.dataclass), made(records.dataclass)]


OPTIONS = [{}, {"frozen": True}, {"frozen": True, "eq": False}, {"kw_only": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_fields_representation_equality_and_hash_are_those_of_the_standard_library(options):
    def seen(cls: Any) -> tuple[object, ...]:
        one, same, other = cls(first=1, third=()), cls(first=1, third=()), cls(first=2, third=())
        hidden = cls(first=1, third=(), hidden=5)
        hashes = None if cls.__hash__ is None else hash(one) == hash(hidden)
        return (
            dataclasses.asdict(one),
            repr(one).rpartition(".")[2],
            [one == same, one == other, one == hidden, one == 1],
            hashes,
            repr(dataclasses.replace(one, second="b")).rpartition(".")[2],
            list(vars(copy.copy(one)).items()),
            list(vars(cls(third=(), hidden=3, first=1))),
            cls(first=1).third is not cls(first=1).third,
        )

    standard, ours = both(**options)
    assert seen(ours) == seen(standard)


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((1, "b", [], 0, 5), {}), ((1,), {"first": 1}), ((1,), {"fourth": 4})],
)
def test_missing_repeated_and_unknown_fields_are_refused(values, named):
    for cls in both():
        with pytest.raises(TypeError):
            cls(*values, **named)
    for cls in both(kw_only=True):
        with pytest.raises(TypeError):
            cls(*values, **named)


def test_a_frozen_record_cannot_be_changed():
    for cls in both(frozen=True):
        record = cls(1)
        for change in (lambda r: setattr(r, "first", 2), lambda r: delattr(r, "first")):
            with pytest.raises(dataclasses.FrozenInstanceError):
                change(record)
        assert record.first == 1


@records.dataclass(frozen=True)
class Parent:
    """A class at module level, as pickle requires."""

    name: str

    def __post_init__(self) -> None:
        assert self.name

    def __repr__(self) -> str:
        return "own"


@records.dataclass(frozen=True)
class Child(Parent):
    """A class whose inherited fields come first."""

    age: int = 3


def test_inheritance_pickle_and_own_methods():
    child = Child("a", 4)
    assert pickle.loads(pickle.dumps(child)) == child != Child("a")
    assert repr(Parent("a")) == "own"
    assert repr(child) == "Child(name='a', age=4)"
    with pytest.raises(AssertionError):
        Child("")


def test_a_field_can_be_declared_again_with_another_default():
    def made(dataclass: Any) -> Any:
        @dataclass(kw_only=True)
        class Base:
            first: list[int] = dataclasses.field(default_factory=list)
            second: int = dataclasses.field(default=2, kw_only=False)
            third: int = 3

        @dataclass()
        class Derived(Base):
            first: list[int] = dataclasses.field(default=())
            third: list[int] = dataclasses.field(default_factory=list)

        return Derived

    standard, ours = made(dataclasses.dataclass), made(records.dataclass)
    for values in ((), (1,), (1, 2, 3)):
        assert vars(ours(*values)) == vars(standard(*values))
    names = [field.name for field in dataclasses.fields(ours)]
    assert names == [field.name for field in dataclasses.fields(standard)]
