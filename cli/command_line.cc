#include "cli/command_line.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/standard_streams.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/units.h"
#include "base/wrap.h"
#include "cli/output.h"
#include "cli/say.h"

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
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return Either(names);
}

bool IsCommand(const CLI::App& app, const std::string& name) {
  return !app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; }).empty();
}

constexpr const char* kNumber = "number";
constexpr int64_t kMostShown = 1 << 20;  // larger bounds tell nobody anything

// Refuses anything but a whole number within [low, high], and writes it as CLI11 reads it: 010 is ten.
CLI::Validator WholeNumber(int64_t low, int64_t high) {
  const auto parse = [low, high](std::string& text) {
    const StatusOr<int64_t> number = ParseInteger(text, low, high);
    if (number.ok()) text = std::to_string(*number);
    return number.status().message();
  };
  return CLI::Validator(parse, "", kNumber);
}

// Columns of the terminal, or of COLUMNS; 80 where nobody says.
size_t HelpWidth() {
  constexpr int64_t kLeast = 60, kMost = 160;
  const char* const columns = std::getenv("COLUMNS");
  const StatusOr<int64_t> given = ParseInteger(columns != nullptr ? columns : "", 1, 100'000);
  winsize terminal = {};
  int64_t width = 80;
  if (given.ok())
    width = *given;
  else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &terminal) == 0 && terminal.ws_col > 0)
    width = terminal.ws_col;
  return static_cast<size_t>(std::clamp(width, kLeast, kMost));
}

std::string Wrapped(const std::string& text, size_t width) { return Join(WrapWords(text, width), "\n"); }

// CLI11's help, with the descriptions of commands and options wrapped.
class WrappingFormatter : public CLI::Formatter {
 public:
  explicit WrappingFormatter(size_t width) : width_(width) { column_width(kColumn); }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Line(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Line(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return Wrapped(app->get_description(), width_) + "\n";
  }

 private:
  static constexpr size_t kColumn = 28;

  std::string Line(const std::string& name, const std::string& text) const {
    std::ostringstream line;
    CLI::detail::format_help(line, name, Wrapped(text, width_ - kColumn), kColumn);
    return line.str();
  }

  size_t width_;
};

// "a", "b" of a type name that ends in ":{a,b}", as OneOf's does.
std::vector<std::string> ValuesIn(const std::string& type) {
  const size_t open = type.find('{');
  if (open == std::string::npos || type.back() != '}') return {};
  return Split(type.substr(open + 1, type.size() - open - 2), ',');
}

OptionText TextOf(const CLI::Option& option) {
  OptionText text{.names = {}, .value = "", .values = {}, .help = option.get_description()};
  text.is_positional = option.get_positional();
  text.is_list = option.get_items_expected_max() > 1;
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  if (text.is_positional) text.names = {option.get_name(true)};
  if (option.get_expected_max() == 0) return text;
  const std::string type = option.get_type_name();
  text.value = type.substr(0, type.find(':'));
  text.values = ValuesIn(type);
  return text;
}

// One line, and where to read more.
int ReportUsage(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const bool words_left = !app.remaining(true).empty();
  const bool unexpected =
      dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr || (chosen.empty() && words_left);
  std::string text = unexpected ? UnexpectedText(app) : std::string(error.what());
  if (!unexpected && chosen.empty()) text = "no command; expected " + CommandNames(app);
  SayError(text);
  PrintError(
      fmt::format("Try: xccl-synth {}--help\n", chosen.empty() ? "" : chosen.front()->get_name() + " "));
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
  *option_->get_validator(kNumber) = WholeNumber(low, high).description(
      high > kMostShown ? fmt::format("{} or more", low) : fmt::format("{} to {}", low, high));
  return *this;
}
Option Option::OneOf(const std::vector<std::string_view>& values) {
  const std::vector<std::string> known(values.begin(), values.end());
  const auto parse = [known](const std::string& text) {
    if (std::ranges::find(known, text) != known.end()) return std::string();
    return fmt::format("'{}'; expected {}{}", text, Either(known),
                       DidYouMean(text, std::vector<std::string_view>(known.begin(), known.end())));
  };
  option_->check(CLI::Validator(fmt::format("{{{}}}", Join(known, ","))).operation(parse));
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
bool Command::Has(const std::string& name) const { return app_->get_option_no_throw(name) != nullptr; }
bool Command::IsGiven(const std::string& name) const { return app_->count(name) > 0; }
std::vector<std::string> Command::GivenFlags() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*app_).get_options())
    if (option->count() > 0 && !option->get_positional())
      names.push_back("--" + option->get_lnames().front());
  return names;
}
void Command::Heading(const std::string& heading) { app_->option_defaults()->group(heading); }
void Command::Footer(const std::string& text) { app_->footer(text); }
void Command::WhenChosen(std::function<void()> chosen) { app_->callback(std::move(chosen)); }

CommandLine::CommandLine(const std::string& description, const std::string& program,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(description, program)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->formatter(std::make_shared<WrappingFormatter>(HelpWidth()));
}
CommandLine::~CommandLine() = default;

Command CommandLine::AddCommand(const std::string& name, const std::string& summary) {
  return Command(app_->add_subcommand(name, summary));
}

void CommandLine::ForEachCommand(const std::function<void(Command)>& visit) {
  for (CLI::App* const command : app_->get_subcommands([](const CLI::App*) { return true; }))
    visit(Command(command));
}

std::vector<CommandText> CommandLine::Texts() const {
  std::vector<CommandText> texts;
  for (const CLI::App* const command : app_->get_subcommands([](const CLI::App*) { return true; })) {
    CommandText& text = texts.emplace_back(
        CommandText{command->get_name(), command->get_description(), command->get_footer(), {}});
    for (const CLI::Option* const option : command->get_options()) text.options.push_back(TextOf(*option));
  }
  return texts;
}
std::string CommandLine::description() const { return app_->get_description(); }

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  // "help plan" is "plan --help".
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.resize(std::min<size_t>(words.size(), 1));
    words.emplace_back("--help");
  }
  if (!words.empty() && words[0][0] != '-' && !IsCommand(*app_, words[0]))
    words.resize(1);  // an unknown command with --help is unknown
  std::ranges::reverse(words);
  try {
    app_->parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return ReportUsage(*app_, error);
    std::ostringstream help;
    app_->exit(error, help, help);
    const Status printed = Print(help.str());
    if (!printed.ok()) SayError(printed.message());
    return ExitCode(printed.code());
  }
  return std::nullopt;
}

}  // namespace xccl
