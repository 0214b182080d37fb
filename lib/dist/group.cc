// SPDX-License-Identifier: Apache-2.0
#include "dist/group.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace vfm::dist {
namespace {

using Counts = std::vector<std::int64_t>;

std::string text_of(std::span<const std::int64_t> counts) {
  std::string text = "[";
  for (std::size_t i = 0; i < counts.size(); ++i)
    text += (i ? " " : "") + std::to_string(counts[i]);
  return text + "]";
}

std::int64_t sum_of(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

Sum sum_of_type(DType type) {
  switch (type) {
    case DType::f32:
      return Sum::f32;
    case DType::bf16:
      return Sum::bf16;
    case DType::i64:
      return Sum::i64;
    default:
      fail("ranks cannot sum tensors of {}", dtype_name(type));
  }
}

/// The elements of each part of `whole`, which has `rows` rows a part, or even parts.
Counts parts_of(const Tensor& whole, std::span<const std::int64_t> rows, int size,
                Operation operation) {
  if (whole.dims() == 0) fail("{} of a tensor without dims", operation_name(operation));
  const std::int64_t all = whole.size(0);
  Counts parts(rows.begin(), rows.end());
  if (rows.empty()) {
    if (all % size != 0)
      fail("{} of {} rows over {} ranks: not even, and no rows given", operation_name(operation),
           all, size);
    parts.assign(static_cast<std::size_t>(size), all / size);
  }
  if (parts.size() != static_cast<std::size_t>(size) || sum_of(parts) != all ||
      std::any_of(parts.begin(), parts.end(), [](std::int64_t n) { return n < 0; }))
    fail("{} of {} over {} ranks: rows {} do not make that", operation_name(operation),
         to_string(whole.shape()), size, text_of(rows));
  const std::int64_t width = all == 0 ? 0 : whole.elements() / all;
  for (std::int64_t& part : parts)
    part *= width;
  return parts;
}

void check_alike(const Tensor& a, const Tensor& b, Operation operation) {
  if (a.dtype() != b.dtype() || a.device() != b.device())
    fail("{}: tensors of two types or devices", operation_name(operation));
}

void check_part(const Tensor& part, std::int64_t elements, Operation operation) {
  if (part.elements() != elements)
    fail("{}: a part of {} elements is {} here", operation_name(operation), elements,
         to_string(part.shape()));
}

Call call_of(Operation operation, const Tensor& tensor) {
  Call call;
  call.operation = operation;
  call.element = dtype_size(tensor.dtype());
  return call;
}

Call reduction_of(const Tensor& values, Sum sum, std::size_t element, int size) {
  Call call;
  call.operation = Operation::all_reduce;
  call.out = values;
  call.sum = sum;
  call.element = element;
  const auto count = static_cast<std::int64_t>(values.bytes() / element);
  for (int r = 0; r < size; ++r)
    call.to.push_back(count / size + (r < count % size));
  return call;
}

}  // namespace

void Transfer::wait() {
  if (!pending_) return;
  pending_->wait();
  pending_.reset();
}

std::string describe(const Call& call) {
  std::string text(operation_name(call.operation));
  const Tensor& tensor = call.out.defined() ? call.out : call.in;
  if (!tensor.defined()) return text;
  text += vfm::format(" of {}",
                      call.sum == Sum::f64 ? std::string_view("F64") : dtype_name(tensor.dtype()));
  switch (call.operation) {
    case Operation::all_gather:
      return text + " elements " + text_of(call.from);
    case Operation::reduce_scatter:
      return text + " elements " + text_of(call.to);
    case Operation::all_reduce:
      return text + vfm::format(" elements [{}]", sum_of(call.to));
    case Operation::broadcast:
      return text + vfm::format(" elements [{}] from rank {}", call.out.elements(), call.source);
    default:
      return text;
  }
}

std::size_t bytes_sent(const Call& call, int rank, int size) {
  const std::size_t others = static_cast<std::size_t>(size) - 1;
  if (others == 0) return 0;
  const auto own = [&](const Counts& counts) {
    return static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]) * call.element;
  };
  switch (call.operation) {
    case Operation::all_gather:
      return others * own(call.from);
    case Operation::reduce_scatter:
    case Operation::all_to_all:
      return call.in.bytes() - own(call.to);
    case Operation::all_reduce:
      return call.out.bytes() - own(call.to) + others * own(call.to);
    case Operation::broadcast:
      return call.source == rank ? others * call.out.bytes() : 0;
    case Operation::exchange:
    case Operation::send:
      return call.target == rank ? 0 : call.in.bytes();
    default:
      return 0;
  }
}

