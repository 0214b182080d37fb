#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The forward pass of dit_forward.cc in diffusers' modules, on the CPU.

    dit_forward_torch.py 100m|7b-slice|wan-1.3b-slice|wan-14b-slice f32|bf16 [RUNS]

In bf16 the module is bf16, as a pipeline loads it; of Wan a few small parameters stay f32.
"""
import resource
import sys
import time

import torch
from diffusers import CosmosTransformer3DModel, WanTransformer3DModel

# Configuration, text tokens, and the latent's frames, height and width.
COSMOS = {"100m": (dict(num_attention_heads=12, attention_head_dim=64, num_layers=8), 128, (8, 32, 32)),
          "7b-slice": (dict(num_layers=2), 512, (8, 32, 32))}
WAN = {"wan-1.3b-slice": (dict(num_attention_heads=12, ffn_dim=8960, num_layers=2), 512, (5, 30, 52)),
       "wan-14b-slice": (dict(num_layers=1), 512, (5, 30, 52))}


def make(name):
    """The module and what its forward pass takes."""
    if name in COSMOS:
        config, text_tokens, size = COSMOS[name]
        module = CosmosTransformer3DModel(**config)
        inputs = dict(timestep=torch.tensor([0.1]), fps=24, padding_mask=torch.zeros(1, 1, *size[1:]),
                      encoder_hidden_states=torch.randn(1, text_tokens, 1024))
    else:
        config, text_tokens, size = WAN[name]
        module = WanTransformer3DModel(**config)
        inputs = dict(timestep=torch.tensor([500]), encoder_hidden_states=torch.randn(1, text_tokens, 4096))
        for parameter_name, p in module.named_parameters():
            if set(parameter_name.split(".")) & set(module._keep_in_fp32_modules):
                p.data = p.data.float()
    return module.eval(), dict(inputs, hidden_states=torch.randn(1, 16, *size), return_dict=False)


def main():
    name, dtype = sys.argv[1], sys.argv[2]
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.bfloat16 if dtype == "bf16" else torch.float32)
    model, inputs = make(name)
    times, processor = [], 0.0
    for i in range(runs + 1):
        cpu, start = time.process_time(), time.perf_counter()
        model(**inputs)
        if i == 0:
            continue
        times.append(time.perf_counter() - start)
        processor += time.process_time() - cpu
    times.sort()
    frames, height, width = inputs["hidden_states"].shape[2:]
    median, tokens = times[len(times) // 2], frames * height * width // 4
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"diffusers {name} {dtype} parameters {sum(p.numel() for p in model.parameters())} "
          f"tokens {tokens} best {1e3 * times[0]:.1f} ms median {1e3 * median:.1f} ms "
          f"cpu {processor:.1f} s peak {peak:.2f} GiB tokens/s {tokens / median:.0f}")


if __name__ == "__main__":
    main()
