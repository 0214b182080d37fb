// Adds samples to the report of vfm-shard, with pictures, captions and numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataset/sample_reader.h"
#include "dataset/shown.h"
#include "report/html.h"
#include "share/slots.h"

namespace vfm::dataset {

/// Reads the samples of `shown` again, and adds them to the page. A sample whose clip cannot be
/// decoded has no picture. Throws Error and Stopped.
void add_shown(report::Page& page, const Shown& shown, const SampleReader& reader,
               share::Slots& slots);

}  // namespace vfm::dataset
