"""Expressions of functions in the language of `words` as LLVM IR: what a function's statements are made of."""

import ast
import ctypes
import inspect
import textwrap
import typing
from collections.abc import Callable, Mapping
from typing import Any

from xgpu.errors import CompilerError
from xgpu.records import dataclass
from xgpu.target.host.language import words
from xgpu.target.host.language.words import COMPILED, Pointer

_ARRAY = ctypes.Array
_POINTER_TYPES = (ctypes.c_void_p,)
_FLOATS = {ctypes.c_float: "float", ctypes.c_double: "double"}


@dataclass(frozen=True)
class Type:
    """A type of the language as LLVM's; of a pointer, what it points to."""

    llvm: str
    target: Any = None

    @property
    def is_float(self) -> bool:
        """Whether it is one of numbers."""
        return self.llvm in ("float", "double", "<8 x float>")

    @property
    def is_pointer(self) -> bool:
        """Whether it is one of pointers."""
        return self.llvm == "ptr"


@dataclass(frozen=True)
class HostValue:
    """A value as LLVM IR names it."""

    type: Type
    text: str


INT, BOOL, FLOAT, VOID = Type("i64"), Type("i1"), Type("float"), Type("void")
_DOUBLE, _VECTOR, _INTEGERS = Type("double"), Type("<8 x float>"), Type("<8 x i32>")

_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("add", "fadd"),
    ast.Sub: ("sub", "fsub"),
    ast.Mult: ("mul", "fmul"),
    ast.Div: ("", "fdiv"),
    ast.FloorDiv: ("udiv", ""),
    ast.Mod: ("urem", ""),
    ast.BitAnd: ("and", ""),
    ast.BitOr: ("or", ""),
    ast.BitXor: ("xor", ""),
    ast.LShift: ("shl", ""),
    ast.RShift: ("lshr", ""),
}
_OF_INTEGERS = (
    *(ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.expr_context),
    *(ast.operator, ast.unaryop, ast.cmpop),
)
"""The syntax of expressions whose values are known when they are compiled, besides names."""
_COMPARISONS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Eq: ("eq", "oeq"),
    ast.NotEq: ("ne", "une"),
    ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"),
    ast.Gt: ("sgt", "ogt"),
    ast.GtE: ("sge", "oge"),
    ast.Is: ("eq", ""),
    ast.IsNot: ("ne", ""),
}


class Unit:
    """A module under way: values of names that stand in for the modules', and the functions that it shall hold."""

    def __init__(self, values: Mapping[str, int]):
        self.values = values
        self.names: dict[Callable[..., Any], str] = {}
        self.wanted: list[Callable[..., Any]] = []

    def name(self, function: Callable[..., Any]) -> str:
        """Return the name of a function, which is wanted from then on."""
        if function not in self.names:
            self.names[function] = function.__qualname__
            self.wanted.append(function)
        return self.names[function]


