#include "runtime/bootstrap/mesh.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/bootstrap/identity.h"

namespace xccl::bootstrap {
namespace {

constexpr uint64_t kMostWords = 1 << 16;

class Mesh {
 public:
  Mesh(const Placement& placement, Meeting& meeting, Clock::time_point until)
      : rank_(placement.rank.value),
        key_(KeyOfGroup(placement, meeting.welcome)),
        challenge_(meeting.challenge),
        served_by_(meeting.served_by),
        server_(meeting.server),
        lobby_(*meeting.door),
        until_(until),
        began_(Clock::now()) {
    for (const Partner& partner : meeting.welcome.partners) made_.push_back({partner, {}});
  }

  Status Connect() {
    for (Connected& to : made_)
      if (to.partner.rank > rank_) XCCL_RETURN_IF_ERROR(Call(to));
    XCCL_RETURN_IF_ERROR(AwaitCalls());
    for (Connected& to : made_)
      if (to.partner.rank > rank_) XCCL_RETURN_IF_ERROR(AwaitAnswer(to));
    return AwaitAll();
  }
  Status Agree(const Status& mine);
  std::vector<Connected> Take() { return std::move(made_); }

 private:
  static std::string Name(const Partner& partner) { return Who(partner.rank, partner.host, partner.pid); }
  Seal SealWith(const Partner& partner) const;
  Status Call(Connected& to);
  Status AwaitCalls();
  Status AwaitAnswer(Connected& to);
  Status AwaitAll();
  std::optional<Status> Told(Clock::time_point until);
  bool Accept(const Lobby::Event& event);

