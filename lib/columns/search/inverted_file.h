// Searches unit vectors by an inverted file with product quantization (Jegou, Douze and Schmid,
// "Product quantization for nearest neighbor search", 2011). FAISS does the computation. A build
// without FAISS has no inverted file.
//
// A vector belongs to the list of the centre with the largest inner product. Its difference from
// the centre is cut into pieces of up to eight numbers. A piece's code is one byte: the number of
// the nearest of 256 words. The caller stores lists and codes.
//
// Results depend only on the vectors and their order, not on the number of threads. Between
// processors the last bits may differ.
// Thread-safety: const members and functions from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "share/slots.h"

namespace vfm::columns {

/// Returns for example "FAISS 1.7.3", or "" in a build without FAISS.
std::string faiss_version();
/// Throws Error{usage} in a build without FAISS, and says what to install. All functions below
/// except code_bytes() throw the same error.
void need_faiss();

/// kCodeWords: words for a piece. code_bytes(): pieces of a vector; each takes a byte of its code.
/// A piece's width is the largest number up to eight that divides `dim`.
inline constexpr std::size_t kCodeWords = 256;
inline std::size_t code_bytes(std::size_t dim) {
  std::size_t width = 8;
  while (dim % width != 0)
    --width;
  return dim / width;
}

struct TrainedLists {
  std::vector<float> centres;  ///< lists x dim, of length 1
  std::vector<float> words;    ///< code_bytes(dim) x 256 x width
};
/// Learns centres by k-means, and words from the differences. `vectors`: n x dim, unit length, n at
/// least `lists`. Throws Stopped.
TrainedLists train_lists(std::span<const float> vectors, std::size_t dim, std::size_t lists,
                         share::Slots& slots);

class InvertedFile {
 public:
  /// Copies the centres and words, which are from train_lists().
  InvertedFile(std::size_t dim, std::span<const float> centres, std::span<const float> words);
  ~InvertedFile();
  InvertedFile(const InvertedFile&) = delete;
  InvertedFile& operator=(const InvertedFile&) = delete;

  /// Computes the list of each of n vectors, and the codes: n x code_bytes(dim).
  void code(const float* vectors, std::size_t n, std::uint32_t* lists, std::uint8_t* codes) const;

  struct List {
    std::span<const std::uint32_t> rows;
    const std::uint8_t* codes = nullptr;  ///< rows x code_bytes(dim)
  };
  struct Search {
    std::uint64_t codes = 0;  ///< search lists, nearest first, up to this many codes
    std::size_t most = 0;     ///< most rows to find
    std::function<List(std::size_t list)> list;
    std::function<bool(std::uint32_t row)> take;  ///< a filter; may be empty
  };
  /// Returns the rows, ascending, whose codes have the largest inner products with the query.
  /// Throws Stopped, and what `list` and `take` throw.
  std::vector<std::uint32_t> search(std::span<const float> query, const Search& options) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// out[q * n + i] = inner product of query q and vector i of n, all of unit length.
void unit_products(std::span<const float> queries, std::span<const float> vectors, std::size_t dim,
                   std::vector<float>& out);

}  // namespace vfm::columns
