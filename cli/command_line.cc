#include "cli/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/status.h"
#include "base/strings.h"
#include "base/units.h"

namespace xccl {
namespace {

// CLI11's message about an argument that no command takes, with the nearest known name.
std::string UnexpectedText(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string place = chosen.empty() ? "" : command.get_name() + ": ";
  const std::vector<std::string> left = app.remaining(true);
  const auto flag = std::ranges::find_if(left, [](const std::string& word) { return word[0] == '-'; });
  std::vector<std::string> names;
  if (flag != left.end()) {
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  } else {
    for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (flag != left.end()) {
    const std::string name = flag->substr(0, flag->find('='));
    return fmt::format("{}no option '{}'{}", place, name, DidYouMean(name, known));
  }
  if (left.empty()) return place + "unexpected arguments";
  if (chosen.empty()) return "no command '" + left[0] + "'" + DidYouMean(left[0], known);
  return fmt::format("{}unexpected '{}'", place, left[0]);
}

// "topo, bound, plan or run": the commands in the order that help lists them.
std::string CommandNames(const CLI::App& app) {
  std::string names;
  const std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (size_t i = 0; i < commands.size(); ++i)
    names += (i == 0 ? "" : i + 1 < commands.size() ? ", " : " or ") + commands[i]->get_name();
  return names;
}

constexpr const char* kNumber = "number";

// Refuses anything but a whole number within [low, high], and writes it as CLI11 reads it: 010 is ten.
CLI::Validator WholeNumber(int64_t low, int64_t high) {
  const auto parse = [low, high](std::string& text) {
    const StatusOr<int64_t> number = ParseInteger(text, low, high);
    if (number.ok()) text = std::to_string(*number);
    return number.status().message();
  };
  return CLI::Validator(parse, "", kNumber);
}

// One line, and where to read more.
int ReportUsage(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const bool words_left = !app.remaining(true).empty();
  const bool unexpected =
      dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr || (chosen.empty() && words_left);
  std::string text = unexpected ? UnexpectedText(app) : std::string(error.what());
  if (!unexpected && chosen.empty()) text = "no command; expected " + CommandNames(app);
  std::fprintf(stderr, "xccl-synth: %s\nTry: xccl-synth %s--help\n", text.c_str(),
               chosen.empty() ? "" : (chosen.front()->get_name() + " ").c_str());
  return ExitCode(StatusCode::kUsage);
}

}  // namespace

Option Option::Required(bool required) {
  option_->required(required);
  return *this;
}
Option Option::ShowDefault() {
  option_->capture_default_str();
  return *this;
}
Option Option::Between(int64_t low, int64_t high) {
  *option_->get_validator(kNumber) = WholeNumber(low, high).description(fmt::format("{} to {}", low, high));
  return *this;
}
Option Option::OneOf(std::initializer_list<const char*> values) {
  option_->check(CLI::IsMember(std::vector<std::string>(values.begin(), values.end())));
  return *this;
}
Option Option::TypeName(const std::string& name) {
  option_->type_name(name);
  return *this;
}
Option Option::Excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}
Option Option::Needs(Option other) {
  option_->needs(other.option_);
  return *this;
}

template <typename T>
Option Command::AddOption(const std::string& name, T& value, const std::string& help) {
  CLI::Option* const option = app_->add_option(name, value, help);
  if constexpr (std::is_same_v<T, uint64_t>) {
    option->transform(WholeNumber(0, std::numeric_limits<int64_t>::max()));
  } else if constexpr (std::is_convertible_v<int32_t, T>) {
    option->transform(WholeNumber(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  } else {
    option->check(
        [](const std::string& text) { return std::string(text.empty() ? "empty; expected a value" : ""); });
  }
  return Option(option);
}
template Option Command::AddOption(const std::string&, std::string&, const std::string&);
template Option Command::AddOption(const std::string&, int32_t&, const std::string&);
template Option Command::AddOption(const std::string&, uint64_t&, const std::string&);
template Option Command::AddOption(const std::string&, std::optional<int32_t>&, const std::string&);
template Option Command::AddOption(const std::string&, std::optional<int64_t>&, const std::string&);
template Option Command::AddOption(const std::string&, std::optional<std::string>&, const std::string&);
template Option Command::AddOption(const std::string&, std::vector<std::string>&, const std::string&);

Option Command::AddFlag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}
bool Command::IsGiven(const std::string& name) const { return app_->count(name) > 0; }
void Command::Heading(const std::string& heading) { app_->option_defaults()->group(heading); }
void Command::Footer(const std::string& text) { app_->footer(text); }
void Command::WhenChosen(std::function<void()> chosen) { app_->callback(std::move(chosen)); }

CommandLine::CommandLine(const std::string& description, const std::string& program,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(description, program)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->get_formatter()->column_width(34);
}
CommandLine::~CommandLine() = default;

Command CommandLine::AddCommand(const std::string& name, const std::string& summary) {
  return Command(app_->add_subcommand(name, summary));
}

void CommandLine::ForEachCommand(const std::function<void(Command)>& visit) {
  for (CLI::App* const command : app_->get_subcommands([](const CLI::App*) { return true; }))
    visit(Command(command));
}

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app_->exit(error) : ReportUsage(*app_, error);
  }
  return std::nullopt;
}

}  // namespace xccl
