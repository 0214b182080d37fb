// SPDX-License-Identifier: Apache-2.0
#include "group_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/half.h"

namespace group_cases {
namespace {

using namespace vfm;
using dist::Group;
using dist::Operation;
using dist::Traffic;
using dist::Transfer;
using Rows = std::vector<std::int64_t>;

void require(bool holds, const Group& group, const std::string& what) {
  if (!holds) fail("rank {} of the {} of '{}': {}", group.rank(), group.size(), group.axis(), what);
}

/// Of a rank's element; of such sizes that the order of additions changes bits.
float value(int rank, std::int64_t i) {
  const auto mixed = static_cast<std::uint32_t>(rank * 7919 + i * 104729 + 12345) * 2654435761u;
  return static_cast<float>(static_cast<int>(mixed >> 8) - (1 << 23)) *
         std::pow(10.f, static_cast<float>((rank + i) % 7) - 9.f);
}

Tensor filled(int rank, Shape shape, std::int64_t from = 0) {
  Tensor tensor(std::move(shape));
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<float>()[i] = value(rank, from + i);
  return tensor;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.elements() == b.elements() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

std::int64_t total(const Rows& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

/// The sum by rank of element i, and the other way round.
float forward_sum(int size, std::int64_t i) {
  float sum = value(0, i);
  for (int rank = 1; rank < size; ++rank)
    sum += value(rank, i);
  return sum;
}
float backward_sum(int size, std::int64_t i) {
  float sum = value(size - 1, i);
  for (int rank = size - 2; rank >= 0; --rank)
    sum += value(rank, i);
  return sum;
}

/// 1 0 3 2 1 0 ...: some ranks have nothing.
Rows uneven(int size) {
  Rows rows;
  for (int r = 0; r < size; ++r)
    rows.push_back((r * 3 + 1) % 4);
  return rows;
}

void check_all_gather(Group& group, const Rows& rows) {
  constexpr std::int64_t kWidth = 3;
  const auto own = static_cast<std::size_t>(group.rank());
  const Tensor in = filled(group.rank(), {rows[own], kWidth});
  const Tensor out = Tensor::zeros({total(rows), kWidth});
  group.all_gather(in, out, rows).wait();
  const Tensor same = Tensor::zeros({total(rows), kWidth});
  std::int64_t begin = 0;
  for (std::size_t r = 0; r < rows.size(); begin += rows[r++]) {
    const Tensor expected = filled(static_cast<int>(r), {rows[r], kWidth});
    require(same_bits(out.rows(begin, begin + rows[r]), expected), group,
            fmt::format("all_gather: the part of rank {}", r));
    if (r == own) copy(in, same.rows(begin, begin + rows[r]));
  }
  begin = std::accumulate(rows.begin(), rows.begin() + group.rank(), std::int64_t{0});
  group.all_gather(same.rows(begin, begin + rows[own]), same, rows).wait();
  require(same_bits(same, out), group, "all_gather in place");
}

void check_reduce_scatter(Group& group, const Rows& rows) {
  constexpr std::int64_t kWidth = 5;
  const auto own = static_cast<std::size_t>(group.rank());
  const Tensor in = filled(group.rank(), {total(rows), kWidth});
  const Tensor out = Tensor::zeros({rows[own], kWidth});
  group.reduce_scatter(in, out, rows).wait();
  const std::int64_t begin =
      std::accumulate(rows.begin(), rows.begin() + group.rank(), std::int64_t{0});
  for (std::int64_t i = 0; i < out.elements(); ++i)
    require(out.data<float>()[i] == forward_sum(group.size(), begin * kWidth + i), group,
            "reduce_scatter: a sum, or the order of its additions");
  group.reduce_scatter(in, in.rows(begin, begin + rows[own]), rows).wait();
  require(same_bits(in.rows(begin, begin + rows[own]), out), group, "reduce_scatter in place");
}

void check_all_reduce(Group& group, std::int64_t count) {
  const Tensor floats = filled(group.rank(), {count});
  const Tensor halves = floats.to(DType::bf16);
  std::vector<double> doubles;
  const Tensor whole({count}, DType::i64);
  for (std::int64_t i = 0; i < count; ++i) {
    doubles.push_back(1.0 / (value(group.rank(), i) + 0.3));
    whole.data<std::int64_t>()[i] = (std::int64_t{1} << 60) / (group.rank() + i + 1);
  }
  group.all_reduce(floats).wait();
  group.all_reduce(halves).wait();
  group.all_reduce(std::span<double>(doubles)).wait();
  group.all_reduce(whole).wait();
  bool ordered = false, ordered_halves = false;
  for (std::int64_t i = 0; i < count; ++i) {
    const float sum = forward_sum(group.size(), i);
    require(floats.data<float>()[i] == sum, group, "all_reduce of f32");
    ordered = ordered || sum != backward_sum(group.size(), i);
    float half = 0, rounded = 0;
    double real = 0;
    std::int64_t number = 0;
    for (int r = 0; r < group.size(); ++r) {
      const float one = bfloat16_to_float(float_to_bfloat16(value(r, i)));
      half = r == 0 ? one : half + one;
      rounded = bfloat16_to_float(float_to_bfloat16(r == 0 ? one : rounded + one));
      real = (r == 0 ? 0 : real) + 1.0 / (value(r, i) + 0.3);
      number += (std::int64_t{1} << 60) / (r + i + 1);
    }
    const std::uint16_t bits = halves.data<std::uint16_t>()[i];
    require(bits == float_to_bfloat16(half), group, "all_reduce of bf16");
    ordered_halves = ordered_halves || bits != float_to_bfloat16(rounded);
    require(doubles[static_cast<std::size_t>(i)] == real, group, "all_reduce of f64");
    require(whole.data<std::int64_t>()[i] == number, group, "all_reduce of i64");
  }
  // The values tell another order, and another place of the rounding.
  if (group.size() > 2 && count > 50)
    require(ordered && ordered_halves, group, "the values of the test");
}

void check_all_to_all(Group& group) {
  constexpr std::int64_t kWidth = 2;
  const int size = group.size(), rank = group.rank();
  // Of each rank for itself one.
  const auto rows_of = [](int from, int to) { return std::int64_t{(from + 2 * to + 1) % 3}; };
  Rows to, from;
  for (int r = 0; r < size; ++r) {
    to.push_back(rows_of(rank, r));
    from.push_back(rows_of(r, rank));
  }
  const Tensor in = filled(rank, {total(to), kWidth});
  const Tensor out = Tensor::zeros({total(from), kWidth});
  group.all_to_all(in, out, to, from).wait();
  std::int64_t begin = 0;
  for (int r = 0; r < size; ++r) {
    std::int64_t skipped = 0;  // what rank r sends to those before this one
    for (int before = 0; before < rank; ++before)
      skipped += rows_of(r, before);
    const Tensor expected = filled(r, {rows_of(r, rank), kWidth}, skipped * kWidth);
    const std::int64_t end = begin + rows_of(r, rank);
    require(same_bits(out.rows(begin, end), expected), group, "all_to_all");
    begin = end;
  }
}

void check_broadcast(Group& group) {
  for (int root = 0; root < group.size(); ++root) {
    const Tensor values = filled(group.rank(), {7});
    group.broadcast(values, root).wait();
    require(same_bits(values, filled(root, {7})), group, "broadcast");
  }
}

void check_ring(Group& group) {
  const int size = group.size(), rank = group.rank();
  Tensor mine = filled(rank, {4}), next({4});
  for (int step = 1; step <= size; ++step) {
    group.exchange((rank + 1) % size, mine, (rank + size - 1) % size, next).wait();
    std::swap(mine, next);
    require(same_bits(mine, filled((rank + size * 2 - step) % size, {4})), group, "exchange");
  }
  group.exchange(rank, filled(rank, {3}), rank, next.rows(0, 3)).wait();
  require(same_bits(next.rows(0, 3), filled(rank, {3})), group, "exchange with itself");
}

/// Rank by rank, as the stages of a pipeline; two messages at once.
void check_chain(Group& group) {
  const Tensor a({3}), b({2});
  if (group.rank() > 0) {
    Transfer first = group.receive(group.rank() - 1, a),
             second = group.receive(group.rank() - 1, b);
    second.wait();
    first.wait();
    require(same_bits(a, filled(0, {3})) && same_bits(b, filled(1, {2})), group, "receive");
  } else {
    copy(filled(0, {3}), a);
    copy(filled(1, {2}), b);
  }
  if (group.rank() + 1 < group.size()) {
    Transfer first = group.send(group.rank() + 1, a), second = group.send(group.rank() + 1, b);
    first.wait();
    second.wait();
  }
}

/// Several at once, waited for in another order on every other rank.
void check_overlap(Group& group) {
  const int size = group.size(), rank = group.rank();
  const Tensor sum = filled(rank, {11}), more = filled(rank, {2, 3});
  const Tensor all({2 * size, 3}), other({5});
  std::vector<Transfer> transfers;
  transfers.push_back(group.all_reduce(sum));
  transfers.push_back(group.all_gather(more, all));
  transfers.push_back(
      group.exchange((rank + 1) % size, filled(rank, {5}), (rank + size - 1) % size, other));
  transfers.push_back(group.all_reduce(more.clone()));
  if (rank % 2 == 1) std::reverse(transfers.begin(), transfers.end());
  for (Transfer& transfer : transfers) {
    transfer.wait();
    transfer.wait();
    require(transfer.done(), group, "a transfer that was waited for is not done");
  }
  for (std::int64_t i = 0; i < 11; ++i)
    require(sum.data<float>()[i] == forward_sum(size, i), group, "all_reduce beside others");
  for (int r = 0; r < size; ++r)
    require(same_bits(all.rows(2 * r, 2 * r + 2), filled(r, {2, 3})), group,
            "all_gather beside others");
  require(same_bits(other, filled((rank + size - 1) % size, {5})), group, "exchange beside others");
}

void check_texts(Group& group) {
  const auto text = [](int rank) { return std::string(static_cast<std::size_t>(rank) * 2, 'x'); };
  const std::vector<std::string> texts = group.gather(text(group.rank()));
  require(texts.size() == (group.rank() == 0 ? static_cast<std::size_t>(group.size()) : 0), group,
          "gather");
  for (std::size_t r = 0; r < texts.size(); ++r)
    require(texts[r] == text(static_cast<int>(r)), group, "gather");
}

}  // namespace

void check_operations(Group& group) {
  check_all_gather(group, uneven(group.size()));
  check_all_gather(group, Rows(static_cast<std::size_t>(group.size()), 2));
  check_reduce_scatter(group, uneven(group.size()));
  check_reduce_scatter(group, Rows(static_cast<std::size_t>(group.size()), 3));
  for (const std::int64_t count : {0, 1, 100, 2500})
    check_all_reduce(group, count);
  check_all_to_all(group);
  check_broadcast(group);
  check_ring(group);
  check_chain(group);
  check_overlap(group);
  check_texts(group);
  group.barrier();
}

void check_traffic(Group& group, const Traffic& traffic) {
  const std::int64_t n = group.size(), rank = group.rank();
  const auto next = static_cast<int>((rank + 1) % n), before = static_cast<int>((rank + n - 1) % n);
  const auto check = [&](Operation operation, const std::function<void()>& call,
                         std::int64_t bytes) {
    const Traffic::Count old = traffic.of(group.axis(), operation), sum = traffic.of(group.axis());
    call();
    const Traffic::Count now = traffic.of(group.axis(), operation),
                         after = traffic.of(group.axis());
    const std::int64_t calls = n > 1;
    require(now.calls - old.calls == calls && after.calls - sum.calls == calls, group,
            fmt::format("calls of {}", operation_name(operation)));
    require(now.bytes - old.bytes == bytes && after.bytes - sum.bytes == bytes, group,
            fmt::format("{} of {} bytes counts {}", operation_name(operation), bytes,
                        now.bytes - old.bytes));
  };
  const std::int64_t part = 6 * 4, whole = n * part;  // of f32 [6]
  const Tensor one({6}), many({6 * n});
  check(
      Operation::all_gather, [&] { group.all_gather(one, many).wait(); }, (n - 1) * part);
  check(
      Operation::reduce_scatter, [&] { group.reduce_scatter(many, one).wait(); }, whole - part);
  check(
      Operation::all_reduce, [&] { group.all_reduce(many).wait(); }, 2 * (n - 1) * whole / n);
  check(
      Operation::all_to_all, [&] { group.all_to_all(many, many.clone()).wait(); }, whole - part);
  check(
      Operation::broadcast, [&] { group.broadcast(one, 0).wait(); },
      rank == 0 ? (n - 1) * part : 0);
  check(
      Operation::exchange, [&] { group.exchange(next, one, before, one.clone()).wait(); },
      n > 1 ? part : 0);
  check(
      Operation::barrier, [&] { group.barrier(); }, 0);
  check(
      Operation::gather, [&] { group.gather("four"); }, rank > 0 ? 4 : 0);
  const Rows rows = uneven(static_cast<int>(n));
  const std::int64_t own = rows[static_cast<std::size_t>(rank)] * 8, sum = total(rows) * 8;
  const Tensor some({own / 8, 2}), every({sum / 8, 2});
  check(
      Operation::all_gather, [&] { group.all_gather(some, every, rows).wait(); }, (n - 1) * own);
  check(
      Operation::reduce_scatter, [&] { group.reduce_scatter(every, some, rows).wait(); },
      sum - own);
}

void check_large(Group& group) {
  constexpr std::int64_t kCount = 18'000'000;  // 72 MB
  const int size = group.size(), rank = group.rank();
  const Tensor mine = Tensor::zeros({kCount});
  const std::int64_t marks[] = {0, 1, 4'500'000, 8'400'000, 9'000'001, 16'777'216, kCount - 1};
  for (const std::int64_t i : marks)
    mine.data<float>()[i] = value(rank, i);
  const Tensor other({kCount});
  group.exchange((rank + 1) % size, mine, (rank + size - 1) % size, other).wait();
  group.all_reduce(mine).wait();
  for (const std::int64_t i : marks) {
    require(other.data<float>()[i] == value((rank + size - 1) % size, i), group, "a large message");
    require(mine.data<float>()[i] == forward_sum(size, i), group, "a large sum");
  }
  require(mine.data<float>()[2] == 0 && other.data<float>()[kCount - 2] == 0, group,
          "between the marks of what is large");
}

}  // namespace group_cases
