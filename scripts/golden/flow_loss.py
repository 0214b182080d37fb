#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/flow_loss.safetensors: what a network is trained on by flow matching.

Times are those of diffusers' FlowMatchEulerDiscreteScheduler with a shift, and noise is added as its training
scripts add it. The last two samples have given frames, with a time and noise of their own. The loss is that of the
velocity, in float64; gradients are autograd's. The noise is that of vfm::Random(7, noise, 3, sample number).

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 diffusers==0.42.0 safetensors==0.8.0 numpy
    venv/bin/python scripts/golden/flow_loss.py
"""
import pathlib

import torch
from diffusers import FlowMatchEulerDiscreteScheduler
from safetensors.torch import save_file
from v2w_loss import normals

TARGET = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/flow_loss.safetensors"
SHIFT = 3.0
SAMPLES = [  # channels, frames, height, width; given frames; their time; place among the scheduler's 1000 times
    ((2, 1, 4, 2), 0, 0.0, 999),
    ((2, 4, 2, 6), 0, 0.0, 400),
    ((2, 3, 4, 2), 2, 0.05, 700),
    ((2, 2, 2, 2), 1, 0.6, 10),
]


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(6)
    scheduler = FlowMatchEulerDiscreteScheduler(shift=SHIFT)
    tensors = {}
    for i, (shape, given, augment, place) in enumerate(SAMPLES):
        x0 = torch.randn(shape).double()
        velocity = torch.randn(shape).double().requires_grad_()
        noise = normals(x0.numel(), i).reshape(shape)
        mark = torch.zeros(1, *shape[1:], dtype=torch.float64)
        mark[:, :given] = 1

        t = scheduler.sigmas[place].double()
        noisy = (1 - t) * x0 + t * noise
        x = mark * ((1 - augment) * x0 + augment * noise) + (1 - mark) * noisy
        loss = ((1 - mark) * (velocity - (noise - x0))**2).sum()
        loss.backward()
        for name, value in {"x0": x0, "output": velocity, "input": torch.cat([x, mark]), "loss": loss,
                            "gradient": velocity.grad, "level": t,
                            "time": scheduler.timesteps[place]}.items():
            tensors[f"{name}.{i}"] = value.detach().float().reshape(-1).contiguous()
    save_file(tensors, TARGET)
    print(TARGET.stat().st_size, [tensors[f"loss.{i}"].item() for i in range(len(SAMPLES))])


if __name__ == "__main__":
    main()
