#include "runtime/bootstrap/lobby.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace xccl::bootstrap {
namespace {

constexpr uint64_t kMostWords = 4096;
constexpr auto kPatience = std::chrono::seconds(10);  // with a guest that is not kept
constexpr auto kDeadLink = std::chrono::seconds(10);  // after which a host that is gone is missed
constexpr int kMostPorts = 16;                        // ports that are tried

// Below what a rank needs for its own work, whatever the limit is.
size_t MostStrangers() {
  constexpr rlim_t kMost = 1024;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return static_cast<size_t>(std::clamp<rlim_t>(limit.rlim_cur / 4, 1, kMost));
}

void Watch(const OwnedFile& ready, int socket, int name) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(name);
  epoll_ctl(ready.get(), EPOLL_CTL_ADD, socket, &event);
}

}  // namespace

StatusOr<std::unique_ptr<Lobby>> Lobby::Open(const std::vector<Address>& addresses, bool* in_use) {
  auto lobby = std::make_unique<Lobby>();
  lobby->ready_ = OwnedFile(epoll_create1(EPOLL_CLOEXEC));
  if (!lobby->ready_.open())
    return SystemError(fmt::format("cannot watch sockets: {}", std::strerror(errno)));
  bool taken = false;
  Status status = lobby->OpenDoors(addresses, &taken);
  // A port that is free on one address may be taken on another.
  for (int again = 0; !status.ok() && taken && addresses[0].port() == 0 && again < kMostPorts; ++again)
    status = lobby->OpenDoors(addresses, &taken);
  if (in_use != nullptr) *in_use = taken;
  XCCL_RETURN_IF_ERROR(status);
  for (const OwnedFile& door : lobby->doors_) Watch(lobby->ready_, door.get(), lobby->next_guest_++);
  return lobby;
}

Status Lobby::OpenDoors(const std::vector<Address>& addresses, bool* taken) {
  doors_.clear();
  addresses_.clear();
  port_ = addresses[0].port();
  Status unusable;
  for (Address address : addresses) {
    address.set_port(port_);
    StatusOr<OwnedFile> door = Listen(address, taken);
    if (!door.ok() && *taken) return door.status();
    if (!door.ok() && unusable.ok()) unusable = door.status();
    if (!door.ok()) continue;
    port_ = address.port();
    addresses_.push_back(address);
    doors_.push_back(*std::move(door));
  }
  return doors_.empty() ? unusable : OkStatus();
}

StatusOr<std::optional<Lobby::Event>> Lobby::Wait(Clock::time_point until) {
  while (events_.empty()) {
    ShowOutStrangers();
    const Clock::time_point next = strangers_.empty() ? until : strangers_.begin()->second + kPatience;
    std::array<epoll_event, 64> ready;
    const int count = epoll_wait(ready_.get(), ready.data(), static_cast<int>(ready.size()),
                                 PollMilliseconds(std::min(until, next)));
    for (int i = 0; i < count; ++i) {
      const int guest = static_cast<int>(ready[static_cast<size_t>(i)].data.u64);
      if (static_cast<size_t>(guest) >= doors_.size())
        Hear(guest);
      else if (events_.empty())  // who has spoken is answered before another comes in
        XCCL_RETURN_IF_ERROR(LetIn(doors_[static_cast<size_t>(guest)]));
    }
    if (count <= 0 && Clock::now() >= until) return std::optional<Event>();
  }
  std::optional<Event> event = std::move(events_.front());
  events_.pop_front();
  return event;
}

Status Lobby::LetIn(const OwnedFile& door) {
  if (!door.open()) return OkStatus();
  OwnedFile socket = Accept(door);
  if (!socket.open()) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return OkStatus();
    if (strangers_.empty())
      return SystemError(fmt::format("cannot accept: {}; hint: ulimit -n", std::strerror(errno)));
    ShowOut(strangers_.begin()->first);  // strangers make room
    return OkStatus();
  }
  MakeRoom();
  const int guest = next_guest_++;
  Watch(ready_, socket.get(), guest);
  WatchLink(socket.get(), kDeadLink);  // messages after a challenge go out at once
  Guest& made = guests_[guest];
  made.socket = std::move(socket);
  made.came = Clock::now();
  strangers_[guest] = made.came;
  return OkStatus();
}

void Lobby::MakeRoom() {
  for (const size_t most = MostStrangers(); strangers_.size() >= most;) ShowOut(strangers_.begin()->first);
}

void Lobby::Hear(int guest) {
  const auto at = guests_.find(guest);
  if (at == guests_.end()) return;
  Guest& who = at->second;
  std::array<char, 4096> bytes;
  const ssize_t got = recv(who.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    if (strangers_.count(guest) == 0) events_.push_back({guest, {}});
    ShowOut(guest);
    return;
  }
  who.reader.Add({bytes.data(), static_cast<size_t>(got)});
  while (true) {
    StatusOr<std::optional<Message>> message = who.reader.Next(kMostWords);
    if (!message.ok()) return ShowOut(guest);
    if (!*message) return;
    events_.push_back({guest, std::move(*message)});
  }
}

void Lobby::ShowOutStrangers() {
  const Clock::time_point now = Clock::now();
  while (!strangers_.empty() && now - strangers_.begin()->second >= kPatience)
    ShowOut(strangers_.begin()->first);
}

std::string Lobby::From(int guest) const {
  const auto at = guests_.find(guest);
  return at == guests_.end() ? "?" : PeerOf(at->second.socket.get()).ToString();
}

std::optional<Seal>* Lobby::SealOf(int guest) {
  const auto at = guests_.find(guest);
  return at == guests_.end() ? nullptr : &at->second.seal;
}

void Lobby::Send(int guest, const std::string& message) {
  const auto at = guests_.find(guest);
  if (at == guests_.end()) return;
  // A guest that does not read its few first bytes within a second is as good as gone.
  const Status sent = SendAll(at->second.socket.get(), message, After(std::chrono::seconds(1)));
  if (!sent.ok()) ShowOut(guest);
}

void Lobby::ShowOut(int guest) {
  strangers_.erase(guest);
  guests_.erase(guest);
}

void Lobby::Keep(int guest) { strangers_.erase(guest); }

Connection Lobby::Take(int guest) {
  const auto at = guests_.find(guest);
  Connection connection{std::move(at->second.socket), std::move(at->second.reader),
                        at->second.seal.value_or(Seal())};
  epoll_ctl(ready_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  ShowOut(guest);
  return connection;
}

void Lobby::CloseDoor() {
  for (OwnedFile& door : doors_) door = OwnedFile();
}

}  // namespace xccl::bootstrap
