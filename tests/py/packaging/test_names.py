"""Names of packages and arrays are identifiers in C, C++ and Rust, whatever the program calls them."""

import pytest

from xgpu.errors import InvalidInput
from xgpu.packaging.names import identifier, identifiers, package_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", "x"),
        ("params['w'][0]", "params_w_0"),
        ("X", "x"),
        ("int", "int_"),
        ("fn", "fn_"),
        ("co_await", "co_await_"),
        ("errno", "errno_"),
        ("scratch", "scratch_"),
        ("stream", "stream_"),
        ("size_t", "size_t_"),
        ("uint8_t", "uint8_t_"),
        ("f32", "f32_"),
        ("0", "array_0"),
        ("_x__y_", "x_y"),
        ('Größe */ "x\\', "gr_e_x"),
        ("重み", "array"),
        ("", "array"),
    ],
)
def test_an_identifier(text: str, expected: str) -> None:
    assert identifier(text, "array") == expected


def test_names_are_different() -> None:
    assert identifiers(["x", "x", "X!", "int", "int_", "x_2"], "array") == ("x", "x_2", "x_3", "int_", "int_2", "x_2_2")
    assert identifiers(["n"], "size", ["n", "n_2"]) == ("n_3",)


def test_the_name_of_a_package() -> None:
    assert package_name(None, "<lambda>") == "lambda"
    assert package_name(None, "main") == "main_"
    assert package_name("fused_2", "f") == "fused_2"


@pytest.mark.parametrize("name", ["", "Fused", "2x", "a b", "a-b", "class", "a__b", "machine", "é"])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be the name of a package"):
        package_name(name, "f")
