#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/forms/: the adapters of tests/golden/dit_lora/second and the tensors of
tests/golden/torch/net.safetensors in the other forms that programs save them in.

  peft/adapter_model.bin, adapter_config.json     peft's names and settings, a pickle
  kohya.safetensors                               flat names, lora_down, lora_up, alpha
  shards/pytorch_model-0000N-of-00002.bin         with pytorch_model.bin.index.json
  variant/, variant_shards/                       what diffusers' save_pretrained(variant="fp16") writes

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 torchvision==0.29.2 diffusers==0.42.1 \
        safetensors==0.8.0
    venv/bin/python scripts/golden/forms.py
"""
import json
import pathlib

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
FORMS = GOLDEN / "forms"
PREFIX = "transformer."


def adapters() -> None:
    path = GOLDEN / "dit_lora/second/pytorch_lora_weights.safetensors"
    with safe_open(path, "pt") as file:
        packed = json.loads(file.metadata()["lora_adapter_metadata"])
    settings = {key.removeprefix(PREFIX): value for key, value in packed.items()}
    tensors = {name.removeprefix(PREFIX): tensor for name, tensor in load_file(path).items()}
    (FORMS / "peft").mkdir(parents=True, exist_ok=True)
    torch.save({"base_model.model." + name: tensor for name, tensor in tensors.items()},
               FORMS / "peft/adapter_model.bin")
    (FORMS / "peft/adapter_config.json").write_text(json.dumps(settings, sort_keys=True) + "\n")
    flat = {}
    for name, tensor in tensors.items():
        module, end = name.split(".lora_")
        stem = "lora_transformer_" + module.replace(".", "_")
        flat[stem + (".lora_down.weight" if end.startswith("A") else ".lora_up.weight")] = tensor
        flat[stem + ".alpha"] = torch.tensor(float(settings["lora_alpha"]))
    assert not settings.get("alpha_pattern") and not settings.get("use_rslora")
    save_file(flat, FORMS / "kohya.safetensors")


def weights() -> None:
    tensors = load_file(GOLDEN / "torch/net.safetensors")
    names = sorted(tensors)
    for folder in ("shards", "variant", "variant_shards"):
        (FORMS / folder).mkdir(parents=True, exist_ok=True)
    parts = {f"-{i + 1:05}-of-00002": names[i::2] for i in range(2)}
    for part, held in parts.items():
        torch.save({name: tensors[name] for name in held}, FORMS / f"shards/pytorch_model{part}.bin")
        save_file({name: tensors[name].half() for name in held},
                  FORMS / f"variant_shards/diffusion_pytorch_model.fp16{part}.safetensors")

    def write_index(path: str, begin: str, end: str) -> None:
        files = {name: begin + part + end for part, held in parts.items() for name in held}
        (FORMS / path).write_text(json.dumps({"metadata": {}, "weight_map": files}) + "\n")

    write_index("shards/pytorch_model.bin.index.json", "pytorch_model", ".bin")
    write_index("variant_shards/diffusion_pytorch_model.safetensors.index.fp16.json",
                "diffusion_pytorch_model.fp16", ".safetensors")
    save_file({name: tensor.half() for name, tensor in tensors.items()},
              FORMS / "variant/diffusion_pytorch_model.fp16.safetensors")


def main() -> None:
    adapters()
    weights()
    print({str(p.relative_to(FORMS)): p.stat().st_size for p in sorted(FORMS.rglob("*.*"))})


if __name__ == "__main__":
    main()
