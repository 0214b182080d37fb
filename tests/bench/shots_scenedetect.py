#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts by four of PySceneDetect's detectors, each in a file in the form of vfm-clip shots.

  shots_scenedetect.py OUT VIDEO...

writes OUT/content.jsonl, adaptive.jsonl, hash.jsonl and histogram.jsonl. The detectors have their own
thresholds; the shortest scene is a frame, not 15, as edits every five frames could not be found. All see
the same frames, as PySceneDetect's SceneManager decodes and shrinks them. A cut's frame is the one whose
time it has.
"""
import json
import os
import sys

import scenedetect
from scenedetect.detector import SceneDetector

DETECTORS = {"content": scenedetect.ContentDetector, "adaptive": scenedetect.AdaptiveDetector,
             "hash": scenedetect.HashDetector, "histogram": scenedetect.HistogramDetector}


class Together(SceneDetector):
    """One decode for all: to the SceneManager this is one detector that finds nothing."""

    def __init__(self):
        super().__init__()
        self.detectors = {name: make(min_scene_len=1) for name, make in DETECTORS.items()}
        self.cuts = {name: [] for name in DETECTORS}
        self.times = []

    def process_frame(self, timecode, frame_img):
        self.times.append(timecode.seconds)
        for name, detector in self.detectors.items():
            self.cuts[name] += detector.process_frame(timecode, frame_img)
        return []

    def post_process(self, timecode):
        for name, detector in self.detectors.items():
            self.cuts[name] += detector.post_process(timecode)
        return []

    def frames(self, name):
        """Numbers of the frames at which this detector cuts."""
        return sorted({min(range(len(self.times)), key=lambda i: abs(self.times[i] - cut.seconds))
                       for cut in self.cuts[name]})


def main():
    folder, *videos = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    files = {name: open(os.path.join(folder, name + ".jsonl"), "w", encoding="utf-8")
             for name in DETECTORS}
    for path in videos:
        manager, together = scenedetect.SceneManager(), Together()
        manager.add_detector(together)
        manager.detect_scenes(scenedetect.open_video(path))
        for name, file in files.items():
            record = {"kind": "shots", "path": path, "frames": len(together.times),
                      "cuts": [{"frame": frame} for frame in together.frames(name)]}
            print(json.dumps(record), file=file, flush=True)


if __name__ == "__main__":
    main()
