#include "cli/shell_texts.h"

#include <fmt/core.h>

#include <string_view>

#include "base/strings.h"

namespace xccl {
namespace {

std::vector<std::string> ValuesOf(const OptionText& option, const Suggestions& suggestions) {
  return option.values.empty() ? suggestions(option.names.front()) : option.values;
}

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string replaced;
  for (size_t at = 0; at < text.size();)
    if (text.substr(at).starts_with(from)) {
      replaced += to;
      at += from.size();
    } else {
      replaced += text[at++];
    }
  return replaced;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Names and values of a command line need no quotes in a list of words between single ones.
std::string Words(const std::vector<std::string>& words) { return Join(words, " "); }

std::string BashCommand(const CommandText& command, const Suggestions& suggestions) {
  std::string values, text = fmt::format("    {})\n      case $previous in\n", command.name);
  std::vector<std::string> names, positional, with_files;
  for (const OptionText& option : command.options) {
    if (option.is_positional) {
      for (const std::string& word : ValuesOf(option, suggestions)) positional.push_back(word);
      continue;
    }
    names.insert(names.end(), option.names.begin(), option.names.end());
    if (option.value.empty()) continue;
    const std::vector<std::string> words = ValuesOf(option, suggestions);
    if (words.empty())
      with_files.insert(with_files.end(), option.names.begin(), option.names.end());
    else
      text += fmt::format("        {}) words='{}' ;;\n", Join(option.names, " | "), Words(words));
  }
  if (!with_files.empty()) text += fmt::format("        {}) files=yes ;;\n", Join(with_files, " | "));
  text += fmt::format("        *)\n          words='{}' files=yes\n", Words(positional));
  text +=
      fmt::format("          [[ $current == -* ]] && words='{}' files=\n          ;;\n      esac\n      ;;\n",
                  Words(names));
  return text;
}

// In brackets of zsh's _arguments.
std::string ZshText(const std::string& text) {
  std::string escaped;
  for (const char c : FirstLine(text)) {
    if (c == '\'') {
      escaped += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string ZshAction(const OptionText& option, const Suggestions& suggestions) {
  const std::vector<std::string> words = ValuesOf(option, suggestions);
  const std::string what = option.value.empty() || option.is_positional ? option.names.front() : option.value;
  if (words.empty()) return fmt::format(":{}:_files", ZshText(what));
  if (option.is_positional)  // a name or a file
    return fmt::format(":{}:{{ _values -w {} {} ; _files }}", ZshText(what), ZshText(what), Words(words));
  if (option.names.front().ends_with('s'))
    return fmt::format(":{}:_sequence compadd - {}", ZshText(what), Words(words));
  return fmt::format(":{}:({})", ZshText(what), Words(words));
}

std::string ZshCommand(const CommandText& command, const Suggestions& suggestions) {
  std::string text = fmt::format("    {})\n      _arguments -s", command.name);
  for (const OptionText& option : command.options) {
    if (option.is_positional) {
      text += fmt::format(" \\\n        '{}{}'", option.is_list ? "*" : "", ZshAction(option, suggestions));
      continue;
    }
    for (const std::string& name : option.names)
      text += fmt::format(" \\\n        '{}{}{}[{}]{}'", option.is_list ? "*" : "", name,
                          name.starts_with("--") && !option.value.empty() ? "=" : "", ZshText(option.help),
                          option.value.empty() ? "" : ZshAction(option, suggestions));
  }
  return text + "\n      ;;\n";
}

// Text of a manual page: no line begins with a request.
std::string Roff(std::string_view text) {
  std::string escaped = Replaced(Replaced(text, "\\", "\\e"), "-", "\\-");
  std::string lines;
  for (const std::string& line : Split(escaped, '\n')) {
    if (line.starts_with('.') || line.starts_with('\'')) lines += "\\&";
    lines += line;
    lines += '\n';
  }
  lines.pop_back();
  return lines;
}

std::string RoffOption(const OptionText& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(fmt::format("\\fB{}\\fR", Roff(name)));
  std::string text = fmt::format(".TP\n{}", Join(names, ", "));
  if (!option.is_positional && !option.value.empty())
    text += fmt::format(" \\fI{}\\fR", Roff(option.values.empty() ? option.value : Join(option.values, "|")));
  return fmt::format("{}\n{}\n", text, Roff(option.help));
}

}  // namespace

std::string BashCompletion(const std::vector<CommandText>& commands, const Suggestions& suggestions) {
  std::vector<std::string> names;
  for (const CommandText& command : commands) names.push_back(command.name);
  std::string text = fmt::format(R"(# Completion of xccl-synth for bash.
_xccl_synth() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command= words= files= before= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${{COMP_WORDS[i]}} == -* ]] || {{
      command=${{COMP_WORDS[i]}}
      break
    }}
  done
  case $command in
    '') words='{} --help --version' ;;
)",
                                 Words(names));
  for (const CommandText& command : commands) text += BashCommand(command, suggestions);
  text += R"(  esac
  # After a comma the next name of a list begins.
  if [[ -n $words && -z $files && $current == *,* ]]; then
    before=${current%,*},
    current=${current##*,}
  fi
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "$current")
  if [[ -n $files ]]; then
    compopt -o filenames
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _xccl_synth xccl-synth
)";
  return text;
}

std::string ZshCompletion(const std::vector<CommandText>& commands, const Suggestions& suggestions) {
  std::string text = "#compdef xccl-synth\n# Completion of xccl-synth for zsh.\n_xccl_synth() {\n";
  text += "  local context state line\n  local -a commands=(\n";
  for (const CommandText& command : commands)
    text += fmt::format("    '{}:{}'\n", command.name, ZshText(command.summary));
  text += R"(  )
  _arguments -C '(- *)--help[help]' '(- *)--version[version]' '1:command:->command' '*::argument:->arguments'
  [[ $state == command ]] && _describe command commands
  [[ $state == arguments ]] || return 0
  case $words[1] in
)";
  for (const CommandText& command : commands) text += ZshCommand(command, suggestions);
  return text + "  esac\n}\n_xccl_synth \"$@\"\n";
}

std::string ManualPage(const std::vector<CommandText>& commands, const std::string& description,
                       const std::string& version) {
  std::string text = fmt::format(
      ".TH XCCL\\-SYNTH 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\n"
      "xccl\\-synth \\- plans collective communication for a machine's wiring\n"
      ".SH SYNOPSIS\n.B xccl\\-synth\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      Roff(version), Roff(Replaced(description, "\n", " ")));
  for (const CommandText& command : commands) {
    text += fmt::format(".SS xccl\\-synth {}\n{}.\n", command.name, Roff(command.summary));
    for (const OptionText& option : command.options) text += RoffOption(option);
    if (!command.footer.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", Roff(command.footer));
  }
  text += R"(.SH EXIT STATUS
.TP
0
All went well.
.TP
1
A file, a plan or a machine is wrong.
.TP
2
The command line is wrong.
.TP
3
It is proved that no answer exists.
.TP
4
A bug of xccl\-synth.
.TP
5
A limit was reached, or the machine has no more memory or threads.
)";
  return text;
}

}  // namespace xccl
