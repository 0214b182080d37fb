#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cosmos_tokenizer.cc measures, with diffusers' AutoencoderKLCosmos in PyTorch.

    cosmos_tokenizer_torch.py FRAMES HEIGHT WIDTH f32|bf16 [ROUNDS]

PyTorch has no avg_pool3d of bf16 on the CPU, so that the module does not run there: here the two it has
compute in f32.
"""
import resource
import sys
import time

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKLCosmos

avg_pool3d = F.avg_pool3d
F.avg_pool3d = lambda x, **sizes: avg_pool3d(x.float(), **sizes).to(x.dtype)


def main() -> None:
    frames, height, width = map(int, sys.argv[1:4])
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[sys.argv[4]]
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 2
    torch.manual_seed(0)
    model = AutoencoderKLCosmos().to(dtype).eval()
    pixels = torch.rand(1, 3, frames, height, width, dtype=dtype)
    encode = decode = 1e30
    processor = 0.0
    with torch.inference_mode():
        for i in range(rounds + 1):
            cpu, start = time.process_time(), time.perf_counter()
            latent = model.encode(pixels).latent_dist.mode()
            middle = time.perf_counter()
            model.decode(latent)
            end = time.perf_counter()
            if i == 0:
                continue
            processor += time.process_time() - cpu
            encode, decode = min(encode, middle - start), min(decode, end - middle)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"diffusers {frames}x{height}x{width} {sys.argv[4]} encode {1e3 * encode:.0f} ms "
          f"decode {1e3 * decode:.0f} ms cpu {processor:.1f} s peak {peak:.0f} MiB "
          f"{1 / (encode + decode):.4f}")


if __name__ == "__main__":
    main()
