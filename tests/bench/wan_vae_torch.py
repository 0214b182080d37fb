#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What wan_vae.cc measures, with diffusers' AutoencoderKLWan in PyTorch.

    wan_vae_torch.py 2.1|2.2 FRAMES HEIGHT WIDTH f32|bf16 [ROUNDS]
"""
import resource
import sys
import time

import torch
from diffusers import AutoencoderKLWan

CONFIGS = {"2.1": {}, "2.2": dict(base_dim=160, decoder_base_dim=256, z_dim=48, is_residual=True, in_channels=12,
                                  out_channels=12, patch_size=2, scale_factor_spatial=16)}


def main() -> None:
    kind = sys.argv[1]
    frames, height, width = map(int, sys.argv[2:5])
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[sys.argv[5]]
    rounds = int(sys.argv[6]) if len(sys.argv) > 6 else 2
    torch.manual_seed(0)
    model = AutoencoderKLWan(**CONFIGS[kind]).to(dtype).eval()
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
            if i == 0 and rounds > 0:
                continue
            processor += time.process_time() - cpu
            encode, decode = min(encode, middle - start), min(decode, end - middle)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"diffusers {kind} {frames}x{height}x{width} {sys.argv[5]} encode {1e3 * encode:.0f} ms "
          f"decode {1e3 * decode:.0f} ms cpu {processor:.1f} s peak {peak:.0f} MiB")


if __name__ == "__main__":
    main()
