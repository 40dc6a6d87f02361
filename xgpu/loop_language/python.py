"""The loop language in Python: ``from xgpu import loops``.

A function is run once and says, statement by statement, what the program is; the program is the same as if it had been
written as text, and errors name lines of the function.

>>> from xgpu import loops
>>> M, N = loops.sizes(M=256, N=192)
>>> @loops.program
... def scaled(A: loops.f32[M, N], B: loops.out(loops.f32[M, N])):
...     with loops.par(M) as i, loops.par(N) as j:
...         B[i, j] = A[i, j] * 2.0
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import count
from types import FrameType
from typing import Any

from xgpu.dtypes import DTYPES
from xgpu.errors import InvalidInput, SourceLocation, XgpuError, did_you_mean
from xgpu.frontend.jax_function import user_error
from xgpu.frontend.signature import Source
from xgpu.frontend.user_source import target_name
from xgpu.loop_language import syntax
from xgpu.loop_language.build import build
from xgpu.loop_language.functions import BITS, COMBINERS, FUNCTIONS, PAIR
from xgpu.loop_language.lexer import is_name
from xgpu.loop_language.parser import MAX_OPERATORS
from xgpu.loop_language.printer import print_function
from xgpu.loop_language.sizes import Spec
from xgpu.records import dataclass

__all__ = ["asm", "fully_par", "new", "otherwise", "out", "par", "program", "select", "seq", "sizes", "when"]

_TYPES = frozenset(dtype.hlo for dtype in DTYPES)


def _user_frame() -> FrameType:
    """Return the user's function that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename == __file__ or "contextlib" in frame.f_code.co_filename
    ):
        frame = frame.f_back
    return frame


def _here() -> SourceLocation:
    """Return the line of the user's that is being run."""
    frame = _user_frame()
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno, function=frame.f_code.co_name)


@dataclass
class _Tracing:
    """The program that a function is saying: its statements so far, those of the innermost block last."""

    blocks: list[list[syntax.Statement]] = field(default_factory=lambda: [[]])
    sizes: dict[str, syntax.Size] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def add(self, statement: syntax.Statement) -> None:
        """Put a statement at the end of the innermost block."""
        self.blocks[-1].append(statement)

    def new_name(self, prefix: str) -> str:
        """Return a name that is given to nothing else: the prefix and a number."""
        name = next(name for name in (f"{prefix}{number}" for number in count(1)) if name not in self.names)
        self.names.add(name)
        return name

    def name_of(self, given: str, variable: str, prefix: str) -> str:
        """Return the name of a loop's index or a buffer: the one ``given``, or that of Python's ``variable``.

        A variable may stand for two things, one after the other; the second has a name of its own, as the first may be
        used still.
        """
        if not given and not is_name(variable):
            return self.new_name(prefix)
        if not given and variable in self.names:
            return self.new_name(f"{variable}_")
        self.names.add(given or variable)
        return given or variable


_current: list[_Tracing] = []


def _tracing() -> _Tracing:
    if not _current:
        raise InvalidInput("statements of the loop language stand in a function that loops.program decorates", _here())
    return _current[-1]


class Expression:
    """A value, or an index, of the program that is being said. Operators make others of it."""

    def __init__(self, node: syntax.Expr, size: syntax.Size | None = None, operators: int = 0):
        self.node = node
        self.size = size
        self.operators = operators

    def __bool__(self) -> bool:
        raise InvalidInput("it is not known yet whether this holds: use loops.when or loops.select", _here())

    def __jax_array__(self) -> Any:
        raise InvalidInput(_NO_ARRAY, _here())

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> "Expression":
        return _made(syntax.Unary("-", _node(self), _here()), self)

    def __invert__(self) -> "Expression":
        return _made(syntax.Unary("~", _node(self), _here()), self)


_NO_ARRAY = "a value of the loop language is no array of JAX's: its functions are loops.exp, loops.select, ..."


def _made(node: syntax.Expr, *operands: Any) -> Expression:
    """Return an expression that is made of others, each counted as often as it is written in it."""
    operators = 1 + sum(operand.operators for operand in operands if isinstance(operand, Expression))
    if operators > MAX_OPERATORS:
        raise InvalidInput(
            f"an expression has more than {MAX_OPERATORS} operators: keep a part of it in a buffer", _here()
        )
    return Expression(node, operators=operators)


