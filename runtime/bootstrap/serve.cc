// The server's side of the rendezvous.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/version.h"
#include "runtime/bootstrap/rendezvous.h"

namespace xccl::bootstrap {
namespace {

constexpr uint64_t kFilesBeside = 64;  // strangers', and the program's own
constexpr size_t kMostStrangers = 4;   // that a message names

class Server {
 public:
  Server(Lobby& lobby, const Serving& serving)
      : lobby_(lobby), serving_(serving), until_(serving.until), limit_(serving.limit) {}

  Status Run();

 private:
  Status Gather();
  Status HearHello(int guest, const Message& message);
  Status Admit(int guest, Hello hello);
  void Linger(const Status& why);
  Status Late() const;
  void Refuse(int guest, const Status& why);
  Status WelcomeAll();
  Status AwaitConnected();
  std::string Name(const Hello& hello) const { return Who(hello.rank, hello.host, hello.pid); }
  Status Wrong(const std::string& text) const { return InvalidInput(serving_.name + ": " + text); }

  Lobby& lobby_;
  const Serving& serving_;
  Clock::time_point until_;
  std::chrono::nanoseconds limit_;
  int32_t ranks_ = 0;              // 0: nobody has come
  std::map<int32_t, Hello> came_;  // by rank
  std::map<int32_t, int> guest_;   // by rank
  std::map<int, int32_t> rank_;    // by guest
  std::vector<std::string> strangers_;
};

void Server::Refuse(int guest, const Status& why) {
  lobby_.Send(guest, Encode(MessageType::kRefused, PackStatus(why)));
}

Status Server::Run() {
  Status status = Gather();
  if (status.ok()) status = WelcomeAll();
  if (status.ok()) status = AwaitConnected();
  if (status.ok()) return status;
  if (came_.empty() && serving_.stop != nullptr && *serving_.stop) return status;
  for (const auto& [rank, guest] : guest_) Refuse(guest, status);
  Linger(status);
  return status;
}

// Ranks that come late learn the reason too, instead of waiting for a rendezvous that has ended.
void Server::Linger(const Status& why) {
  const auto until = After(std::min<std::chrono::nanoseconds>(std::chrono::seconds(3), limit_ / 10));
  int32_t left = ranks_ == 0 ? INT32_MAX : ranks_ - static_cast<int32_t>(came_.size());
  while (left > 0) {
    const StatusOr<std::optional<Lobby::Event>> event = lobby_.Wait(until);
    if (!event.ok() || !*event) return;
    const Lobby::Event& happened = **event;
    if (!happened.message ||
        !SameToken(std::string_view(happened.message->body).substr(0, sizeof(Token)), serving_.token))
      continue;
    Refuse(happened.guest, why);
    --left;
  }
}

Status Server::Gather() {
  while (ranks_ == 0 || static_cast<int32_t>(came_.size()) < ranks_) {
    auto next = until_;
    if (serving_.stop != nullptr) {
      if (*serving_.stop) return LimitReached(serving_.name + ": the rank that serves it has given up");
      next = std::min(until_, After(std::chrono::milliseconds(100)));
    }
    StatusOr<std::optional<Lobby::Event>> event = lobby_.Wait(next);
    if (!event.ok())
      return Annotate(event.status(),
                      fmt::format("{}: {} of {} ranks came", serving_.name, came_.size(), ranks_));
    if (!*event) {
      if (Clock::now() >= until_) return Late();
      continue;
    }
    if ((*event)->message) {
      XCCL_RETURN_IF_ERROR(HearHello((*event)->guest, *(*event)->message));
    } else if (const auto gone = rank_.find((*event)->guest); gone != rank_.end()) {
      guest_.erase(gone->second);
      return PeerEnded(fmt::format("{}: {}: its process has ended, or has given up, before all had come",
                                   serving_.name, Name(came_.at(gone->second))));
    }
  }
  return OkStatus();
}

Status Server::Late() const {
  std::vector<int32_t> missing;
  for (int32_t r = 0; r < ranks_; ++r)
    if (came_.count(r) == 0) missing.push_back(r);
  if (missing.empty())
    return LimitReached(fmt::format("{}: no rank came within {}", serving_.name, Seconds(limit_)));
  std::string text = fmt::format("{}: {} of {} did not come within {}", serving_.name, RankList(missing),
                                 ranks_, Seconds(limit_));
  for (const std::string& stranger : strangers_) text += fmt::format("; {}", stranger);
  return LimitReached(text);
}

// Strangers, who do not know the token, are refused and remembered; they cannot end the meeting. A rank of
// this job that cannot take part ends it.
Status Server::HearHello(int guest, const Message& message) {
  const std::string from = lobby_.From(guest);
  const bool known = SameToken(std::string_view(message.body).substr(0, sizeof(Token)), serving_.token);
  const std::optional<Hello> hello = message.protocol == kProtocol && message.type == MessageType::kHello
                                         ? UnpackHello(message.body)
                                         : std::nullopt;
  const std::string who = hello ? fmt::format("{} at {}", Name(*hello), from) : from;
  if (!known) {
    const std::string text = fmt::format("{} was refused: it has the token of another job", who);
    if (strangers_.size() < kMostStrangers) strangers_.push_back(text);
    Refuse(guest, Wrong(fmt::format("{}; hint: the same XCCL_TOKEN and XCCL_ADDRESS on all ranks", text)));
    lobby_.ShowOut(guest);
    return OkStatus();
  }
  Status wrong;
  if (message.protocol != kProtocol)
    wrong = Wrong(fmt::format("{}: speaks version {} of the protocol; expected version {}, that of XCCL {}",
                              who, message.protocol, kProtocol, kVersion));
  else if (!hello)
    wrong = Wrong(fmt::format("{}: said what cannot be read", who));
  if (wrong.ok()) wrong = Admit(guest, *hello);
  if (!wrong.ok()) Refuse(guest, wrong);
  return wrong;
}

Status Server::Admit(int guest, Hello hello) {
  const std::string who = Name(hello);
  if (hello.product != kVersion)
    return Wrong(
        fmt::format("{}: runs XCCL {}; expected {}, as the rendezvous", who, hello.product, kVersion));
  if (hello.ranks < 1 || hello.rank < 0 || hello.rank >= hello.ranks)
    return Wrong(fmt::format("{}: a group of {}; expected a rank from 0 to size - 1", who, hello.ranks));
  if (ranks_ != 0 && hello.ranks != ranks_)
    return Wrong(fmt::format("{}: a group of {}; expected {}, as {} says", who, hello.ranks, ranks_,
                             Name(came_.begin()->second)));
  if (const auto other = came_.find(hello.rank); other != came_.end())
    return Wrong(
        fmt::format("rank {}: claimed by two processes, pid {} on host {} and pid {} on host {}; "
                    "expected one for each of ranks 0 to {}",
                    hello.rank, other->second.pid, other->second.host, hello.pid, hello.host, ranks_ - 1));
  if (ranks_ == 0) {
    ranks_ = hello.ranks;
    XCCL_RETURN_IF_ERROR(Annotate(AllowOpenFiles(static_cast<uint64_t>(ranks_) + kFilesBeside),
                                  fmt::format("{}: {} ranks", serving_.name, ranks_)));
  }
  if (const Clock::time_point theirs = After(hello.left); theirs < until_) {
    until_ = theirs;
    limit_ = hello.limit;
  }
  lobby_.Send(guest, Encode(MessageType::kAccepted,
                            Packer().Put(static_cast<int32_t>(getpid())).PutText(HostName()).Take()));
  rank_[guest] = hello.rank;
  guest_[hello.rank] = guest;
  came_[hello.rank] = std::move(hello);
  return OkStatus();
}

// The door closes first: who is welcome may meet again at once, at a new rendezvous with the same port.
Status Server::WelcomeAll() {
  lobby_.CloseDoor();
  Welcome welcome;
  XCCL_ASSIGN_OR_RETURN(const Token job, RandomToken());
  XCCL_ASSIGN_OR_RETURN(welcome.session, RandomToken());
  welcome.job = Hex(job);
  for (const auto& [rank, guest] : guest_) {
    welcome.partners.clear();
    for (const int32_t partner : PartnersOf(rank, ranks_)) {
      const Hello& hello = came_.at(partner);
      welcome.partners.push_back({partner, hello.pid, hello.host, hello.address, hello.port});
    }
    lobby_.Send(guest, Encode(MessageType::kWelcome, Pack(welcome)));
  }
  return OkStatus();
}

// Until all are connected with their partners, only the server sees every rank, and knows who ends.
Status Server::AwaitConnected() {
  const Clock::time_point until = After(kConnecting);
  std::set<int32_t> connected;
  while (static_cast<int32_t>(connected.size()) < ranks_) {
    XCCL_ASSIGN_OR_RETURN(const std::optional<Lobby::Event> event, lobby_.Wait(until));
    if (!event) {
      std::vector<int32_t> missing;
      for (int32_t r = 0; r < ranks_; ++r)
        if (connected.count(r) == 0) missing.push_back(r);
      return LimitReached(fmt::format("{}: {} of {} did not reach their partners within {}", serving_.name,
                                      RankList(missing), ranks_, Seconds(kConnecting)));
    }
    const auto from = rank_.find(event->guest);
    if (from == rank_.end()) continue;
    const Hello& who = came_.at(from->second);
    if (!event->message && connected.count(who.rank) == 0) {
      guest_.erase(who.rank);
      return Ended(who.rank, who.host, who.pid);
    }
    if (event->message && event->message->type == MessageType::kFail)
      return UnpackStatus(event->message->body);
    if (event->message && event->message->type == MessageType::kConnected) connected.insert(who.rank);
  }
  for (const auto& [rank, guest] : guest_) lobby_.Send(guest, Encode(MessageType::kAllConnected, ""));
  return OkStatus();
}

}  // namespace

Status Serve(Lobby& lobby, const Serving& serving) { return Server(lobby, serving).Run(); }

}  // namespace xccl::bootstrap
