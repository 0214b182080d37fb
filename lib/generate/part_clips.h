// vfm-generate --part: the clips of some prompts.
//
// A part has the prompts whose name, or else text, has a hash (XXH3-64) equal to the number of the
// part, modulo the number of parts. So prompts that may ask for clips of one name are in one part,
// and get the names and seeds that they have without parts. Besides the files of
// shard::PartOutput, a part has places.jsonl, the number in the input of each record's prompt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generate/generate.h"

namespace vfm::generate {

/// Returns the number of the part that has this prompt, of `parts`. Pure.
int part_of_prompt(const PromptLine& line, int parts);

/// Implements generate_clips() for job.parts, after ClipMakers::helped(). A prompt that failed is a
/// result, unless its fault may pass. Returns the number of such faults. Throws what
/// shard::for_each_part() throws, too. With ranks, rank 0 claims the parts.
long generate_parts(const GenerateJob& job, ClipMakers& makers, share::Slots& slots,
                    Progress& progress);

}  // namespace vfm::generate
