# SPDX-License-Identifier: Apache-2.0
"""Clips of shapes that do two things one after the other, their captions, and captions with one fault.

A clip has one or two groups of equal shapes, three shapes at most: ((count, colour, shape), ...), in the order of the
shapes' names; and two actions: ((group, verb), (group, verb)). Each shape has a cell of a grid of 2 x 2 to itself, and
moves by a quarter of it. The first action is in the first third of the clip, the second in the last third. Its caption
follows from these:

    One red circle and two blue squares. First the circle moves left, then the squares grow.

What is in a clip and what happens belong to training, tuning or test by their hashes: no clip, scene, sentence or pair
of actions of one is in another.
A fault is another spec of the same part: neighbours() for most, drawn for "other" (as many words) and "swapped".
"""
import functools
import hashlib
import itertools

import numpy as np

CELL, CELLS = 16, 2
SIDE, FRAMES, RATE = CELL * CELLS, 16, 8
SEEN = (0, 5, 10, 15)  # what vfm-caption shows a captioner of FRAMES frames, two frames a second
COLOURS = {"red": (220, 30, 30), "green": (30, 170, 40), "blue": (40, 60, 230), "yellow": (230, 210, 30),
           "purple": (150, 40, 180), "white": (245, 245, 245)}
SHAPES = ("circle", "cross", "square", "triangle")
MOVES = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
VERBS = (*MOVES, "grow", "shrink")
COUNTS = {1: ((1,), (2,), (3,)), 2: ((1, 1), (1, 2), (2, 1))}
WORDS = ("zero", "one", "two", "three")
FAULTS = ("colour", "count", "direction", "order", "object", "other", "swapped")


@functools.cache
def share_of(thing) -> str:
    number = hashlib.sha256(repr(thing).encode()).digest()[0]
    return "training" if number < 180 else "tuning" if number < 218 else "test"  # 70, 15 and 15 of 100


def part_of(spec) -> str:
    """training, tuning or test; "" of what is in none. What is in a clip belongs to one part, and so does what happens,
    whatever the order and the counts: a spec whose two differ is not used."""
    kinds, actions = spec
    scene, acts = share_of(kinds), share_of(tuple(sorted((kinds[g][2], verb) for g, verb in actions)))
    return scene if scene == acts else ""


def any_spec(rng):
    groups = 1 if rng.random() < 0.4 else 2
    counts = COUNTS[groups][rng.integers(3)]
    shapes = sorted(rng.choice(len(SHAPES), groups, replace=False))
    colours = [list(COLOURS)[rng.integers(len(COLOURS))] for _ in shapes]
    kinds = tuple((n, c, SHAPES[s]) for n, c, s in zip(counts, colours, shapes))
    while True:
        actions = tuple((int(rng.integers(groups)), VERBS[rng.integers(len(VERBS))]) for _ in range(2))
        if actions[0] != actions[1]:
            return kinds, actions


def draw_spec(rng, part):
    while True:
        spec = any_spec(rng)
        if part_of(spec) == part:
            return spec


def unsaid_spec(rng):
    """Two or three shapes each of its own kind, of which no caption tells: three different ones, or some that are equal
    but for their colours. Its pair of actions is one of the training."""
    while True:
        count = int(rng.integers(2, 4))
        kinds = tuple((1, list(COLOURS)[rng.integers(len(COLOURS))], SHAPES[rng.integers(len(SHAPES))])
                      for _ in range(count))
        actions = tuple((int(rng.integers(count)), VERBS[rng.integers(len(VERBS))]) for _ in range(2))
        different = {kind[2] for kind in kinds}
        if len(different) < 3 and len(set(kinds)) == len(different):
            continue
        acts = tuple(sorted((kinds[g][2], verb) for g, verb in actions))
        if actions[0] != actions[1] and share_of(acts) == "training":
            return kinds, actions


def caption(spec) -> str:
    kinds, actions = spec

    def noun(count, shape):
        return shape if count == 1 else shape + ("es" if shape.endswith("s") else "s")

    def act(group, verb):
        count, _, shape = kinds[group]
        word = "move" if verb in MOVES else verb
        text = f"the {noun(count, shape)} {word}{'s' if count == 1 else ''}"
        return f"{text} {verb}" if verb in MOVES else text

    scene = " and ".join(f"{WORDS[n]} {c} {noun(n, s)}" for n, c, s in kinds)
    return f"{scene.capitalize()}. First {act(*actions[0])}, then {act(*actions[1])}."


def sorted_spec(kinds, actions):
    order = sorted(range(len(kinds)), key=lambda i: kinds[i][2])
    place = {old: new for new, old in enumerate(order)}
    return tuple(kinds[i] for i in order), tuple((place[g], v) for g, v in actions)


def neighbours(spec, fault) -> list:
    """All specs that differ from this one by the fault."""
    kinds, actions = spec

    def with_kind(i, kind):
        return tuple(kind if j == i else old for j, old in enumerate(kinds))

    found = []
    if fault == "colour":
        found = [(with_kind(i, (n, c, s)), actions) for i, (n, old, s) in enumerate(kinds) for c in COLOURS if c != old]
    elif fault == "count":
        old = tuple(n for n, _, _ in kinds)
        found = [(tuple((n, c, s) for n, (_, c, s) in zip(new, kinds)), actions)
                 for new in COUNTS[len(kinds)] if new != old]
    elif fault == "object":
        used = {s for _, _, s in kinds}
        found = [sorted_spec(with_kind(i, (n, c, s)), actions) for i, (n, c, _) in enumerate(kinds) for s in SHAPES
                 if s not in used]
    elif fault == "order":
        found = [(kinds, (actions[1], actions[0]))]
    elif fault == "direction":
        for i, move in itertools.product(range(2), MOVES):
            group, old = actions[i]
            if old in MOVES and move != old:
                new = tuple((group, move) if j == i else a for j, a in enumerate(actions))
                found.append((kinds, new))
    return [s for s in found if s[1][0] != s[1][1]]


