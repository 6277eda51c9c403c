#include "app/load_trial.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "app/inherited_files.h"
#include "app/model_parts.h"
#include "app/serve_plan.h"
#include "app/settings.h"
#include "base/log.h"
#include "cli/machine.h"
#include "model/gguf_summary.h"
#include "model/llama_threads.h"

extern char** environ;

namespace chasqui {
namespace {

constexpr const char* kTrialMark = "CHASQUI_LOAD_TRIAL";       // the name of the model
constexpr const char* kTrialFile = "CHASQUI_LOAD_TRIAL_FILE";  // … and its file, which may be another one than at start
constexpr std::string_view kGood = "load trial: good";
constexpr std::string_view kBad = "load trial: bad: ";
constexpr std::size_t kSaidMost = 16 * 1024;
constexpr int kLookEveryMs = 20;
constexpr rlim_t kComputeSeconds = 120;  // what a good file takes is a small part of it
constexpr int kNice = 5;                 // streams of other models go first

const char* model_on_trial() { return std::getenv(kTrialMark); }

// What a process said, and how it ended.
struct Ended {
  std::string said;
  int status = 0;
  bool stopped = false;
};

class TrialProcess {
 public:
  explicit TrialProcess(const ServeConfig& model);
  ~TrialProcess();
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;

  bool started() const { return pid_ > 0; }
  Ended wait(const Flag& stop);

 private:
  void spawn(const ServeConfig& model, int out);

  pid_t pid_ = 0;
  int said_ = -1;
};

TrialProcess::TrialProcess(const ServeConfig& model) {
  int ends[2] = {-1, -1};
  if (model.command_line.empty() || ::pipe(ends) != 0) return;
  said_ = ends[0];
  for (const int fd : ends) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  spawn(model, ends[1]);
  ::close(ends[1]);
}

TrialProcess::~TrialProcess() {
  if (said_ >= 0) ::close(said_);
}

void TrialProcess::spawn(const ServeConfig& model, int out) {
  std::vector<std::string> variables{std::string(kTrialMark) + '=' + names_of_model(model).front(),
                                     std::string(kTrialFile) + '=' + model.model_path, "GGML_NO_BACKTRACE=1"};
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) environment.push_back(*variable);
  environment.push_back(nullptr);
  std::vector<std::string> words = model.command_line;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&how);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&how, &none);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  // Also when another binary has taken its place.
  constexpr const char* kSelf = "/proc/self/exe";
  const char* const program = ::access(kSelf, X_OK) == 0 ? kSelf : words.front().c_str();
  if (::posix_spawnp(&pid_, program, &files, &how, arguments.data(), environment.data()) != 0) pid_ = 0;
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&how);
}

Ended TrialProcess::wait(const Flag& stop) {
  Ended out;
  for (;;) {
    if (stop.raised()) {
      out.stopped = true;
      ::kill(pid_, SIGKILL);
      break;
    }
    pollfd door{said_, POLLIN, 0};
    if (::poll(&door, 1, kLookEveryMs) <= 0) continue;
    char piece[4096];
    const ssize_t bytes = ::read(said_, piece, sizeof piece);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    out.said.append(piece, static_cast<std::size_t>(bytes));
    if (out.said.size() > kSaidMost) out.said.erase(0, out.said.size() - kSaidMost);
  }
  while (::waitpid(pid_, &out.status, 0) < 0 && errno == EINTR) {
  }
  return out;
}

// The line that begins, or goes on, with these words; empty: there is none.
std::string line_with(std::string_view said, std::string_view words) {
  const std::size_t at = said.find(words);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = said.rfind('\n', at) + 1;  // npos + 1 is 0
  return std::string(said.substr(begin, said.find('\n', at) - begin));
}

// Of "/src/ggml.c:7: GGML_ASSERT(a) failed" the part that does not say where libllama was built.
std::string end_words(std::string_view said) {
  for (const std::string_view sign : {"GGML_ASSERT", "GGML_ABORT", "what():", "terminate called"}) {
    const std::string line = line_with(said, sign);
    if (!line.empty()) return line.substr(line.find(sign));
  }
  return {};
}

