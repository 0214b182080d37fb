// The samples that the page of --report shows, with their pictures, captions and numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataset/sample_reader.h"
#include "dataset/shown.h"
#include "report/html.h"
#include "share/slots.h"

namespace vfm::dataset {

/// Reads the samples again. One whose clip cannot be decoded has no picture. The same markup at any
/// number of slots. Throws Error; Stopped.
void add_shown(report::Page& page, const Shown& shown, const SampleReader& reader,
               share::Slots& slots);

}  // namespace vfm::dataset
