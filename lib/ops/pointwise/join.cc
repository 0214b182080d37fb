// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/join.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

// The sum of dimension `along` of matrices that are equal in the other one.
std::int64_t joined_size(const std::vector<Tensor>& parts, int along) {
  if (parts.empty()) fail("there are no matrices to join");
  std::int64_t size = 0;
  for (const Tensor& part : parts) {
    const Tensor& first = parts.front();
    if (part.dims() != 2 || first.dims() != 2 || part.size(1 - along) != first.size(1 - along) ||
        part.dtype() != first.dtype() || part.device() != first.device())
      fail("{} {} and {} {} do not fit {} each other", dtype_name(first.dtype()),
           to_string(first.shape()), dtype_name(part.dtype()), to_string(part.shape()),
           along == 1 ? "beside" : "below");
    size += part.size(along);
  }
  return size;
}

}  // namespace

void copy_columns(const Tensor& x, std::int64_t at, const Tensor& y, std::int64_t to,
                  std::int64_t count) {
  if (x.size(0) == 0) return;
  const auto bytes = [&](std::int64_t n) {
    return static_cast<std::size_t>(n) * dtype_size(x.dtype());
  };
  copy_rows(y.data<std::byte>() + bytes(to), bytes(y.size(1)), x.data<std::byte>() + bytes(at),
            bytes(x.size(1)), bytes(count), x.size(0), x.device());
}

Tensor join_columns(Tape& tape, const std::vector<Tensor>& parts) {
  const std::int64_t width = joined_size(parts, 1);
  const Tensor& model = parts.front();
  const Tensor y({model.size(0), width}, model.dtype(), model.device());
  std::int64_t at = 0;
  for (const Tensor& part : parts) {
    copy_columns(part, 0, y, at, part.size(1));
    at += part.size(1);
  }
  tape.record(y, parts, [y, parts](Tape& t) {
    const Tensor dy = t.take(y);
    std::int64_t from = 0;
    for (const Tensor& part : parts) {
      if (t.wants_grad(part)) {
        const Tensor gradient(part.shape(), dy.dtype(), dy.device());
        copy_columns(dy, from, gradient, 0, part.size(1));
        t.accumulate(part, gradient);
      }
      from += part.size(1);
    }
  });
  return y;
}

std::vector<Tensor> split_columns(Tape& tape, const Tensor& x,
                                  const std::vector<std::int64_t>& widths) {
  const std::int64_t all = std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
  if (x.dims() != 2 || all != x.size(1))
    fail("parts of {} columns in all are not those of {}", all, to_string(x.shape()));
  std::vector<Tensor> parts;
  std::int64_t at = 0;
  for (const std::int64_t width : widths) {
    if (width < 0) fail("a part of {} columns", width);
    parts.emplace_back(Shape{x.size(0), width}, x.dtype(), x.device());
    copy_columns(x, at, parts.back(), 0, width);
    at += width;
  }
  tape.record(parts, {x}, [x, parts](Tape& t) {
    std::vector<Tensor> gradients;
    bool whole = true;
    for (const Tensor& part : parts) {
      const Tensor gradient = t.take(part);
      gradients.push_back(gradient.defined() ? gradient.to(x.dtype()) : gradient);
      whole = whole && (gradient.defined() || part.elements() == 0);
    }
    const Tensor dx = whole ? Tensor(x.shape(), x.dtype(), x.device())
                            : Tensor::zeros(x.shape(), x.dtype(), x.device());
    std::int64_t to = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (gradients[i].defined()) copy_columns(gradients[i], 0, dx, to, parts[i].size(1));
      to += parts[i].size(1);
    }
    t.accumulate(x, dx);
  });
  return parts;
}

Tensor join_rows(Tape& tape, const std::vector<Tensor>& parts) {
  const std::int64_t rows = joined_size(parts, 0);
  const Tensor& model = parts.front();
  const Tensor y({rows, model.size(1)}, model.dtype(), model.device());
  const auto each = [](const std::vector<Tensor>& all, const auto& act) {
    std::int64_t at = 0;
    for (const Tensor& part : all) {
      if (part.elements() > 0) act(part, at, at + part.size(0));
      at += part.size(0);
    }
  };
  each(parts, [&](const Tensor& part, std::int64_t begin, std::int64_t end) {
    copy(part, y.rows(begin, end));
  });
  tape.record(y, parts, [y, parts, each](Tape& t) {
    const Tensor dy = t.take(y);
    each(parts, [&](const Tensor& part, std::int64_t begin, std::int64_t end) {
      if (t.wants_grad(part)) t.accumulate(part, dy.rows(begin, end));
    });
  });
  return y;
}

}  // namespace vfm::ops
