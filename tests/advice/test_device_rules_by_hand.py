"""The numbers of findings about devices, on hand-made traces."""

from typing import Any

from rows_by_hand import LINE, MS, only
from traces import Row, event, make_trace

from mtprof_nb.advice.advising import advise
from mtprof_nb.model.trace import SourceLine, Trace


def _kernels(count: int, length: int, gap: int, kind: str = "kernel", name: str = "gemm") -> list[Row]:
    """Kernels in milliseconds with gaps between them, each launched right before it starts."""
    rows = []
    for at in range(count):
        start = at * (length + gap) * MS + MS
        rows += [
            event("cudaLaunchKernel", start - 1_000, start - 500, kind="runtime"),
            event(name, start, start + length * MS, kind=kind, device="CUDA", thread=7, launch=2 * at),
        ]
    return rows


def test_a_device_waits_for_the_host_from_thirty_percent_of_its_span_on() -> None:
    finding = only(make_trace(_kernels(51, 1, 1)))

    assert finding.rule == "device_waits_for_host"
    assert finding.at_most_ns == 50 * MS
    assert advise(make_trace(_kernels(49, 1, 1))) == ()
    assert advise(make_trace(_kernels(51, 3, 1))) == ()


def test_a_device_that_waits_for_input_does_not_wait_for_launches() -> None:
    waits = event("enumerate(DataLoader)#_SingleProcess", 0, 40 * MS, kind="scope", thread=2)

    assert only(make_trace([*_kernels(51, 1, 1), waits])).rule == "waits_for_input"


def test_copies_count_that_come_from_pageable_memory() -> None:
    rows = [event("aten::mm", 0, 100 * MS)]
    pageable = _kernels(2, 10, 0, "copy", "Memcpy HtoD (Pageable -> Device)")
    pinned = _kernels(2, 10, 0, "copy", "Memcpy HtoD (Pinned -> Device)")

    finding = only(make_trace([*pageable, *rows]))

    assert finding.rule == "pageable_copies"
    assert finding.at_most_ns == 20 * MS + 500
    assert advise(make_trace([*pinned, *rows])) == ()


def test_communication_counts_while_nothing_is_computed() -> None:
    reduce = event("ncclKernel", 50 * MS, 70 * MS, kind="collective", device="CUDA", thread=8)
    alone = event("gemm", 0, 60 * MS, kind="kernel", device="CUDA", thread=7)
    beside = event("gemm", 0, 100 * MS, kind="kernel", device="CUDA", thread=7)

    finding = only(make_trace([alone, reduce]))

    assert finding.rule == "exposed_communication"
    assert finding.at_most_ns == 10 * MS
    assert advise(make_trace([beside, reduce])) == ()


def _fetches(count: int, names: tuple[str, ...], copy: str = "Memcpy DtoH (Device -> Pageable)", gap: int = 4) -> Trace:
    """Every ten milliseconds a kernel runs until the gap begins; nested ops of the host wait for it and a copy."""
    rows: list[Row] = []
    for at in range(count):
        start, first = 10 * at * MS, len(rows)
        ops = [event(name, start, start + 6 * MS, line=LINE) for name in names]
        call = event("cudaMemcpyAsync", start, start + 6 * MS, kind="runtime", launcher=first + len(names) - 1)
        launch = len(rows) + len(names)
        work = {"device": "CUDA", "thread": 7}
        rows += [*ops, call]
        rows += [event("gemm", start + 1, start + (10 - gap) * MS - 1_000, kind="kernel", **work)]
        end = start + (10 - gap) * MS
        rows += [event(copy, end - 1_000, end, kind="copy", launch=launch, launcher=first + len(names) - 1, **work)]
    return make_trace([*rows, event("aten::add", 10 * count * MS - 1, 10 * count * MS)])


def test_the_host_waits_for_values_that_it_fetches_again_and_again() -> None:
    finding = only(_fetches(8, ("aten::item", "aten::_local_scalar_dense")))

    assert finding.rule == "waits_for_values"
    assert finding.at_most_ns == 8 * 4 * MS + 8
    assert finding.line == SourceLine(*LINE)
    assert finding.evidence == (
        "8 times the host waits in .item(), float(), if or print of a tensor: 48.0 ms of 80.0 ms; "
        "the device is busy for 48.0 ms."
    )
    assert "boolean mask" in only(_fetches(8, ("aten::index", "aten::nonzero"))).evidence
    assert ".cpu()" in only(_fetches(8, ("aten::to", "aten::copy_"))).evidence


def test_few_fetches_and_a_device_that_is_busy_throughout_are_no_finding() -> None:
    item = ("aten::item", "aten::_local_scalar_dense")

    assert advise(_fetches(3, item)) == ()
    assert advise(_fetches(8, item, gap=0)) == ()
    assert advise(_fetches(8, ("aten::to", "aten::copy_"), "Memcpy HtoD (Pinned -> Device)")) == ()


def _moved(count: int, maker: str, *, kernel: bool = False) -> Trace:
    """Tensors that are made in one millisecond and copied in two, every five milliseconds."""
    rows: list[Row] = []
    on_device: dict[str, Any] = {"device": "CUDA", "thread": 7}
    for at in range(count):
        start, first = 5 * at * MS, len(rows)
        rows += [
            event(maker, start, start + MS, line=LINE),
            event("aten::to", start + MS, start + 2 * MS, line=LINE),
            event("aten::copy_", start + MS, start + 2 * MS, line=LINE),
            event(
                "Memcpy HtoD (Host -> Device)", start + MS, start + 3 * MS, kind="copy", launcher=first + 2, **on_device
            ),
        ]
        rows += [event("fill", start, start + 9, kind="kernel", launcher=first, **on_device)] * kernel
    return make_trace(rows)


