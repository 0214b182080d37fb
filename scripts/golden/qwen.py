#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/qwen/ from transformers' Qwen2.5-VL.

Tiny models with random weights and a byte-level tokenizer of their own: tied (bf16, one file, names and config.json as
the published folders have them, the table of words used twice) and untied (f16, two files, names and config.json of
transformers 5). outputs.safetensors has what each computes in f32: the patches of pictures of noise
(scripts/golden/pictures.py), the logits of all tokens of prompts (an image, a video, several turns with both, text
alone), and what generate() writes greedily, with and without a repetition penalty. "long" is a video whose time is
longer than its sides: places go on after the largest number, as the paper says, and are given to transformers, which
since version 5 goes on after the longer side.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 pillow==12.3.0 xxhash
    venv/bin/python scripts/golden/qwen.py
"""
import json
import pathlib
import shutil

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Regex
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize

from pictures import noise

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/qwen"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
           "<|video_pad|>"]
CORPUS = ["You are a helpful assistant.", "system user assistant", "Describe the video in detail.",
          "A red circle moves to the left of a blue square."]
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)"
         r"|\s+")
TEMPLATE = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system\n"
    "You are a helpful assistant.<|im_end|>\n{% endif %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}<|im_end|>\n{% else %}"
    "{% for content in message['content'] %}{% if content['type'] == 'image' %}<|vision_start|><|image_pad|>"
    "<|vision_end|>{% elif content['type'] == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
SIZES = {"min_pixels": 256, "max_pixels": 1024}
INPUT = {"image_processor_type": "Qwen2VLImageProcessor", "do_resize": True, "resample": 3, "do_rescale": True,
         "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.48145466, 0.4578275, 0.40821073],
         "image_std": [0.26862954, 0.26130258, 0.27577711], "do_convert_rgb": True, "patch_size": 4,
         "temporal_patch_size": 2, "merge_size": 2, **SIZES}
VISION = {"depth": 3, "hidden_act": "silu", "hidden_size": 16, "intermediate_size": 20, "num_heads": 2,
          "in_channels": 3, "patch_size": 4, "temporal_patch_size": 2, "spatial_merge_size": 2, "window_size": 16,
          "fullatt_block_indexes": [1], "tokens_per_second": 2}
TEXT = {"intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "rms_norm_eps": 1e-6}
MODELS = {"tied": (torch.bfloat16, 32, [1, 1, 2], True), "untied": (torch.float16, 24, [2, 1, 0], False)}


def tokenizer() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False,
                                                                                  use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=290, show_progress=False,
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return made


def video_patches(frames: list) -> tuple:
    """Each frame as a picture; then pairs of frames in the order of Qwen2VLVideoProcessor.patchify."""
    processor = Qwen2VLImageProcessorPil(**{key: value for key, value in INPUT.items() if not key.endswith("_type")})
    each = [processor([frame], return_tensors="np") for frame in frames]
    _, rows, columns = each[0]["image_grid_thw"][0]
    # A picture's patches have every frame twice.
    one = [np.asarray(e["pixel_values"]).reshape(-1, 3, 2, 16)[:, :, 0] for e in each]
    if len(one) % 2:
        one.append(one[-1])
    pairs = [np.stack([one[i], one[i + 1]], axis=2).reshape(-1, 96) for i in range(0, len(one), 2)]
    return torch.from_numpy(np.concatenate(pairs)), [len(pairs), int(rows), int(columns)]


def places(ids: list, sights: list, image: int, video: int, per_second: int) -> torch.Tensor:
    """As Wang et al., "Qwen2-VL" (2024), section 2.1 has them: what follows begins after the largest number."""
    out, at, following, waiting = [], 0, 0, list(sights)
    while at < len(ids):
        if ids[at] not in (image, video):
            out.append([following] * 3)
            at, following = at + 1, following + 1
            continue
        (frames, rows, columns), seconds = waiting.pop(0)
        own = [[following + int(t * seconds * per_second), following + r, following + c]
               for t in range(frames) for r in range(rows // 2) for c in range(columns // 2)]
        out, at, following = out + own, at + len(own), max(max(p) for p in own) + 1
    return torch.tensor(out).T[:, None]


def main() -> None:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    words = tokenizer()
    id_of = {token: words.token_to_id(token) for token in SPECIAL}
    image, video = id_of["<|image_pad|>"], id_of["<|video_pad|>"]
    processor = Qwen2VLImageProcessorPil(**{key: value for key, value in INPUT.items() if not key.endswith("_type")})
    made = processor([noise(40, 30, 0)], return_tensors="pt")
    picture, picture_grid = made["pixel_values"], made["image_grid_thw"][0].tolist()
    clip, clip_grid = video_patches([noise(33, 21, 10 + i) for i in range(5)])
    tall, tall_grid = video_patches([noise(9, 60, 20 + i) for i in range(2)])
    slow, slow_grid = video_patches([noise(16, 16, 30 + i) for i in range(8)])
    tensors = {"picture": picture, "clip": clip, "tall": tall, "slow": slow,
               "grids": torch.tensor([picture_grid, clip_grid, tall_grid, slow_grid])}

    def pads(token: str, grid: list) -> str:
        return "<|vision_start|>" + token * (grid[0] * grid[1] * grid[2] // 4) + "<|vision_end|>"

    system = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    ask = "<|im_end|>\n<|im_start|>assistant\n"
    user = "<|im_start|>user\n"
    cases = {
        "image": (system + user + pads("<|image_pad|>", picture_grid) + "Describe." + ask, ["picture"]),
        "video": (system + user + pads("<|video_pad|>", clip_grid) + "Describe the video in detail." + ask, ["clip"]),
        "turns": (system + user + pads("<|video_pad|>", tall_grid) + "What moves?" + ask + "A circle.<|im_end|>\n" + user
                  + "And in" + pads("<|image_pad|>", picture_grid) + "or" + pads("<|video_pad|>", clip_grid) + "?" + ask,
                  ["tall", "picture", "clip"]),
        "text": (system + user + "How are you? été 東京" + ask, []),
        "long": (user + pads("<|video_pad|>", slow_grid) + "Go on." + ask, ["slow"]),
    }
    grids = {"picture": picture_grid, "clip": clip_grid, "tall": tall_grid, "slow": slow_grid}
    seconds = {"clip": 0.7, "tall": 1.0, "slow": 1.5}
    for name, (dtype, width, sections, tied) in MODELS.items():
        config = Qwen2_5_VLConfig(
            text_config={**TEXT, "hidden_size": width, "vocab_size": words.get_vocab_size(),
                         "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections},
                         "eos_token_id": id_of["<|im_end|>"], "bos_token_id": id_of["<|endoftext|>"]},
            vision_config={**VISION, "out_hidden_size": width}, image_token_id=image, video_token_id=video,
            vision_start_token_id=id_of["<|vision_start|>"], vision_end_token_id=id_of["<|vision_end|>"],
            tie_word_embeddings=tied)
        model = Qwen2_5_VLForConditionalGeneration(config).eval()
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                parameter.normal_(0, 0.2 if tied else 0.4)
                if "norm" in key or "ln_q" in key:
                    parameter.add_(1)
        model.to(dtype)
        folder = GOLDEN / name
        folder.mkdir(parents=True)
        write_folder(model, config, folder, tied)
        words.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer.json").write_text(json.dumps(json.loads((folder / "tokenizer.json").read_text()),
                                                          separators=(",", ":")))
        (folder / "preprocessor_config.json").write_text(json.dumps(INPUT, indent=1) + "\n")
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"chat_template": TEMPLATE, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}) + "\n")
        (folder / "generation_config.json").write_text(
            json.dumps({"eos_token_id": [id_of["<|im_end|>"], id_of["<|endoftext|>"]]}) + "\n")
        # Anew: the tables of frequencies must not be those that were rounded with the weights.
        rounded = {key: value.float() for key, value in model.state_dict().items()}
        model = Qwen2_5_VLForConditionalGeneration(config).eval()
        model.load_state_dict(rounded)
        for case, (prompt, names) in cases.items():
            ids = words.encode(prompt).ids
            sights = [(grids[n], 0 if n == "picture" else seconds[n]) for n in names]
            given = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
            kinds = [1 if i == image else 2 if i == video else 0 for i in ids]
            given["mm_token_type_ids"] = torch.tensor([kinds], dtype=torch.int32)
            stills, clips = [n for n in names if n == "picture"], [n for n in names if n != "picture"]
            if stills:
                given["pixel_values"] = torch.cat([tensors[n] for n in stills])
                given["image_grid_thw"] = torch.tensor([grids[n] for n in stills])
            if clips:
                given["pixel_values_videos"] = torch.cat([tensors[n] for n in clips])
                given["video_grid_thw"] = torch.tensor([grids[n] for n in clips])
                given["second_per_grid_ts"] = torch.tensor([seconds[n] for n in clips])
            model.model.rope_deltas = None
            with torch.no_grad():
                if case == "long":
                    given["position_ids"] = places(ids, sights, image, video, VISION["tokens_per_second"])
                logits = model(**given).logits[0]
                tensors[f"{name}.{case}.ids"] = torch.tensor(ids, dtype=torch.int32)
                # Of the last tokens: those before them decide them, too.
                tensors[f"{name}.{case}.logits"] = logits[-2:].contiguous()
                if case == "long":
                    continue
                for penalty in (1.0, 1.3):
                    model.model.rope_deltas = None
                    written = model.generate(**given, max_new_tokens=12, do_sample=False, repetition_penalty=penalty,
                                             eos_token_id=id_of["<|im_end|>"], pad_token_id=id_of["<|endoftext|>"])
                    written = written[0, len(ids):].to(torch.int32)
                    tensors[f"{name}.{case}.greedy{penalty}"] = written
                    print(name, case, penalty, written.tolist(), repr(words.decode(written.tolist())))
    del tensors["tall"], tensors["slow"]
    save_file({key: value.contiguous() for key, value in tensors.items()}, GOLDEN / "outputs.safetensors",
              metadata={"torch": torch.__version__, "transformers": transformers.__version__})
    (GOLDEN / "outputs.safetensors").chmod(0o644)
    write_defaults()
    for f in sorted(GOLDEN.rglob("*")):
        if f.is_file():
            print(f.relative_to(GOLDEN), f.stat().st_size)


def write_defaults() -> None:
    """What a config.json without fields stands for, and sizes by the processor's rule."""
    config = Qwen2_5_VLConfig().to_dict()
    sizes = [[h, w, low * 784, high * 784, *smart_resize(h, w, 28, low * 784, high * 784)]
             for h, w in ((1080, 1920), (480, 854), (64, 48), (100, 3000), (42, 70), (720, 1280), (2160, 3840))
             for low, high in ((128, 768), (4, 1280), (128, 134), (4, 4))]
    (GOLDEN / "defaults.json").write_text(json.dumps(
        {"text": config["text_config"], "vision": config["vision_config"], "image_token_id": config["image_token_id"],
         "video_token_id": config["video_token_id"], "sizes": sizes}) + "\n")


