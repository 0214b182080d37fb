// The exchanges before and after the matrices of tensor parallelism in chunks of rows
// (ops/row_chunks.h), so that rows travel while others are multiplied.
//
// Each rank's rows are cut into the same number of even chunks, the longer ones first. If a rank
// has fewer rows than chunks, some are empty. To gather, a rank sends its rows to each other rank,
// chunk by chunk, and multiplies its own rows while the others' arrive. To sum, it computes the
// rows of other ranks first. Each chunk travels while the next is computed, and its own rows come
// last.
// Sums add in the order of the ranks, in f32, with one rounding at the end. They have the bits of a
// reduce_scatter in that order (dist/group.h). A rank sends as many bytes as in one whole exchange,
// in (ranks - 1) x chunks / ranks messages between two ranks, each an exchange(). Until a sum is
// finished, the rank's memory holds what it sends and what it receives. Every rank of the group
// must run the same exchanges in the same order. The group must outlive the object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dist/group.h"
#include "ops/row_chunks.h"

namespace vfm::nn {

/// Number of chunks of one rank's rows, if all `ranks` together have at least `chunks`.
int chunks_of_rank(int chunks, int ranks);

/// `rows` by rank, the same list on all ranks. All rows together get at least `chunks` chunks. Null
/// for one rank or one chunk: then the exchange is not cut.
std::shared_ptr<const ops::RowChunks> chunked_rows(dist::Group& group,
                                                   std::vector<std::int64_t> rows, int chunks);

}  // namespace vfm::nn
