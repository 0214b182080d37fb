#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the two small models of the benchmark of vfm-caption --score, and writes them as Hugging Face folders.

    train.py captioner|clip FOLDER SECONDS

captioner: a Qwen2.5-VL of under 2 million parameters that says what clips of shapes.py show; in one of five steps it
learns captions without a clip, too, so that it knows what they are like. It gets the pixels, tokens and places that
vfm-caption gives it: at the end its logits are compared with those of transformers' own forward.
clip: a CLIP of frames and single sentences.
One thread each. SECONDS are of the processor; how far a training gets in them depends on the machine.
"""
import json
import pathlib
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (CLIPConfig, CLIPModel, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration)
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import apply_rotary_pos_emb_vision, get_vision_position_ids

import shapes

PROMPT = "Describe."
MEAN, STD = [0.5] * 3, [0.25] * 3
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
           "<|video_pad|>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for content in message['content'] %}"
    "{% if content['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% elif content['type'] == 'video' %}"
    "<|vision_start|><|video_pad|><|vision_end|>{% elif 'text' in content %}{{ content['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
PATCH, MERGE, PAIRS = 8, 2, shapes.FRAMES // 2
GRID = shapes.SIDE // PATCH
TOKENS = (GRID // MERGE) ** 2 * PAIRS
BATCH = 64


def corpus() -> list:
    rng = np.random.default_rng(0)
    return [shapes.caption(shapes.draw_spec(rng, "training")) for _ in range(3000)]


def chat_tokenizer() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(corpus() + ["user assistant " + PROMPT] * 9, trainers.BpeTrainer(
        vocab_size=600, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return made


def clip_tokenizer() -> Tokenizer:
    made = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", continuing_subword_prefix=""))
    made.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"), "removed", invert=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=600, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        end_of_word_suffix="</w>", special_tokens=["<|startoftext|>", "<|endoftext|>"]))
    begin, end = (made.token_to_id(t) for t in ("<|startoftext|>", "<|endoftext|>"))
    made.post_processor = processors.RobertaProcessing(("<|endoftext|>", end), ("<|startoftext|>", begin))
    return made


def save_tokenizer(words: Tokenizer, folder: pathlib.Path) -> None:
    words.save(str(folder / "tokenizer.json"))


def pixels(frames: np.ndarray) -> torch.Tensor:
    return (torch.from_numpy(frames).float() / 255 - 0.5) / 0.25


def schedule(optimizer, used: float, peak: float) -> None:
    """`used`, the share of the time, decides: up in 2 %, then down to nothing along a cosine."""
    rate = peak * min(1, used / 0.02) * (0.5 + 0.5 * np.cos(np.pi * min(1, used)))
    for group in optimizer.param_groups:
        group["lr"] = max(rate, 1e-7)


# The captioner.

def patches_of(clips: np.ndarray) -> torch.Tensor:
    """[B, FRAMES, SIDE, SIDE, 3] to [B, PAIRS, patches, 3 2 8 8], the 2x2 of a token together."""
    half = GRID // MERGE
    x = pixels(clips).reshape(len(clips), PAIRS, 2, half, MERGE, PATCH, half, MERGE, PATCH, 3)
    return x.permute(0, 1, 3, 6, 4, 7, 9, 2, 5, 8).reshape(len(clips), PAIRS, GRID * GRID, -1)


def vision(tower, patches: torch.Tensor) -> torch.Tensor:
    """What transformers' tower computes, of many clips at once: a pair of frames is one window here."""
    count, pairs, each, width = patches.shape
    x = F.linear(patches.reshape(-1, each, width), tower.patch_embed.proj.weight.flatten(1))
    cosine, sine = tower.rotary_pos_emb(x[0], get_vision_position_ids(torch.tensor([[1, GRID, GRID]]), MERGE))
    for block in tower.blocks:
        q, k, v = block.attn.qkv(block.norm1(x)).reshape(len(x), each, 3, block.attn.num_heads, -1).unbind(2)
        q, k = apply_rotary_pos_emb_vision(q, k, cosine, sine)
        seen = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        x = x + block.attn.proj(seen.transpose(1, 2).reshape(len(x), each, -1))
        x = x + block.mlp(block.norm2(x))
    return tower.merger(x).reshape(count, TOKENS, -1)


