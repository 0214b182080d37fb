// Exchanges (ops/exchange.h) among the ranks of a group, over rows: those of tensor, sequence and
// context parallelism.
//
// Each is linear, and its adjoint is exact: nothing is scaled. Every rank of the group must run the
// same ones in the same order. Counts of rows are by rank, the same list on all; any may be zero.
// The group must outlive what is made. Shape letters: N rows of all ranks together, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "dist/group.h"
#include "nn/columns.h"
#include "ops/exchange.h"
#include "ops/pointwise/row_order.h"

namespace vfm::nn {

/// [rows[rank], D] to [N, D], all ranks' rows in their order; backward sums each rank's gradients
/// of one row, in the order of ranks, where that row lies. Nothing to exchange in a group of one.
/// Products may have it in `chunks` of rows (nn/chunked_rows.h); 1: as a whole.
ops::Exchange gather_rows(dist::Group& group, std::vector<std::int64_t> rows, int chunks = 1);
/// The other way round: [N, D], of which each rank has a summand, to the sum's rows of this rank.
ops::Exchange sum_rows(dist::Group& group, std::vector<std::int64_t> rows, int chunks = 1);

/// Some columns of x [rows[rank], columns.of] as gather_rows has them, and then in another order of
/// rows (reorder_rows): [N, columns.count]. The gradient of the other columns is zero.
ops::Exchange gather_columns(dist::Group& group, std::vector<std::int64_t> rows, Columns columns,
                             const ops::RowOrder& order);
/// The same with a choice of the gathered rows: [N of the choice, columns.count].
ops::Exchange gather_columns(dist::Group& group, std::vector<std::int64_t> rows, Columns columns,
                             const ops::RowChoice& choice);

/// From a part of the rows to a part of the columns: x [rows[rank], sum of blocks], of which each
/// block's columns are dealt out evenly, to [N, sum of blocks / ranks], rows in the order `order`.
/// Queries, keys and values are three blocks: so a rank gets some heads of all tokens, as Jacobs et
/// al., "DeepSpeed Ulysses" (2023) have it. Throws Error if the ranks do not divide a block.
ops::Exchange rows_to_columns(dist::Group& group, std::vector<std::int64_t> rows,
                              std::vector<std::int64_t> blocks, const ops::RowOrder& order);
/// The inverse, which is its adjoint.
ops::Exchange columns_to_rows(dist::Group& group, std::vector<std::int64_t> rows,
                              std::vector<std::int64_t> blocks, const ops::RowOrder& order);

/// Both of rows in parts, as of samples: each rank has parts[i][rank] of part i, and [N, ...] has
/// part after part, in each those of the ranks in their order. So rows come where they are to be,
/// and leave from there, uncopied; one all-to-all for each part, all under way at once.
ops::Exchange rows_to_columns(dist::Group& group, std::vector<std::vector<std::int64_t>> parts,
                              std::vector<std::int64_t> blocks);
ops::Exchange columns_to_rows(dist::Group& group, std::vector<std::vector<std::int64_t>> parts,
                              std::vector<std::int64_t> blocks);

/// Rows to the ranks that are to have them: of x [sum of to, D] in the order `sorted` the first
/// to[0] go to rank 0, and so on; [sum of from, D] of each rank's in turn. What a rank sends
/// another is what that one awaits. One all-to-all each way.
ops::Exchange move_rows(dist::Group& group, const ops::RowOrder& sorted,
                        std::vector<std::int64_t> to, std::vector<std::int64_t> from);

}  // namespace vfm::nn