def _operator(operator: str, swapped: bool = False) -> Callable[[Any, Any], Expression]:
    def combine(left: Any, right: Any) -> Expression:
        sides = (right, left) if swapped else (left, right)
        return _made(syntax.Binary(operator, _node(sides[0]), _node(sides[1]), _here()), *sides)

    return combine


_METHODS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "lshift": "<<",
    "rshift": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
}
for _name, _sign in _METHODS.items():
    setattr(Expression, f"__{_name}__", _operator(_sign))
    setattr(Expression, f"__r{_name}__", _operator(_sign, swapped=True))
for _name, _sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(Expression, f"__{_name}__", _operator(_sign))


@dataclass(frozen=True)
class Combined:
    """The value of ``buffer[i] += value``, until it is assigned."""

    read: str
    operator: str
    value: Any
    atomic: bool = False


class Read(Expression):
    """An element that was read: ``+=`` and the like combine what is there with a value."""

    def __init__(self, name: str, at: SourceLocation):
        super().__init__(syntax.Name(name, at))
        self.name = name


def _combination(operator: str) -> Callable[[Read, Any], Combined]:
    return lambda read, value: Combined(read.name, operator, value)


for _name, _sign in {"iadd": "+=", "imul": "*=", "iand": "&=", "ior": "|=", "ixor": "^="}.items():
    setattr(Read, f"__{_name}__", _combination(_sign))


class BufferHandle:
    """A buffer of the program. One without dimensions has the element ``buffer[()]``."""

    def __init__(self, name: str):
        self.name = name

    def _target(self, indices: Any, at: SourceLocation) -> syntax.Element:
        given = indices if isinstance(indices, tuple) else (indices,)
        return syntax.Element(self.name, tuple(_node(index) for index in given), at)

    def __getitem__(self, indices: Any) -> Read:
        # It is read here, whatever is written to it before the value is used.
        tracing, at = _tracing(), _here()
        name = tracing.new_name("v")
        tracing.add(syntax.Let(name, self._target(indices, at), at))
        return Read(name, at)

    def __setitem__(self, indices: Any, value: Any) -> None:
        tracing, at = _tracing(), _here()
        operator, pragmas = "=", ()
        if isinstance(value, Combined):
            block = tracing.blocks[-1]
            block[:] = [each for each in block if not (isinstance(each, syntax.Let) and each.name == value.read)]
            operator = value.operator
            pragmas = (syntax.Pragma("atomic", (), at),) if value.atomic else ()  # type: ignore[assignment]
            value = value.value
        tracing.add(syntax.Assign(self._target(indices, at), operator, _node(value), pragmas, at))

    def combine(self, indices: Any, operator: str, value: Any, atomic: bool = False) -> None:
        """Combine an element with a value: ``operator`` is one of the language, such as ``"max="``."""
        if operator not in COMBINERS:
            raise InvalidInput(f"expected one of {', '.join(COMBINERS)}, got '{operator}'", _here())
        self[indices] = Combined("", operator, value, atomic)


def _node(value: Any) -> syntax.Expr:
    """Return what a Python value is in the language."""
    if isinstance(value, Expression):
        if value.size is not None:
            for tracing in _current[-1:]:
                tracing.sizes[value.size.name] = value.size
        return value.node
    if isinstance(value, bool):
        return syntax.Name(str(value).lower(), _here())
    if isinstance(value, (int, float)):
        return syntax.NumberLiteral(value, _here())
    if isinstance(value, BufferHandle):
        return _node(value[()])
    raise InvalidInput(f"expected a value of the program or a number, got {type(value).__name__}", _here())


@dataclass(frozen=True)
class ArrayType:
    """An element type and a shape; ``access`` is what a program does with an argument of it."""

    dtype: str
    shape: tuple[Any, ...] = ()
    access: str = "in"


@dataclass(frozen=True)
class ElementType:
    """An element type: indexed by sizes the type of an array, called with a value its conversion."""

    name: str

    def __getitem__(self, shape: Any) -> ArrayType:
        return ArrayType(self.name, shape if isinstance(shape, tuple) else (shape,))

    def __call__(self, value: Any) -> Expression:
        return _call(self.name, value)


def _call(name: str, *values: Any) -> Expression:
    at = _here()
    return _made(syntax.Call(name, tuple(_node(value) for value in values), at), *values)


