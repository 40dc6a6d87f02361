"""Faults planted in kernels, each found and named: operation, thread and index; and kernels without fault."""

from typing import Any

import numpy as np
import pytest

from tests.py.runtime.host.host_kernels import BARRIER, at, compare, constants, kernel, shuffle, tile
from xgpu.errors import Fault, InvalidInput, KernelFault
from xgpu.runtime.host_executor import HostKernel, aligned_empty

type Array = np.ndarray[Any, Any]


def faults(text: str, *arrays: Array) -> tuple[Fault, ...]:
    """The faults found in running a kernel."""
    with pytest.raises(KernelFault) as caught:
        HostKernel(text, sanitize=True).launch(arrays)
    return caught.value.faults


def the_fault(text: str, *arrays: Array) -> Fault:
    (fault,) = faults(text, *arrays)
    return fault


def load(result: str, index: str, base: str = "in", type_: str = "i32") -> str:
    return f"{at('at_' + result, base, index, type_)}\n  %{result} = llvm.load %at_{result} : !llvm.ptr -> {type_}"


def store(value: str, index: str, base: str = "out", type_: str = "i32") -> str:
    pointer = f"to_{base}_{index}"
    return f"{at(pointer, base, index, type_)}\n  llvm.store %{value}, %{pointer} : {type_}, !llvm.ptr"


def address(name: str) -> str:
    return f"  %{name} = llvm.mlir.addressof @{name} : !llvm.ptr"


def line_of(text: str, part: str) -> int:
    """The number of the line that holds ``part``."""
    (line,) = [number for number, line in enumerate(text.splitlines(), 1) if part in line]
    return line


def zeros(count: int) -> Array:
    """An array between others of its kind, so that an access outside it is not outside the process's memory."""
    return np.zeros(3 * count, np.int32)[count : 2 * count]


