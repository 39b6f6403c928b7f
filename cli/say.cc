#include "cli/say.h"

#include <fmt/color.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/standard_streams.h"

namespace xccl {
namespace {

bool HasColours() {
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

void Say(std::string_view word, fmt::terminal_color colour, std::string_view text) noexcept {
  try {
    const std::string first = HasColours() ? fmt::format(fmt::emphasis::bold | fmt::fg(colour), "{}:", word)
                                           : fmt::format("{}:", word);
    PrintError(fmt::format("{} {}\n", first, Visible(text)));
  } catch (...) {  // no memory for a line
    for (const std::string_view part : {word, std::string_view(": "), text, std::string_view("\n")})
      PrintError(part);
  }
}

}  // namespace

std::string Visible(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string visible;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= ' ' && byte != 0x7F) || c == '\n' || c == '\t')
      visible += c;
    else
      visible += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return visible;
}

void SayNote(std::string_view text) noexcept { Say("note", fmt::terminal_color::cyan, text); }
void SayWarning(std::string_view text) noexcept { Say("warning", fmt::terminal_color::yellow, text); }
void SayError(std::string_view text) noexcept { Say("xccl-synth", fmt::terminal_color::red, text); }

}  // namespace xccl
