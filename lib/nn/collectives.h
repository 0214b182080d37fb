// Exchanges of rows (ops/exchange.h) among the ranks of a group, for tensor, sequence and context
// parallelism.
//
// Each exchange is linear, and its adjoint is exact: nothing is scaled. Every rank of the group
// must run the same exchanges in the same order. Lists of row counts are by rank, and the same on
// all ranks; any count may be zero. The group must outlive the exchange. In a group of one rank
// nothing is exchanged. Shape letters: N rows of all ranks together, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "dist/group.h"
#include "nn/columns.h"
#include "ops/exchange.h"
#include "ops/pointwise/row_order.h"

namespace vfm::nn {

/// [rows[rank], D] to [N, D], the rows of all ranks in their order. Backward sums the gradients of
/// a row, in the order of the ranks, on the rank of the row. Products may run the exchange in
/// `chunks` of rows (nn/chunked_rows.h); 1: as a whole.
ops::Exchange gather_rows(dist::Group& group, std::vector<std::int64_t> rows, int chunks = 1);
/// The adjoint: sums the summands [N, D] of all ranks, and gives this rank its own rows.
ops::Exchange sum_rows(dist::Group& group, std::vector<std::int64_t> rows, int chunks = 1);

/// [1, columns[rank]] to [1, sum of columns], a row of which each rank has some columns.
ops::Exchange gather_row(dist::Group& group, std::vector<std::int64_t> columns);

/// Every rank gets the sum of all ranks' tensors of one shape, added in the order of the ranks. The
/// adjoint is the same. For sums over tokens whose columns are dealt to the ranks
/// (ops/norm/heads_norm.h).
ops::Exchange sum_everywhere(dist::Group& group);

/// Gathers some columns of x [rows[rank], columns.of] as gather_rows does, then reorders the rows
/// (reorder_rows): [N, columns.count]. The gradient of the other columns is zero.
ops::Exchange gather_columns(dist::Group& group, std::vector<std::int64_t> rows, Columns columns,
                             const ops::RowOrder& order);
/// The same with a choice of the gathered rows: [rows of the choice, columns.count].
ops::Exchange gather_columns(dist::Group& group, std::vector<std::int64_t> rows, Columns columns,
                             const ops::RowChoice& choice);

/// From a part of the rows to a part of the columns: x [rows[rank], sum of blocks] to [N, sum of
/// blocks / ranks], with rows in the order `order`. The columns of each block are dealt evenly to
/// the ranks. With queries, keys and values as three blocks a rank gets some heads of all tokens
/// (Jacobs et al., "DeepSpeed Ulysses", 2023). Throws Error if the number of ranks does not divide
/// a block.
ops::Exchange rows_to_columns(dist::Group& group, std::vector<std::int64_t> rows,
                              std::vector<std::int64_t> blocks, const ops::RowOrder& order);
/// The inverse of rows_to_columns, which is also its adjoint.
ops::Exchange columns_to_rows(dist::Group& group, std::vector<std::int64_t> rows,
                              std::vector<std::int64_t> blocks, const ops::RowOrder& order);

/// The same two exchanges for rows in parts, such as samples. Each rank has parts[i][rank] rows of
/// part i. [N, ...] has the parts one after another, each with the rows of all ranks in their
/// order. Rows are received and sent in place, without a copy. Each part is one all-to-all, and all
/// run at once.
ops::Exchange rows_to_columns(dist::Group& group, std::vector<std::vector<std::int64_t>> parts,
                              std::vector<std::int64_t> blocks);
ops::Exchange columns_to_rows(dist::Group& group, std::vector<std::vector<std::int64_t>> parts,
                              std::vector<std::int64_t> blocks);

/// Moves rows between ranks: x [sum of to, D] to [sum of from, D]. x is put in the order `sorted`;
/// then the first to[0] rows go to rank 0, and so on. The result has the rows from each rank in
/// turn. to[r] on this rank must equal from[this rank] on rank r. One all-to-all in each direction.
ops::Exchange move_rows(dist::Group& group, const ops::RowOrder& sorted,
                        std::vector<std::int64_t> to, std::vector<std::int64_t> from);

}  // namespace vfm::nn