class TestBounds:
    def test_read_past_the_end(self) -> None:
        text = kernel(f"{load('x', 'tx')}\n{store('x', 'tx')}")
        fault = the_fault(text, zeros(30), zeros(32))
        assert (fault.kind, fault.thread, fault.block) == ("out of bounds", (30, 0, 0), (0, 0, 0))
        assert (fault.memory, fault.index, fault.byte, fault.count) == ("buffer 0", 30, 120, 2)
        assert fault.operation == "%1 = llvm.load %0 : !llvm.ptr -> i32"
        assert fault.location is not None and fault.location.line == line_of(text, "llvm.load")
        assert str(fault).startswith(
            "thread (30, 0, 0) of block (0, 0, 0) reads element 30 (byte 120) of buffer 0, which has 120 bytes, "
            "with an access of 4 (2 times)\n  in '%1 = llvm.load"
        )

    def test_write_before_the_start(self) -> None:
        text = kernel(f"{constants(5)}\n  %i = llvm.sub %tx, %c5 : i32\n{store('tx', 'i')}", inputs="")
        out = zeros(32)
        fault = the_fault(text, out)
        assert (fault.kind, fault.thread, fault.index, fault.byte) == ("out of bounds", (0, 0, 0), -5, -20)
        assert "writes element -5" in fault.message
        assert (out[:27] == np.arange(5, 32)).all() and not out[27:].any()

    def test_what_is_out_of_bounds_is_not_written(self) -> None:
        memory = np.zeros(64, np.int32)
        the_fault(kernel(store("tx", "tx"), inputs=""), memory[:16])
        assert not memory[16:].any()

    def test_end_of_a_vector(self) -> None:
        text = kernel(
            f"""{at("p", "out", "tx", "i32")}
  %v = llvm.mlir.constant(dense<1> : vector<4xi32>) : vector<4xi32>
  "llvm.store"(%v, %p) <{{alignment = 4 : i64, ordering = 0 : i64}}> : (vector<4xi32>, !llvm.ptr) -> ()""",
            inputs="",
            block=(30, 1, 1),
        )
        out_of_bounds, race = sorted(faults(text, zeros(32)), key=lambda fault: fault.kind)
        assert (out_of_bounds.index, out_of_bounds.thread, race.kind) == (29, (29, 0, 0), "race")
        assert "has 128 bytes, with an access of 16" in out_of_bounds.message

    def test_size_that_the_kernel_states(self) -> None:
        text = kernel(store("tx", "tx"), inputs="").replace(
            "%out: !llvm.ptr", "%out: !llvm.ptr {llvm.dereferenceable = 40}"
        )
        text = text.replace("dereferenceable = 40", "dereferenceable = 40 : i64")
        assert the_fault(text, zeros(32)).index == 10

    def test_tile(self) -> None:
        text = kernel(f"{address('tile')}\n{store('tx', 'tx', 'tile')}", outputs="", module=tile("tile", 24, "i32"))
        fault = the_fault(text, zeros(1))
        assert (fault.memory, fault.index, fault.thread) == ("tile 'tile'", 24, (24, 0, 0))

    def test_neighbouring_tile(self) -> None:
        module = f"{tile('first', 8, 'i32')}\n{tile('second', 8, 'i32')}"
        text = kernel(f"{address('first')}\n{store('tx', 'tx', 'first')}", inputs="", outputs="", module=module)
        assert the_fault(text).memory == "tile 'first'"

    def test_dynamic_tile(self) -> None:
        module = "llvm.mlir.global external @dynamic() {addr_space = 0 : i32} : !llvm.array<0 x i8>"
        body = f"{address('dynamic')}\n{store('tx', 'tx', 'dynamic')}"
        text = kernel(body, outputs="", module=module, attributes=", xgpu.shared_bytes = 64 : i64")
        assert the_fault(text, zeros(1)).index == 16

    def test_constant(self) -> None:
        module = "llvm.mlir.global internal constant @table(dense<3> : tensor<20xi32>) : !llvm.array<20 x i32>"
        text = kernel(f"{address('table')}\n{load('x', 'tx', 'table')}\n{store('x', 'tx')}", inputs="", module=module)
        fault = the_fault(text, zeros(32))
        assert (fault.memory, fault.index) == ("constant 'table'", 20)

    def test_pointer_to_one_of_two_arrays(self) -> None:
        """Which array it is is only known as the kernel runs."""
        body = f"""{constants(16)}
{compare("is_low", "ult", "tx", "c16")}
  %p = llvm.select %is_low, %a, %b : i1, !llvm.ptr
{load("x", "tx", "p")}
{store("x", "tx")}"""
        text = kernel(body, inputs="%a %b")
        HostKernel(text, sanitize=True).launch([zeros(16), zeros(32), zeros(32)])
        fault = the_fault(text, zeros(16), zeros(24), zeros(32))
        assert (fault.kind, fault.thread, fault.memory) == ("out of bounds", (24, 0, 0), None)
        assert "reads memory that is no array's" in fault.message

    def test_access_in_another_function(self) -> None:
        module = f"""llvm.func internal @read(%p: !llvm.ptr, %i: i32) -> i32 attributes {{no_inline}} {{
{load("x", "i", "p")}
  llvm.return %x : i32
}}"""
        body = f"  %x = llvm.call @read(%in, %tx) : (!llvm.ptr, i32) -> i32\n{store('x', 'tx')}"
        HostKernel(kernel(body, module=module), sanitize=True).launch([zeros(32), zeros(32)])
        assert the_fault(kernel(body, module=module), zeros(20), zeros(32)).thread == (20, 0, 0)

    def test_word_around_a_small_element_at_the_end(self) -> None:
        """An update of the last of 3 elements of 16 bits is one of a word, half of which is past the end."""
        body = f"""{constants(1, 31)}
  %i = llvm.and %tx, %c1 : i32
{at("p", "out", "i", "i32")}
  %old = "llvm.atomicrmw"(%p, %c31) <{{bin_op = 6 : i64, ordering = 2 : i64}}> : (!llvm.ptr, i32) -> i32"""
        HostKernel(kernel(body, inputs=""), sanitize=True).launch([np.zeros(8, np.int16)[:3]])
        body = body.replace("%tx, %c1", "%tx, %c31")
        assert the_fault(kernel(body, inputs=""), np.zeros(8, np.int16)[:3]).index == 2


