// Searches unit vectors by an inverted file with product quantization (Jegou, Douze and Schmid,
// "Product quantization for nearest neighbor search", 2011). FAISS computes the results.
//
// Each vector is in the list of the centre with the largest inner product. The difference of the
// vector and the centre is cut into pieces of up to eight numbers. The code of a piece is a byte:
// the number of the nearest of 256 code words, which are vectors. The caller stores lists and
// codes.
//
// Results do not depend on the number of threads. On different processors the last bits may differ.
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

/// Returns the version, such as "FAISS 1.7.3", or "" in a build without FAISS.
std::string faiss_version();
/// In a build without FAISS, throws Error{usage}, which names the package to install. All functions
/// below except code_bytes() throw the same error.
void need_faiss();

/// kCodeWords is the number of code words for a piece. code_bytes() returns the number of pieces of
/// a vector, which is the number of bytes of its code. The width of a piece is the largest divisor
/// of `dim` that is at most eight.
inline constexpr std::size_t kCodeWords = 256;
inline std::size_t code_bytes(std::size_t dim) {
  std::size_t width = 8;
  while (dim % width != 0)
    --width;
  return dim / width;
}

struct TrainedLists {
  std::vector<float> centres;  ///< Unit vectors, [lists, dim].
  std::vector<float> words;    ///< Code words, [code_bytes(dim), 256, width].
};
/// Learns centres by k-means, and code words from the differences of vectors and centres. `vectors`
/// are unit vectors, [n, dim]. n must be at least `lists`. Throws Stopped.
TrainedLists train_lists(std::span<const float> vectors, std::size_t dim, std::size_t lists,
                         share::Slots& slots);

class InvertedFile {
 public:
  /// Copies the centres and code words of train_lists().
  InvertedFile(std::size_t dim, std::span<const float> centres, std::span<const float> words);
  ~InvertedFile();
  InvertedFile(const InvertedFile&) = delete;
  InvertedFile& operator=(const InvertedFile&) = delete;

  /// Computes the list number and the code of each of n vectors. `codes` is [n, code_bytes(dim)].
  void code(const float* vectors, std::size_t n, std::uint32_t* lists, std::uint8_t* codes) const;

  struct List {
    std::span<const std::uint32_t> rows;
    const std::uint8_t* codes = nullptr;  ///< Codes of the rows, [rows, code_bytes(dim)].
  };
  struct Search {
    std::uint64_t codes = 0;  ///< Lists are searched, nearest first, for at least this many codes.
    std::size_t most = 0;     ///< Largest number of rows to find.
    std::function<List(std::size_t list)> list;
    std::function<bool(std::uint32_t row)> take;  ///< Filter of rows; may be empty.
  };
  /// Returns the rows whose codes have the largest inner products with the query, in ascending
  /// order of rows. Throws Stopped, and what `list` and `take` throw.
  std::vector<std::uint32_t> search(std::span<const float> query, const Search& options) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Sets out[q * n + i] to the inner product of query q and vector i of n vectors. All vectors are
/// unit vectors.
void unit_products(std::span<const float> queries, std::span<const float> vectors, std::size_t dim,
                   std::vector<float>& out);

}  // namespace vfm::columns
