#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/t5/ from transformers' T5EncoderModel and UMT5EncoderModel.

Three tiny models with random weights, as save_pretrained writes them: v1_0 (relu, stored in f16) as a
pipeline with text_encoder/ and tokenizer/, v1_1 (gated gelu, bf16) and umt5 (a bias in each layer, f32) as
single folders; and outputs.safetensors with what each computes in f32 for a batch of texts of different
lengths, some longer than relative_attention_max_distance. Run scripts/golden/text_tokenizers.py first: the
tokenizers are from there.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 safetensors==0.8.0
    venv/bin/python scripts/golden/t5.py
"""
import json
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import T5Config, T5EncoderModel, UMT5Config, UMT5EncoderModel

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
TINY = dict(vocab_size=530, d_model=16, d_kv=8, d_ff=40, num_layers=2, num_heads=3)
MODELS = {
    "v1_0": (T5EncoderModel, T5Config(**TINY, feed_forward_proj="relu"), torch.float16),
    "v1_1": (T5EncoderModel, T5Config(**TINY, feed_forward_proj="gated-gelu", tie_word_embeddings=False,
                                      relative_attention_num_buckets=12, relative_attention_max_distance=20),
             torch.bfloat16),
    "umt5": (UMT5EncoderModel, UMT5Config(**TINY, feed_forward_proj="gated-gelu"), torch.float32),
}
LENGTHS = (7, 140, 1, 20)


def main() -> None:
    torch.manual_seed(3)
    torch.set_num_threads(1)
    shutil.rmtree(GOLDEN / "t5", ignore_errors=True)
    tokenizers = load_file(GOLDEN / "tokenizers.safetensors")
    ids = torch.randint(3, TINY["vocab_size"], (len(LENGTHS), max(LENGTHS)))
    mask = torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]
    tensors = {"ids": ids[mask].int(), "lengths": torch.tensor(LENGTHS, dtype=torch.int32)}
    for name, (model_class, config, dtype) in MODELS.items():
        model = model_class(config).eval()
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                parameter.normal_(0, 1 if "bias" in key or "shared" in key else 0.35)
                if "norm" in key:
                    parameter.add_(1)
            # Inputs so large that f16 would overflow inside the feed-forward part.
            if name == "v1_0":
                model.encoder.block[0].layer[1].layer_norm.weight.mul_(200)
                model.encoder.block[0].layer[1].DenseReluDense.wi.weight.mul_(200)
        folder = GOLDEN / "t5" / name / ("text_encoder" if name == "v1_0" else "")
        model.to(dtype).save_pretrained(folder)
        (folder / "model.safetensors").chmod(0o644)
        if name == "v1_0":
            with torch.no_grad():
                assert not model(input_ids=ids[:1, :7]).last_hidden_state.isfinite().all()
        model = model.float()
        with torch.no_grad():
            output = model(input_ids=ids * mask, attention_mask=mask.long()).last_hidden_state
        tensors["output." + name] = output[mask].contiguous()
        print(name, output.abs().max().item(), output.std().item())
    for name, file, to in (("v1_0/tokenizer", "t5.json", "tokenizer.json"), ("v1_1", "t5.model", "spiece.model"),
                           ("umt5", "t5.model", "spiece.model")):
        folder = GOLDEN / "t5" / name
        folder.mkdir(exist_ok=True)
        (folder / to).write_bytes(tokenizers["file." + file].numpy().tobytes())
    (GOLDEN / "t5/v1_0/model_index.json").write_text(json.dumps(
        {"_class_name": "CosmosTextToWorldPipeline", "text_encoder": ["transformers", "T5EncoderModel"],
         "tokenizer": ["transformers", "T5TokenizerFast"]}, indent=2) + "\n")
    save_file(tensors, GOLDEN / "t5/outputs.safetensors",
              metadata={"torch": torch.__version__, "transformers": transformers.__version__})
    (GOLDEN / "t5/outputs.safetensors").chmod(0o644)
    print(sum(f.stat().st_size for f in (GOLDEN / "t5").rglob("*") if f.is_file()))


main()