def faulty(spec, fault, rng, part):
    """A spec of the same part whose caption is wrong of this one, or None."""
    if fault in ("other", "swapped"):
        words = len(caption(spec).split())
        for _ in range(400):
            other = draw_spec(rng, part)
            if caption(other) != caption(spec) and (fault == "swapped" or len(caption(other).split()) == words):
                return other
        return None
    found = [s for s in neighbours(spec, fault) if part_of(s) == part]
    return found[rng.integers(len(found))] if found else None


REACH = 10  # pixels of a shape from its centre, at most
GRID = np.arange(-REACH, REACH + 1, dtype=np.float32)
SCALE = {"grow": 1.4, "shrink": 0.55}
WAY = 4  # pixels of a move


class Scene:
    """A drawing of a spec: for each shape its place and size in each frame, and what is in which cell when."""

    def __init__(self, spec, rng):
        kinds, actions = spec
        self.spec = spec
        self.kind = [kinds[g] for g, (n, _, _) in enumerate(kinds) for _ in range(n)]
        owners = np.array([g for g, (n, _, _) in enumerate(kinds) for _ in range(n)])
        self.owners = owners.tolist()
        steps = np.zeros((2, len(owners), 2))
        for i, (group, verb) in enumerate(actions):
            steps[i, owners == group] = MOVES.get(verb, (0, 0))
        steps *= WAY
        self.places = rng.choice(CELLS**2, len(owners), replace=False)
        cells = np.stack([self.places % CELLS, self.places // CELLS], 1)
        first = rng.uniform(0, 1.5)
        frames = np.arange(FRAMES)
        ways = [np.clip((frames - begin) / (end - begin), 0, 1)
                for begin, end in ((first, rng.uniform(first + 2, 4.9)), (first + 10, rng.uniform(first + 12, 14.9)))]
        begin = -steps.sum(0) / 2 + rng.uniform(-1, 1, steps[0].shape)  # from the middle of its cell
        at = begin[:, None] + sum(way[:, None] * step[:, None] for way, step in zip(ways, steps))
        self.at = (cells[:, None] + 0.5) * CELL + at  # [shape, frame, x and y]
        self.radius = np.repeat(rng.uniform(4.6, 5.2), len(owners))[:, None] * np.ones(FRAMES)
        for way, (group, verb) in zip(ways, actions):
            self.radius[owners == group] *= 1 + (SCALE.get(verb, 1) - 1) * way
        self.ground = rng.uniform(20, 110) + rng.uniform(-12, 12, 3)
        shades = [np.clip(np.array(COLOURS[c]) + rng.uniform(-20, 20, 3), 0, 255) for _, c, _ in kinds]
        self.shades = [shades[g] for g in owners]


def every_mask():
    """[shape, radius in quarters of a pixel, y and x of its centre from a pixel's in quarters from -2 on, pixels]: how
    much of a pixel is the shape's."""
    quarters = np.arange(-2, 3, dtype=np.float32) / 4
    r = np.arange(4 * REACH, dtype=np.float32)[:, None, None, None, None] / 4
    dx, dy = GRID - quarters[:, None, None], GRID[:, None] - quarters[:, None, None, None]
    ax, ay = abs(dx), abs(dy)
    far = (np.hypot(dx, dy) - r,
           np.minimum(np.maximum(ax - r, ay - 0.3 * r), np.maximum(ax - 0.3 * r, ay - r)),
           np.maximum(ax, ay) - 0.88 * r,
           np.maximum(dy - 0.85 * r, (ax * 1.73 - dy - 1.1 * r) / 2))
    return np.stack([np.clip(0.5 - f, 0, 1) for f in far])


MASKS = every_mask()


def draw(scenes, frames) -> np.ndarray:
    """[scenes, frames, SIDE, SIDE, 3] bytes. `frames`: the same of all, or of each its own [scenes, frames]."""
    count, pixels = len(scenes), np.arange(2 * REACH + 1)
    frames = np.broadcast_to(frames, (count, np.shape(frames)[-1]))
    ground = np.array([s.ground for s in scenes], np.float32)
    canvas = np.empty((count, frames.shape[1], SIDE + 2 * REACH, SIDE + 2 * REACH, 3), np.float32)
    canvas[:] = ground[:, None, None, None]
    for slot in range(3):
        has = [i for i, s in enumerate(scenes) if len(s.kind) > slot]
        if not has:
            continue
        at = np.array([scenes[i].at[slot][frames[i]] for i in has], np.float32) - 0.5  # of pixels' middles
        radius = np.rint(4 * np.array([scenes[i].radius[slot][frames[i]] for i in has])).astype(int)
        shapes = np.array([SHAPES.index(scenes[i].kind[slot][2]) for i in has])[:, None]
        shade = np.array([scenes[i].shades[slot] for i in has], np.float32)[:, None, None, None]
        middle = np.rint(at).astype(int)
        beside = np.rint(4 * (at - middle)).astype(int) + 2
        m = MASKS[shapes, radius, beside[..., 1], beside[..., 0]][..., None]
        where = (np.array(has)[:, None, None, None], np.arange(frames.shape[1])[:, None, None],
                 middle[..., 1, None, None] + pixels[:, None], middle[..., 0, None, None] + pixels)
        old = canvas[where]
        canvas[where] = old + m * (shade - old)
    return canvas[:, :, REACH:-REACH, REACH:-REACH].astype(np.uint8)