Group::Group(std::string axis, int rank, std::vector<int> ranks)
    : axis_(std::move(axis)), rank_(rank), ranks_(std::move(ranks)) {}

void Group::check_rank(int rank, Operation operation) const {
  if (rank < 0 || rank >= size())
    fail("{} with rank {} of '{}', which has {}", operation_name(operation), rank, axis_, size());
}

Transfer Group::all_gather(const Tensor& in, const Tensor& out,
                           std::span<const std::int64_t> rows) {
  Call call = call_of(Operation::all_gather, in);
  check_alike(in, out, call.operation);
  call.from = parts_of(out, rows, size(), call.operation);
  check_part(in, call.from[static_cast<std::size_t>(rank_)], call.operation);
  call.in = in;
  call.out = out;
  return Transfer(start(call));
}

Transfer Group::reduce_scatter(const Tensor& in, const Tensor& out,
                               std::span<const std::int64_t> rows) {
  Call call = call_of(Operation::reduce_scatter, in);
  check_alike(in, out, call.operation);
  call.to = parts_of(in, rows, size(), call.operation);
  check_part(out, call.to[static_cast<std::size_t>(rank_)], call.operation);
  call.sum = sum_of_type(in.dtype());
  call.in = in;
  call.out = out;
  return Transfer(start(call));
}

Transfer Group::all_reduce(const Tensor& values) {
  return Transfer(
      start(reduction_of(values, sum_of_type(values.dtype()), dtype_size(values.dtype()), size())));
}

Transfer Group::all_reduce(std::span<float> values) {
  return all_reduce(Tensor::borrow(values.data(), {static_cast<std::int64_t>(values.size())},
                                   DType::f32, nullptr));
}

Transfer Group::all_reduce(std::span<double> values) {
  return Transfer(start(reduction_of(lend(std::as_writable_bytes(values)), Sum::f64, 8, size())));
}

Transfer Group::all_to_all(const Tensor& in, const Tensor& out, std::span<const std::int64_t> to,
                           std::span<const std::int64_t> from) {
  Call call = call_of(Operation::all_to_all, in);
  check_alike(in, out, call.operation);
  call.to = parts_of(in, to, size(), call.operation);
  call.from = parts_of(out, from, size(), call.operation);
  const auto own = static_cast<std::size_t>(rank_);
  if (call.to[own] != call.from[own])
    fail("all_to_all: rank {} sends itself {} elements and awaits {}", rank_, call.to[own],
         call.from[own]);
  call.in = in;
  call.out = out;
  return Transfer(start(call));
}

Transfer Group::broadcast(const Tensor& values, int root) {
  Call call = call_of(Operation::broadcast, values);
  check_rank(root, call.operation);
  call.out = values;
  call.source = root;
  return Transfer(start(call));
}

Transfer Group::exchange(int to, const Tensor& out, int from, const Tensor& in) {
  Call call = call_of(Operation::exchange, out);
  check_rank(to, call.operation);
  check_rank(from, call.operation);
  if ((to == rank_) != (from == rank_))
    fail("exchange: rank {} of '{}' sends to {} and receives from {}: both itself, or none", rank_,
         axis_, to, from);
  if (to == rank_) check_part(in, out.elements(), call.operation);
  call.in = out;
  call.out = in;
  call.target = to;
  call.source = from;
  return Transfer(start(call));
}

Transfer Group::send(int to, const Tensor& values) {
  Call call = call_of(Operation::send, values);
  check_rank(to, call.operation);
  if (to == rank_) fail("send: rank {} of '{}' to itself", to, axis_);
  call.in = values;
  call.target = to;
  return Transfer(start(call));
}

Transfer Group::receive(int from, const Tensor& values) {
  Call call = call_of(Operation::receive, values);
  check_rank(from, call.operation);
  if (from == rank_) fail("receive: rank {} of '{}' from itself", from, axis_);
  call.out = values;
  call.source = from;
  return Transfer(start(call));
}

Tensor lend(std::span<std::byte> bytes) {
  return Tensor::borrow(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, DType::u8,
                        nullptr);
}

}  // namespace vfm::dist
