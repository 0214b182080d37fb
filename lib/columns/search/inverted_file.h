// Vectors of length 1 as an inverted file with product codes (Jegou, Douze and Schmid, "Product
// quantization for nearest neighbor search", 2011), by FAISS (inverted_file.cc) or not at all
// (no_inverted_file.cc).
//
// A vector is in the list of the centre with the largest product, and its difference from the
// centre becomes a code: a byte for each piece of up to eight numbers, which names the nearest of
// 256 words. The caller stores lists and codes.
//
// FAISS is called in slots, each time for one thread, on pieces that do not depend on the number of
// threads, with fixed seeds: its results depend only on the vectors and their order. Between
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

/// "FAISS 1.7.3"; "" in a build without it.
std::string faiss_version();
/// Throws Error{usage} in a build without FAISS, saying what to install. Everything below throws
/// the same there.
void need_faiss();

/// The words of a piece; and the pieces of a vector, which are the bytes of its code. Pieces have
/// the largest width up to eight that divides the dimension.
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
/// Makes centres by k-means, and words from the differences. `vectors`: n x dim, of length 1, n at
/// least `lists`. Throws Stopped.
TrainedLists train_lists(std::span<const float> vectors, std::size_t dim, std::size_t lists,
                         share::Slots& slots);

class InvertedFile {
 public:
  /// Takes the centres and words of train_lists(); copies both.
  InvertedFile(std::size_t dim, std::span<const float> centres, std::span<const float> words);
  ~InvertedFile();
  InvertedFile(const InvertedFile&) = delete;
  InvertedFile& operator=(const InvertedFile&) = delete;

  /// The list of each of n vectors, and the codes: n x code_bytes(dim).
  void code(const float* vectors, std::size_t n, std::uint32_t* lists, std::uint8_t* codes) const;

  struct List {
    std::span<const std::uint32_t> rows;
    const std::uint8_t* codes = nullptr;  ///< rows x code_bytes(dim)
  };
  struct Search {
    std::uint64_t codes = 0;  ///< lists are searched, nearest first, up to this many codes
    std::size_t most = 0;     ///< most rows to find
    std::function<List(std::size_t list)> list;
    std::function<bool(std::uint32_t row)> take;  ///< may be empty: all are taken
  };
  /// The rows of the codes whose products with the query are the largest, rising. Throws Stopped,
  /// and what `list` and `take` throw.
  std::vector<std::uint32_t> search(std::span<const float> query, const Search& options) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// out[q * n + i] = the product of query q with vector i of n, all of length 1.
void unit_products(std::span<const float> queries, std::span<const float> vectors, std::size_t dim,
                   std::vector<float>& out);

}  // namespace vfm::columns
