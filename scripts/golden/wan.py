#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/wan/{t2v,ti2v,i2v}.safetensors from diffusers' WanTransformer3DModel.

A tiny model with random weights is run on samples of different size, time and text, one after the
other: what a pack of all must give. A file holds the weights, the inputs, the outputs, a fixed
cotangent for each output, and the gradient of every parameter summed over the samples, under
diffusers' names. ti2v has a time for each token, which is 0 in the clean frames at the beginning of
some samples. i2v has as many channels more as the mask and the condition of Wan 2.2's have.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1 \
        safetensors==0.8.0
    venv/bin/python scripts/golden/wan.py
"""
import json
import pathlib

import diffusers
import torch
from diffusers import WanTransformer3DModel
from safetensors.torch import save_file

MODELS = {
    "t2v": (dict(num_attention_heads=2, attention_head_dim=12, in_channels=2, out_channels=2, text_dim=6,
                 freq_dim=8, ffn_dim=20, num_layers=1),
            [dict(size=(3, 4, 6), time=999, text=3), dict(size=(1, 6, 4), time=437.5, text=1),
             dict(size=(2, 2, 4), time=12.25, text=4)]),
    "ti2v": (dict(num_attention_heads=1, attention_head_dim=16, in_channels=3, out_channels=3, text_dim=4,
                  freq_dim=10, ffn_dim=12, num_layers=1),
             [dict(size=(2, 4, 4), time=625, text=2, clean=1), dict(size=(1, 4, 6), time=31, text=3),
              dict(size=(3, 2, 6), time=905, text=1, clean=2)]),
    "i2v": (dict(num_attention_heads=1, attention_head_dim=12, in_channels=8, out_channels=2, text_dim=5,
                 freq_dim=6, ffn_dim=16, num_layers=2),
            [dict(size=(2, 6, 4), time=750, text=3), dict(size=(3, 4, 2), time=250, text=2)]),
}


def times(sample: dict) -> torch.Tensor:
    if "clean" not in sample:
        return torch.tensor([sample["time"]], dtype=torch.float32)
    frames, height, width = sample["size"]
    of_tokens = torch.full((1, frames, height // 2 * (width // 2)), sample["time"], dtype=torch.float32)
    of_tokens[:, :sample["clean"]] = 0
    return of_tokens.flatten(1)


def passes(model: WanTransformer3DModel, config: dict, samples: list) -> dict:
    tensors = {}
    for i, sample in enumerate(samples):
        latent = torch.randn(1, config["in_channels"], *sample["size"])
        text = torch.randn(1, sample["text"], config["text_dim"])
        output = model(hidden_states=latent, timestep=times(sample), encoder_hidden_states=text,
                       return_dict=False)[0]
        cotangent = torch.randn_like(output)
        output.backward(cotangent)
        tensors[f"input.{i}.latent"], tensors[f"input.{i}.text"] = latent[0], text[0]
        tensors[f"output.{i}"] = output[0].detach().contiguous()
        tensors[f"cotangent.{i}"] = cotangent[0].contiguous()
    return tensors


def write(name: str, config: dict, samples: list) -> None:
    torch.manual_seed(11)
    model = WanTransformer3DModel(**config)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            parameter.normal_(0, 0.2)
            if "norm" in parameter_name and parameter_name.endswith("weight"):
                parameter.add_(1)
    tensors = passes(model, config, samples)
    for parameter_name, parameter in model.named_parameters():
        tensors["weight." + parameter_name] = parameter.detach()
        tensors["gradient." + parameter_name] = parameter.grad
    path = pathlib.Path(__file__).resolve().parents[2] / f"tests/golden/wan/{name}.safetensors"
    path.parent.mkdir(exist_ok=True)
    save_file(tensors, path, metadata={"config": json.dumps({"_class_name": type(model).__name__, **config}),
                                       "samples": json.dumps(samples), "torch": torch.__version__,
                                       "diffusers": diffusers.__version__})
    print(path, path.stat().st_size)


def main() -> None:
    torch.set_num_threads(1)
    for name, (config, samples) in MODELS.items():
        write(name, config, samples)


if __name__ == "__main__":
    main()