class TestOtherAccesses:
    def test_misaligned(self) -> None:
        text = kernel(
            f"""{at("p", "out", "tx", "i32")}
  "llvm.store"(%tx, %p) <{{alignment = 8 : i64, ordering = 0 : i64}}> : (i32, !llvm.ptr) -> ()""",
            inputs="",
        )
        fault = the_fault(text, aligned_empty([32], np.int32))
        assert (fault.kind, fault.thread, fault.index, fault.count) == ("misaligned", (1, 0, 0), 1, 16)

    def test_write_of_an_input(self) -> None:
        text = kernel(store("tx", "tx", "in"), outputs="", attributes=", xgpu.inputs = 1 : i64")
        array = zeros(32)
        fault = the_fault(text, array)
        assert (fault.kind, fault.memory, array.any()) == ("read-only", "input 0", False)

    def test_unwritten_shared_memory(self) -> None:
        body = f"""{constants(0, 20)}
{address("tile")}
{compare("is_low", "ult", "tx", "c20")}
  llvm.cond_br %is_low, ^write, ^meet
^write:
{store("tx", "tx", "tile")}
  llvm.br ^meet
^meet:
  {BARRIER}
{load("x", "tx", "tile")}
{store("x", "tx")}"""
        fault = the_fault(kernel(body, inputs="", module=tile("tile", 32, "i32")), zeros(32))
        assert (fault.kind, fault.memory, fault.thread, fault.index) == ("unwritten", "tile 'tile'", (20, 0, 0), 20)
        assert "reads element 20 (byte 80) of tile 'tile', which no thread of the block has written" in fault.message

    def test_shared_memory_written_by_an_earlier_block_only(self) -> None:
        body = f"""{constants(0)}
{address("tile")}
{compare("is_first", "eq", "bx", "c0")}
  llvm.cond_br %is_first, ^write, ^meet
^write:
{store("tx", "tx", "tile")}
  llvm.br ^meet
^meet:
{load("x", "tx", "tile")}
{store("x", "bx")}"""
        text = kernel(body, inputs="", grid=(2, 1, 1), block=(1, 1, 1), module=tile("tile", 32, "i32"))
        fault = the_fault(text, zeros(32))
        assert (fault.kind, fault.block) == ("unwritten", (1, 0, 0))


def shared(body: str, numbers: str = "", block: int = 64) -> str:
    """A kernel that works on a tile of 64 i32, written and then read."""
    return kernel(
        f"{numbers}\n{address('tile')}\n{body}", inputs="", block=(block, 1, 1), module=tile("tile", 64, "i32")
    )


ATOMIC_ADD = '"llvm.atomicrmw"(%{0}, %tx) <{{bin_op = 1 : i64, ordering = 2 : i64}}> : (!llvm.ptr, i32) -> i32'


