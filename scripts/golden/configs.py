#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/config_defaults.json: every field of the configurations that we read, as the
libraries fill it in when a config.json leaves it out.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 diffusers==0.42.1 transformers==5.23.0
    venv/bin/python scripts/golden/configs.py
"""
import inspect
import json
import pathlib

from diffusers import AutoencoderKLCosmos, CosmosTransformer3DModel, WanTransformer3DModel
from transformers import T5Config, UMT5Config

T5_FIELDS = ["vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_heads",
             "relative_attention_num_buckets", "relative_attention_max_distance",
             "layer_norm_epsilon", "feed_forward_proj", "pad_token_id", "eos_token_id",
             "is_gated_act", "dense_act_fn"]


def constructor_defaults(model) -> dict:
    parameters = inspect.signature(model.__init__).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def main() -> None:
    defaults = {model.__name__: constructor_defaults(model)
                for model in (AutoencoderKLCosmos, CosmosTransformer3DModel, WanTransformer3DModel)}
    for name, config in ("t5", T5Config()), ("umt5", UMT5Config()):
        defaults[name] = {field: getattr(config, field) for field in T5_FIELDS}
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/config_defaults.json"
    lines = [json.dumps(name) + ": " + json.dumps(fields) for name, fields in defaults.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