class Prompt:
    """Tokens before a caption, with or without a clip, and the places of all."""

    def __init__(self, words: Tokenizer, seen: bool):
        look = "<|vision_start|>" + "<|video_pad|>" * TOKENS + "<|vision_end|>" if seen else ""
        self.ids = words.encode(f"<|im_start|>user\n{look}{PROMPT}<|im_end|>\n<|im_start|>assistant\n").ids
        pad, side = words.token_to_id("<|video_pad|>"), GRID // MERGE
        self.first = self.ids.index(pad) if seen else 0
        self.places, free = [], 0
        for i, token in enumerate(self.ids):
            if token != pad:
                self.places.append((free, free, free))
                free += 1
                continue
            n = i - self.first
            self.places.append((free + n // side**2, free + n // side % side, free + n % side))
            if n + 1 == TOKENS:
                free += max(PAIRS, side)
        self.free = free

    def rows(self, answers: list):
        """ids, places and labels of this prompt with each answer behind it."""
        long = max(map(len, answers))
        ids = torch.zeros(len(answers), len(self.ids) + long, dtype=torch.long)
        labels = torch.full_like(ids, -100)
        ids[:, :len(self.ids)] = torch.tensor(self.ids)
        for i, answer in enumerate(answers):
            ids[i, len(self.ids):len(self.ids) + len(answer)] = torch.tensor(answer)
            labels[i, len(self.ids):len(self.ids) + len(answer)] = torch.tensor(answer)
        places = torch.tensor(self.places + [(self.free + i,) * 3 for i in range(long)])
        return ids, places.T[:, None].expand(3, len(answers), -1), labels


def logits_of(model, prompt: Prompt, answers: list, clips=None):
    ids, places, labels = prompt.rows(answers)
    x = model.model.language_model.embed_tokens(ids)
    if clips is not None:
        seen = vision(model.model.visual, patches_of(clips))
        x = torch.cat([x[:, :prompt.first], seen, x[:, prompt.first + TOKENS:]], 1)
    hidden = model.model.language_model(inputs_embeds=x, position_ids=places, use_cache=False).last_hidden_state
    begin = len(prompt.ids) - 1
    return model.lm_head(hidden[:, begin:-1]), labels[:, begin + 1:]


def captioner(words: Tokenizer) -> Qwen2_5_VLForConditionalGeneration:
    of = {token: words.token_to_id(token) for token in SPECIAL}
    width = 128
    return Qwen2_5_VLForConditionalGeneration(Qwen2_5_VLConfig(
        text_config={"hidden_size": width, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 4,
                     "num_key_value_heads": 4, "vocab_size": words.get_vocab_size(), "rms_norm_eps": 1e-6,
                     "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [6, 5, 5]},
                     "eos_token_id": of["<|im_end|>"], "bos_token_id": of["<|endoftext|>"]},
        vision_config={"depth": 3, "hidden_act": "silu", "hidden_size": 96, "intermediate_size": 256, "num_heads": 4,
                       "in_channels": 3, "patch_size": PATCH, "temporal_patch_size": 2, "spatial_merge_size": MERGE,
                       "window_size": shapes.SIDE, "fullatt_block_indexes": [2], "tokens_per_second": 2,
                       "out_hidden_size": width},
        image_token_id=of["<|image_pad|>"], video_token_id=of["<|video_pad|>"],
        vision_start_token_id=of["<|vision_start|>"], vision_end_token_id=of["<|vision_end|>"],
        tie_word_embeddings=False))


def check_captioner(model, words, rng) -> None:
    """Against transformers' forward; the places are given, see lib/models/vlm/qwen_text.h."""
    spec = shapes.draw_spec(rng, "tuning")
    clip = shapes.draw_clip(spec, rng)[None]
    answer = words.encode(shapes.caption(spec)).ids
    prompt = Prompt(words, True)
    with torch.no_grad():
        mine, _ = logits_of(model, prompt, [answer], clip)
        ids, places, _ = prompt.rows([answer])
        theirs = model(input_ids=ids, position_ids=places, attention_mask=torch.ones_like(ids),
                       mm_token_type_ids=torch.where(ids == model.config.video_token_id, 2, 0).int(),
                       pixel_values_videos=patches_of(clip).reshape(-1, 3 * 2 * PATCH * PATCH),
                       video_grid_thw=torch.tensor([[PAIRS, GRID, GRID]]),
                       second_per_grid_ts=torch.tensor([2 / shapes.RATE])).logits[:, len(prompt.ids) - 1:-1]
    far = (mine - theirs).abs().max().item()
    assert far < 1e-3, far
    print(f"transformers' own forward gives these logits to {far:.1e}")


def train_captioner(folder: pathlib.Path, seconds: float) -> None:
    words = chat_tokenizer()
    end = words.token_to_id("<|im_end|>")
    model = captioner(words)
    print(sum(p.numel() for p in model.parameters()), "parameters,", words.get_vocab_size(), "tokens")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0, weight_decay=0.02, betas=(0.9, 0.98))
    rng, begin, step = np.random.default_rng(1), time.process_time(), 0
    seeing, blind = Prompt(words, True), Prompt(words, False)
    losses = {True: [], False: []}
    check_captioner(model, words, np.random.default_rng(2))
    while (used := (time.process_time() - begin) / seconds) < 1:
        schedule(optimizer, used, 2e-3)
        sees = step % 5 != 4
        specs = [shapes.draw_spec(rng, "training") for _ in range(BATCH)]
        answers = [words.encode(shapes.caption(spec)).ids + [end] for spec in specs]
        clips = np.stack([shapes.draw_clip(spec, rng) for spec in specs]) if sees else None
        logits, labels = logits_of(model, seeing if sees else blind, answers, clips)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses[sees].append(loss.item())
        step += 1
        if step % 100 == 0:
            print(f"{time.process_time() - begin:6.0f} s {step:6} steps: loss {np.mean(losses[True][-80:]):.4f}, "
                  f"without a clip {np.mean(losses[False][-20:]):.4f}", flush=True)
    check_captioner(model, words, np.random.default_rng(2))
    model.save_pretrained(folder)
    save_tokenizer(words, folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(
        {"image_processor_type": "Qwen2VLImageProcessor", "do_resize": True, "resample": 3, "do_rescale": True,
         "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": MEAN, "image_std": STD, "do_convert_rgb": True,
         "patch_size": PATCH, "temporal_patch_size": 2, "merge_size": MERGE, "min_pixels": shapes.SIDE**2,
         "max_pixels": shapes.SIDE**2}) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}) + "\n")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [end]}) + "\n")


