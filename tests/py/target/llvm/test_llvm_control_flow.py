"""Branches with arguments become phis; the results are checked by running them."""

from collections.abc import Callable
from typing import Any

import numpy as np


def test_loop_with_two_carried_values(elementwise: Callable[..., Any]) -> None:
    body = """
        %zero = llvm.mlir.constant(0 : i32) : i32
        %one = llvm.mlir.constant(1 : i32) : i32
        llvm.br ^head(%zero, %one : i32, i32)
      ^head(%n: i32, %product: i32):
        %more = llvm.icmp "slt" %n, %x0 : i32
        llvm.cond_br %more, ^body, ^exit
      ^body:
        %next = llvm.add %n, %one : i32
        %larger = llvm.mul %product, %next : i32
        llvm.br ^head(%next, %larger : i32, i32)
      ^exit:
        %r = llvm.add %product, %zero : i32"""
    assert elementwise(body, [np.arange(6, dtype=np.int32)], np.int32).tolist() == [1, 1, 2, 6, 24, 120]


def test_both_edges_of_a_branch_lead_to_one_block(elementwise: Callable[..., Any]) -> None:
    body = """
        %zero = llvm.mlir.constant(0 : i32) : i32
        %c = llvm.icmp "slt" %x0, %zero : i32
        %negated = llvm.sub %zero, %x0 : i32
        llvm.cond_br %c, ^join(%negated : i32), ^join(%x0 : i32)
      ^join(%r: i32):"""
    assert elementwise(body, [np.array([-3, 4], np.int32)], np.int32).tolist() == [3, 4]


def test_switch_with_cases_that_share_a_block(elementwise: Callable[..., Any]) -> None:
    body = """
        %ten = llvm.mlir.constant(10 : i32) : i32
        %twenty = llvm.mlir.constant(20 : i32) : i32
        llvm.switch %x0 : i32, ^join(%x0 : i32) [0: ^join(%ten : i32), 1: ^other, -7: ^join(%twenty : i32)]
      ^other:
        llvm.br ^join(%ten : i32)
      ^join(%r: i32):"""
    assert elementwise(body, [np.array([0, 1, 2, -7], np.int32)], np.int32).tolist() == [10, 10, 2, 20]


def test_block_before_the_one_that_dominates_it(elementwise: Callable[..., Any]) -> None:
    body = """
        llvm.br ^first
      ^second:
        %sum = llvm.add %k, %x0 : i32
        llvm.br ^third
      ^first:
        %k = llvm.mlir.constant(5 : i32) : i32
        llvm.br ^second
      ^third:
        %r = llvm.add %sum, %k : i32"""
    assert elementwise(body, [np.array([1, 2], np.int32)], np.int32).tolist() == [11, 12]


def test_loop_annotation(export_body: Callable[..., str]) -> None:
    text = export_body("""llvm.br ^a
      ^a:
        "llvm.cond_br"(%c)[^b, ^b] <{loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>,
            operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
      ^b:
        "llvm.cond_br"(%c)[^a, ^d] <{loop_annotation = #llvm.loop_annotation<unroll = <full = true>>,
            operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
      ^d:""")
    assert "label %bb2, label %bb2, !llvm.loop !1" in text
    assert "!1 = distinct !{!1, !0}" in text
    assert '!0 = !{!"llvm.loop.unroll.disable"}' in text
    assert '!{!"llvm.loop.unroll.full"}' in text


def test_unroll_count_and_branch_weights(export_body: Callable[..., str]) -> None:
    text = export_body("""llvm.br ^a
      ^a:
        "llvm.cond_br"(%c)[^a, ^d] <{branch_weights = array<i32: 3, 5>,
            loop_annotation = #llvm.loop_annotation<unroll = <count = 4 : i32>, mustProgress = true>,
            operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
      ^d:""")
    assert '!{!"llvm.loop.unroll.count", i32 4}' in text
    assert '!{!"llvm.loop.mustprogress"}' in text
    assert '!{!"branch_weights", i32 3, i32 5}' in text
