// Measures how much of a picture looks like lines of writing, by its edges. It reads nothing and
// was not trained.
//
// A line of writing is a row of strokes: along each of its pixel rows the luma goes up and comes
// down again, or the other way round, within a stroke's width, many times; above and below there
// are no strokes; and strokes of one line have one lightness. So it measures edges of strokes close
// in a row, as in Wu, Manmatha and Riseman, "TextFinder" (1999); their vertical extent by
// projection (Lienhart and Effelsberg 2000); and, along rows only, the stroke's two edges of
// opposite sign (Epshtein, Ofek and Wexler, "Detecting text in natural scenes with stroke width
// transform", 2010). Leaves and gravel have strokes without quiet rows above and below and of all
// lightnesses; bricks have few. Rows of windows, keyboards and fences may pass. Pure.
// Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "curate/measures/luma_plane.h"

namespace vfm::curate {

/// Boxes of lines, in pixels of `picture`. Lines less than 6 or more than a seventh of the height
/// high, and lines that are not twice as wide as high, are not found; nor is vertical or slanted
/// writing.
std::vector<PixelArea> find_text_lines(const ReducedLuma& picture);

/// The share of the picture in such boxes, 0 to 1; overlaps count once.
double text_area(const ReducedLuma& picture);

}  // namespace vfm::curate
