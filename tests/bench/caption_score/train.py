#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the two small models of the benchmark of vfm-caption --score, and writes them as Hugging Face folders.

    train.py captioner|clip FOLDER

captioner: a Qwen2.5-VL of under 2 million parameters that says what clips of shapes.py show. First its vision tower is
taught, by heads that are not kept, what is in each patch and what it does, and, of each pair of frames, how many there
are of each shape, of which colour, and which do what. Then its language model learns captions of what the tower sees; in
one of four steps without a clip, so that it knows what captions are like. It gets the pixels, tokens and places that
vfm-caption gives it: at the end its logits are compared with those of transformers' own forward.
clip: a CLIP of frames and single sentences, of which some are the clip's own with a fault; with heads of that kind.
One thread each. The steps are counted, so what comes out does not depend on how fast a machine is.
"""
import collections
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
NOISE = 4  # of a byte
STEPS = {"eyes": 800, "words": 600, "clip": 600}
MEAN, STD = [0.5] * 3, [0.25] * 3
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
           "<|video_pad|>"]
TEMPLATE = (
    "{% for message in messages %}{% for content in message['content'] %}"
    "{% if content['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif content['type'] == 'video' %}"
    "<|vision_start|><|video_pad|><|vision_end|>{% elif 'text' in content %}{{ content['text'] }}{% endif %}"
    "{% endfor %}<|im_start|>{% endfor %}")
PATCH, PAIRS = shapes.CELL, len(shapes.SEEN) // 2
GRID = shapes.SIDE // PATCH
TOKENS = GRID**2 * PAIRS  # a patch is a cell, and a token
COLOURS, SHAPES, VERBS = list(shapes.COLOURS), list(shapes.SHAPES), list(shapes.VERBS)


def corpus() -> list:
    rng = np.random.default_rng(0)
    return [shapes.caption(shapes.draw_spec(rng, "training")) for _ in range(3000)]


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


class Draws:
    """Scenes of the training part, without end: an eighth of them new, the others from the last 16,384. Each keeps the
    frames that vfm-caption shows a captioner, with noise as coding a video adds some."""

    def __init__(self, seed: int, unsaid: float = 0):
        """`unsaid`: the share of clips of which no caption tells."""
        self.rng, self.last, self.unsaid = np.random.default_rng(seed), collections.deque(maxlen=16384), unsaid

    def scenes(self, count: int) -> list:
        new = count // 8 if len(self.last) >= 16 * count else count
        specs = [shapes.unsaid_spec(self.rng) if self.rng.random() < self.unsaid else
                 shapes.draw_spec(self.rng, "training") for _ in range(new)]
        made = [shapes.Scene(spec, self.rng) for spec in specs]
        drawn = shapes.draw(made, shapes.SEEN)
        noisy = np.clip(drawn + NOISE * self.rng.standard_normal(drawn.shape, np.float32), 0, 255).astype(np.uint8)
        for scene, seen in zip(made, noisy):
            scene.seen = seen
        made += [self.last[i] for i in self.rng.integers(0, len(self.last), count - new)] if count > new else []
        self.last.extend(made[:new])
        return made


def first_weights(model) -> None:
    """Models of this width learn sooner from larger weights than those that transformers begins with."""
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.normal_(module.weight, std=module.in_features**-0.5)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
        elif isinstance(module, torch.nn.Embedding):
            torch.nn.init.normal_(module.weight, std=0.5)
    # In towers each patch sees all others alike at first: sums over a picture are how shapes are counted.
    for name, module in model.named_modules():
        if name.endswith("attn.qkv"):
            module.weight.data[:2 * module.in_features] *= 0.1
        elif "vision_model" in name and name.endswith(("q_proj", "k_proj")):
            module.weight.data *= 0.1


def first_patches(width: int) -> torch.Tensor:
    """[width, 3, PATCH, PATCH]: the main directions of patches with shapes, each of about variance 1: what is seen
    first are all colours and outlines, and not mostly how light it is."""
    frames = pixels(np.concatenate([scene.seen for scene in Draws(5).scenes(1000)]))
    cut = frames.reshape(-1, GRID, PATCH, GRID, PATCH, 3).permute(0, 1, 3, 5, 2, 4).reshape(-1, 3 * PATCH**2)
    values, vectors = torch.linalg.eigh(cut.T @ cut / len(cut))
    largest = vectors[:, -width:] / values[-width:].clamp(min=1e-3).sqrt()
    return largest.T.reshape(width, 3, PATCH, PATCH)


def contents(scene) -> list:
    """What a scene has of each shape: its count, and its colour (0: none; -100, which losses skip: several)."""
    counts, colours = [0] * len(SHAPES), [0] * len(SHAPES)
    for n, colour, shape in scene.spec[0]:
        i, number = SHAPES.index(shape), 1 + COLOURS.index(colour)
        colours[i] = number if counts[i] == 0 or colours[i] == number else -100
        counts[i] += n
    return counts + colours


CONTENTS = [4] * len(SHAPES) + [1 + len(COLOURS)] * len(SHAPES)  # classes of contents()


class Heads(torch.nn.Linear):
    """Says several things of a vector: a class of sizes[i] each. Only for training."""

    def __init__(self, width: int, sizes: list):
        super().__init__(width, sum(sizes))
        self.sizes = sizes

    def forward(self, x, labels, weights=None):
        """The sum of the mean losses, and the share of each thing that is right; of vectors by their `weights`."""
        weights = torch.ones(x.shape[:-1]) if weights is None else weights
        weights = weights.flatten() / weights.sum()
        said = super().forward(x).flatten(0, -2).split(self.sizes, -1)
        labels = labels.flatten(0, -2).T
        loss = sum((F.cross_entropy(one, label, reduction="none") * weights).sum() for one, label in zip(said, labels))
        return loss, torch.stack([((one.argmax(-1) == label) * weights).sum() for one, label in zip(said, labels)])


def schedule(optimizer, used: float, peak: float) -> None:
    """`used`, the share of the steps, decides: up in 3 %, then down to nothing along a cosine."""
    for group in optimizer.param_groups:
        group["lr"] = peak * min(1, used / 0.03) * (0.5 + 0.5 * np.cos(np.pi * used))


# The captioner.

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


class Training:
    """Some steps of an optimizer."""

    def __init__(self, parameters, steps: int, peak: float):
        self.parameters, self.all, self.peak = list(parameters), steps, peak
        self.optimizer = torch.optim.AdamW(self.parameters, lr=0, weight_decay=0.02, betas=(0.9, 0.98))
        self.begin, self.steps, self.means = time.process_time(), 0, {}

    def goes_on(self) -> bool:
        return self.steps < self.all

    def step(self, losses: dict, rights: torch.Tensor = None) -> None:
        """Their sum becomes less; `rights` are shares that are told."""
        schedule(self.optimizer, (self.steps + 1) / self.all, self.peak)
        self.optimizer.zero_grad()
        sum(losses.values()).backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.steps += 1
        told = {name: value.item() for name, value in losses.items()}
        for i, share in enumerate([] if rights is None else rights.tolist()):
            told[f"right {i}"] = 100 * share
        for name, value in told.items():
            self.means[name] = 0.95 * self.means.get(name, value) + 0.05 * value
        if self.steps % 25 == 0:
            said = [f"{mean:.0f}" if name.startswith("right") else f"{name} {mean:.3f}"
                    for name, mean in self.means.items()]
            print(f"{time.process_time() - self.begin:6.0f} s {self.steps:6} steps:", *said, flush=True)


def train_eyes(model) -> None:
    """The vision tower by what it should see."""
    eyes, draws = Eyes(model.model.visual, 96, 96), Draws(1, 0.5)
    training = Training([*model.model.visual.parameters(), *eyes.cells.parameters(), *eyes.pairs.parameters()],
                        STEPS["eyes"], 3e-3)
    while training.goes_on():
        _, losses, right = eyes.look(draws.scenes(128))
        training.step(losses, right)


def train_words(model, words) -> None:
    """The language model by captions, of what the vision tower, which stays as it is, sees in clips, and without. Some
    words before the one that is asked for are hidden, so that what is seen is trusted more than what goes together."""
    end, draws = words.token_to_id("<|im_end|>"), Draws(4)
    seeing, blind = Prompt(words, True), Prompt(words, False)
    training = Training([*model.model.language_model.parameters(), *model.lm_head.parameters()], STEPS["words"], 3e-3)
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


# The CLIP.

def sentences_of(specs: list, rng) -> list:
    """Of each spec a true sentence, and up to three with a fault in what is in the clip."""
    rows = []
    for spec in specs:
        scene, acts = shapes.caption(spec).split(". ")
        if rng.random() < 0.2:
            rows.append([acts])
            continue
        rows.append([scene + "."])
        for fault in ("colour", "count", "object"):
            found = [s for s in shapes.neighbours(spec, fault) if shapes.share_of(s[0]) == "training"]
            if found:
                rows[-1].append(shapes.caption(found[rng.integers(len(found))]).split(". ")[0] + ".")
    return rows


def small_clip(words: Tokenizer) -> CLIPModel:
    layers = {"num_attention_heads": 4, "num_hidden_layers": 2, "hidden_size": 96, "intermediate_size": 192,
              "projection_dim": 96}
    begin, end = (words.token_to_id(token) for token in ("<|startoftext|>", "<|endoftext|>"))
    model = CLIPModel(CLIPConfig(
        text_config={**layers, "vocab_size": words.get_vocab_size(), "max_position_embeddings": 24,
                     "bos_token_id": begin, "eos_token_id": end, "pad_token_id": end},
        vision_config={**layers, "image_size": shapes.SIDE, "patch_size": PATCH}, projection_dim=96))
    first_weights(model)
    with torch.no_grad():
        model.vision_model.embeddings.patch_embedding.weight.copy_(first_patches(96))
    return model


def frame_cells(scenes: list) -> torch.Tensor:
    """[scenes, patches, 2]: shape and colour in each patch of a frame; 0: nothing."""
    labels = np.zeros((len(scenes), GRID * GRID, 2), np.int64)
    for scene, row in zip(scenes, labels):
        for place, (_, colour, shape) in zip(scene.places, scene.kind):
            row[place] = 1 + SHAPES.index(shape), 1 + COLOURS.index(colour)
    return torch.from_numpy(labels)


def contrast(images, texts, scale, own: torch.Tensor):
    """CLIP's loss of images and of different texts, of which own[i] is that of image i: which text is an image's, and
    which image a text's, where several are as right. And how often the right text is the nearest one."""
    logits = scale.exp() * F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T
    right = own[:, None] == own
    of_texts = logits[:, own].T.log_softmax(-1).masked_fill(~right, -torch.inf).logsumexp(-1)
    return (F.cross_entropy(logits, own) - of_texts.mean()) / 2, (logits.argmax(1) == own).float().mean()


