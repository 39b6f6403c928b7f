// The server's side of the rendezvous.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/version.h"
#include "runtime/bootstrap/identity.h"
#include "runtime/bootstrap/proof.h"
#include "runtime/bootstrap/rendezvous.h"

namespace xccl::bootstrap {
namespace {

constexpr uint64_t kFilesBeside = 64;  // strangers', and the program's own
constexpr size_t kMostStrangers = 4;   // strangers that a message names
// Ranks whose time is over say whom they miss, which the server cannot know.
constexpr auto kLastWords = std::chrono::milliseconds(500);

class Server {
 public:
  Server(Lobby& lobby, const Serving& serving)
      : lobby_(lobby), serving_(serving), until_(serving.until), limit_(serving.limit) {}

  Status Run();

 private:
  Status Gather();
  Status Hear(int guest, const Message& message);
  Status HearHello(int guest, const Message& message);
  Status HearExcuse(int guest, const Message& message) const;
  Status Admit(int guest, Hello hello);
  std::optional<Message> Proved(int guest, Message message);
  void Challenge(int guest, const Message& knock);
  void ShowOutStranger(int guest, const Message& message);
  void Send(int guest, MessageType type, std::string_view body);
  void Linger(const Status& why);
  Status Late() const;
  void Refuse(int guest, const Status& why);
  Status WelcomeAll();
  Status AwaitConnected();
  std::string Name(const Hello& hello) const { return Who(hello.rank, hello.host, hello.pid); }
  Status Wrong(const std::string& text) const { return InvalidInput(serving_.name + ": " + text); }

