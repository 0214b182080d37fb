// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/format.h"
#include "base/log.h"
#include "ops/cudnn/cudnn_cuda.h"
#include "tensor/tensor.h"

namespace vfm::ops {
namespace {

Tensor to_cpu(const ResultPart& part, std::int64_t first, std::int64_t rows) {
  const Tensor copied({(rows - 1) * part.stride + part.width}, part.type);
  const auto before = static_cast<std::size_t>(first * part.stride) * dtype_size(part.type);
  copy_bytes(copied.raw(), Device::cpu, static_cast<const std::byte*>(part.data) + before,
             Device::cuda, copied.bytes());
  return copied.to(DType::f32);
}

struct Norms {
  double difference = 0, reference = 0;
};

// Of long matrices pieces, evenly spread, the first and the last rows among them: gigabytes would
// have to be copied for all. Both are of one shape.
Norms compare_results(const ResultPart& tried, const ResultPart& reference) {
  constexpr std::int64_t kPieces = 32, kPieceRows = 64;
  const bool all = tried.rows <= kPieces * kPieceRows;
  const std::int64_t pieces = all ? 1 : kPieces, rows = all ? tried.rows : kPieceRows;
  Norms sums;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const std::int64_t first = all ? 0 : piece * (tried.rows - rows) / (pieces - 1);
    const Tensor a = to_cpu(tried, first, rows), b = to_cpu(reference, first, rows);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < tried.width; ++i) {
        const double x = a.data<float>()[row * tried.stride + i];
        const double y = b.data<float>()[row * reference.stride + i];
        sums.difference += (x - y) * (x - y);
        sums.reference += tried.logarithms ? 1 + 0 * y : y * y;
      }
  }
  return {std::sqrt(sums.difference), std::sqrt(sums.reference)};
}

}  // namespace

void CudnnTrust::refuse(const std::string& what, const std::string& why) {
  refused = true;
  log_warning("{} runs {}, not on cuDNN's: {}", what, instead, why);
}

bool CudnnTrust::agree(bool& checked, const std::string& what,
                       const std::vector<std::pair<ResultPart, ResultPart>>& pairs,
                       double tolerance) {
  bool some = false;
  for (const auto& [tried, own] : pairs) {
    const Norms norms = compare_results(tried, own);
    if (!std::isfinite(norms.reference)) {
      if (!std::exchange(put_off, true))
        log_warning(
            "{}: our own {} is not finite, so cuDNN's cannot be compared with it; a later call "
            "will try again",
            what, tried.name);
      return false;
    }
    if (!(norms.difference <= tolerance * norms.reference)) {
      refuse(what, vfm::format("its {} differs by {:.2g} of {:.2g}", tried.name, norms.difference,
                               norms.reference));
      return false;
    }
    some = some || (norms.reference > 0 && !tried.logarithms);
  }
  checked = some;
  return true;
}

}  // namespace vfm::ops
