// Measures how much of a picture looks like lines of text, by edges alone, without a trained model.
//
// A line of text is a row of strokes. Along each of its pixel rows, luma rises and falls (or falls
// and rises) within a stroke's width, many times. There are no strokes above and below, and all
// strokes of a line have one lightness. Three things are measured: stroke edges close together in a
// row (Wu, Manmatha and Riseman, "TextFinder", 1999); their vertical extent by projection (Lienhart
// and Effelsberg 2000); and, along rows only, pairs of edges with opposite sign (Epshtein, Ofek and
// Wexler, "Detecting text in natural scenes with stroke width transform", 2010). Windows in a row,
// keyboards and fences may be taken for text. Pure. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "curate/measures/luma_plane.h"

namespace vfm::curate {

/// Returns boxes of lines, in pixels of `picture`. Lines lower than 6 pixels, higher than a seventh
/// of the picture, or less than twice as wide as high are not found, nor is vertical or slanted
/// text.
std::vector<PixelArea> find_text_lines(const ReducedLuma& picture);

/// Returns the share of the picture in boxes of find_text_lines(), 0 to 1. Overlaps are counted
/// once.
double text_area(const ReducedLuma& picture);

}  // namespace vfm::curate