  Lobby& lobby_;
  const Serving& serving_;
  const Digest key_ = KeyOf(serving_.secret);
  Clock::time_point until_;
  std::chrono::nanoseconds limit_;
  int32_t ranks_ = 0;              // 0: nobody has come
  std::map<int32_t, Hello> came_;  // by rank
  std::map<int32_t, int> guest_;   // by rank
  std::map<int, int32_t> rank_;    // by guest
  std::vector<std::string> strangers_;
  bool claimed_ = false;  // a rank, by two: ranks of two jobs may come
};

void Server::Send(int guest, MessageType type, std::string_view body) {
  std::optional<Seal>* const seal = lobby_.SealOf(guest);
  if (seal != nullptr && *seal) lobby_.Send(guest, (*seal)->Close(type, body));
}

void Server::Refuse(int guest, const Status& why) { Send(guest, MessageType::kRefused, PackStatus(why)); }

void Server::Challenge(int guest, const Message& knock) {
  if (knock.body.size() != sizeof(Digest)) return lobby_.ShowOut(guest);
  const Digest mine = RandomDigest();
  const Digest key = KeyedHash(key_, kUseOfRendezvous, knock.body + std::string(View(mine)));
  *lobby_.SealOf(guest) = Seal(key, /*calls=*/false);
  lobby_.Send(guest, Encode(MessageType::kChallenge, View(mine)));
}

// The message of a guest that knows the secret. Others are challenged, or refused and remembered: they cannot
// end the meeting.
std::optional<Message> Server::Proved(int guest, Message message) {
  std::optional<Seal>* const seal = lobby_.SealOf(guest);
  if (seal == nullptr) return std::nullopt;
  if (!*seal && message.type == MessageType::kKnock) {
    Challenge(guest, message);
  } else if (*seal && (*seal)->Open(message).ok()) {
    lobby_.Keep(guest);
    return message;
  } else if (rank_.count(guest) == 0) {  // else somebody speaks in a rank's place
    ShowOutStranger(guest, message);
  }
  return std::nullopt;
}

void Server::ShowOutStranger(int guest, const Message& message) {
  const std::string from = lobby_.From(guest);
  const std::optional<Hello> hello = message.protocol == kProtocol && message.type == MessageType::kHello
                                         ? UnpackHello(message.body)
                                         : std::nullopt;
  const std::string who = hello ? fmt::format("{} at {}", Name(*hello), from) : from;
  const bool another = message.protocol != kProtocol;
  const std::string why =
      another ? fmt::format("it speaks version {} of the protocol; expected version {}, that of XCCL {}",
                            message.protocol, kProtocol, kVersion)
              : "it has the token of another job";
  const std::string text = fmt::format("{} was refused: {}", who, why);
  if (strangers_.size() < kMostStrangers) strangers_.push_back(text);
  const Status refusal =
      Wrong(another ? text : text + "; hint: the same XCCL_TOKEN and XCCL_ADDRESS on all ranks");
  lobby_.Send(guest, Encode(MessageType::kRefused, PackStatus(refusal)));
  lobby_.ShowOut(guest);
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
  const auto until = After(std::min<std::chrono::nanoseconds>(kLongestLinger, limit_ / 10));
  int32_t left = ranks_ == 0 || claimed_ ? INT32_MAX : ranks_ - static_cast<int32_t>(came_.size());
  while (left > 0) {
    StatusOr<std::optional<Lobby::Event>> event = lobby_.Wait(until);
    if (!event.ok() || !*event) return;
    Lobby::Event& happened = **event;
    if (!happened.message) continue;
    const std::optional<Message> message = Proved(happened.guest, *std::move(happened.message));
    if (!message) continue;
    const std::optional<Hello> hello = UnpackHello(message->body);
    // Another rank 0 begins another run, to which this failure does not belong.
    if (hello && hello->rank == 0 && came_.count(0) != 0) {
      lobby_.ShowOut(happened.guest);
      continue;
    }
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
      const std::optional<Message> proved = Proved((*event)->guest, *std::move((*event)->message));
      if (proved) XCCL_RETURN_IF_ERROR(Hear((*event)->guest, *proved));
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

// A rank of this job that cannot take part ends the meeting.
Status Server::Hear(int guest, const Message& message) {
  if (rank_.count(guest) != 0) return OkStatus();
  Status wrong = message.type == MessageType::kFail ? HearExcuse(guest, message) : HearHello(guest, message);
  if (!wrong.ok()) Refuse(guest, wrong);
  return wrong;
}

Status Server::HearExcuse(int guest, const Message& message) const {
  Unpacker body(message.body);
  const std::optional<Hello> hello = UnpackHello(body.GetText());
  const Status why = UnpackStatus(body.GetText());
  const std::string who = hello ? Name(*hello) : lobby_.From(guest);
  return Annotate(why, fmt::format("{}: {} cannot come", serving_.name, who));
}

Status Server::HearHello(int guest, const Message& message) {
  const std::string from = lobby_.From(guest);
  const std::optional<Hello> hello = message.protocol == kProtocol && message.type == MessageType::kHello
                                         ? UnpackHello(message.body)
                                         : std::nullopt;
  if (message.protocol != kProtocol)
    return Wrong(fmt::format("{}: speaks version {} of the protocol; expected version {}, that of XCCL {}",
                             from, message.protocol, kProtocol, kVersion));
  if (!hello) return Wrong(fmt::format("{}: said what cannot be read", from));
  return Admit(guest, *hello);
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
  if (const StatusOr<Address> at = NumericAddress(hello.address, hello.port); !at.ok() || hello.port == 0)
    return Wrong(fmt::format("{}: says that it is at '{}', port {}; expected an IP address and a port", who,
                             hello.address, hello.port));
  if (std::min(hello.limit, hello.left) <= std::chrono::nanoseconds::zero())
    return Wrong(fmt::format("{}: a time limit of {}, {} of which are left; expected more than 0 s", who,
                             Seconds(hello.limit), Seconds(hello.left)));
  if (const auto other = came_.find(hello.rank); other != came_.end()) {
    claimed_ = true;
    return Wrong(fmt::format(
        "rank {}: claimed by two processes, pid {} on host {} and pid {} on host {}; "
        "expected one for each of ranks 0 to {}; hint: XCCL_JOB=NAME, or an XCCL_ADDRESS of its own, for "
        "each of two jobs at once",
        hello.rank, other->second.pid, other->second.host, hello.pid, hello.host, ranks_ - 1));
  }
  if (ranks_ == 0) {
    ranks_ = hello.ranks;
    XCCL_RETURN_IF_ERROR(Annotate(AllowOpenFiles(static_cast<uint64_t>(ranks_) + kFilesBeside),
                                  fmt::format("{}: {} ranks", serving_.name, ranks_)));
  }
  if (const Clock::time_point theirs = After(hello.left); theirs < until_) {
    until_ = theirs;
    limit_ = hello.limit;
  }
  Send(guest, MessageType::kAccepted,
       Packer().Put(static_cast<int32_t>(getpid())).PutText(HostName()).Take());
  rank_[guest] = hello.rank;
  guest_[hello.rank] = guest;
  came_[hello.rank] = std::move(hello);
  return OkStatus();
}

// The door closes first: who is welcome may meet again at once, at a new rendezvous with the same port.
Status Server::WelcomeAll() {
  lobby_.CloseDoor();
  Welcome welcome;
  welcome.job = RandomJob();
  for (const auto& [rank, guest] : guest_) {
    welcome.partners.clear();
    for (const int32_t partner : PartnersOf(rank, ranks_)) {
      const Hello& hello = came_.at(partner);
      welcome.partners.push_back(
          {partner, hello.pid, hello.host, hello.address, hello.port, hello.challenge});
    }
    Send(guest, MessageType::kWelcome, Pack(welcome));
  }
  return OkStatus();
}

// Until all are connected with their partners, only the server sees every rank, and knows who ends.
Status Server::AwaitConnected() {
  const Clock::time_point began = Clock::now(), until = ConnectingUntil(until_);
  std::set<int32_t> connected;
  while (static_cast<int32_t>(connected.size()) < ranks_) {
    XCCL_ASSIGN_OR_RETURN(const std::optional<Lobby::Event> event, lobby_.Wait(Later(until, kLastWords)));
    if (!event) {
      std::vector<int32_t> missing;
      for (int32_t r = 0; r < ranks_; ++r)
        if (connected.count(r) == 0) missing.push_back(r);
      return LimitReached(fmt::format("{}: {} of {} did not reach their partners within {}", serving_.name,
                                      RankList(missing), ranks_,
                                      Seconds(std::chrono::round<std::chrono::seconds>(until - began))));
    }
    const auto from = rank_.find(event->guest);
    if (from == rank_.end()) continue;
    const Hello& who = came_.at(from->second);
    if (!event->message && connected.count(who.rank) == 0) {
      guest_.erase(who.rank);
      return Ended(who.rank, who.host, who.pid);
    }
    if (!event->message) continue;
    const std::optional<Message> message = Proved(event->guest, *event->message);
    if (message && message->type == MessageType::kFail) {
      const Status why = UnpackStatus(message->body);
      return NamesARank(why.message()) ? why
                                       : Annotate(why, fmt::format("{}: {} says", serving_.name, Name(who)));
    }
    if (message && message->type == MessageType::kConnected) connected.insert(who.rank);
  }
  for (const auto& [rank, guest] : guest_) Send(guest, MessageType::kAllConnected, "");
  return OkStatus();
}

}  // namespace

Status Serve(Lobby& lobby, const Serving& serving) { return Server(lobby, serving).Run(); }

}  // namespace xccl::bootstrap
