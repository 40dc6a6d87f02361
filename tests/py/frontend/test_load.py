import sys
from pathlib import Path
from textwrap import dedent

import jax
import numpy as np
import pytest

from xgpu.errors import InvalidInput
from xgpu.frontend import load_source
from xgpu.frontend.load import spec_of

DATA = Path(__file__).parents[2] / "data"
MODULE = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }"
HLO = "HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n ROOT b = f32[4] abs(a)\n}"


def arguments_of(source):
    return [str(argument) for argument in source.arguments]


@pytest.fixture
def write(tmp_path):
    def write_file(name, text):
        path = tmp_path / name
        path.write_text(dedent(text))
        return str(path)

    return write_file


def test_files_by_suffix(write):
    assert load_source(DATA / "fused_gpu.hlo").name == "f"
    assert load_source(str(DATA / "calls.mlir")).name == "calls"
    assert arguments_of(load_source(write("a.txt", HLO))) == ["a: f32[4]"]
    assert load_source(write("unnamed.mlir", MODULE)).name == "unnamed"


def test_text():
    assert arguments_of(load_source(HLO)) == ["a: f32[4]"]
    assert arguments_of(load_source(MODULE)) == ["arg0: f32[2]"]
    assert arguments_of(load_source("// A comment.\n\n" + MODULE)) == ["arg0: f32[2]"]
    lowered = jax.jit(lambda x: x * 2).lower(np.ones(3, np.float32))
    assert arguments_of(load_source(lowered.as_text())) == ["arg0: f32[3]"]
    for text in (lowered.as_text(dialect="hlo"), lowered.compile().as_text()):
        assert [(argument.dtype.hlo, argument.shape) for argument in load_source(text).arguments] == [("f32", (3,))]


def test_a_python_file_with_imports_next_to_it(write):
    write("neighbour_of_program.py", "import jax.numpy as jnp\ndef act(x):\n    return jnp.tanh(x)\n")
    path = write(
        "program.py",
        """
        from dataclasses import dataclass
        from neighbour_of_program import act

        @dataclass
        class Settings:
            scale: "float" = 2.0

        def f(x, y):
            from neighbour_of_program import act as late
            return act(x) * Settings().scale + late(y)
        """,
    )
    before = list(sys.path)
    source = load_source(f"{path}:f", ["f32[2,3]", np.ones(3, np.float32)])
    assert source.name == "f"
    assert arguments_of(source) == ["x: f32[2,3]", "y: f32[3]"]
    assert sys.path == before


@pytest.mark.parametrize(
    ("examples", "expected"),
    [
        ('("f32[2]", {"k": "bf16[3]"})', ["x: f32[2]", "y['k']: bf16[3]"]),
        ("lambda: (np.ones(2, np.int32), jax.ShapeDtypeStruct((), np.float16))", ["x: s32[2]", "y: f16[]"]),
        ('["f64[2]", 1]', ["x: f64[2]", "y: s64[]"]),
    ],
)
def test_example_arguments(write, examples, expected):
    path = write(
        "p.py", f"import jax\nimport numpy as np\ndef f(x, y):\n    return x, y\nf.example_args = {examples}\n"
    )
    assert arguments_of(load_source(f"{path}:f")) == expected
    assert arguments_of(load_source(f"{path}:f", ["s8[]", "s8[]"])) == ["x: s8[]", "y: s8[]"]


def test_a_function_without_arguments(write):
    path = write("p.py", "import jax.numpy as jnp\ndef f():\n    return jnp.ones(3)\n")
    assert load_source(f"{path}:f").arguments == ()


def test_keyword_arguments():
    source = load_source(lambda x, *, scale: x * scale, ["f32[2]"], {"scale": "f32[]"})
    assert arguments_of(source) == ["x: f32[2]", "scale: f32[]"]


