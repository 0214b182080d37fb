#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/dit_tiny.safetensors from diffusers' CosmosTransformer3DModel.

A tiny model with random weights is run on two samples of different size, noise level, frame rate
and text, one after the other: what a pack of both must give. The file holds the weights, the inputs,
the outputs, a fixed cotangent for each output, and the gradient of every parameter summed over the
samples.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1 \
        safetensors==0.8.0
    venv/bin/python scripts/golden/dit.py
"""
import json
import pathlib

import diffusers
import torch
from diffusers import CosmosTransformer3DModel
from safetensors.torch import save_file

CONFIG = dict(in_channels=3, out_channels=2, num_attention_heads=2, attention_head_dim=12,
              num_layers=2, mlp_ratio=4.0, text_embed_dim=10, adaln_lora_dim=6, max_size=(4, 8, 12),
              patch_size=(1, 2, 2), rope_scale=(2.0, 1.0, 3.0), concat_padding_mask=True,
              extra_pos_embed_type="learnable")
SAMPLES = [dict(size=(3, 4, 8), fps=12, c_noise=0.31, text=4),
           dict(size=(1, 6, 4), fps=None, c_noise=-0.47, text=1)]


def main() -> None:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model = CosmosTransformer3DModel(**CONFIG)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(0, 0.2)
            if "norm" in name and parameter.ndim == 1:
                parameter.add_(1)
    tensors = {}
    for i, sample in enumerate(SAMPLES):
        frames, height, width = sample["size"]
        latent = torch.randn(1, CONFIG["in_channels"], frames, height, width)
        text = torch.randn(1, sample["text"], CONFIG["text_embed_dim"])
        output = model(hidden_states=latent, timestep=torch.tensor([sample["c_noise"]]),
                       encoder_hidden_states=text, fps=sample["fps"],
                       padding_mask=torch.zeros(1, 1, height, width), return_dict=False)[0]
        cotangent = torch.randn_like(output)
        output.backward(cotangent)
        tensors[f"input.{i}.latent"], tensors[f"input.{i}.text"] = latent[0], text[0]
        tensors[f"output.{i}"] = output[0].detach().contiguous()
        tensors[f"cotangent.{i}"] = cotangent[0]
    for name, parameter in model.named_parameters():
        tensors["weight." + name] = parameter.detach()
        tensors["gradient." + name] = parameter.grad
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/dit_tiny.safetensors"
    save_file(tensors, path, metadata={"config": json.dumps(CONFIG), "samples": json.dumps(SAMPLES),
                                       "torch": torch.__version__, "diffusers": diffusers.__version__})
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
