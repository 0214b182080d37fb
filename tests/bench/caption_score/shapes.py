# SPDX-License-Identifier: Apache-2.0
"""Clips of shapes that do two things one after the other, their captions, and captions with one fault.

A clip has one or two groups of equal shapes, three shapes at most: ((count, colour, shape), ...), in the order of the
shapes' names; and two actions: ((group, verb), (group, verb)). Its caption follows from these:

    One red circle and two blue squares. First the circle moves left, then the squares grow.

A spec belongs to training, tuning or test by its hash, so no clip, combination or sentence of one is in another.
Every fault is another spec, drawn so that each spec is as often the faulty one as the true one: a text alone does not
tell them apart.
"""
import hashlib
import itertools

import numpy as np

SIDE, FRAMES, RATE = 48, 8, 4
COLOURS = {"red": (220, 30, 30), "green": (30, 170, 40), "blue": (40, 60, 230), "yellow": (230, 210, 30),
           "purple": (150, 40, 180), "white": (245, 245, 245)}
SHAPES = ("circle", "cross", "square", "triangle")
MOVES = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
VERBS = (*MOVES, "grow", "shrink")
COUNTS = {1: ((1,), (2,), (3,)), 2: ((1, 1), (1, 2), (2, 1))}
WORDS = ("zero", "one", "two", "three")
FAULTS = ("colour", "count", "direction", "order", "object", "other", "swapped")


def part_of(spec) -> str:
    """training, tuning or test: 80, 10 and 10 of 100 specs."""
    number = hashlib.sha256(repr(spec).encode()).digest()[0] * 100 // 256
    return "training" if number < 80 else "tuning" if number < 90 else "test"


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


ROWS, COLUMNS = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32) + 0.5
ADVANCE = (np.clip(np.arange(FRAMES) / 3, 0, 1), np.clip((np.arange(FRAMES) - 3) / 4, 0, 1))


def mask(shape, x, y, r):
    dx, dy = COLUMNS - x, ROWS - y
    if shape == "circle":
        far = np.hypot(dx, dy) - r
    elif shape == "square":
        far = np.maximum(abs(dx), abs(dy)) - 0.88 * r
    elif shape == "cross":
        far = np.minimum(np.maximum(abs(dx) - r, abs(dy) - 0.36 * r), np.maximum(abs(dx) - 0.36 * r, abs(dy) - r))
    else:
        far = np.maximum(dy - 0.8 * r, (abs(dx) * 1.73 - dy - 1.1 * r) / 2)
    return np.clip(0.5 - far, 0, 1)


def draw_clip(spec, rng) -> np.ndarray:
    """[FRAMES, SIDE, SIDE, 3] bytes: places, sizes, shades and the ground are drawn."""
    kinds, actions = spec
    owners = [g for g, (n, _, _) in enumerate(kinds) for _ in range(n)]
    shift = np.zeros((len(owners), FRAMES, 2), np.float32)
    scale = np.ones((len(owners), FRAMES), np.float32)
    way = rng.uniform(9, 12)
    for advance, (group, verb) in zip(ADVANCE, actions):
        for i in (i for i, g in enumerate(owners) if g == group):
            if verb in MOVES:
                shift[i] += way * advance[:, None] * np.array(MOVES[verb], np.float32)
            else:
                scale[i] *= 1 + ((1.6 if verb == "grow" else 0.55) - 1) * advance
    size = np.array([rng.uniform(5, 6)] * len(owners))
    radius = size[:, None] * scale
    for attempt in range(2000):
        start = rng.uniform(5, SIDE - 5, (len(owners), 2)).astype(np.float32)
        at = start[:, None] + shift
        tight = 1.0 if attempt < 1000 else 0.85
        inside = (at > tight * radius[..., None]).all() and (at < SIDE - tight * radius[..., None]).all()
        if inside and all((np.hypot(*(at[i] - at[j]).T) > tight * (radius[i] + radius[j])).all()
                          for i in range(len(owners)) for j in range(i)):
            break
    ground = rng.uniform(20, 110) + rng.uniform(-12, 12, 3)
    frames = np.broadcast_to(ground.astype(np.float32), (FRAMES, SIDE, SIDE, 3)).copy()
    shades = [np.clip(np.array(COLOURS[c]) + rng.uniform(-20, 20, 3), 0, 255) for _, c, _ in kinds]
    for f in range(FRAMES):
        for i, g in enumerate(owners):
            m = mask(kinds[g][2], at[i, f, 0], at[i, f, 1], radius[i, f])[..., None]
            frames[f] = frames[f] * (1 - m) + m * shades[g]
    return frames.astype(np.uint8)
