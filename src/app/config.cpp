#include "app/config.h"

#include <algorithm>
#include <cstdio>

#include "app/bench_command.h"
#include "app/chat_command.h"
#include "app/completion.h"
#include "app/config_file.h"
#include "app/environment.h"
#include "app/flags_document.h"
#include "app/help_formatter.h"
#include "app/inspect_command.h"
#include "app/licenses_command.h"
#include "app/limits_document.h"
#include "app/list_command.h"
#include "app/llama_flags.h"
#include "app/llama_flags_document.h"
#include "app/man_page.h"
#include "app/metrics_document.h"
#include "app/model_commands.h"
#include "app/model_list.h"
#include "app/model_search.h"
#include "app/pull_command.h"
#include "app/replay_command.h"
#include "app/rpc_peers.h"
#include "app/rpc_server_command.h"
#include "app/serve_options.h"
#include "app/simulate_command.h"
#include "app/supervise.h"
#include "base/nearest_word.h"
#include "cli/batch.h"
#include "cli/top.h"

namespace chasqui {
namespace {

void add_top_options(CLI::App& app, cli::TopOptions& options, double& interval_s) {
  add_server_address(app, options.url, options.api_key);
  app.add_option("-i,--interval", interval_s, "between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_flag("--once", options.once, "one picture, and out; so it is where there is no terminal");
}

void add_batch_options(CLI::App& app, cli::BatchOptions& options) {
  app.add_option("action", options.action, "run: submit, wait and fetch")
      ->required()
      ->check(CLI::IsMember({"run", "submit", "list", "show", "fetch", "cancel"}).description(""))
      ->type_name("run|submit|list|show|fetch|cancel");
  app.add_option("what", options.what, "the file of run and submit, with a request on each line; else a batch's id")
      ->type_name("FILE|ID");
  add_server_address(app, options.url, options.api_key);
  app.add_option("-o,--output", options.out, "file for the answers instead of standard output")->type_name("FILE");
  app.add_option("--endpoint", options.endpoint, "of all lines, instead of the first line's url")->type_name("PATH");
  app.add_option("--window", options.window, "in which the lines are to be answered")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_flag("--wait", options.wait, "fetch waits until the batch has ended");
  app.add_flag("--json", options.json, "list, show and cancel: as the server says it");
}

constexpr const char* kServeExamples =
    R"(Examples:
  chasqui serve                                   the built-in demo model, at http://127.0.0.1:8080
  chasqui serve -m model.gguf -c 32768 -np 8      a file; 8 requests at once share a context of 32768 tokens
  chasqui serve -hf USER/REPO:Q4_K_M              what `chasqui pull USER/REPO:Q4_K_M` has downloaded
  chasqui serve -m model.gguf --host 0.0.0.0 --port 80 --api-key KEY      for other machines, which need the key)";

// All commands and what they fill in. Built twice: once to see where each setting comes from.
struct Commands {
  Commands() {
    app.set_version_flag("--version", std::string("chasqui ") + CHASQUI_VERSION);
    app.require_subcommand(1);
    const auto formatter = std::make_shared<HelpFormatter>();
    formatter->column_width(34);
    app.formatter(formatter);
    for (CLI::App* command : app.get_subcommands({})) command->formatter(formatter);
    const auto of_serve = std::make_shared<ServeHelpFormatter>();
    of_serve->column_width(34);
    serve->formatter(of_serve);
    serve->footer(kServeExamples);
    group_commands();
    app.footer("chasqui help COMMAND explains a command. `chasqui run MODEL` is `chasqui chat -m MODEL`.");
    chat->alias("run");
    add_serve_options(*serve, config);
    add_serve_options(*doctor, doctor_config);
    add_serve_options(*show, show_config);
    for (CLI::App* command : {doctor, show, inspect, list}) command->add_flag("--json", json, "for programs");
    show->add_flag("--flags", flags, "every flag of serve instead, as docs/flags.md");
    show->add_flag("--llama-flags", llama_flags, "what comes of llama-server's flags, as docs/llama_flags.md");
    show->add_flag("--limits", limits, "the limits instead: what they are, what happens there, what shows it");
    inspect_config.model.slots = 0;
    inspect
        ->add_option("model", inspect_config.model_path,
                     "GGUF file, or a name that list shows; without it the built-in demo "
                     "model")
        ->type_name("FILE|NAME");
    list->add_option("--models-dir", list_folder, "the models of this folder instead")->type_name("DIR");
    add_context_options(*inspect, inspect_config);
    add_speculation_options(*inspect, inspect_config.speculation);
    add_top_options(*top, top_options, top_interval_s);
    add_batch_options(*batch, batch_options);
    completion->add_option("shell", shell, "to be read by the shell: source <(chasqui completion bash)")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
        ->type_name("bash|zsh|fish");
  }

