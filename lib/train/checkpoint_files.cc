// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_files.h"

#include <utility>

#include "train/together.h"

namespace vfm::train {

CheckpointFiles::CheckpointFiles(const nn::ParameterList& parameters, std::vector<SavedSet> sets,
                                 int ranks)
    : sets_(std::move(sets)) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    places_[parameters[i]->name] = i;
  std::vector<std::uint64_t> sizes;
  for (std::size_t s = 0; s < sets_.size(); ++s) {
    const SavedSet& set = sets_[s];
    std::vector<io::TensorView> views;
    for (const nn::Parameter* parameter : parameters)
      views.push_back({set.prefix + parameter->name,
                       std::string(dtype_name(set.dtype)),
                       parameter->shape(),
                       {}});
    io::SafetensorsPlan plan = io::plan_safetensors(set.name, std::move(views), set.max_file_bytes);
    if (!plan.index_name.empty())
      texts_[io::join_path(set.folder, plan.index_name)] = std::move(plan.index);
    for (io::SafetensorsFile& file : plan.files) {
      sizes.push_back(file.bytes());
      files_.push_back({s, std::move(file)});
    }
  }
  const std::vector<int> writers = deal(sizes, ranks);
  for (std::size_t i = 0; i < files_.size(); ++i)
    files_[i].writer = writers[i];
}

std::string CheckpointFiles::name(const File& file) const {
  return io::join_path(sets_[file.set].folder, file.file.name);
}

std::map<std::string, std::string> CheckpointFiles::write(const std::string& folder,
                                                          int rank) const {
  std::map<std::string, std::string> hashes;
  for (const File& file : files_) {
    if (file.writer != rank) continue;
    const SavedSet& set = sets_[file.set];
    const auto item = static_cast<std::uint64_t>(dtype_size(set.dtype));
    Tensor held;
    const auto fetch = [&](const io::TensorView& view, std::uint64_t begin, std::uint64_t end) {
      const auto place = places_.find(std::string_view(view.name).substr(set.prefix.size()));
      held = set.read(place->second, static_cast<std::int64_t>(begin / item),
                      static_cast<std::int64_t>(end / item))
                 .to(Device::cpu);
      return std::span<const std::byte>(held.data<std::byte>(), held.bytes());
    };
    hashes[name(file)] = io::write_safetensors_file(io::join_path(folder, set.folder), file.file,
                                                    fetch, set.metadata);
  }
  return hashes;
}

}  // namespace vfm::train
