#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the two small models of the benchmark of vfm-caption score, and writes them as Hugging Face folders.

    train.py captioner|clip FOLDER

captioner: a Qwen2.5-VL of under 2 million parameters that says what clips of shapes.py show. First its vision tower is
taught, by heads that are not kept, what is in each patch and what it does, and, of each pair of frames, how many there
are of each shape, of which colour, and which do what. Then its language model learns captions of what the tower sees;
in one of four steps without a clip, so that it knows what captions are like. It gets the pixels, tokens and places that
vfm-caption gives it: at the end its logits are compared with those of transformers' own forward.
clip: a CLIP of frames and single sentences, of which some are the clip's own with a fault; with heads of that kind.
One thread each. The steps are counted, so what comes out does not depend on how fast a machine is. Seeds
are fixed; only the order of the CLIP's tokens is not, so CLIPs differ a little from run to run.
"""
import pathlib
import sys

import torch

from captioner import train_captioner
from small_clip import train_clip


def main() -> None:
    kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    torch.manual_seed(11)
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    {"captioner": train_captioner, "clip": train_clip}[kind](folder)


main()
