"""Write the recording of the tutorial on GPU traces: training on a simulated GPU, in the shape of Kineto's files.

Nobody needs a GPU to read the tutorial. The program has three faults that real ones have: batches come from pageable
memory, the loss is read in every step, and the optimizer launches several small kernels for each parameter.
"""

from __future__ import annotations

import sys
from pathlib import Path

from simulated_gpu import COMMUNICATION, COMPUTE, SimulatedGpu, write

ROOT = Path(__file__).parent.parent
RECORDING = ROOT / "notebooks" / "gpu_training.json.gz"
BATCH, WIDTH, CLASSES = 128, 768, 10
LAYERS, STEPS = 3, 3
_FLOAT = 4


def main(path: Path = RECORDING) -> None:
    """Write the recording."""
    gpu = SimulatedGpu()
    with gpu.function("train.py(40): main"):
        for step in range(STEPS):
            with gpu.scope(f"ProfilerStep#{step}"):
                _step(gpu, step)
        with gpu.scope("evaluate"):
            _evaluate(gpu)
    write(gpu, path, record_shapes=1, profile_memory=1, with_stack=1, cuda_runtime_version=12040)
    print(f"{path.name}: {path.stat().st_size:,} bytes, {len(gpu.events):,} events")


def _step(gpu: SimulatedGpu, step: int) -> None:
    with gpu.function("train.py(22): next_batch"):
        nbytes = BATCH * WIDTH * _FLOAT
        with gpu.op("aten::stack", [[WIDTH]] * 2):
            batch = gpu.allocate(nbytes, on_device=False)
            gpu.work(150)
        on_device = _to_device(gpu, nbytes)
        gpu.release(nbytes, batch, on_device=False)
    activations = [(nbytes, on_device)]
    with gpu.function("train.py(8): forward"):
        for layer in range(LAYERS):
            activations += _layer(gpu, number=4 * layer + 100 * step)
    with gpu.function("train.py(28): loss"):
        _loss(gpu, number=4 * LAYERS + 100 * step)
    with gpu.function("train.py(33): backward"):
        _root_gradient(gpu)
        with gpu.engine():
            _backward(gpu, step)
    for nbytes, address in activations:
        gpu.release(nbytes, address)
    with gpu.function("adam.py(220): step"), gpu.scope("Optimizer.step#Adam.step"):
        _optimizer(gpu)
    with gpu.function("train.py(36): log"):
        _item(gpu)
        gpu.work(120)


def _to_device(gpu: SimulatedGpu, nbytes: int) -> int:
    """Copy a batch; returns its address."""
    dims = [[BATCH, WIDTH]]
    with gpu.op("aten::to", dims), gpu.op("aten::_to_copy", dims):
        with gpu.op("aten::empty_strided"):
            address = gpu.allocate(nbytes)
        with gpu.op("aten::copy_", dims):
            gpu.copy("HtoD", "Pageable -> Device", nbytes, waits=True)
            gpu.synchronize()
    return address


def _layer(gpu: SimulatedGpu, number: int) -> list[tuple[int, int]]:
    dims, weight = [[BATCH, WIDTH], [WIDTH, WIDTH]], BATCH * WIDTH * _FLOAT
    made = []
    gpu.work(12)
    with gpu.op("aten::linear", dims, **{"Sequence number": number}):
        with gpu.op("aten::t"):
            pass
        with gpu.op("aten::addmm", dims, **{"Sequence number": number}):
            made.append((weight, gpu.allocate(weight)))
            gpu.launch("ampere_sgemm_128x64_tn", 26, grid=256)
    with gpu.op("aten::layer_norm", dims[:1]), gpu.op("aten::native_layer_norm", dims[:1], **_number(number + 1)):
        made.append((weight, gpu.allocate(weight)))
        gpu.launch("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>", 5, grid=256)
    with gpu.op("aten::gelu", dims[:1], **_number(number + 2)):
        made.append((weight, gpu.allocate(weight)))
        gpu.launch("void at::native::vectorized_elementwise_kernel<4, GeluCUDAKernelImpl>", 4, grid=512)
    return made


def _number(sequence: int) -> dict[str, int]:
    return {"Sequence number": sequence}


