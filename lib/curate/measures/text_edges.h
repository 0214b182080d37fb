// Measures how much of a picture looks like lines of text, without a trained model.
//
// A line of text is a row of strokes of the same lightness, without strokes above and below.
// Strokes are found by close edges in a row (Wu, Manmatha and Riseman, "TextFinder", 1999) and by
// pairs of edges with opposite sign (Epshtein, Ofek and Wexler, "Detecting text in natural scenes
// with stroke width transform", 2010). Keyboards, fences and rows of windows may be mistaken for
// text.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "curate/measures/luma_plane.h"

namespace vfm::curate {

/// Returns the boxes of text lines, in pixels of `picture`. Does not find vertical or slanted text.
/// Does not find lines that are less than 6 pixels high, higher than a seventh of the picture, or
/// narrower than twice their height.
std::vector<PixelArea> find_text_lines(const ReducedLuma& picture);

/// Returns the share of the picture that the boxes of find_text_lines() cover, 0 to 1.
double text_area(const ReducedLuma& picture);

}  // namespace vfm::curate
