// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_wire.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "dist/group.h"

namespace vfm::dist {
namespace {

// MPI counts are ints; and one message of gigabytes is no faster than several.
constexpr std::size_t kPiece = std::size_t{64} << 20;

class MpiFlight final : public Flight {
 public:
  MpiFlight(const Meeting& meeting, const std::vector<int>& ranks, std::string place)
      : meeting_(meeting), ranks_(ranks), place_(std::move(place)) {}

  void post(MPI_Comm comm, int tag, Message message) {
    while (message.bytes > 0) {
      Message piece = message;
      piece.bytes = std::min(kPiece, message.bytes);
      const int count = static_cast<int>(piece.bytes);
      MPI_Request request = MPI_REQUEST_NULL;
      const int code =
          piece.sends ? MPI_Isend(piece.data, count, MPI_BYTE, piece.peer, tag, comm, &request)
                      : MPI_Irecv(piece.data, count, MPI_BYTE, piece.peer, tag, comm, &request);
      check_mpi(code, piece.sends ? "MPI_Isend" : "MPI_Irecv", with(piece.peer));
      requests_.push_back(request);
      pieces_.push_back(piece);
      message.data += piece.bytes;
      message.bytes -= piece.bytes;
    }
  }

  bool landed() override {
    if (open() == 0) return true;
    which_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                  which_.data(), statuses_.data());
    if (code != MPI_ERR_IN_STATUS) check_mpi(code, "MPI_Testsome", place_);
    for (int i = 0; i < count && count != MPI_UNDEFINED; ++i) {
      const auto at = static_cast<std::size_t>(i);
      arrived(pieces_[static_cast<std::size_t>(which_[at])], statuses_[at],
              code == MPI_ERR_IN_STATUS ? statuses_[at].MPI_ERROR : MPI_SUCCESS);
    }
    return open() == 0;
  }

  std::vector<int> awaited() override {
    std::vector<int> peers;
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (requests_[i] != MPI_REQUEST_NULL &&
          std::find(peers.begin(), peers.end(), pieces_[i].peer) == peers.end())
        peers.push_back(pieces_[i].peer);
    return peers;
  }

 private:
  std::ptrdiff_t open() const {
    return std::count_if(requests_.begin(), requests_.end(),
                         [](MPI_Request request) { return request != MPI_REQUEST_NULL; });
  }
  std::string with(int peer) const {
    return fmt::format("{}, with {}", place_,
                       meeting_.name_of(ranks_[static_cast<std::size_t>(peer)]));
  }
  /// MPI finds messages that are too long; those too short are found here.
  void arrived(const Message& piece, const MPI_Status& status, int code) const {
    check_mpi(code, piece.sends ? "sending" : "receiving", with(piece.peer));
    if (piece.sends) return;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (static_cast<std::size_t>(bytes) != piece.bytes)
      fail("{}: it sent {} bytes, and {} are awaited", with(piece.peer), bytes, piece.bytes);
  }

  const Meeting& meeting_;
  const std::vector<int>& ranks_;
  const std::string place_;
  std::vector<MPI_Request> requests_;
  std::vector<Message> pieces_;
  std::vector<int> which_;  // for MPI_Testsome, which is called often
  std::vector<MPI_Status> statuses_;
};

class MpiWire final : public Wire {
 public:
  MpiWire(const Meeting& meeting, std::vector<int> ranks, MPI_Comm comm)
      : meeting_(meeting), ranks_(std::move(ranks)), comm_(comm) {}
  // MPI_Finalize frees the communicator: to do so here would be a collective in a destructor.

  std::unique_ptr<Flight> post(int tag, const std::string& place,
                               const std::vector<Message>& messages) override {
    auto flight = std::make_unique<MpiFlight>(meeting_, ranks_, place);
    for (const bool sends : {false, true})  // a message finds its place when it comes
      for (const Message& message : messages)
        if (message.sends == sends) flight->post(comm_, tag, message);
    return flight;
  }

 private:
  const Meeting& meeting_;
  const std::vector<int> ranks_;
  const MPI_Comm comm_;
};

}  // namespace

void check_mpi(int code, std::string_view operation, std::string_view where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  const std::string message =
      vfm::format("{} failed in {}: {}", operation, where,
                  std::string_view(text.data(), static_cast<std::size_t>(length)));
  int kind = code;
  MPI_Error_class(code, &kind);
  if (kind == MPI_ERR_TRUNCATE) fail("{}", message);  // another size, which is a fault of a program
  throw ExchangeFailed(message);
}

std::unique_ptr<Wire> mpi_wire(Meeting& meeting, const std::vector<int>& ranks, int rank) {
  MPI_Comm comm = MPI_COMM_NULL;
  const std::string where = meeting.name_of(rank);
  const char* const operation = "MPI_Comm_split";
  check_mpi(
      meeting.then(operation,
                   [&] { return MPI_Comm_split(MPI_COMM_WORLD, ranks.front(), rank, &comm); }),
      operation, where);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size", where);
  if (size != static_cast<int>(ranks.size()))
    fail("{} makes a group of {} ranks, which {} join", where, ranks.size(), size);
  if (size > 1) return std::make_unique<MpiWire>(meeting, ranks, comm);
  MPI_Comm_free(&comm);
  return nullptr;
}

}  // namespace vfm::dist
