// The exchanges before and after the matrices of tensor parallelism in parts (ops/row_chunks.h), so
// that rows travel beside products.
//
// The rows of all ranks are some chunks: of each rank's as many, even, the longer ones first; where
// it has fewer rows than chunks some are empty. To gather, a rank sends each other one its rows,
// chunk by chunk, and has its own while the others' come. To sum, it makes what is others' first,
// which travels while it makes the next and, at the end, its own. What is summed is added in the
// order of the ranks, in f32, with one rounding at the end: the bits of a reduce_scatter that adds
// in that order (dist/group.h). A rank sends as many bytes as in the exchange as a whole, in
// (ranks - 1) x chunks / ranks messages between two ranks, each an exchange(); until they have
// come, what it sends of a sum is in its memory, and what comes. Every rank of the group must run
// the same ones in the same order; it must outlive them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dist/group.h"
#include "ops/row_chunks.h"

namespace vfm::nn {

/// Of a rank's rows, where those of all `ranks` are to be at least so many.
int chunks_of_rank(int chunks, int ranks);

/// `rows` by rank, the same list on all; at least `chunks` in all. Null where there is one rank, or
/// one chunk: then the exchange is as a whole.
std::shared_ptr<const ops::RowChunks> chunked_rows(dist::Group& group,
                                                   std::vector<std::int64_t> rows, int chunks);

}  // namespace vfm::nn
