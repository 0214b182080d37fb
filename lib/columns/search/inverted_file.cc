// SPDX-License-Identifier: Apache-2.0
#include "columns/search/inverted_file.h"

#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/utils/Heap.h>
#include <faiss/utils/distances.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/one_thread.h"
#include "base/stop.h"
#include "share/ordered.h"

/// The function of a BLAS that FAISS calls: C = alpha * op(A) op(B) + beta * C, with matrices by
/// columns. oneDNN's matrices are by rows, so A and B are exchanged. No BLAS is linked: Debian's
/// OpenBLAS without threads gives wrong numbers if several threads call it. OpenBLAS with threads
/// starts these before main(), and they receive signals.
extern "C" int sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                      const int* k, const float* alpha, const float* a, const int* lda,
                      const float* b, const int* ldb, const float* beta, float* c, const int* ldc) {
  if (dnnl_sgemm(*transpose_b, *transpose_a, *n, *m, *k, *alpha, b, *ldb, a, *lda, *beta, c,
                 *ldc) != dnnl_success)
    vfm::fail("oneDNN cannot multiply matrices of {} x {} x {}", *m, *k, *n);
  return 0;
}

namespace vfm::columns {
namespace {

using Number = std::int64_t;  // FAISS's number of a row or list

constexpr int kCentreRounds = 8, kWordRounds = 12;
constexpr std::size_t kWordsTrainedOn = 32768;  // vectors; 128 for each word
constexpr Number kAssignedTogether = 4096;

/// Centres for k-means. search() uses slots.
class SlottedCentres : public faiss::IndexFlatIP {
 public:
  SlottedCentres(std::size_t dim, share::Slots& slots)
      : faiss::IndexFlatIP(static_cast<Number>(dim)), slots_(slots) {}

  void search(Number n, const float* vectors, Number k, float* products, Number* lists,
              const faiss::SearchParameters* parameters) const override {
    Number next = 0;
    share::for_each_ordered<Number, bool>(
        slots_,
        [&]() -> std::optional<Number> {
          if (next >= n) return std::nullopt;
          return std::exchange(next, next + kAssignedTogether);
        },
        [&](Number& first) {
          check_stop();
          const OneThread one;
          faiss::IndexFlatIP::search(std::min(kAssignedTogether, n - first), vectors + first * d, k,
                                     products + first * k, lists + first * k, parameters);
          return true;
        },
        [](bool&) {});
  }

 private:
  share::Slots& slots_;
};

/// Uses all vectors. By default FAISS samples many vectors, and prints a warning for few vectors.
faiss::ClusteringParameters on_all(int rounds, std::size_t n) {
  faiss::ClusteringParameters parameters;
  parameters.niter = rounds;
  parameters.min_points_per_centroid = 1;
  parameters.max_points_per_centroid = static_cast<int>(n);
  return parameters;
}

/// Returns the code words of piece number `piece` of the vectors.
std::vector<float> train_piece(const std::vector<float>& vectors, std::size_t dim,
                               std::size_t piece) {
  const OneThread one;
  const std::size_t width = dim / code_bytes(dim), n = vectors.size() / dim;
  // k-means requires as many vectors as words, so fewer vectors are repeated.
  const std::size_t rows = std::max(n, kCodeWords);
  std::vector<float> cut(rows * width);
  for (std::size_t i = 0; i < rows; ++i)
    std::copy_n(&vectors[i % n * dim + piece * width], width, &cut[i * width]);
  faiss::Clustering clustering(static_cast<int>(width), static_cast<int>(kCodeWords),
                               on_all(kWordRounds, rows));
  faiss::IndexFlatL2 words(static_cast<Number>(width));
  clustering.train(static_cast<Number>(rows), cut.data(), words);
  return clustering.centroids;
}

/// Returns evenly spaced vectors minus their nearest centres.
std::vector<float> some_residuals(std::span<const float> vectors, const SlottedCentres& centres) {
  const std::size_t dim = static_cast<std::size_t>(centres.d), all = vectors.size() / dim;
  const std::size_t step = std::max<std::size_t>(1, all / kWordsTrainedOn);
  std::vector<float> some;
  for (std::size_t i = 0; i < all; i += step)
    some.insert(some.end(), &vectors[i * dim], &vectors[i * dim] + dim);
  const auto n = static_cast<Number>(some.size() / dim);
  std::vector<Number> lists(static_cast<std::size_t>(n));
  centres.assign(n, some.data(), lists.data());
  std::vector<float> out(some.size());
  centres.compute_residual_n(n, some.data(), out.data(), lists.data());
  return out;
}

class Taken : public faiss::IDSelector {
 public:
  explicit Taken(const std::function<bool(std::uint32_t)>& take) : take_(take) {}
  bool is_member(Number row) const override { return take_(static_cast<std::uint32_t>(row)); }

 private:
  const std::function<bool(std::uint32_t)>& take_;
};

}  // namespace

struct InvertedFile::Parts {
  explicit Parts(std::size_t dim, std::size_t lists)
      : centres(static_cast<Number>(dim)),
        codes(&centres, dim, lists, code_bytes(dim), 8, faiss::METRIC_INNER_PRODUCT) {}

