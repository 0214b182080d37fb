#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/answer_scores.json: how likely texts are as answers, by transformers' Qwen2.5-VL.

Of the models, prompts and clips that scripts/golden/qwen.py made: the natural logarithm of the probability of each
token of an answer of 45 tokens, of chance, behind the prompt, in one pass.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 safetensors
    venv/bin/python scripts/golden/answer_scores.py
"""
import json
import pathlib

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import Qwen2_5_VLForConditionalGeneration

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
TOKENS = 45


def main() -> None:
    torch.set_num_threads(1)
    golden, out = load_file(GOLDEN / "qwen/outputs.safetensors"), {}
    grids = dict(zip(("picture", "clip", "tall", "slow"), golden["grids"].tolist()))
    for name in ("tied", "untied"):
        model = Qwen2_5_VLForConditionalGeneration.from_pretrained(GOLDEN / "qwen" / name, dtype=torch.float32).eval()
        image, video = model.config.image_token_id, model.config.video_token_id
        for case in ("image", "video", "text"):
            prompt = golden[f"{name}.{case}.ids"].long()
            answer = torch.from_numpy(np.random.default_rng(len(case)).integers(0, 280, TOKENS))
            ids = torch.cat([prompt, answer])[None]
            given = {"input_ids": ids, "attention_mask": torch.ones_like(ids),
                     "mm_token_type_ids": ((ids == image).int() + 2 * (ids == video).int())}
            if case == "image":
                given |= {"pixel_values": golden["picture"], "image_grid_thw": torch.tensor([grids["picture"]])}
            if case == "video":
                given |= {"pixel_values_videos": golden["clip"], "video_grid_thw": torch.tensor([grids["clip"]]),
                          "second_per_grid_ts": torch.tensor([0.7])}
            model.model.rope_deltas = None
            with torch.no_grad():
                likely = model(**given).logits[0, len(prompt) - 1:-1].double().log_softmax(-1)
            found = likely[torch.arange(TOKENS), answer]
            out[f"{name}.{case}"] = {"answer": answer.tolist(), "log_probabilities": [round(x, 6) for x in found.tolist()]}
    (GOLDEN / "answer_scores.json").write_text(json.dumps(out) + "\n")


main()
