#include "runtime/bootstrap/socket.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace xccl::bootstrap {
namespace {

void Set(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

OwnedFile Open(int family) {
  return OwnedFile::NotInForks([&] { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
}

Status Wait(int socket, short events, Clock::time_point until) {
  pollfd ready{socket, events, 0};
  const int count = poll(&ready, 1, PollMilliseconds(until));
  if (count > 0 || (count < 0 && errno == EINTR)) return OkStatus();
  return LimitReached("nothing came in time");
}

}  // namespace

Clock::time_point After(std::chrono::nanoseconds limit) {
  const Clock::time_point now = Clock::now();
  return limit < Clock::time_point::max() - now ? now + limit : Clock::time_point::max();
}

Clock::time_point Later(Clock::time_point until, std::chrono::nanoseconds more) {
  return until < Clock::time_point::max() - more ? until + more : Clock::time_point::max();
}

int PollMilliseconds(Clock::time_point until) {
  if (until == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

std::string Seconds(std::chrono::nanoseconds limit) {
  return fmt::format("{} s", std::chrono::duration<double>(limit).count());
}

StatusOr<OwnedFile> Listen(Address& address, bool* in_use) {
  OwnedFile door = Open(address.family());
  Set(door.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  const bool listens =
      door.open() && bind(door.get(), address.get(), address.size()) == 0 && listen(door.get(), 4096) == 0;
  const int error = listens ? 0 : errno;
  if (in_use != nullptr) *in_use = error == EADDRINUSE;
  if (!listens)
    return SystemError(fmt::format("cannot listen on {}: {}", address.ToString(), std::strerror(error)));
  address.set_port(OwnEndOf(door.get()).port());
  return door;
}

StatusOr<OwnedFile> BeginConnect(const Address& address) {
  OwnedFile end = Open(address.family());
  if (!end.open()) return SystemError(fmt::format("cannot open a socket: {}", std::strerror(errno)));
  if (connect(end.get(), address.get(), address.size()) != 0 && errno != EINPROGRESS)
    return PeerEnded(std::strerror(errno));
  return end;
}

Status EndConnect(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return PeerEnded(std::strerror(error));
  // TCP may connect a socket to itself where nobody listens on a port of the ephemeral range.
  if (OwnEndOf(socket).ToString() == PeerOf(socket).ToString()) return PeerEnded("nobody listens");
  return OkStatus();
}

StatusOr<OwnedFile> Connect(const Address& address, Clock::time_point until) {
  XCCL_ASSIGN_OR_RETURN(OwnedFile end, BeginConnect(address));
  pollfd ready{end.get(), POLLOUT, 0};
  int count = 0;
  do count = poll(&ready, 1, PollMilliseconds(until));
  while (count < 0 && errno == EINTR);
  if (count == 0) return LimitReached("no answer");
  XCCL_RETURN_IF_ERROR(EndConnect(end.get()));
  Set(end.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  return end;
}

OwnedFile Accept(const OwnedFile& door) {
  return OwnedFile::NotInForks(
      [&] { return accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
}

void WatchLink(int socket, std::chrono::nanoseconds silence) {
  Set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  if (silence == std::chrono::nanoseconds::max()) return;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(silence).count();
  Set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::clamp<int64_t>(ms, 1, 1 << 30)));
  const int period_s = static_cast<int>(std::clamp<int64_t>(ms / 4000, 1, 3600));
  Set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(socket, IPPROTO_TCP, TCP_KEEPIDLE, period_s);
  Set(socket, IPPROTO_TCP, TCP_KEEPINTVL, period_s);
  Set(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

Status SendAll(int socket, std::string_view bytes, Clock::time_point until) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      XCCL_RETURN_IF_ERROR(Wait(socket, POLLOUT, until));
    } else {
      return PeerEnded(std::strerror(errno));
    }
  }
  return OkStatus();
}

StatusOr<Message> ReceiveMessage(int socket, MessageReader& reader, uint64_t most, Clock::time_point until) {
  std::array<char, 1 << 14> bytes;
  while (true) {
    XCCL_ASSIGN_OR_RETURN(std::optional<Message> message, reader.Next(most));
    if (message) return *std::move(message);
    XCCL_RETURN_IF_ERROR(Wait(socket, POLLIN, until));
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      reader.Add({bytes.data(), static_cast<size_t>(got)});
    } else if (got == 0) {
      return PeerEnded("the connection was closed");
    } else if (errno != EAGAIN && errno != EINTR) {
      return PeerEnded(std::strerror(errno));
    }
  }
}

Status SendSealed(Connection& to, MessageType type, std::string_view body, Clock::time_point until) {
  return SendAll(to.socket.get(), to.seal.Close(type, body), until);
}

StatusOr<Message> ReceiveSealed(Connection& from, uint64_t most, Clock::time_point until) {
  XCCL_ASSIGN_OR_RETURN(Message message, ReceiveMessage(from.socket.get(), from.reader, most, until));
  XCCL_RETURN_IF_ERROR(from.seal.Open(message));
  return message;
}

bool IsOver(int socket) {
  tcp_info info = {};
  socklen_t size = sizeof info;
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_CLOSE;
}

Address PeerOf(int socket) {
  Address address;
  socklen_t size = sizeof address.storage;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage), &size) != 0) return AddressV4(0, 0);
  return address;
}

Address OwnEndOf(int socket) {
  Address address;
  socklen_t size = sizeof address.storage;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &size) != 0) return AddressV4(0, 0);
  return address;
}

Status AllowOpenFiles(uint64_t needed) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return OkStatus();
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur >= needed) return OkStatus();
  return SystemError(fmt::format("{} open files are needed and {} allowed; hint: ulimit -Hn {}", needed,
                                 limit.rlim_cur, needed));
}

}  // namespace xccl::bootstrap