def test_tensors_are_made_on_the_host_if_a_copy_to_the_device_follows_at_once() -> None:
    finding = only(_moved(4, "aten::randn"))

    assert finding.rule == "made_on_host"
    assert (finding.found_ns, finding.at_most_ns) == (4 * 3 * MS, (4 * 3 + 3) * MS)  # with 1 ms of the gaps between
    assert finding.line == SourceLine(*LINE)
    assert advise(_moved(3, "aten::randn")) == ()
    assert advise(_moved(4, "aten::stack")) == ()
    assert advise(_moved(4, "aten::randn", kernel=True)) == ()


def _launched(rows: list[Row], *events: int, start: int) -> list[Row]:
    """A kernel of two milliseconds for each of `events` of `rows`, one after the other."""
    on_device: dict[str, Any] = {"kind": "kernel", "device": "CUDA", "thread": 7}
    return [
        event("copy", (start + 2 * at) * MS, (start + 2 * at + 2) * MS, launcher=number, **on_device)
        for at, number in enumerate(events)
    ]


def test_conversions_count_with_the_kernels_that_they_launch_and_what_runs_at_once_counts_once() -> None:
    types = ("float", "double")
    rows = [
        event(
            "aten::copy_",
            at * MS,
            (at + 1) * MS,
            shapes=((100,), (100,)),
            dtypes=types[:: 1 - 2 * (at % 2)],
            line=LINE,
        )
        for at in range(4)
    ]
    # From 3 ms on, kernels run: for one millisecond beside the last conversion of the host, then alone.
    trace = make_trace([*rows, *_launched(rows, 0, 1, 2, 3, start=3), event("aten::mm", 11 * MS, 40 * MS)])

    finding = only(trace)

    assert finding.rule == "converted_to_and_fro"
    assert finding.at_most_ns == 11 * MS


def test_an_optimizer_counts_with_the_kernels_that_its_steps_launch() -> None:
    step = event("Optimizer.step#Adam.step", 0, 10 * MS, kind="scope", phase="optimizer")
    ops = [event("aten::add_", at * MS // 5, at * MS // 5 + 1_000, phase="optimizer", line=LINE) for at in range(1, 41)]
    rows = [step, *ops]
    trace = make_trace([*rows, *_launched(rows, 1, 2, 3, start=9), event("aten::mm", 20 * MS, 40 * MS)])

    finding = only(trace)

    assert finding.rule == "parameters_one_by_one"
    assert finding.at_most_ns == 15 * MS


def test_the_passes_of_a_closure_inside_a_step_of_an_optimizer_do_not_count() -> None:
    step = event("Optimizer.step#Adam.step", 0, 50 * MS, kind="scope", phase="optimizer")
    passes = [
        event("aten::mm", 2 * MS, 10 * MS, phase="forward"),
        event("MmBackward0", 12 * MS, 40 * MS, phase="backward", thread=2),
    ]
    ops = [
        event("aten::add_", 40 * MS + at * MS // 5, 40 * MS + at * MS // 5 + 1_000, phase="optimizer")
        for at in range(40)
    ]

    finding = only(make_trace([step, *passes, *ops]))

    assert finding.rule == "parameters_one_by_one"
    assert finding.evidence == "1 step of the optimizer ran 40 ops, in 12.0 ms of 50.0 ms."
    assert finding.at_most_ns == 12 * MS


def _allocations(name: str, first: int) -> Trace:
    calls = [event(name, (first + 5 * at) * MS, (first + 5 * at + 2) * MS, kind="runtime") for at in range(4)]
    return make_trace([event("gemm", 0, 100 * MS, kind="kernel", device="CUDA", thread=7), *calls])


def test_memory_of_a_device_is_allocated_anew_in_the_second_half() -> None:
    finding = only(_allocations("cudaMalloc", 60))

    assert finding.rule == "device_allocations"
    assert finding.at_most_ns == 8 * MS
    assert only(_allocations("hipFree", 60)).rule == "device_allocations"
    assert advise(_allocations("cudaMalloc", 10)) == ()
    assert advise(_allocations("cudaMallocAsync", 60)) == ()


def _two_kernels(name: str) -> Trace:
    on_device: dict[str, Any] = {"kind": "kernel", "device": "CUDA", "thread": 7}
    return make_trace([event(name, 0, 10 * MS, **on_device), event("reduce", 10 * MS, 100 * MS, **on_device)])


def test_kernels_that_convert_layouts_or_do_without_tensor_cores_are_known_by_name() -> None:
    found = {
        "void cudnn::ops::nchwToNhwcKernel<float>": "layout_conversions",
        "batched_transpose_32x32_half": "layout_conversions",
        "ampere_sgemm_128x64_nn": "full_precision_products",
        "void cutlass::Kernel<cutlass_80_simt_sgemm_128x64>": "full_precision_products",
    }

    assert {name: only(_two_kernels(name)).rule for name in found} == found
    assert only(_two_kernels("ampere_sgemm_128x64_nn")).at_most_ns == 10 * MS


def test_products_in_full_float32_are_no_finding_beside_products_in_tf32() -> None:
    kernels = (event(name, at * MS, (at + 9) * MS, kind="kernel", device="CUDA", thread=7) for at, name in _PRODUCTS)

    assert advise(make_trace(list(kernels))) == ()


_PRODUCTS = ((0, "ampere_sgemm_128x64_nn"), (10, "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64>"))


def test_kernels_with_tensor_cores_and_those_of_older_devices_are_no_finding() -> None:
    for name in ("cutlass_80_tensorop_s1688gemm_128x64", "volta_sgemm_64x64_nt", "ampere_fp16_s16816gemm", "transpose"):
        assert advise(_two_kernels(name)) == ()
