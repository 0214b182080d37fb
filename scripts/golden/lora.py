#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/dit_lora/pytorch_lora_weights.safetensors and tests/golden/dit_lora.safetensors.

The first is an adapter of the model of tests/golden/dit_tiny.safetensors as diffusers itself writes it:
peft's adapters on attention, MLP, modulation and what stands around the blocks, with one rank and scale
for most of them and others for one kind. The second holds inputs, the outputs of model and adapter, a
fixed cotangent for each output, and the gradients of every A and B summed over the samples.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1 \
        safetensors==0.8.0 peft==0.21.2
    venv/bin/python scripts/golden/lora.py
"""
import json
import pathlib

import diffusers
import peft
import torch
from diffusers import CosmosTransformer3DModel
from diffusers.loaders import CosmosLoraLoaderMixin
from peft import LoraConfig
from peft.utils import get_peft_model_state_dict
from safetensors import safe_open
from safetensors.torch import save_file

from dit import passes

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
LORA = LoraConfig(
    r=2, lora_alpha=3, rank_pattern={"ff.net.2": 3}, alpha_pattern={"ff.net.2": 1.5},
    target_modules=["to_q", "to_k", "to_v", "to_out.0", "ff.net.0.proj", "ff.net.2", "norm1.linear_1",
                    "norm3.linear_2", "t_embedder.linear_2", "patch_embed.proj", "proj_out",
                    "norm_out.linear_2"])


def main() -> None:
    torch.set_num_threads(1)
    with safe_open(GOLDEN / "dit_tiny.safetensors", "pt") as file:
        config = json.loads(file.metadata()["config"])
        samples = json.loads(file.metadata()["samples"])
        weights = {n.removeprefix("weight."): file.get_tensor(n) for n in file.keys()
                   if n.startswith("weight.")}
    model = CosmosTransformer3DModel(**config)
    model.load_state_dict(weights)
    model.requires_grad_(False)
    model.add_adapter(LORA)
    torch.manual_seed(11)
    adapted = {n: p for n, p in model.named_parameters() if "lora_" in n}
    with torch.no_grad():
        for parameter in adapted.values():  # B too: zero would hide A
            parameter.normal_(0, 0.3)
    tensors = passes(model, config, samples)
    for name, parameter in adapted.items():
        tensors["gradient." + name.replace(".default.", ".")] = parameter.grad
    metadata = {"config": json.dumps(config), "samples": json.dumps(samples), "peft": peft.__version__,
                "torch": torch.__version__, "diffusers": diffusers.__version__}
    save_file(tensors, GOLDEN / "dit_lora.safetensors", metadata=metadata)

    settings = model.peft_config["default"].to_dict()
    settings = {k: sorted(v) if isinstance(v, set) else v for k, v in settings.items()}
    CosmosLoraLoaderMixin.save_lora_weights(
        GOLDEN / "dit_lora", transformer_lora_layers=get_peft_model_state_dict(model),
        transformer_lora_adapter_metadata=settings)
    for path in GOLDEN / "dit_lora.safetensors", *(GOLDEN / "dit_lora").iterdir():
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
