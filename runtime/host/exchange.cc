#include "runtime/host/exchange.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

namespace xccl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kMagic = 0x314c43435843ULL;
constexpr std::chrono::hours kLongest(24 * 365 * 50);  // the longest wait that a clock is asked for
constexpr size_t kMostFiles = 200;                     // in one message: Linux allows 253
constexpr uint64_t kMostBytes = uint64_t{1} << 32;
constexpr const char* kOver = "another process has given up";

struct Header {
  uint64_t magic = kMagic, bytes = 0, files = 0;
};
struct Hello {
  uint64_t magic = kMagic;
  int32_t party = 0, parties = 0, process = 0, unused = 0;
};

// One end of a stream. Every function gives up at `until`, or when it is over.
struct Socket {
  OwnedFile file;
  Clock::time_point until;
  const std::function<bool()>* over = nullptr;

  Status Wait(short events) const {
    constexpr int64_t kOften = 20, kSeldom = 1 << 30;
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      pollfd ready{file.get(), events, 0};
      const int64_t longest = over != nullptr && *over ? kOften : kSeldom;
      const int count = poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(left, 0, longest)));
      if (count > 0 || (count < 0 && errno == EINTR)) return OkStatus();
      if (longest == kOften && (*over)()) return PeerEnded(kOver);
      if (left <= longest) return LimitReached("nothing came in time");
    }
  }
  Status Send(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(file.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        bytes = bytes.subspan(static_cast<size_t>(sent));
      } else if (errno == EAGAIN || errno == EINTR) {
        XCCL_RETURN_IF_ERROR(Wait(POLLOUT));
      } else {
        return PeerEnded(fmt::format("its process ended ({})", std::strerror(errno)));
      }
    }
    return OkStatus();
  }
  Status Receive(std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      XCCL_RETURN_IF_ERROR(Wait(POLLIN));
      const ssize_t got = recv(file.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got > 0) {
        bytes = bytes.subspan(static_cast<size_t>(got));
      } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        return PeerEnded("its process ended");
      }
    }
    return OkStatus();
  }
  template <typename T>
  Status SendValue(const T& value) const {
    return Send(std::as_bytes(std::span(&value, 1)));
  }
  template <typename T>
  Status ReceiveValue(T& value) const {
    return Receive(std::as_writable_bytes(std::span(&value, 1)));
  }

  // Files travel with one byte of data.
  Status SendFiles(std::span<const OwnedFile> files) const {
    std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> control = {};
    char carrier = 'f';
    iovec part{&carrier, 1};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    for (size_t i = 0; i < files.size(); ++i) {
      const int descriptor = files[i].get();
      std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &descriptor, sizeof descriptor);
    }
    while (sendmsg(file.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
      if (errno != EAGAIN && errno != EINTR)
        return LimitReached(fmt::format("files cannot be sent ({})", std::strerror(errno)));
      XCCL_RETURN_IF_ERROR(Wait(POLLOUT));
    }
    return OkStatus();
  }
  Status ReceiveFiles(size_t count, std::vector<OwnedFile>& files) const {
    std::array<char, CMSG_SPACE(kMostFiles * sizeof(int))> control = {};
    char carrier = 0;
    iovec part{&carrier, 1};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    while (true) {
      XCCL_RETURN_IF_ERROR(Wait(POLLIN));
      const ssize_t got = recvmsg(file.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
      if (got == 1) break;
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) return PeerEnded("its process ended");
    }
    size_t seen = 0;
    for (cmsghdr* rights = CMSG_FIRSTHDR(&message); rights != nullptr;
         rights = CMSG_NXTHDR(&message, rights)) {
      if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
      for (size_t at = CMSG_LEN(0); at + sizeof(int) <= rights->cmsg_len; at += sizeof(int), ++seen) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(rights) + (at - CMSG_LEN(0)), sizeof descriptor);
        files.emplace_back(descriptor);
      }
    }
    if (seen != count || (message.msg_flags & MSG_CTRUNC) != 0)
      return LimitReached(fmt::format("{} of {} files arrived; hint: ulimit -n", seen, count));
    return OkStatus();
  }

  Status SendParcel(const Parcel& parcel) const {
    XCCL_RETURN_IF_ERROR(SendValue(Header{kMagic, parcel.bytes.size(), parcel.files.size()}));
    XCCL_RETURN_IF_ERROR(Send(std::as_bytes(std::span(parcel.bytes))));
    std::span<const OwnedFile> left = parcel.files;
    for (; !left.empty(); left = left.subspan(std::min(kMostFiles, left.size())))
      XCCL_RETURN_IF_ERROR(SendFiles(left.first(std::min(kMostFiles, left.size()))));
    return OkStatus();
  }
  StatusOr<Parcel> ReceiveParcel() const {
    Header header;
    XCCL_RETURN_IF_ERROR(ReceiveValue(header));
    if (header.magic != kMagic || header.bytes > kMostBytes) return LimitReached("it speaks another version");
    Parcel parcel;
    parcel.bytes.resize(header.bytes);
    XCCL_RETURN_IF_ERROR(Receive(std::as_writable_bytes(std::span(parcel.bytes))));
    while (parcel.files.size() < header.files)
      XCCL_RETURN_IF_ERROR(
          ReceiveFiles(std::min(kMostFiles, header.files - parcel.files.size()), parcel.files));
    return parcel;
  }
};

