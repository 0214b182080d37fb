#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The training step of train_step.cc in PyTorch: same model, same pack, same optimizer and average.

    train_step_torch.py quick|100m|2b|4b|7b f32|bf16 eager|compile|diffusers [STEPS] [--device cpu|cuda] [--json]

The model is the one below, which is written to be fast; "diffusers" takes diffusers' own module (100m
only). bf16 is autocast over f32 weights, as one trains; but the models of billions have weights, gradients and
moments in bf16, and no average: so it fits one GPU, moves least memory, and is the fastest form. The
samples of the pack have one size, so they are a batch here, which is the faster form too. Attention
is scaled_dot_product_attention, the norm of the queries and keys F.rms_norm, AdamW the fused one. On
a GPU each block is compiled by itself, which takes seconds and not minutes. --json prints a record of
gpu.h's form. With VFM_REHEARSAL in the environment (rehearsal.h) arguments are read, and nothing more.
"""
import argparse
import json
import os
import sys
import time

CASES = {
    "quick": dict(channels=24, heads=6, dim=32, layers=6, text=64, lora=32, mask=0, batch=16,
                  grid=(3, 4, 4), text_tokens=5, tables=(16, 16, 16)),
    "100m": dict(channels=16, heads=12, dim=64, layers=8, text=1024, lora=256, mask=1, batch=1,
                 grid=(8, 16, 16), text_tokens=128, tables=(128, 120, 120)),
}
for name, heads in ("2b", 16), ("4b", 24), ("7b", 32):
    CASES[name] = dict(channels=16, heads=heads, dim=128, layers=28, text=1024, lora=256, mask=1, batch=1,
                       grid=(8, 32, 32), text_tokens=512, tables=(128, 120, 120))


def parse():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("model", choices=CASES)
    parser.add_argument("dtype", choices=("f32", "bf16"))
    parser.add_argument("mode", choices=("eager", "compile", "diffusers"))
    parser.add_argument("steps", nargs="?", type=int, default=10)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__" and "VFM_REHEARSAL" in os.environ:  # where there is no torch
    print(json.dumps({"bench": "train", "case": parse().model, "impl": "torch", "error": "a rehearsal"}))
    sys.exit()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


def rotary(grid, dim):
    space = dim // 6 * 2
    angles = []
    for size, part, axis in zip(grid, (dim - 2 * space, space, space), range(3)):
        theta = 10000.0 ** (-torch.arange(0, part, 2).float() / part)
        a = torch.outer(torch.arange(size).float(), theta)
        shape = [1, 1, 1, -1]
        shape[axis] = size
        angles.append(a.view(shape).expand(*grid, -1))
    angles = torch.cat(angles * 2, -1).flatten(0, 2)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return (x * cos + torch.cat([-second, first], -1) * sin).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, c, width, context):
        super().__init__()
        self.heads, self.dim = c["heads"], c["dim"]
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k = nn.Linear(context, width, bias=False)
        self.to_v = nn.Linear(context, width, bias=False)
        self.to_out = nn.Linear(width, width, bias=False)
        self.norm_q = nn.Parameter(torch.ones(self.dim))
        self.norm_k = nn.Parameter(torch.ones(self.dim))

    def forward(self, x, context, angles):
        split = lambda t: t.unflatten(-1, (self.heads, self.dim)).transpose(1, 2)
        q, k, v = split(self.to_q(x)), split(self.to_k(context)), split(self.to_v(context))
        q = F.rms_norm(q, (self.dim,), self.norm_q.to(q.dtype), 1e-5)
        k = F.rms_norm(k, (self.dim,), self.norm_k.to(k.dtype), 1e-5)
        if angles is not None:
            q, k = rotate(q, *angles), rotate(k, *angles)
        out = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v)
        return self.to_out(out.transpose(1, 2).flatten(2))


class AdaLn(nn.Module):
    def __init__(self, width, lora, parts):
        super().__init__()
        self.parts = parts
        self.linear_1 = nn.Linear(width, lora, bias=False)
        self.linear_2 = nn.Linear(lora, parts * width, bias=False)

    def forward(self, x, embedding, shared):
        parts = self.linear_2(self.linear_1(embedding)) + shared[..., :self.linear_2.out_features]
        shift, scale, *gate = parts.unsqueeze(1).chunk(self.parts, -1)
        return F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale) + shift, *gate


class Block(nn.Module):
    def __init__(self, c, width):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (AdaLn(width, c["lora"], 3) for _ in range(3))
        self.attn1 = Attention(c, width, width)
        self.attn2 = Attention(c, width, c["text"])
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x, text, embedding, shared, angles, positions):
        x = x + positions
        h, gate = self.norm1(x, embedding, shared)
        x = x + gate * self.attn1(h, h, angles)
        h, gate = self.norm2(x, embedding, shared)
        x = x + gate * self.attn2(h, text, None)
        h, gate = self.norm3(x, embedding, shared)
        return x + gate * self.down(F.gelu(self.up(h)))


class Dit(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["heads"] * c["dim"]
        self.grid = c["grid"]
        self.embed = nn.Linear((c["channels"] + c["mask"]) * 4, width, bias=False)
        self.tables = nn.ParameterList(
            nn.Parameter(0.02 * torch.randn(n, width)) for n in c["tables"])
        self.time_1 = nn.Linear(width, width, bias=False)
        self.time_2 = nn.Linear(width, 3 * width, bias=False)
        self.time_norm = nn.Parameter(torch.ones(width))
        self.blocks = nn.ModuleList(Block(c, width) for _ in range(c["layers"]))
        self.norm_out = AdaLn(width, c["lora"], 2)
        self.project = nn.Linear(width, c["channels"] * 4, bias=False)
        self.angles = rotary(c["grid"], c["dim"])

    def forward(self, patches, wave, text):
        (t, h, w), (tt, th, tw) = self.grid, self.tables
        e = (tt[:t, None, None] + th[None, :h, None] + tw[None, None, :w]).flatten(0, 2)
        positions = e / (1e-6 + e.square().mean(-1, keepdim=True).sqrt())
        shared = self.time_2(F.silu(self.time_1(wave)))
        embedding = F.silu(F.rms_norm(wave, wave.shape[-1:], self.time_norm, 1e-6))
        x = self.embed(patches)
        for block in self.blocks:
            x = block(x, text, embedding, shared, self.angles, positions)
        return self.project(self.norm_out(x, embedding, shared)[0])


class Diffusers(nn.Module):
    """CosmosTransformer3DModel, on the latents that the patches are of."""

    def __init__(self, c):
        from diffusers import CosmosTransformer3DModel
        super().__init__()
        self.model = CosmosTransformer3DModel(num_attention_heads=c["heads"], attention_head_dim=c["dim"],
                                              num_layers=c["layers"])
        frames, height, width = c["grid"]
        self.latent = torch.randn(c["batch"], c["channels"], frames, 2 * height, 2 * width)
        self.mask = torch.zeros(1, 1, 2 * height, 2 * width)
        self.time = torch.full((c["batch"],), 0.1)

    def forward(self, patches, wave, text):
        out = self.model(hidden_states=self.latent, timestep=self.time, encoder_hidden_states=text, fps=24,
                         padding_mask=self.mask, return_dict=False)[0]
        return out.reshape(patches.shape[0], patches.shape[1], -1)


def measure(which, dtype, mode, steps, device):
    """Seconds and processor seconds of each step, the parameters' number, and tokens of a step."""
    c = CASES[which]
    torch.manual_seed(1)
    pure = which.endswith("b")  # bf16 throughout
    if pure:
        torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = Diffusers(c) if mode == "diffusers" else Dit(c)
        tokens = c["grid"][0] * c["grid"][1] * c["grid"][2]
        patches = torch.randn(c["batch"], tokens, (c["channels"] + c["mask"]) * 4)
        wave = torch.randn(c["batch"], c["heads"] * c["dim"])
        text = torch.randn(c["batch"], c["text_tokens"], c["text"])
        target = torch.randn(c["batch"], tokens, c["channels"] * 4)
    if mode != "diffusers":
        model.angles = tuple(a.to(device) for a in model.angles)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), fused=True)
    parameters = list(model.parameters())
    average = [] if pure else [p.detach().clone() for p in parameters]
    run = model
    if mode == "compile" and device == "cuda":
        for block in model.blocks:
            block.compile()
    elif mode == "compile":
        run = torch.compile(model)
    times, cpu = [], []
    for i in range(steps + 2):
        start, busy = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=dtype == "bf16" and not pure):
            output = run(patches, wave, text)
        F.mse_loss(output.float(), target.float()).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        with torch.no_grad():
            if average:
                torch._foreach_lerp_(average, parameters, 0.01)
        if device == "cuda":
            torch.cuda.synchronize()
        if i >= 2:
            times.append(time.perf_counter() - start)
            cpu.append(time.process_time() - busy)
    times.sort()
    return times, cpu, sum(p.numel() for p in parameters), tokens * c["batch"]


def main():
    options = parse()
    which, dtype, mode, device = options.model, options.dtype, options.mode, options.device
    named = {"bench": "train", "case": which, "impl": "torch"}
    try:
        times, cpu, parameters, tokens = measure(which, dtype, mode, options.steps, device)
    except Exception as error:
        if not options.json:
            raise
        print(json.dumps({**named, "error": str(error).split("\n")[0].replace('"', " ")}))
        return
    median = times[len(times) // 2]
    if options.json:
        peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else 0
        print(json.dumps({**named, "value": round(tokens / median, 1), "unit": "tokens/s",
                          "ms": round(1e3 * median, 2), "memory_gib": round(peak, 2)}))
        return
    print(f"torch-{mode} {which} {dtype} parameters {parameters} tokens {tokens} "
          f"best {1e3 * times[0]:.2f} ms median {1e3 * median:.2f} ms "
          f"cpu {1e3 * sum(cpu) / len(cpu):.2f} ms tokens/s {tokens / median:.0f}")


if __name__ == "__main__":
    main()
