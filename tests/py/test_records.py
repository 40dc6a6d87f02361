"""Classes of `xgpu.records` beside those that the standard library makes of the same bodies."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from xgpu import records

Make = Callable[..., Any]


def _plain(dataclass: Make) -> Any:
    @dataclass(frozen=True)
    class Plain:
        count: int
        name: str = "x"
        rest: tuple[int, ...] = ()
        KIND: ClassVar[str] = "plain"

    return Plain


def _fields(dataclass: Make) -> Any:
    @dataclass(frozen=True)
    class Fields:
        """Has every kind of field."""

        first: int
        made: list[int] = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(default=3, repr=False, compare=False)
        own: dict[str, int] = dataclasses.field(init=False, default_factory=dict, hash=False)
        fixed: int = dataclasses.field(init=False, default=4)
        named: int = dataclasses.field(kw_only=True, default=5)

    return Fields


def _derived(dataclass: Make) -> Any:
    @dataclass(frozen=True)
    class Base:
        left: float

        def __post_init__(self) -> None:
            if self.left < 0:
                raise ValueError("negative")

    @dataclass(frozen=True, kw_only=True)
    class Derived(Base):
        right: float = 1.0

    return Derived


def _own(dataclass: Make) -> Any:
    @dataclass(frozen=True)
    class Own:
        value: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    return Own


def _by_identity(dataclass: Make) -> Any:
    @dataclass(frozen=True, eq=False)
    class ByIdentity:
        value: int

    return ByIdentity


def _open(dataclass: Make) -> Any:
    @dataclass
    class Open:
        value: int
        made: list[int] = dataclasses.field(default_factory=list)

    return Open


def _open_with_hash(dataclass: Make) -> Any:
    @dataclass
    class OpenWithHash:
        value: int

        def __hash__(self) -> int:
            return self.value

    return OpenWithHash


def _open_by_identity(dataclass: Make) -> Any:
    @dataclass(eq=False)
    class OpenByIdentity:
        value: int = 3

    return OpenByIdentity


def _empty(dataclass: Make) -> Any:
    @dataclass(frozen=True)
    class Empty:
        pass

    return Empty


CASES: tuple[tuple[Callable[[Make], Any], list[tuple[tuple[Any, ...], dict[str, Any]]]], ...] = (
    (_plain, [((1,), {}), ((1, "y"), {}), ((), {"count": 1}), ((2.5,), {}), ((), {}), ((1, 2, (), 3), {})]),
    (_fields, [((1,), {}), ((1, [2]), {"named": 6}), ((1, [], 7), {}), ((1,), {"own": {}}), ((1, [], 3, 5), {})]),
    (_derived, [((0.0,), {}), ((-0.0,), {"right": 2.0}), ((-1.0,), {}), ((1.0, 2.0), {})]),
    (_own, [((1,), {}), ((2,), {})]),
    (_by_identity, [((1,), {}), ((1,), {})]),
    (_open, [((1,), {}), ((1, [2]), {}), ((), {})]),
    (_open_with_hash, [((1,), {}), ((1,), {}), ((2,), {})]),
    (_open_by_identity, [((), {}), ((1,), {})]),
    (_empty, [((), {}), ((), {}), ((1,), {})]),
)


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(("write", "arguments"), CASES, ids=[write.__name__ for write, _ in CASES])
def test_classes_are_those_of_the_standard_library(
    write: Callable[[Make], Any], arguments: list[tuple[tuple[Any, ...], dict[str, Any]]]
) -> None:
    seen = []
    for dataclass in (dataclasses.dataclass, records.dataclass):
        cls = write(dataclass)
        made = [_outcome(lambda given=given, named=named, cls=cls: cls(*given, **named)) for given, named in arguments]
        objects = [each for each in made if isinstance(each, cls)]
        seen.append(
            (
                [repr(each).replace(hex(id(each)), "") for each in made if not isinstance(each, cls)],
                [repr(each) for each in objects if cls.__repr__ is not object.__repr__],
                [vars(each) for each in objects],
                [[left == right for right in objects] for left in objects],
                [_outcome(lambda each=each: hash(each) == hash(copy.copy(each))) for each in objects],
                [dataclasses.replace(each) == each for each in objects],
                [_outcome(lambda each=each: setattr(each, "value", 1)) for each in objects],
                [_outcome(lambda each=each: delattr(each, "value")) for each in objects],
                [(field.name, field.type, field.init, field.kw_only) for field in dataclasses.fields(cls)],
                str(inspect.signature(cls)),
                cls.__match_args__,
                cls.__qualname__,
                cls.__init__.__qualname__,
            )
        )
    theirs, ours = seen
    assert ours == theirs


def test_hashes_are_those_of_the_values() -> None:
    cls = _plain(records.dataclass)
    assert hash(cls(1, "y")) == hash(_plain(dataclasses.dataclass)(1, "y"))
    assert cls(1) != _plain(records.dataclass)(1)


@records.dataclass(frozen=True)
class _Point:
    x: int
    y: int


def test_objects_are_copied_and_pickled() -> None:
    point = _Point(1, 2)
    assert pickle.loads(pickle.dumps(point)) == copy.deepcopy(point) == point


def test_a_subclass_may_have_attributes_of_its_own() -> None:
    class Named(_Point):
        name: str

    named = Named(1, 2)
    named.name = "here"
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        named.x = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'y'"):
        del named.y
    del named.name
    assert named != _Point(1, 2)


@pytest.mark.parametrize(
    ("of_base", "of_derived"),
    [(records.dataclass, dataclasses.dataclass), (dataclasses.dataclass, records.dataclass)],
    ids=["ours first", "theirs first"],
)
def test_classes_of_either_kind_are_derived_from_the_other(of_base: Make, of_derived: Make) -> None:
    base = of_base(frozen=True)(type("Base", (), {"__annotations__": {"x": int}}))
    derived = of_derived(frozen=True)(type("Derived", (base,), {"__annotations__": {"y": int}}))
    made = derived(1, 2)
    assert (made.x, made.y, repr(made), made == derived(1, 2)) == (1, 2, "Derived(x=1, y=2)", True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.x = 3
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        of_derived(type("Open", (base,), {}))
    with pytest.raises(TypeError, match="cannot inherit frozen dataclass from a non-frozen one"):
        of_derived(frozen=True)(type("Frozen", (of_base(type("Open", (), {})),), {}))


@pytest.mark.parametrize("options", [{"slots": True}, {"frozen": True, "slots": True}], ids=str)
def test_classes_with_slots_are_left_to_the_standard_library(options: dict[str, Any]) -> None:
    @records.dataclass(**options)
    class Other:
        value: int

    assert dataclasses.fields(Other)[0].name == "value"
    assert hasattr(Other, "__slots__")
    assert copy.copy(Other(1)) == Other(1)
