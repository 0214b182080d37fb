# SPDX-License-Identifier: Apache-2.0
"""What the two trainings of train.py share: scenes without end, first weights, heads, steps."""
import collections
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import shapes

NOISE = 4  # of a byte
MEAN, STD = [0.5] * 3, [0.25] * 3
PATCH = shapes.CELL
GRID = shapes.SIDE // PATCH
COLOURS, SHAPES, VERBS = list(shapes.COLOURS), list(shapes.SHAPES), list(shapes.VERBS)


def corpus() -> list:
    rng = np.random.default_rng(0)
    return [shapes.caption(shapes.draw_spec(rng, "training")) for _ in range(3000)]


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
