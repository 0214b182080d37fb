#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the scores of vfm-caption score tell of captions with faults.

    table.py fit FOLDER     weights of caption_quality, fitted to the part `tuning`
    table.py show FOLDER    the table of the part `test`; fails where a target is missed, or where texts alone tell

AUC: how often, of a true caption and one with a fault drawn at random, the true one has the higher score; a tie is
half. FOLDER has the shards of clips.py and their columns of scores.
"""
import json
import pathlib
import re
import sys
import tarfile

import numpy as np

import shapes

SCORES = ("caption_gain", "caption_gain_least", "caption_fit", "caption_fit_least", "caption_quality")
LEAST, LEAST_OF_A_FAULT, LEAK = 0.95, 0.85, 0.6
FLOOR = 10  # of caption_gain_least, see lib/columns/score/caption_quality.h


def read(path: pathlib.Path, ending: str) -> dict:
    with tarfile.open(path) as tar:
        return {member.name[:-len(ending)]: tar.extractfile(member).read() for member in tar
                if member.name.endswith(ending)}


def scores_of(folder: pathlib.Path, part: str) -> dict:
    return {key: json.loads(text) for key, text in read(folder / f"{part}.score.tar", ".json").items()}


def auc(true: np.ndarray, false: np.ndarray) -> float:
    values = np.concatenate([true, false])
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return (ranks[:len(true)].sum() - len(true) * (len(true) + 1) / 2) / (len(true) * len(false))


def split(values: dict, fault: str):
    """Those of true and of faulty captions; of every fault: \"all\"."""
    def which(end):
        return np.array([v for key, v in values.items() if key.endswith(end) and fault in (key.split("-")[0], "all")])
    return which("-true"), which("-false")


def logistic(x: np.ndarray, y: np.ndarray, shrink: float) -> np.ndarray:
    """Weights, the last one the bias, of the least loss + shrink |weights|^2 / 2, by Newton's steps."""
    x = np.concatenate([x, np.ones((len(x), 1))], 1)
    keep = np.diag([shrink] * (x.shape[1] - 1) + [0])
    w = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -500, 500)))
        slope = x.T @ (p - y) + keep @ w
        w -= np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + keep + 1e-9 * np.eye(len(w)), slope)
    return w


def fit(folder: pathlib.Path) -> None:
    """Prints the weights, and how they do on the part `test` beside those that made its caption_quality."""
    tuning, test, names = scores_of(folder, "tuning"), scores_of(folder, "test"), SCORES[:4]

    def numbers(rows):
        return np.array([[max(row[name], -FLOOR) if name == "caption_gain_least" else row[name] for name in names]
                         for row in rows.values()])

    w = logistic(numbers(tuning), np.array([key.endswith("-true") for key in tuning], float), 1.0)
    print(f"of {len(tuning)} captions:", ", ".join(f"{name} {value:.3f}" for name, value in zip((*names, "bias"), w)))
    fitted = dict(zip(test, numbers(test) @ w[:-1]))
    here = {key: row["caption_quality"] for key, row in test.items()}
    for title, values in (("these weights", fitted), ("those of caption_quality", here)):
        print(f"{title}, on the test:", ", ".join(f"{fault} {auc(*split(values, fault)):.3f}"
                                                  for fault in (*shapes.FAULTS, "all")))


def words_of(folder: pathlib.Path, part: str) -> dict:
    texts = read(folder / f"{part}.tar", ".txt")
    return {key: re.findall(r"\w+", text.decode().lower()) for key, text in texts.items()}


def text_classifier(folder: pathlib.Path) -> dict:
    """Scores of the test's texts by a linear classifier of words and pairs of words, fitted to those of tuning."""
    tuning, test = words_of(folder, "tuning"), words_of(folder, "test")

    def parts(said):
        return [*said, *zip(said, said[1:])]

    place = {part: i for i, part in enumerate(sorted({p for said in tuning.values() for p in parts(said)}, key=repr))}

    def rows(texts):  # keys of the two parts are the same
        x = np.zeros((len(texts), len(place)))
        for row, said in zip(x, texts.values()):
            row[[place[p] for p in parts(said) if p in place]] = 1
        return x

    w = logistic(rows(tuning), np.array([key.endswith("-true") for key in tuning], float), 3.0)
    return dict(zip(test, rows(test) @ w[:-1]))


def show(folder: pathlib.Path) -> None:
    own, elsewhere, classified = scores_of(folder, "test"), scores_of(folder, "test-elsewhere"), text_classifier(folder)
    columns = [(name[len("caption_"):], {key: row[name] for key, row in own.items()}) for name in SCORES]
    beside = [(name[len("caption_"):], {key: row[name] for key, row in elsewhere.items()}) for name in SCORES]
    texts = [("logprob_blind", {key: row["caption_logprob_blind"] for key, row in own.items()}),
             ("words", classified)]
    failed = []
    for title, group in (("", columns), (", another clip's frames", beside), (", text alone", texts)):
        print(f"| AUC{title} |", " | ".join(name for name, _ in group), "|")
        print("|---|" + "---:|" * len(group))
        for fault in (*shapes.FAULTS, "all"):
            found = [auc(*split(values, fault)) for _, values in group]
            print(f"| {fault} |", " | ".join(f"{value:.3f}" for value in found), "|")
            if group is not columns:
                failed += [f"{name}{title}: {fault} {value:.3f}" for (name, _), value in zip(group, found)
                           if value > LEAK]
            elif found[-1] < (LEAST if fault == "all" else LEAST_OF_A_FAULT):
                failed.append(f"quality: {fault} {found[-1]:.3f}")
        print()
    print(f"{len(own)} captions")
    if failed:
        sys.exit("missed: " + "; ".join(failed))


{"fit": fit, "show": show}[sys.argv[1]](pathlib.Path(sys.argv[2]))
