#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/cosmos_ar/: what NVIDIA's own autoregressive network of Cosmos-1.0 computes.

The network is `Transformer` of cosmos_predict1/autoregressive/networks/transformer.py, run from a clone of
nvidia-cosmos/cosmos-predict1, in f32 on the CPU; nothing of it is written here a second time. Configurations
come from its own create_inference_config for the published models, and are then made narrow: what that sets
for 12B (without text: YaRN, no start token) and 5B (with text: a start token and absolute positions).

  base/            model.pt under its names, with the wrapper's "model."; config.json
  base_te/         the same by its pytorch_to_te_state_dict: names of Transformer Engine
  video2world/     model.safetensors, whose table is filled up by its expand_vocab; config.json
  NAME.safetensors tokens, text, logits, the loss of each token (PyTorch's cross_entropy of the next code),
                   the gradient of every parameter of their sum, and the codes that its prefill and
                   decode_one_token write after a first frame, with its cache of keys and values

What is not there, because no rank shares the network and there is no GPU: megatron.core is an empty module,
tensors stay where they are when they are moved to CUDA.

    git clone https://github.com/nvidia-cosmos/cosmos-predict1 && git -C cosmos-predict1 checkout 4ed35fa
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 numpy safetensors==0.8.0 einops==0.8.2 \
        attrs==26.1.0 omegaconf==2.4.0 loguru==0.7.3
    venv/bin/python scripts/golden/cosmos_autoregressive.py cosmos-predict1
"""
import json
import math
import pathlib
import shutil
import sys
import types

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/cosmos_ar"
NARROW = dict(dim=20, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=12, ffn_hidden_size=28, vocab_size=16,
              precision="float32", max_seq_len=64, tensor_model_parallel_size=1)
SHAPE = [3, 2, 3]


class Anything(types.ModuleType):
    """A module whose every name is a class that is never used."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (torch.nn.Module,), {"__init__": lambda self, *args, **kwargs: None})


def stand_in(*names):
    for name in names:
        sys.modules[name] = Anything(name)
        sys.modules[name].__path__ = []


def on_the_cpu(transformer):
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.cuda.current_device = lambda: "cpu"
    sinusoids = transformer.SinCosPosEmbAxisTE
    transformer.SinCosPosEmbAxisTE = lambda **options: sinusoids(device="cpu", **options)


def settings_of(name, yarn_rows):
    """ModelConfig's fields of a published model, made narrow."""
    from cosmos_predict1.autoregressive.configs.base.model import ModelConfig
    from cosmos_predict1.autoregressive.configs.base import model_config as published

    specs = published.get_model_arch_specs(model_size="12b" if name == "base" else "4b",
                                           model_family="cosmos", pretrained=True)
    text = dict(insert_cross_attn=True, insert_cross_attn_every_k_layers=1, context_dim=6,
                apply_abs_pos_emb=True) if name == "video2world" else {}
    if specs.get("apply_yarn"):
        # Of so few positions as these none would turn as often as the published betas.
        specs |= dict(original_latent_shape=[3, yarn_rows, 64], yarn_beta_fast=0.4, yarn_beta_slow=0.01)
    config = ModelConfig(rope_dim="3D", use_qk_normalization=True, pad_to_multiple_of=64,
                         video_latent_shape=SHAPE, num_video_frames=33, original_seq_len=8192,
                         **(specs | text | NARROW))
    return config


def narrow_model(name, generator):
    from cosmos_predict1.autoregressive.networks import transformer

    config = settings_of(name, yarn_rows=4)
    training_type = "text_to_video" if name == "video2world" else "video_to_video"
    model = transformer.Transformer(config, tokenizer_config=types.SimpleNamespace(training_type=training_type))
    if name == "video2world":
        model.expand_vocab(config.vocab_size + 1, expand_output_layer=False)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise * 0.3 + (1.0 if parameter.dim() == 1 else 0.0))
    return config, model


def forget(model):
    for layer in model.layers:
        layer.attention.init_kv_cache()