  faiss::IndexFlatIP centres;
  faiss::IndexIVFPQ codes;  // its lists stay empty
};

std::string faiss_version() {
  return fmt::format("FAISS {}.{}.{}", FAISS_VERSION_MAJOR, FAISS_VERSION_MINOR,
                     FAISS_VERSION_PATCH);
}

void need_faiss() {}

TrainedLists train_lists(std::span<const float> vectors, std::size_t dim, std::size_t lists,
                         share::Slots& slots) {
  const std::size_t n = vectors.size() / dim;
  auto parameters = on_all(kCentreRounds, n);
  parameters.spherical = true;
  faiss::Clustering clustering(static_cast<int>(dim), static_cast<int>(lists), parameters);
  SlottedCentres centres(dim, slots);
  {
    const OneThread one;
    clustering.train(static_cast<Number>(n), vectors.data(), centres);
  }
  TrainedLists out{std::move(clustering.centroids), {}};
  const std::vector<float> residuals = some_residuals(vectors, centres);
  std::size_t next = 0;
  share::for_each_ordered<std::size_t, std::vector<float>>(
      slots,
      [&]() -> std::optional<std::size_t> {
        if (next == code_bytes(dim)) return std::nullopt;
        return next++;
      },
      [&](std::size_t& piece) {
        check_stop();
        return train_piece(residuals, dim, piece);
      },
      [&](std::vector<float>& words) {
        out.words.insert(out.words.end(), words.begin(), words.end());
      });
  return out;
}

InvertedFile::InvertedFile(std::size_t dim, std::span<const float> centres,
                           std::span<const float> words)
    : parts_(std::make_unique<Parts>(dim, centres.size() / dim)) {
  parts_->centres.add(static_cast<Number>(centres.size() / dim), centres.data());
  parts_->codes.pq.centroids.assign(words.begin(), words.end());
  parts_->codes.is_trained = true;
}

InvertedFile::~InvertedFile() = default;

void InvertedFile::code(const float* vectors, std::size_t n, std::uint32_t* lists,
                        std::uint8_t* codes) const {
  if (n == 0) return;
  const OneThread one;
  const faiss::IndexFlatIP& centres = parts_->centres;
  const auto count = static_cast<Number>(n);
  std::vector<Number> nearest(n);
  centres.assign(count, vectors, nearest.data());
  std::vector<float> residuals(n * static_cast<std::size_t>(centres.d));
  centres.compute_residual_n(count, vectors, residuals.data(), nearest.data());
  // This function multiplies matrices and changes the quantizer, which is therefore a copy.
  // compute_codes() takes three times as long if FAISS is built for all processors, as in Debian.
  faiss::ProductQuantizer quantizer = parts_->codes.pq;
  faiss::IndexFlatL2 words(static_cast<Number>(quantizer.dsub));
  quantizer.assign_index = &words;
  quantizer.compute_codes_with_assign_index(residuals.data(), codes, n);
  std::copy(nearest.begin(), nearest.end(), lists);
}

std::vector<std::uint32_t> InvertedFile::search(std::span<const float> query,
                                                const Search& options) const {
  if (options.most == 0) return {};
  const OneThread one;
  const auto lists = static_cast<std::size_t>(parts_->centres.ntotal);
  std::vector<float> products(lists);
  std::vector<Number> order(lists);
  parts_->centres.search(1, query.data(), parts_->centres.ntotal, products.data(), order.data());

  const Taken taken(options.take);
  // The base class has defaults for arguments that later versions of FAISS add.
  const faiss::IndexIVF& codes = parts_->codes;
  const std::unique_ptr<faiss::InvertedListScanner> scanner(
      codes.get_InvertedListScanner(false, options.take ? &taken : nullptr));
  scanner->set_query(query.data());
  std::vector<float> best(options.most);
  std::vector<Number> rows(options.most), numbers;
  faiss::minheap_heapify(options.most, best.data(), rows.data());
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < lists && seen < options.codes; ++i) {
    check_stop();
    const List list = options.list(static_cast<std::size_t>(order[i]));
    numbers.assign(list.rows.begin(), list.rows.end());
    scanner->set_list(order[i], products[i]);
    scanner->scan_codes(numbers.size(), list.codes, numbers.data(), best.data(), rows.data(),
                        options.most);
    seen += numbers.size();
  }
  std::erase(rows, -1);
  std::sort(rows.begin(), rows.end());
  return {rows.begin(), rows.end()};
}

void unit_products(std::span<const float> queries, std::span<const float> vectors, std::size_t dim,
                   std::vector<float>& out) {
  const OneThread one;
  const std::size_t n = queries.size() / dim, m = vectors.size() / dim;
  out.resize(n * m);
  faiss::pairwise_L2sqr(static_cast<Number>(dim), static_cast<Number>(n), queries.data(),
                        static_cast<Number>(m), vectors.data(), out.data());
  for (float& value : out)  // squared distance = 2 - 2 * product
    value = 1 - value / 2;
}

}  // namespace vfm::columns