@pytest.mark.parametrize(
    ("text", "function", "message"),
    [
        ("def f(:\n", "f", r"p\.py:1:\d+: loading .*p\.py failed: SyntaxError: invalid syntax"),
        ("\n\nx = 1 / 0\n", "f", r"p\.py:3: loading .*p\.py failed: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit('bye')\n", "f", r"p\.py:2: loading .*p\.py failed: SystemExit: bye"),
        (
            "import no_such_module_at_all\n",
            "f",
            r"p\.py:1: .*ModuleNotFoundError: No module named 'no_such_module_at_all'",
        ),
        (
            "def g(): pass\ndef h(): pass\n",
            "f",
            r"has no function 'f'; expected p\.py:function; its functions are: g, h",
        ),
        ("f = 3\n", "f", r"has no function 'f'; expected p\.py:function; its functions are: none"),
        ("def g(): pass\n", None, r"p\.py' names no function; expected p\.py:function; its functions are: g"),
        ("def f(x): return x\n", "f", r"f\(x\) does not take the arguments given: missing .*'x'; .*f\.example_args"),
        (
            "def f(x): return x\nf.example_args = 3\n",
            "f",
            r"f\.example_args: expected a tuple, or a function that returns one, got 3",
        ),
        (
            "def f(x): return x\ndef e():\n    raise ValueError('no')\nf.example_args = e\n",
            "f",
            r"p\.py:3: f\.example_args\(\) failed: ValueError: no",
        ),
        ("def f(x): return x\nf.example_args = ('f33[2]',)\n", "f", "unknown element type 'f33'"),
        ("def f(x):\n    return x @ x\nf.example_args = ('f32[2,3]',)\n", "f", r"p\.py:2: tracing f failed: TypeError"),
    ],
)
def test_what_can_be_wrong_in_a_python_file(write, text, function, message):
    path = write("p.py", text)
    with pytest.raises(InvalidInput, match=message):
        load_source(path if function is None else f"{path}:{function}")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing.py:f", r"cannot read missing\.py: No such file or directory"),
        ("missing.hlo", r"cannot read missing\.hlo: No such file or directory"),
        ("missing.mlir", r"cannot read missing\.mlir: No such file or directory"),
        ("program", "'program' is not a program: expected file.py:function, file.hlo, file.txt, file.mlir or file.te"),
        ("", "'' is not a program"),
        ("a\0b.hlo", "cannot read a\0b.hlo: embedded null byte"),
    ],
)
def test_what_can_be_wrong_in_a_name(source, message):
    with pytest.raises(InvalidInput, match=message):
        load_source(source)


def test_files_that_are_not_text(tmp_path):
    path = tmp_path / "binary.mlir"
    path.write_bytes(b"module {\xff")
    with pytest.raises(InvalidInput, match=r"binary\.mlir is not a text file: byte 8 is not UTF-8"):
        load_source(path)
    (tmp_path / "folder.hlo").mkdir()
    with pytest.raises(InvalidInput, match=r"cannot read .*folder\.hlo: Is a directory"):
        load_source(tmp_path / "folder.hlo")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["f32[3]"], r"argument 0 \(arg0\) is f32\[2\], but f32\[3\] was given"),
        (["f16[2]"], r"argument 0 \(arg0\) is f32\[2\], but f16\[2\] was given"),
        (["f32[2]", "f32[2]"], "program: expected 1 argument, got 2"),
        ([3], r"3 is neither an array nor a specification such as f32\[8\]"),
        (["x"], "unknown element type 'x'"),
    ],
)
def test_arguments_must_be_those_of_the_file(arguments, message):
    assert load_source(MODULE, ["f32[2]"]).arguments
    with pytest.raises(InvalidInput, match=message):
        load_source(MODULE, arguments)


def test_keyword_arguments_are_only_for_functions():
    with pytest.raises(InvalidInput, match="keyword arguments are only for JAX functions"):
        load_source(MODULE, [], {"x": "f32[2]"})


def test_specifications_of_arrays():
    assert [str(spec_of(x)[0]) for x in ("bf16[2]", np.ones(2), jax.ShapeDtypeStruct((2,), np.uint8))] == [
        "bf16",
        "f64",
        "u8",
    ]
    with pytest.raises(InvalidInput):
        spec_of(np.array(["text"]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("add.hlo", "HloModule m\nENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] add(x, x) }\n"),
        ("f.mlir", "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }\n"),
        ("f.py", "def f(x):\n    return x\n"),
    ],
)
def test_a_mark_at_the_start_of_a_file_is_no_text(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    function = name == "f.py"
    loaded = load_source(f"{path}:f" if function else path, ("f32[8]",) if function else ())
    assert [str(spec).split()[-1] for spec in loaded.arguments] == ["f32[8]"]