def __getattr__(name: str) -> Any:
    # Types and functions of the language, each under its name there.
    if name in _TYPES:
        return ElementType(name)
    if name in FUNCTIONS or name == PAIR or name.removeprefix(BITS) in _TYPES:
        return lambda *values: _call(name, *values)
    near = did_you_mean(name, [*_TYPES, *FUNCTIONS, PAIR, *(each for each in globals() if each[0] != "_")])
    raise AttributeError(f"xgpu.loops has no '{name}'{near}")


def asm(text: str, *operands: Any, results: Sequence[ElementType] = ()) -> Any:
    """Execute PTX instructions, and return their results: a value for one type of ``results``, a tuple for several."""
    tracing, at = _tracing(), _here()
    made = tuple((tracing.new_name("a"), type_.name) for type_ in results)
    tracing.add(syntax.Asm(text, tuple(_node(operand) for operand in operands), made, at))
    values = tuple(Expression(syntax.Name(name, at)) for name, _ in made)
    return values[0] if len(values) == 1 else values


def select(condition: Any, then: Any, otherwise: Any) -> Expression:
    """Return ``then`` where ``condition`` is true, and ``otherwise`` where it is not."""
    return _call("select", condition, then, otherwise)


def sizes(**defaults: int | None) -> tuple[Expression, ...]:
    """Return sizes with these names and defaults, in this order; the shapes of arguments overrule the defaults."""
    at = _here()
    for name, default in defaults.items():
        if default is not None and (type(default) is not int or default < 0):
            raise InvalidInput(f"size {name}: expected a whole number from 0, or None, got {default!r}", at)
    return tuple(
        Expression(
            syntax.Name(name, at), syntax.Size(name, None if default is None else syntax.NumberLiteral(default, at), at)
        )
        for name, default in defaults.items()
    )


def out(array: ArrayType | ElementType) -> ArrayType:
    """Return the type of an ``out`` argument: a result, undefined at first."""
    return _accessed(array, "out")


def inout(array: ArrayType | ElementType) -> ArrayType:
    """Return the type of an ``inout`` argument, which the program changes."""
    return _accessed(array, "inout")


def _accessed(array: ArrayType | ElementType, access: str) -> ArrayType:
    if not isinstance(array, ArrayType | ElementType):
        raise InvalidInput(f"loops.{access}: expected a type such as loops.f32[M, N], got {array!r}", _here())
    return replace(_array_type(array), access=access)


def _array_type(type_: ArrayType | ElementType) -> ArrayType:
    return type_ if isinstance(type_, ArrayType) else ArrayType(type_.name)


def new(array: ArrayType | ElementType, name: str = "", **pragmas: Any) -> BufferHandle:
    """Make a buffer. Keywords are its pragmas, such as ``shared=True`` or ``pad=1``."""
    tracing, at = _tracing(), _here()
    if not isinstance(array, ArrayType | ElementType):
        raise InvalidInput(f"loops.new: expected a type such as loops.f32[32], got {array!r}", at)
    type_ = _array_type(array)
    name = tracing.name_of(name, target_name(_user_frame()) or "", "b")
    shape = tuple(_node(size) for size in type_.shape)
    tracing.add(syntax.New(name, type_.dtype, shape, _pragmas(pragmas, at), at))
    return BufferHandle(name)


def _pragmas(given: dict[str, Any], at: SourceLocation) -> tuple[syntax.Pragma, ...]:
    found = []
    for name, value in given.items():
        if value is not False:
            found.append(syntax.Pragma(name, () if value is True else (_node(value),), at))
    return tuple(found)


@contextmanager
def _block() -> Iterator[list[syntax.Statement]]:
    tracing, statements = _tracing(), list[syntax.Statement]()
    tracing.blocks.append(statements)
    try:
        yield statements
    finally:
        tracing.blocks.pop()


@contextmanager
def _loop(kind: str, extent: Any, name: str, variable: str, pragmas: dict[str, Any]) -> Iterator[Expression]:
    tracing, at = _tracing(), _here()
    index = tracing.name_of(name, variable, "i")
    size = _node(extent)
    with _block() as body:
        yield Expression(syntax.Name(index, at))
    tracing.add(syntax.Loop(kind, size, index, _pragmas(pragmas, at), tuple(body), at))