class HostExpressions:
    """Writes the expressions of one function."""

    def __init__(self, unit: Unit, function: Callable[..., Any]):
        self._unit = unit
        self._function = function
        self._globals: dict[str, Any] = vars(inspect.getmodule(function))
        source, self._line = inspect.getsourcelines(function)
        self._tree = ast.parse(textwrap.dedent("".join(source))).body[0]
        self._parameters, self._result = signature(function)
        self._variables: dict[str, Type] = {}
        self._allocations: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._ended = False

    def _failure(self, node: ast.AST, what: str) -> CompilerError:
        line = self._line + getattr(node, "lineno", 1) - 1
        return CompilerError(f"{inspect.getsourcefile(self._function)}:{line}: {what}")

    def _unknown(self, node: ast.AST) -> typing.NoReturn:
        raise self._failure(node, f"{type(node).__name__} is not of the language")

    def _emit(self, line: str) -> None:
        self._lines.append(f"  {line}")

    def _new(self, type_: Type, text: str) -> HostValue:
        self._count += 1
        self._emit(f"%v{self._count} = {text}")
        return HostValue(type_, f"%v{self._count}")

    def _label(self, word: str) -> str:
        self._count += 1
        return f"{word}.{self._count}"

    def _start(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._ended = False

    def _branch(self, condition: HostValue, on_true: str, on_false: str) -> None:
        self._emit(f"br i1 {condition.text}, label %{on_true}, label %{on_false}")

    def _typed(self, value: HostValue) -> str:
        return f"{value.type.llvm} {value.text}"

    def _known(self, node: ast.expr) -> int | None:
        """Return the value of an expression of integers and of the module's names of such, None if it is another."""
        if isinstance(node, ast.BoolOp):
            return self._decided(node)
        names: dict[str, int] = {}
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                value = self._unit.values.get(each.id, self._globals.get(each.id))
                if each.id in self._variables or not isinstance(value, int):
                    return None
                names[each.id] = value
            elif not isinstance(each, _OF_INTEGERS) or (isinstance(each, ast.Constant) and type(each.value) is not int):
                return None
        return int(eval(compile(ast.Expression(node), "", "eval"), names))

    def _decided(self, node: ast.BoolOp) -> int | None:
        """Return the value if the first operands decide, which need not be all: others may not even be compiled."""
        value = None
        for each in node.values:
            value = self._known(each)
            if value is None or bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _value(self, node: ast.expr) -> HostValue:
        if isinstance(node, ast.Constant):
            return self._literal(node)
        if (known := self._known(node)) is not None:
            return HostValue(INT, str(known))
        made = getattr(self, f"_{type(node).__name__}", self._unknown)(node)
        assert isinstance(made, HostValue)
        return made

    def _literal(self, node: ast.Constant) -> HostValue:
        if isinstance(node.value, bool):
            return HostValue(BOOL, str(node.value).lower())
        if isinstance(node.value, int):
            return HostValue(INT, str(node.value))
        if isinstance(node.value, float):
            return HostValue(FLOAT, f"0x{_double_bits(node.value):016X}")
        raise self._failure(node, "a literal of no type of the language")

    def _Name(self, node: ast.Name) -> HostValue:
        if node.id not in self._variables:
            raise self._failure(node, f"'{node.id}' has no value")
        return self._load_variable(node.id)

    def _load_variable(self, name: str) -> HostValue:
        type_ = self._variables[name]
        return self._new(type_, f"load {type_.llvm}, ptr %{name}.var")

    def _BinOp(self, node: ast.BinOp) -> HostValue:
        return self._binary(node, type(node.op), self._value(node.left), self._value(node.right))

    def _binary(self, node: ast.AST, operator: type[ast.AST], left: HostValue, right: HostValue) -> HostValue:
        if left.type.is_pointer and operator is ast.Add:
            return self._element(left, right)
        if left.type == BOOL:
            left = self._converted(left, INT, node)
        if right.type == BOOL:
            right = self._converted(right, INT, node)
        if left.type != right.type:
            raise self._failure(node, f"operands of types {left.type.llvm} and {right.type.llvm}")
        word = _OPERATORS[operator][left.type.is_float]
        if not word:
            raise self._failure(node, f"no such operation on {left.type.llvm}")
        return self._new(left.type, f"{word} {self._typed(left)}, {right.text}")

    def _UnaryOp(self, node: ast.UnaryOp) -> HostValue:
        if isinstance(node.op, ast.Not):
            return self._new(BOOL, f"xor i1 {self._condition(node.operand).text}, true")
        value = self._value(node.operand)
        if isinstance(node.op, ast.USub):
            if value.type.is_float:
                return self._new(value.type, f"fneg {self._typed(value)}")
            return self._new(value.type, f"sub i64 0, {value.text}")
        return self._new(value.type, f"xor i64 {value.text}, -1")

    def _Compare(self, node: ast.Compare) -> HostValue:
        left, right = self._value(node.left), self._value(node.comparators[0])
        return self._compare(_COMPARISONS[type(node.ops[0])][left.type.is_float], left, right)

    def _compare(self, predicate: str, left: HostValue, right: HostValue) -> HostValue:
        word = "fcmp" if left.type.is_float else "icmp"
        if left.type.llvm != right.type.llvm:
            raise CompilerError(f"{self._function.__name__}: compares {left.type.llvm} with {right.type.llvm}")
        return self._new(BOOL, f"{word} {predicate} {self._typed(left)}, {right.text}")

    def _condition(self, node: ast.expr) -> HostValue:
        value = self._value(node)
        if value.type == BOOL:
            return value
        zero = "null" if value.type.is_pointer else "0"
        return self._compare("ne", value, HostValue(value.type, zero))

    def _BoolOp(self, node: ast.BoolOp) -> HostValue:
        """Evaluate what follows only if what comes before does not decide."""
        self._count += 1
        place = f"%decided.{self._count}"
        self._allocations.append(f"  {place} = alloca i1")
        after = self._label("decided")
        for position, each in enumerate(node.values):
            value = self._condition(each)
            self._emit(f"store i1 {value.text}, ptr {place}")
            if position + 1 < len(node.values):
                following = self._label("next")
                targets = (following, after) if isinstance(node.op, ast.And) else (after, following)
                self._branch(value, *targets)
                self._start(following)
        self._emit(f"br label %{after}")
        self._start(after)
        return self._new(BOOL, f"load i1, ptr {place}")

    def _IfExp(self, node: ast.IfExp) -> HostValue:
        """Both values are computed."""
        condition, left, right = self._condition(node.test), self._value(node.body), self._value(node.orelse)
        return self._new(left.type, f"select i1 {condition.text}, {self._typed(left)}, {self._typed(right)}")

    def _Attribute(self, node: ast.Attribute) -> HostValue:
        return self._load_at(*self._place(node))

    def _Subscript(self, node: ast.Subscript) -> HostValue:
        return self._load_at(*self._place(node))

    def _place(self, node: ast.expr) -> tuple[HostValue, Any]:
        """Return the address of a field or element, and its ``ctypes`` type."""
        if isinstance(node, ast.Attribute):
            base = self._value(node.value)
            structure = base.type.target
            if structure is None or not issubclass(structure, ctypes.Structure):
                raise self._failure(node, f"'{node.attr}' of what is no structure")
            field = getattr(structure, node.attr)
            pointer = self._new(Type("ptr"), f"getelementptr i8, ptr {base.text}, i64 {field.offset}")
            return pointer, dict(fields_of(structure))[node.attr]
        assert isinstance(node, ast.Subscript)
        base = self._value(node.value)
        return self._element(base, self._value(node.slice)), base.type.target

    def _element(self, base: HostValue, index: HostValue) -> HostValue:
        if base.type.target is None:
            raise CompilerError(f"{self._function.__name__}: an element of what is no pointer")
        size = ctypes.sizeof(base.type.target)
        return self._new(base.type, f"getelementptr [{size} x i8], ptr {base.text}, i64 {index.text}")

    def _load_at(self, pointer: HostValue, type_: Any) -> HostValue:
        if issubclass(type_, ctypes.Structure):
            return HostValue(Type("ptr", type_), pointer.text)
        if issubclass(type_, _ARRAY):
            return HostValue(Type("ptr", type_._type_), pointer.text)
        if is_pointer(type_):
            return self._new(Type("ptr", pointee(type_)), f"load ptr, ptr {pointer.text}")
        if type_ in _FLOATS:
            return self._new(Type(_FLOATS[type_]), f"load {_FLOATS[type_]}, ptr {pointer.text}")
        bits = 8 * ctypes.sizeof(type_)
        loaded = self._new(Type(f"i{bits}"), f"load i{bits}, ptr {pointer.text}")
        if bits == 64:
            return loaded
        word = "sext" if type_(-1).value < 0 else "zext"
        return self._new(INT, f"{word} i{bits} {loaded.text} to i64")

    def _store_at(self, pointer: HostValue, type_: Any, value: HostValue, node: ast.AST) -> None:
        if is_pointer(type_) or type_ in _FLOATS:
            self._emit(f"store {self._typed(value)}, ptr {pointer.text}")
            return
        bits = 8 * ctypes.sizeof(type_)
        value = self._converted(value, INT, node)
        if bits < 64:
            value = self._new(Type(f"i{bits}"), f"trunc i64 {value.text} to i{bits}")
        self._emit(f"store {self._typed(value)}, ptr {pointer.text}")

    def _converted(self, value: HostValue, type_: Type, node: ast.AST) -> HostValue:
        if value.type.llvm == type_.llvm:
            return value
        if value.type == BOOL and type_ == INT:
            return self._new(INT, f"zext i1 {value.text} to i64")
        raise self._failure(node, f"expected {type_.llvm}, got {value.type.llvm}")

    def _Call(self, node: ast.Call) -> HostValue:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        builtin = getattr(self, f"_call_{name}", None)
        callee = self._globals.get(name)
        if builtin is not None and (callee is None or callee is getattr(words, name, None)):
            made = builtin(node)
            assert isinstance(made, HostValue)
            return made
        if not getattr(callee, COMPILED, False):
            raise self._failure(node, f"'{name}' is no function of the language")
        assert callee is not None
        parameters, result = signature(callee)
        if len(parameters) != len(node.args):
            raise self._failure(node, f"'{name}' takes {len(parameters)} arguments")
        arguments = [
            self._typed(self._converted(self._value(argument), type_, node))
            for argument, type_ in zip(node.args, parameters.values(), strict=True)
        ]
        call = f"call {result.llvm} @{self._unit.name(callee)}({', '.join(arguments)})"
        if result == VOID:
            self._emit(call)
            return HostValue(VOID, "")
        return self._new(result, call)

    def _call_cast(self, node: ast.Call) -> HostValue:
        target, value = self._named_type(node.args[0]), self._value(node.args[1])
        if value.type == INT:
            value = self._new(Type("ptr"), f"inttoptr i64 {value.text} to ptr")
        return HostValue(Type("ptr", target), value.text)

    def _named_type(self, node: ast.expr) -> Any:
        assert isinstance(node, ast.Name)
        return self._globals[node.id]

    def _call_size_of(self, node: ast.Call) -> HostValue:
        return HostValue(INT, str(ctypes.sizeof(self._named_type(node.args[0]))))

    def _call_address(self, node: ast.Call) -> HostValue:
        return self._new(INT, f"ptrtoint ptr {self._value(node.args[0]).text} to i64")

    def _call_as_float(self, node: ast.Call) -> HostValue:
        bits = self._new(Type("i32"), f"trunc i64 {self._value(node.args[0]).text} to i32")
        return self._new(FLOAT, f"bitcast i32 {bits.text} to float")

    def _call_as_bits(self, node: ast.Call) -> HostValue:
        bits = self._new(Type("i32"), f"bitcast float {self._value(node.args[0]).text} to i32")
        return self._new(INT, f"zext i32 {bits.text} to i64")

    def _call_to_number(self, node: ast.Call) -> HostValue:
        return self._new(FLOAT, f"sitofp i64 {self._value(node.args[0]).text} to float")

    def _call_to_integer(self, node: ast.Call) -> HostValue:
        value = self._value(node.args[0])
        type_ = _INTEGERS if value.type == _VECTOR else INT
        return self._new(type_, f"fptosi {self._typed(value)} to {type_.llvm}")

    def _call_copy(self, node: ast.Call) -> HostValue:
        to, source, count = (self._value(each).text for each in node.args)
        self._emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {count}, i1 false)")
        return HostValue(VOID, "")

    def _call_fill(self, node: ast.Call) -> HostValue:
        to, byte, count = (self._value(each).text for each in node.args)
        self._emit(f"call void @llvm.memset.p0.i64(ptr {to}, i8 {byte}, i64 {count}, i1 false)")
        return HostValue(VOID, "")

    def _call_resume(self, node: ast.Call) -> HostValue:
        self._emit(f"call void @llvm.coro.resume(ptr {self._value(node.args[0]).text})")
        return HostValue(VOID, "")

    def _call_make_thread(self, node: ast.Call) -> HostValue:
        make, buffers, *numbers, context, frame = (self._value(each) for each in node.args)
        x, y, z = (self._new(Type("i32"), f"trunc i64 {each.text} to i32") for each in numbers)
        arguments = ", ".join(self._typed(each) for each in (buffers, x, y, z, context, frame))
        made = self._new(Type("ptr"), f"call ptr {make.text}({arguments})")
        return self._new(INT, f"ptrtoint ptr {made.text} to i64")

    def _call_min(self, node: ast.Call) -> HostValue:
        return self._least(node, "slt")

    def _call_max(self, node: ast.Call) -> HostValue:
        return self._least(node, "sgt")

    def _least(self, node: ast.Call, predicate: str) -> HostValue:
        left, right = (self._value(each) for each in node.args)
        is_left = self._compare(predicate, left, right)
        return self._new(left.type, f"select i1 {is_left.text}, {self._typed(left)}, {self._typed(right)}")

    def _call_vector(self, node: ast.Call) -> HostValue:
        pointer = self._value(node.args[0])
        type_ = _INTEGERS if pointer.type.target is ctypes.c_int32 else _VECTOR
        return self._new(type_, f"load {type_.llvm}, ptr {pointer.text}, align 4")

    def _call_splat(self, node: ast.Call) -> HostValue:
        value = self._value(node.args[0])
        type_ = _VECTOR
        if value.type == INT:
            value, type_ = self._new(Type("i32"), f"trunc i64 {value.text} to i32"), _INTEGERS
        one = self._new(type_, f"insertelement {type_.llvm} poison, {self._typed(value)}, i64 0")
        return self._new(type_, f"shufflevector {self._typed(one)}, {type_.llvm} poison, <8 x i32> zeroinitializer")

    def _call_set_vector(self, node: ast.Call) -> HostValue:
        pointer, value = (self._value(each) for each in node.args)
        self._emit(f"store {self._typed(value)}, ptr {pointer.text}, align 4")
        return HostValue(VOID, "")