def run(name, config, model, generator):
    forget(model)
    start = [config.vocab_size] if name == "video2world" else []
    codes = torch.randint(config.vocab_size, (math.prod(SHAPE),), generator=generator)
    tokens = torch.cat([torch.tensor(start, dtype=torch.long), codes])[None]
    text = torch.randn(1, 5, config.context_dim, generator=generator) if start else None
    positions = torch.arange(tokens.shape[1])
    logits = model(tokens=tokens, input_pos=positions, context=text)
    losses = F.cross_entropy(logits[0, :-1], tokens[0, 1:], reduction="none")
    losses.sum().backward()
    values = {"codes": codes.to(torch.int32), "logits": logits[0].detach(), "losses": losses.detach(),
              "written": write(config, model, tokens[:, :len(start) + 6], text, len(start))}
    if text is not None:
        values["text"] = text[0]
    return values | {"gradient." + key: value.grad for key, value in model.named_parameters()}


@torch.no_grad()
def write(config, model, given, text, start):
    from cosmos_predict1.autoregressive.utils.sampling import decode_one_token, prefill

    forget(model)
    tokens = given[0].tolist()
    following = prefill(model, torch.arange(len(tokens)), given, temperature=0, context=text)
    while len(tokens) < start + math.prod(SHAPE):
        tokens.append(int(following))
        at = torch.tensor([len(tokens) - 1])
        following = decode_one_token(model, torch.tensor([tokens[-1:]]), at, temperature=0, context=text)[0]
    return torch.tensor(tokens[start:], dtype=torch.int32)


def write_config(folder, config):
    fields = {field: getattr(config, field) for field in (
        "dim", "n_layers", "n_heads", "n_kv_heads", "head_dim", "ffn_hidden_size", "vocab_size", "norm_type",
        "norm_eps", "rope_theta", "apply_abs_pos_emb", "apply_yarn", "yarn_scale", "yarn_beta_fast",
        "yarn_beta_slow", "original_latent_shape", "rope_dim", "insert_cross_attn",
        "insert_cross_attn_every_k_layers", "context_dim")}
    (folder / "config.json").write_text(json.dumps(fields, indent=2) + "\n")


def main():
    sys.path.insert(0, sys.argv[1])
    stand_in("megatron", "megatron.core", "megatron.core.parallel_state", "megatron.core.tensor_parallel",
             "megatron.core.tensor_parallel.mappings", "megatron.core.tensor_parallel.utils")
    # The configurations name tokenizers and a trainer that are not made here.
    stand_in("cosmos_predict1.autoregressive.configs.base.tokenizer", "cosmos_predict1.utils.config",
             "cosmos_predict1.utils.lazy_config", "cosmos_predict1.utils.log",
             "cosmos_predict1.autoregressive.tokenizer.image_text_tokenizer",
             "cosmos_predict1.autoregressive.tokenizer.text_tokenizer",
             "cosmos_predict1.autoregressive.training.model")
    sys.modules["cosmos_predict1.utils.log"].debug = lambda *args, **kwargs: None
    from cosmos_predict1.autoregressive.networks import transformer
    from cosmos_predict1.autoregressive.utils import checkpoint

    torch.set_num_threads(1)
    on_the_cpu(transformer)
    shutil.rmtree(FOLDER, ignore_errors=True)
    for seed, name in enumerate(("base", "video2world")):
        generator = torch.Generator().manual_seed(seed)
        config, model = narrow_model(name, generator)
        state = {key: value.detach().clone() for key, value in model.state_dict().items()}
        folder = FOLDER / name
        folder.mkdir(parents=True)
        write_config(folder, config)
        if name == "base":
            torch.save({"model." + key: value for key, value in state.items()}, folder / "model.pt")
            (FOLDER / "base_te").mkdir()
            settings = {key: config[key] for key in ("head_dim", "dim", "n_heads", "pytorch_rope_version")}
            torch.save(checkpoint.pytorch_to_te_state_dict(state, settings), FOLDER / "base_te/model.pt")
            write_config(FOLDER / "base_te", config)
        else:
            save_file(state, folder / "model.safetensors")
        values = run(name, config, model, generator)
        save_file({key: value.contiguous() for key, value in values.items()},
                  FOLDER / f"{name}.safetensors", metadata={"torch": torch.__version__})
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file():
            print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