def train_clip(folder: pathlib.Path) -> None:
    words = clip_tokenizer()
    end = words.token_to_id("<|endoftext|>")
    model, draws = small_clip(words), Draws(3)
    print(sum(p.numel() for p in model.parameters()), "parameters,", words.get_vocab_size(), "tokens")
    cells, shown, said = Heads(96, [1 + len(SHAPES), 1 + len(COLOURS)]), Heads(96, CONTENTS), Heads(96, CONTENTS)
    training = Training([p for part in (model, cells, shown, said) for p in part.parameters()], STEPS["clip"], 2e-3)
    while training.goes_on():
        scenes, losses = draws.scenes(128), {}
        at = draws.rng.integers(0, len(shapes.SEEN), len(scenes))
        frames = pixels(np.stack([scene.seen[i] for scene, i in zip(scenes, at)])).permute(0, 3, 1, 2)
        seen = model.vision_model(pixel_values=frames)
        images = model.visual_projection(seen.pooler_output)
        losses["cells"], right = cells(seen.last_hidden_state[:, 1:], frame_cells(scenes))
        things = torch.tensor([contents(scene) for scene in scenes])
        losses["shown"], shown_right = shown(images, things)
        rows = sentences_of([scene.spec for scene in scenes], draws.rng)
        place = {sentence: i for i, sentence in enumerate(dict.fromkeys(s for row in rows for s in row))}
        own = torch.tensor([place[row[0]] for row in rows])
        ids = [words.encode(sentence).ids for sentence in place]
        long = max(map(len, ids))
        texts = model.text_projection(model.text_model(
            input_ids=torch.tensor([i + [end] * (long - len(i)) for i in ids])).pooler_output)
        of_scene = [i for i, row in enumerate(rows) if not row[0].startswith("First")]
        losses["said"], _ = said(texts[own[of_scene]], things[of_scene])
        losses["pairs"], first = contrast(images, texts, model.logit_scale, own)
        training.step(losses, torch.cat([right, shown_right, first[None]]))
        with torch.no_grad():
            model.logit_scale.clamp_(max=np.log(100))
    model.save_pretrained(folder)
    save_tokenizer(words, folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(
        {"image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"shortest_edge": shapes.SIDE},
         "resample": 3, "do_center_crop": True, "crop_size": {"height": shapes.SIDE, "width": shapes.SIDE},
         "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": MEAN, "image_std": STD,
         "do_convert_rgb": True}) + "\n")


def main() -> None:
    kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    torch.manual_seed(11)
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    {"captioner": train_captioner, "clip": train_clip}[kind](folder)


main()