sockaddr_un AddressOf(const std::string& name, socklen_t& length) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t bytes = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), bytes);  // a first byte of zero: the abstract name space
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return address;
}

// Another user may have taken the name.
bool IsOurs(int socket) {
  ucred peer = {};
  socklen_t length = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

struct Meeting {
  std::string name;
  int32_t party = 0, parties = 1;
  std::chrono::nanoseconds time_limit{};
  std::function<bool()> over;            // may be empty
  std::vector<Socket> sockets;           // party 0: by party, its own unused; others: one, to party 0
  std::vector<OwnedFile> processes;      // pidfds by party; not open where unknown
  std::atomic<int32_t>* left = nullptr;  // by party, shared by all: it left in good order

  Meeting() = default;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting() {
    if (left == nullptr) return;
    left[party].store(1, std::memory_order_release);
    munmap(left, LeftBytes());
  }
  size_t LeftBytes() const { return sizeof(std::atomic<int32_t>) * static_cast<size_t>(parties); }

  Status Listen();
  Status Connect();
  Status WatchProcesses();
  StatusOr<std::vector<Parcel>> All(Parcel mine);
  Status Check() const;
};

Status Meeting::Listen() {
  const Clock::time_point until = Clock::now() + std::min<std::chrono::nanoseconds>(time_limit, kLongest);
  const Socket listener{
      OwnedFile::NotInForks([] { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }),
      until, &over};
  const int door = listener.file.get();
  socklen_t length = 0;
  const sockaddr_un address = AddressOf(name, length);
  if (door < 0 || bind(door, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(door, parties) != 0)
    return InvalidInput(fmt::format("{}: cannot listen: {}", name, std::strerror(errno)));
  sockets.resize(static_cast<size_t>(parties));
  for (int32_t come = 1; come < parties;) {
    const Status came = listener.Wait(POLLIN);
    if (came.code() == StatusCode::kPeerEnded) return Annotate(came, name);
    if (!came.ok())
      return LimitReached(fmt::format("{}: {} of {} processes came within {} s", name, come, parties,
                                      std::chrono::duration<double>(time_limit).count()));
    Socket made{OwnedFile::NotInForks([&] { return accept4(door, nullptr, nullptr, SOCK_CLOEXEC); }), until,
                &over};
    Hello hello;
    if (!made.file.open() || !IsOurs(made.file.get()) || !made.ReceiveValue(hello).ok()) continue;
    if (hello.magic != kMagic || hello.parties != parties || hello.party < 1 || hello.party >= parties ||
        sockets[static_cast<size_t>(hello.party)].file.open())
      return InvalidInput(fmt::format("{}: party {} of {} came; expected each of 1 to {} once", name,
                                      hello.party, hello.parties, parties - 1));
    sockets[static_cast<size_t>(hello.party)] = std::move(made);
    ++come;
  }
  return OkStatus();
}

Status Meeting::Connect() {
  const Clock::time_point until = Clock::now() + std::min<std::chrono::nanoseconds>(time_limit, kLongest);
  socklen_t length = 0;
  const sockaddr_un address = AddressOf(name, length);
  while (true) {
    OwnedFile end = OwnedFile::NotInForks([] { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); });
    if (end.open() && connect(end.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
        IsOurs(end.get())) {
      sockets.push_back({std::move(end), until, &over});
      return sockets[0].SendValue(Hello{kMagic, party, parties, getpid(), 0});
    }
    if (over && over()) return PeerEnded(fmt::format("{}: {}", name, kOver));
    if (Clock::now() > until)
      return LimitReached(fmt::format("{}: party 0 did not come within {} s", name,
                                      std::chrono::duration<double>(time_limit).count()));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Status Meeting::WatchProcesses() {
  Parcel mine;
  if (party == 0) {
    mine.files.emplace_back(memfd_create("xccl-parties", MFD_CLOEXEC));
    if (!mine.files[0].open() || ftruncate(mine.files[0].get(), static_cast<off_t>(LeftBytes())) != 0)
      return InvalidInput(fmt::format("{}: cannot make shared memory: {}", name, std::strerror(errno)));
  }
  // A handle, since the number may be another process's where the peer is in another container.
  if (OwnedFile self = WatchProcess(getpid()); self.open()) mine.files.push_back(std::move(self));
  XCCL_ASSIGN_OR_RETURN(std::vector<Parcel> all, All(std::move(mine)));
  if (all[0].files.empty()) return LimitReached(name + ": party 0 sent no shared memory");
  void* const shared =
      mmap(nullptr, LeftBytes(), PROT_READ | PROT_WRITE, MAP_SHARED, all[0].files[0].get(), 0);
  if (shared == MAP_FAILED)
    return InvalidInput(fmt::format("{}: cannot map shared memory: {}", name, std::strerror(errno)));
  left = static_cast<std::atomic<int32_t>*>(shared);
  all[0].files.erase(all[0].files.begin());
  for (Parcel& parcel : all)
    processes.push_back(parcel.files.empty() ? OwnedFile() : std::move(parcel.files[0]));
  return OkStatus();
}

StatusOr<std::vector<Parcel>> Meeting::All(Parcel mine) {
  const Clock::time_point until = Clock::now() + std::min<std::chrono::nanoseconds>(time_limit, kLongest);
  for (Socket& socket : sockets) socket.until = until;
  std::vector<Parcel> all(static_cast<size_t>(parties));
  const auto receive = [&](const Socket& socket, size_t of, int32_t from) -> Status {
    StatusOr<Parcel> parcel = socket.ReceiveParcel();
    if (!parcel.ok()) return Annotate(parcel.status(), fmt::format("{}: party {}", name, from));
    all[of] = *std::move(parcel);
    return OkStatus();
  };
  if (party != 0) {
    XCCL_RETURN_IF_ERROR(Annotate(sockets[0].SendParcel(mine), name + ": party 0"));
    for (size_t p = 0; p < all.size(); ++p) XCCL_RETURN_IF_ERROR(receive(sockets[0], p, 0));
    return all;
  }
  all[0] = std::move(mine);
  for (size_t p = 1; p < all.size(); ++p)
    XCCL_RETURN_IF_ERROR(receive(sockets[p], p, static_cast<int32_t>(p)));
  for (size_t to = 1; to < all.size(); ++to)
    for (const Parcel& parcel : all)
      XCCL_RETURN_IF_ERROR(Annotate(sockets[to].SendParcel(parcel), fmt::format("{}: party {}", name, to)));
  return all;
}

Status Meeting::Check() const {
  for (size_t p = 0; p < processes.size(); ++p)
    if (HasEnded(processes[p]) && left[p].load(std::memory_order_acquire) == 0)
      return PeerEnded(fmt::format("{}: party {}: its process ended", name, p));
  return OkStatus();
}

}  // namespace

Exchange AloneExchange() {
  return {0, 1,
          [](Parcel mine) -> StatusOr<std::vector<Parcel>> {
            std::vector<Parcel> all;
            all.push_back(std::move(mine));
            return all;
          },
          [] { return OkStatus(); }};
}

StatusOr<Exchange> SocketExchange(const std::string& name, int32_t party, int32_t parties,
                                  std::chrono::nanoseconds time_limit, std::function<bool()> over) {
  auto meeting = std::make_shared<Meeting>();
  meeting->name = name;
  meeting->party = party;
  meeting->parties = parties;
  meeting->time_limit = time_limit;
  meeting->over = std::move(over);
  XCCL_RETURN_IF_ERROR(party == 0 ? meeting->Listen() : meeting->Connect());
  XCCL_RETURN_IF_ERROR(meeting->WatchProcesses());
  return Exchange{party, parties, [meeting](Parcel mine) { return meeting->All(std::move(mine)); },
                  [meeting] { return meeting->Check(); }};
}

}  // namespace xccl
