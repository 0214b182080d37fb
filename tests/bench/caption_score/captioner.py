# SPDX-License-Identifier: Apache-2.0
"""The captioner of the benchmark of vfm-caption score, see train.py."""
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import apply_rotary_pos_emb_vision, get_vision_position_ids

import shapes
from learning import (COLOURS, CONTENTS, GRID, MEAN, PATCH, SHAPES, STD, VERBS, Draws, Heads, Training, contents,
                      corpus, first_patches, first_weights, pixels, save_tokenizer)

EYES_STEPS, WORDS_STEPS = 800, 600
PROMPT = "Describe."
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
           "<|video_pad|>"]
TEMPLATE = (
    "{% for message in messages %}{% for content in message['content'] %}"
    "{% if content['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif content['type'] == 'video' %}"
    "<|vision_start|><|video_pad|><|vision_end|>{% elif 'text' in content %}{{ content['text'] }}{% endif %}"
    "{% endfor %}<|im_start|>{% endfor %}")
PAIRS = len(shapes.SEEN) // 2
TOKENS = GRID**2 * PAIRS  # a patch is a cell, and a token


def chat_tokenizer() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(corpus() + [PROMPT] * 99, trainers.BpeTrainer(
        vocab_size=600, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return made


def patches_of(clips: np.ndarray) -> torch.Tensor:
    """[B, SEEN, SIDE, SIDE, 3] to [B, PAIRS, patches, 3 2 16 16]."""
    x = pixels(clips).reshape(len(clips), PAIRS, 2, GRID, PATCH, GRID, PATCH, 3)
    return x.permute(0, 1, 3, 5, 7, 2, 4, 6).reshape(len(clips), PAIRS, GRID * GRID, -1)


def vision(tower, patches: torch.Tensor) -> torch.Tensor:
    """What transformers' tower computes, of many clips at once: a pair of frames is one window here. The patches'
    vectors before the last block, and the tokens."""
    count, pairs, each, width = patches.shape
    x = F.linear(patches.reshape(-1, each, width), tower.patch_embed.proj.weight.flatten(1))
    cosine, sine = tower.rotary_pos_emb(x[0], get_vision_position_ids(torch.tensor([[1, GRID, GRID]]), 1))
    for block in tower.blocks:
        before = x
        q, k, v = block.attn.qkv(block.norm1(x)).reshape(len(x), each, 3, block.attn.num_heads, -1).unbind(2)
        q, k = apply_rotary_pos_emb_vision(q, k, cosine, sine)
        seen = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        x = x + block.attn.proj(seen.transpose(1, 2).reshape(len(x), each, -1))
        x = x + block.mlp(block.norm2(x))
    return before.reshape(count, pairs, each, -1), tower.merger(x).reshape(count, TOKENS, -1)


class Prompt:
    """Tokens before a caption, with or without a clip, and the places of all."""

    def __init__(self, words: Tokenizer, seen: bool):
        look = "<|vision_start|>" + "<|video_pad|>" * TOKENS + "<|vision_end|>" if seen else ""
        self.ids = words.encode(f"{look}{PROMPT}<|im_start|>").ids
        pad, side = words.token_to_id("<|video_pad|>"), GRID
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


def logits_of(model, prompt: Prompt, answers: list, seen=None, hidden: tuple = (0, 0)):
    """`hidden`: a token that stands for some of the answers' where they are read, and how large a share of them it is
    at most."""
    ids, places, labels = prompt.rows(answers)
    gone = torch.rand(ids.shape) < hidden[1] * torch.rand(len(ids), 1)
    gone[:, :len(prompt.ids)] = False
    ids = ids.masked_fill(gone, hidden[0])
    x = model.model.language_model.embed_tokens(ids)
    if seen is not None:
        x = torch.cat([x[:, :prompt.first], seen, x[:, prompt.first + TOKENS:]], 1)
    hidden = model.model.language_model(inputs_embeds=x, position_ids=places, use_cache=False).last_hidden_state
    begin = len(prompt.ids) - 1
    return model.lm_head(hidden[:, begin:-1]), labels[:, begin + 1:]


def captioner(words: Tokenizer) -> Qwen2_5_VLForConditionalGeneration:
    of = {token: words.token_to_id(token) for token in SPECIAL}
    width = 96
    return Qwen2_5_VLForConditionalGeneration(Qwen2_5_VLConfig(
        text_config={"hidden_size": width, "intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4,
                     "num_key_value_heads": 4, "vocab_size": words.get_vocab_size(), "rms_norm_eps": 1e-6,
                     "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 4, 4]},
                     "eos_token_id": of["<|im_end|>"], "bos_token_id": of["<|endoftext|>"]},
        vision_config={"depth": 3, "hidden_act": "silu", "hidden_size": 96, "intermediate_size": 256, "num_heads": 4,
                       "in_channels": 3, "patch_size": PATCH, "temporal_patch_size": 2, "spatial_merge_size": 1,
                       "window_size": shapes.SIDE, "fullatt_block_indexes": [0, 1, 2], "tokens_per_second": 1,
                       "out_hidden_size": width},
        image_token_id=of["<|image_pad|>"], video_token_id=of["<|video_pad|>"],
        vision_start_token_id=of["<|vision_start|>"], vision_end_token_id=of["<|vision_end|>"],
        tie_word_embeddings=False))


def check_captioner(model, words, rng) -> None:
    """Against transformers' forward; the places are given, see lib/models/vlm/qwen_text.h."""
    spec = shapes.draw_spec(rng, "tuning")
    clip = shapes.draw([shapes.Scene(spec, rng)], shapes.SEEN)
    answer = words.encode(shapes.caption(spec)).ids
    prompt = Prompt(words, True)
    with torch.no_grad():
        mine, _ = logits_of(model, prompt, [answer], vision(model.model.visual, patches_of(clip))[1])
        ids, places, _ = prompt.rows([answer])
        theirs = model(input_ids=ids, position_ids=places, attention_mask=torch.ones_like(ids),
                       mm_token_type_ids=torch.where(ids == model.config.video_token_id, 2, 0).int(),
                       pixel_values_videos=patches_of(clip).reshape(-1, 3 * 2 * PATCH**2),
                       video_grid_thw=torch.tensor([[PAIRS, GRID, GRID]]),
                       second_per_grid_ts=torch.tensor([1.0])).logits[:, len(prompt.ids) - 1:-1]
    far = (mine - theirs).abs().max().item()
    assert far < 1e-3, far
    print(f"transformers' own forward gives these logits to {far:.1e}")


def cell_labels(scene) -> np.ndarray:
    """[PAIRS, patches, 3]: shape, colour and verb of what is in each patch, 0: nothing."""
    labels = np.zeros((PAIRS, GRID * GRID, 3), np.int64)
    for pair, (group, verb) in enumerate(scene.spec[1]):
        for place, owner, (_, colour, shape) in zip(scene.places, scene.owners, scene.kind):
            does = 1 + VERBS.index(verb) if owner == group else 0
            labels[pair, place] = 1 + SHAPES.index(shape), 1 + COLOURS.index(colour), does
    return labels


def pair_labels(scene) -> list:
    """[PAIRS, things]: contents(), and which shape does what in the pair."""
    kinds, actions = scene.spec
    return [contents(scene) + [SHAPES.index(kinds[group][2]), VERBS.index(verb)] for group, verb in actions]


class Eyes:
    """The vision tower with heads that tell what it should see."""

    def __init__(self, tower, width: int, out: int):
        self.tower = tower
        self.cells = Heads(width, [1 + len(SHAPES), 1 + len(COLOURS), 1 + len(VERBS)])
        self.pairs = Heads(out, CONTENTS + [len(SHAPES), len(VERBS)])

    def look(self, scenes: list):
        """Tokens, the losses of the heads, and what of each thing is right."""
        patches, tokens = vision(self.tower, patches_of(np.stack([s.seen for s in scenes])))
        cells = torch.from_numpy(np.stack([cell_labels(s) for s in scenes]))
        cell_loss, cell_right = self.cells(patches, cells, torch.where(cells[..., 0] > 0, 1.0, 0.1))
        labels = torch.tensor([pair_labels(s) for s in scenes])[:, :, None].expand(-1, -1, TOKENS // PAIRS, -1)
        pair_loss, pair_right = self.pairs(tokens.unflatten(1, (PAIRS, -1)), labels)
        return tokens, {"cells": cell_loss, "pairs": pair_loss}, torch.cat([cell_right, pair_right])


def train_eyes(model) -> None:
    """The vision tower by what it should see."""
    eyes, draws = Eyes(model.model.visual, 96, 96), Draws(1, 0.5)
    training = Training([*model.model.visual.parameters(), *eyes.cells.parameters(), *eyes.pairs.parameters()],
                        EYES_STEPS, 3e-3)
    while training.goes_on():
        _, losses, right = eyes.look(draws.scenes(128))
        training.step(losses, right)


def train_words(model, words) -> None:
    """The language model by captions, of what the vision tower, which stays as it is, sees in clips, and without. Some
    words before the one that is asked for are hidden, so that what is seen is trusted more than what goes together."""
    end, draws = words.token_to_id("<|im_end|>"), Draws(4)
    seeing, blind = Prompt(words, True), Prompt(words, False)
    training = Training([*model.model.language_model.parameters(), *model.lm_head.parameters()], WORDS_STEPS, 3e-3)
    while training.goes_on():
        scenes = draws.scenes(64)
        new = [scene for scene in scenes if not hasattr(scene, "tokens")]
        with torch.no_grad():
            seen = vision(model.model.visual, patches_of(np.stack([s.seen for s in new])))[1] if new else []
        for scene, tokens in zip(new, seen):
            scene.tokens, scene.answer = tokens, words.encode(shapes.caption(scene.spec)).ids + [end]
        answers, sees = [scene.answer for scene in scenes], training.steps % 4 != 3
        logits, labels = logits_of(model, seeing if sees else blind, answers,
                                   torch.stack([scene.tokens for scene in scenes]) if sees else None,
                                   (words.token_to_id("<|endoftext|>"), 0.6))
        training.step({"seeing" if sees else "blind": F.cross_entropy(logits.flatten(0, 1), labels.flatten())})


def train_captioner(folder: pathlib.Path) -> None:
    words = chat_tokenizer()
    model = captioner(words)
    print(sum(p.numel() for p in model.parameters()), "parameters,", words.get_vocab_size(), "tokens")
    first_weights(model)
    with torch.no_grad():  # half of the columns look at the first frame of a pair, half at the second
        patch = model.model.visual.patch_embed.proj.weight.zero_()
        half = len(patch) // 2
        patch[:half, :, 0] = patch[half:, :, 1] = first_patches(half)
    train_eyes(model)
    train_words(model, words)
    check_captioner(model, words, np.random.default_rng(2))
    model.save_pretrained(folder)
    save_tokenizer(words, folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(
        {"image_processor_type": "Qwen2VLImageProcessor", "do_resize": True, "resample": 3, "do_rescale": True,
         "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": MEAN, "image_std": STD, "do_convert_rgb": True,
         "patch_size": PATCH, "temporal_patch_size": 2, "merge_size": 1, "min_pixels": shapes.SIDE**2,
         "max_pixels": shapes.SIDE**2}) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}) + "\n")
    end = words.token_to_id("<|im_end|>")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [end]}) + "\n")