def _loss(gpu: SimulatedGpu, number: int) -> None:
    dims = [[BATCH, CLASSES], [BATCH]]
    with gpu.op("aten::cross_entropy_loss", dims):
        with gpu.op("aten::log_softmax", dims[:1]), gpu.op("aten::_log_softmax", dims[:1], **_number(number)):
            gpu.launch("void (anonymous namespace)::softmax_warp_forward<float, float, float, 4, true>", 3, grid=64)
        with gpu.op("aten::nll_loss_nd", dims), gpu.op("aten::nll_loss_forward", dims, **_number(number + 1)):
            gpu.launch("void at::native::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>", 4, grid=1)


def _root_gradient(gpu: SimulatedGpu) -> None:
    with gpu.op("aten::ones_like"), gpu.op("aten::fill_"):
        gpu.launch("void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>", 2, grid=1)


def _node(gpu: SimulatedGpu, name: str, number: int, kernels: list[tuple[str, str, float, int]]) -> None:
    """A node of autograd: the ops that it ran, and the kernel of each."""
    linked = {**_number(number), "Fwd thread id": 1}
    with gpu.op(f"autograd::engine::evaluate_function: {name}", **linked), gpu.op(name, **linked):
        for op, kernel, microseconds, grid in kernels:
            with gpu.op(op, [[BATCH, WIDTH]]):
                gpu.launch(kernel, microseconds, grid=grid)


def _backward(gpu: SimulatedGpu, step: int) -> None:
    first = 100 * step
    loss = [("aten::_log_softmax_backward_data", "softmax_warp_backward<float, float, float, 4>", 3.0, 64)]
    _node(gpu, "LogSoftmaxBackward0", first + 4 * LAYERS, loss)
    for layer in reversed(range(LAYERS)):
        number = first + 4 * layer
        _node(gpu, "GeluBackward0", number + 2, [("aten::gelu_backward", "GeluBackwardCUDAKernelImpl", 8, 512)])
        norm = [("aten::native_layer_norm_backward", "layer_norm_grad_input_kernel_vectorized", 9, 256)]
        _node(gpu, "NativeLayerNormBackward0", number + 1, norm)
        products = [
            ("aten::mm", "ampere_sgemm_128x64_nn", 25.0, 256),
            ("aten::mm", "ampere_sgemm_128x64_nt", 27.0, 256),
            ("aten::sum", "void at::native::reduce_kernel<128, 4, ReduceOp<float>>", 6.0, 64),
        ]
        _node(gpu, "AddmmBackward0", number, products)
        _all_reduce(gpu, WIDTH * WIDTH)
    gpu.after(COMPUTE, COMMUNICATION)


def _all_reduce(gpu: SimulatedGpu, elements: int) -> None:
    facts = {
        "Collective name": "allreduce",
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "dtype": "Float",
        "Group size": 2,
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
    }
    with (
        gpu.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"),
        gpu.op("torch::autograd::AccumulateGrad"),
        gpu.op("c10d::allreduce_", [[elements]]),
        gpu.op("record_param_comms", [[elements]], **facts),
    ):
        gpu.after(COMMUNICATION, COMPUTE)
        gpu.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 95, grid=16, stream=COMMUNICATION, **facts)


def _optimizer(gpu: SimulatedGpu) -> None:
    for _ in range(2 * LAYERS):
        for op in ("mul_", "lerp_", "addcmul_", "sqrt", "div_", "addcdiv_"):
            with gpu.op(f"aten::{op}", [[WIDTH, WIDTH]]):
                gpu.launch(f"void at::native::vectorized_elementwise_kernel<4, {op}>", 4, grid=1024)
        gpu.work(20)


def _item(gpu: SimulatedGpu) -> None:
    with gpu.op("aten::item"), gpu.op("aten::_local_scalar_dense"):
        gpu.copy("DtoH", "Device -> Pinned", _FLOAT)
        gpu.synchronize()


def _evaluate(gpu: SimulatedGpu) -> None:
    """A compiled model, whose kernels no op launches, and a CUDA graph."""
    with gpu.op("Torch-Compiled Region: 0/0"):
        for number in range(2):
            gpu.launch(f"triton_poi_fused_addmm_gelu_{number}", 24, grid=128)
    gpu.work(40)
    with gpu.function("evaluate.py(5): replay"):
        gpu.graph(*((f"triton_red_fused_layer_norm_{number}", 14.0) for number in range(4)))
    gpu.synchronize()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
