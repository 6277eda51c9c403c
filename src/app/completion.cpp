#include "app/completion.h"

#include <vector>

#include <CLI/CLI.hpp>

namespace chasqui {
namespace {

struct CompletionFlag {
  std::string name;                // with its dashes
  std::string help;                // its first line
  std::vector<std::string> words;  // that it takes; none: anything
  bool takes_value = false;
  bool takes_file = false;
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// "auto|on|off" → its words; what is no such list has capitals in it.
std::vector<std::string> words_of(const std::string& type) {
  std::vector<std::string> out;
  if (type.find('|') == std::string::npos || type.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos) {
    return out;
  }
  for (std::size_t at = 0; at <= type.size();) {
    const std::size_t end = std::min(type.find('|', at), type.size());
    out.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::vector<CompletionFlag> flags_of(const CLI::App& command) {
  std::vector<CompletionFlag> out;
  for (const CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    const bool takes_value = option->get_expected_max() > 0;
    const bool file = type.find("FILE") != std::string::npos || type == "DIR" || type == "PATH";
    for (const std::string& name : option->get_lnames()) {
      out.push_back({"--" + name, first_line(option->get_description()), words_of(type), takes_value, file});
    }
    for (const std::string& name : option->get_snames()) {
      out.push_back({"-" + name, first_line(option->get_description()), words_of(type), takes_value, file});
    }
  }
  return out;
}

// In single quotes, which hold anything but themselves.
std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::vector<const CLI::App*> commands_of(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App*) { return true; });
}

std::string bash(const CLI::App& root) {
  std::string names, flags, values;
  for (const CLI::App* command : commands_of(root)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    std::string all;
    for (const CompletionFlag& flag : flags_of(*command)) {
      all += (all.empty() ? "" : " ") + flag.name;
      if (!flag.takes_value) continue;
      const std::string reply = !flag.words.empty()
                                    ? "COMPREPLY=($(compgen -W " + shell_word(joined(flag.words)) + " -- \"$cur\"))"
                                : flag.takes_file ? "COMPREPLY=($(compgen -f -- \"$cur\"))"
                                                  : "COMPREPLY=()";
      values += "    " + command->get_name() + "/" + flag.name + ") " + reply + "; return;;\n";
    }
    flags += "    " + command->get_name() + ") COMPREPLY=($(compgen -W " + shell_word(all) + " -- \"$cur\"));;\n";
  }
  return "# bash completion of chasqui: source <(chasqui completion bash)\n"
         "_chasqui() {\n"
         "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" command=\"${COMP_WORDS[1]}\"\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W " +
         shell_word(names + " --help --version") +
         " -- \"$cur\"))\n"
         "    return\n"
         "  fi\n"
         "  case \"$command/$prev\" in\n" +
         values +
         "  esac\n"
         "  case \"$cur\" in\n"
         "    -*) ;;\n"
         "    *) case \"$command\" in\n"
         "         completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\"));;\n"
         "         *) COMPREPLY=($(compgen -f -- \"$cur\"));;\n"
         "       esac\n"
         "       return;;\n"
         "  esac\n"
         "  case \"$command\" in\n" +
         flags +
         "  esac\n"
         "}\n"
         "complete -o filenames -F _chasqui chasqui\n";
}

std::string zsh(const CLI::App& root) {
  // Its own functions read bash's scripts; flags are the same in both.
  return "#compdef chasqui\n# zsh completion of chasqui: source <(chasqui completion zsh)\n"
         "autoload -Uz +X compinit bashcompinit && compinit -u && bashcompinit\n" +
         bash(root);
}

std::string fish(const CLI::App& root) {
  std::string out = "# fish completion of chasqui: chasqui completion fish | source\n";
  for (const CLI::App* command : commands_of(root)) {
    out += "complete -c chasqui -n __fish_use_subcommand -f -a " + command->get_name() + " -d " +
           shell_word(first_line(command->get_description())) + '\n';
    for (const CompletionFlag& flag : flags_of(*command)) {
      const bool is_long = flag.name.starts_with("--");
      out += "complete -c chasqui -n '__fish_seen_subcommand_from " + command->get_name() + "' " +
             (is_long ? "-l " + flag.name.substr(2) : "-s " + flag.name.substr(1)) + " -d " + shell_word(flag.help);
      if (flag.takes_value) out += flag.takes_file ? " -r -F" : " -x";
      if (!flag.words.empty()) out += " -a " + shell_word(joined(flag.words));
      out += '\n';
    }
  }
  return out + "complete -c chasqui -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n";
}

}  // namespace

std::string completion_script(const CLI::App& root, const std::string& shell) {
  if (shell == "bash") return bash(root);
  return shell == "zsh" ? zsh(root) : fish(root);
}

}  // namespace chasqui