# The CLIP.

def train_clip(folder: pathlib.Path, seconds: float) -> None:
    words = clip_tokenizer()
    end = words.token_to_id("<|endoftext|>")
    layers = {"num_attention_heads": 4, "num_hidden_layers": 3}
    model = CLIPModel(CLIPConfig(
        text_config={**layers, "hidden_size": 64, "intermediate_size": 192, "vocab_size": words.get_vocab_size(),
                     "max_position_embeddings": 24, "bos_token_id": words.token_to_id("<|startoftext|>"),
                     "eos_token_id": end, "pad_token_id": end, "projection_dim": 64},
        vision_config={**layers, "hidden_size": 96, "intermediate_size": 256, "image_size": shapes.SIDE,
                       "patch_size": PATCH, "projection_dim": 64}, projection_dim=64))
    print(sum(p.numel() for p in model.parameters()), "parameters,", words.get_vocab_size(), "tokens")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0, weight_decay=0.02, betas=(0.9, 0.98))
    rng, begin, step, losses, size = np.random.default_rng(3), time.process_time(), 0, [], 2 * BATCH
    while (used := (time.process_time() - begin) / seconds) < 1:
        schedule(optimizer, used, 1e-3)
        specs = [shapes.draw_spec(rng, "training") for _ in range(size)]
        frames = np.stack([shapes.draw_clip(spec, rng)[rng.integers(shapes.FRAMES)] for spec in specs])
        sentences = [shapes.caption(spec).split(". ")[rng.random() < 0.25].rstrip(".") + "." for spec in specs]
        ids = [words.encode(sentence).ids for sentence in sentences]
        long = max(map(len, ids))
        ids = torch.tensor([i + [end] * (long - len(i)) for i in ids])
        made = model(input_ids=ids, pixel_values=pixels(frames).permute(0, 3, 1, 2))
        # Equal sentences are no wrong ones of each other.
        same = torch.tensor([[a == b for b in sentences] for a in sentences]) & ~torch.eye(size, dtype=torch.bool)
        logits = made.logits_per_image.masked_fill(same, -1e9)
        truth = torch.arange(size)
        loss = (F.cross_entropy(logits, truth) + F.cross_entropy(logits.T, truth)) / 2
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(max=np.log(100))
        losses.append(loss.item())
        step += 1
        if step % 50 == 0:
            print(f"{time.process_time() - begin:6.0f} s {step:6} steps: loss {np.mean(losses[-50:]):.4f} of {np.log(size):.2f}",
                  flush=True)
    model.save_pretrained(folder)
    save_tokenizer(words, folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(
        {"image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"shortest_edge": shapes.SIDE},
         "resample": 3, "do_center_crop": True, "crop_size": {"height": shapes.SIDE, "width": shapes.SIDE},
         "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": MEAN, "image_std": STD,
         "do_convert_rgb": True}) + "\n")


def main() -> None:
    kind, folder, seconds = sys.argv[1], pathlib.Path(sys.argv[2]), float(sys.argv[3])
    torch.manual_seed(11)
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    {"captioner": train_captioner, "clip": train_clip}[kind](folder, seconds)


main()