class TestRacesOnSharedMemory:
    def test_write_and_read(self) -> None:
        text = shared(
            f"""{store("tx", "tx", "tile")}
  %r = llvm.sub %c63, %tx : i32
{load("x", "r", "tile")}
{store("x", "tx")}""",
            constants(63),
        )
        # The threads run in turn: the first half reads what nobody has written yet, and the second half then writes it.
        written, *read = faults(text, zeros(64))
        assert (written.kind, written.thread, written.index) == ("race", (32, 0, 0), 32)
        assert written.message.startswith(
            "thread (32, 0, 0) of block (0, 0, 0) writes element 32 (byte 128) of tile 'tile', "
            "which thread (31, 0, 0) accesses with no barrier between"
        )
        assert written.operation.startswith("llvm.store")
        assert written.other is not None and "llvm.load" in written.other
        assert [(fault.kind, fault.thread, fault.index) for fault in read] == [
            ("unwritten", (0, 0, 0), 63),
            ("race", (32, 0, 0), 31),
        ]
        assert all("llvm.load" in fault.operation for fault in read)

    def test_write_and_write(self) -> None:
        fault = the_fault(
            shared(f"  %i = llvm.lshr %tx, %c1 : i32\n{store('tx', 'i', 'tile')}", constants(1)), zeros(64)
        )
        assert (fault.kind, fault.thread, fault.index, fault.count) == ("race", (1, 0, 0), 0, 32)
        assert "which thread (0, 0, 0) accesses with no barrier between" in fault.message

    def test_two_readers_before_a_write(self) -> None:
        """The write is by one of the two that read: the other must be remembered."""
        text = shared(
            f"""{store("tx", "tx", "tile")}
  {BARRIER}
{load("x", "c0", "tile")}
{compare("is_first", "eq", "tx", "c0")}
  llvm.cond_br %is_first, ^write, ^end
^write:
{at("p", "tile", "c0", "i32")}
  llvm.store %x, %p : i32, !llvm.ptr
  llvm.br ^end
^end:""",
            constants(0),
        )
        fault = faults(text, zeros(64))[-1]
        assert (fault.kind, fault.index) == ("race", 0)

    def test_barrier_between(self) -> None:
        text = shared(
            f"""{store("tx", "tx", "tile")}
  {BARRIER}
  %r = llvm.sub %c63, %tx : i32
{load("x", "r", "tile")}
  {BARRIER}
{at("p", "tile", "tx", "i32")}
  llvm.store %x, %p : i32, !llvm.ptr
{store("x", "tx")}""",
            constants(63),
        )
        out = zeros(64)
        HostKernel(text, sanitize=True).launch([out])
        assert (out == np.arange(64)[::-1]).all()

    def test_shuffle_does_not_order(self) -> None:
        text = shared(
            f"""{store("tx", "tx", "tile")}
{shuffle("s", "tx", "c1")}
{load("x", "s", "tile")}
{store("x", "tx")}""",
            constants(1),
        )
        assert the_fault(text, zeros(64)).kind == "race"

    def test_atomics_do_not_race(self) -> None:
        clean = shared(
            f"""{store("tx", "tx", "tile")}
  {BARRIER}
  %i = llvm.lshr %tx, %c1 : i32
{at("p", "tile", "i", "i32")}
  %old = {ATOMIC_ADD.format("p")}
  {BARRIER}
{load("x", "tx", "tile")}
{store("x", "tx")}""",
            constants(1),
        )
        HostKernel(clean, sanitize=True).launch([zeros(64)])

    def test_atomic_and_plain_access_race(self) -> None:
        text = shared(
            f"""{store("tx", "tx", "tile")}
  %i = llvm.lshr %tx, %c1 : i32
{at("p", "tile", "i", "i32")}
  %old = {ATOMIC_ADD.format("p")}
{store("old", "tx")}""",
            constants(1),
        )
        assert {fault.kind for fault in faults(text, zeros(64))} == {"race"}

    def test_parts_of_a_word(self) -> None:
        """Bytes of one word that belong to different threads are no race; words that share a byte are."""
        module = tile("tile", 64, "i8")
        body = f"""{address("tile")}
  %x = llvm.trunc %tx : i32 to i8
{store("x", "tx", "tile", "i8")}"""
        HostKernel(kernel(body, outputs="", module=module), sanitize=True).launch([zeros(1)])
        word = body.replace("llvm.trunc %tx : i32 to i8", "llvm.trunc %tx : i32 to i16").replace(
            "llvm.store %x, %to_tile_tx : i8, !llvm.ptr",
            '"llvm.store"(%x, %to_tile_tx) <{alignment = 1 : i64, ordering = 0 : i64}> : (i16, !llvm.ptr) -> ()',
        )
        fault = the_fault(kernel(word, outputs="", module=module), zeros(1))
        assert (fault.kind, fault.byte) == ("race", 1)


