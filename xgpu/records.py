"""``dataclass``: that of the standard library, but classes are made in a sixth of the time.

The standard library writes each method of a class as text, which Python compiles: six times for a frozen class, of
which a process has 400. Here ``__init__`` alone is text, once for all classes that differ in names alone; what the
other methods do depends on the names of fields only. The class is the same in all else, also for `dataclasses.fields`
and `dataclasses.replace`, and classes of either kind may be derived from those of the other. Objects are equal if the
tuples of their fields are, as up to Python 3.12: a NaN equals itself, though no other.
"""

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from reprlib import recursive_repr
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

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
    methods: dict[str, Any] = {"__init__": _init(cls, fields, frozen), "__repr__": _repr(fields)}
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


def _init(cls: type[Any], fields: Sequence[dataclasses.Field[Any]], frozen: bool) -> Callable[..., None]:
    """Return ``__init__``, which sets the fields, also those of a class that lets nobody do so."""
    parameters = tuple(_Parameter.of(field) for field in fields)
    code = _code(parameters, frozen, hasattr(cls, "__post_init__"))
    names = {f"_{number}": field.name for number, field in enumerate(fields)}
    code = code.replace(
        co_varnames=tuple(names.get(name, name) for name in code.co_varnames),
        co_names=tuple(names.get(name, name) for name in code.co_names),
        co_consts=tuple(names.get(each, each) if isinstance(each, str) else each for each in code.co_consts),
    )
    known: dict[str, Any] = {"_set": object.__setattr__, "_factory": _FACTORY}
    known |= {
        f"_make{number}": fields[number].default_factory for number, each in enumerate(parameters) if each.is_made
    }
    init = FunctionType(code, known, "__init__")
    optional = [field for field, each in zip(fields, parameters, strict=True) if each.is_given and each.is_optional]
    usual = {each: _FACTORY if each.default is dataclasses.MISSING else each.default for each in optional}
    init.__defaults__ = tuple(value for field, value in usual.items() if not field.kw_only)
    init.__kwdefaults__ = {field.name: value for field, value in usual.items() if field.kw_only}
    init.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    init.__module__ = cls.__module__
    return init


class _Parameter(NamedTuple):
    """Facts of a field that ``__init__`` depends on, but for its name and value."""

    is_given: bool
    is_made: bool
    is_optional: bool
    is_keyword: bool

    @classmethod
    def of(cls, field: dataclasses.Field[Any]) -> "_Parameter":
        is_made = field.default_factory is not dataclasses.MISSING
        return cls(field.init, is_made, is_made or field.default is not dataclasses.MISSING, bool(field.kw_only))


@functools.cache
def _code(parameters: tuple[_Parameter, ...], frozen: bool, is_continued: bool) -> CodeType:
    """Return the ``__init__`` of all classes with such parameters, which are called ``_0``, ``_1``, ... in it."""
    positional, keywords, body = ["self"], list[str](), list[str]()
    for number, (is_given, is_made, is_optional, is_keyword) in enumerate(parameters):
        name = f"_{number}"
        if is_given:
            (keywords if is_keyword else positional).append(f"{name}=None" if is_optional else name)
        elif not is_made:
            continue
        value = name
        if is_made:
            value = f"_make{number}() if {name} is _factory else {name}" if is_given else f"_make{number}()"
        body.append(f"  _set(self, {name!r}, {value})" if frozen else f"  self.{name} = {value}")
    if is_continued:
        body.append("  self.__post_init__()")
    listed = ", ".join([*positional, *(["*", *keywords] if keywords else [])])
    made: dict[str, Any] = {}
    exec(f"def __init__({listed}):\n" + "\n".join(body or ["  pass"]), made)
    init: FunctionType = made["__init__"]
    return init.__code__


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
