# SPDX-License-Identifier: Apache-2.0
"""The CLIP of the benchmark of vfm-caption score, see train.py."""
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import CLIPConfig, CLIPModel

import shapes
from learning import (COLOURS, CONTENTS, GRID, MEAN, PATCH, SHAPES, STD, Draws, Heads, Training, contents, corpus,
                      first_patches, first_weights, pixels, save_tokenizer)

STEPS = 600


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
    training = Training([p for part in (model, cells, shown, said) for p in part.parameters()], STEPS, 2e-3)
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
