"""Compiles the functions that kernels call on this machine, written in the language of `words`, to LLVM IR.

A function is compiled with all that it calls. Variables live on the stack: LLVM's passes move them to registers.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xgpu.errors import CompilerError
from xgpu.target.host.language.expressions import INT, VOID, HostExpressions, HostValue, Unit

_DECLARATIONS = """
declare void @llvm.coro.resume(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


def compile_functions(roots: Mapping[str, Callable[..., Any]], values: Mapping[str, int]) -> str:
    """Return a module that exports functions under the names given, and holds all that they call.

    ``values`` stand in for module-level names, such as `CHECKED`.
    """
    unit = Unit(values)
    for name, function in roots.items():
        unit.names[function] = name
    texts = []
    waiting = list(roots.values())
    while waiting:
        function = waiting.pop()
        unit.wanted.clear()
        texts.append(_Function(unit, function).text(is_exported=function in roots.values()))
        waiting += unit.wanted
    return _DECLARATIONS + "\n".join(texts)


class _Function(HostExpressions):
    def __init__(self, unit: Unit, function: Callable[..., Any]):
        super().__init__(unit, function)
        self._loops: list[tuple[str, str]] = []

    def text(self, is_exported: bool) -> str:
        """Return the function as LLVM IR."""
        assert isinstance(self._tree, ast.FunctionDef)
        for name, type_ in self._parameters.items():
            self._assign(name, HostValue(type_, f"%{name}"))
        self._block(self._tree.body)
        if not self._ended:
            self._emit("ret void" if self._result == VOID else "unreachable")
        parameters = ", ".join(f"{type_.llvm} %{name}" for name, type_ in self._parameters.items())
        linkage = "" if is_exported else "internal "
        head = f"define {linkage}{self._result.llvm} @{self._unit.names[self._function]}({parameters}) {{\nfirst.0:"
        return "\n".join([head, *self._allocations, *self._lines, "}\n"])

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self._ended:
                return
            getattr(self, f"_{type(statement).__name__}", self._unknown)(statement)

    def _Pass(self, node: ast.Pass) -> None:
        pass

    def _Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._value(node.value)

    def _Return(self, node: ast.Return) -> None:
        if node.value is None:
            self._emit("ret void")
        else:
            self._emit(f"ret {self._typed(self._converted(self._value(node.value), self._result, node))}")
        self._ended = True

    def _Assign(self, node: ast.Assign) -> None:
        self._store(node.targets[0], self._value(node.value))

    def _AugAssign(self, node: ast.AugAssign) -> None:
        target = ast.parse(ast.unparse(node.target), mode="eval").body
        left, right = self._value(target), self._value(node.value)
        self._store(node.target, self._binary(node, type(node.op), left, right))

    def _store(self, target: ast.expr, value: HostValue) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
        else:
            pointer, type_ = self._place(target)
            self._store_at(pointer, type_, value, target)

    def _assign(self, name: str, value: HostValue) -> None:
        if name not in self._variables:
            self._variables[name] = value.type
            self._allocations.append(f"  %{name}.var = alloca {value.type.llvm}")
        elif self._variables[name].llvm != value.type.llvm:
            raise CompilerError(f"{self._function.__name__}: '{name}' has two types")
        self._emit(f"store {self._typed(value)}, ptr %{name}.var")

    def _If(self, node: ast.If) -> None:
        known = self._known(node.test)
        if known is not None:
            self._block(node.body if known else node.orelse)
            return
        then, otherwise, after = (self._label(word) for word in ("then", "else", "after"))
        self._branch(self._condition(node.test), then, otherwise)
        is_left = []
        for label, body in ((then, node.body), (otherwise, node.orelse)):
            self._start(label)
            self._block(body)
            is_left.append(not self._ended)
            if not self._ended:
                self._emit(f"br label %{after}")
        if any(is_left):
            self._start(after)

    def _While(self, node: ast.While) -> None:
        head, body, after = (self._label(word) for word in ("while", "body", "after"))
        self._emit(f"br label %{head}")
        self._start(head)
        self._branch(self._condition(node.test), body, after)
        self._loops.append((head, after))
        self._start(body)
        self._block(node.body)
        if not self._ended:
            self._emit(f"br label %{head}")
        self._loops.pop()
        self._start(after)

    def _For(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        bounds = [self._value(each) for each in node.iter.args]
        first, last = bounds[:2] if len(bounds) > 1 else (HostValue(INT, "0"), bounds[0])
        step = bounds[2] if len(bounds) > 2 else HostValue(INT, "1")
        head, body, more, after = (self._label(word) for word in ("for", "body", "more", "after"))
        name = node.target.id
        self._assign(name, first)
        self._emit(f"br label %{head}")
        self._start(head)
        self._branch(self._compare("slt", self._load_variable(name), last), body, after)
        self._loops.append((more, after))
        self._start(body)
        self._block(node.body)
        if not self._ended:
            self._emit(f"br label %{more}")
        self._loops.pop()
        self._start(more)
        self._assign(name, self._new(INT, f"add nsw i64 {self._load_variable(name).text}, {step.text}"))
        self._emit(f"br label %{head}")
        self._start(after)

    def _Break(self, node: ast.Break) -> None:
        self._emit(f"br label %{self._loops[-1][1]}")
        self._ended = True

    def _Continue(self, node: ast.Continue) -> None:
        self._emit(f"br label %{self._loops[-1][0]}")
        self._ended = True
