#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The forward pass of dit_forward.cc in diffusers' CosmosTransformer3DModel, on the CPU.

    dit_forward_torch.py 100m|7b-slice f32|bf16 [RUNS]

In bf16 the whole module is bf16, as a pipeline loads it.
"""
import resource
import sys
import time

import torch
from diffusers import CosmosTransformer3DModel

CASES = {"100m": (dict(num_attention_heads=12, attention_head_dim=64, num_layers=8), 128),
         "7b-slice": (dict(num_layers=2), 512)}


def main():
    name, dtype = sys.argv[1], sys.argv[2]
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    config, text_tokens = CASES[name]
    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.bfloat16 if dtype == "bf16" else torch.float32)
    model = CosmosTransformer3DModel(**config).eval()
    frames, height, width = 8, 32, 32
    latent = torch.randn(1, 16, frames, height, width)
    text = torch.randn(1, text_tokens, 1024)
    mask = torch.zeros(1, 1, height, width)
    times = []
    for i in range(runs + 1):
        start = time.perf_counter()
        model(hidden_states=latent, timestep=torch.tensor([0.1]), encoder_hidden_states=text, fps=24,
              padding_mask=mask, return_dict=False)
        if i > 0:
            times.append(time.perf_counter() - start)
    times.sort()
    median, tokens = times[len(times) // 2], frames * height * width // 4
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"diffusers {name} {dtype} parameters {sum(p.numel() for p in model.parameters())} "
          f"tokens {tokens} best {1e3 * times[0]:.1f} ms median {1e3 * median:.1f} ms "
          f"peak {peak:.2f} GiB tokens/s {tokens / median:.0f}")


if __name__ == "__main__":
    main()
