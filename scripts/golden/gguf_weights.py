#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/gguf/ by the gguf package and transformers.

blocks.gguf has a tensor of each type that is read, with random blocks; blocks.safetensors the numbers that the gguf
package makes of them. The folder model is a tiny Qwen2.5-VL as a user of llama.cpp has it: config.json, a text model in
two parts and the tower that sees, with the names and shapes of llama.cpp's converter. outputs.safetensors has what
transformers computes with the numbers of the same blocks: logits of the last tokens of prompts of
scripts/golden/qwen.py, which runs first, and what generate() writes greedily.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 gguf==0.19.0
    venv/bin/python scripts/golden/gguf_weights.py
"""
import pathlib
import shutil

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from safetensors.torch import load_file, save_file
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
GOLDEN = TESTS / "gguf"
VISION = {"depth": 2, "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 44, "num_heads": 2,
          "in_channels": 3, "patch_size": 4, "temporal_patch_size": 2, "spatial_merge_size": 2, "window_size": 16,
          "fullatt_block_indexes": [1], "tokens_per_second": 2, "out_hidden_size": 32}
TEXT = {"hidden_size": 32, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "rms_norm_eps": 1e-6}
LAYER = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
BLOCK = {"ln1": "norm1", "ln2": "norm2", "attn_out": "attn.proj", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
TYPES = {"attn_k": Type.F16, "attn_v": Type.BF16, "attn_output": Type.F32, "output": Type.BF16}

random = np.random.default_rng(11)


def halves(count: int, scale: float) -> np.ndarray:
    return (random.uniform(0.5, 1, count) * scale).astype(np.float16).view(np.uint8).reshape(count, 2)


def random_blocks(kind: Type, rows: int, columns: int, size: float) -> np.ndarray:
    """Blocks of 256 of any bits, of numbers as large as about `size`."""
    count = rows * columns // 256
    codes = random.integers(0, 256, (count, 208 if kind == Type.Q6_K else 140), dtype=np.uint8)
    if kind == Type.Q6_K:
        blocks = np.concatenate([codes, halves(count, size / 2000)], axis=1)
    else:
        blocks = np.concatenate([halves(count, size / 250), halves(count, size / 35), codes], axis=1)
    return blocks.reshape(rows, -1)


class File:
    """One file, and the numbers of what was put into it, under the names of transformers."""

    def __init__(self, name: str, architecture: str, numbers: dict) -> None:
        self.writer = gguf.GGUFWriter(GOLDEN / name, architecture)
        self.numbers = numbers

    def stored(self, name: str, kind: Type, shape: tuple, size: float) -> np.ndarray:
        """Of a tensor of noise; returns its numbers."""
        if kind in (Type.Q4_K, Type.Q6_K):
            data = random_blocks(kind, *shape, size)
        else:
            data = gguf.quantize(random.normal(0, size, shape).astype(np.float32), kind)
        numbers = gguf.dequantize(data, kind)
        # What is no raw type of numpy is given as bytes, of which the shape follows.
        self.writer.add_tensor(name, data, raw_dtype=kind if data.dtype == np.uint8 else None)
        return numbers.astype(np.float32).reshape(shape)

    def put(self, name: str, to: str, shape: tuple, kind: Type = None, size: float = 0.3) -> None:
        if len(shape) == 1:
            kind = Type.F32
        elif kind is None:
            kind = TYPES.get(name.split(".")[-2], Type.Q8_0)
        self.numbers[to] = self.stored(name, kind, shape, size)

    def norm(self, name: str, to: str, width: int) -> None:
        numbers = (1 + random.normal(0, 0.2, width)).astype(np.float32)
        self.writer.add_tensor(name, numbers)
        self.numbers[to] = numbers

    def close(self) -> None:
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def write_blocks() -> None:
    numbers = {}
    out = File("blocks.gguf", "none", numbers)
    out.writer.add_array("list.of.numbers", [1, 2, 3])
    out.writer.add_array("list.of.texts", ["a", "été", ""])
    out.writer.add_float32("a.number", 0.5)
    out.writer.add_bool("a.truth", True)
    for kind, shape in {Type.F32: (3, 5), Type.F16: (3, 5), Type.BF16: (2, 3, 4), Type.Q8_0: (5, 96),
                        Type.Q4_K: (3, 512), Type.Q6_K: (3, 512)}.items():
        numbers[kind.name] = out.stored(kind.name, kind, shape, 1.0)
    out.close()
    save_file({key: torch.from_numpy(value.copy()) for key, value in numbers.items()}, GOLDEN / "blocks.safetensors")


def write_text(numbers: dict, vocabulary: int) -> None:
    width, inner, keys = TEXT["hidden_size"], TEXT["intermediate_size"], 16
    parts = []
    for number in range(2):
        part = File(f"model/text-Q4_K_M-0000{number + 1}-of-00002.gguf", "qwen2vl", numbers)
        if number == 1:  # as llama-gguf-split has it: the first part alone says what it is
            part.writer.kv_data[0].clear()
        for key, value in (("split.no", number), ("split.count", 2)):
            part.writer.add_uint16(key, value)
        parts.append(part)
    first, second = parts
    first.writer.add_uint32("qwen2vl.block_count", TEXT["num_hidden_layers"])
    model = "model.language_model."
    first.put("token_embd.weight", model + "embed_tokens.weight", (vocabulary, width), size=1.0)
    for i, out in enumerate(parts):
        shapes = {"attn_q": (width, width), "attn_k": (keys, width), "attn_v": (keys, width),
                  "attn_output": (width, width), "ffn_gate": (inner, width), "ffn_up": (inner, width),
                  "ffn_down": (width, inner)}
        for own, other in LAYER.items():
            name, to = f"blk.{i}.{own}", f"{model}layers.{i}.{other}"
            if own.endswith("norm"):
                out.norm(name + ".weight", to + ".weight", width)
                continue
            kind = None if own != "ffn_down" else Type.Q4_K if i == 0 else Type.Q6_K
            out.put(name + ".weight", to + ".weight", shapes[own], kind)
            if own in ("attn_q", "attn_k", "attn_v"):
                out.put(name + ".bias", to + ".bias", shapes[own][:1])
    second.norm("output_norm.weight", model + "norm.weight", width)
    second.put("output.weight", "lm_head.weight", (vocabulary, width))
    for part in parts:
        part.close()


def write_tower(numbers: dict) -> None:
    out = File("model/mmproj-F16.gguf", "clip", numbers)
    out.writer.add_string("clip.projector_type", "qwen2.5vl_merger")
    out.writer.add_bool("clip.has_vision_encoder", True)
    width, inner, merged, sees = VISION["hidden_size"], VISION["intermediate_size"], 128, "model.visual."
    two = [out.stored(f"v.patch_embd.weight{end}", Type.F16, (width, 3, 4, 4), 0.2) for end in ("", ".1")]
    numbers[sees + "patch_embed.proj.weight"] = np.stack(two, axis=2)
    for i in range(VISION["depth"]):
        # Of the second block they do not lie below each other.
        order = "qkv" if i == 0 else "vqk"
        for kind in ("weight", "bias"):
            shape = (width, width) if kind == "weight" else (width,)
            parts = {part: out.stored(f"v.blk.{i}.attn_{part}.{kind}", Type.Q8_0 if kind == "weight" else Type.F32,
                                      shape, 0.3) for part in order}
            numbers[f"{sees}blocks.{i}.attn.qkv.{kind}"] = np.concatenate([parts[part] for part in "qkv"])
        for own, other in BLOCK.items():
            name, to = f"v.blk.{i}.{own}", f"{sees}blocks.{i}.{other}"
            if own.startswith("ln"):
                out.norm(name + ".weight", to + ".weight", width)
                continue
            shape = {"attn_out": (width, width), "ffn_down": (width, inner)}.get(own, (inner, width))
            # Rows of 44 columns are no whole blocks, as those of 3,420 in the published models are none.
            out.put(name + ".weight", to + ".weight", shape, Type.F16 if own == "ffn_down" else Type.Q8_0)
            out.put(name + ".bias", to + ".bias", shape[:1])
    out.norm("v.post_ln.weight", sees + "merger.ln_q.weight", width)
    out.put("mm.0.weight", sees + "merger.mlp.0.weight", (merged, merged), size=0.15)
    out.put("mm.0.bias", sees + "merger.mlp.0.bias", (merged,))
    out.put("mm.2.weight", sees + "merger.mlp.2.weight", (TEXT["hidden_size"], merged), Type.F16, 0.15)
    out.put("mm.2.bias", sees + "merger.mlp.2.bias", (TEXT["hidden_size"],))
    out.close()


def main() -> None:
    torch.set_num_threads(1)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    (GOLDEN / "model").mkdir(parents=True)
    write_blocks()
    like = Qwen2_5_VLConfig.from_pretrained(TESTS / "qwen/untied")
    vocabulary, end = like.text_config.vocab_size, like.text_config.eos_token_id
    config = Qwen2_5_VLConfig(
        text_config={**TEXT, "vocab_size": vocabulary, "eos_token_id": end, "bos_token_id": like.text_config.bos_token_id,
                     "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [1, 1, 2]}},
        vision_config=VISION, image_token_id=like.image_token_id, video_token_id=like.video_token_id,
        vision_start_token_id=like.vision_start_token_id, vision_end_token_id=like.vision_end_token_id,
        tie_word_embeddings=False)
    config.save_pretrained(GOLDEN / "model")
    numbers = {}
    write_text(numbers, vocabulary)
    write_tower(numbers)
    model = Qwen2_5_VLForConditionalGeneration(config).eval()
    model.load_state_dict({key: torch.from_numpy(value.copy()) for key, value in numbers.items()})
    qwen = load_file(TESTS / "qwen/outputs.safetensors")
    outputs = {}
    for case, seen in (("image", {"pixel_values": qwen["picture"], "image_grid_thw": qwen["grids"][:1]}),
                       ("video", {"pixel_values_videos": qwen["clip"], "video_grid_thw": qwen["grids"][1:2],
                                  "second_per_grid_ts": torch.tensor([0.7])}), ("text", {})):
        ids = qwen[f"untied.{case}.ids"].long()
        kinds = [1 if i == config.image_token_id else 2 if i == config.video_token_id else 0 for i in ids.tolist()]
        given = {"input_ids": ids[None], "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
                 "mm_token_type_ids": torch.tensor([kinds], dtype=torch.int32), **seen}
        with torch.no_grad():
            model.model.rope_deltas = None
            outputs[f"{case}.logits"] = model(**given).logits[0, -2:].contiguous()
            model.model.rope_deltas = None
            written = model.generate(**given, max_new_tokens=12, do_sample=False, eos_token_id=end, pad_token_id=0)
        outputs[f"{case}.greedy"] = written[0, len(ids):].to(torch.int32).contiguous()
        print(case, outputs[f"{case}.greedy"].tolist())
    save_file(outputs, GOLDEN / "outputs.safetensors",
              metadata={"torch": torch.__version__, "transformers": transformers.__version__})
    for f in sorted(GOLDEN.rglob("*")):
        if f.is_file():
            f.chmod(0o644)
            print(f.relative_to(GOLDEN), f.stat().st_size)


main()