  int32_t rank_;
  const Digest key_, challenge_;
  const std::string& served_by_;
  Connection& server_;
  Lobby& lobby_;
  Clock::time_point until_, began_;
  std::vector<Connected> made_;
  std::optional<Status> told_;
};

// The rendezvous told both their challenges, so that none of their keys is used twice.
Seal Mesh::SealWith(const Partner& partner) const {
  const bool calls = partner.rank > rank_;
  const Digest& lower = calls ? challenge_ : partner.challenge;
  const Digest& higher = calls ? partner.challenge : challenge_;
  return Seal(KeyedHash(key_, kUseOfPartners, std::string(View(lower)) + std::string(View(higher))), calls);
}

Status Mesh::Call(Connected& to) {
  const StatusOr<Address> at = NumericAddress(to.partner.address, to.partner.port);
  if (!at.ok()) return Annotate(at.status(), Name(to.partner));
  const Address& address = *at;
  StatusOr<OwnedFile> socket = xccl::bootstrap::Connect(address, until_);
  Status status = socket.status();
  if (status.ok()) {
    to.connection.socket = *std::move(socket);
    to.connection.seal = SealWith(to.partner);
    status = SendSealed(to.connection, MessageType::kPartner, Packer().Put(rank_).Put(to.partner.rank).Take(),
                        until_);
  }
  if (!status.ok())
    return PeerEnded(
        fmt::format("{}: cannot be reached from rank {} at {} ({}); its process has ended, or a "
                    "firewall is between; hint: XCCL_INTERFACE=NAME",
                    Name(to.partner), rank_, address.ToString(), status.message()));
  return OkStatus();
}

// Others than the awaited partners are shown out: strangers, and ranks of another meeting.
bool Mesh::Accept(const Lobby::Event& event) {
  if (!event.message || event.message->protocol != kProtocol || event.message->type != MessageType::kPartner)
    return false;
  Unpacker ranks(event.message->body);
  const auto from = ranks.Get<int32_t>();
  const auto to = ranks.Get<int32_t>();
  const auto at =
      std::find_if(made_.begin(), made_.end(), [&](const Connected& c) { return c.partner.rank == from; });
  if (!ranks.ok() || to != rank_ || at == made_.end() || from > rank_ || at->connection.socket.open())
    return false;
  Message message = *event.message;
  Seal seal = SealWith(at->partner);
  if (!seal.Open(message).ok()) return false;
  at->connection = lobby_.Take(event.guest);
  at->connection.seal = seal;
  // It has room for its first bytes.
  (void)SendSealed(at->connection, MessageType::kPartnerAccepted, "", After(std::chrono::seconds(1)));
  return true;
}

Status Mesh::AwaitCalls() {
  while (true) {
    std::vector<int32_t> missing;
    for (const Connected& from : made_)
      if (from.partner.rank < rank_ && !from.connection.socket.open()) missing.push_back(from.partner.rank);
    if (missing.empty()) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(const std::optional<Lobby::Event> event,
                          lobby_.Wait(std::min(until_, After(std::chrono::milliseconds(20)))));
    if (const std::optional<Status> told = Told(Clock::now())) return *told;
    if (!event && Clock::now() < until_) continue;
    if (!event)
      return PeerEnded(fmt::format("{} did not connect to rank {} within {}", RankList(missing), rank_,
                                   Seconds(std::chrono::ceil<std::chrono::seconds>(Clock::now() - began_))));
    if (!Accept(*event)) lobby_.ShowOut(event->guest);
  }
}

Status Mesh::AwaitAnswer(Connected& to) {
  while (true) {
    const Clock::time_point next = std::min(until_, After(std::chrono::milliseconds(20)));
    const StatusOr<Message> answer = ReceiveSealed(to.connection, kMostWords, next);
    if (answer.ok() && answer->type == MessageType::kPartnerAccepted) return OkStatus();
    if (const std::optional<Status> told = Told(Clock::now())) return *told;
    if (!answer.ok() && answer.status().code() == StatusCode::kLimit && Clock::now() < until_) continue;
    return PeerEnded(fmt::format("{}: did not answer rank {} ({})", Name(to.partner), rank_,
                                 answer.ok() ? "another message" : answer.status().message()));
  }
}

// The last word of the rendezvous, or its own end. It is said once and kept.
std::optional<Status> Mesh::Told(Clock::time_point until) {
  if (told_) return told_;
  const StatusOr<Message> word = ReceiveSealed(server_, kMostWords, until);
  if (word.ok())
    told_ = word->type == MessageType::kRefused ? UnpackStatus(word->body) : OkStatus();
  else if (word.status().code() != StatusCode::kLimit)
    told_ = PeerEnded(fmt::format(
        "rendezvous: the process that served it ({}) has ended before all were connected", served_by_));
  return told_;
}

Status Mesh::AwaitAll() {
  (void)SendSealed(server_, MessageType::kConnected, "", until_);
  if (const std::optional<Status> told = Told(Later(until_, kLastToCome))) return *told;
  return PeerEnded(fmt::format(
      "rendezvous: the process that served it ({}) did not say whether all are connected", served_by_));
}

// All ranks end with one reason. The end of a process is better known to the rendezvous, which sees it too;
// who does not answer in time is known to this rank alone.
Status Mesh::Agree(const Status& mine) {
  const auto patience = std::chrono::seconds(1);
  if (!Told(Clock::now() < until_ ? After(patience) : Clock::now())) {
    (void)SendSealed(server_, MessageType::kFail, PackStatus(mine), After(patience));
    (void)Told(After(patience));
  }
  Status reason = told_ && !told_->ok() ? *told_ : mine;
  // Partners that have heard the last word of a rendezvous that this rank has not.
  for (Connected& to : made_)
    if (to.connection.socket.open())
      (void)SendSealed(to.connection, MessageType::kFail, PackStatus(reason), Clock::now());
  return reason;
}

}  // namespace

Digest KeyOfGroup(const Placement& placement, const Welcome& welcome) {
  return KeyedHash(KeyOf(placement.token_seed), "job", welcome.job);
}

StatusOr<std::vector<Connected>> ConnectPartners(const Placement& placement, Meeting& meeting,
                                                 Clock::time_point until) {
  Mesh mesh(placement, meeting, until);
  if (const Status status = mesh.Connect(); !status.ok()) return mesh.Agree(status);
  return mesh.Take();
}

}  // namespace xccl::bootstrap
