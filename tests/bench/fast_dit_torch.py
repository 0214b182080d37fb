#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step of a stack of Fast-DiT's blocks, in PyTorch: seconds a block.

    fast_dit_torch.py f32|bf16 WIDTH HEADS TOKENS RANK BATCH [STEPS]

The block is that of the DiT paper (Peebles and Xie, 2023) as Fast-DiT trains it: six vectors of an adaptive norm, of a
matrix or, with a RANK, of two of low rank; fused attention without a norm of queries and keys; a GELU by tanh; gradient
checkpointing off, so that it is as fast as it can be. bf16 is autocast, as there. Measured are stacks of two and of six
blocks with AdamW (fused); a block is a quarter of the difference, of the median steps.
"""
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, rank):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        down = [nn.Linear(width, rank, bias=False), nn.Linear(rank, 6 * width)] if rank else [nn.Linear(width, 6 * width)]
        self.modulation = nn.Sequential(nn.SiLU(), *down)

    def forward(self, x, condition):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(condition)[:, None].chunk(6, dim=-1)
        batch, tokens, width = x.shape
        h = self.norm1(x) * (1 + scale1) + shift1
        q, k, v = self.qkv(h).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, width)
        x = x + gate1 * self.out(h)
        h = self.norm2(x) * (1 + scale2) + shift2
        return x + gate2 * self.narrow(F.gelu(self.wide(h), approximate="tanh"))


def seconds(blocks, dtype, width, heads, tokens, rank, batch, steps):
    torch.manual_seed(0)
    stack = nn.ModuleList(Block(width, heads, rank) for _ in range(blocks))
    optimizer = torch.optim.AdamW(stack.parameters(), fused=True)
    x, condition = torch.randn(batch, tokens, width), torch.randn(batch, width)
    times = []
    for _ in range(steps + 1):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
            h = x
            for block in stack:
                h = block(h, condition)
            loss = h.float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def main():
    dtype, *numbers = sys.argv[1:]
    width, heads, tokens, rank, batch, *rest = map(int, numbers)
    steps = rest[0] if rest else 5
    torch.set_num_threads(2)
    two, six = (seconds(n, dtype, width, heads, tokens, rank, batch, steps) for n in (2, 6))
    print(f"{(six - two) / 4:.6f}")


main()
