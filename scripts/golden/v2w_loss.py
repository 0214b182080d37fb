#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/v2w_loss.safetensors: what a video-to-world model is trained on.

A reading of its own, in PyTorch and float64, of what the Cosmos paper and programs say of video-to-world
training. Given frames have noise of their own, are scaled for their own noise level, and are marked by a
channel; where they are, the clean latent takes the place of the estimate, so the loss there is nothing; and
unlike there the mean is taken over the other elements alone. The noise is that of vfm::Random(7, noise, 3,
sample number), drawn here once more. Gradients are autograd's, through the estimate and not the short form
of the loss that vfm computes.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 safetensors==0.8.0 numpy
    venv/bin/python scripts/golden/v2w_loss.py
"""
import math
import pathlib

import torch
from safetensors.torch import save_file

TARGET = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/v2w_loss.safetensors"
SIGMA_DATA = 0.5
SEED, NOISE, STEP = 7, 2, 3
SAMPLES = [  # channels, frames, height, width; given frames; their noise level; the sample's
    ((2, 4, 2, 6), 2, 0.05, 1.7),
    ((2, 3, 4, 2), 0, 0.3, 0.02),
    ((2, 2, 2, 2), 1, 3.0, 40.0),
]


def philox(counter: list, key: list) -> list:
    """Philox4x32-10 of Salmon et al., 2011."""
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def normals(count: int, sample: int) -> torch.Tensor:
    name = philox([NOISE, STEP, sample, 0], [SEED, 0])
    stream = [name[0] ^ name[2], name[1] ^ name[3]]
    values = []
    for block in range((count + 3) // 4):
        words = [(word + 0.5) / 2**32 for word in philox([block, 0, *stream], [SEED, 0])]
        for a, b in (words[:2], words[2:]):
            radius, angle = math.sqrt(-2 * math.log(a)), 2 * math.pi * b
            values += [radius * math.cos(angle), radius * math.sin(angle)]
    return torch.tensor(values[:count], dtype=torch.float64)


def c_in(sigma: float) -> float:
    return 1 / math.sqrt(sigma**2 + SIGMA_DATA**2)


def main() -> None:
    torch.manual_seed(5)
    tensors = {}
    for i, (shape, given, augment, sigma) in enumerate(SAMPLES):
        x0 = (0.5 * torch.randn(shape)).double()
        output = torch.randn(shape).double().requires_grad_()
        noise = normals(x0.numel(), i).reshape(shape)
        mark = torch.zeros(1, *shape[1:], dtype=torch.float64)
        mark[:, :given] = 1

        noisy = x0 + sigma * noise
        augmented = (x0 + augment * noise) * c_in(augment) / c_in(sigma)
        x = mark * augmented + (1 - mark) * noisy
        skip = SIGMA_DATA**2 / (sigma**2 + SIGMA_DATA**2)
        out = sigma * SIGMA_DATA * c_in(sigma)
        estimate = skip * x + out * output
        estimate = mark * x0 + (1 - mark) * estimate
        weight = (sigma**2 + SIGMA_DATA**2) / (sigma * SIGMA_DATA)**2
        loss = (weight * (estimate - x0)**2).sum()
        loss.backward()
        for name, value in {"x0": x0, "output": output, "noise": noise,
                            "input": torch.cat([c_in(sigma) * x, mark]), "loss": loss,
                            "gradient": output.grad}.items():
            tensors[f"{name}.{i}"] = value.detach().float().reshape(-1).contiguous()
    save_file(tensors, TARGET)
    print(TARGET.stat().st_size, [tensors[f"loss.{i}"].item() for i in range(len(SAMPLES))])


if __name__ == "__main__":
    main()
