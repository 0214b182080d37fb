#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/dit_tiny.safetensors and dit_v2w.safetensors from diffusers'
CosmosTransformer3DModel.

A tiny model with random weights is run on two samples of different size, noise level, frame rate
and text, one after the other: what a pack of both must give. A file holds the weights, the inputs,
the outputs, a fixed cotangent for each output, and the gradient of every parameter summed over the
samples. dit_tiny has learned positions and uneven RoPE scales; dit_v2w is a video-to-world model,
whose last input channel is the mask of the condition frames, without learned positions and with the
RoPE scales of Cosmos 14B; some of its queries and keys are so small that the epsilon of their norm
counts.

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

MODELS = {
    "dit_tiny": (
        dict(in_channels=3, out_channels=2, num_attention_heads=2, attention_head_dim=12,
             num_layers=2, mlp_ratio=4.0, text_embed_dim=10, adaln_lora_dim=6, max_size=(4, 8, 12),
             patch_size=(1, 2, 2), rope_scale=(2.0, 1.0, 3.0), concat_padding_mask=True,
             extra_pos_embed_type="learnable"),
        [dict(size=(3, 4, 8), fps=12, c_noise=0.31, text=4),
         dict(size=(1, 6, 4), fps=None, c_noise=-0.47, text=1)]),
    "dit_v2w": (
        dict(in_channels=3, out_channels=2, num_attention_heads=2, attention_head_dim=12,
             num_layers=1, mlp_ratio=2.0, text_embed_dim=6, adaln_lora_dim=4, max_size=(4, 8, 8),
             patch_size=(1, 2, 2), rope_scale=(2.0, 2.0, 2.0), concat_padding_mask=True,
             extra_pos_embed_type=None),
        [dict(size=(3, 4, 6), fps=30, c_noise=1.02, text=3, condition=1),
         dict(size=(4, 2, 4), fps=24, c_noise=-0.9, text=2, condition=2)]),
}


def passes(model: CosmosTransformer3DModel, config: dict, samples: list) -> dict:
    """Inputs, outputs and cotangents of the samples, drawn one by one; the gradients add up in the model."""
    tensors = {}
    for i, sample in enumerate(samples):
        frames, height, width = sample["size"]
        condition = sample.get("condition")
        mask, channels = None, config["in_channels"]
        if condition is not None:
            channels -= 1
            mask = torch.zeros(1, 1, frames, height, width)
            mask[:, :, :condition] = 1
        latent = torch.randn(1, channels, frames, height, width)
        text = torch.randn(1, sample["text"], config["text_embed_dim"])
        output = model(hidden_states=latent, timestep=torch.tensor([sample["c_noise"]]),
                       encoder_hidden_states=text, fps=sample["fps"], condition_mask=mask,
                       padding_mask=torch.zeros(1, 1, height, width), return_dict=False)[0]
        cotangent = torch.randn_like(output)
        output.backward(cotangent)
        tensors[f"input.{i}.latent"], tensors[f"input.{i}.text"] = latent[0], text[0]
        tensors[f"output.{i}"] = output[0].detach().contiguous()
        tensors[f"cotangent.{i}"] = cotangent[0]
    return tensors


def write(name: str, config: dict, samples: list) -> None:
    torch.manual_seed(7)
    model = CosmosTransformer3DModel(**config)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            parameter.normal_(0, 0.2)
            if "norm" in parameter_name and parameter.ndim == 1:
                parameter.add_(1)
            if name == "dit_v2w" and ("attn1.to_q" in parameter_name or "attn2.to_k" in parameter_name):
                parameter.mul_(0.01)
    tensors = passes(model, config, samples)
    for parameter_name, parameter in model.named_parameters():
        tensors["weight." + parameter_name] = parameter.detach()
        tensors["gradient." + parameter_name] = parameter.grad
    path = pathlib.Path(__file__).resolve().parents[2] / f"tests/golden/{name}.safetensors"
    save_file(tensors, path, metadata={"config": json.dumps(config),
                                       "samples": json.dumps(samples),
                                       "torch": torch.__version__, "diffusers": diffusers.__version__})
    print(path, path.stat().st_size)


def main() -> None:
    torch.set_num_threads(1)
    for name, (config, samples) in MODELS.items():
        write(name, config, samples)


if __name__ == "__main__":
    main()
