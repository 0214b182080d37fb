// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint_reading.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/lazy_map.h"
#include "io/safetensors.h"
#include "io/safetensors_reader.h"
#include "io/weight_index.h"

namespace vfm::train {
namespace {

/// The tensors of a set whose files other ranks read.
class DescribedSet final : public io::TensorSet {
 public:
  explicit DescribedSet(const std::string& path) : TensorSet(path) {}
  void add_tensor(std::string name, std::string dtype, Shape shape) {
    add({std::move(name), std::move(dtype), std::move(shape), {}});
  }
};

/// The elements of a piece that lie in a part, counted from the part's first one.
std::pair<std::int64_t, std::int64_t> overlap(const HeldPart& part, std::int64_t begin,
                                              std::int64_t end) {
  return {part.elements_before(begin), part.elements_before(end)};
}

/// Of `parts` that lie as far apart as they can on `ranks` ranks, the rank of part `i`.
int rank_of_part(int i, int parts, int ranks) {
  return static_cast<int>(std::int64_t{i} * ranks / parts);
}

/// Of a piece, which begins at element `begin` of the whole tensor, elements [first, last) of a
/// part.
Tensor cut_out(const Tensor& piece, std::int64_t begin, const HeldPart& part, std::int64_t first,
               std::int64_t last) {
  const auto item = static_cast<std::int64_t>(dtype_size(piece.dtype()));
  const Tensor values({last - first}, piece.dtype());
  const std::int64_t from = part.begin + first;  // in the box
  io::RangeRuns(part.box).for_each(from, part.begin + last,
                                   [&](std::int64_t at, std::int64_t in, std::int64_t count) {
                                     std::memcpy(values.data<std::byte>() + (in - from) * item,
                                                 piece.data<std::byte>() + (at - begin) * item,
                                                 static_cast<std::size_t>(count * item));
                                   });
  return values;
}

}  // namespace

template <class Act>
void CheckpointReading::attempt(const Act& act) {
  try {
    if (!failure_) act();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

CheckpointReading::CheckpointReading(dist::World& world, const std::string& folder,
                                     const std::string& name,
                                     std::map<std::string, std::string> copies, std::int64_t piece)
    : world_(world), copies_(std::move(copies)), piece_(piece) {
  if (world.size() == 1)
    set_ = std::make_unique<io::SafetensorsReader>(
        folder, name, [this](const std::string& path) { return place_of(path); });
  else
    describe(folder, name);
}

CheckpointReading::CheckpointReading(dist::World& world, const io::TensorSet* opened,
                                     std::int64_t piece)
    : world_(world), piece_(piece) {
  describe_opened(opened);
}

int CheckpointReading::reader_count(const dist::World& world) {
  return std::min(world.size(), kMostReaders);
}

int CheckpointReading::reader_number(const dist::World& world) {
  for (int i = 0; i < reader_count(world); ++i)
    if (rank_of_part(i, reader_count(world), world.size()) == world.rank()) return i;
  return -1;
}

const std::string& CheckpointReading::place_of(const std::string& path) const {
  const auto copy = copies_.find(path);
  return copy == copies_.end() ? path : copy->second;
}

/// All ranks get the tensors from rank 0, which is a reader. Each reads a stretch of the set.
void CheckpointReading::describe_opened(const io::TensorSet* opened) {
  Json told = Json::array();
  if (world_.rank() == 0)
    for (const io::TensorView& tensor : opened->tensors())
      told.push_back({tensor.name, models::is_coded(tensor) ? "F32" : tensor.dtype, tensor.shape});
  const std::string path = dist::broadcast(world_, world_.rank() == 0 ? opened->path() : "");
  told = parse_json(dist::broadcast(world_, dump_json(told)), "the tensors of a model");
  auto set = std::make_unique<DescribedSet>(path);
  double all = 0, before = 0;
  for (const Json& tensor : told) {
    set->add_tensor(tensor[0].get<std::string>(), tensor[1].get<std::string>(),
                    tensor[2].get<Shape>());
    all += static_cast<double>(set->tensors().back().elements());
  }
  const int readers = reader_count(world_);
  for (const io::TensorView& tensor : set->tensors()) {
    const double part = all > 0 ? before / all * readers : 0;
    file_of_.push_back(static_cast<std::size_t>(std::min(static_cast<int>(part), readers - 1)));
    before += static_cast<double>(tensor.elements());
  }
  for (int i = 0; i < readers; ++i)
    readers_.push_back(rank_of_part(i, readers, world_.size()));
  if (const int own = reader_number(world_); own >= 0)
    open_[static_cast<std::size_t>(own)] = {std::shared_ptr<void>(), opened};
  set_ = std::move(set);
}

/// Each reader reads the headers of its files, and all ranks get them by way of rank 0.
void CheckpointReading::describe(const std::string& folder, const std::string& name) {
  const bool leader = world_.rank() == 0;
  io::WeightIndex index;  // on rank 0
  Json told;
  on_all_ranks(world_, [&] {
    if (!leader) return;
    const std::string path = io::SafetensorsSet::file_of(folder, name);
    index = io::read_weight_index(path);
    told = Json::array({path});
    for (const std::string& file : index.files)
      told.push_back(io::join_path(io::dir_name(path), file));
  });
  told = parse_json(dist::broadcast(world_, dump_json(told)), "the files of a checkpoint");
  const auto path = told[0].get<std::string>();
  for (std::size_t i = 1; i < told.size(); ++i)
    files_.push_back(told[i].get<std::string>());
  choose_readers();

  Json headers = Json::array();
  on_all_ranks(world_, [&] {
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (readers_[i] == world_.rank()) {
        open_[i] = std::make_shared<io::SafetensorsReader>(place_of(files_[i]));
        for (const io::TensorView& tensor : open_[i]->tensors())
          headers.push_back({i, tensor.name, tensor.dtype, tensor.shape});
      }
  });
  Json all = Json::array();
  for (const std::string& text : world_.gather(headers.empty() ? "" : dump_json(headers)))
    if (!text.empty())
      for (const Json& tensor : parse_json(text, "the tensors of a rank"))
        all.push_back(tensor);
  all = parse_json(dist::broadcast(world_, dump_json(all)), "the tensors of a checkpoint");
  auto set = std::make_unique<DescribedSet>(path);
  on_all_ranks(world_, [&] {
    for (const Json& tensor : all) {
      file_of_.push_back(tensor[0].get<std::size_t>());
      set->add_tensor(tensor[1].get<std::string>(), tensor[2].get<std::string>(),
                      tensor[3].get<Shape>());
    }
    if (leader) io::check_weight_index(index, *set);
  });
  set_ = std::move(set);
}

/// A file is read by a rank that has a copy of it, the one with the least to read, or else by one
/// of ranks that lie as far apart as they can, on as many hosts.
void CheckpointReading::choose_readers() {
  std::string mine;  // the numbers of files with a copy
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (copies_.contains(files_[i])) mine += fmt::format("{} ", i);
  std::vector<std::vector<int>> having(files_.size());  // on rank 0
  const std::vector<std::string> said = world_.gather(mine);
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    std::istringstream numbers(said[rank]);
    for (std::size_t file = 0; numbers >> file;)
      having[file].push_back(static_cast<int>(rank));
  }
  const auto ranks = static_cast<std::size_t>(world_.size());
  std::vector<std::size_t> loads(ranks);
  readers_.clear();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    int reader = rank_of_part(static_cast<int>(i), static_cast<int>(files_.size()), world_.size());
    if (!having[i].empty())
      reader = *std::ranges::min_element(
          having[i], {}, [&](int rank) { return loads[static_cast<std::size_t>(rank)]; });
    ++loads[static_cast<std::size_t>(reader)];
    readers_.push_back(reader);
  }
  world_.broadcast(std::as_writable_bytes(std::span(readers_)));
}

DType CheckpointReading::dtype(std::size_t target) const {
  const models::RangeTarget& wanted = targets_[target];
  return wanted.codes ? DType::u8 : models::float_type(set_->find(wanted.name)->dtype);
}

/// The pieces that each rank reads, file by file.
std::vector<std::vector<CheckpointReading::Piece>> CheckpointReading::plan(
    const std::vector<models::RangeTarget>& targets) const {
  std::map<std::string_view, std::size_t> numbers;
  for (std::size_t i = 0; i < targets.size(); ++i)
    numbers[targets[i].name] = i;
  std::vector<std::vector<Piece>> pieces(static_cast<std::size_t>(world_.size()));
  for (std::size_t k = 0; k < set_->tensors().size(); ++k) {
    const std::size_t target = numbers.at(set_->tensors()[k].name);
    const std::int64_t elements = set_->tensors()[k].elements(),
                       most = piece_ / static_cast<std::int64_t>(dtype_size(dtype(target)));
    for (std::int64_t begin = 0; begin < elements; begin += most)
      pieces[static_cast<std::size_t>(readers_[file_of_[k]])].push_back(
          {target, begin, std::min(begin + most, elements)});
  }
  return pieces;
}

/// The readers tell the ranks that want the same part from whom each gets it. Those who pass it on
/// have lower numbers, so no ranks wait for each other.
void CheckpointReading::link(const TensorsOfRanks& readers, std::size_t targets) {
  const auto ranks = readers.size();
  const auto rank = world_.rank();
  const std::vector<std::size_t>& mine = readers[static_cast<std::size_t>(rank)];
  std::vector<Links> told(mine.size() * ranks);  // by rank and target
  for (std::size_t k = 0; k < mine.size(); ++k) {
    std::vector<RankPart>& parts = parts_[mine[k]];
    std::ranges::stable_sort(parts, {}, &RankPart::part);  // of equal parts the lowest rank first
    std::vector<RankPart> roots;
    for (std::size_t begin = 0, end; begin < parts.size(); begin = end) {
      std::vector<int> alike;  // without the reader itself, which has all
      for (end = begin; end < parts.size() && parts[end].part == parts[begin].part; ++end)
        if (parts[end].rank != rank) alike.push_back(parts[end].rank);
      for (std::size_t i = 0; i < alike.size(); ++i) {
        Links& links = told[static_cast<std::size_t>(alike[i]) * mine.size() + k];
        links.from = i == 0 ? rank : alike[(i - 1) / 2];
        for (std::size_t child = 0; child < 2; ++child)
          if (2 * i + 1 + child < alike.size()) links.to[child] = alike[2 * i + 1 + child];
      }
      if (!alike.empty()) roots.push_back({alike[0], std::move(parts[begin].part)});
    }
    parts = std::move(roots);
  }
  std::vector<std::int64_t> to(ranks, static_cast<std::int64_t>(mine.size() * sizeof(Links))), from;
  std::size_t all = 0;
  for (const std::vector<std::size_t>& list : readers) {
    from.push_back(static_cast<std::int64_t>(list.size() * sizeof(Links)));
    all += list.size();
  }
  std::vector<Links> heard(all);
  world_.all()
      .all_to_all(dist::lend(std::as_writable_bytes(std::span(told))),
                  dist::lend(std::as_writable_bytes(std::span(heard))), to, from)
      .wait();
  links_.assign(targets, {});
  std::size_t at = 0;
  for (const std::vector<std::size_t>& list : readers)
    for (const std::size_t target : list)
      links_[target] = heard[at++];
}

void CheckpointReading::check(const std::vector<models::RangeTarget>& targets) const {
  std::vector<models::TensorTarget> wholes;
  for (const models::RangeTarget& target : targets)
    wholes.push_back({target.name, target.range.shape, {}, target.codes});
  models::check_tensors(*set_, wholes);
}

void CheckpointReading::load(const std::vector<models::RangeTarget>& targets) {
  if (world_.size() == 1) return models::load_ranges(*set_, targets);
  on_all_ranks(world_, [&] { check(targets); });
  if (const dist::Verdict verdict = try_load(targets); verdict.rank >= 0)
    fail_on_all_ranks(world_, verdict);
}

dist::Verdict CheckpointReading::try_load(const std::vector<models::RangeTarget>& targets) {
  own_.clear();
  for (const models::RangeTarget& target : targets)
    own_.push_back({target.range, target.first, target.first + target.elements()});
  targets_ = targets;
  pieces_ = plan(targets);
  TensorsOfRanks readers(pieces_.size());
  reading_.clear();
  std::size_t rounds = 0;
  for (std::size_t rank = 0; rank < pieces_.size(); ++rank) {
    for (const Piece& piece : pieces_[rank])
      if (piece.begin == 0) readers[rank].push_back(piece.target);
    if (!pieces_[rank].empty()) reading_.push_back(static_cast<int>(rank));
    rounds = std::max(rounds, pieces_[rank].size());
  }
  parts_ = tell_parts(world_.all(), own_, readers);
  link(readers, targets.size());
  for (std::size_t number = 0; number < rounds; ++number)
    round(number);
  open_.clear();
  return attempt_on_all_ranks(world_, [&] {
    if (failure_) std::rethrow_exception(failure_);
  });
}

/// Reads and passes on a piece of each reader. Two ranks send each other what they read before what
/// they pass on, each in the order of the readers, and expect it so.
void CheckpointReading::round(std::size_t number) {
  dist::Group& all = world_.all();
  struct Incoming {
    int reader;
    const Piece* piece;
    Tensor values;
    dist::Transfer transfer;
  };
  std::vector<Incoming> incoming;
  for (const bool read : {true, false})
    for (const int reader : reading_) {
      const std::vector<Piece>& list = pieces_[static_cast<std::size_t>(reader)];
      if (number >= list.size() || reader == world_.rank()) continue;
      const Piece& piece = list[number];
      const int from = links_[piece.target].from;
      const auto [first, last] = overlap(own_[piece.target], piece.begin, piece.end);
      if (first == last || (from == reader) != read) continue;
      const Tensor values({last - first}, dtype(piece.target));
      incoming.push_back({reader, &piece, values, all.receive(from, values)});
    }
  std::vector<dist::Transfer> sent;
  const std::vector<Piece>& mine = pieces_[static_cast<std::size_t>(world_.rank())];
  if (number < mine.size()) {
    const Piece& piece = mine[number];
    const Tensor values = Tensor::zeros({piece.end - piece.begin}, dtype(piece.target));
    attempt([&] { read(mine, number, values); });
    send_parts(piece, values, sent);
    const HeldPart& own = own_[piece.target];
    if (const auto [first, last] = overlap(own, piece.begin, piece.end); first < last)
      store(piece, cut_out(values, piece.begin, own, first, last));
  }
  for (Incoming& one : incoming)
    one.transfer.wait();
  std::ranges::sort(incoming, {}, &Incoming::reader);
  for (const Incoming& one : incoming)
    for (const int to : links_[one.piece->target].to)
      if (to >= 0) sent.push_back(all.send(to, one.values));
  for (const Incoming& one : incoming)
    store(*one.piece, one.values);
  for (dist::Transfer& transfer : sent)
    transfer.wait();
}

/// Reads piece `number` of `pieces`. Of an object some are fetched together.
void CheckpointReading::read(const std::vector<Piece>& pieces, std::size_t number,
                             const Tensor& into) {
  constexpr std::size_t kTogether = 16;
  const auto tensor_of = [&](const Piece& piece) {
    return set_->find(targets_[piece.target].name);
  };
  const auto file_of = [&](const Piece& piece) {
    return file_of_[static_cast<std::size_t>(tensor_of(piece) - set_->tensors().data())];
  };
  const Piece& piece = pieces[number];
  if (const std::size_t file = file_of(piece); number == 0 || file != file_of(pieces[number - 1])) {
    open_.erase(open_.begin(), open_.lower_bound(file));  // read to their ends
    expected_ = number;
  }
  const io::TensorSet& open = *open_.at(file_of(piece));
  if (io::has_lazy_maps() && number == expected_) {
    std::vector<io::TensorSet::Part> parts;
    for (; expected_ < std::min(pieces.size(), number + kTogether) &&
           file_of(pieces[expected_]) == file_of(piece);
         ++expected_) {
      const Piece& next = pieces[expected_];
      const io::TensorView* const tensor = open.find(targets_[next.target].name);
      const std::uint64_t item = io::safetensors_item_size(tensor->dtype);
      if (item > 0)
        parts.push_back({tensor, static_cast<std::uint64_t>(next.begin) * item,
                         static_cast<std::uint64_t>(next.end) * item});
    }
    open.expect(parts);
  }
  const io::TensorView& from = *open.find(targets_[piece.target].name);
  if (models::is_coded(from)) {
    const Tensor values = models::read_floats(from, piece.begin, piece.end - piece.begin);
    std::memcpy(into.raw(), values.raw(), into.bytes());
  } else {
    open.read(from.name, io::TensorRange::whole(from.shape), piece.begin,
              {into.data<std::byte>(), into.bytes()});
  }
  if (piece.end == from.elements()) open.release(from);
}

/// The ranks that get a part from this one.
void CheckpointReading::send_parts(const Piece& piece, const Tensor& values,
                                   std::vector<dist::Transfer>& sent) {
  for (const RankPart& root : parts_[piece.target]) {
    const auto [first, last] = overlap(root.part, piece.begin, piece.end);
    if (first < last)
      sent.push_back(
          world_.all().send(root.rank, cut_out(values, piece.begin, root.part, first, last)));
  }
}

void CheckpointReading::store(const Piece& piece, const Tensor& values) {
  const models::RangeTarget& target = targets_[piece.target];
  attempt([&] {
    target.store(target.codes ? values : values.to(DType::f32),
                 own_[piece.target].elements_before(piece.begin));
  });
}

}  // namespace vfm::train
