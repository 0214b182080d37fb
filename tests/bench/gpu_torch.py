#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of gpu_memory.cc, gpu_attention.cc, gpu_gemm.cc and gpu_video.cc: the same sizes and
counts, and records of the same form with "impl": "torch".

    gpu_torch.py memory|attention|gemm|video|version

The element-wise functions are compiled by torch.compile, as one would train with; attention is
scaled_dot_product_attention as it chooses its own body. With VFM_REHEARSAL in the environment
(rehearsal.h) arguments are read, and nothing more.
"""
import json
import os
import sys

if "VFM_REHEARSAL" not in os.environ:
    import torch
    import torch.nn.functional as F

TOKENS, WIDTH, HEADS, DIM = 8192, 4096, 32, 128


def record(bench, case, **more):
    print(json.dumps({"bench": bench, "case": case, "impl": "torch", **more}), flush=True)


def seconds_per_call(launch, budget=0.3):
    def timed(calls):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            launch()
        end.record()
        end.synchronize()
        return 1e-3 * begin.elapsed_time(end) / calls

    timed(2)
    calls = int(min(max(budget / 5 / timed(1), 1), 100))
    return sorted(timed(calls) for _ in range(5))[2]


def report(bench, case, amount, unit, launch):
    """`amount` is what a call moves or computes, in units of a second."""
    try:
        record(bench, case, value=amount / seconds_per_call(launch), unit=unit)
    except Exception as error:  # no memory, an op that is not there: said, and the rest goes on
        record(bench, case, error=str(error).split("\n")[0].replace('"', " "))


def random(*shape, dtype=None):
    return torch.randn(*shape, device="cuda", dtype=dtype or torch.bfloat16)


def modulate(x, branch, shift, scale, gate):
    stream = x + gate * branch
    return stream, (F.layer_norm(stream, stream.shape[-1:], eps=1e-6) * (1 + scale) + shift).bfloat16()


def norm_rope(qkv, query, key, cos, sin):
    q, k, v = qkv.unflatten(-1, (3, HEADS, DIM)).unbind(1)

    def turn(t, weight):
        t = F.rms_norm(t.float(), (DIM,), weight, 1e-5)
        first, second = t.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1).bfloat16()

    return torch.stack([turn(q, query), turn(k, key), v], 1).flatten(1)


def backward_of(outputs, inputs, gradients):
    return lambda: torch.autograd.grad(outputs, inputs, gradients, retain_graph=True)


def memory():
    size = TOKENS * WIDTH
    a = torch.zeros(2 << 30, device="cuda", dtype=torch.uint8)
    b = torch.empty_like(a)
    report("memory", "copy", 2e-9 * a.numel(), "GB/s", lambda: b.copy_(a))
    del a, b

    x = random(TOKENS, WIDTH, dtype=torch.float32).requires_grad_()
    branch = random(TOKENS, WIDTH).requires_grad_()
    rows = [random(WIDTH, dtype=torch.float32).requires_grad_() for _ in range(3)]
    fused = torch.compile(modulate)
    with torch.no_grad():
        report("memory", "modulate forward", 12e-9 * size, "GB/s", lambda: fused(x, branch, *rows))
    outputs = fused(x, branch, *rows)
    report("memory", "modulate backward", 18e-9 * size, "GB/s",
           backward_of(outputs, [x, branch, *rows], [torch.randn_like(o) for o in outputs]))
    del x, branch, outputs

    qkv = random(TOKENS, 3 * WIDTH).requires_grad_()
    weights = [random(DIM, dtype=torch.float32).requires_grad_() for _ in range(2)]
    angles = [random(TOKENS, 1, DIM // 2, dtype=torch.float32) for _ in range(2)]
    table = 8e-9 * TOKENS * DIM / 2
    fused = torch.compile(norm_rope)
    with torch.no_grad():
        report("memory", "qk_norm_rope forward", 12e-9 * size + table, "GB/s",
               lambda: fused(qkv, *weights, *angles))
    output = fused(qkv, *weights, *angles)
    report("memory", "qk_norm_rope backward", 16e-9 * size + table, "GB/s",
           backward_of(output, [qkv, *weights], torch.randn_like(output)))
    del qkv, output

    x = random(TOKENS, 4 * WIDTH).requires_grad_()
    with torch.no_grad():
        report("memory", "gelu forward", 4e-9 * x.numel(), "GB/s", lambda: F.gelu(x))
    y = F.gelu(x)
    report("memory", "gelu backward", 6e-9 * x.numel(), "GB/s",
           backward_of(y, [x], torch.randn_like(y)))
    del x, y

    # PyTorch has no split master, so nothing to set beside that one.
    count = 4096 * 4096 * 4
    parameters = [random(count, dtype=torch.float32).requires_grad_() for _ in range(4)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, fused=True)
    report("memory", "adamw f32", 28e-9 * 4 * count, "GB/s", optimizer.step)


def attention():
    for tokens in (8192, 16384, 32768):
        flops = 4e-12 * tokens * tokens * HEADS * DIM
        q, k, v = (random(1, HEADS, tokens, DIM).requires_grad_() for _ in range(3))
        with torch.no_grad():
            report("attention", f"forward {tokens}", flops, "TFLOP/s",
                   lambda: F.scaled_dot_product_attention(q, k, v))
        out = F.scaled_dot_product_attention(q, k, v)
        report("attention", f"backward {tokens}", 2.5 * flops, "TFLOP/s",
               backward_of(out, [q, k, v], torch.randn_like(out)))
        del q, k, v, out


def gemm():
    total = [0.0, 0.0]

    def product(case, flops, launch):
        try:
            seconds = seconds_per_call(launch)
        except Exception as error:
            return record("gemm", case, error=str(error).split("\n")[0].replace('"', " "))
        total[0] += flops
        total[1] += seconds
        record("gemm", case, value=1e-12 * flops / seconds, unit="TFLOP/s")

    for inner, outer in ((4096, 12288), (4096, 4096), (4096, 16384), (16384, 4096)):
        x, w, dy = random(TOKENS, inner), 0.02 * random(outer, inner), random(TOKENS, outer)
        flops, name = 2 * TOKENS * inner * outer, f"{inner} -> {outer}"
        product(f"{name} forward", flops, lambda: torch.matmul(x, w.t()))
        product(f"{name} dgrad", flops, lambda: torch.matmul(dy, w))
        product(f"{name} wgrad", flops, lambda: torch.matmul(dy.t(), x))
    if total[1]:
        record("gemm", "average", value=1e-12 * total[0] / total[1], unit="TFLOP/s")


def video():
    def conv(name, shape, channels, kernel, padding):
        x = random(shape[0], channels, *shape[1:]).to(memory_format=torch.channels_last)
        x.requires_grad_()
        w = (0.02 * random(channels, channels, *kernel)).to(memory_format=torch.channels_last)
        w.requires_grad_()
        with torch.no_grad():
            dy = torch.randn_like(F.conv2d(x, w, padding=padding))
        flops = 2e-12 * dy.numel() * kernel[0] * kernel[1] * channels
        with torch.no_grad():
            report("video", f"{name} forward", flops, "TFLOP/s",
                   lambda: F.conv2d(x, w, padding=padding))
        y = F.conv2d(x, w, padding=padding)
        report("video", f"{name} dgrad", flops, "TFLOP/s", backward_of(y, [x], dy))
        report("video", f"{name} wgrad", flops, "TFLOP/s", backward_of(y, [w], dy))

    conv("3x3, 128 channels", (8, 176, 320), 128, (3, 3), 1)
    conv("3x3, 512 channels", (8, 88, 160), 512, (3, 3), 1)
    conv("in time, 256 channels", (1, 10, 176 * 320), 256, (3, 1), 0)

    x = random(8, 128, 176, 320).to(memory_format=torch.channels_last).requires_grad_()
    weight, bias = (random(128).requires_grad_() for _ in range(2))
    fused = torch.compile(lambda x: F.silu(F.group_norm(x, 1, weight, bias, 1e-6)))
    size = 2e-9 * x.numel()
    with torch.no_grad():
        report("video", "norm and silu forward", 2 * size, "GB/s", lambda: fused(x))
    dy = torch.randn_like(x)
    report("video", "norm and silu, forward and backward", 5 * size, "GB/s",
           lambda: torch.autograd.grad(fused(x), [x, weight, bias], dy))
    del x, dy

    q, k, v = (random(2, 1, 88 * 160, 512) for _ in range(3))
    report("video", "attention in a frame forward", 4e-12 * 2 * (88 * 160)**2 * 512, "TFLOP/s",
           lambda: F.scaled_dot_product_attention(q, k, v))


def version():
    record("version", "torch", text=torch.__version__, cudnn=torch.backends.cudnn.version())


PARTS = {"memory": memory, "attention": attention, "gemm": gemm, "video": video, "version": version}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in PARTS:
        sys.exit("usage: gpu_torch.py " + "|".join(PARTS))
    if "VFM_REHEARSAL" in os.environ:
        record(sys.argv[1], "all", error="a rehearsal")
    else:
        PARTS[sys.argv[1]]()