  // As `chasqui --help` shows them: groups in the order of their first commands.
  void group_commands() const {
    for (CLI::App* command : {serve, list, pull, ps, card, stop, rpc_server}) command->group("Servers and models");
    for (CLI::App* command : {chat, batch}) command->group("Chats and batches");
    for (CLI::App* command : {inspect, doctor, show, top}) command->group("Checks and views");
    for (CLI::App* command : {bench, simulate, replay}) command->group("Measurements");
    for (CLI::App* command : {completion, metrics, licenses, man, version}) command->group("Other");
  }

  CLI::App app{"Chasqui serves GGUF language models to many clients at once.", "chasqui"};
  // One for each, since the environment is read into all of them.
  ServeConfig config, doctor_config, show_config, inspect_config;
  BenchConfig bench_config;
  SimulateConfig simulation;
  ChatConfig chat_config;
  PullConfig pull_config;
  ReplayConfig replay_config;
  RpcServerConfig rpc_config;
  cli::BatchOptions batch_options;
  ModelCommands model_commands;
  LicensesConfig licenses_config;
  ManConfig man_config;
  cli::TopOptions top_options;
  double top_interval_s = 1;
  bool json = false;
  bool flags = false;
  bool llama_flags = false;
  bool limits = false;
  std::string shell;
  std::string list_folder;
  CLI::App* serve = app.add_subcommand("serve", "Serve a model over HTTP; with no options the built-in demo model");
  CLI::App* chat = add_chat_command(app, chat_config);
  CLI::App* list = app.add_subcommand("list", "Models that are here already: of Ollama, Hugging Face, llama.cpp");
  CLI::App* pull = add_pull_command(app, pull_config);
  CLI::App* ps = add_ps_command(app, model_commands.ps);
  CLI::App* card = add_show_command(app, model_commands.card);
  CLI::App* stop = add_stop_command(app, model_commands.stop);
  CLI::App* batch = app.add_subcommand("batch", "Have a running server answer a file of requests in the background");
  CLI::App* inspect = app.add_subcommand("inspect", "What a model is, what it needs, and whether it fits here");
  CLI::App* doctor = app.add_subcommand("doctor", "Find what stands in the way of serve with the same flags");
  CLI::App* show = app.add_subcommand("config", "Print all settings of serve, and where each of them comes from");
  CLI::App* top = app.add_subcommand("top", "Watch a running server: what it does, how fast, what waits");
  CLI::App* bench = add_bench_command(app, bench_config);
  CLI::App* simulate = add_simulate(app, simulation);
  CLI::App* replay = add_replay_command(app, replay_config);
  CLI::App* rpc_server = add_rpc_server_command(app, rpc_config);
  CLI::App* completion = app.add_subcommand("completion", "Print a script that completes commands and flags");
  CLI::App* metrics = app.add_subcommand("metrics", "Print what GET /metrics shows, as docs/metrics.md");
  CLI::App* licenses = add_licenses_command(app, licenses_config);
  CLI::App* man = add_man_command(app, man_config);
  CLI::App* version = app.add_subcommand("version", "Print the version");
};

// Which of the commands that know --config this is, if any.
CLI::App* configured(Commands& commands, const std::vector<std::string>& arguments) {
  for (CLI::App* command : {commands.serve, commands.doctor, commands.show}) {
    if (!arguments.empty() && arguments.front() == command->get_name()) return command;
  }
  return nullptr;
}

// Seen is what was parsed; the exit code of what has nothing more to do.
CommandLine chosen(Commands& seen, const Settings& settings) {
  const auto run = [](std::function<int()> command) { return CommandLine{std::nullopt, 0, std::move(command)}; };
  if (seen.bench->parsed()) return run([config = seen.bench_config] { return run_bench(config); });
  if (seen.simulate->parsed()) return run([config = seen.simulation] { return simulate(config); });
  seen.chat_config.names_model = !settings.arguments.empty() && settings.arguments.front() == "run";
  if (seen.chat->parsed()) return run([config = seen.chat_config] { return run_chat(config); });
  if (seen.list->parsed()) return run([f = seen.list_folder, json = seen.json] { return run_list(f, json); });
  if (seen.pull->parsed()) return run([config = seen.pull_config] { return run_pull(config); });
  if (seen.batch->parsed()) return run([options = seen.batch_options] { return cli::run_batch(options); });
  if (seen.ps->parsed()) return run([options = seen.model_commands.ps] { return cli::print_served(options); });
  if (seen.card->parsed()) {
    const bool has_address = seen.card->count("--url") > 0;
    return run([options = seen.model_commands.card, has_address] { return run_show(options, has_address); });
  }
  if (seen.stop->parsed()) return run([options = seen.model_commands.stop] { return cli::stop_model(options); });
  if (seen.licenses->parsed()) return run([config = seen.licenses_config] { return print_licenses(config); });
  if (seen.replay->parsed()) return run([config = seen.replay_config] { return run_replay(config); });
  if (seen.man->parsed()) return {std::nullopt, print_man_page(seen.app, seen.man_config)};
  if (seen.inspect->parsed()) return run([c = seen.inspect_config, json = seen.json] { return run_inspect(c, json); });
  if (seen.doctor->parsed()) return run([c = seen.doctor_config, json = seen.json] { return run_doctor(c, json); });
  if (seen.metrics->parsed()) return run([] { return print_metrics_document(); });
  if (seen.rpc_server->parsed()) return run([config = seen.rpc_config] { return run_rpc_server(config); });
  if (seen.top->parsed()) {
    seen.top_options.interval = from_seconds(seen.top_interval_s);
    return run([options = seen.top_options] { return cli::top(options); });
  }
  std::string said;
  if (seen.version->parsed()) said = std::string("chasqui ") + CHASQUI_VERSION + '\n';
  if (seen.completion->parsed()) said = completion_script(seen.app, seen.shell);
  if (seen.show->parsed()) {
    const auto print =
        seen.limits ? (seen.json ? limits_json : limits_document) : (seen.json ? settings_json : settings_text);
    said = seen.flags         ? flags_document(*seen.serve)
           : seen.llama_flags ? llama_flags_document(*seen.serve)
                              : print(*seen.show, settings);
  }
  if (said.empty()) return {seen.config, 0};
  std::fwrite(said.data(), 1, said.size(), stdout);
  return {std::nullopt, 0};
}

CommandLine refused(const std::string& why, int code = 2) {
  std::fprintf(stderr, "chasqui: %s\n", why.c_str());
  return {std::nullopt, code};
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* command : app.get_subcommands({})) {
    out.push_back(command->get_name());
    out.insert(out.end(), command->get_aliases().begin(), command->get_aliases().end());
  }
  return out;
}

std::string did_you_mean(const std::string& nearest) {
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

// `help [COMMAND]` becomes `[COMMAND] --help`. The error: a first word that is no command.
Result<void> read_command_name(const CLI::App& app, std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return invalid_field("", "a subcommand is required: `chasqui serve` starts a server, `chasqui help` lists all");
  }
  if (arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.resize(std::min<std::size_t>(arguments.size(), 1));
    arguments.emplace_back("--help");
  }
  if (arguments.front().starts_with('-')) return {};
  std::vector<std::string> names = names_of(app);
  if (std::ranges::find(names, arguments.front()) != names.end()) return {};
  names.emplace_back("help");
  const std::string nearest = nearest_word(arguments.front(), names);
  return invalid_field("", "there is no subcommand '" + arguments.front() + "'" +
                               (nearest.empty() ? "; `chasqui help` lists all" : did_you_mean(nearest)));
}

// The command that a line begins with, by whichever of its names; null: none.
CLI::App* named_command(CLI::App& app, const std::vector<std::string>& arguments) {
  for (CLI::App* command : app.get_subcommands({})) {
    if (!arguments.empty() && command->check_name(arguments.front())) return command;
  }
  return nullptr;
}

// Prints help, the version, or a mistake with what its value came from if it was not typed. Returns the exit code.
int explain(CLI::App& app, const CLI::ParseError& error, const ValueOrigins& origins) {
  app.failure_message([&origins](const CLI::App* parsed, const CLI::Error& mistake) {
    const std::string what = mistake.what();
    const std::string said = CLI::FailureMessage::simple(parsed, mistake);
    return what + origin_note(origins, option_in(what)) + said.substr(what.size());
  });
  return app.exit(error) == 0 ? 0 : 2;
}

// What was not expected of a command, with the flag that it resembles.
std::string unexpected(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  const CLI::App& command = parsed.empty() ? app : *parsed.front();
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  const std::vector<std::string> rest = app.remaining(true);
  const auto flag = std::ranges::find_if(rest, [](const std::string& word) { return word.starts_with('-'); });
  const std::string name = parsed.empty() ? "chasqui" : "chasqui " + command.get_name();
  if (flag == rest.end()) return name + " does not take '" + (rest.empty() ? "" : rest.front()) + "'";
  const std::string word = flag->substr(0, flag->find('='));
  const std::string nearest = nearest_word(word, flags);
  return name + " has no flag " + word +
         (nearest.empty() ? "; `" + name + " --help` lists all" : did_you_mean(nearest));
}

// The words of a command line that says which models there are.
struct ServeWords {
  std::vector<std::string> typed;
  std::vector<std::string> from_file;  // of --config, as if they had been typed
};

// The command line once more, with more flags before those that were typed, which are stronger.
Result<ServeConfig> read_with(const ServeWords& words, const SectionArguments& more) {
  std::vector<std::string> typed = words.typed;
  typed.insert(typed.begin() + 1, more.arguments.begin(), more.arguments.end());
  Commands seen;
  LlamaArguments known = from_llama_server(*configured(seen, typed), typed, &variable);
  if (known.refusal) return invalid_field(option_in(*known.refusal), *known.refusal);
  known.arguments.insert(known.arguments.begin() + 1, words.from_file.begin(), words.from_file.end());
  std::reverse(known.arguments.begin(), known.arguments.end());
  try {
    seen.app.parse(known.arguments);
  } catch (const CLI::ParseError& error) {
    return invalid_field(option_in(error.what()), error.what());
  }
  ServeConfig out = seen.doctor->parsed() ? std::move(seen.doctor_config) : std::move(seen.config);
  out.llama = out.model.llama = std::move(known.options);
  return out;
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv) {
  Settings settings;
  settings.arguments = {argv + 1, argv + argc};
  Commands first;
  std::vector<std::string> notes;
  LlamaOptionsPtr llama;
  ServeWords words;
  if (auto named = read_command_name(first.app, settings.arguments); !named) return refused(named.error().message);
  if (CLI::App* command = configured(first, settings.arguments)) {
    LlamaArguments known = from_llama_server(*command, settings.arguments, &variable);
    // A supervisor waits for what was there when it started.
    if (known.refusal) return refused(*known.refusal, known.may_pass && is_supervised() ? kPeerLostExit : 2);
    notes = std::move(known.notes);
    llama = std::move(known.options);
    words.typed = settings.arguments;
    const auto typed = static_cast<std::ptrdiff_t>(known.arguments.size());
    auto read = read_settings(first.app, *command, std::move(known.arguments));
    if (!read) return refused(read.error().message);
    settings = std::move(*read);
    words.from_file.assign(settings.arguments.begin() + typed, settings.arguments.end());
  } else {
    settings.arguments = with_long_names(std::move(settings.arguments));
    if (CLI::App* const other = named_command(first.app, settings.arguments)) {
      auto read = read_settings(first.app, *other, settings.arguments);
      if (read) settings = std::move(*read);
    }
  }
  Commands seen;
  const CLI::App* const command = named_command(seen.app, settings.arguments);
  const ValueOrigins origins = command == nullptr ? ValueOrigins() : value_origins(*command, settings);
  std::vector<std::string> arguments = settings.arguments;
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    seen.app.parse(arguments);
  } catch (const CLI::ExtrasError&) {
    return refused(unexpected(seen.app));
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, explain(seen.app, error, origins)};
  }
  seen.config.notes = std::move(notes);
  const auto keys = settings.origins.find("api-key");
  seen.config.keys_from_environment = keys != settings.origins.end() && keys->second == Origin::environment;
  for (ServeConfig* config : {&seen.config, &seen.doctor_config}) {
    config->llama = config->model.llama = llama;
    config->origins = origins;
  }
  const auto more = [&words, &llama](const SectionArguments& section) -> Result<ServeConfig> {
    auto read = read_with(words, section);
    if (!read || read->llama->rpc_servers() == llama->rpc_servers()) return read;
    return invalid_field("--rpc", "--rpc adds devices for all models: it belongs on the command line");
  };
  for (const auto& [serve, config] :
       {std::pair(seen.serve, &seen.config), std::pair(seen.doctor, &seen.doctor_config)}) {
    if (!serve->parsed()) continue;
    if (auto listed = list_models(*serve, *config, more); !listed) {
      return refused(with_origin(listed.error(), origins).message);
    }
  }
  for (ServeConfig& model : seen.config.models) model.command_line.assign(argv, argv + argc);
  return chosen(seen, settings);
}

}  // namespace chasqui