class TestRacesOnGlobalMemory:
    def test_blocks_that_write_the_same(self) -> None:
        fault = the_fault(kernel(store("bx", "tx"), inputs="", grid=(3, 1, 1)), zeros(32))
        assert (fault.kind, fault.block, fault.thread, fault.count) == ("race", (1, 0, 0), (0, 0, 0), 64)
        assert "which thread (0, 0, 0) of block (0, 0, 0) accesses with no barrier between" in fault.message

    def test_output_that_may_be_overwritten(self) -> None:
        """Any of several stores may be the last, but a read in between sees one or the other."""
        attributes = ", xgpu.inputs = 0 : i64, xgpu.overwrites = array<i64: {}>"
        body = store("bx", "tx")
        text = kernel(body, inputs="", grid=(3, 1, 1), attributes=attributes.format(0))
        HostKernel(text, sanitize=True).launch([zeros(32)])
        assert the_fault(text.replace("array<i64: 0>", "array<i64: 1>"), zeros(32)).kind == "race"
        body = f"{constants(5)}\n{store('tx', 'tx')}\n{load('x', 'c5', 'out')}"
        assert "race" in {
            each.kind for each in faults(kernel(body, inputs="", attributes=attributes.format(0)), zeros(32))
        }

    def test_block_that_reads_what_another_writes(self) -> None:
        body = f"""{constants(0, 1)}
{load("x", "c0", "out")}
  %i = llvm.add %bx, %c1 : i32
{store("x", "i")}"""
        HostKernel(kernel(body, inputs="", grid=(3, 1, 1), block=(1, 1, 1)), sanitize=True).launch([zeros(32)])
        body = body.replace("%bx, %c1", "%bx, %c0")
        read = faults(kernel(body, inputs="", grid=(3, 1, 1), block=(1, 1, 1)), zeros(32))[0]
        assert (read.kind, read.block, read.index) == ("race", (1, 0, 0), 0)

    def test_barrier_orders_a_block(self) -> None:
        body = f"""{constants(31)}
{store("tx", "tx")}
  {BARRIER}
  %r = llvm.sub %c31, %tx : i32
{store("tx", "r")}"""
        HostKernel(kernel(body, inputs=""), sanitize=True).launch([zeros(32)])

    def test_barrier_does_not_order_blocks(self) -> None:
        body = f"{store('tx', 'tx')}\n  {BARRIER}"
        assert the_fault(kernel(body, inputs="", grid=(2, 1, 1)), zeros(32)).kind == "race"

    def test_atomics(self) -> None:
        text = kernel(f"{at('p', 'out', 'tx', 'i32')}\n  %old = {ATOMIC_ADD.format('p')}", inputs="", grid=(3, 1, 1))
        out = zeros(32)
        HostKernel(text, sanitize=True).launch([out])
        assert (out == 3 * np.arange(32)).all()

    def test_every_launch_starts_afresh(self) -> None:
        launched = HostKernel(kernel(store("tx", "tx"), inputs=""), sanitize=True)
        out = zeros(32)
        for _ in range(3):
            launched.launch([out])


def divided(if_true: str, if_false: str, condition: str, numbers: str, block: int = 64) -> str:
    """A kernel whose threads take one of two ways."""
    return kernel(
        f"""{numbers}
{condition}
  llvm.cond_br %c, ^true, ^false
^true:
{if_true}
  llvm.br ^end
^false:
{if_false}
  llvm.br ^end
^end:
{store("tx", "tx")}""",
        inputs="",
        block=(block, 1, 1),
    )


