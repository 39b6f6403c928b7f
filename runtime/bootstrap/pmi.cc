#include "runtime/bootstrap/pmi.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "runtime/bootstrap/socket.h"
#include "runtime/bootstrap/unique_id.h"

namespace xccl::bootstrap {
namespace {

// One process's talk with its process manager: it begins once, and ends when the process exits.
class Pmi {
 public:
  explicit Pmi(int file) : file_(file) {}
  // "cmd=get kvsname=..." gives the value of `wanted` in an answer of that command.
  StatusOr<std::string> Ask(const std::string& line, std::string_view answer, std::string_view wanted,
                            Clock::time_point until);
  int file() const { return file_; }

 private:
  StatusOr<std::string> Line(Clock::time_point until);
  int file_;
  std::string bytes_;
};

StatusOr<std::string> Pmi::Line(Clock::time_point until) {
  while (true) {
    const size_t end = bytes_.find('\n');
    if (end != std::string::npos) {
      std::string line = bytes_.substr(0, end);
      bytes_.erase(0, end + 1);
      return line;
    }
    pollfd ready{file_, POLLIN, 0};
    if (poll(&ready, 1, PollMilliseconds(until)) == 0)
      return LimitReached("PMI: the process manager did not answer in time: another rank has not come");
    std::array<char, 4096> bytes;
    const ssize_t got = read(file_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return PeerEnded("PMI: the process manager has ended");
    bytes_.append(bytes.data(), static_cast<size_t>(got));
  }
}

StatusOr<std::string> Pmi::Ask(const std::string& line, std::string_view answer, std::string_view wanted,
                               Clock::time_point until) {
  const std::string whole = line + "\n";
  ssize_t sent = send(file_, whole.data(), whole.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno == ENOTSOCK) sent = write(file_, whole.data(), whole.size());
  if (sent != static_cast<ssize_t>(whole.size()))
    return PeerEnded(fmt::format("PMI: the process manager cannot be reached: {}", std::strerror(errno)));
  XCCL_ASSIGN_OR_RETURN(const std::string text, Line(until));
  std::map<std::string, std::string, std::less<>> values;
  for (const std::string& pair : Split(text, ' ')) {
    const size_t equal = pair.find('=');
    if (equal != std::string::npos) values[pair.substr(0, equal)] = pair.substr(equal + 1);
  }
  const bool fine = values["cmd"] == answer && (values["rc"].empty() || values["rc"] == "0");
  if (!fine || (!wanted.empty() && values[std::string(wanted)].empty()))
    return SystemError(fmt::format("PMI: '{}' was answered by '{}'; expected {}", Split(line, ' ')[0],
                                   Shortened(text), answer));
  return wanted.empty() ? std::string() : values[std::string(wanted)];
}

struct Session {
  std::mutex mutex;
  std::unique_ptr<Pmi> pmi;
  std::string space;  // name of the job's key-value space
  int meetings = 0;   // keys are not to be written twice
  pid_t process = 0;  // the process that began the session
};

// Processes exit while other threads may still look here: it is never destroyed.
Session& TheSession() {
  static Session& session = *new Session;
  return session;
}

// Who has begun the talk must end it, or the process manager takes the exit for a crash. A process that is
// forked from it has the connection too, and must not.
void Finish() {
  Session& session = TheSession();
  if (session.pmi && session.process == getpid())
    (void)session.pmi->Ask("cmd=finalize", "finalize_ack", "", After(std::chrono::seconds(2)));
}

Status Begin(Session& session, int file, Clock::time_point until) {
  auto pmi = std::make_unique<Pmi>(file);
  XCCL_RETURN_IF_ERROR(
      pmi->Ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", "", until).status());
  XCCL_ASSIGN_OR_RETURN(session.space, pmi->Ask("cmd=get_my_kvsname", "my_kvsname", "kvsname", until));
  session.pmi = std::move(pmi);
  session.process = getpid();
  std::atexit(Finish);
  return OkStatus();
}

std::string Text(const UniqueId& id) {
  std::string text;
  for (const std::byte byte : id) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

StatusOr<UniqueId> IdOf(const std::string& text) {
  UniqueId id = {};
  if (text.size() != 2 * id.size()) return SystemError("PMI: the id of the rendezvous was cut");
  for (size_t i = 0; i < id.size(); ++i)
    id[i] = static_cast<std::byte>(std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
  return id;
}

}  // namespace

StatusOr<PmiPlacement> PlacementByPmi(const Placement& placement, const BootstrapOptions& options) {
  const Clock::time_point until = After(options.time_limit);
  Session& session = TheSession();
  const std::lock_guard lock(session.mutex);
  if (!session.pmi || session.pmi->file() != *placement.pmi_file)
    XCCL_RETURN_IF_ERROR(Begin(session, *placement.pmi_file, until));
  const std::string key = fmt::format("xccl-{}", session.meetings++);
  UniqueId id = {};
  if (placement.rank.value == 0) {
    XCCL_ASSIGN_OR_RETURN(id, MakeUniqueId(options));
    XCCL_RETURN_IF_ERROR(
        session.pmi
            ->Ask(fmt::format("cmd=put kvsname={} key={} value={}", session.space, key, Text(id)),
                  "put_result", "", until)
            .status());
  }
  XCCL_RETURN_IF_ERROR(session.pmi->Ask("cmd=barrier_in", "barrier_out", "", until).status());
  if (placement.rank.value != 0) {
    XCCL_ASSIGN_OR_RETURN(const std::string text,
                          session.pmi->Ask(fmt::format("cmd=get kvsname={} key={}", session.space, key),
                                           "get_result", "value", until));
    XCCL_ASSIGN_OR_RETURN(id, IdOf(text));
  }
  XCCL_ASSIGN_OR_RETURN(Placement met, FromUniqueId(id, placement.rank, placement.ranks));
  met.host_id = placement.host_id;
  met.interface = placement.interface;
  return PmiPlacement{std::move(met), UseUniqueId(id)};
}

}  // namespace xccl::bootstrap