class _Loop:
    """A loop, as the context of the statements in it."""

    def __init__(self, kind: str, extent: Any, name: str, pragmas: dict[str, Any]):
        self._kind = kind.replace(" ", "_")
        self._context = _loop(kind, extent, name, target_name(_user_frame()) or "", pragmas)

    def __enter__(self) -> Expression:
        return self._context.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        return self._context.__exit__(*error)

    def __iter__(self) -> Iterator[Expression]:
        raise InvalidInput(
            f"expected 'with loops.{self._kind}(...) as i:', got a loop of Python's, which unrolls", _here()
        )


def par(extent: Any, name: str = "", **pragmas: Any) -> Any:
    """Begin a parallel loop. Keywords are its pragmas, such as ``block=True`` or ``threads=128``."""
    return _Loop("par", extent, name, pragmas)


def fully_par(extent: Any, name: str = "", **pragmas: Any) -> Any:
    """Begin a parallel loop whose iterations run at once, on neighbouring threads; ``align=32`` is a pragma."""
    return _Loop("fully par", extent, name, pragmas)


def seq(extent: Any, name: str = "", **pragmas: Any) -> Any:
    """Begin a loop whose iterations run in order; ``stages=4`` is a pragma."""
    return _Loop("seq", extent, name, pragmas)


@contextmanager
def when(*conditions: Any) -> Iterator[None]:
    """Begin statements for where all these conditions on indices hold."""
    tracing, at = _tracing(), _here()
    nodes = [_node(condition) for condition in conditions]
    if not nodes:
        raise InvalidInput("expected at least one condition", at)
    whole = nodes[0]
    for node in nodes[1:]:
        whole = syntax.Binary("and", whole, node, at)
    with _block() as body:
        yield
    tracing.add(syntax.If(whole, tuple(body), (), at))


@contextmanager
def otherwise() -> Iterator[None]:
    """Begin statements for where the conditions of the preceding `when` do not hold."""
    tracing, at = _tracing(), _here()
    before = tracing.blocks[-1][-1] if tracing.blocks[-1] else None
    if not isinstance(before, syntax.If) or before.otherwise:
        raise InvalidInput("loops.otherwise follows the loops.when that it belongs to", at)
    with _block() as body:
        yield
    tracing.blocks[-1][-1] = syntax.If(before.condition, before.then, tuple(body), before.at)


@dataclass(frozen=True)
class LoopProgram:
    """A program of the loop language that a function says: `xgpu.compile` takes it, and ``str`` gives its text."""

    says: Callable[..., None]

    @property
    def __name__(self) -> str:
        return self.says.__name__

    def function(self) -> syntax.Function:
        """Return the syntax tree. Raises InvalidInput, at a line of the function, for what is wrong in it."""
        code = self.says.__code__
        at = SourceLocation(code.co_filename, code.co_firstlineno, function=self.__name__)
        tracing = _Tracing()
        _current.append(tracing)
        try:
            parameters = self._parameters(at)
            tracing.names.update(parameter.name for parameter in parameters)
            self.says(*(BufferHandle(parameter.name) for parameter in parameters))
        except XgpuError:
            raise
        except Exception as error:
            if "__jax_array__" in str(error):
                error = TypeError(_NO_ARRAY).with_traceback(error.__traceback__)
            raise user_error(error, f"program {self.__name__}", at) from error
        finally:
            _current.pop()
        (body,) = tracing.blocks
        return syntax.Function(self.__name__, tuple(tracing.sizes.values()), parameters, tuple(body), at)

    def _parameters(self, at: SourceLocation) -> tuple[syntax.Parameter, ...]:
        found = []
        for name, parameter in inspect.signature(self.says, eval_str=True).parameters.items():
            type_ = parameter.annotation
            if not isinstance(type_, ArrayType | ElementType):
                got = "none" if type_ is parameter.empty else repr(type_)
                raise InvalidInput(f"argument '{name}': expected a type such as loops.f32[M, N], got {got}", at)
            type_ = _array_type(type_)
            shape = tuple(_node(size) for size in type_.shape)
            found.append(syntax.Parameter(type_.access, name, type_.dtype, shape, at))
        return tuple(found)

    def own_source(self, given: Sequence[Spec]) -> Source:
        """Return the program at level ``loops``, for arrays of these types and shapes or by its defaults."""
        return build(self.function(), given)

    def __str__(self) -> str:
        return print_function(self.function())


def program(says: Callable[..., None]) -> LoopProgram:
    """Make a program of a function, whose arguments are annotated with their types; its body builds the program."""
    if not inspect.isfunction(says):
        raise InvalidInput(f"loops.program: expected a function, got {says!r}", _here())
    return LoopProgram(says)