class TestDivergence:
    """Found with and without checks: threads that do not meet would wait for ever on a GPU."""

    @pytest.mark.parametrize("sanitize", [False, True])
    def test_barrier_that_one_thread_does_not_reach(self, sanitize: bool) -> None:
        text = divided(f"  {BARRIER}", "", compare("c", "ne", "tx", "c37"), constants(37))
        with pytest.raises(KernelFault) as caught:
            HostKernel(text, sanitize=sanitize).launch([zeros(64)])
        (fault,) = caught.value.faults
        assert (fault.kind, fault.thread, fault.block) == ("diverged", (32, 0, 0), (0, 0, 0))
        assert fault.message == (
            "thread (32, 0, 0) of block (0, 0, 0) waits at barrier 1 for its block, but thread (37, 0, 0) has ended"
        )
        assert "xgpu_host_barrier" in fault.operation
        assert fault.location is not None and fault.location.line == line_of(text, BARRIER)

    def test_warp_that_does_not_reach_a_barrier(self) -> None:
        text = divided(f"  {BARRIER}", "", compare("c", "ult", "tx", "c32"), constants(32))
        message = the_fault(text, zeros(64)).message
        assert (
            "thread (0, 0, 0) of block (0, 0, 0) waits at barrier 1 for its block, but thread (32, 0, 0) has" in message
        )

    def test_two_barriers(self) -> None:
        text = divided(f"  {BARRIER}", f"  {BARRIER}", compare("c", "ult", "tx", "c32"), constants(32))
        fault = the_fault(text, zeros(64))
        assert "waits at barrier 2 for its block, but thread (0, 0, 0) is at barrier 1" in fault.message
        assert fault.other is not None and "xgpu_host_barrier" in fault.other

    def test_shuffle_that_a_lane_does_not_reach(self) -> None:
        text = divided(shuffle("s", "tx", "c1"), "", compare("c", "ne", "tx", "c40"), constants(1, 40))
        message = the_fault(text, zeros(64)).message
        assert (
            "thread (32, 0, 0) of block (0, 0, 0) waits at shuffle 1 for its warp, but thread (40, 0, 0) has" in message
        )

    def test_shuffle_and_barrier_in_one_warp(self) -> None:
        text = divided(shuffle("s", "tx", "c1"), f"  {BARRIER}", compare("c", "ne", "tx", "c40"), constants(1, 40))
        assert (
            "waits at shuffle 1 for its warp, but thread (40, 0, 0) is at barrier 1"
            in the_fault(text, zeros(64)).message
        )

    def test_loops_of_different_lengths(self) -> None:
        text = kernel(
            f"""{constants(0, 1, 40)}
{compare("c", "eq", "tx", "c40")}
  %n = llvm.zext %c : i1 to i32
  llvm.br ^loop(%c0 : i32)
^loop(%i: i32):
  {BARRIER}
  %next = llvm.add %i, %c1 : i32
{compare("again", "ult", "i", "n")}
  llvm.cond_br %again, ^loop(%next : i32), ^end
^end:
{store("tx", "tx")}""",
            inputs="",
            block=(64, 1, 1),
        )
        assert "thread (40, 0, 0) of block (0, 0, 0) waits at barrier 1" in the_fault(text, zeros(64)).message

    def test_block_after_the_first(self) -> None:
        condition = f"""  %n = llvm.mul %bx, %tx : i32
{compare("c", "ne", "n", "c74")}"""
        text = divided(f"  {BARRIER}", "", condition, constants(74)).replace(
            "grid = array<i64: 1,", "grid = array<i64: 3,"
        )
        with pytest.raises(KernelFault) as caught:
            HostKernel(text).launch([zeros(64)])
        assert "thread (32, 0, 0) of block (2, 0, 0) waits" in caught.value.faults[0].message
        assert "but thread (37, 0, 0) has ended" in caught.value.faults[0].message

    def test_warps_may_shuffle_apart(self) -> None:
        text = divided(shuffle("s", "tx", "c1"), "", compare("c", "ult", "tx", "c32"), constants(1, 32))
        out = zeros(64)
        HostKernel(text, sanitize=True).launch([out])
        assert (out == np.arange(64)).all()


def test_too_many_threads() -> None:
    text = kernel(store("tx", "tx"), inputs="", grid=(1 << 27, 1, 1))
    with pytest.raises(InvalidInput, match="kernel 'k' has more than 2147483647 threads"):
        HostKernel(text, sanitize=True).launch([zeros(32)])


def test_message_of_several_faults() -> None:
    text = kernel(f"{load('x', 'tx')}\n{store('x', 'tx')}")
    with pytest.raises(KernelFault) as caught:
        HostKernel(text, sanitize=True).launch([zeros(31), zeros(30)])
    message = str(caught.value)
    assert message.count("kernel 'k': thread") == 2
    assert "reads element 31" in message and "writes element 30" in message
