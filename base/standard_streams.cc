#include "base/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <iterator>

namespace xccl {
namespace {

constexpr int kSignals[] = {SIGPIPE, SIGXFSZ};
struct sigaction before[std::size(kSignals)] = {};

// A handler, since a signal that is ignored would stay so in programs that are started.
extern "C" void DoNothing(int) {}

}  // namespace

void PrepareStandardStreams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
        // The lowest free number is this one.
        [[maybe_unused]]
      const int opened = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  struct sigaction action = {};
  action.sa_handler = DoNothing;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &before[i]);
}

void RestoreSignals() noexcept {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

int WriteWhole(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {  // whoever shares the stream has made it so
      pollfd room = {descriptor, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

void PrintError(std::string_view text) noexcept { WriteWhole(STDERR_FILENO, text); }

}  // namespace xccl
