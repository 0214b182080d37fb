#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes pytorch_lora_weights.safetensors in tests/golden/dit_lora and in dit_lora/second, and
tests/golden/dit_lora.safetensors.

The first is an adapter of the model of tests/golden/dit_tiny.safetensors as diffusers itself writes it:
peft's adapters on attention, MLP, modulation and what stands around the blocks, with one rank and scale
for most of them and others for one kind. The second is of fewer matrices. The last file holds inputs, the
outputs of model and first adapter, a fixed cotangent for each output, the gradients of every A and B summed
over the samples, and the outputs with both adapters, weighted.

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

SECOND = LoraConfig(r=1, lora_alpha=2, target_modules=["to_q", "to_v", "ff.net.2", "proj_out"])
WEIGHTS = [0.75, -1.5]  # of the two, together


def draw(model: CosmosTransformer3DModel, adapter: str) -> dict:
    """Random values for an adapter; its parameters."""
    adapted = {n: p for n, p in model.named_parameters() if "lora_" in n and f".{adapter}." in n}
    with torch.no_grad():
        for parameter in adapted.values():  # B too: zero would hide A
            parameter.normal_(0, 0.3)
    return adapted


def save(model: CosmosTransformer3DModel, adapter: str, folder: pathlib.Path) -> None:
    settings = model.peft_config[adapter].to_dict()
    settings = {k: sorted(v) if isinstance(v, set) else v for k, v in settings.items()}
    CosmosLoraLoaderMixin.save_lora_weights(
        folder, transformer_lora_layers=get_peft_model_state_dict(model, adapter_name=adapter),
        transformer_lora_adapter_metadata=settings)


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
    adapted = draw(model, "default")
    tensors = passes(model, config, samples)
    for name, parameter in adapted.items():
        tensors["gradient." + name.replace(".default.", ".")] = parameter.grad
    save(model, "default", GOLDEN / "dit_lora")
    model.add_adapter(SECOND, "second")
    draw(model, "second")
    save(model, "second", GOLDEN / "dit_lora/second")
    model.set_adapters(["default", "second"], WEIGHTS)
    for i, sample in enumerate(samples):
        latent = tensors[f"input.{i}.latent"]
        with torch.no_grad():
            output = model(hidden_states=latent[None], timestep=torch.tensor([sample["c_noise"]]),
                           encoder_hidden_states=tensors[f"input.{i}.text"][None], fps=sample["fps"],
                           padding_mask=torch.zeros(1, 1, *latent.shape[2:]), return_dict=False)[0]
        tensors[f"together.{i}"] = output[0].contiguous()
    metadata = {"config": json.dumps(config), "samples": json.dumps(samples), "peft": peft.__version__,
                "torch": torch.__version__, "diffusers": diffusers.__version__}
    save_file(tensors, GOLDEN / "dit_lora.safetensors", metadata=metadata)
    for path in GOLDEN / "dit_lora.safetensors", *(GOLDEN / "dit_lora").rglob("*.safetensors"):
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