Error failure_of(const ServeConfig& model, const Ended& ended) {
  const std::string cannot = "Cannot load the model " + model.model_path + ": ";
  if (ended.stopped) return Error{ErrorCode::unavailable, cannot + "loading was stopped.", "model"};
  const std::string bad = line_with(ended.said, kBad);
  if (!bad.empty()) return invalid_field("model", bad.substr(bad.find(kBad) + kBad.size()));
  const std::string words = end_words(ended.said);
  const std::string more = words.empty() ? std::string() : " (" + words + ")";
  if (!WIFSIGNALED(ended.status)) {
    const std::string line = line_with(ended.said, "chasqui: ");
    return invalid_field("model", cannot + (line.empty() ? "libllama failed on it" + more : line) + ".");
  }
  const int number = WTERMSIG(ended.status);
  if (number == SIGXCPU) {
    return invalid_field("model", cannot + "libllama did not come to an end with it. The file is broken.");
  }
  if (number == SIGKILL) {
    return invalid_field("model", cannot + "the process that tried it was killed; mostly that is for want of memory.");
  }
  const std::string signal = words.empty() ? " (" + std::string(::strsignal(number)) + ")" : more;
  return invalid_field("model", cannot + "libllama failed on it" + signal + ". The file is broken.");
}

// As small as it can be, and nothing that outlives the process.
ServeConfig tried(ServeConfig model) {
  model.on_trial = true;
  model.workers = 1;
  model.gpu_layers = 0;
  model.keep_tuning = false;
  model.cache_disk.clear();
  model.session_dir.clear();
  model.shared = {};
  model.slot_save_path.clear();
  model.model.slots = 1;
  model.model.cells = 512;
  model.model.adapt_threads = false;
  model.model.polling = 0;
  if (model.model.threads == 0) model.model.threads = std::max(1, default_threads(model.llama) / model.sharers);
  model.sharers = 1;
  // Decoding reads all weights, which the server will do as well; not where the machine could not keep them.
  const auto summary = summarize_gguf(model.model_path);
  const std::uint64_t free_bytes = cli::look_at_machine().free_bytes();
  model.model.warm_up = summary && summary->tensor_bytes < free_bytes / 2;
  return model;
}

Result<void> load_once(const ServeConfig& config) {
  const std::string name = model_on_trial();
  const auto named = std::ranges::find_if(config.models, [&](const ServeConfig& model) {
    return config.models.size() == 1 || names_of_model(model).front() == name;
  });
  if (named == config.models.end()) {
    return invalid_field("model", "the flags and files that named " + name + " at start do not name it any more");
  }
  ServeConfig model = *named;
  if (const char* const file = std::getenv(kTrialFile)) model.model_path = file;
  model = tried(std::move(model));
  auto how = plan_model(model);
  if (!how) return how.error();
  how->sleeps = false;
  how->weights.progress = [](double) { return true; };
  model.on_demand = false;
  const auto parts = load_model(model, std::move(*how));
  return parts ? Result<void>() : parts.error();
}

}  // namespace

Result<void> try_loading(const ServeConfig& model, const Flag& stop) {
  TrialProcess process(model);
  if (!process.started()) {
    log_warning("no process to try a model in: a broken file would end the server", {{"model", model.model_path}});
    return {};
  }
  const Ended ended = process.wait(stop);
  if (!ended.stopped && !line_with(ended.said, kGood).empty()) return {};
  return failure_of(model, ended);
}

bool is_load_trial() { return model_on_trial() != nullptr; }

void begin_load_trial() {
  close_inherited_files();                            // which it would otherwise share with the server, or take from it
  std::ofstream("/proc/self/oom_score_adj") << 1000;  // before the server
  const rlimit compute{kComputeSeconds, kComputeSeconds + 1};
  ::setrlimit(RLIMIT_CPU, &compute);
  [[maybe_unused]] const int nice = ::nice(kNice);
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_DUMPABLE, 0);  // no core of each broken file
#endif
}

int run_load_trial(const ServeConfig& config) {
  configure_log(LogLevel::off, LogFormat::text);
  const auto good = load_once(config);
  std::string said = good ? std::string(kGood) : std::string(kBad) + good.error().message;
  std::ranges::replace(said, '\n', ' ');
  std::printf("\n%s\n", said.c_str());
  std::fflush(stdout);
  ::_exit(good ? 0 : 1);  // nothing here needs its end
}

}  // namespace chasqui
