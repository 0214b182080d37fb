// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_files.h"

#include <algorithm>
#include <utility>

#include "dist/together.h"

namespace vfm::train {

CheckpointFiles::CheckpointFiles(std::vector<SavedSet> sets, int ranks, std::uint64_t piece)
    : sets_(std::move(sets)), piece_(piece) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t s = 0; s < sets_.size(); ++s) {
    const SavedSet& set = sets_[s];
    const auto same = std::ranges::find(sets_, set.parameters, &SavedSet::parameters);
    const auto earlier = static_cast<std::size_t>(same - sets_.begin());
    first_.push_back(earlier < s ? first_[earlier] : parameters_.size());
    if (earlier == s)
      parameters_.insert(parameters_.end(), set.parameters.begin(), set.parameters.end());
    std::vector<io::TensorView> views;
    auto& places = places_.emplace_back();
    for (std::size_t i = 0; i < set.parameters.size(); ++i) {
      const nn::Parameter& parameter = *set.parameters[i];
      places[parameter.name] = i;
      views.push_back({set.prefix + parameter.name,
                       std::string(dtype_name(set.dtype)),
                       parameter.placement.global,
                       {}});
    }
    io::SafetensorsPlan plan = io::plan_safetensors(set.name, std::move(views), set.max_file_bytes);
    if (!plan.index_name.empty())
      texts_[io::join_path(set.folder, plan.index_name)] = std::move(plan.index);
    for (io::SafetensorsFile& file : plan.files) {
      sizes.push_back(file.bytes());
      files_.push_back({s, std::move(file)});
    }
  }
  const std::vector<int> writers = dist::deal(sizes, ranks);
  for (std::size_t i = 0; i < files_.size(); ++i)
    files_[i].writer = writers[i];
}

std::string CheckpointFiles::name(const File& file) const {
  return io::join_path(sets_[file.set].folder, file.file.name);
}

std::vector<Piece> CheckpointFiles::pieces(const File& file) const {
  const SavedSet& set = sets_[file.set];
  const auto most = static_cast<std::int64_t>(piece_ / dtype_size(set.dtype));
  std::vector<Piece> pieces;
  for (const io::TensorView& view : file.file.tensors) {
    const auto& places = places_[file.set];
    const std::size_t parameter =
        first_[file.set] +
        places.find(std::string_view(view.name).substr(set.prefix.size()))->second;
    const std::int64_t elements = view.elements();
    for (std::int64_t begin = 0; begin < elements; begin += most)
      pieces.push_back({file.set, parameter, set.dtype, begin, std::min(begin + most, elements)});
  }
  return pieces;
}

std::string CheckpointFiles::header(const File& file) const {
  return io::safetensors_header(file.file, sets_[file.set].metadata);
}

std::vector<std::uint64_t> CheckpointFiles::sizes_of(int rank) const {
  std::vector<std::uint64_t> sizes;
  for (const File& file : files_)
    if (file.writer == rank) sizes.push_back(header(file).size() + file.file.bytes());
  return sizes;
}

double CheckpointFiles::bytes() const {
  double sum = 0;
  for (const File& file : files_)
    sum += static_cast<double>(file.file.bytes());
  return sum;
}

double CheckpointFiles::most_of_rank() const {
  std::map<int, double> loads;
  double most = 0;
  for (const File& file : files_)
    most = std::max(most, loads[file.writer] += static_cast<double>(file.file.bytes()));
  return most;
}

}  // namespace vfm::train
