"""Remarks: what a pass did not do to some operation, and why, for whoever listens; nobody does by default."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from xgpu import ir
from xgpu.dialects.traits import traits_of
from xgpu.errors import SourceLocation
from xgpu.hlo.source_location import source_of
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import defining_op


@dataclass(frozen=True)
class Remark:
    """A missed optimization of the pass ``pass_name``. ``location`` is the user's source line, None if unknown."""

    pass_name: str
    message: str
    location: SourceLocation | None

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}{self.pass_name}: {self.message}"


Listener = Callable[[Remark], None]
"""Takes the remarks of the passes that run while it listens."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Hand the remarks that are made in the body to ``listener``, to nobody if it is None."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_heard() -> bool:
    """Tell whether someone listens: what is done only to find a reason is left out otherwise."""
    return _listener.get() is not None


def remark(pass_name: str, op: ir.Operation, text: str, *parts: object) -> None:
    """Say what the pass did not do to ``op``: ``text`` with ``{}`` where ``parts`` stand, reasons among them."""
    listener = _listener.get()
    if listener is not None:
        listener(Remark(pass_name, str(Reason(text, parts)), source_of(op)))


def array_name(tensor: ir.Value) -> str:
    """Return what a remark calls the array that a kernel accesses as ``tensor``: ``%arg0``, or where it is made."""
    while True:
        made_by = defining_op(tensor)
        if made_by is None:
            argument: ir.BlockArgument = ir.BlockArgument(tensor)
            around = argument.owner.owner.operation
            if around.name != "scf.for":
                return f"%arg{argument.arg_number}"
            tensor = around.operands[_BOUNDS + argument.arg_number - 1]
        elif made_by.name == "scf.for":
            tensor = made_by.operands[_BOUNDS + ir.OpResult(tensor).result_number]
        elif (updated := traits_of(made_by.name).updates) is not None:
            tensor = made_by.operands[updated]
        else:
            return _PLACES.get(made_by.name, f"a result of '{made_by.name}'")


_BOUNDS = 3
"""The operands of `scf.for` before the initial values of what it carries."""
_PLACES = dict.fromkeys(("xgpu.allocate_shared", "xgpu.sync_threads", "xgpu.sync_warp"), "shared memory")
"""Operations whose results have names of their own in remarks."""
