"""Families of ops: what each op belongs to, and colours that every eye tells apart."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from traces import event, make_trace

from mtprof_nb.analysis.families import FAMILIES, bare_name, families, family
from mtprof_nb.views.device_bars import BUSY_KINDS, IDLE_KINDS

#: How eyes without one kind of cones see linear light (Machado and others, 2009).
EYES = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIE Lab, in which equal distances look about equally different."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    scaled = to_xyz @ np.clip(light, 0, 1) / np.array([0.9505, 1, 1.089])
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("entries", [FAMILIES, (*BUSY_KINDS, *IDLE_KINDS)], ids=["families", "time of devices"])
def test_any_two_colours_look_different_to_every_eye(eye: str, entries: tuple[Any, ...]) -> None:
    seen = {entry.title: lab(np.asarray(EYES[eye]) @ linear(entry.colour)) for entry in entries}
    distance = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in combinations(seen, 2)}

    assert {pair: apart for pair, apart in distance.items() if apart < 15} == {}


@pytest.mark.parametrize("entry", FAMILIES, ids=lambda entry: entry.title)
def test_the_ink_of_a_family_is_readable_on_its_colour(entry: object) -> None:
    light, dark = sorted((luminance(entry.colour), luminance(entry.ink)), reverse=True)

    assert (light + 0.05) / (dark + 0.05) >= 4.4


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("aten::addmm", "matrix product"),
        ("AddmmBackward0", "matrix product"),
        ("autograd::engine::evaluate_function: MmBackward0", "matrix product"),
        ("aten::linear", "matrix product"),
        ("aten::mkldnn_convolution", "convolution, pooling"),
        ("aten::max_pool2d_with_indices", "convolution, pooling"),
        ("aten::scaled_dot_product_attention", "attention"),
        ("NativeLayerNormBackward0", "normalization"),
        ("aten::threshold_backward", "activation"),
        ("aten::_log_softmax", "activation"),
        ("aten::_foreach_add_", "elementwise"),
        ("aten::sum", "reduction, loss"),
        ("aten::linalg_vector_norm", "reduction, loss"),
        ("aten::_to_copy", "copy, create, index"),
        ("aten::embedding", "copy, create, index"),
        ("aten::t", "view"),
        ("aten::transpose", "view"),
        ("torch::autograd::AccumulateGrad", "other"),
        ("", "other"),
        ("<script>", "other"),
    ],
)
def test_an_op_belongs_to_the_family_of_its_work(name: str, title: str) -> None:
    assert FAMILIES[family(name)].title == title


def test_the_bare_name_is_what_is_computed() -> None:
    assert [bare_name(name) for name in ("aten::addmm.out", "aten::_foreach_mul_", "ReluBackward0")] == [
        "addmm",
        "mul",
        "relu",
    ]


def test_scopes_are_a_family_of_their_own_whatever_they_are_called() -> None:
    trace = make_trace([event("mm", 0, 9, kind="scope"), event("mm", 1, 8), event("mm", 2, 3, kind="python")])

    assert [FAMILIES[code].title for code in families(trace)] == ["scope", "matrix product", "other"]
