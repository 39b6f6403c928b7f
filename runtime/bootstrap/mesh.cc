#include "runtime/bootstrap/mesh.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace xccl::bootstrap {
namespace {

constexpr uint64_t kMostWords = 1 << 16;

class Mesh {
 public:
  Mesh(int32_t rank, const Welcome& welcome, Lobby& lobby, Clock::time_point until)
      : rank_(rank), welcome_(welcome), lobby_(lobby), until_(until), began_(Clock::now()) {
    for (const Partner& partner : welcome.partners) made_.push_back({partner, {}});
  }

  Status Connect() {
    for (Connected& to : made_)
      if (to.partner.rank > rank_) XCCL_RETURN_IF_ERROR(Call(to));
    XCCL_RETURN_IF_ERROR(AwaitCalls());
    for (Connected& to : made_)
      if (to.partner.rank > rank_) XCCL_RETURN_IF_ERROR(AwaitAnswer(to));
    return OkStatus();
  }
  void Tell(const Status& why) {
    for (const Connected& to : made_)
      if (to.connection.socket.open())
        (void)SendAll(to.connection.socket.get(), Encode(MessageType::kFail, PackStatus(why)), Clock::now());
  }
  std::vector<Connected> Take() { return std::move(made_); }

 private:
  std::string Name(const Partner& partner) const { return Who(partner.rank, partner.host, partner.pid); }
  Status Call(Connected& to);
  Status AwaitCalls();
  Status AwaitAnswer(Connected& to);
  bool Accept(const Lobby::Event& event);

  int32_t rank_;
  const Welcome& welcome_;
  Lobby& lobby_;
  Clock::time_point until_, began_;
  std::vector<Connected> made_;
};

Status Mesh::Call(Connected& to) {
  XCCL_ASSIGN_OR_RETURN(const Address address, NumericAddress(to.partner.address, to.partner.port));
  StatusOr<OwnedFile> socket = xccl::bootstrap::Connect(address, until_);
  Status status = socket.status();
  if (status.ok()) {
    Packer hello;
    for (const char c : welcome_.session) hello.Put(c);
    hello.Put(rank_).Put(to.partner.rank);
    status = SendAll(socket->get(), Encode(MessageType::kPartner, hello.Take()), until_);
  }
  if (!status.ok())
    return PeerEnded(
        fmt::format("{}: cannot be reached from rank {} at {} ({}); its process has ended, or a "
                    "firewall is between; hint: XCCL_INTERFACE=NAME",
                    Name(to.partner), rank_, address.ToString(), status.message()));
  to.connection.socket = *std::move(socket);
  return OkStatus();
}

// Others than the awaited partners are shown out: strangers, and ranks of another meeting.
bool Mesh::Accept(const Lobby::Event& event) {
  if (!event.message || event.message->protocol != kProtocol || event.message->type != MessageType::kPartner)
    return false;
  const std::string_view body = event.message->body;
  if (!SameToken(body.substr(0, sizeof(Token)), welcome_.session)) return false;
  Unpacker ranks(body.substr(sizeof(Token)));
  const auto from = ranks.Get<int32_t>();
  const auto to = ranks.Get<int32_t>();
  const auto at =
      std::find_if(made_.begin(), made_.end(), [&](const Connected& c) { return c.partner.rank == from; });
  if (!ranks.ok() || to != rank_ || at == made_.end() || from > rank_ || at->connection.socket.open())
    return false;
  lobby_.Send(event.guest, Encode(MessageType::kPartnerAccepted, ""));
  at->connection = lobby_.Take(event.guest);
  return true;
}

Status Mesh::AwaitCalls() {
  while (true) {
    std::vector<int32_t> missing;
    for (const Connected& from : made_)
      if (from.partner.rank < rank_ && !from.connection.socket.open()) missing.push_back(from.partner.rank);
    if (missing.empty()) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(const std::optional<Lobby::Event> event, lobby_.Wait(until_));
    if (!event)
      return PeerEnded(fmt::format("{} did not connect to rank {} within {}", RankList(missing), rank_,
                                   Seconds(std::chrono::ceil<std::chrono::seconds>(Clock::now() - began_))));
    if (!Accept(*event)) lobby_.ShowOut(event->guest);
  }
}

Status Mesh::AwaitAnswer(Connected& to) {
  const StatusOr<Message> answer =
      ReceiveMessage(to.connection.socket.get(), to.connection.reader, kMostWords, until_);
  if (answer.ok() && answer->type == MessageType::kFail) return UnpackStatus(answer->body);
  if (answer.ok() && answer->type == MessageType::kPartnerAccepted) return OkStatus();
  return PeerEnded(fmt::format("{}: did not answer rank {} ({})", Name(to.partner), rank_,
                               answer.ok() ? "another message" : answer.status().message()));
}

}  // namespace

StatusOr<std::vector<Connected>> ConnectPartners(int32_t rank, const Welcome& welcome, Lobby& lobby,
                                                 Clock::time_point until) {
  Mesh mesh(rank, welcome, lobby, until);
  if (Status status = mesh.Connect(); !status.ok()) {
    mesh.Tell(status);
    return status;
  }
  return mesh.Take();
}

}  // namespace xccl::bootstrap