def fields_of(structure: type[ctypes.Structure]) -> list[tuple[str, Any]]:
    """Return names and types of a structure's fields."""
    return [(name, type_) for name, type_, *_ in structure._fields_]


def is_pointer(type_: Any) -> bool:
    """Whether a ``ctypes`` type is one of pointers."""
    return type_ in _POINTER_TYPES or issubclass(type_, ctypes._Pointer)


def pointee(type_: Any) -> Any:
    """Return what a ``ctypes`` pointer points to: bytes, if it does not say."""
    return type_._type_ if issubclass(type_, ctypes._Pointer) else ctypes.c_uint8


def signature(function: Callable[..., Any]) -> tuple[dict[str, Type], Type]:
    """Return the parameters of a function of the language, and the type of what it returns."""
    hints = typing.get_type_hints(function)
    result = hints.pop("return", type(None))
    return {name: _type(each) for name, each in hints.items()}, _type(result)


def _type(hint: Any) -> Type:
    known = {int: INT, bool: BOOL, float: FLOAT, type(None): VOID}
    if hint in known:
        return known[hint]
    if typing.get_origin(hint) is Pointer:
        return Type("ptr", typing.get_args(hint)[0])
    raise CompilerError(f"{hint} is no type of the language")


def _double_bits(value: float) -> int:
    """Return the bits of the f64 that is the f32 nearest to a number, as LLVM writes it."""
    single = ctypes.c_float(value).value
    return int.from_bytes(bytes(ctypes.c_double(single)), "little")
