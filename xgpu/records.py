"""``dataclass``: that of the standard library, but classes are made in a quarter of the time.

The standard library writes each method of a class as text, which Python compiles: six times for a frozen class, of
which a process has 400. Here ``__init__`` alone is text, which gives it its parameters; what the other methods do
depends on the names of fields only. And ``__init__`` is written when it is first asked for, which half of those of a
process never are. The class is the same in all else, also for `dataclasses.fields` and
`dataclasses.replace`, and classes of either kind may be derived from those of the other. Objects are equal if the
tuples of their fields are, as up to Python 3.12: a NaN equals itself, though no other.
"""

import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from reprlib import recursive_repr
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, **options):
        """Make a class a dataclass, as `dataclasses.dataclass` does with the same options."""

        def decorate(cls):
            if slots:
                return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, **options)(cls)
            return _made(cls, frozen, eq, **options)

        return decorate if cls is None else decorate(cls)


__all__ = ["dataclass"]


_LOCK = threading.Lock()


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()
"""The default of a parameter whose default is made for each object, as signatures show it."""


def _made(cls: type[Any], frozen: bool, eq: bool, **options: Any) -> type[Any]:
    own = dict(vars(cls))
    # The standard library asks for the parameters of a class without a docstring, to have them in one.
    cls.__doc__ = cls.__doc__ or cls.__name__
    with _taken_for_open(cls.__mro__[1:], frozen):
        dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
    vars(cls)["__dataclass_params__"].frozen = frozen
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": _Init(cls, fields, frozen), "__repr__": _repr(fields)}
    if eq:
        methods["__eq__"] = _eq(_values_of([field.name for field in fields if field.compare]))
    # Python gives a class with an __eq__ of its own the __hash__ None.
    if eq and own.get("__hash__") is None:
        own.pop("__hash__", None)
        hashed = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
        methods["__hash__"] = _hash(_values_of(hashed)) if frozen else None
    if frozen:
        methods |= _refusals(cls, frozenset(field.name for field in fields))
    for name, method in methods.items():
        if name not in own:
            if method is not None:
                method.__qualname__ = f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)
    return cls


@contextmanager
def _taken_for_open(bases: Sequence[type[Any]], frozen: bool) -> Iterator[None]:
    """Let the standard library derive a class that it does not freeze from those that are as ``frozen`` as it is."""
    known = [vars(base)["__dataclass_params__"] for base in bases if "__dataclass_params__" in vars(base)]
    with _LOCK:
        if any(each.frozen != frozen for each in known):
            kinds = ("frozen", "a non-frozen") if frozen else ("non-frozen", "a frozen")
            raise TypeError(f"cannot inherit {kinds[0]} dataclass from {kinds[1]} one")
        for each in known:
            each.frozen = False
        try:
            yield
        finally:
            for each in known:
                each.frozen = frozen


class _Init:
    """The ``__init__`` of a class until it is first asked for, and then takes its place."""

    def __init__(self, cls: type[Any], fields: Sequence[dataclasses.Field[Any]], frozen: bool):
        self._of = cls, fields, frozen
        self.__qualname__ = ""

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        cls, fields, frozen = self._of
        init = _init(cls, fields, frozen)
        init.__qualname__ = self.__qualname__
        cls.__init__ = init
        return init if instance is None else MethodType(init, instance)


def _init(cls: type[Any], fields: Sequence[dataclasses.Field[Any]], frozen: bool) -> Callable[..., None]:
    """Return ``__init__``, which sets the fields, also those of a class that lets nobody do so."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_factory": _FACTORY}
    positional: list[str] = []
    keywords: list[str] = []
    body = []
    for field in fields:
        name, is_made = field.name, field.default_factory is not dataclasses.MISSING
        if field.init:
            parameter = name
            if is_made:
                parameter = f"{name}=_factory"
            elif field.default is not dataclasses.MISSING:
                known[f"_default_{name}"] = field.default
                parameter = f"{name}=_default_{name}"
            (keywords if field.kw_only else positional).append(parameter)
        elif not is_made:
            continue
        value = name
        if is_made:
            known[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _factory else {name}" if field.init else f"_make_{name}()"
        body.append(f"  _set(self, {name!r}, {value})" if frozen else f"  self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("  self.__post_init__()")
    parameters = ["self", *positional, *(["*", *keywords] if keywords else [])]
    made: dict[str, Any] = {}
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(body or ["  pass"]), known, made)
    init: Callable[..., None] = made["__init__"]
    init.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    init.__module__ = cls.__module__
    return init


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the values of fields."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda self: ()
    value = attrgetter(names[0])
    return lambda self: (value(self),)


def _repr(fields: Sequence[dataclasses.Field[Any]]) -> Callable[[Any], str]:
    names = [field.name for field in fields if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _refusals(cls: type[Any], names: frozenset[str]) -> dict[str, Any]:
    """Return the methods that refuse to change a field; a subclass may have other attributes, and change those."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}