def write_folder(model: torch.nn.Module, config: Qwen2_5_VLConfig, folder: pathlib.Path, published: bool) -> None:
    state = {key: value.contiguous() for key, value in model.state_dict().items()}
    if not published:
        parts = [{}, {}]
        for key, value in state.items():
            parts["visual" in key][key] = value
        index = {}
        for i, part in enumerate(parts):
            file = f"model-{i + 1:05}-of-00002.safetensors"
            save_file(part, folder / file, metadata={"format": "pt"})
            (folder / file).chmod(0o644)
            index.update({key: file for key in part})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}) + "\n")
        config.save_pretrained(folder)
        return
    own = {key.replace("model.visual.", "visual.").replace("model.language_model.", "model."): value
           for key, value in state.items() if key != "lm_head.weight"}
    save_file(own, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    text = config.text_config
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl",
        "hidden_size": text.hidden_size, "vocab_size": text.vocab_size, **TEXT,
        "rope_scaling": {"type": "mrope", "mrope_section": text.rope_parameters["mrope_section"]},
        "eos_token_id": text.eos_token_id, "image_token_id": config.image_token_id,
        "video_token_id": config.video_token_id, "tie_word_embeddings": True, "use_sliding_window": False,
        "max_window_layers": 2, "sliding_window": 32768,
        "vision_config": {**{key: value for key, value in VISION.items()
                             if key not in ("in_channels", "temporal_patch_size", "spatial_merge_size", "hidden_act")},
                          "in_chans": 3, "out_hidden_size": text.hidden_size, "spatial_patch_size": 4}}, indent=1) + "\n")


if __name__ == "__main__":
    main()
